/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Writes prefix_hints; see sluice/abi.h for what they are. hints: those of one slot. */
#ifndef SLUICE_DATAPLANE_HINTS_H
#define SLUICE_DATAPLANE_HINTS_H

#include <stdint.h>

#include <sluice/abi.h>

/* No prefix lies around any address. */
void hints_clear(uint64_t *hints);

/*
 * Some prefix does: to be called before it is in the trie, and before the flags that are returned
 * (bits of enum config_flag) are set in the slot. Programs may read meanwhile.
 */
uint32_t hints_add(uint64_t *hints, const struct prefix_key *key);

#endif
