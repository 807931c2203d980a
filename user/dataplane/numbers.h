/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The data plane's numbers as Prometheus reads them, for the daemon and for `sluice stats`. How
 * many series there are is bounded: by reasons, notes, meters, and the interfaces that are attached
 * or that the configuration names. Not thread safe.
 */
#ifndef SLUICE_DATAPLANE_NUMBERS_H
#define SLUICE_DATAPLANE_NUMBERS_H

#include <stddef.h>

#include "base/trouble.h"
#include "dataplane/maps.h"
#include "dataplane/pins.h"
#include "limit/settings.h"
#include "wire/exposition.h"

enum { TABLE_READ_AGAIN_S = 5 };

/* What the table was found to hold. Going through it reads 8 MiB, so it is done again only when the
 * last time is TABLE_READ_AGAIN_S ago, or the table is another one. */
struct table_seen {
	struct occupancy occupancy;
	uint64_t read_at_ns; /* CLOCK_MONOTONIC; 0: not yet */
	uint32_t map_id;     /* of the table that was read */
};

/*
 * Add all families. The pins are looked up anew each time, because they may have been taken off and
 * put on again meanwhile. wanted: interfaces of a configuration, of which those that are not
 * attached are shown as such. *seen begins as zeros.
 *
 * If there is nothing to be read only `sluice_dataplane_up 0` and the wanted interfaces are added:
 * -errno with *trouble, -ENOENT if nothing is attached.
 */
int numbers_write(const struct pins *pins, const struct setting_interface *wanted,
		  size_t wanted_count, struct table_seen *seen, struct exposition *out,
		  struct trouble *trouble);

#endif
