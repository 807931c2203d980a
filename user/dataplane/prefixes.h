/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Filling the prefix trie of a configuration that is being prepared. */
#ifndef SLUICE_DATAPLANE_PREFIXES_H
#define SLUICE_DATAPLANE_PREFIXES_H

#include <stdint.h>

#include "dataplane/maps.h"
#include "limit/settings.h"

/*
 * Write the idle slot's trie anew: what settings say, and what was said by hand and has not ended
 * by now_ns, from the trie in force; and its hints. *flags: what the slot has to say of it, bits of
 * enum config_flag. Wants the lock. 0 or -errno; then the trie holds anything.
 */
int prefixes_load(struct maps *maps, const struct settings *settings, uint64_t now_ns,
		  uint32_t *flags);

#endif
