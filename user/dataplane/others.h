/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sets of other map versions, as far as one can know them without knowing their maps: which
 * interfaces they hold. To take them over see takeover.h. Functions return 0 or -errno.
 */
#ifndef SLUICE_DATAPLANE_OTHERS_H
#define SLUICE_DATAPLANE_OTHERS_H

#include <stddef.h>
#include <stdint.h>

#include "dataplane/attach.h"
#include "dataplane/pins.h"

struct other_set {
	uint32_t version;
	uint32_t held;                                       /* interfaces */
	char names[OTHER_VERSIONS_MAX * INTERFACE_NAME_MAX]; /* of some of them: `eth0, eth1` */
};

/* In no order. More than there is room for are left out. */
int others_list(const struct pins *pins, struct other_set sets[OTHER_VERSIONS_MAX], size_t *count);

/* Take an interface off the set of another version that holds it; one that holds no other goes with
 * it. -ENOENT: none holds it. Wants the lock. */
int others_detach(const struct pins *pins, uint32_t ifindex);

#endif
