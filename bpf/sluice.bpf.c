/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The programs. XDP is an adapter of a few lines around the stages: parse (packet.h), classify
 * (classify.h), police (police.h), report (report.h). Stages know reasons; only here a reason becomes
 * an XDP action.
 */
#include <sluice/abi.h>

#include <bpf/bpf_helpers.h>

#include "classify.h"
#include "clock.h"
#include "maps.h"
#include "packet.h"
#include "police.h"
#include "report.h"
#include "sweep.h"

/* What is known of a packet when its verdict is. */
struct judgement {
	__u32 reason; /* enum reason */
	__u32 ipv6_prefix;
	__u64 coarse_ns;
	__u32 dry_run; /* 1: refuse nothing */
	__u32 reserved;
};

/*
 * The stages are functions of their own for the verifier's sake: it looks at each once and forgets
 * how it came to the result, where inlined stages multiply their paths (a million instructions with
 * clang 14, and refused).
 */
__attribute__((noinline)) int xdp_parse(struct xdp_md *context, __u32 frame_bytes,
					struct packet *packet);
__attribute__((noinline)) int judge(const struct packet *packet, struct judgement *judgement);
__attribute__((noinline)) int xdp_report(struct xdp_md *context, const struct packet *packet,
					 const struct judgement *judgement);

__attribute__((noinline)) int xdp_parse(struct xdp_md *context, __u32 frame_bytes,
					struct packet *packet)
{
	if (!packet)
		return PARSED_NOT;
	return packet_parse((const void *)(long)context->data,
			    (const void *)(long)context->data_end, frame_bytes, packet);
}

SLUICE_INLINE enum reason police(const struct config *all, const struct config_slot *slot,
				 const struct gcra_limit *limits, const struct packet *packet,
				 struct judgement *judgement)
{
	union address key = address_key(&packet->source, slot->ipv6_prefix);
	struct place place = key_place(&all->secret, &key, IP_SETS - 1);
	struct bucket_set *set = limits ? bpf_map_lookup_elem(&ip_buckets, &place.set) : 0;
	enum reason reason = REASON_ADMITTED;
	struct charge charge;

	/* Begin to fetch the set's line before the clock is read, so that one waits for the other. */
	if (set)
		(void)table_read(set, 0);
	charge = charge_of(packet, all->coarse_lag_ns);
	judgement->coarse_ns = charge.coarse_ns;
	if (set)
		reason = police_address(slot, limits, &charge, set, &place);
	if (reason == REASON_ADMITTED && slot->flags & CONFIG_LIMITS_NODE)
		reason = police_node(slot, &charge);
	notes_add(charge.notes);
	return reason;
}

/* Decide about a packet that was read, charge it, and say why. */
__attribute__((noinline)) int judge(const struct packet *packet, struct judgement *judgement)
{
	const struct config *all = config_read();
	const struct config_slot *slot;
	const struct gcra_limit *limits;
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
	reason = classify(slot, active, packet, &limits);
	if (reason == REASON_ADMITTED)
		reason = police(all, slot, limits, packet, judgement);
	judgement->reason = reason;
	return 0;
}

__attribute__((noinline)) int xdp_report(struct xdp_md *context, const struct packet *packet,
					 const struct judgement *judgement)
{
	if (!packet || !judgement)
		return 0;
	report_refusal((const void *)(long)context->data, (const void *)(long)context->data_end,
		       packet, &(struct refusal){
				       .reason = judgement->reason,
				       .ifindex = context->ingress_ifindex,
				       .ipv6_prefix = judgement->ipv6_prefix,
				       .coarse_ns = judgement->coarse_ns ? judgement->coarse_ns :
									   clock_coarse_ns(),
				       .dry_run = judgement->dry_run,
			       });
	return 0;
}

/* frame_bytes: all of the frame, also what is not linear. */
SLUICE_INLINE int handle(struct xdp_md *context, __u32 frame_bytes)
{
	struct packet packet = {};
	struct judgement judgement = {};
	int parsed = xdp_parse(context, frame_bytes, &packet);

	if (parsed != PARSED_IP) {
		count(parsed == PARSED_OTHER ? REASON_NOT_IP : REASON_UNPARSED, packet.bytes, false);
		return XDP_PASS;
	}
	judge(&packet, &judgement);
	if (!reason_is_refusal(judgement.reason)) {
		count(judgement.reason, packet.bytes, false);
		return XDP_PASS;
	}
	count(judgement.reason, packet.bytes, judgement.dry_run);
	xdp_report(context, &packet, &judgement);
	return judgement.dry_run ? XDP_PASS : XDP_DROP;
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

/* Run once by whoever loads the programs. */
SEC("syscall")
int sluice_arm(void *context)
{
	(void)context;
	return sweep_arm();
}

char sluice_license[] SEC("license") = "Dual BSD/GPL";
