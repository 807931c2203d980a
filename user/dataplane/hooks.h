/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The pinned maps that the daemon keeps clients' buckets of requests in, mapped: programs look at
 * them to shed. They come and go with the set, by whoever attaches and detaches, so they are to be
 * looked for again and again; while they are mapped here they stay, also when nothing is pinned any
 * more.
 */
#ifndef SLUICE_DATAPLANE_HOOKS_H
#define SLUICE_DATAPLANE_HOOKS_H

#include <stdint.h>

#include <sluice/abi.h>

#include "base/trouble.h"
#include "dataplane/pins.h"

struct hook_maps {
	struct bucket_set *sets; /* IP_SETS of them; NULL: none is open */
	struct hooks *hooks;
	uint32_t sets_id, hooks_id; /* the kernel's numbers of the maps */
};

/*
 * Open what is pinned in our set; without one, what is in the set of another version that would be
 * taken over. known: what is open already, or a zeroed one. -EALREADY: it is the same.
 * -ENOENT: nothing is attached. 0, or -errno with *trouble; *out is the caller's. Needs no lock: a
 * set is renamed into place when it is whole.
 */
int hook_maps_open(struct hook_maps *out, const struct hook_maps *known, const struct pins *pins,
		   struct trouble *trouble);
void hook_maps_close(struct hook_maps *maps); /* a zeroed one is fine */

#endif
