/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Drives bpf/table.h as it is, real clocks and real compare-and-swap, for test_exactness.c: each
 * run draws one of the plan's keys, charges it in its set, and logs an admission. Run by several
 * threads at once through BPF_PROG_TEST_RUN, with softirqs off as for a packet.
 */
#include <sluice/abi.h>

#include <bpf/bpf_helpers.h>

#include "clock.h"
#include "sweep.h"
#include "table.h"

#include "tests/bpf/probe.h"

struct table_plan plan;
struct probe_tally tally[PROBE_PARTS];

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, PROBE_PARTS *PROBE_PART_ADMISSIONS);
	__type(key, __u32);
	__type(value, struct admission);
} admissions SEC(".maps");

SLUICE_INLINE void log_admission(struct probe_tally *mine, __u32 part,
				 const struct admission *admission)
{
	__u32 index = part * PROBE_PART_ADMISSIONS + (__u32)mine->logged;
	struct admission *slot = bpf_map_lookup_elem(&admissions, &index);

	if (!slot)
		return;
	*slot = *admission;
	mine->logged++;
}

SLUICE_INLINE void count_answer(struct probe_tally *mine, int taken)
{
	switch (taken) {
	case TAKEN_ADMITTED:
		mine->uncharged++;
		break;
	case TAKEN_REFUSED:
		mine->refused++;
		break;
	case TAKEN_SET_FULL:
		mine->set_full++;
		break;
	default:
		mine->tries++;
	}
}

SLUICE_INLINE void ask(struct probe_tally *mine, __u32 part, __u32 number)
{
	__u32 random = bpf_get_prandom_u32();
	struct probe_key *key = &plan.key[number & (PROBE_KEYS - 1)];
	struct bucket_set *set = bpf_map_lookup_elem(&ip_buckets, &key->set);
	struct table_request request = {
		.tokens = key->tokens_max > 1 ? 1 + (random & 0xffff) % key->tokens_max : 1,
		.coarse_ns = plan.fine_coarse ? clock_now_ns() : clock_coarse_ns(),
		.coarse_lag_ns = plan.coarse_lag_ns,
		.tag = key->tag,
		.way = key->way,
		.when_full = plan.when_full,
	};
	__u32 active = *(volatile __u32 *)&plan.active & 1, only = 0;
	struct ip_refusals *refusals = bpf_map_lookup_elem(&ip_refusals, &only);
	struct table_outcome outcome = {};
	int taken;

	if (!set || !refusals)
		return;
	if (random >> 24 < plan.sweeps_of_256)
		mine->swept += sweep_set(set, request.coarse_ns);
	taken = table_take(set, &plan.limit[active][number & (PROBE_KEYS - 1)], &request, &outcome,
			   &refusals->of[key->tag & (REFUSALS_KEPT - 1)]);
	if (taken != TAKEN_ADMITTED || outcome.notes & 1u << NOTE_SET_FULL_ADMITTED)
		count_answer(mine, taken);
	else
		log_admission(mine, part,
			      &(struct admission){ outcome.now_ns, number, (__u32)request.tokens });
}

SEC("xdp")
int table_probe(struct xdp_md *context)
{
	const __u8 *data = (const __u8 *)(long)context->data;
	__u32 keys = plan.keys, part;

	if (data + 1 > (const __u8 *)(long)context->data_end || !keys)
		return XDP_ABORTED;
	part = *data & (PROBE_PARTS - 1);
	/* Full: charge nothing more, for what is charged must be in the log. */
	if (tally[part].logged >= PROBE_PART_ADMISSIONS)
		return XDP_DROP;
	tally[part].asked++;
	ask(&tally[part], part, bpf_get_prandom_u32() % keys);
	return XDP_PASS;
}

char probe_license[] SEC("license") = "Dual BSD/GPL";
