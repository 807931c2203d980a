/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The bucket's arithmetic: the timetables and edge cases of tests/vectors/gcra.h, and properties
 * that hold of every limit and every history, against a model that counts in 128 bits. The model
 * keeps no TAT: it knows the debt as a rational number of tokens, which time repays.
 */
#include "test.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "limit/build.h"
#include "tests/vectors/gcra.h"

typedef unsigned __int128 wide;

static uint64_t random_state;

/* splitmix64: the same draws in every run. */
static uint64_t draw(uint64_t below)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (z ^ (z >> 31)) % below;
}

/* ---- tables */

static struct gcra_limit build(double rate, uint64_t burst)
{
	struct rate_limit wanted = { .rate = rate, .burst = burst };
	struct gcra_limit limit;
	uint64_t longest;

	assert_int_equal(limit_build(&wanted, BUCKET_WHOLE, &limit, &longest), 0);
	return limit;
}

/* When every timetable begins: some time after boot. */
#define START_NS 86400000000000ULL

static void every_timetable_is_kept(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(gcra_rows); i++) {
		const struct gcra_row *row = &gcra_rows[i];
		struct gcra_limit limit = build(row->rate, row->burst);
		__u64 tat = gcra_ticks(START_NS, limit.tick_shift);

		for (const struct gcra_step *step = row->step; step->times; step++) {
			__u64 now = gcra_ticks(START_NS + step->at_ns, limit.tick_shift);

			for (__u32 time = 0; time < step->times; time++) {
				struct gcra_verdict verdict = gcra_take(&limit, tat, now, 1);
				__u64 wait_ns = gcra_wait_ns(verdict.wait_ticks, limit.tick_shift);
				__u64 milliseconds = gcra_retry_after_ms(wait_ns);

				check_row_equal(row, verdict.admitted, step->admitted);
				check_row_equal(row, verdict.clamped, false);
				if (!verdict.admitted) {
					check_row_equal(row, milliseconds, step->retry_after_ms);
					check_row_equal(row, gcra_retry_after_s(milliseconds),
							step->retry_after_s);
					check_row_equal(row, verdict.tat, tat);
				}
				tat = verdict.tat;
			}
		}
	}
}

static void every_edge_case_is_answered(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(gcra_cases); i++) {
		const struct gcra_case *row = &gcra_cases[i];
		struct gcra_verdict verdict =
			gcra_take(&row->limit, row->tat, row->now, row->tokens);

		check_row_equal(row, verdict.admitted, row->verdict.admitted);
		check_row_equal(row, verdict.tat, row->verdict.tat);
		check_row_equal(row, verdict.wait_ticks, row->verdict.wait_ticks);
		check_row_equal(row, verdict.clamped, row->verdict.clamped);
		check_row_equal(row, gcra_remaining(&row->limit, row->tat, row->now),
				row->remaining);
		check_row_equal(row, gcra_wait_ns(verdict.wait_ticks, row->limit.tick_shift),
				row->wait_ns);
	}
}

/* ---- properties */

/* A limit of any size, in ticks; the interval is whole, as for tokens charged one by one. */
static struct gcra_limit draw_limit(void)
{
	uint64_t interval = 1 + draw(1ULL << draw(41));
	uint64_t burst = 1 + draw(1ULL << draw(21));
	struct gcra_limit limit = GCRA_TICKS(interval, burst);

	/* What limit_build() may add to make the capacity a whole nanosecond. */
	limit.capacity += draw(1024);
	return limit;
}

/* A bucket that a charge of any size can be added to, and a clock that goes on from it. */
struct history {
	struct gcra_limit limit;
	__u64 tat;
	__u64 now;
};

static struct history begin_history(void)
{
	struct history history = { .limit = draw_limit() };

	/* Half of all histories cross the wrap of 64 bits. */
	history.now = draw(2) ? draw(~0ULL) : ~0ULL - draw(history.limit.capacity + 1);
	history.tat = history.now;
	return history;
}

static __u64 draw_tokens(const struct gcra_limit *limit)
{
	return draw(4) ? 1 : draw(limit->burst + 2);
}

/* How long until the next charge: none, some, or more than the bucket needs to fill. */
static __u64 draw_pause(const struct gcra_limit *limit)
{
	switch (draw(8)) {
	case 0:
		return draw(2 * limit->capacity + 1);
	case 1:
	case 2:
		return 0;
	default:
		return draw(2 * limit->interval + 1);
	}
}

enum { HISTORIES = 3000, CHARGES = 200 };

/*
 * The model: a level of debt in ticks that runs dry with time, in 128 bits. From it alone follows
 * what is admitted, how long to wait and what remains.
 */
static void the_bucket_answers_as_the_model_does(void **state)
{
	(void)state;
	random_state = 1;
	for (int i = 0; i < HISTORIES; i++) {
		struct history history = begin_history();
		const struct gcra_limit *limit = &history.limit;
		wide level = 0;

		for (int charge = 0; charge < CHARGES; charge++) {
			__u64 pause = draw_pause(limit), tokens = draw_tokens(limit);
			wide cost = (wide)tokens * limit->interval;
			wide over;
			struct gcra_verdict verdict;

			history.now += pause;
			level = level > pause ? level - pause : 0;
			over = level + cost > limit->capacity ? level + cost - limit->capacity : 0;
			verdict = gcra_take(limit, history.tat, history.now, tokens);
			assert_int_equal(verdict.admitted, !over && tokens <= limit->burst);
			assert_false(verdict.clamped);
			if (verdict.admitted)
				level += cost;
			else if (tokens <= limit->burst)
				assert_true(verdict.wait_ticks == over);
			else
				assert_true(verdict.wait_ticks == GCRA_NEVER);
			history.tat = verdict.tat;
			assert_true(gcra_debt(limit, history.tat, history.now) == level);
		}
	}
}

/* Over any stretch that ends now, however it began: burst + rate * time, and what rounding the
 * capacity up to a nanosecond adds. */
static void no_more_is_admitted_than_burst_and_rate_times_time(void **state)
{
	(void)state;
	random_state = 2;
	for (int i = 0; i < HISTORIES; i++) {
		struct history history = begin_history();
		const struct gcra_limit *limit = &history.limit;
		wide admitted_before[CHARGES + 1] = { 0 };
		wide time_before[CHARGES + 1] = { 0 };

		for (int charge = 0; charge < CHARGES; charge++) {
			__u64 pause = draw_pause(limit), tokens = draw_tokens(limit);
			struct gcra_verdict verdict;
			int from = (int)draw((uint64_t)charge + 1);
			wide admitted, time;

			history.now += pause;
			time_before[charge] = charge ? time_before[charge - 1] + pause : 0;
			verdict = gcra_take(limit, history.tat, history.now, tokens);
			history.tat = verdict.tat;
			admitted_before[charge + 1] =
				admitted_before[charge] + (verdict.admitted ? tokens : 0);
			admitted = admitted_before[charge + 1] - admitted_before[from];
			time = time_before[charge] - time_before[from];
			assert_true(admitted * limit->interval <= limit->capacity + time);
		}
	}
}

static void waiting_is_enough_and_a_tick_less_is_not(void **state)
{
	(void)state;
	random_state = 3;
	for (int i = 0; i < HISTORIES; i++) {
		struct history history = begin_history();
		const struct gcra_limit *limit = &history.limit;

		for (int charge = 0; charge < CHARGES; charge++) {
			__u64 tokens = 1 + draw(limit->burst);
			struct gcra_verdict verdict =
				gcra_take(limit, history.tat, history.now, tokens);
			__u64 wait = verdict.wait_ticks;

			if (!verdict.admitted) {
				assert_true(wait > 0 && wait != GCRA_NEVER);
				assert_false(gcra_take(limit, history.tat, history.now + wait - 1,
						       tokens)
						     .admitted);
				history.now += wait;
				verdict = gcra_take(limit, history.tat, history.now, tokens);
				assert_true(verdict.admitted);
			}
			history.tat = verdict.tat;
		}
	}
}

static void a_wait_in_nanoseconds_is_enough_in_every_tick(void **state)
{
	static const __s8 shifts[] = { GCRA_TICK_SHIFT, 9, 3, 0, -3, -9 };

	(void)state;
	random_state = 4;
	for (size_t i = 0; i < COUNT_OF(shifts); i++)
		for (int time = 0; time < HISTORIES; time++) {
			__u64 wait = 1 + draw(1ULL << 50);
			__u64 now_ns = draw(1ULL << 53);
			__u64 wait_ns = gcra_wait_ns(wait, shifts[i]);
			__u64 waited = gcra_ticks(now_ns + wait_ns, shifts[i]) -
				       gcra_ticks(now_ns, shifts[i]);

			assert_true(waited >= wait);
			assert_true(wait_ns > 0);
		}
	assert_true(gcra_wait_ns(GCRA_NEVER, 10) == GCRA_NEVER);
	assert_true(gcra_wait_ns(GCRA_NEVER, -9) == GCRA_NEVER);
}

static void a_refusal_writes_nothing_and_its_wait_shrinks_with_time(void **state)
{
	(void)state;
	random_state = 5;
	for (int i = 0; i < HISTORIES; i++) {
		struct history history = begin_history();
		const struct gcra_limit *limit = &history.limit;
		__u64 wait;

		history.tat = gcra_take(limit, history.tat, history.now, limit->burst).tat;
		wait = gcra_take(limit, history.tat, history.now, limit->burst).wait_ticks;
		while (wait > 1) {
			__u64 pause = 1 + draw(wait - 1);
			struct gcra_verdict verdict =
				gcra_take(limit, history.tat, history.now += pause, limit->burst);

			assert_false(verdict.admitted);
			assert_true(verdict.tat == history.tat);
			assert_true(verdict.wait_ticks == wait - pause);
			wait = verdict.wait_ticks;
		}
	}
}

/* Each CPU may see the clock a little behind another: that must cost the caller, not the limit. */
static void a_clock_that_goes_back_never_admits_more(void **state)
{
	(void)state;
	random_state = 6;
	for (int i = 0; i < HISTORIES; i++) {
		struct history history = begin_history();
		const struct gcra_limit *limit = &history.limit;
		wide admitted = 0, elapsed = 0;

		for (int charge = 0; charge < CHARGES; charge++) {
			__u64 pause = draw_pause(limit), back = draw(limit->interval);
			struct gcra_verdict verdict;

			history.now += pause;
			elapsed += pause;
			verdict = gcra_take(limit, history.tat, history.now - back, 1);
			if (verdict.clamped) {
				/* Then the debt seen from back there is more than the capacity. */
				assert_false(verdict.admitted);
				continue;
			}
			history.tat = verdict.tat;
			admitted += verdict.admitted;
			assert_true(admitted * limit->interval <= limit->capacity + elapsed);
		}
	}
}

static void a_tat_beyond_the_capacity_counts_as_full_debt(void **state)
{
	(void)state;
	random_state = 7;
	for (int i = 0; i < HISTORIES * 10; i++) {
		struct history history = begin_history();
		const struct gcra_limit *limit = &history.limit;
		__u64 beyond = 1 + draw((1ULL << 63) - 1 - limit->capacity);
		struct gcra_verdict clamped =
			gcra_take(limit, history.now + limit->capacity + beyond, history.now, 1);
		struct gcra_verdict full =
			gcra_take(limit, history.now + limit->capacity, history.now, 1);

		assert_true(clamped.clamped && !clamped.admitted && !full.clamped);
		assert_true(clamped.tat == history.now + limit->capacity);
		assert_true(clamped.wait_ticks == full.wait_ticks);
		assert_true(gcra_remaining(limit, history.now + limit->capacity + beyond,
					   history.now) == 0);
	}
}

/* What is said to remain is admitted, in one charge, and one token more is not; for bytes, whose
 * intervals are fractions of a tick, too. */
static void what_remains_is_admitted_and_one_more_is_not(void **state)
{
	(void)state;
	random_state = 8;
	for (int i = 0; i < HISTORIES * 10; i++) {
		struct rate_limit wanted = { .rate = exp2((double)draw(30000) / 1000),
					     .burst = 1 + draw(1ULL << draw(30)) };
		enum bucket_kind kind = draw(2) ? BUCKET_WHOLE : BUCKET_WHOLE_BYTES;
		struct gcra_limit limit;
		uint64_t longest, now = draw(~0ULL), tat, remaining;

		if (limit_build(&wanted, kind, &limit, &longest))
			continue;
		tat = now + draw(limit.capacity + 1);
		remaining = gcra_remaining(&limit, tat, now);
		assert_true(remaining <= limit.burst);
		assert_true(gcra_take(&limit, tat, now, remaining).admitted);
		assert_false(gcra_take(&limit, tat, now, remaining + 1).admitted);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_timetable_is_kept),
		cmocka_unit_test(every_edge_case_is_answered),
		cmocka_unit_test(the_bucket_answers_as_the_model_does),
		cmocka_unit_test(no_more_is_admitted_than_burst_and_rate_times_time),
		cmocka_unit_test(waiting_is_enough_and_a_tick_less_is_not),
		cmocka_unit_test(a_wait_in_nanoseconds_is_enough_in_every_tick),
		cmocka_unit_test(a_refusal_writes_nothing_and_its_wait_shrinks_with_time),
		cmocka_unit_test(a_clock_that_goes_back_never_admits_more),
		cmocka_unit_test(a_tat_beyond_the_capacity_counts_as_full_debt),
		cmocka_unit_test(what_remains_is_admitted_and_one_more_is_not),
	};

	return cmocka_run_group_tests_name("gcra", tests, NULL, NULL);
}
