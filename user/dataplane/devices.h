/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The network devices of this namespace, as far as it matters which packets come in on which, and
 * whether they are to be understood. Functions return 0 or -errno. Not thread safe.
 */
#ifndef SLUICE_DATAPLANE_DEVICES_H
#define SLUICE_DATAPLANE_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/trouble.h"
#include "dataplane/pins.h"
#include "limit/settings.h"

struct device {
	uint32_t ifindex;
	char name[INTERFACE_NAME_MAX];
	uint16_t hardware; /* ARPHRD_* */
	uint32_t master;   /* whose member it is; 0: nobody's */
	uint32_t lower;    /* whose packets it gets, sorted out by tag or address; 0: none */
};

/* All of them; *out is the caller's, to be freed. */
int devices_list(struct device **out, size_t *count);

/* Look up an interface. -ENODEV with *trouble. */
int interface_find(const char *name, uint32_t *ifindex, struct trouble *trouble);

/*
 * Whether programs may be attached to all of these at once, beside what is attached by pins: each
 * has Ethernet frames, and no packet comes in on two of them. 0 or -errno with *trouble.
 */
int devices_check(const struct pins *pins, const uint32_t *ifindex, size_t count,
		  struct trouble *trouble);

#endif
