/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The reference: one caller at a time, in the order of the clock, in arithmetic that cannot round
 * or overflow. Written without a look at sluice/gcra.h, so that the two do not share a mistake.
 * Logs of admissions are merged by their clocks and run through it; what it would not have admitted
 * is excess.
 */
#ifndef SLUICE_REPLAY_H
#define SLUICE_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/bpf/probe.h"

/* tokens in each period_ns, and burst at once. slack_ns is how far a date may be wrong. */
struct reference {
	uint64_t tokens;
	uint64_t period_ns;
	uint64_t burst;
	uint64_t slack_ns;
	unsigned __int128 full_at; /* times tokens: when all of the burst is there again */
};

static inline bool reference_admits(struct reference *reference, uint64_t now_ns, uint64_t tokens)
{
	unsigned __int128 now = (unsigned __int128)now_ns * reference->tokens;
	unsigned __int128 from = reference->full_at > now ? reference->full_at : now;
	unsigned __int128 full_at = from + (unsigned __int128)tokens * reference->period_ns;
	unsigned __int128 latest = now +
				   (unsigned __int128)reference->burst * reference->period_ns +
				   (unsigned __int128)reference->slack_ns * reference->tokens;

	if (full_at > latest)
		return false;
	reference->full_at = full_at;
	return true;
}

struct admission_log {
	const struct admission *admissions; /* in the order of their clocks */
	size_t count;
};

struct replayed {
	uint64_t admissions;
	uint64_t excess;
	uint64_t backwards;    /* dates within one log that go back: no log at all */
	uint64_t first_excess; /* its number in the order of the clocks, from 1 */
};

/* Replay logs together; references[] are by the admissions' key. The logs are used up. */
static inline struct replayed replay(struct admission_log *logs, size_t log_count,
				     struct reference *references)
{
	struct replayed result = { 0 };
	uint64_t last[PROBE_PARTS] = { 0 };

	for (;;) {
		struct admission_log *next = NULL;
		const struct admission *admission;

		for (size_t i = 0; i < log_count; i++)
			if (logs[i].count &&
			    (!next || logs[i].admissions->now_ns < next->admissions->now_ns))
				next = &logs[i];
		if (!next)
			return result;
		admission = next->admissions++;
		next->count--;
		result.admissions++;
		result.backwards += admission->now_ns < last[next - logs];
		last[next - logs] = admission->now_ns;
		if (reference_admits(&references[admission->key], admission->now_ns,
				     admission->tokens))
			continue;
		if (!result.excess++)
			result.first_excess = result.admissions;
	}
}

#endif
