/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stage 3: from a packet and its limits to admitted or refused. The only charger of buckets.
 *
 * The address first, so that one refused has not touched the node's bucket. The meters of a scope
 * are looked at together before any is charged, so that a refusal spends nothing; where another CPU
 * comes between, a meter may be spent in vain, which is counted. An address that the node refuses
 * has spent its own tokens: that is meant, for it keeps a few loud addresses, each within its
 * limit, from asking for every token that the node gets. Between the two stands what the daemon's
 * buckets say (shed.h), for the same reason.
 *
 * A meter in a dry run says what it would refuse, is charged for what it would admit, and stops
 * nothing.
 *
 * Why no interleaving admits too much: table.h gives the argument for an address's word, node.h for
 * the node's. Here they are only called one after the other, and a meter that was charged is never
 * uncharged, so what they say of one meter holds for all of them at once.
 */
#ifndef SLUICE_POLICE_H
#define SLUICE_POLICE_H

#include "classify.h"
#include "clock.h"
#include "maps.h"
#include "node.h"
#include "packet.h"
#include "table.h"

/* What one packet is charged for, by meter; 0: nothing. */
struct charge {
	__u64 tokens[METERS];
	__u64 coarse_ns;
	__u64 coarse_lag_ns;
	__u32 notes; /* bits 1 << enum note */
	__u32 would; /* bits 1 << enum reason: of meters that refuse nothing, only count it */
};

SLUICE_INLINE struct charge charge_of(const struct packet *packet, __u64 coarse_lag_ns)
{
	struct charge charge = {
		.tokens = {
			[METER_CONNECTIONS] = packet->flags & PACKET_CONNECTION ? 1 : 0,
			[METER_PACKETS] = packet->segments,
			[METER_BYTES] = packet->bytes,
		},
		.coarse_ns = clock_coarse_ns(),
		.coarse_lag_ns = coarse_lag_ns,
	};

	return charge;
}

SLUICE_INLINE enum reason refused_by(enum taken taken, __u32 meter)
{
	if (taken == TAKEN_SET_FULL)
		return REASON_IP_SET_FULL;
	if (taken == TAKEN_TRIES)
		return REASON_IP_TRIES;
	return REASON_IP_CONNECTIONS + meter;
}

/* One pass over an address's meters. look_only: would they all admit? */
SLUICE_INLINE enum reason pass_address(const struct config_slot *slot, const struct held_to *held,
				       struct charge *charge, struct bucket_set *set,
				       struct ip_refusals *refusals, const struct place *place,
				       bool look_only)
{
	struct table_request request = {
		.coarse_ns = charge->coarse_ns,
		.coarse_lag_ns = charge->coarse_lag_ns,
		.way = place->way,
		.when_full = slot->when_full,
		.look_only = look_only,
		.generation = (__u32)slot->generation,
	};
	struct table_outcome outcome = {};
	const struct gcra_limit *limits = held->limits;
	bool spent = false;

	for (__u32 meter = 0; meter < METERS; meter++) {
		enum taken taken;

		if (!charge->tokens[meter] || !limits[meter].capacity)
			continue;
		request.tokens = charge->tokens[meter];
		request.tag = place_tag(place, meter);
		taken = table_take(set, &limits[meter], &request, &outcome,
				   &refusals->of[request.tag & (REFUSALS_KEPT - 1)]);
		if (taken == TAKEN_ADMITTED) {
			spent = true;
			continue;
		}
		if (held->dry & 1u << meter) {
			charge->would |= 1u << refused_by(taken, meter);
			continue;
		}
		charge->notes |= outcome.notes;
		if (!look_only && spent)
			charge->notes |= 1u << NOTE_SPENT_IN_VAIN;
		return refused_by(taken, meter);
	}
	charge->notes |= outcome.notes;
	return REASON_ADMITTED;
}

SLUICE_INLINE enum reason police_address(const struct config_slot *slot, const struct held_to *held,
					 struct charge *charge, struct bucket_set *set,
					 const struct place *place)
{
	__u32 only = 0, meters = 0;
	struct ip_refusals *refusals = bpf_map_lookup_elem(&ip_refusals, &only);
	enum reason reason;

	if (!refusals)
		return REASON_ADMITTED;
	for (__u32 meter = 0; meter < METERS; meter++)
		meters += charge->tokens[meter] && held->limits[meter].capacity;
	if (meters > 1) {
		reason = pass_address(slot, held, charge, set, refusals, place, true);
		if (reason != REASON_ADMITTED)
			return reason;
	}
	return pass_address(slot, held, charge, set, refusals, place, false);
}

/* One pass over the node's meters. */
SLUICE_INLINE enum reason pass_node(const struct config_slot *slot, struct charge *charge,
				    struct node_buckets *buckets, struct node_slices *slices,
				    bool look_only)
{
	struct node_request request = {
		.coarse_ns = charge->coarse_ns,
		.coarse_lag_ns = charge->coarse_lag_ns,
		.look_only = look_only,
	};
	struct node_outcome outcome = {};
	bool spent = false;

	for (__u32 meter = 0; meter < METERS; meter++) {
		enum taken taken;

		if (!charge->tokens[meter] || !slot->node[meter].limit.capacity)
			continue;
		request.tokens = charge->tokens[meter];
		taken = node_take(&buckets->tat[meter], &slices->meter[meter], &slot->node[meter],
				  &request, &outcome);
		if (taken == TAKEN_ADMITTED || taken == TAKEN_TRIES) {
			spent |= taken == TAKEN_ADMITTED;
			continue;
		}
		if (slot->dry_node & 1u << meter) {
			charge->would |= 1u << (REASON_NODE_CONNECTIONS + meter);
			continue;
		}
		charge->notes |= outcome.notes;
		if (!look_only && spent)
			charge->notes |= 1u << NOTE_SPENT_IN_VAIN;
		return REASON_NODE_CONNECTIONS + meter;
	}
	charge->notes |= outcome.notes;
	return REASON_ADMITTED;
}

SLUICE_INLINE enum reason police_node(const struct config_slot *slot, struct charge *charge)
{
	__u32 only = 0, meters = 0;
	struct node_buckets *buckets = bpf_map_lookup_elem(&node_buckets, &only);
	struct node_slices *slices = bpf_map_lookup_elem(&node_slices, &only);
	enum reason reason;

	if (!buckets || !slices)
		return REASON_ADMITTED;
	if (slices->generation != slot->generation) {
		__builtin_memset(slices->meter, 0, sizeof(slices->meter));
		slices->generation = slot->generation;
	}
	for (__u32 meter = 0; meter < METERS; meter++)
		meters += charge->tokens[meter] && slot->node[meter].limit.capacity;
	if (meters > 1) {
		reason = pass_node(slot, charge, buckets, slices, true);
		if (reason != REASON_ADMITTED)
			return reason;
	}
	return pass_node(slot, charge, buckets, slices, false);
}

#endif
