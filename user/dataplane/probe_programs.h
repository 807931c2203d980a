/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who is attached to an interface already. For probe_interface.c and explain.c. */
#ifndef SLUICE_DATAPLANE_PROBE_PROGRAMS_H
#define SLUICE_DATAPLANE_PROBE_PROGRAMS_H

#include "dataplane/facts.h"
#include "dataplane/netlink.h"

/* Fill in the programs and filters of out->ifindex. pins NULL: none is ours. */
void programs_read(struct netlink *netlink, const struct pins_facts *pins,
		   struct interface_facts *out);

/* Whether an XDP program of any mode is there. */
bool programs_has_xdp(uint32_t ifindex);

#endif
