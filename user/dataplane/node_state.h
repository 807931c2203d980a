/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The state of the node's buckets. */
#ifndef SLUICE_DATAPLANE_NODE_STATE_H
#define SLUICE_DATAPLANE_NODE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/maps.h"

struct node_meter_state {
	struct gcra_limit limit; /* capacity 0: none */
	uint64_t held_back;      /* of the burst: what all CPUs' slices may hold */
	uint64_t unspent;        /* tokens that CPUs hold now, all together */
	uint64_t remaining;      /* tokens that the bucket would admit now in one packet */
	uint64_t full_after_ns;  /* until its debt is repaid */
	bool is_dry;
};

/* -ENOENT: no configuration is in force. */
int node_state_look(const struct maps *maps, uint64_t now_ns, struct node_meter_state out[METERS]);

#endif
