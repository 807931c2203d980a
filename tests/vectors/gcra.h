/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a bucket must answer. Run by tests/unit/test_gcra.c, compiled by gcc, and by
 * tests/bpf/test_gcra_probe.c, compiled by clang and passed by the verifier: the two builds of
 * include/sluice/gcra.h cannot drift apart.
 *
 * gcra_rows are timetables of limits as an operator writes them: what is admitted when, and what a
 * client is told otherwise. gcra_cases are single charges of limits written in ticks, at the edges
 * of the arithmetic.
 */
#ifndef SLUICE_VECTORS_GCRA_H
#define SLUICE_VECTORS_GCRA_H

#include <sluice/gcra.h>

/* `times` charges of one token at one instant, all with the same answer. */
struct gcra_step {
	__u64 at_ns;
	__u32 times; /* 0: the timetable ends here */
	bool admitted;
	__u64 retry_after_ms; /* rounded up, at least 1; 0 if admitted */
	__u64 retry_after_s;  /* as in a Retry-After header: rounded up again */
};

enum { GCRA_STEPS_MAX = 8 };

/* The bucket owns its 64 bits (BUCKET_WHOLE), and was never charged before the first step. */
struct gcra_row {
	const char *name;
	double rate;
	__u64 burst;
	struct gcra_step step[GCRA_STEPS_MAX];
};

#define GCRA_MS 1000000ULL

/* clang-format off */
#define ADMIT(at_ns, times) { at_ns, times, true, 0, 0 }
#define DENY(at_ns, milliseconds, seconds) { at_ns, 1, false, milliseconds, seconds }

static const struct gcra_row gcra_rows[] = {
	{ "G1: two at once, then a thousand seconds", 0.001, 2,
	  { ADMIT(0, 2), DENY(0, 1000000, 1000) } },
	{ "G2: the header is rounded up", 0.001, 2,
	  { ADMIT(0, 2), DENY(0, 1000000, 1000), DENY(1 * GCRA_MS, 999999, 1000) } },
	{ "G3: a nanosecond early is early", 0.001, 2,
	  { ADMIT(0, 2), DENY(1000000 * GCRA_MS - 1, 1, 1) } },
	{ "G4: the boundary admits", 0.001, 2,
	  { ADMIT(0, 2), DENY(1000000 * GCRA_MS - 1, 1, 1), ADMIT(1000000 * GCRA_MS, 1),
	    DENY(1000000 * GCRA_MS, 1000000, 1000) } },
	{ "G5: rate 2, burst 1", 2, 1,
	  { ADMIT(0, 1), DENY(0, 500, 1), ADMIT(500 * GCRA_MS, 1), DENY(500 * GCRA_MS, 500, 1) } },
	{ "G6: rate 0.5, burst 1", 0.5, 1,
	  { ADMIT(0, 1), DENY(1 * GCRA_MS, 1999, 2), DENY(2000 * GCRA_MS - 1, 1, 1),
	    ADMIT(2000 * GCRA_MS, 1) } },
	{ "G7: rate 3, whose interval is no whole number of nanoseconds", 3, 1,
	  { ADMIT(0, 1), DENY(0, 334, 1), DENY(333333332, 1, 1), ADMIT(333333333, 1) } },
	{ "G8: rate 5, burst 10", 5, 10,
	  { ADMIT(0, 10), DENY(0, 200, 1), ADMIT(200 * GCRA_MS, 1), DENY(200 * GCRA_MS, 200, 1),
	    ADMIT(400 * GCRA_MS, 1) } },
	{ "G9: rate 1000, burst 1", 1000, 1,
	  { ADMIT(0, 1), DENY(0, 1, 1), DENY(999999, 1, 1), ADMIT(1 * GCRA_MS, 1) } },
	{ "G10: of two hundred at once, fifty", 0.001, 50,
	  { ADMIT(0, 50), { 0, 150, false, 1000000, 1000 } } },
	{ "G11: refusals write nothing, and waits shrink", 1, 1,
	  { ADMIT(0, 1), DENY(0, 1000, 1), DENY(250 * GCRA_MS, 750, 1), DENY(500 * GCRA_MS, 500, 1),
	    DENY(999 * GCRA_MS, 1, 1), ADMIT(1000 * GCRA_MS, 1), DENY(1000 * GCRA_MS, 1000, 1) } },
	{ "G12: after a long rest the bucket is as never seen", 5, 10,
	  { ADMIT(0, 10), DENY(0, 200, 1), ADMIT(3600000 * GCRA_MS, 10),
	    DENY(3600000 * GCRA_MS, 200, 1) } },
	{ "a rest of exactly the capacity fills the bucket", 5, 10,
	  { ADMIT(0, 10), ADMIT(2000 * GCRA_MS, 10), DENY(2000 * GCRA_MS, 200, 1) } },
	{ "a rest of a nanosecond less does not", 5, 10,
	  { ADMIT(0, 10), ADMIT(2000 * GCRA_MS - 1, 9), DENY(2000 * GCRA_MS - 1, 1, 1) } },
	{ "one a day", 1 / 86400., 1,
	  { ADMIT(0, 1), DENY(0, 86400000, 86400), DENY(86399999 * GCRA_MS, 1, 1),
	    ADMIT(86400000 * GCRA_MS, 1) } },
	{ "ten million a second", 1e7, 1000,
	  { ADMIT(0, 1000), DENY(0, 1, 1), DENY(99, 1, 1), ADMIT(100, 1), DENY(100, 1, 1),
	    ADMIT(200, 1) } },
	{ "a hundred million a second", 1e8, 1,
	  { ADMIT(0, 1), DENY(9, 1, 1), ADMIT(10, 1), DENY(19, 1, 1), ADMIT(20, 1) } },
	{ "a wait of a millisecond and a nanosecond is two", 1e9 / 1000001, 1,
	  { ADMIT(0, 1), DENY(0, 2, 1), DENY(1, 1, 1), ADMIT(1000001, 1) } },
	{ "a clock that goes back a little owes the difference", 1000, 2,
	  { ADMIT(10 * GCRA_MS, 1), DENY(9500000, 1, 1), ADMIT(10 * GCRA_MS, 1),
	    DENY(10 * GCRA_MS, 1, 1), ADMIT(11 * GCRA_MS, 1) } },
};
/* clang-format on */

/* One charge, and everything that can be asked of the bucket at that instant. */
struct gcra_case {
	const char *name;
	struct gcra_limit limit;
	__u64 tat;
	__u64 now;
	__u64 tokens;
	struct gcra_verdict verdict;
	__u64 remaining;
	__u64 wait_ns; /* of the verdict's wait; 0 if admitted */
};

/* clang-format off */
#define GCRA_TICKS(interval_, burst_) \
	{ .interval = (interval_), .burst = (burst_), .capacity = (interval_) * (burst_) }
/* The same with the interval in parts of a tick. */
#define GCRA_PARTS(interval_, burst_, bits)                                                   \
	{ .interval = (interval_), .burst = (burst_), .fraction_bits = (bits),                \
	  .capacity = ((interval_) * (burst_) + (1ULL << (bits)) - 1) >> (bits) }
#define CASE_ADMITTED(tat_) { .tat = (tat_), .admitted = true }
#define CASE_REFUSED(tat_, wait) { .tat = (tat_), .wait_ticks = (wait) }
#define CASE_CLAMPED(tat_, wait) { .tat = (tat_), .wait_ticks = (wait), .clamped = true }
#define MAX GCRA_CAPACITY_MAX
#define SHIFTED(shift) { .interval = 100, .burst = 10, .capacity = 1000, .tick_shift = (shift) }

static const struct gcra_case gcra_cases[] = {
	{ "passed, long ago",
	  GCRA_TICKS(100ULL, 10), 5, 1000000, 1, CASE_ADMITTED(1000100), 10, 0 },
	{ "passed, this very tick", GCRA_TICKS(100ULL, 10), 1000, 1000, 1, CASE_ADMITTED(1100), 10,
	  0 },
	{ "in debt, with room", GCRA_TICKS(100ULL, 10), 1500, 1000, 5, CASE_ADMITTED(2000), 5, 0 },
	{ "exactly the capacity",
	  GCRA_TICKS(100ULL, 10), 1900, 1000, 1, CASE_ADMITTED(2000), 1, 0 },
	{ "a tick beyond the capacity", GCRA_TICKS(100ULL, 10), 1901, 1000, 1,
	  CASE_REFUSED(1901, 1), 0, 1 },
	{ "full debt", GCRA_TICKS(100ULL, 10), 2000, 1000, 1, CASE_REFUSED(2000, 100), 0, 100 },
	{ "no tokens, full debt",
	  GCRA_TICKS(100ULL, 10), 2000, 1000, 0, CASE_ADMITTED(2000), 0, 0 },
	{ "the whole burst", GCRA_TICKS(100ULL, 10), 0, 1000, 10, CASE_ADMITTED(2000), 10, 0 },
	{ "more than the burst", GCRA_TICKS(100ULL, 10), 0, 1000, 11, CASE_REFUSED(0, GCRA_NEVER),
	  10, GCRA_NEVER },
	{ "more tokens than could be multiplied", GCRA_TICKS(100ULL, 10), 0, 1000, ~0ULL,
	  CASE_REFUSED(0, GCRA_NEVER), 10, GCRA_NEVER },
	{ "a tick beyond full debt is clamped", GCRA_TICKS(100ULL, 10), 2001, 1000, 1,
	  CASE_CLAMPED(2000, 100), 0, 100 },
	{ "as far ahead as can be told is clamped", GCRA_TICKS(100ULL, 10), 1000 + ~0ULL / 2, 1000,
	  1, CASE_CLAMPED(2000, 100), 0, 100 },
	{ "a tick further has passed", GCRA_TICKS(100ULL, 10), 1001 + ~0ULL / 2, 1000, 1,
	  CASE_ADMITTED(1100), 10, 0 },
	{ "clamped and never admitted", GCRA_TICKS(100ULL, 10), 9000, 1000, 11,
	  CASE_CLAMPED(2000, GCRA_NEVER), 0, GCRA_NEVER },
	{ "clamped and nothing asked", GCRA_TICKS(100ULL, 10), 9000, 1000, 0,
	  { .tat = 2000, .admitted = true, .clamped = true }, 0, 0 },
	{ "the TAT wraps", GCRA_TICKS(100ULL, 10), 0, ~0ULL - 49, 1, CASE_ADMITTED(100), 9, 0 },
	{ "now has wrapped and the TAT has not", GCRA_TICKS(100ULL, 10), ~0ULL - 49, 50, 1,
	  CASE_ADMITTED(150), 10, 0 },
	{ "full debt across the wrap", GCRA_TICKS(100ULL, 10), 950, ~0ULL - 49, 1,
	  CASE_REFUSED(950, 100), 0, 100 },
	{ "the longest capacity, at once", GCRA_TICKS(MAX, 1), 0, 1ULL << 40, 1,
	  CASE_ADMITTED(MAX + (1ULL << 40)), 1, 0 },
	{ "the longest capacity, full debt", GCRA_TICKS(MAX, 1), MAX, 0, 1, CASE_REFUSED(MAX, MAX),
	  0, MAX },
	{ "the longest capacity, many tokens", GCRA_TICKS(1ULL, MAX), MAX / 2, 0, MAX / 2,
	  CASE_ADMITTED(MAX), MAX / 2, 0 },
	{ "the longest capacity, one too many", GCRA_TICKS(1ULL, MAX), MAX / 2, 0, MAX / 2 + 1,
	  CASE_REFUSED(MAX / 2, 1), MAX / 2, 1 },
	{ "parts of a tick, rounded down", GCRA_PARTS(21ULL, 100, 4), 0, 1000, 1,
	  CASE_ADMITTED(1001), 100, 0 },
	{ "parts of a tick, half is rounded up", GCRA_PARTS(24ULL, 100, 4), 0, 1000, 1,
	  CASE_ADMITTED(1002), 100, 0 },
	{ "parts of a tick add up",
	  GCRA_PARTS(21ULL, 100, 4), 0, 1000, 16, CASE_ADMITTED(1021), 100, 0 },
	{ "parts of a tick, the whole burst", GCRA_PARTS(21ULL, 100, 4), 0, 1000, 100,
	  CASE_ADMITTED(1131), 100, 0 },
	{ "parts of a tick, what remains would fit", GCRA_PARTS(24ULL, 100, 4), 1149, 1000, 1,
	  CASE_REFUSED(1149, 1), 0, 1 },
	{ "ticks of 1/1024 ns", SHIFTED(10), 2000, 1000, 1, CASE_REFUSED(2000, 100), 0, 1 },
	{ "ticks of 8 ns", SHIFTED(-3), 2000, 1000, 1, CASE_REFUSED(2000, 100), 0, 800 },
	{ "ticks of 512 ns", SHIFTED(-9), 2000, 1000, 1, CASE_REFUSED(2000, 100), 0, 51200 },
};
/* clang-format on */

#undef MAX

/* What a client is told: rounded up, so that waiting that long suffices, and never 0. */
static inline __u64 gcra_retry_after_ms(__u64 wait_ns)
{
	__u64 milliseconds = wait_ns / GCRA_MS + (wait_ns % GCRA_MS != 0);

	return milliseconds ? milliseconds : 1;
}

static inline __u64 gcra_retry_after_s(__u64 milliseconds)
{
	return (milliseconds + 999) / 1000;
}

#endif
