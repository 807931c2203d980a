/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sheds load: a connection is refused here if the daemon would refuse its next request anyway, so
 * that a flood of requests, which only userspace can see, costs no socket either.
 *
 * Only a look. The daemon alone writes its buckets, and may be doing so now; each word is read whole
 * and judged by the coarse clock, with its lag given away, so that what is refused here would be
 * refused there until the lag has passed. In every doubt the connection passes: a word beyond the
 * limit's capacity, another class of ticks, a claim, no table, no daemon, a daemon that holds
 * requests to other limits than this configuration's (its digest tells). A daemon that has died leaves
 * debts that pass by themselves; nobody sweeps then, but refusing_until_ns has passed long before the
 * first word can wrap, since it is never further ahead than the capacity.
 *
 * Most of the time no address is at its limit. hooks.refusing_until_ns tells, and saves a second
 * random line of memory for each SYN of a flood.
 */
#ifndef SLUICE_SHED_H
#define SLUICE_SHED_H

#include "maps.h"
#include "node.h"
#include "packet.h"
#include "police.h"
#include "table.h"

SLUICE_INLINE bool sheds_node(const struct config_slot *slot, const struct hooks *state,
			      const struct node_request *request)
{
	if (!slot->node_hooks.capacity)
		return false;
	return node_is_refused_anyway(&slot->node_hooks, request,
				      *(const volatile __u64 *)&state->node_tat, 1);
}

/* Not inlined for the verifier's sake, as table_find(). */
__attribute__((noinline)) int sheds_address(const struct config_slot *slot,
					    const struct hooks *state, const union address *source,
					    __u64 coarse_ns, __u64 coarse_lag_ns);

__attribute__((noinline)) int sheds_address(const struct config_slot *slot,
					    const struct hooks *state, const union address *source,
					    __u64 coarse_ns, __u64 coarse_lag_ns)
{
	struct table_request request = {
		.tokens = 1,
		.coarse_ns = coarse_ns,
		.coarse_lag_ns = coarse_lag_ns,
	};
	const struct bucket_set *set;
	struct place place;
	union address key;

	if (!slot || !state || !source)
		return 0;
	key = address_key(source, slot->ipv6_prefix);
	place = key_place(&state->secret, &key, IP_SETS - 1);
	set = bpf_map_lookup_elem(&hook_buckets, &place.set);
	for (__u32 at = 0; set && at < SET_WORDS; at++) {
		__u64 word = table_read(set, at);

		if (is_owned_by(word, place_tag(&place, METER_HOOKS)))
			return !word_is_claim(word) &&
			       is_refused_anyway(&slot->ip_hooks, &request, word);
	}
	return 0;
}

/* REASON_ADMITTED: not shed. */
SLUICE_INLINE enum reason shed(const struct config_slot *slot, const struct packet *packet,
			       struct charge *charge)
{
	struct node_request request = {
		.tokens = 1,
		.coarse_ns = charge->coarse_ns,
		.coarse_lag_ns = charge->coarse_lag_ns,
	};
	__u32 only = 0;
	const struct hooks *state = bpf_map_lookup_elem(&hooks, &only);

	if (!state || *(const volatile __u64 *)&state->limits_digest != slot->hooks_digest)
		return REASON_ADMITTED;
	if (slot->ip_hooks.capacity &&
	    *(const volatile __u64 *)&state->refusing_until_ns > charge->coarse_ns &&
	    sheds_address(slot, state, &packet->source, charge->coarse_ns, charge->coarse_lag_ns)) {
		if (!(slot->dry_ip & 1u << METER_HOOKS))
			return REASON_SHED_IP;
		charge->would |= 1u << REASON_SHED_IP;
	}
	if (!sheds_node(slot, state, &request))
		return REASON_ADMITTED;
	if (!(slot->dry_node & 1u << METER_HOOKS))
		return REASON_SHED_NODE;
	charge->would |= 1u << REASON_SHED_NODE;
	return REASON_ADMITTED;
}

#endif
