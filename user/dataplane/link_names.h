/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How rungs, modes, kinds of links and the names of their pins belong together. */
#ifndef SLUICE_DATAPLANE_LINK_NAMES_H
#define SLUICE_DATAPLANE_LINK_NAMES_H

#include "dataplane/link.h"

enum link_kind rung_kind(enum rung rung);

/* MODE_NATIVE, MODE_TC or MODE_GENERIC. */
enum attach_mode rung_mode(enum rung rung);

/* Whether an interface that is to be attached in a mode may be held by a rung. */
bool rung_suits(enum rung rung, enum attach_mode wanted, enum attach_mode require);

/* The network namespace that we are in, as an inode; 0: not known. */
uint64_t link_netns(void);

#endif
