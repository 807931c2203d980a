/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Chooses the tick of a limit and computes its interval in ticks, with 128-bit integers and long
 * doubles where 64 bits would not do.
 */
#include "limit/build.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include <sluice/word.h>

enum {
	/* Ticks in the smallest charge, below which rounding would be more than 0.1 %. */
	TICKS_PER_TOKEN_MIN = 1001,
	TICKS_PER_PACKET_MIN = 512, /* rounded to the nearest, so half a tick is lost at most */
	/* An interval of so many ticks is kept whole even for bytes: no charge needs rounding then.
	 */
	TICKS_WHOLE = 4096,
};

static bool counts_bytes(enum bucket_kind kind)
{
	return kind == BUCKET_WORD_BYTES || kind == BUCKET_WHOLE_BYTES;
}

static bool is_word(enum bucket_kind kind)
{
	return kind == BUCKET_WORD || kind == BUCKET_WORD_BYTES;
}

static long double ticks_per_token(double rate, int tick_shift)
{
	return ldexpl(1e9L / (long double)rate, tick_shift);
}

/* Whether rates this high can be enforced exactly enough in ticks this long. */
static bool is_fine_enough(double rate, int tick_shift, enum bucket_kind kind)
{
	long double ticks = ticks_per_token(rate, tick_shift);

	if (counts_bytes(kind))
		return ticks * RATE_EXACT_BYTES >= TICKS_PER_PACKET_MIN;
	return ticks >= TICKS_PER_TOKEN_MIN;
}

/*
 * Whole ticks if that is exact enough, else as many fraction bits as burst intervals leave room.
 * Tokens that are charged one at a time are always kept whole: the fraction would be rounded away
 * at each charge, which would admit more than the rate, or less than the burst.
 */
static void set_interval(struct gcra_limit *limit, double rate, enum bucket_kind kind)
{
	long double ticks = ticks_per_token(rate, limit->tick_shift);
	uint8_t bits = 0;

	if (counts_bytes(kind) && ticks < TICKS_WHOLE)
		while (bits < 24 &&
		       ldexpl(ticks * (long double)(limit->burst + 1), bits + 1) < ldexpl(1, 61))
			bits++;
	limit->fraction_bits = bits;
	limit->interval = (uint64_t)ceill(ldexpl(ticks, bits));
}

/* burst intervals, rounded up to a whole nanosecond: the clock cannot tell more. */
static unsigned __int128 capacity_of(const struct gcra_limit *limit)
{
	unsigned __int128 ticks = (unsigned __int128)limit->interval * limit->burst;
	unsigned __int128 nanosecond =
		limit->tick_shift > 0 ? (unsigned __int128)1 << limit->tick_shift : 1;

	ticks = (ticks + ((unsigned __int128)1 << limit->fraction_bits) - 1) >>
		limit->fraction_bits;
	return (ticks + nanosecond - 1) / nanosecond * nanosecond;
}

static bool fits(double rate, uint64_t burst, int tick_shift, uint64_t capacity_max)
{
	/* A tick of slack for each rounding that capacity_of() does. */
	return ticks_per_token(rate, tick_shift) * (long double)burst + (long double)burst + 1024 <
	       (long double)capacity_max;
}

static uint64_t longest(double rate, int tick_shift, uint64_t capacity_max)
{
	long double burst =
		((long double)capacity_max - 1024) / (ticks_per_token(rate, tick_shift) + 1);

	if (burst < 1)
		return 0;
	if (burst > ldexpl(1, RATE_BURST_MAX_BITS))
		return 1ULL << RATE_BURST_MAX_BITS;
	return (uint64_t)burst - (burst >= 2);
}

/* The finest tick whose buckets hold the burst. */
static int choose_tick(const struct rate_limit *wanted, enum bucket_kind kind,
		       struct gcra_limit *limit, uint64_t *longest_burst)
{
	uint32_t class;

	*longest_burst = 0;
	if (!is_word(kind)) {
		limit->tick_shift = GCRA_TICK_SHIFT;
		*longest_burst = longest(wanted->rate, GCRA_TICK_SHIFT, GCRA_CAPACITY_MAX);
		return fits(wanted->rate, wanted->burst, GCRA_TICK_SHIFT, GCRA_CAPACITY_MAX)
			       ? 0
			       : -EOVERFLOW;
	}
	for (class = 0; class < WORD_CLASSES; class ++) {
		int tick_shift = word_tick_shift(class);

		if (!is_fine_enough(wanted->rate, tick_shift, kind))
			break;
		*longest_burst = longest(wanted->rate, tick_shift, WORD_CAPACITY_MAX);
		if (!fits(wanted->rate, wanted->burst, tick_shift, WORD_CAPACITY_MAX))
			continue;
		limit->tick_shift = (int8_t)tick_shift;
		limit->word_class = (uint8_t) class;
		return 0;
	}
	return -EOVERFLOW;
}

int limit_build(const struct rate_limit *wanted, enum bucket_kind kind, struct gcra_limit *limit,
		uint64_t *longest_burst)
{
	struct gcra_limit built = { .burst = wanted->burst };
	int err;

	*longest_burst = 0;
	if (!isfinite(wanted->rate) || wanted->rate <= 0 || wanted->burst == 0)
		return -EINVAL;
	if (wanted->rate > (counts_bytes(kind) ? RATE_MAX_BYTES : RATE_MAX_TOKENS))
		return -ERANGE;
	if (wanted->burst > 1ULL << RATE_BURST_MAX_BITS)
		return -ERANGE;
	err = choose_tick(wanted, kind, &built, longest_burst);
	if (err)
		return err;
	set_interval(&built, wanted->rate, kind);
	built.capacity = (uint64_t)capacity_of(&built);
	*limit = built;
	return 0;
}

double limit_enforced_rate(const struct gcra_limit *limit)
{
	long double ticks = ldexpl((long double)limit->interval, -limit->fraction_bits);

	return (double)(1e9L / ldexpl(ticks, -limit->tick_shift));
}
