/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the program does with the eight words of a set, which these tests write by hand: whose word
 * it takes, what it does when none is to be had, and that it leaves claims and debts of others
 * alone. One packet at a time; the races are in test_races.c.
 */
#include "harness.h"

#include <string.h>

#include <linux/bpf.h>

#define CLIENT "198.51.100.7"

/* A limit of class 0 whose interval is exactly ten milliseconds: a capacity of 100 ms. */
#define PACKETS RATE_LIMIT(100, 10)
#define INTERVAL_NS (10 * MILLISECOND_NS)
#define CAPACITY_NS (100 * MILLISECOND_NS)

static void limit_packets(struct harness *harness, enum when_full when_full)
{
	struct settings settings = harness_settings();

	settings.when_full = when_full;
	settings.ip[METER_PACKETS] = PACKETS;
	harness_apply(harness, &settings);
	assert_int_equal(harness_slot(harness)->ip[METER_PACKETS].word_class, 0);
	assert_int_equal(harness_slot(harness)->ip[METER_PACKETS].capacity,
			 CAPACITY_NS << WORD_TICK_SHIFT_MAX);
}

static uint32_t own_tag(const struct harness *harness)
{
	struct place place = harness_place(harness, CLIENT);

	return place_tag(&place, METER_PACKETS);
}

/* A tag that is not the client's. */
static uint32_t other_tag(const struct harness *harness, uint32_t number)
{
	return (own_tag(harness) + 1 + number) & WORD_TAG_MASK;
}

/* A word of class 0 whose TAT is ahead_ns from now. */
static uint64_t word_of(const struct harness *harness, uint32_t tag, int64_t ahead_ns)
{
	return word_pack(tag, 0, word_ticks(harness_now(harness) + (uint64_t)ahead_ns, 0));
}

static void fill_set(const struct harness *harness, int64_t ahead_ns)
{
	struct bucket_set *set = harness_set(harness, CLIENT);

	for (uint32_t at = 0; at < SET_WORDS; at++)
		set->word[at] = word_of(harness, other_tag(harness, at), ahead_ns);
}

static enum reason run(struct harness *harness)
{
	return harness_tcp(harness, CLIENT, TCP_ACK, 0).reason;
}

/* All words but the one at `but` are as they were. */
static void check_others(const struct harness *harness, const struct bucket_set *before,
			 uint32_t but)
{
	const struct bucket_set *set = harness_set(harness, CLIENT);

	for (uint32_t at = 0; at < SET_WORDS; at++)
		if (at != but)
			assert_int_equal(set->word[at], before->word[at]);
}

enum { NO_WORD = SET_WORDS };

/* ---- whose word is taken */

static void a_fresh_address_takes_the_first_free_word_from_its_way_on(void **state)
{
	struct harness *harness = *state;

	limit_packets(harness, WHEN_FULL_SHARE);
	for (uint32_t taken = 0; taken < SET_WORDS; taken++) {
		struct bucket_set *set = harness_set(harness, CLIENT);
		uint32_t way = harness_place(harness, CLIENT).way;
		uint32_t expected = (way + taken) % SET_WORDS;
		struct bucket_set before;

		memset(set, 0, sizeof(*set));
		for (uint32_t step = 0; step < taken; step++)
			set->word[(way + step) % SET_WORDS] =
				word_of(harness, other_tag(harness, step), 1000);
		before = *set;
		assert_int_equal(run(harness), REASON_ADMITTED);
		assert_int_equal(set->word[expected],
				 word_of(harness, own_tag(harness), INTERVAL_NS));
		check_others(harness, &before, expected);
	}
}

static void a_passed_word_of_another_is_taken_in_a_set_that_is_else_in_debt(void **state)
{
	struct harness *harness = *state;

	limit_packets(harness, WHEN_FULL_REFUSE);
	for (uint32_t passed = 0; passed < SET_WORDS; passed++) {
		struct bucket_set *set = harness_set(harness, CLIENT);
		struct bucket_set before;

		fill_set(harness, 1000);
		set->word[passed] = word_of(harness, other_tag(harness, passed), 0);
		before = *set;
		assert_int_equal(run(harness), REASON_ADMITTED);
		assert_int_equal(set->word[passed],
				 word_of(harness, own_tag(harness), INTERVAL_NS));
		check_others(harness, &before, passed);
	}
}

/* Wherever its word stands, and even if it has passed: a tag is never in a set twice. */
static void an_address_goes_on_with_the_word_it_has(void **state)
{
	static const struct {
		const char *name;
		int64_t ahead_ns;
		int64_t ahead_after_ns;
	} rows[] = {
		{ "in debt", 5 * MILLISECOND_NS, 5 * MILLISECOND_NS + INTERVAL_NS },
		{ "just passed", 0, INTERVAL_NS },
		{ "passed long ago", -(int64_t)(16 * SECOND_NS), INTERVAL_NS },
	};
	struct harness *harness = *state;

	limit_packets(harness, WHEN_FULL_SHARE);
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		for (uint32_t at = 0; at < SET_WORDS; at++) {
			struct bucket_set *set = harness_set(harness, CLIENT);

			memset(set, 0, sizeof(*set));
			set->word[at] = word_of(harness, own_tag(harness), rows[i].ahead_ns);
			check_row_equal(&rows[i], run(harness), REASON_ADMITTED);
			check_row_equal(&rows[i], set->word[at],
					word_of(harness, own_tag(harness), rows[i].ahead_after_ns));
			check_others(harness, &(struct bucket_set){}, at);
		}
}

static void the_meters_of_an_address_stand_in_one_set_each_under_its_own_tag(void **state)
{
	struct harness *harness = *state;
	struct settings settings = harness_settings();
	struct bucket_set *set;
	struct place place;
	int words = 0;

	for (int meter = 0; meter < METERS; meter++)
		settings.ip[meter] = RATE_LIMIT(100, 1000);
	harness_apply(harness, &settings);
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_SYN, 0).reason, REASON_ADMITTED);
	set = harness_set(harness, CLIENT);
	place = harness_place(harness, CLIENT);
	for (uint32_t at = 0; at < SET_WORDS; at++)
		words += set->word[at] != WORD_EMPTY;
	assert_int_equal(words, METERS);
	for (uint32_t meter = 0; meter < METERS; meter++) {
		bool found = false;

		for (uint32_t at = 0; at < SET_WORDS; at++)
			found |= set->word[at] &&
				 word_tag(set->word[at]) == place_tag(&place, meter);
		assert_true(found);
	}
}

/* ---- all words in debt to others */

/* Debts of 50 ms, but one of 20 ms: at each place once. */
static void in_a_full_set_the_word_least_in_debt_is_taken_over_with_its_debt(void **state)
{
	struct harness *harness = *state;

	limit_packets(harness, WHEN_FULL_SHARE);
	for (uint32_t least = 0; least < SET_WORDS; least++) {
		struct bucket_set *set = harness_set(harness, CLIENT);
		struct bucket_set before;

		fill_set(harness, 50 * MILLISECOND_NS);
		set->word[least] = word_of(harness, other_tag(harness, least), 20 * MILLISECOND_NS);
		before = *set;
		assert_int_equal(run(harness), REASON_ADMITTED);
		assert_int_equal(set->word[least], word_of(harness, own_tag(harness),
							   20 * MILLISECOND_NS + INTERVAL_NS));
		check_others(harness, &before, least);
		assert_int_equal(harness_note(harness, NOTE_SET_FULL_SHARED), least + 1);

		/* From then on it is its own. */
		for (int packet = 1; packet < 8; packet++)
			assert_int_equal(run(harness), REASON_ADMITTED);
		assert_int_equal(run(harness), REASON_IP_PACKETS);
		check_others(harness, &before, least);
		assert_int_equal(harness_note(harness, NOTE_SET_FULL_SHARED), least + 1);
	}
}

/* Words of other limits have longer ticks; the debts are compared all the same, to the nanosecond.
 */
static void debts_of_different_classes_are_compared_exactly(void **state)
{
	enum { COARSE_TICK_NS = 8, COARSE_CLASS = 2 };
	struct harness *harness = *state;
	const int64_t debt_ns = 20 * MILLISECOND_NS;

	limit_packets(harness, WHEN_FULL_SHARE);
	for (uint64_t late_ns = 0; late_ns < COARSE_TICK_NS; late_ns++) {
		struct bucket_set *set = harness_set(harness, CLIENT);
		uint32_t tag = other_tag(harness, 3);
		uint64_t tat_ns = HARNESS_START_NS + (uint64_t)debt_ns;

		harness_clock(harness, HARNESS_START_NS + late_ns, 0);
		fill_set(harness, 50 * MILLISECOND_NS);
		set->word[3] = word_pack(tag, COARSE_CLASS, word_ticks(tat_ns, COARSE_CLASS));
		set->word[4] = word_pack(tag + 1, 0, word_ticks(tat_ns + 1, 0));
		assert_int_equal(run(harness), REASON_ADMITTED);
		assert_int_equal(word_tag(set->word[3]), own_tag(harness));
		assert_int_equal(word_tag(set->word[4]), tag + 1);

		memset(set, 0, sizeof(*set));
		fill_set(harness, 50 * MILLISECOND_NS);
		set->word[3] = word_pack(tag, COARSE_CLASS, word_ticks(tat_ns, COARSE_CLASS));
		set->word[4] = word_pack(tag + 1, 0, word_ticks(tat_ns - 1, 0));
		assert_int_equal(run(harness), REASON_ADMITTED);
		assert_int_equal(word_tag(set->word[3]), tag);
		assert_int_equal(word_tag(set->word[4]), own_tag(harness));
	}
}

static void a_set_whose_least_debt_leaves_no_room_is_left_alone(void **state)
{
	struct harness *harness = *state;
	struct bucket_set before;

	limit_packets(harness, WHEN_FULL_SHARE);
	fill_set(harness, 90 * MILLISECOND_NS + 1);
	before = *harness_set(harness, CLIENT);
	assert_int_equal(run(harness), REASON_IP_PACKETS);
	check_others(harness, &before, NO_WORD);
	assert_int_equal(harness_note(harness, NOTE_SET_FULL_SHARED), 0);

	harness_clock(harness, harness_now(harness) + 1, 0);
	assert_int_equal(run(harness), REASON_ADMITTED);
	assert_int_equal(harness_note(harness, NOTE_SET_FULL_SHARED), 1);
}

static void in_a_full_set_an_address_is_refused_if_that_is_asked_for(void **state)
{
	struct harness *harness = *state;
	struct bucket_set before;

	limit_packets(harness, WHEN_FULL_REFUSE);
	fill_set(harness, 1000);
	before = *harness_set(harness, CLIENT);
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_ACK, 0).action, XDP_DROP);
	assert_int_equal(run(harness), REASON_IP_SET_FULL);
	check_others(harness, &before, NO_WORD);

	harness_clock(harness, harness_now(harness) + 1000, 0);
	assert_int_equal(run(harness), REASON_ADMITTED);
}

static void in_a_full_set_an_address_is_admitted_if_that_is_asked_for(void **state)
{
	struct harness *harness = *state;
	struct bucket_set before;

	limit_packets(harness, WHEN_FULL_ADMIT);
	fill_set(harness, 1000);
	before = *harness_set(harness, CLIENT);
	for (int packet = 0; packet < 30; packet++)
		assert_int_equal(run(harness), REASON_ADMITTED);
	check_others(harness, &before, NO_WORD);
	assert_int_equal(harness_note(harness, NOTE_SET_FULL_ADMITTED), 30);
}

/* It begins with the debt that it took over, and goes on to what it may have itself. */
static void who_takes_a_word_over_is_held_to_its_own_limit(void **state)
{
	struct setting_prefix generous = {
		.address = address_of(CLIENT),
		.bits = 128,
		.action = PREFIX_LIMIT,
		.limit[METER_PACKETS] = RATE_LIMIT(100, 400),
	};
	struct harness *harness = *state;
	struct settings settings = harness_settings();
	int admitted = 0;

	settings.ip[METER_PACKETS] = PACKETS;
	settings.prefixes = &generous;
	settings.prefix_count = 1;
	harness_apply(harness, &settings);
	fill_set(harness, 95 * MILLISECOND_NS);
	while (admitted < 500 && run(harness) == REASON_ADMITTED)
		admitted++;
	assert_int_equal(admitted, (4000 - 95) / 10);
	assert_int_equal(harness_note(harness, NOTE_SET_FULL_SHARED), 1);
}

/* A word that stands far beyond a sharer's capacity is not his to bring back. */
static void a_sharer_never_brings_back_the_debt_of_the_owner(void **state)
{
	struct harness *harness = *state;
	struct bucket_set before;

	limit_packets(harness, WHEN_FULL_SHARE);
	fill_set(harness, 8 * (int64_t)SECOND_NS);
	before = *harness_set(harness, CLIENT);
	assert_int_equal(run(harness), REASON_IP_PACKETS);
	check_others(harness, &before, NO_WORD);
	assert_int_equal(harness_note(harness, NOTE_CLAMPED), 0);
}

/* The meters were looked at together and each found a word, but it was the same for all: the first
 * takes it, and the next has none. */
static void meters_that_compete_for_the_last_word_are_counted_as_spent_in_vain(void **state)
{
	struct harness *harness = *state;
	struct settings settings = harness_settings();

	settings.when_full = WHEN_FULL_REFUSE;
	settings.ip[METER_CONNECTIONS] = settings.ip[METER_PACKETS] = PACKETS;
	harness_apply(harness, &settings);
	fill_set(harness, 1000);
	harness_set(harness, CLIENT)->word[2] = WORD_EMPTY;
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_SYN, 0).reason, REASON_IP_SET_FULL);
	assert_int_equal(harness_note(harness, NOTE_SPENT_IN_VAIN), 1);
}

/* ---- claims */

static void an_address_whose_word_is_being_taken_is_refused_after_its_tries(void **state)
{
	struct harness *harness = *state;
	struct bucket_set *set, before;

	limit_packets(harness, WHEN_FULL_SHARE);
	set = harness_set(harness, CLIENT);
	set->word[3] = word_claim(own_tag(harness));
	before = *set;
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_ACK, 0).action, XDP_DROP);
	assert_int_equal(run(harness), REASON_IP_TRIES);
	check_others(harness, &before, NO_WORD);
}

/* What is owed where somebody claims a word cannot be seen, so the least debt is not known. */
static void no_word_is_taken_over_while_another_is_claimed(void **state)
{
	struct harness *harness = *state;
	struct bucket_set *set, before;

	limit_packets(harness, WHEN_FULL_SHARE);
	fill_set(harness, 5 * MILLISECOND_NS);
	set = harness_set(harness, CLIENT);
	set->word[6] = word_claim(other_tag(harness, 6));
	before = *set;
	assert_int_equal(run(harness), REASON_IP_TRIES);
	check_others(harness, &before, NO_WORD);
}

static void the_claims_of_others_are_not_taken_however_late_it_is(void **state)
{
	struct harness *harness = *state;
	struct bucket_set *set, before;

	limit_packets(harness, WHEN_FULL_REFUSE);
	set = harness_set(harness, CLIENT);
	for (uint32_t at = 0; at < SET_WORDS; at++)
		set->word[at] = word_claim(other_tag(harness, at));
	before = *set;
	for (int day = 0; day < 100; day++) {
		harness_clock(harness, harness_now(harness) + 86400 * SECOND_NS, 0);
		assert_int_equal(run(harness), REASON_IP_SET_FULL);
	}
	check_others(harness, &before, NO_WORD);
}

/* ---- debts beyond the capacity */

static void a_word_beyond_its_capacity_is_full_debt_and_is_brought_back(void **state)
{
	static const struct {
		const char *name;
		int64_t ahead_ns;
		bool clamped;
	} rows[] = {
		{ "exactly full", CAPACITY_NS, false },
		{ "two nanoseconds more", CAPACITY_NS + 2, true },
		{ "a second", SECOND_NS, true },
		{ "as far ahead as a word can tell", 8 * (int64_t)SECOND_NS, true },
	};
	struct harness *harness = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct bucket_set *set;

		harness_reset(state);
		limit_packets(harness, WHEN_FULL_SHARE);
		set = harness_set(harness, CLIENT);
		set->word[5] = word_of(harness, own_tag(harness), rows[i].ahead_ns);
		check_row_equal(&rows[i], run(harness), REASON_IP_PACKETS);
		check_row_equal(&rows[i], set->word[5],
				word_of(harness, own_tag(harness), CAPACITY_NS));
		check_row_equal(&rows[i], harness_note(harness, NOTE_CLAMPED), rows[i].clamped);
		harness_clock(harness, harness_now(harness) + INTERVAL_NS, 0);
		check_row_equal(&rows[i], run(harness), REASON_ADMITTED);
		check_row_equal(&rows[i], run(harness), REASON_IP_PACKETS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_fresh_address_takes_the_first_free_word_from_its_way_on,
				       harness_reset),
		cmocka_unit_test_setup(
			a_passed_word_of_another_is_taken_in_a_set_that_is_else_in_debt,
			harness_reset),
		cmocka_unit_test_setup(an_address_goes_on_with_the_word_it_has, harness_reset),
		cmocka_unit_test_setup(
			the_meters_of_an_address_stand_in_one_set_each_under_its_own_tag,
			harness_reset),
		cmocka_unit_test_setup(
			in_a_full_set_the_word_least_in_debt_is_taken_over_with_its_debt,
			harness_reset),
		cmocka_unit_test_setup(debts_of_different_classes_are_compared_exactly,
				       harness_reset),
		cmocka_unit_test_setup(a_set_whose_least_debt_leaves_no_room_is_left_alone,
				       harness_reset),
		cmocka_unit_test_setup(in_a_full_set_an_address_is_refused_if_that_is_asked_for,
				       harness_reset),
		cmocka_unit_test_setup(in_a_full_set_an_address_is_admitted_if_that_is_asked_for,
				       harness_reset),
		cmocka_unit_test_setup(who_takes_a_word_over_is_held_to_its_own_limit,
				       harness_reset),
		cmocka_unit_test_setup(a_sharer_never_brings_back_the_debt_of_the_owner,
				       harness_reset),
		cmocka_unit_test_setup(
			meters_that_compete_for_the_last_word_are_counted_as_spent_in_vain,
			harness_reset),
		cmocka_unit_test_setup(
			an_address_whose_word_is_being_taken_is_refused_after_its_tries,
			harness_reset),
		cmocka_unit_test_setup(no_word_is_taken_over_while_another_is_claimed,
				       harness_reset),
		cmocka_unit_test_setup(the_claims_of_others_are_not_taken_however_late_it_is,
				       harness_reset),
		cmocka_unit_test_setup(a_word_beyond_its_capacity_is_full_debt_and_is_brought_back,
				       harness_reset),
	};

	return cmocka_run_group_tests_name("table", tests, harness_open_frags, harness_close);
}
