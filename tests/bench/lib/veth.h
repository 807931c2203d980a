/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A pair of veth devices in a network namespace that nobody else has and that goes with the
 * process, and the generator sending through it. Functions return 0 or -errno.
 */
#ifndef TESTS_BENCH_LIB_VETH_H
#define TESTS_BENCH_LIB_VETH_H

#include <stdbool.h>
#include <stdint.h>

#define VETH_SENDER "flood0"
#define VETH_RECEIVER "flood1"

struct veth {
	unsigned receiver; /* ifindex */
	int counters;      /* netlink socket, see counters.h */
};

/* Moves the process into the new namespace for good. */
int veth_open(struct veth *veth);
void veth_close(struct veth *veth);

/* Without XDP and without GRO the receiver takes in nothing. */
int veth_set_gro(const struct veth *veth, bool on);

struct veth_flood {
	uint64_t made;    /* by the generator */
	uint64_t arrived; /* by the receiver's counters */
	double rate;      /* of those that arrived, per second of CPU time */
};

/* Flood the receiver. sources: as the generator's --sources. */
int veth_flood(const struct veth *veth, const char *sources, double seconds,
	       struct veth_flood *out);

#endif
