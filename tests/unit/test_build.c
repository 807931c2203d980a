/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What limit_build() promises, for rates and bursts drawn at random over the whole range and for
 * the extremes: how exact the rate is, that the burst is the burst, and what it says of limits that
 * no bucket can hold. Charges go through gcra_take(), as in the programs.
 */
#include "test.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <sluice/word.h>

#include "limit/build.h"

enum { DRAWS = 20000, CHARGES_MAX = 100000 };

static const enum bucket_kind kinds[] = {
	BUCKET_WORD,
	BUCKET_WORD_BYTES,
	BUCKET_WHOLE,
	BUCKET_WHOLE_BYTES,
};

static uint64_t random_state;

/* splitmix64: the same draws in every run. */
static uint64_t draw(void)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* Every order of magnitude is as likely as any other. */
static double draw_between(double low, double high)
{
	return low * pow(high / low, (double)(draw() >> 11) / (double)(1ULL << 53));
}

static bool is_bytes(enum bucket_kind kind)
{
	return kind == BUCKET_WORD_BYTES || kind == BUCKET_WHOLE_BYTES;
}

static bool is_word(enum bucket_kind kind)
{
	return kind == BUCKET_WORD || kind == BUCKET_WORD_BYTES;
}

static struct rate_limit draw_limit(enum bucket_kind kind, double burst_max)
{
	struct rate_limit wanted = {
		.rate = draw_between(1.0 / 86400, is_bytes(kind) ? 1e11 : 1e8),
		.burst = (uint64_t)draw_between(1, burst_max),
	};

	/* One in eight is a whole number, as people write them. */
	if (draw() % 8 == 0 && wanted.rate > 1)
		wanted.rate = floor(wanted.rate);
	return wanted;
}

/* A limit of this kind that can be built, with at most this burst. */
static struct gcra_limit draw_built(enum bucket_kind kind, double burst_max,
				    struct rate_limit *wanted)
{
	struct gcra_limit limit;
	uint64_t longest;

	for (;;) {
		*wanted = draw_limit(kind, burst_max);
		if (limit_build(wanted, kind, &limit, &longest) == 0)
			return limit;
		if (longest) {
			wanted->burst = longest;
			assert_int_equal(limit_build(wanted, kind, &limit, &longest), 0);
			return limit;
		}
	}
}

static uint64_t draw_now(const struct gcra_limit *limit)
{
	return gcra_ticks(draw() >> 2, limit->tick_shift);
}

static void enforced_rate_is_exact_and_never_above_what_was_configured(void **state)
{
	(void)state;
	for (size_t k = 0; k < COUNT_OF(kinds); k++) {
		for (int i = 0; i < DRAWS; i++) {
			struct rate_limit wanted;
			struct gcra_limit limit = draw_built(kinds[k], 1e12, &wanted);
			double enforced = limit_enforced_rate(&limit);

			if (enforced > wanted.rate || enforced < wanted.rate * 0.999)
				fail_msg("kind %d: rate %.17g burst %llu enforces %.17g", kinds[k],
					 wanted.rate, (unsigned long long)wanted.burst, enforced);
		}
	}
}

/* What limit_enforced_rate() says is no use if a single charge is rounded to something else. */
static void single_charges_cost_what_the_enforced_rate_says(void **state)
{
	(void)state;
	for (size_t k = 0; k < COUNT_OF(kinds); k++) {
		uint64_t tokens = is_bytes(kinds[k]) ? RATE_EXACT_BYTES : 1;

		for (int i = 0; i < DRAWS; i++) {
			struct rate_limit wanted;
			struct gcra_limit limit = draw_built(kinds[k], 1e12, &wanted);
			long double seconds, rate;

			if (tokens > limit.burst)
				continue;
			seconds =
				ldexpl((long double)gcra_cost(&limit, tokens), -limit.tick_shift) /
				1e9L;
			rate = (long double)tokens / seconds;
			if (rate < wanted.rate * 0.999L || rate > wanted.rate * 1.001L)
				fail_msg("kind %d: rate %.17g is charged as %.17Lg", kinds[k],
					 wanted.rate, rate);
			if (!is_bytes(kinds[k]) && (double)rate > wanted.rate)
				fail_msg("kind %d: rate %.17g is exceeded: %.17Lg", kinds[k],
					 wanted.rate, rate);
		}
	}
}

static void limits_stay_within_what_the_arithmetic_can_hold(void **state)
{
	(void)state;
	for (size_t k = 0; k < COUNT_OF(kinds); k++) {
		for (int i = 0; i < DRAWS; i++) {
			struct rate_limit wanted;
			struct gcra_limit limit = draw_built(kinds[k], ldexp(1, 42), &wanted);
			unsigned __int128 product = (unsigned __int128)limit.interval * limit.burst;
			uint64_t most = is_word(kinds[k]) ? WORD_CAPACITY_MAX : GCRA_CAPACITY_MAX;

			assert_true(product < (unsigned __int128)1 << 63);
			assert_true(limit.capacity <= most);
			assert_int_equal(limit.burst, wanted.burst);
			assert_true((unsigned __int128)limit.capacity << limit.fraction_bits >=
				    product);
			if (is_word(kinds[k]))
				assert_int_equal(limit.tick_shift,
						 word_tick_shift(limit.word_class));
			else
				assert_int_equal(limit.tick_shift, GCRA_TICK_SHIFT);
			assert_int_equal(gcra_remaining(&limit, 0, 0), wanted.burst);
			assert_true(gcra_cost(&limit, wanted.burst) <= limit.capacity);
		}
	}
}

/* Single charges at one instant until one is refused; then one more after what it said to wait. */
static void take_whole_burst(const struct gcra_limit *limit)
{
	uint64_t now = draw_now(limit), tat = now, admitted = 0;
	struct gcra_verdict verdict;

	for (;;) {
		verdict = gcra_take(limit, tat, now, 1);
		if (!verdict.admitted)
			break;
		assert_int_equal(gcra_remaining(limit, tat, now), limit->burst - admitted);
		tat = verdict.tat;
		admitted++;
	}
	if (admitted != limit->burst)
		fail_msg("burst %llu admits %llu", (unsigned long long)limit->burst,
			 (unsigned long long)admitted);
	assert_true(verdict.wait_ticks > 0 && verdict.wait_ticks <= limit->interval);
	assert_int_equal(verdict.tat, tat);
	assert_false(verdict.clamped);
	verdict = gcra_take(limit, tat, now + verdict.wait_ticks, 1);
	assert_true(verdict.admitted);
	verdict = gcra_take(limit, verdict.tat, now + verdict.wait_ticks, 1);
	assert_false(verdict.admitted);
}

static void burst_is_exact_for_single_charges(void **state)
{
	static const enum bucket_kind counts[] = { BUCKET_WORD, BUCKET_WHOLE };

	(void)state;
	for (size_t k = 0; k < COUNT_OF(counts); k++) {
		for (int i = 0; i < 400; i++) {
			struct rate_limit wanted;
			struct gcra_limit limit = draw_built(counts[k], CHARGES_MAX, &wanted);

			take_whole_burst(&limit);
		}
	}
}

/* 40 million at 3 million a second: its ticks are long and its interval is not whole in them. */
static void burst_is_exact_in_long_ticks(void **state)
{
	struct rate_limit wanted = { .rate = 3e6, .burst = 40000000 };
	struct gcra_limit limit;
	uint64_t longest, now, tat, left = wanted.burst;
	struct gcra_verdict verdict;

	(void)state;
	assert_int_equal(limit_build(&wanted, BUCKET_WORD, &limit, &longest), 0);
	assert_int_equal(limit.word_class, 1);
	now = draw_now(&limit);
	for (tat = now; left > 0; left--) {
		verdict = gcra_take(&limit, tat, now, 1);
		assert_true(verdict.admitted);
		tat = verdict.tat;
	}
	assert_false(gcra_take(&limit, tat, now, 1).admitted);
}

static void burst_is_exact_for_charges_of_any_size(void **state)
{
	static const enum bucket_kind counts[] = { BUCKET_WORD, BUCKET_WHOLE };

	(void)state;
	for (size_t k = 0; k < COUNT_OF(counts); k++) {
		for (int i = 0; i < DRAWS / 4; i++) {
			struct rate_limit wanted;
			struct gcra_limit limit = draw_built(counts[k], 1e12, &wanted);
			uint64_t now = draw_now(&limit), tat = now, left = limit.burst;

			while (left > 0) {
				uint64_t tokens = 1 + draw() % left;
				struct gcra_verdict verdict = gcra_take(&limit, tat, now, tokens);

				assert_true(verdict.admitted);
				tat = verdict.tat;
				left -= tokens;
			}
			assert_false(gcra_take(&limit, tat, now, 1).admitted);
		}
	}
}

/* Packets of 128 bytes and more at one instant: the burst, within 0.1 % and a nanosecond's worth.
 */
static void burst_of_bytes_is_within_a_thousandth(void **state)
{
	static const enum bucket_kind bytes[] = { BUCKET_WORD_BYTES, BUCKET_WHOLE_BYTES };

	(void)state;
	for (size_t k = 0; k < COUNT_OF(bytes); k++) {
		for (int i = 0; i < 400; i++) {
			struct rate_limit wanted;
			struct gcra_limit limit = draw_built(bytes[k], 1e7, &wanted);
			uint64_t now = draw_now(&limit), tat = now, sum = 0;
			double slack = (double)limit.burst * 0.001 + wanted.rate * 1e-9 + 2000;

			for (;;) {
				uint64_t size = RATE_EXACT_BYTES + draw() % 1372;
				struct gcra_verdict verdict = gcra_take(&limit, tat, now, size);

				if (!verdict.admitted)
					break;
				tat = verdict.tat;
				sum += size;
			}
			if (fabs((double)sum - (double)limit.burst) > slack)
				fail_msg("rate %.17g burst %llu admits %llu bytes", wanted.rate,
					 (unsigned long long)limit.burst, (unsigned long long)sum);
			assert_int_equal(gcra_take(&limit, tat, now, limit.burst + 1).wait_ticks,
					 GCRA_NEVER);
			assert_true(gcra_take(&limit, now, now, limit.burst).admitted);
		}
	}
}

static void waiting_as_told_is_always_enough(void **state)
{
	(void)state;
	for (size_t k = 0; k < COUNT_OF(kinds); k++) {
		for (int i = 0; i < DRAWS; i++) {
			struct rate_limit wanted;
			struct gcra_limit limit = draw_built(kinds[k], 1e12, &wanted);
			uint64_t now = draw() >> 4, ticks = gcra_ticks(now, limit.tick_shift);
			uint64_t tat = ticks + draw() % (limit.capacity + 1);
			uint64_t tokens = 1 + draw() % limit.burst;
			struct gcra_verdict verdict = gcra_take(&limit, tat, ticks, tokens);

			if (verdict.admitted)
				continue;
			assert_true(verdict.wait_ticks <= limit.capacity);
			now += gcra_wait_ns(verdict.wait_ticks, limit.tick_shift);
			ticks = gcra_ticks(now, limit.tick_shift);
			assert_true(gcra_take(&limit, tat, ticks, tokens).admitted);
		}
	}
}

static void longest_burst_builds_and_a_longer_one_does_not(void **state)
{
	int overflows = 0;

	(void)state;
	for (size_t k = 0; k < COUNT_OF(kinds); k++) {
		for (int i = 0; i < DRAWS; i++) {
			struct rate_limit wanted = draw_limit(kinds[k], ldexp(1, 42));
			struct gcra_limit limit = { .burst = 77 };
			uint64_t longest, ignored;

			if (limit_build(&wanted, kinds[k], &limit, &longest) != -EOVERFLOW)
				continue;
			assert_int_equal(limit.burst, 77);
			assert_true(longest < wanted.burst);
			assert_true(longest > 0);
			overflows++;
			wanted.burst = longest;
			assert_int_equal(limit_build(&wanted, kinds[k], &limit, &ignored), 0);
			wanted.burst = (uint64_t)((double)longest * 1.01) + 2;
			assert_int_not_equal(limit_build(&wanted, kinds[k], &limit, &ignored), 0);
		}
	}
	assert_true(overflows > DRAWS / 10);
}

static void rates_from_one_a_day_are_built_for_every_kind(void **state)
{
	(void)state;
	for (size_t k = 0; k < COUNT_OF(kinds); k++) {
		double most = is_bytes(kinds[k]) ? RATE_MAX_BYTES : RATE_MAX_TOKENS;
		struct rate_limit wanted = { .rate = 1.0 / 86400, .burst = 1 };
		struct gcra_limit limit;
		uint64_t longest;

		assert_int_equal(limit_build(&wanted, kinds[k], &limit, &longest), 0);
		wanted.rate = most;
		assert_int_equal(limit_build(&wanted, kinds[k], &limit, &longest), 0);
		assert_true(limit_enforced_rate(&limit) >= most * 0.999);
	}
}

static const struct extreme_row {
	const char *name;
	struct rate_limit wanted;
	int counts; /* what limit_build() returns for kinds that count */
	int bytes;
} extremes[] = {
	{ "rate 0", { 0, 1 }, -EINVAL, -EINVAL },
	{ "rate -0", { -0.0, 1 }, -EINVAL, -EINVAL },
	{ "rate -1", { -1, 1 }, -EINVAL, -EINVAL },
	{ "rate NaN", { NAN, 1 }, -EINVAL, -EINVAL },
	{ "rate infinite", { INFINITY, 1 }, -EINVAL, -EINVAL },
	{ "rate minus infinite", { -INFINITY, 1 }, -EINVAL, -EINVAL },
	{ "rate DBL_MAX", { DBL_MAX, 1 }, -ERANGE, -ERANGE },
	{ "rate DBL_MIN", { DBL_MIN, 1 }, -EOVERFLOW, -EOVERFLOW },
	{ "rate denormal", { 5e-324, 1 }, -EOVERFLOW, -EOVERFLOW },
	{ "rate just too high to count", { 100000001.0, 1 }, -ERANGE, 0 },
	{ "rate just too high for bytes", { 1.1001e11, 1500 }, -ERANGE, -ERANGE },
	{ "one in a year", { 1.0 / 86400 / 365, 1 }, -EOVERFLOW, -EOVERFLOW },
	{ "burst 0", { 1, 0 }, -EINVAL, -EINVAL },
	{ "burst beyond the most", { 1e8, (1ULL << 42) + 1 }, -ERANGE, -ERANGE },
	{ "burst of all ones", { 1e8, UINT64_MAX }, -ERANGE, -ERANGE },
	{ "burst of a century", { 1, 3155760000 }, -EOVERFLOW, -EOVERFLOW },
	{ "the plainest", { 1, 1 }, 0, 0 },
};

static void extremes_are_refused_for_the_right_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(extremes); i++) {
		const struct extreme_row *row = &extremes[i];

		for (size_t k = 0; k < COUNT_OF(kinds); k++) {
			struct gcra_limit limit = { .burst = 77 };
			uint64_t longest;
			int err = limit_build(&row->wanted, kinds[k], &limit, &longest);

			check_row_equal(row, err, is_bytes(kinds[k]) ? row->bytes : row->counts);
			if (err)
				check_row_equal(row, limit.burst, 77);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(enforced_rate_is_exact_and_never_above_what_was_configured),
		cmocka_unit_test(single_charges_cost_what_the_enforced_rate_says),
		cmocka_unit_test(limits_stay_within_what_the_arithmetic_can_hold),
		cmocka_unit_test(burst_is_exact_for_single_charges),
		cmocka_unit_test(burst_is_exact_in_long_ticks),
		cmocka_unit_test(burst_is_exact_for_charges_of_any_size),
		cmocka_unit_test(burst_of_bytes_is_within_a_thousandth),
		cmocka_unit_test(waiting_as_told_is_always_enough),
		cmocka_unit_test(longest_burst_builds_and_a_longer_one_does_not),
		cmocka_unit_test(rates_from_one_a_day_are_built_for_every_kind),
		cmocka_unit_test(extremes_are_refused_for_the_right_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
