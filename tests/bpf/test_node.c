/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The node's bucket and the slices that a CPU takes from it: what is drawn when, that the node
 * never admits more than its burst and rate in any stretch of time, and what becomes of a slice
 * when the configuration changes. One CPU; what many do at once is in test_races.c.
 */
#include "harness.h"

#include <string.h>

#include <linux/bpf.h>

#include "limit/build.h"

#define CLIENT "198.51.100.7"

/* Large enough for slices of 64 packets on as many CPUs as a test machine has. */
enum { BURST_SLICED = 1 << 20, RATE_SLICED = 100000 };

static const struct node_limit *limit_packets(struct harness *harness, double rate, uint64_t burst)
{
	struct settings settings = harness_settings();

	settings.node[METER_PACKETS] = RATE_LIMIT(rate, burst);
	harness_apply(harness, &settings);
	return &harness_slot(harness)->node[METER_PACKETS];
}

static bool admits(struct harness *harness)
{
	struct ran ran = harness_tcp(harness, CLIENT, TCP_ACK, 0);

	assert_true(ran.reason == REASON_ADMITTED || ran.reason == REASON_NODE_PACKETS);
	assert_int_equal(ran.action, ran.reason == REASON_ADMITTED ? XDP_PASS : XDP_DROP);
	return ran.reason == REASON_ADMITTED;
}

static uint64_t ticks(const struct harness *harness)
{
	return gcra_ticks(harness_now(harness), GCRA_TICK_SHIFT);
}

static void a_small_burst_is_charged_packet_by_packet(void **state)
{
	struct harness *harness = *state;
	const struct node_limit *node = limit_packets(harness, 1000, 8);

	assert_int_equal(node->slice, 0);
	assert_int_equal(node->limit.burst, 8);
	for (uint64_t packet = 1; packet <= 8; packet++) {
		assert_true(admits(harness));
		assert_int_equal(harness->node->tat[METER_PACKETS],
				 ticks(harness) + packet * node->limit.interval);
		assert_int_equal(harness_unspent(harness, METER_PACKETS), 0);
	}
	assert_false(admits(harness));
}

static void a_slice_is_taken_once_and_spent_without_a_look_at_the_bucket(void **state)
{
	struct harness *harness = *state;
	const struct node_limit *node = limit_packets(harness, RATE_SLICED, BURST_SLICED);

	assert_int_equal(node->slice, 64);
	for (int slices = 1; slices <= 3; slices++)
		for (uint64_t packet = 1; packet <= node->slice; packet++) {
			assert_true(admits(harness));
			assert_int_equal(harness_unspent(harness, METER_PACKETS),
					 node->slice - packet);
			assert_int_equal(harness->node->tat[METER_PACKETS],
					 ticks(harness) +
						 (uint64_t)slices * 64 * node->limit.interval);
		}
}

/* One slice for each CPU is taken off the burst, and no more than an eighth of it. */
static void at_one_instant_no_more_than_the_burst_is_admitted(void **state)
{
	static const struct {
		const char *name;
		uint64_t burst;
	} rows[] = {
		{ "1", 1 }, { "31", 31 }, { "100", 100 }, { "1000", 1000 }, { "5000", 5000 },
	};
	struct harness *harness = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		uint64_t admitted = 0;
		const struct node_limit *node;

		harness_reset(state);
		node = limit_packets(harness, 0.01, rows[i].burst);
		while (admitted <= rows[i].burst && admits(harness))
			admitted++;
		check_row_equal(&rows[i], admitted, node->limit.burst);
		check_row(&rows[i], admitted <= rows[i].burst);
		check_row(&rows[i], admitted >= rows[i].burst - rows[i].burst / 8);
		check_row_equal(&rows[i], harness_unspent(harness, METER_PACKETS), 0);
	}
}

static uint64_t random_state;

/* splitmix64: the same draws in every run. */
static uint64_t draw(uint64_t below)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (z ^ (z >> 31)) % below;
}

enum { REPLAY_STEPS = 30000 };

/* To keep to burst + rate * time in every stretch is to pass one bucket with the whole burst, at
 * every admission. Long pauses leave slices unspent, which is where too much could come from. */
static void every_admission_passes_one_bucket_with_the_whole_burst(void **state)
{
	struct harness *harness = *state;
	struct rate_limit wanted = RATE_LIMIT(100000, 2000);
	struct gcra_limit whole;
	uint64_t longest, now_ns = HARNESS_START_NS, tat = 0, refused = 0;

	assert_int_equal(limit_build(&wanted, BUCKET_WHOLE, &whole, &longest), 0);
	assert_true(limit_packets(harness, wanted.rate, wanted.burst)->slice > 0);
	random_state = 3;
	for (int step = 0; step < REPLAY_STEPS; step++) {
		struct gcra_verdict verdict;

		now_ns += draw(5000) ? draw(10000) : draw(50 * MILLISECOND_NS);
		harness_clock(harness, now_ns, draw(HARNESS_LAG_NS));
		if (!admits(harness)) {
			refused++;
			continue;
		}
		verdict = gcra_take(&whole, tat, gcra_ticks(now_ns, GCRA_TICK_SHIFT), 1);
		if (!verdict.admitted)
			fail_msg("step %d: one too many was admitted", step);
		tat = verdict.tat;
	}
	assert_in_range(refused, REPLAY_STEPS / 20, REPLAY_STEPS * 19 / 20);
}

static void over_a_long_time_the_whole_rate_is_admitted(void **state)
{
	struct harness *harness = *state;
	uint64_t admitted = 0, seconds = 20;

	limit_packets(harness, 1000, 500);
	for (uint64_t step = 0; step < 2000 * seconds; step++) {
		harness_clock(harness, HARNESS_START_NS + step * SECOND_NS / 2000, 0);
		admitted += admits(harness);
	}
	assert_in_range(admitted, 1000 * seconds, 1000 * seconds + 500);
}

static void a_slice_of_an_older_configuration_is_dropped(void **state)
{
	struct harness *harness = *state;
	const struct node_limit *node = limit_packets(harness, RATE_SLICED, BURST_SLICED);

	assert_true(admits(harness));
	assert_int_equal(harness_unspent(harness, METER_PACKETS), node->slice - 1);
	node = limit_packets(harness, 0.01, 2);
	assert_int_equal(node->slice, 0);
	/* What was paid for the slice stays paid, though: there is no room for two packets any
	 * more. */
	assert_true(admits(harness));
	assert_int_equal(harness_unspent(harness, METER_PACKETS), 0);
	assert_false(admits(harness));
}

static void a_tat_beyond_the_capacity_is_brought_back_once(void **state)
{
	struct harness *harness = *state;
	const struct node_limit *node = limit_packets(harness, 1000, 8);

	harness->node->tat[METER_PACKETS] = ticks(harness) + node->limit.capacity + 1;
	assert_false(admits(harness));
	assert_int_equal(harness->node->tat[METER_PACKETS], ticks(harness) + node->limit.capacity);
	assert_int_equal(harness_note(harness, NOTE_CLAMPED), 1);
	assert_false(admits(harness));
	assert_int_equal(harness_note(harness, NOTE_CLAMPED), 1);
	harness_clock(harness, harness_now(harness) + MILLISECOND_NS, 0);
	assert_true(admits(harness));
	assert_false(admits(harness));
}

static void a_packet_larger_than_a_slice_draws_just_what_it_needs(void **state)
{
	struct harness *harness = *state;
	struct settings settings = harness_settings();
	const struct node_limit *node;
	uint64_t held;

	settings.node[METER_BYTES] = RATE_LIMIT(1 << 20, 8192ULL * 8 * (unsigned)harness->cpus);
	harness_apply(harness, &settings);
	node = &harness_slot(harness)->node[METER_BYTES];
	assert_int_equal(node->slice, 8192);
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_ACK, 8000).reason, REASON_ADMITTED);
	held = harness_unspent(harness, METER_BYTES);
	assert_int_equal(held, 192);
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_ACK, 9000).reason, REASON_ADMITTED);
	assert_int_equal(harness_unspent(harness, METER_BYTES), 0);
	assert_int_equal(harness->node->tat[METER_BYTES],
			 ticks(harness) + gcra_cost(&node->limit, 8192) +
				 gcra_cost(&node->limit, 9000 - 192));
}

/* Where there is less than a slice, a packet gets the token it asks for. */
static void the_last_tokens_of_a_bucket_are_drawn_one_by_one(void **state)
{
	struct harness *harness = *state;
	const struct node_limit *node = limit_packets(harness, RATE_SLICED, BURST_SLICED);
	uint64_t left = node->slice / 2, admitted = 0;

	harness->node->tat[METER_PACKETS] =
		ticks(harness) + node->limit.capacity - left * node->limit.interval;
	while (admitted <= left && admits(harness)) {
		admitted++;
		assert_int_equal(harness_unspent(harness, METER_PACKETS), 0);
	}
	assert_int_equal(admitted, left);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_small_burst_is_charged_packet_by_packet, harness_reset),
		cmocka_unit_test_setup(a_slice_is_taken_once_and_spent_without_a_look_at_the_bucket,
				       harness_reset),
		cmocka_unit_test_setup(at_one_instant_no_more_than_the_burst_is_admitted,
				       harness_reset),
		cmocka_unit_test_setup(every_admission_passes_one_bucket_with_the_whole_burst,
				       harness_reset),
		cmocka_unit_test_setup(over_a_long_time_the_whole_rate_is_admitted, harness_reset),
		cmocka_unit_test_setup(a_slice_of_an_older_configuration_is_dropped, harness_reset),
		cmocka_unit_test_setup(a_tat_beyond_the_capacity_is_brought_back_once,
				       harness_reset),
		cmocka_unit_test_setup(a_packet_larger_than_a_slice_draws_just_what_it_needs,
				       harness_reset),
		cmocka_unit_test_setup(the_last_tokens_of_a_bucket_are_drawn_one_by_one,
				       harness_reset),
	};

	return cmocka_run_group_tests_name("node", tests, harness_open_frags, harness_close);
}
