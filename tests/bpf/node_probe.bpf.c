/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Drives police_node() of bpf/police.h as it is, slices and all, for test_node_slices.c: each run
 * charges the node for one packet and logs an admission with the clocks before and after it, since
 * a token that is spent from a slice has no date of its own.
 */
#include <sluice/abi.h>

#include <bpf/bpf_helpers.h>

#include "clock.h"
#include "police.h"
#include "sweep.h"

#include "tests/bpf/probe.h"

struct node_plan plan;
struct probe_tally tally[PROBE_PARTS];

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, PROBE_PARTS *PROBE_PART_ADMISSIONS);
	__type(key, __u32);
	__type(value, struct admission);
} admissions SEC(".maps");

SLUICE_INLINE void log_admission(struct probe_tally *mine, __u32 part, __u64 before_ns,
				 __u64 after_ns, __u32 bytes)
{
	__u32 index = part * PROBE_PART_ADMISSIONS + (__u32)mine->logged;
	struct admission *slot = bpf_map_lookup_elem(&admissions, &index);

	if (!slot)
		return;
	slot->now_ns = before_ns;
	slot->key = after_ns - before_ns > 0xffffffff ? 0xffffffff : after_ns - before_ns;
	slot->tokens = bytes;
	mine->logged++;
}

SLUICE_INLINE void ask(struct probe_tally *mine, __u32 part)
{
	__u32 random = bpf_get_prandom_u32(), active = plan.active & 1;
	__u32 bytes = plan.bytes_max > 1 ? 1 + random % plan.bytes_max : 1;
	__u64 before_ns;
	enum reason reason;
	struct charge charge = {
		.tokens = { [METER_PACKETS] = 1, [METER_BYTES] = bytes },
		.coarse_ns = clock_coarse_ns(),
		.coarse_lag_ns = plan.coarse_lag_ns,
	};

	if (random >> 24 < plan.sweeps_of_256)
		sweep_node(charge.coarse_ns);
	before_ns = clock_now_ns();
	reason = police_node(&plan.slot[active], &charge);
	if (charge.notes & 1u << NOTE_NODE_TRIES)
		mine->tries++;
	else if (reason != REASON_ADMITTED)
		mine->refused++;
	else
		log_admission(mine, part, before_ns, clock_now_ns(), bytes);
	if (charge.notes & 1u << NOTE_SPENT_IN_VAIN)
		mine->spent_in_vain++;
}

SEC("xdp")
int node_probe(struct xdp_md *context)
{
	const __u8 *data = (const __u8 *)(long)context->data;
	__u32 part;

	if (data + 1 > (const __u8 *)(long)context->data_end)
		return XDP_ABORTED;
	part = *data & (PROBE_PARTS - 1);
	/* Full: charge nothing more, for what is charged must be in the log. */
	if (tally[part].logged >= PROBE_PART_ADMISSIONS)
		return XDP_DROP;
	tally[part].asked++;
	ask(&tally[part], part);
	return XDP_PASS;
}

char probe_license[] SEC("license") = "Dual BSD/GPL";
