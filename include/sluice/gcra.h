/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The generic cell rate algorithm (ITU-T I.371, virtual scheduling form), as pure arithmetic.
 *
 * A bucket is one number, its theoretical arrival time (TAT): the instant at which it will be full
 * again. A charge moves the TAT ahead by what it costs; it is refused if the TAT would then be
 * further ahead of now than the capacity. Nothing here reads a clock, allocates or loops, so the
 * same lines are compiled by gcc and by clang -target bpf, and tests/vectors/gcra.h is run by both.
 *
 * Units. A *tick* is the unit of a TAT. How long it is, is the limit's own matter (tick_shift), so
 * that a limit of ten million a second and one of a single hook a day are both exact: see word.h
 * for how a tick is chosen. Instants wrap; they are compared by signed difference, so a TAT must be
 * less than 2^63 ticks away from now. All functions are safe to call from any number of threads:
 * they touch nothing but their arguments.
 */
#ifndef SLUICE_GCRA_H
#define SLUICE_GCRA_H

#include "types.h"

/* The tick of buckets that own all 64 bits: 1/1024 ns. Signed, it reaches 104 days. */
enum { GCRA_TICK_SHIFT = 10 };

/* The longest capacity such a bucket can have, in ticks: 52 days. */
#define GCRA_CAPACITY_MAX (1ULL << 62)

/* A wait of this length says that the charge can never be admitted. */
#define GCRA_NEVER (~0ULL)

/*
 * What a bucket is held to. Made by limit_build() in user/limit/build.h; read everywhere.
 * interval * burst < 2^63, and capacity <= GCRA_CAPACITY_MAX. capacity 0: there is no limit.
 */
struct gcra_limit {
	__u64 interval; /* ticks per token, times 2^fraction_bits */
	__u64 capacity; /* ticks: burst intervals, rounded up to a whole nanosecond */
	__u64 burst;    /* tokens admitted at once by a full bucket */
	__u8 fraction_bits;
	__u8 word_class; /* for words, which of their ticks it is; see word.h */
	__s8 tick_shift; /* a nanosecond is 2^tick_shift ticks */
	__u8 reserved[5];
};

_Static_assert(sizeof(struct gcra_limit) == 32, "struct gcra_limit is part of the map ABI");

struct gcra_verdict {
	__u64 tat; /* admitted: to be stored. Refused: what stands, or full debt if clamped */
	__u64 wait_ticks; /* refused: what is missing, or GCRA_NEVER. Admitted: 0 */
	bool admitted;
	bool clamped; /* the TAT was further ahead than the capacity allows */
};

/* An instant of the monotonic clock in ticks of 2^tick_shift to the nanosecond. */
SLUICE_INLINE __u64 gcra_ticks(__u64 now_ns, __s8 tick_shift)
{
	return tick_shift >= 0 ? now_ns << tick_shift : now_ns >> -tick_shift;
}

/* A length of time in nanoseconds, rounded up; GCRA_NEVER stays what it is. */
SLUICE_INLINE __u64 gcra_wait_ns(__u64 wait_ticks, __s8 tick_shift)
{
	if (wait_ticks == GCRA_NEVER)
		return GCRA_NEVER;
	if (tick_shift >= 0)
		return (wait_ticks + (1ULL << tick_shift) - 1) >> tick_shift;
	return wait_ticks << -tick_shift;
}

/* What tokens cost, in ticks, to the nearest; GCRA_NEVER for more tokens than the burst. */
SLUICE_INLINE __u64 gcra_cost(const struct gcra_limit *limit, __u64 tokens)
{
	__u64 half = limit->fraction_bits ? 1ULL << (limit->fraction_bits - 1) : 0;

	if (tokens > limit->burst)
		return GCRA_NEVER;
	return (tokens * limit->interval + half) >> limit->fraction_bits;
}

/*
 * How far the bucket is in debt, in ticks: 0 once its TAT has passed. Never more than the
 * capacity: a TAT further ahead than that belongs to a limit that was lowered, to an old pinned
 * map or to a modulo that has wrapped, and counts as full debt.
 */
SLUICE_INLINE __u64 gcra_debt(const struct gcra_limit *limit, __u64 tat, __u64 now)
{
	__s64 ahead = (__s64)(tat - now);

	if (ahead <= 0)
		return 0;
	return (__u64)ahead > limit->capacity ? limit->capacity : (__u64)ahead;
}

/* Whether the TAT is further ahead than the limit allows, and should be brought back. */
SLUICE_INLINE bool gcra_is_beyond(const struct gcra_limit *limit, __u64 tat, __u64 now)
{
	__s64 ahead = (__s64)(tat - now);

	return ahead > 0 && (__u64)ahead > limit->capacity;
}

/* Whether the bucket is full again, which makes it equal to one never seen. */
SLUICE_INLINE bool gcra_has_passed(__u64 tat, __u64 now)
{
	return (__s64)(tat - now) <= 0;
}

/*
 * Charge tokens at now. Exactly at the boundary the charge is admitted, and waiting out wait_ticks
 * is always enough. The caller stores verdict.tat by compare-and-swap if admitted or clamped, and
 * must have read the TAT before it read the clock: then no admission can be dated earlier than one
 * that it builds upon.
 */
SLUICE_INLINE struct gcra_verdict gcra_take(const struct gcra_limit *limit, __u64 tat, __u64 now,
					    __u64 tokens)
{
	struct gcra_verdict verdict = { .tat = tat };
	__u64 debt = gcra_debt(limit, tat, now);
	__u64 cost = gcra_cost(limit, tokens);

	if (gcra_is_beyond(limit, tat, now)) {
		verdict.clamped = true;
		verdict.tat = now + debt;
	}
	if (cost > limit->capacity) {
		verdict.wait_ticks = GCRA_NEVER;
		return verdict;
	}
	if (debt + cost > limit->capacity) {
		verdict.wait_ticks = debt + cost - limit->capacity;
		return verdict;
	}
	verdict.admitted = true;
	verdict.tat = now + debt + cost;
	return verdict;
}

/* How many tokens in one charge would be admitted now. */
SLUICE_INLINE __u64 gcra_remaining(const struct gcra_limit *limit, __u64 tat, __u64 now)
{
	__u64 room = limit->capacity - gcra_debt(limit, tat, now);
	__u64 tokens = (room << limit->fraction_bits) / limit->interval;

	if (tokens > limit->burst)
		tokens = limit->burst;
	if (gcra_cost(limit, tokens) > room)
		tokens--;
	return tokens;
}

#endif
