/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* include/sluice/gcra.h as the programs have it: built by clang for BPF, passed by the verifier. */
#include "tests/bpf/gcra_probe.h"

#include <bpf/bpf_helpers.h>

SEC("syscall")
int gcra_probe(struct gcra_probe *probe)
{
	struct gcra_limit limit = probe->limit;
	__u64 tat = probe->tat, now = probe->now;
	struct gcra_verdict verdict = gcra_take(&limit, tat, now, probe->tokens);

	probe->verdict_tat = verdict.tat;
	probe->wait_ticks = verdict.wait_ticks;
	probe->wait_ns = gcra_wait_ns(verdict.wait_ticks, limit.tick_shift);
	probe->now_ticks = gcra_ticks(probe->now_ns, limit.tick_shift);
	probe->cost = gcra_cost(&limit, probe->tokens);
	probe->debt = gcra_debt(&limit, tat, now);
	probe->remaining = gcra_remaining(&limit, tat, now);
	probe->admitted = verdict.admitted;
	probe->clamped = verdict.clamped;
	probe->is_beyond = gcra_is_beyond(&limit, tat, now);
	probe->has_passed = gcra_has_passed(tat, now);
	return 0;
}

char gcra_probe_license[] SEC("license") = "Dual BSD/GPL";
