/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stage 4: what is told of a verdict. Counters, always and exactly; offenders and events for
 * refusals only and limited, because a flood must not be able to turn its own record into a second
 * flood. Losing either changes no verdict.
 */
#ifndef SLUICE_REPORT_H
#define SLUICE_REPORT_H

#include "clock.h"
#include "maps.h"
#include "packet.h"

SLUICE_INLINE void note_add(enum note note, __u64 count)
{
	__u32 index = note;
	__u64 *value = bpf_map_lookup_elem(&notes, &index);

	if (value)
		*value += count;
}

SLUICE_INLINE void notes_add(__u32 bits)
{
	if (!bits)
		return;
	for (__u32 note = 0; note <= NOTE_CLAMPED; note++)
		if (bits & 1u << note)
			note_add(note, 1);
}

SLUICE_INLINE void count(enum reason reason, const struct packet *packet)
{
	__u32 index = reason;
	struct counter *counter = bpf_map_lookup_elem(&counters, &index);

	if (!counter)
		return;
	counter->packets += packet->segments;
	counter->bytes += packet->bytes;
}

/* What was refused in a dry run, by each of the reasons (bits 1 << enum reason). */
SLUICE_INLINE void count_would(__u32 reasons, const struct packet *packet)
{
	for (__u32 reason = REASON_FIRST_REFUSAL; reason <= REASON_LAST_REFUSAL; reason++) {
		__u32 index = reason;
		struct counter *counter;

		if (!(reasons & 1u << reason))
			continue;
		counter = bpf_map_lookup_elem(&counters, &index);
		if (!counter)
			return;
		counter->would_packets += packet->segments;
		counter->would_bytes += packet->bytes;
	}
}

SLUICE_INLINE void count_interface(__u32 ifindex, const struct packet *packet, bool refused)
{
	__u32 index = ifindex % INTERFACE_COUNTERS;
	struct interface_counter *counter = bpf_map_lookup_elem(&interface_counters, &index);

	if (!counter)
		return;
	if (refused) {
		counter->refused_packets += packet->segments;
		counter->refused_bytes += packet->bytes;
	} else {
		counter->passed_packets += packet->segments;
		counter->passed_bytes += packet->bytes;
	}
}

/* Start the CPU's account anew each second, so that what is allowed in one is not saved up. */
SLUICE_INLINE struct report_state *report_account(__u64 coarse_ns)
{
	__u32 only = 0;
	struct report_state *state = bpf_map_lookup_elem(&report_state, &only);

	if (state && state->second != coarse_ns >> 30) {
		state->second = coarse_ns >> 30;
		state->events = 0;
		state->offenders = 0;
	}
	return state;
}

/* How many refusals this one stands for in `offenders`; 0: it is not noted. */
SLUICE_INLINE __u32 offender_weight(struct report_state *state)
{
	if (state->offenders < OFFENDERS_EXACT_PER_S) {
		state->offenders++;
		return 1;
	}
	if (state->gap) {
		state->gap--;
		return 0;
	}
	/* Gaps of random length: no pattern in the traffic falls in step with them. */
	state->gap = bpf_get_prandom_u32() % (2 * OFFENDERS_SAMPLE - 1);
	return OFFENDERS_SAMPLE;
}

/* One that only the node refused has done nothing wrong, and may well be invented: it is noted if it
 * is known, but does not push out one that is. */
SLUICE_INLINE void note_offender(const union address *key, const struct packet *packet,
				 enum reason reason, __u64 coarse_ns, __u32 weight)
{
	struct offender *offender = bpf_map_lookup_elem(&offenders, key);
	struct offender fresh = {
		.packets = (__u64)packet->segments * weight,
		.bytes = (__u64)packet->bytes * weight,
		.first_seen_ns = coarse_ns,
		.last_seen_ns = coarse_ns,
		.last_reason = reason,
	};

	if (offender) {
		__sync_fetch_and_add(&offender->packets, fresh.packets);
		__sync_fetch_and_add(&offender->bytes, fresh.bytes);
		offender->last_seen_ns = coarse_ns;
		offender->last_reason = reason;
		return;
	}
	if (reason >= REASON_NODE_CONNECTIONS)
		return;
	if (bpf_map_update_elem(&offenders, key, &fresh, BPF_ANY))
		note_add(NOTE_OFFENDER_LOST, 1);
}

/* The packet's first bytes, from the IP header on, in steps that the verifier can follow. */
SLUICE_INLINE __u16 copy_header(struct event *event, const void *data, const void *data_end,
				const struct packet *packet)
{
	const __u8 *from = (const __u8 *)data + (packet->ip_offset & 63);
	__u16 copied = 0;

	for (; copied < EVENT_HEADER_BYTES; copied += 4) {
		if (from + copied + 4 > (const __u8 *)data_end)
			break;
		__builtin_memcpy(event->header + copied, from + copied, 4);
	}
	return copied;
}

SLUICE_INLINE void write_event(const void *data, const void *data_end, const struct packet *packet,
			       enum reason reason, __u32 ifindex, bool dry_run)
{
	struct event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event) {
		note_add(NOTE_EVENT_LOST, 1);
		return;
	}
	__builtin_memset(event, 0, sizeof(*event));
	event->time_ns = clock_coarse_ns();
	event->source = packet->source;
	event->destination = packet->destination;
	event->ifindex = ifindex;
	event->reason = reason;
	event->bytes = packet->bytes;
	event->source_port = packet->source_port;
	event->destination_port = packet->destination_port;
	event->protocol = packet->protocol;
	event->dry_run = dry_run;
	event->header_bytes = copy_header(event, data, data_end, packet);
	bpf_ringbuf_submit(event, 0);
}

struct refusal {
	enum reason reason;
	__u32 ifindex;
	__u32 ipv6_prefix;
	__u64 coarse_ns;
	bool dry_run;
};

SLUICE_INLINE void report_refusal(const void *data, const void *data_end,
				  const struct packet *packet, const struct refusal *refusal)
{
	struct report_state *state = report_account(refusal->coarse_ns);
	__u32 weight;

	if (!state)
		return;
	weight = offender_weight(state);
	if (weight) {
		union address key = address_key(&packet->source, refusal->ipv6_prefix);

		note_offender(&key, packet, refusal->reason, refusal->coarse_ns, weight);
	}
	if (state->events < EVENTS_PER_S) {
		state->events++;
		write_event(data, data_end, packet, refusal->reason, refusal->ifindex,
			    refusal->dry_run);
	} else {
		state->sampled_out++;
	}
}

#endif
