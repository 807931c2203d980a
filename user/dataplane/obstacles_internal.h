/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What obstacles.c and obstacles_driver.c agree on. */
#ifndef SLUICE_DATAPLANE_OBSTACLES_INTERNAL_H
#define SLUICE_DATAPLANE_OBSTACLES_INTERNAL_H

#include "dataplane/obstacles.h"

enum { OBSTACLE_ERRORS_MAX = 4 };

/* The rungs that an obstacle stands in the way of, as bits. */
enum { ON_FRAGS = 1, ON_SINGLE = 2, ON_TCX = 4, ON_CLSACT = 8, ON_GENERIC = 16 };
enum { ON_NATIVE = ON_FRAGS | ON_SINGLE, ON_XDP = ON_NATIVE | ON_GENERIC };

struct obstacle {
	unsigned rungs;
	int errors[OBSTACLE_ERRORS_MAX]; /* that the kernel answers with; 0 ends them */
	enum outlook before; /* what it means for who has not tried; OUTLOOK_WORKS: nothing */
	bool (*applies)(const struct interface_facts *facts);
	void (*say)(const struct interface_facts *facts, struct trouble *trouble);
};

/* What drivers of cards want; ended by a row without rungs. */
extern const struct obstacle obstacles_of_drivers[];

/* Whether the driver has no native XDP, as far as that is known. Some say so as well while queues
 * or offloads are in the way, so those are asked for first. */
bool obstacle_lacks_native(const struct interface_facts *facts);

#endif
