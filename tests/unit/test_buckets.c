/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * limit/buckets.h as its callers see it, one at a time, under a clock that the test sets: what is
 * admitted and what is left, hooks and bytes together, refund and reset, keys of every length, the
 * sweep, and a table that is full. Threads and kills are in test_buckets_races.c.
 */
#include "test.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/slot.h>

#include "limit/buckets.h"
#include "limit/build.h"
#include "tests/vectors/gcra.h"

enum { SLOTS = 2048, SMALLEST = 128 };

#define MS 1000000ULL
#define SECOND (1000 * MS)
#define START_NS (86400 * SECOND)

static const struct siphash_key secret = { { 1, 2 } };
static uint64_t now_ns;

static uint64_t clock_of_test(void)
{
	return now_ns;
}

struct table {
	struct bucket_slot *memory;
	struct buckets *buckets;
};

static struct table table_new(size_t slots)
{
	struct table table = { .memory = aligned_alloc(64, slots * sizeof(struct bucket_slot)) };

	now_ns = START_NS;
	assert_non_null(table.memory);
	memset(table.memory, 0, slots * sizeof(*table.memory));
	assert_int_equal(buckets_new(table.memory, slots, &secret, now_ns, &table.buckets), 0);
	return table;
}

static void table_free(struct table *table)
{
	buckets_free(table->buckets);
	free(table->memory);
}

static struct gcra_limit build(double rate, uint64_t burst, enum bucket_kind kind)
{
	struct rate_limit wanted = { .rate = rate, .burst = burst };
	struct gcra_limit limit;
	uint64_t longest;

	assert_int_equal(limit_build(&wanted, kind, &limit, &longest), 0);
	return limit;
}

static struct bucket_result charge(struct table *table, struct bucket_charge what)
{
	struct bucket_result result;

	if (!what.key) {
		what.key = "acme";
		what.key_bytes = 4;
	}
	buckets_charge(table->buckets, &what, clock_of_test, &result);
	return result;
}

static bool takes(struct table *table, const struct gcra_limit *limit, const void *key,
		  size_t key_bytes)
{
	return charge(table, (struct bucket_charge){ .key = key,
						     .key_bytes = key_bytes,
						     .hooks = limit,
						     .hook_tokens = 1 })
		       .answer == BUCKETS_ADMITTED;
}

static void every_timetable_is_kept(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(gcra_rows); i++) {
		const struct gcra_row *row = &gcra_rows[i];
		struct gcra_limit limit = build(row->rate, row->burst, BUCKET_WHOLE);
		struct table table = table_new(SMALLEST);

		for (const struct gcra_step *step = row->step; step->times; step++) {
			now_ns = START_NS + step->at_ns;
			for (__u32 time = 0; time < step->times; time++) {
				struct bucket_result result =
					charge(&table, (struct bucket_charge){ .hooks = &limit,
									       .hook_tokens = 1 });

				check_row_equal(row, result.answer == BUCKETS_ADMITTED,
						step->admitted);
				if (!step->admitted)
					check_row_equal(row, gcra_retry_after_ms(result.wait_ns),
							step->retry_after_ms);
			}
		}
		table_free(&table);
	}
}

/* 1000 bytes a second, a burst of 1000. */
static void bytes_are_charged_as_in_the_worked_example(void **state)
{
	static const struct {
		const char *name;
		uint64_t at_ms;
		uint64_t bytes;
		bool admitted;
		uint64_t wait_ms;
		uint64_t remaining;
		uint64_t full_after_ms;
	} rows[] = {
		{ "600 of a full bucket", 0, 600, true, 0, 400, 600 },
		{ "600 more", 0, 600, false, 200, 400, 600 },
		{ "the 400 that are left", 0, 400, true, 0, 0, 1000 },
		{ "one too many", 0, 1, false, 1, 0, 1000 },
		{ "none, of an empty bucket", 0, 0, true, 0, 0, 1000 },
		{ "more than the burst, not yet full", 999, 5000, false, 1, 999, 1 },
		{ "more than the burst, full", 1000, 5000, true, 0, 0, 1000 },
		{ "one after that", 1000, 1, false, 1, 0, 1000 },
		{ "more than the burst again", 1000, 5000, false, 1000, 0, 1000 },
		{ "just before it is full", 1999, 5000, false, 1, 999, 1 },
		{ "when it is full", 2000, 5000, true, 0, 0, 1000 },
	};
	struct gcra_limit limit = build(1000, 1000, BUCKET_WHOLE_BYTES);
	struct table table = table_new(SMALLEST);

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct bucket_result result;

		now_ns = START_NS + rows[i].at_ms * MS;
		result = charge(&table, (struct bucket_charge){ .bytes = &limit,
								.byte_tokens = rows[i].bytes });
		check_row_equal(&rows[i], result.answer,
				rows[i].admitted ? BUCKETS_ADMITTED : BUCKETS_BYTES_REFUSED);
		check_row_equal(&rows[i], result.wait_ns, rows[i].wait_ms * MS);
		check_row_equal(&rows[i], result.bytes_remaining, rows[i].remaining);
		check_row_equal(&rows[i], result.bytes_full_after_ns, rows[i].full_after_ms * MS);
		check_row_equal(&rows[i], result.hooks_remaining == UINT64_MAX, true);
	}
	table_free(&table);
}

/* Hooks: one a second, a burst of 3. Bytes: 100 a second, a burst of 100. All at one instant. */
static void hooks_come_first_and_are_spent_unless_atomic(void **state)
{
	static const struct {
		const char *name;
		uint64_t hooks, bytes;
		bool atomic, look_only;
		enum bucket_answer answer;
		uint64_t wait_ns, hooks_left, bytes_left;
	} rows[] = {
		{ "a look is as if", 1, 30, 0, 1, BUCKETS_ADMITTED, 0, 2, 70 },
		{ "both", 1, 60, 0, 0, BUCKETS_ADMITTED, 0, 2, 40 },
		{ "atomic, refused on bytes", 1, 50, 1, 0, BUCKETS_BYTES_REFUSED, 100 * MS, 2, 40 },
		{ "a look, the same", 1, 50, 1, 1, BUCKETS_BYTES_REFUSED, 100 * MS, 2, 40 },
		{ "a look, not atomic", 1, 50, 0, 1, BUCKETS_BYTES_REFUSED, 100 * MS, 1, 40 },
		{ "refused on bytes, hook spent", 1, 50, 0, 0, BUCKETS_BYTES_REFUSED, 100 * MS, 1,
		  40 },
		{ "the last hook, spent too", 1, 50, 0, 0, BUCKETS_BYTES_REFUSED, 1 * SECOND, 0,
		  40 },
		{ "refused on hooks, bytes as they were", 1, 10, 0, 0, BUCKETS_HOOKS_REFUSED,
		  1 * SECOND, 0, 40 },
		{ "no hook wanted", 0, 10, 0, 0, BUCKETS_ADMITTED, 0, 0, 30 },
		{ "more hooks than the burst", 4, 0, 0, 0, BUCKETS_HOOKS_REFUSED, GCRA_NEVER, 0,
		  30 },
		{ "neither: a look at what is", 0, 0, 0, 0, BUCKETS_ADMITTED, 0, 0, 30 },
	};
	struct gcra_limit hooks = build(1, 3, BUCKET_WHOLE);
	struct gcra_limit bytes = build(100, 100, BUCKET_WHOLE_BYTES);
	struct table table = table_new(SMALLEST);

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct bucket_result result =
			charge(&table, (struct bucket_charge){ .hooks = &hooks,
							       .hook_tokens = rows[i].hooks,
							       .bytes = &bytes,
							       .byte_tokens = rows[i].bytes,
							       .atomic = rows[i].atomic,
							       .look_only = rows[i].look_only });

		check_row_equal(&rows[i], result.answer, rows[i].answer);
		check_row_equal(&rows[i], result.wait_ns, rows[i].wait_ns);
		check_row_equal(&rows[i], result.hooks_remaining, rows[i].hooks_left);
		check_row_equal(&rows[i], result.bytes_remaining, rows[i].bytes_left);
	}
	table_free(&table);
}

static void nothing_is_kept_of_what_is_not_charged(void **state)
{
	struct gcra_limit limit = build(1, 1, BUCKET_WHOLE), none = { 0 };
	struct table table = table_new(SMALLEST);
	struct bucket_result result;

	(void)state;
	result = charge(&table, (struct bucket_charge){ .hook_tokens = 9, .byte_tokens = 9 });
	assert_int_equal(result.answer, BUCKETS_ADMITTED);
	assert_true(result.hooks_remaining == UINT64_MAX && result.bytes_remaining == UINT64_MAX);
	charge(&table, (struct bucket_charge){ .hooks = &none, .hook_tokens = 9 });
	charge(&table,
	       (struct bucket_charge){ .hooks = &limit, .hook_tokens = 1, .look_only = true });
	result = charge(&table, (struct bucket_charge){ .hooks = &limit, .hook_tokens = 2 });
	assert_int_equal(result.answer, BUCKETS_HOOKS_REFUSED);
	assert_true(result.wait_ns == GCRA_NEVER);
	buckets_refund(table.buckets,
		       &(struct bucket_charge){
			       .key = "a", .key_bytes = 1, .hooks = &limit, .hook_tokens = 1 },
		       clock_of_test);
	assert_false(buckets_reset(table.buckets, "a", 1, clock_of_test));
	assert_int_equal(buckets_count(table.buckets), 0);
	assert_int_equal(buckets_room(table.buckets), SMALLEST);
	table_free(&table);
}

static uint64_t draw(uint64_t below)
{
	static uint64_t random_state;
	uint64_t z = random_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (z ^ (z >> 31)) % below;
}

/* Of hooks and bytes together, atomic or not: the same charge, after the wait it was told. */
static void waiting_as_long_as_was_said_is_enough(void **state)
{
	uint64_t refused = 0;

	(void)state;
	for (int round = 0; round < 1000; round++) {
		struct gcra_limit hooks = build((double)(1 + draw(5000)) / (double)(1 + draw(50)),
						1 + draw(20), BUCKET_WHOLE);
		struct gcra_limit bytes =
			build((double)(1 + draw(10000000)), 1 + draw(10000000), BUCKET_WHOLE_BYTES);
		struct table table = table_new(SMALLEST);

		for (int times = 0; times < 30; times++) {
			struct bucket_charge what = { .hooks = &hooks,
						      .hook_tokens = 1 + draw(hooks.burst),
						      .bytes = &bytes,
						      .byte_tokens = draw(bytes.burst * 3 / 2),
						      .atomic = draw(2) };
			struct bucket_result result = charge(&table, what);

			if (result.answer == BUCKETS_ADMITTED)
				continue;
			refused++;
			assert_true(result.wait_ns > 0 && result.wait_ns != GCRA_NEVER);
			now_ns += result.wait_ns;
			assert_int_equal(charge(&table, what).answer, BUCKETS_ADMITTED);
		}
		table_free(&table);
	}
	assert_true(refused > 1000);
}

static void refund_gives_back_what_was_charged_and_no_more(void **state)
{
	struct gcra_limit hooks = build(1, 10, BUCKET_WHOLE);
	struct gcra_limit bytes = build(100, 100, BUCKET_WHOLE_BYTES);
	struct bucket_charge look = { .hooks = &hooks, .bytes = &bytes };
	struct bucket_charge what = { .key = "acme",
				      .key_bytes = 4,
				      .hooks = &hooks,
				      .hook_tokens = 4,
				      .bytes = &bytes,
				      .byte_tokens = 70 };
	struct table table = table_new(SMALLEST);

	(void)state;
	charge(&table, what);
	charge(&table, (struct bucket_charge){ .hooks = &hooks, .hook_tokens = 2 });
	buckets_refund(table.buckets, &what, clock_of_test);
	assert_int_equal(charge(&table, look).hooks_remaining, 8);
	assert_int_equal(charge(&table, look).bytes_remaining, 100);
	buckets_refund(table.buckets, &what, clock_of_test);
	assert_int_equal(charge(&table, look).hooks_remaining, 10);
	/* A full bucket gains nothing: there is not more in it than the burst. */
	buckets_refund(table.buckets, &what, clock_of_test);
	what.hook_tokens = 10;
	assert_int_equal(charge(&table, what).answer, BUCKETS_ADMITTED);
	assert_false(takes(&table, &hooks, NULL, 0));
	/* A body over the burst has cost the burst. */
	now_ns += 100 * SECOND;
	what.byte_tokens = 5000;
	charge(&table, what);
	buckets_refund(table.buckets, &what, clock_of_test);
	assert_int_equal(charge(&table, look).bytes_remaining, 100);
	table_free(&table);
}

static void reset_forgets_the_debts_and_the_slot_goes_when_they_would_have(void **state)
{
	struct gcra_limit hooks = build(1, 5, BUCKET_WHOLE);
	struct gcra_limit bytes = build(100, 100, BUCKET_WHOLE_BYTES);
	struct bucket_charge all = {
		.hooks = &hooks, .hook_tokens = 5, .bytes = &bytes, .byte_tokens = 100
	};
	struct table table = table_new(SMALLEST);
	size_t dropped = 0;

	(void)state;
	for (int times = 0; times < 3; times++) {
		assert_int_equal(charge(&table, all).answer, BUCKETS_ADMITTED);
		assert_int_equal(charge(&table, all).answer, BUCKETS_HOOKS_REFUSED);
		assert_true(buckets_reset(table.buckets, "acme", 4, clock_of_test));
	}
	now_ns += 5 * SECOND;
	for (unsigned shard = 0; shard < BUCKET_SHARDS; shard++)
		dropped += buckets_sweep(table.buckets, shard, clock_of_test, SECOND);
	assert_int_equal(dropped, 0);
	now_ns += 1;
	for (unsigned shard = 0; shard < BUCKET_SHARDS; shard++)
		dropped += buckets_sweep(table.buckets, shard, clock_of_test, SECOND);
	assert_int_equal(dropped, 1);
	assert_int_equal(buckets_count(table.buckets), 0);
	table_free(&table);
}

/* Who has been promised 1000 and is held to 10 from now on owes ten's worth, no more. */
static void debt_beyond_a_lowered_limit_is_brought_back_to_it(void **state)
{
	struct gcra_limit high = build(1, 1000, BUCKET_WHOLE), low = build(1, 10, BUCKET_WHOLE);
	struct gcra_limit bytes = build(1000, 1000, BUCKET_WHOLE_BYTES);
	struct gcra_limit few_bytes = build(1000, 10, BUCKET_WHOLE_BYTES);
	struct table table = table_new(SMALLEST);
	struct bucket_result result;

	(void)state;
	charge(&table, (struct bucket_charge){ .hooks = &high, .hook_tokens = 1000 });
	result = charge(&table, (struct bucket_charge){ .hooks = &low, .hook_tokens = 1 });
	assert_int_equal(result.answer, BUCKETS_HOOKS_REFUSED);
	assert_int_equal(result.wait_ns, SECOND);
	now_ns += SECOND;
	assert_true(takes(&table, &low, NULL, 0));
	charge(&table, (struct bucket_charge){ .bytes = &bytes, .byte_tokens = 1000 });
	result = charge(&table, (struct bucket_charge){ .bytes = &few_bytes, .byte_tokens = 11 });
	assert_int_equal(result.answer, BUCKETS_BYTES_REFUSED);
	assert_int_equal(result.wait_ns, 10 * MS);
	table_free(&table);
}

static void keys_of_every_length_have_buckets_of_their_own(void **state)
{
	static const size_t lengths[] = { 0, 1, 31, 32, 33, 38, 39, 40, 41, 64, 1000, 65536 };
	struct gcra_limit limit = build(1, 1, BUCKET_WHOLE);
	struct table table = table_new(SLOTS);
	uint8_t *key = calloc(1, BUCKET_KEY_MAX);

	(void)state;
	assert_non_null(key);
	for (size_t i = 0; i < COUNT_OF(lengths); i++) {
		buckets_prefetch(table.buckets, key, lengths[i]);
		assert_true(takes(&table, &limit, key, lengths[i]));
		assert_false(takes(&table, &limit, key, lengths[i]));
		if (!lengths[i])
			continue;
		for (size_t at = 0; at < lengths[i]; at += lengths[i] / 7 + 1) {
			key[at] = 1;
			assert_true(takes(&table, &limit, key, lengths[i]));
			assert_false(takes(&table, &limit, key, lengths[i]));
			key[at] = 0;
		}
		assert_false(takes(&table, &limit, key, lengths[i]));
	}
	free(key);
	table_free(&table);
}

static void full_table_says_so_and_drops_nobody_in_debt(void **state)
{
	struct gcra_limit limit = build(1, 2, BUCKET_WHOLE);
	struct table table = table_new(SMALLEST);
	bool held[4 * SMALLEST] = { false };
	size_t count = 0, full = 0;

	(void)state;
	for (uint32_t key = 0; key < COUNT_OF(held); key++) {
		struct bucket_result result =
			charge(&table, (struct bucket_charge){ .key = &key,
							       .key_bytes = sizeof(key),
							       .hooks = &limit,
							       .hook_tokens = 2 });

		held[key] = result.answer == BUCKETS_ADMITTED;
		count += held[key];
		full += result.answer == BUCKETS_FULL;
	}
	assert_int_equal(count, SMALLEST);
	assert_int_equal(full, COUNT_OF(held) - SMALLEST);
	assert_int_equal(buckets_count(table.buckets), SMALLEST);
	now_ns += SECOND / 2;
	for (unsigned shard = 0; shard < BUCKET_SHARDS; shard++)
		assert_int_equal(buckets_sweep(table.buckets, shard, clock_of_test, SECOND), 0);
	for (uint32_t key = 0; key < COUNT_OF(held); key++)
		assert_false(takes(&table, &limit, &key, sizeof(key)));
	/* When their debts have passed, another finds room without a sweep. */
	now_ns += 2 * SECOND;
	assert_true(takes(&table, &limit, "new", 3));
	assert_int_equal(buckets_count(table.buckets), SMALLEST);
	table_free(&table);
}

static void sweep_drops_what_has_passed_within_its_budget(void **state)
{
	struct gcra_limit brief = build(1000, 1, BUCKET_WHOLE), lasting = build(1, 1, BUCKET_WHOLE);
	struct table table = table_new(SLOTS);
	size_t dropped = 0, calls = 0;

	(void)state;
	for (uint32_t key = 0; key < SLOTS / 2; key++)
		assert_true(takes(&table, key % 2 ? &brief : &lasting, &key, sizeof(key)));
	now_ns += MS + 1;
	for (unsigned shard = 0; shard < BUCKET_SHARDS; shard++)
		dropped += buckets_sweep(table.buckets, shard, clock_of_test, SECOND);
	assert_int_equal(dropped, SLOTS / 4);
	assert_int_equal(buckets_count(table.buckets), SLOTS / 4);
	for (uint32_t key = 0; key < SLOTS / 2; key += 2)
		assert_false(takes(&table, &lasting, &key, sizeof(key)));
	now_ns += SECOND;
	/* Passed, and found all the same: only the sweep knows that they can go. */
	for (uint32_t key = 0; key < SLOTS / 2; key += 2)
		assert_true(takes(&table, &brief, &key, sizeof(key)));
	now_ns += SECOND;
	while (buckets_count(table.buckets)) {
		assert_in_range(++calls, 1, SLOTS);
		for (unsigned shard = 0; shard < BUCKET_SHARDS; shard++)
			buckets_sweep(table.buckets, shard, clock_of_test, 0);
	}
	for (size_t i = 0; i < SLOTS; i++)
		assert_int_equal(table.memory[i].hash, SLOT_EMPTY);
	table_free(&table);
}

static void another_run_goes_on_with_the_debts(void **state)
{
	struct gcra_limit limit = build(1, 1, BUCKET_WHOLE);
	struct table table = table_new(SLOTS);
	struct siphash_key other = { { 3, 4 } };

	(void)state;
	for (uint32_t key = 0; key < 500; key++)
		assert_true(takes(&table, &limit, &key, sizeof(key)));
	buckets_free(table.buckets);
	assert_int_equal(buckets_new(table.memory, SLOTS, &secret, now_ns, &table.buckets), 0);
	assert_int_equal(buckets_count(table.buckets), 500);
	for (uint32_t key = 0; key < 500; key++)
		assert_false(takes(&table, &limit, &key, sizeof(key)));
	buckets_free(table.buckets);
	/* Under another secret nobody would find them. */
	assert_int_equal(buckets_new(table.memory, SLOTS, &other, now_ns, &table.buckets), 0);
	assert_int_equal(buckets_count(table.buckets), 0);
	table_free(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_timetable_is_kept),
		cmocka_unit_test(bytes_are_charged_as_in_the_worked_example),
		cmocka_unit_test(hooks_come_first_and_are_spent_unless_atomic),
		cmocka_unit_test(nothing_is_kept_of_what_is_not_charged),
		cmocka_unit_test(waiting_as_long_as_was_said_is_enough),
		cmocka_unit_test(refund_gives_back_what_was_charged_and_no_more),
		cmocka_unit_test(reset_forgets_the_debts_and_the_slot_goes_when_they_would_have),
		cmocka_unit_test(debt_beyond_a_lowered_limit_is_brought_back_to_it),
		cmocka_unit_test(keys_of_every_length_have_buckets_of_their_own),
		cmocka_unit_test(full_table_says_so_and_drops_nobody_in_debt),
		cmocka_unit_test(sweep_drops_what_has_passed_within_its_budget),
		cmocka_unit_test(another_run_goes_on_with_the_debts),
	};

	return cmocka_run_group_tests_name("buckets", tests, NULL, NULL);
}
