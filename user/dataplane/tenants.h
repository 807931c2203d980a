/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory for the daemon's buckets that outlives the daemon: a pinned map, mapped. */
#ifndef SLUICE_DATAPLANE_TENANTS_H
#define SLUICE_DATAPLANE_TENANTS_H

#include <stddef.h>

#include <sluice/siphash.h>
#include <sluice/slot.h>

#include "base/trouble.h"
#include "dataplane/pins.h"

struct tenant_map {
	struct bucket_slot *slots; /* mapped */
	size_t count;
	struct siphash_key secret; /* that the slots were filled under */
	bool adopted;              /* left by an earlier daemon */
	int lock_fd;               /* while there are slots */
};

/*
 * Open what is pinned, or make it with so many slots and pin it. What is there keeps its size; *map
 * says which. Wants the lock of the pins. -EWOULDBLOCK: another process has it open. 0, or -errno
 * with *trouble.
 */
int tenant_map_open(struct tenant_map *map, const struct pins *pins, size_t slots,
		    struct trouble *trouble);

/* The map stays pinned. A zeroed one is fine. */
void tenant_map_close(struct tenant_map *map);

#endif
