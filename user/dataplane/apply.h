/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Putting a configuration in force, whole: it is written into the slot that no program reads, then
 * the slots are turned over by one store, then we wait for every program that may still read the old
 * one. So no packet sees half of two configurations, and the old one can be had back at once.
 */
#ifndef SLUICE_DATAPLANE_APPLY_H
#define SLUICE_DATAPLANE_APPLY_H

#include "base/trouble.h"
#include "dataplane/maps.h"
#include "limit/settings.h"

/* Draw the secret of a set of maps that was just made, and say which version it is of. */
int apply_found(struct maps *maps);

/*
 * Write settings into the idle slot. What was said by hand about prefixes is carried over. Nothing
 * is in force yet. Wants the lock. 0 or -errno with *trouble.
 */
int apply_prepare(struct maps *maps, const struct settings *settings, struct trouble *trouble);

/* Turn the slots over and wait until no program reads the old one. Also undoes itself. */
void apply_turn_over(struct maps *maps);

#endif
