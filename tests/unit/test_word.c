/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The packing of a bucket into one word: that nothing is lost within the horizons that word.h
 * states, that no bucket is ever taken for a claim or for an empty word, and that a debt survives a
 * change of its tick.
 */
#include "test.h"

#include <stdbool.h>

#include <sluice/word.h>

enum { DRAWS = 200000 };

/* As far as a word can tell ahead from passed, in ticks of its class. */
#define HORIZON (1LL << (WORD_TAT_BITS - 1))

static uint64_t random_state;

/* splitmix64: the same draws in every run. */
static uint64_t draw(uint64_t below)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (z ^ (z >> 31)) % below;
}

static uint32_t draw_tag(void)
{
	return (uint32_t)(1 + draw(WORD_TAG_MASK));
}

/* A few hundred years after boot at most, and half the time near a wrap of class 0. */
static uint64_t draw_now(void)
{
	return draw(2) ? draw(1ULL << 63) : (1ULL << 55) * (1 + draw(16)) - draw(1ULL << 36);
}

/* A number whose magnitude is as likely small as large; below 2^bits. */
static uint64_t draw_sized(int bits)
{
	return draw(1ULL << (1 + draw((uint64_t)bits)));
}

static void what_is_packed_is_read_back(void **state)
{
	(void)state;
	random_state = 1;
	for (int i = 0; i < DRAWS; i++) {
		uint32_t tag = draw_tag(), number = (uint32_t)draw(WORD_CLASSES);
		uint64_t tat = draw(~0ULL);
		uint64_t word = word_pack(tag, number, tat);

		assert_int_equal(word_tag(word), tag);
		assert_int_equal(word_class(word), number);
		assert_int_equal(word & WORD_TAT_MASK, tat & WORD_TAT_MASK);
		assert_true(word != WORD_EMPTY);
	}
}

static void the_classes_are_as_their_table_says(void **state)
{
	static const struct {
		const char *name;
		int tick_shift;
		uint64_t capacity_ms; /* in milliseconds, rounded down */
	} rows[WORD_CLASSES] = {
		{ "class 0: 8.5 seconds", 9, 8589 },
		{ "class 1: 9.1 minutes", 3, 549755 },
		{ "class 2: 9.7 hours", -3, 35184372 },
		{ "class 3: 26 days", -9, 2251799813 },
	};

	(void)state;
	for (uint32_t number = 0; number < WORD_CLASSES; number++) {
		int shift = word_tick_shift(number);
		uint64_t now_ns = 123456789012345ULL;

		check_row_equal(&rows[number], shift, rows[number].tick_shift);
		check_row_equal(
			&rows[number],
			(shift >= 0 ? WORD_CAPACITY_MAX >> shift : WORD_CAPACITY_MAX << -shift) /
				1000000,
			rows[number].capacity_ms);
		check_row(&rows[number],
			  word_ticks(now_ns, number) == gcra_ticks(now_ns, (__s8)shift));
	}
}

/* ---- claims and empty words */

static void no_bucket_is_ever_packed_into_a_claim(void **state)
{
	(void)state;
	random_state = 2;
	for (uint32_t tag = 1; tag <= WORD_TAG_MASK; tag++)
		for (uint32_t number = 0; number < WORD_CLASSES; number++)
			assert_false(word_is_claim(word_pack(tag, number, WORD_TAT_MASK)));
	for (int i = 0; i < DRAWS; i++) {
		uint32_t number = (uint32_t)draw(WORD_CLASSES);
		uint64_t near = (draw(~0ULL) | WORD_TAT_MASK) + draw(3) - 1;

		assert_false(word_is_claim(word_pack(draw_tag(), number, near)));
	}
}

/* Of the one TAT that would be a claim, one later by a tick is made. */
static void a_tat_that_would_be_a_claim_is_put_off_by_a_tick(void **state)
{
	(void)state;
	random_state = 3;
	for (int i = 0; i < DRAWS; i++) {
		uint64_t tat = draw(~0ULL) | WORD_TAT_MASK;
		uint32_t tag = draw_tag();

		assert_int_equal(word_pack(tag, 3, tat), word_pack(tag, 3, tat + 1));
		assert_int_equal(word_pack(tag, 2, tat) & WORD_TAT_MASK, WORD_TAT_MASK);
	}
}

static void a_claim_keeps_its_tag_and_never_passes(void **state)
{
	(void)state;
	random_state = 4;
	for (int i = 0; i < DRAWS; i++) {
		uint32_t tag = draw_tag();
		uint64_t claim = word_claim(tag);

		assert_true(word_is_claim(claim));
		assert_int_equal(word_tag(claim), tag);
		assert_false(word_has_passed(claim, draw_now()));
	}
}

static void an_empty_word_may_always_be_taken(void **state)
{
	(void)state;
	random_state = 5;
	for (int i = 0; i < DRAWS; i++)
		assert_true(word_has_passed(WORD_EMPTY, draw_now()));
	assert_false(word_is_claim(WORD_EMPTY));
}

/* ---- horizons */

static void what_lies_ahead_within_the_horizon_is_told_exactly(void **state)
{
	(void)state;
	random_state = 6;
	for (int i = 0; i < DRAWS; i++) {
		uint32_t number = (uint32_t)draw(WORD_CLASSES);
		uint64_t now_ns = draw_now();
		int64_t ahead = (int64_t)draw_sized(WORD_TAT_BITS - 1) * (draw(2) ? 1 : -1);
		uint64_t tat = word_ticks(now_ns, number) + (uint64_t)ahead;
		uint64_t word = word_pack(draw_tag(), number, tat);

		if (number == 3 && (tat & WORD_TAT_MASK) == WORD_TAT_MASK)
			continue;
		assert_true(word_ahead(word, now_ns) == ahead);
		assert_int_equal(word_has_passed(word, now_ns), ahead <= 0);
	}
}

/* A bucket that nobody touches, seen from later and later: in debt, passed, and passed for as long
 * as the table says it takes to be swept. One tick after that it would look as if it lay ahead. */
static void a_passed_word_stays_passed_until_it_must_have_been_swept(void **state)
{
	static const uint64_t swept_within_s[WORD_CLASSES] = { 17, 1099, 70368, 4503599 };

	(void)state;
	random_state = 7;
	for (uint32_t number = 0; number < WORD_CLASSES; number++)
		for (int i = 0; i < 1000; i++) {
			int shift = word_tick_shift(number);
			uint64_t tick_ns = shift < 0 ? 1ULL << -shift : 1;
			uint64_t tat_ns = draw_now() / tick_ns * tick_ns;
			uint64_t word = word_pack(draw_tag(), number, word_ticks(tat_ns, number));
			uint64_t horizon_ns = shift >= 0 ? (uint64_t)HORIZON >> shift
							 : (uint64_t)HORIZON << -shift;

			if ((word & WORD_TAT_MASK) == 0)
				continue;
			assert_false(word_has_passed(word, tat_ns - tick_ns));
			assert_true(word_has_passed(word, tat_ns));
			assert_true(word_has_passed(word, tat_ns + draw(horizon_ns)));
			assert_true(word_has_passed(word, tat_ns + horizon_ns));
			assert_false(word_has_passed(word, tat_ns + horizon_ns + tick_ns));
			assert_true(horizon_ns / 1000000000 >= swept_within_s[number]);
		}
}

/* ---- another class */

/* Lengths of time in 1/512 ns, the finest tick. */
static unsigned __int128 finest(uint64_t ticks, uint32_t number)
{
	return (unsigned __int128)ticks << (WORD_TICK_SHIFT_STEP * number);
}

static void a_debt_never_shrinks_and_grows_by_less_than_a_tick_in_another_class(void **state)
{
	(void)state;
	random_state = 8;
	for (int i = 0; i < DRAWS; i++) {
		uint32_t from = (uint32_t)draw(WORD_CLASSES), to = (uint32_t)draw(WORD_CLASSES);
		uint64_t now_ns = draw_now();
		uint64_t ahead = 1 + draw_sized(WORD_TAT_BITS - 2);
		uint64_t word = word_pack(draw_tag(), from, word_ticks(now_ns, from) + ahead);
		uint64_t debt = word_tat(word, now_ns, to) - word_ticks(now_ns, to);

		ahead = (uint64_t)word_ahead(word, now_ns);
		assert_true(finest(debt, to) >= finest(ahead, from));
		assert_true(finest(debt, to) - finest(ahead, from) < finest(1, to));
		if (from == to)
			assert_int_equal(debt, ahead);
	}
}

static void a_passed_word_owes_nothing_in_any_class(void **state)
{
	(void)state;
	random_state = 9;
	for (int i = 0; i < DRAWS; i++) {
		uint32_t from = (uint32_t)draw(WORD_CLASSES), to = (uint32_t)draw(WORD_CLASSES);
		uint64_t now_ns = draw_now(), past = draw_sized(WORD_TAT_BITS - 1);
		uint64_t word = word_pack(draw_tag(), from, word_ticks(now_ns, from) - past);

		if (word_has_passed(word, now_ns))
			assert_int_equal(word_tat(word, now_ns, to), word_ticks(now_ns, to));
		else
			assert_int_equal(word & WORD_TAT_MASK, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_packed_is_read_back),
		cmocka_unit_test(the_classes_are_as_their_table_says),
		cmocka_unit_test(no_bucket_is_ever_packed_into_a_claim),
		cmocka_unit_test(a_tat_that_would_be_a_claim_is_put_off_by_a_tick),
		cmocka_unit_test(a_claim_keeps_its_tag_and_never_passes),
		cmocka_unit_test(an_empty_word_may_always_be_taken),
		cmocka_unit_test(what_lies_ahead_within_the_horizon_is_told_exactly),
		cmocka_unit_test(a_passed_word_stays_passed_until_it_must_have_been_swept),
		cmocka_unit_test(
			a_debt_never_shrinks_and_grows_by_less_than_a_tick_in_another_class),
		cmocka_unit_test(a_passed_word_owes_nothing_in_any_class),
	};

	return cmocka_run_group_tests_name("word", tests, NULL, NULL);
}
