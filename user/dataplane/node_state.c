/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads the node's buckets and slices as bpf/node.h keeps them. */
#include "dataplane/node_state.h"

#include <errno.h>

int node_state_look(const struct maps *maps, uint64_t now_ns, struct node_meter_state out[METERS])
{
	const struct config_slot *slot = maps_slot(maps);
	uint64_t now = gcra_ticks(now_ns, GCRA_TICK_SHIFT), unspent[METERS];
	int err = slot ? maps_unspent(maps, unspent) : -ENOENT;

	if (err)
		return err;
	for (int meter = 0; meter < METERS; meter++) {
		const struct node_limit *node = &slot->node[meter];
		uint64_t tat = __atomic_load_n(&maps->node_buckets->tat[meter], __ATOMIC_RELAXED);
		struct node_meter_state *state = &out[meter];

		*state = (struct node_meter_state){ .limit = node->limit };
		state->is_dry = slot->dry_node & 1u << meter;
		if (!node->limit.capacity)
			continue;
		tat = tat ? tat : now;
		state->held_back = node->slice * maps_cpus();
		state->unspent = unspent[meter];
		state->remaining = gcra_remaining(&node->limit, tat, now);
		state->full_after_ns =
			gcra_wait_ns(gcra_debt(&node->limit, tat, now), node->limit.tick_shift);
	}
	return 0;
}
