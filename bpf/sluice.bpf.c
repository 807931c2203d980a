/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The programs. XDP and TC are adapters of a few lines around the stages: parse (packet.h), classify
 * (classify.h), police (police.h, shed.h), report (report.h). Stages know reasons; only here a reason
 * becomes an action.
 */
#include <sluice/abi.h>

#include <bpf/bpf_helpers.h>

#include "classify.h"
#include "clock.h"
#include "maps.h"
#include "packet.h"
#include "police.h"
#include "report.h"
#include "segments.h"
#include "shed.h"
#include "sweep.h"

enum {
	PULL_BYTES_FEW = 64, /* of what does not lie in the linear part */
	PULL_BYTES = 16384,  /* near all headers that are walked */
	TC_ACT_UNSPEC = -1,
	TC_ACT_SHOT = 2,
};

/*
 * What is known of a packet when its verdict is. The account of what it is charged lies here, and not
 * in judge(), for the verifier's sake: what is behind a pointer that a function was given it does not
 * follow, where it tells every set of bits on the stack from every other (on kernel 6.1, a million
 * instructions, and refused).
 */
struct judgement {
	__u32 reason; /* enum reason */
	__u32 ipv6_prefix;
	__u32 dry_run; /* 1: refuse nothing */
	__u32 reserved;
	struct charge charge; /* zero if nothing was asked of it */
};

/*
 * The stages are functions of their own for the verifier's sake: it looks at each once and forgets
 * how it came to the result, where inlined stages multiply their paths (a million instructions with
 * clang 14, and refused).
 */
__attribute__((noinline)) int xdp_parse(struct xdp_md *context, __u32 frame_bytes,
					struct packet *packet);
__attribute__((noinline)) int tc_parse(struct __sk_buff *context, struct packet *packet);
__attribute__((noinline)) int judge(const struct packet *packet, struct judgement *judgement);
__attribute__((noinline)) int xdp_report(struct xdp_md *context, const struct packet *packet,
					 const struct judgement *judgement);
__attribute__((noinline)) int tc_report(struct __sk_buff *context, const struct packet *packet,
					const struct judgement *judgement);

__attribute__((noinline)) int xdp_parse(struct xdp_md *context, __u32 frame_bytes,
					struct packet *packet)
{
	if (!packet)
		return PARSED_NOT;
	packet->segments = 1;
	return packet_parse((const void *)(long)context->data,
			    (const void *)(long)context->data_end, frame_bytes, packet);
}

__attribute__((noinline)) int tc_parse(struct __sk_buff *context, struct packet *packet)
{
	if (!packet)
		return PARSED_NOT;
	packet->segments = 1;
	return packet_parse((const void *)(long)context->data,
			    (const void *)(long)context->data_end, context->len, packet);
}

SLUICE_INLINE enum reason police(const struct config *all, const struct config_slot *slot,
				 const struct held_to *held, const struct packet *packet,
				 struct judgement *judgement)
{
	struct charge *charge = &judgement->charge;
	enum reason reason = REASON_ADMITTED;
	struct bucket_set *set = 0;
	struct place place = {};

	if (held->limits) {
		union address key = address_key(&packet->source, slot->ipv6_prefix);

		place = key_place(&all->secret, &key, IP_SETS - 1);
		set = bpf_map_lookup_elem(&ip_buckets, &place.set);
		/* Begin to fetch the set's line before the clock is read, so that one waits for the
		 * other. */
		if (set)
			(void)table_read(set, 0);
	}
	*charge = charge_of(packet, all->coarse_lag_ns);
	if (set)
		reason = police_address(slot, held, charge, set, &place);
	if (reason == REASON_ADMITTED && slot->flags & CONFIG_SHED &&
	    packet->flags & PACKET_CONNECTION)
		reason = shed(slot, packet, charge);
	if (reason == REASON_ADMITTED && slot->flags & CONFIG_LIMITS_NODE)
		reason = police_node(slot, charge);
	notes_add(charge->notes);
	return reason;
}

/* Decide about a packet that was read, charge it, and say why. */
__attribute__((noinline)) int judge(const struct packet *packet, struct judgement *judgement)
{
	const struct config *all = config_read();
	const struct config_slot *slot;
	struct held_to held;
	enum reason reason;
	__u32 active;

	if (!packet || !judgement || !all)
		return 0;
	judgement->reason = REASON_NO_CONFIG;
	slot = config_in_force(all, &active);
	if (!slot)
		return 0;
	judgement->ipv6_prefix = slot->ipv6_prefix;
	judgement->dry_run = slot->flags & CONFIG_DRY_RUN ? 1 : 0;
	reason = classify(slot, active, packet, &held);
	if (reason == REASON_ADMITTED)
		reason = police(all, slot, &held, packet, judgement);
	judgement->reason = reason;
	return 0;
}

/* What is told of a verdict: the one that counts, or the first that would have. */
SLUICE_INLINE struct refusal refusal_of(const struct judgement *judgement, __u32 ifindex)
{
	const struct charge *charge = &judgement->charge;
	struct refusal refusal = {
		.reason = judgement->reason,
		.ifindex = ifindex,
		.ipv6_prefix = judgement->ipv6_prefix,
		.coarse_ns = charge->coarse_ns ? charge->coarse_ns : clock_coarse_ns(),
		.dry_run = judgement->dry_run || !reason_is_refusal(judgement->reason),
	};

	if (reason_is_refusal(judgement->reason))
		return refusal;
	for (__u32 reason = REASON_FIRST_REFUSAL; reason <= REASON_LAST_REFUSAL; reason++)
		if (charge->would & 1u << reason) {
			refusal.reason = reason;
			break;
		}
	return refusal;
}

__attribute__((noinline)) int xdp_report(struct xdp_md *context, const struct packet *packet,
					 const struct judgement *judgement)
{
	struct refusal refusal;

	if (!packet || !judgement)
		return 0;
	refusal = refusal_of(judgement, context->ingress_ifindex);
	report_refusal((const void *)(long)context->data, (const void *)(long)context->data_end,
		       packet, &refusal);
	return 0;
}

__attribute__((noinline)) int tc_report(struct __sk_buff *context, const struct packet *packet,
					const struct judgement *judgement)
{
	struct refusal refusal;

	if (!packet || !judgement)
		return 0;
	refusal = refusal_of(judgement, context->ifindex);
	report_refusal((const void *)(long)context->data, (const void *)(long)context->data_end,
		       packet, &refusal);
	return 0;
}

/* Count the verdict. true: the packet is refused. *tell: more than counters is to be told of it. */
SLUICE_INLINE bool settle(int parsed, const struct packet *packet,
			  const struct judgement *judgement, __u32 ifindex, bool *tell)
{
	__u32 reason = judgement->reason, would = judgement->charge.would;
	bool refused;

	*tell = false;
	if (parsed != PARSED_IP)
		reason = parsed == PARSED_OTHER ? REASON_NOT_IP : REASON_UNPARSED;
	refused = reason_is_refusal(reason);
	if (refused && judgement->dry_run)
		count_would(would | 1u << reason, packet);
	else
		count(reason, packet);
	if (would && !(refused && judgement->dry_run))
		count_would(would, packet);
	*tell = refused || would;
	refused = refused && !judgement->dry_run;
	count_interface(ifindex, packet, refused);
	return refused;
}

/* frame_bytes: all of the frame, also what is not linear. */
SLUICE_INLINE int handle(struct xdp_md *context, __u32 frame_bytes)
{
	struct packet packet = {};
	struct judgement judgement = {};
	int parsed = xdp_parse(context, frame_bytes, &packet);
	bool refused, tell;

	if (parsed == PARSED_IP)
		judge(&packet, &judgement);
	refused = settle(parsed, &packet, &judgement, context->ingress_ifindex, &tell);
	if (tell)
		xdp_report(context, &packet, &judgement);
	return refused ? XDP_DROP : XDP_PASS;
}

SEC("xdp")
int sluice_xdp(struct xdp_md *context)
{
	return handle(context, context->data_end - context->data);
}

/* For frames in several buffers (jumbo frames); kernel 5.18. */
SEC("xdp.frags")
int sluice_frags(struct xdp_md *context)
{
	return handle(context, bpf_xdp_get_buff_len(context));
}

/* Under tcx and under clsact alike, who does not refuse lets the next one judge. */
SEC("tc")
int sluice_tc(struct __sk_buff *context)
{
	struct packet packet = {};
	struct judgement judgement = {};
	int parsed = tc_parse(context, &packet);
	bool refused, tell;

	/* Drivers leave what they like in fragments, the headers too. Of most only the first bytes
	 * behind UDP's are missed. */
	if (packet.flags & PACKET_NOT_LINEAR) {
		__u32 wanted = packet.at + PULL_BYTES_FEW;

		if (parsed != PARSED_IP || packet.flags & PACKET_PORTLESS)
			wanted = PULL_BYTES;
		if (!bpf_skb_pull_data(context, context->len < wanted ? context->len : wanted)) {
			__builtin_memset(&packet, 0, sizeof(packet));
			parsed = tc_parse(context, &packet);
		}
	}
	if (parsed == PARSED_IP) {
		segments_count(&packet, context->gso_size, context->gso_segs);
		judge(&packet, &judgement);
	}
	refused = settle(parsed, &packet, &judgement, context->ifindex, &tell);
	if (tell)
		tc_report(context, &packet, &judgement);
	return refused ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}

/* Run once by whoever loads the programs. */
SEC("syscall")
int sluice_arm(void *context)
{
	(void)context;
	return sweep_arm();
}

char sluice_license[] SEC("license") = "Dual BSD/GPL";
