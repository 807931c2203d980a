/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Our programs on interfaces without a pin that tells of them: a filter under clsact outlives the
 * removal of its pins by hand, and links do if they were moved. Found by their names, and only if
 * no set of pins that can be seen holds their maps: what another sluice has attached is not ours.
 * Seeing programs by number takes CAP_SYS_ADMIN; without it nothing is found.
 */
#ifndef SLUICE_DATAPLANE_STRAYS_H
#define SLUICE_DATAPLANE_STRAYS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/trouble.h"
#include "dataplane/pins.h"

/*
 * Take off what is astray on an interface, or on all of this network namespace (0). *count grows by
 * what was taken off. 0, or -errno with *trouble, which says what stays and why; -EBUSY: it is held
 * by other pins, and ifindex is not 0.
 */
int strays_remove(const struct pins *pins, uint32_t ifindex, unsigned *count,
		  struct trouble *trouble);

/* Whether what stands in our place under an interface's clsact is astray. */
bool strays_has_filter(const struct pins *pins, uint32_t ifindex);

#endif
