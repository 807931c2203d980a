/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * That time and its units change no answer: not a coarse clock that lies behind, at whatever
 * instant of the clock's life, and not a limit whose ticks are of another length than those that an
 * older one has left in the word.
 */
#include "harness.h"

#include <linux/bpf.h>

#define CLIENT "198.51.100.7"

static uint64_t random_state;

/* splitmix64: the same draws in every run. */
static uint64_t draw(uint64_t below)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (z ^ (z >> 31)) % below;
}

/* clang-format off */
static const struct clock_row {
	const char *name;
	bool node;
	struct rate_limit limit;
	uint64_t step_max_ns; /* between two packets */
	uint64_t start_ns;
} clock_rows[] = {
	{ "an address, 100/s", false, { 100, 5 }, 10 * MILLISECOND_NS, HARNESS_START_NS },
	{ "an address, 1000/s", false, { 1000, 2 }, MILLISECOND_NS, HARNESS_START_NS },
	{ "an address, 700000/s", false, { 700000, 30 }, 1500, HARNESS_START_NS },
	{ "an address, one in seven seconds", false, { 1 / 7., 1 }, 7 * SECOND_NS,
	  HARNESS_START_NS },
	{ "an address, one in a minute", false, { 1 / 60., 4 }, 60 * SECOND_NS, HARNESS_START_NS },
	{ "an address, in class 1, as the ticks of class 0 wrap", false, { 100, 900 },
	  MILLISECOND_NS, (1ULL << 55) - 300 * MILLISECOND_NS },
	{ "an address, in class 0, as its ticks wrap", false, { 200, 20 }, MILLISECOND_NS * 4,
	  (1ULL << 55) - SECOND_NS },
	{ "the node, 100/s", true, { 100, 5 }, 10 * MILLISECOND_NS, HARNESS_START_NS },
	{ "the node, 700000/s", true, { 700000, 7 }, 1500, HARNESS_START_NS },
};
/* clang-format on */

enum { CLOCK_STEPS = 4000 };

/* Against one bucket kept here, at random instants that cross the word's wrap many times. */
static void a_coarse_clock_that_lies_behind_changes_no_answer(void **state)
{
	struct harness *harness = *state;

	random_state = 2;
	for (size_t i = 0; i < COUNT_OF(clock_rows); i++) {
		const struct clock_row *row = &clock_rows[i];
		struct settings settings = harness_settings();
		const struct gcra_limit *limit;
		uint64_t now_ns = row->start_ns, tat;
		int refused = 0;

		harness_reset(state);
		(row->node ? settings.node : settings.ip)[METER_PACKETS] = row->limit;
		harness_apply(harness, &settings);
		limit = row->node ? &harness_slot(harness)->node[METER_PACKETS].limit
				  : &harness_slot(harness)->ip[METER_PACKETS];
		tat = gcra_ticks(now_ns, limit->tick_shift);
		for (int step = 0; step < CLOCK_STEPS; step++) {
			struct gcra_verdict wanted;
			struct ran ran;

			now_ns += draw(row->step_max_ns);
			harness_clock(harness, now_ns, draw(HARNESS_LAG_NS + 1));
			wanted = gcra_take(limit, tat, gcra_ticks(now_ns, limit->tick_shift), 1);
			tat = wanted.tat;
			ran = harness_tcp(harness, CLIENT, TCP_ACK, 0);
			check_row_equal(row, ran.action, wanted.admitted ? XDP_PASS : XDP_DROP);
			refused += !wanted.admitted;
		}
		check_row(row, refused > CLOCK_STEPS / 20 && refused < CLOCK_STEPS * 19 / 20);
	}
}

/* How many packets in a row are admitted, at one instant. */
static int count_admitted(struct harness *harness, int most)
{
	int admitted = 0;

	while (admitted < most &&
	       harness_tcp(harness, CLIENT, TCP_ACK, 0).reason == REASON_ADMITTED)
		admitted++;
	return admitted;
}

static void limit_packets(struct harness *harness, double rate, uint64_t burst)
{
	struct settings settings = harness_settings();

	settings.ip[METER_PACKETS] = RATE_LIMIT(rate, burst);
	harness_apply(harness, &settings);
}

static void a_debt_outlives_the_change_of_a_limits_class(void **state)
{
	struct harness *harness = *state;

	limit_packets(harness, 10, 5);
	assert_int_equal(harness_slot(harness)->ip[METER_PACKETS].word_class, 0);
	assert_int_equal(count_admitted(harness, 100), 5);

	/* Half a second of debt is half a token of the new limit. */
	limit_packets(harness, 1, 60);
	assert_int_equal(harness_slot(harness)->ip[METER_PACKETS].word_class, 1);
	assert_int_equal(count_admitted(harness, 100), 59);

	limit_packets(harness, 0.01, 30);
	assert_int_equal(harness_slot(harness)->ip[METER_PACKETS].word_class, 2);
	assert_int_equal(count_admitted(harness, 100), 29);
}

static void a_debt_beyond_a_lowered_limit_is_brought_back_to_it_once(void **state)
{
	struct harness *harness = *state;

	limit_packets(harness, 0.01, 30);
	assert_int_equal(count_admitted(harness, 100), 30);

	limit_packets(harness, 10, 5);
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_ACK, 0).reason, REASON_IP_PACKETS);
	assert_int_equal(harness_note(harness, NOTE_CLAMPED), 1);
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_ACK, 0).reason, REASON_IP_PACKETS);
	assert_int_equal(harness_note(harness, NOTE_CLAMPED), 1);
	harness_clock(harness, HARNESS_START_NS + 100 * MILLISECOND_NS - 1, 0);
	assert_int_equal(count_admitted(harness, 100), 0);
	harness_clock(harness, HARNESS_START_NS + 100 * MILLISECOND_NS, 0);
	assert_int_equal(count_admitted(harness, 100), 1);
	harness_clock(harness, HARNESS_START_NS + SECOND_NS, 0);
	assert_int_equal(count_admitted(harness, 100), 5);
}

/* clang-format off */
static const struct tick_row {
	const char *name;
	bool node;
	struct rate_limit limit;
	bool remembers; /* its burst is many ticks' worth */
} tick_rows[] = {
	{ "an address, a second's worth", false, { 1000, 1000 }, true },
	{ "an address, ten milliseconds' worth", false, { 1000, 10 }, false },
	{ "the node, a second's worth", true, { 1000, 1000 }, true },
	{ "the node, ten milliseconds' worth", true, { 1000, 10 }, false },
};
/* clang-format on */

static bool is_admitted(struct harness *harness)
{
	return harness_tcp(harness, CLIENT, TCP_ACK, 0).reason == REASON_ADMITTED;
}

/* The fine clock goes on by two tokens while the coarse one stands still, then that moves, too. */
static void a_refusal_stands_for_the_rest_of_the_tick_and_loses_nothing(void **state)
{
	struct harness *harness = *state;

	for (size_t i = 0; i < COUNT_OF(tick_rows); i++) {
		const struct tick_row *row = &tick_rows[i];
		struct settings settings = harness_settings();
		unsigned admitted = 0;

		assert_int_equal(harness_reset(state), 0);
		(row->node ? settings.node : settings.ip)[METER_PACKETS] = row->limit;
		harness_apply(harness, &settings);
		for (unsigned asked = 0; asked <= row->limit.burst; asked++)
			admitted += is_admitted(harness);
		check_row(row, admitted <= row->limit.burst);
		check_row(row, !is_admitted(harness));
		harness_clock(harness, HARNESS_START_NS + 2 * MILLISECOND_NS, 2 * MILLISECOND_NS);
		check_row_equal(row, is_admitted(harness), !row->remembers);
		harness_clock(harness, HARNESS_START_NS + 2 * MILLISECOND_NS, MILLISECOND_NS);
		check_row(row, is_admitted(harness));
		check_row_equal(row, is_admitted(harness), row->remembers);
		check_row(row, !is_admitted(harness));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_coarse_clock_that_lies_behind_changes_no_answer,
				       harness_reset),
		cmocka_unit_test_setup(a_debt_outlives_the_change_of_a_limits_class, harness_reset),
		cmocka_unit_test_setup(a_debt_beyond_a_lowered_limit_is_brought_back_to_it_once,
				       harness_reset),
		cmocka_unit_test_setup(a_refusal_stands_for_the_rest_of_the_tick_and_loses_nothing,
				       harness_reset),
	};

	return cmocka_run_group_tests_name("clocks, xdp", tests, harness_open_xdp, harness_close) +
	       cmocka_run_group_tests_name("clocks, xdp.frags", tests, harness_open_frags,
					   harness_close) +
	       cmocka_run_group_tests_name("clocks, tc", tests, harness_open_tc, harness_close);
}
