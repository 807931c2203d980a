/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Limits that are changed while somebody is in debt: whatever debt an address or the node has run
 * up under one limit, under the next it is refused for no longer than that limit can hold anyone,
 * from the first packet on: one packet an interval later, the whole burst after burst / rate. And
 * the debt is not forgotten either. Random limits of all classes of words, one after the other, by
 * the programs' clock.
 */
#include "harness.h"

#include <string.h>

#include <linux/bpf.h>

#include <sluice/word.h>

#include "limit/build.h"

#define CLIENT "198.51.100.7"

enum { CHAINS = 400, LIMITS_EACH = 6, BURST_MAX = 40 };

static uint64_t random_state;

/* splitmix64: the same draws in every run. */
static uint64_t draw(uint64_t below)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (z ^ (z >> 31)) % below;
}

/* From ten microseconds to ten days between two packets, and any class that holds such a burst. */
static struct rate_limit draw_limit(void)
{
	static const double rates[] = { 1e5, 1e3, 10, 0.5, 0.01, 0.0002, 0.00001, 0.000001 };
	struct rate_limit limit = { .rate = rates[draw(COUNT_OF(rates))] };

	limit.burst = 1 + draw(limit.rate < 0.0001 ? 2 : BURST_MAX);
	limit.rate *= 1 + (double)draw(1000) / 1000;
	return limit;
}

struct scene {
	const char *name;
	struct harness *harness;
	bool node;
	const struct gcra_limit *limit; /* in force */
	unsigned classes;               /* bits of those that came up */
	unsigned clamped, shortened;
};

static void apply(struct scene *scene, struct rate_limit limit)
{
	struct settings settings = harness_settings();
	const struct config_slot *slot;

	(scene->node ? settings.node : settings.ip)[METER_PACKETS] = limit;
	harness_apply(scene->harness, &settings);
	slot = harness_slot(scene->harness);
	scene->limit = scene->node ? &slot->node[METER_PACKETS].limit : &slot->ip[METER_PACKETS];
	scene->classes |= 1u << scene->limit->word_class;
}

static uint64_t wait_ns(const struct scene *scene, uint64_t ticks)
{
	return gcra_wait_ns(ticks, scene->limit->tick_shift);
}

/* How many packets in a row are admitted now. */
static uint64_t count_admitted(const struct scene *scene)
{
	uint64_t admitted = 0;

	while (admitted <= scene->limit->burst &&
	       harness_tcp(scene->harness, CLIENT, TCP_ACK, 0).reason == REASON_ADMITTED)
		admitted++;
	check_row(scene, admitted <= scene->limit->burst);
	return admitted;
}

/* As the sweep (bpf/sweep.h), which comes by every few seconds: the words that pass meanwhile. */
static void sweep(const struct scene *scene, uint64_t by_ns)
{
	struct bucket_set *set = harness_set(scene->harness, CLIENT);
	uint64_t now_ns = harness_now(scene->harness);

	for (uint32_t at = 0; at < SET_WORDS; at++) {
		uint64_t word = set->word[at];
		int64_t ahead = word_ahead(word, now_ns);

		if (ahead <= 0 ||
		    gcra_wait_ns((uint64_t)ahead, word_tick_shift(word_class(word))) <= by_ns)
			set->word[at] = WORD_EMPTY;
	}
}

static void forward(const struct scene *scene, uint64_t by_ns)
{
	sweep(scene, by_ns);
	harness_clock(scene->harness, harness_now(scene->harness) + by_ns, 0);
}

/* A client in debt meets a new limit: the first packet it sends, and what it may send from then on.
 */
static void meet_limit(struct scene *scene)
{
	uint64_t interval_ns = wait_ns(scene, scene->limit->interval);
	uint64_t full_ns = wait_ns(scene, scene->limit->capacity);
	uint64_t clamped = harness_note(scene->harness, NOTE_CLAMPED);
	uint64_t admitted;
	bool was_in_debt = count_admitted(scene) < scene->limit->burst;

	scene->clamped += harness_note(scene->harness, NOTE_CLAMPED) - clamped;
	scene->shortened += was_in_debt;
	/* Now it has less than a token left: one packet within an interval, and no second. */
	check_row_equal(scene, count_admitted(scene), 0);
	forward(scene, interval_ns - 1);
	admitted = count_admitted(scene);
	forward(scene, 1);
	check_row_equal(scene, admitted + count_admitted(scene), 1);
	forward(scene, full_ns);
	check_row_equal(scene, count_admitted(scene), scene->limit->burst);
}

static void check_chains(void **state, bool node)
{
	struct scene scene = {
		.name = node ? "the node" : "an address",
		.harness = *state,
		.node = node,
	};

	random_state = node;
	for (unsigned chain = 0; chain < test_repeat(CHAINS); chain++) {
		harness_reset(state);
		forward(&scene, draw(1000000 * SECOND_NS));
		for (int at = 0; at < LIMITS_EACH; at++) {
			apply(&scene, draw_limit());
			meet_limit(&scene);
			/* In full debt or somewhat less, when the next limit comes; and another
			 * instant, since a refusal is remembered for one. */
			forward(&scene,
				1 + draw(wait_ns(&scene, scene.limit->capacity)) * (draw(3) == 0));
		}
	}
	assert_true(scene.clamped > 10);
	assert_true(scene.shortened > 10);
	if (!node)
		assert_int_equal(scene.classes, (1u << WORD_CLASSES) - 1);
}

static void no_address_is_held_longer_than_its_limit_can_hold_it(void **state)
{
	check_chains(state, false);
}

static void the_node_is_held_no_longer_than_its_limit_can_hold_it(void **state)
{
	check_chains(state, true);
}

/* A CPU remembers within a tick of the coarse clock which word has refused what; but not from one limit
 * to the next. */
static void a_limit_that_is_raised_holds_at_once(void **state)
{
	struct settings wide = harness_settings(), narrow = harness_settings();
	uint32_t bytes = 300;

	wide.ip[METER_BYTES] = RATE_LIMIT(1000, 10000);
	narrow.ip[METER_BYTES] = RATE_LIMIT(1000, bytes - 100);
	harness_apply(*state, &wide);
	/* Less than the narrow one can hold, so that the word stays as it is. */
	assert_int_equal(harness_tcp(*state, CLIENT, TCP_ACK, 100).reason, REASON_ADMITTED);
	harness_apply(*state, &narrow);
	assert_int_equal(harness_tcp(*state, CLIENT, TCP_ACK, bytes).reason, REASON_IP_BYTES);
	harness_apply(*state, &wide);
	assert_int_equal(harness_tcp(*state, CLIENT, TCP_ACK, bytes).reason, REASON_ADMITTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(no_address_is_held_longer_than_its_limit_can_hold_it,
				       harness_reset),
		cmocka_unit_test_setup(a_limit_that_is_raised_holds_at_once, harness_reset),
		cmocka_unit_test_setup(the_node_is_held_no_longer_than_its_limit_can_hold_it,
				       harness_reset),
	};

	return cmocka_run_group_tests_name("lowered, xdp", tests, harness_open_xdp, harness_close) +
	       cmocka_run_group_tests_name("lowered, tc", tests, harness_open_tc, harness_close);
}
