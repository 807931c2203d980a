/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What test_gcra_probe.c asks of gcra_probe.bpf.c, and what that answers: one charge. */
#ifndef SLUICE_TESTS_GCRA_PROBE_H
#define SLUICE_TESTS_GCRA_PROBE_H

#include <sluice/gcra.h>

struct gcra_probe {
	/* Asked. */
	struct gcra_limit limit;
	__u64 tat;
	__u64 now_ns; /* for now_ticks only */
	__u64 now;    /* in ticks, for the rest */
	__u64 tokens;
	/* Answered. */
	__u64 verdict_tat;
	__u64 wait_ticks;
	__u64 wait_ns;
	__u64 now_ticks;
	__u64 cost;
	__u64 debt;
	__u64 remaining;
	__u32 admitted;
	__u32 clamped;
	__u32 is_beyond;
	__u32 has_passed;
};

#endif
