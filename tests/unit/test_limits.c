/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which limit is in force for whom: precedence, overrides and their ends, snapshots that do not
 * change, and readers that exchange theirs while a writer publishes new ones.
 */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "limit/limits.h"

/* An entry whose burst tells it from others. */
static struct limits_entry entry_of(const char *tenant, uint64_t burst, int64_t expires_at_ms)
{
	struct limits_entry entry = { .expires_at_ms = expires_at_ms };
	char message[LIMIT_MESSAGE_MAX];

	snprintf(entry.tenant, sizeof(entry.tenant), "%s", tenant);
	entry.limit.hooks.rate = 1;
	entry.limit.hooks.burst = burst;
	assert_int_equal(tenant_limit_build(&entry.limit, message), 0);
	return entry;
}

static struct limits *sample(void)
{
	struct limits_entry configured[] = { entry_of("b", 11, 0), entry_of("a", 10, 0),
					     entry_of("d", 13, 0) };
	struct limits_entry overrides[] = { entry_of("c", 22, 0), entry_of("b", 21, 1000),
					    entry_of("e", 24, 500) };
	struct limits_entry fallback = entry_of("", 1, 0);
	struct limits *limits;

	configured[1].limit.max_queue = 7;
	assert_int_equal(limits_new(&fallback.limit, configured, 3, overrides, 3, &limits), 0);
	return limits;
}

static const struct find_row {
	const char *name;
	const char *tenant;
	int64_t wall_ms;
	enum limit_source source;
	uint64_t burst;
} find_rows[] = {
	{ "configured", "a", 0, LIMIT_FROM_CONFIG, 10 },
	{ "override over configured", "b", 999, LIMIT_FROM_OVERRIDE, 21 },
	{ "an override ends when its time comes", "b", 1000, LIMIT_FROM_CONFIG, 11 },
	{ "override without end", "c", INT64_MAX, LIMIT_FROM_OVERRIDE, 22 },
	{ "override over the default", "e", 499, LIMIT_FROM_OVERRIDE, 24 },
	{ "then the default again", "e", 500, LIMIT_FROM_DEFAULT, 1 },
	{ "unknown", "x", 0, LIMIT_FROM_DEFAULT, 1 },
	{ "empty", "", 0, LIMIT_FROM_DEFAULT, 1 },
	{ "a prefix of an id", "bb", 0, LIMIT_FROM_DEFAULT, 1 },
};

static void the_first_that_is_found_applies_whole(void **state)
{
	struct limits *limits = sample();

	(void)state;
	for (size_t i = 0; i < COUNT_OF(find_rows); i++) {
		const struct find_row *row = &find_rows[i];
		enum limit_source source;
		const struct tenant_limit *limit = limits_find(
			limits, row->tenant, strlen(row->tenant), row->wall_ms, &source);

		check_row(row, limit);
		check_row_equal(row, limit->hooks.burst, row->burst);
		check_row_equal(row, source, row->source);
		check_row_equal(row, limit->max_queue, row->burst == 10 ? 7 : 0);
	}
	limits_release(limits);
}

static void an_id_need_not_end_and_may_be_too_long(void **state)
{
	struct limits *limits = sample();
	enum limit_source source;
	char longer[1000];

	(void)state;
	memset(longer, 'a', sizeof(longer));
	assert_int_equal(limits_find(limits, longer, 1, 0, &source)->hooks.burst, 10);
	for (size_t length = 2; length <= sizeof(longer); length++)
		assert_int_equal(limits_find(limits, longer, length, 0, &source)->hooks.burst, 1);
	limits_release(limits);
}

static void without_a_default_others_are_unlimited(void **state)
{
	struct limits_entry one = entry_of("a", 5, 0);
	enum limit_source source;
	struct limits *limits;

	(void)state;
	assert_int_equal(limits_new(NULL, &one, 1, NULL, 0, &limits), 0);
	assert_null(limits_default(limits));
	assert_null(limits_find(limits, "b", 1, 0, &source));
	assert_int_equal(source, LIMIT_FROM_NONE);
	assert_non_null(limits_find(limits, "a", 1, 0, &source));
	limits_release(limits);
	limits_release(NULL);
	assert_string_equal(limit_source_name(LIMIT_FROM_NONE), "none");
	assert_string_equal(limit_source_name(LIMIT_FROM_DEFAULT), "default");
	assert_string_equal(limit_source_name(LIMIT_FROM_CONFIG), "config");
	assert_string_equal(limit_source_name(LIMIT_FROM_OVERRIDE), "override");
}

static void a_tenant_stands_once_in_a_list(void **state)
{
	struct limits_entry twice[] = { entry_of("a", 1, 0), entry_of("b", 1, 0),
					entry_of("a", 2, 0) };
	struct limits *limits = NULL;

	(void)state;
	assert_int_equal(limits_new(NULL, twice, 3, NULL, 0, &limits), -EEXIST);
	assert_int_equal(limits_new(NULL, NULL, 0, twice, 3, &limits), -EEXIST);
	assert_null(limits);
}

struct listing {
	char text[256];
	int stop_after;
};

static int list(const struct limits_entry *entry, enum limit_source source, void *data)
{
	struct listing *listing = data;

	sprintf(listing->text + strlen(listing->text), "%s=%d/%s ", entry->tenant,
		(int)entry->limit.hooks.burst, limit_source_name(source));
	return --listing->stop_after == 0 ? 5 : 0;
}

static void all_are_listed_in_order(void **state)
{
	static const struct {
		const char *name;
		int64_t wall_ms;
	} rows[] = {
		{ "a=10/config b=21/override c=22/override d=13/config e=24/override ", 0 },
		{ "a=10/config b=21/override c=22/override d=13/config ", 500 },
		{ "a=10/config b=11/config c=22/override d=13/config ", 1000 },
	};
	struct limits *limits = sample();

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct listing listing = { .text = "" };

		check_row_equal(&rows[i], limits_each(limits, rows[i].wall_ms, list, &listing), 0);
		check_row_text(&rows[i], listing.text, rows[i].name);
	}
	struct listing listing = { .stop_after = 2 };

	assert_int_equal(limits_each(limits, 0, list, &listing), 5);
	assert_string_equal(listing.text, "a=10/config b=21/override ");
	limits_release(limits);
}

static void check_listed(const struct limits *limits, const char *wanted)
{
	struct listing listing = { .text = "" };

	assert_int_equal(limits_each(limits, 0, list, &listing), 0);
	assert_string_equal(listing.text, wanted);
}

static void a_change_is_another_snapshot(void **state)
{
	static const char before[] =
		"a=10/config b=21/override c=22/override d=13/config e=24/override ";
	struct limits_entry entry = entry_of("d", 99, 0), replaced = entry_of("c", 77, 0);
	struct limits *first = sample(), *second, *third, *fourth;

	(void)state;
	assert_int_equal(limits_with_override(first, &entry, &second), 0);
	assert_int_equal(limits_with_override(second, &replaced, &third), 0);
	assert_int_equal(limits_without_override(third, "b", &fourth), 0);
	check_listed(first, before);
	check_listed(second,
		     "a=10/config b=21/override c=22/override d=99/override e=24/override ");
	check_listed(third, "a=10/config b=21/override c=77/override d=99/override e=24/override ");
	check_listed(fourth, "a=10/config b=11/config c=77/override d=99/override e=24/override ");
	assert_int_equal(limits_override_count(fourth), 3);
	assert_int_equal(limits_without_override(fourth, "b", &third), -ENOENT);
	assert_int_equal(limits_without_override(fourth, "a", &third), -ENOENT);
	/* In an order that frees what others share. */
	limits_release(second);
	limits_release(first);
	check_listed(fourth, "a=10/config b=11/config c=77/override d=99/override e=24/override ");
	limits_release(third);
	assert_int_equal(limits_override(fourth, "c", 1, 0)->limit.hooks.burst, 77);
	assert_null(limits_override(fourth, "a", 1, 0));
	assert_null(limits_override(fourth, "e", 1, 500));
	limits_release(fourth);
}

static void pages_put_together_are_all(void **state)
{
	static const struct {
		const char *name;
		const char *after;
		size_t most;
		const char *wanted;
	} rows[] = {
		{ "the first", "", 1, "a=10/config " },
		{ "the first two", "", 2, "a=10/config b=21/override " },
		{ "after one", "b", 2, "c=22/override d=13/config " },
		{ "after one that is not there", "bb", 2, "c=22/override d=13/config " },
		{ "all that are left", "c", 9, "d=13/config e=24/override " },
		{ "none is left", "e", 9, "" },
		{ "none is wanted", "", 0, "" },
	};
	struct limits *limits = sample();

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct listing listing = { .text = "" };

		check_row_equal(&rows[i],
				limits_page(limits, 0, rows[i].after, rows[i].most, list, &listing),
				0);
		check_row_text(&rows[i], listing.text, rows[i].wanted);
	}
	limits_release(limits);
}

struct walk {
	char last[TENANT_ID_MAX + 1];
	size_t count;
	bool is_ordered;
};

static int walk_on(const struct limits_entry *entry, enum limit_source source, void *data)
{
	struct walk *walk = data;

	(void)source;
	walk->is_ordered &= strcmp(walk->last, entry->tenant) < 0;
	strcpy(walk->last, entry->tenant);
	walk->count++;
	return 0;
}

/* Of every size, over tenants in an order that is none. */
static void pages_of_any_size_leave_nobody_out(void **state)
{
	enum { MANY = 700 };
	static struct limits_entry entries[MANY];
	struct limits *limits;

	(void)state;
	for (int i = 0; i < MANY; i++) {
		char name[16];

		sprintf(name, "t%d", i * 7919 % 10007);
		entries[i] = entry_of(name, 1, 0);
	}
	/* Two in three are configured, two in three overridden. */
	assert_int_equal(limits_new(NULL, entries, MANY * 2 / 3, entries + MANY / 3,
				    MANY - MANY / 3, &limits),
			 0);
	for (size_t most = 1; most <= MANY + 1; most += 1 + most / 8) {
		struct walk walk = { .is_ordered = true };
		size_t before;

		do {
			char after[TENANT_ID_MAX + 1];

			before = walk.count;
			strcpy(after, walk.last);
			assert_int_equal(limits_page(limits, 0, after, most, walk_on, &walk), 0);
			assert_true(walk.count - before <= most);
		} while (walk.count - before == most);
		assert_int_equal(walk.count, MANY);
		assert_true(walk.is_ordered);
	}
	limits_release(limits);
}

static void what_has_expired_goes_at_once(void **state)
{
	struct limits *limits = sample(), *later;

	(void)state;
	assert_int_equal(limits_next_expiry(limits, 0), 500);
	assert_int_equal(limits_next_expiry(limits, 500), 1000);
	assert_int_equal(limits_next_expiry(limits, 1000), 0);
	assert_int_equal(limits_without_expired(limits, 499, &later), -ENOENT);
	assert_int_equal(limits_without_expired(limits, 1000, &later), 0);
	assert_int_equal(limits_override_count(later), 1);
	check_listed(later, "a=10/config b=11/config c=22/override d=13/config ");
	limits_release(limits);
	limits_release(later);
}

static void a_reload_keeps_the_overrides(void **state)
{
	struct limits_entry configured = entry_of("z", 50, 0);
	struct limits *limits = sample(), *reloaded;

	(void)state;
	assert_int_equal(limits_new(NULL, &configured, 1, NULL, 0, &reloaded), 0);
	limits_take_overrides(reloaded, limits);
	limits_release(limits);
	check_listed(reloaded, "b=21/override c=22/override e=24/override z=50/config ");
	assert_null(limits_default(reloaded));
	limits_release(reloaded);
}

static double milliseconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void a_hundred_thousand_of_each_are_kept(void **state)
{
	enum { MANY = 100000, CHANGES = 200 };
	struct limits_entry *entries = calloc(MANY, sizeof(*entries)), one;
	struct limits *limits, *next;
	enum limit_source source;
	double begun;
	char name[24];

	(void)state;
	assert_non_null(entries);
	one = entry_of("", 1, 0);
	for (int i = 0; i < MANY; i++) {
		entries[i] = one;
		entries[i].limit.hooks.burst = (uint64_t)i;
		sprintf(entries[i].tenant, "tenant-%d", i);
	}
	assert_int_equal(limits_new(NULL, entries, MANY, entries, MANY, &limits), 0);
	begun = milliseconds_now();
	for (int i = 0; i < CHANGES; i++) {
		one.limit.hooks.burst = 1000000;
		sprintf(one.tenant, "tenant-%d", i);
		assert_int_equal(limits_with_override(limits, &one, &next), 0);
		limits_release(limits);
		limits = next;
	}
	print_message("# %.2f ms to change one of 100 000 overrides\n",
		      (milliseconds_now() - begun) / CHANGES);
	begun = milliseconds_now();
	for (int i = 0; i < MANY; i++) {
		size_t length = (size_t)sprintf(name, "tenant-%d", i);
		const struct tenant_limit *found = limits_find(limits, name, length, 0, &source);

		assert_non_null(found);
		assert_int_equal(found->hooks.burst, i < CHANGES ? 1000000 : i);
	}
	print_message("# %.0f ns to name and find one\n",
		      (milliseconds_now() - begun) * 1e6 / MANY);
	/* From empty: the table grows. */
	limits_release(limits);
	assert_int_equal(limits_new(NULL, NULL, 0, NULL, 0, &limits), 0);
	for (int i = 0; i < 3000; i++) {
		assert_int_equal(limits_with_override(limits, &entries[i], &next), 0);
		limits_release(limits);
		limits = next;
	}
	assert_int_equal(limits_override_count(limits), 3000);
	for (int i = 2999; i >= 0; i--) {
		assert_int_equal(limits_without_override(limits, entries[i].tenant, &next), 0);
		limits_release(limits);
		limits = next;
	}
	assert_int_equal(limits_override_count(limits), 0);
	limits_release(limits);
	free(entries);
}

/* ---- many threads */

enum { READERS = 4, ROUNDS = 3000 };

struct stress {
	struct limits_slot slot;
	atomic_bool over;
	atomic_int torn;
};

/* Both overrides are exchanged together, so a snapshot has the same burst in both, and a reader's
 * bursts never go back. */
static void *read_on(void *data)
{
	struct stress *stress = data;
	struct limits *mine = NULL;
	uint64_t seen = 0;

	do {
		enum limit_source source;
		uint64_t a, b;

		(void)limits_slot_refresh(&stress->slot, &mine);
		a = limits_find(mine, "a", 1, 0, &source)->hooks.burst;
		b = limits_find(mine, "b", 1, 0, &source)->hooks.burst;
		if (a != b || a < seen)
			atomic_fetch_add(&stress->torn, 1);
		seen = a;
	} while (!atomic_load(&stress->over));
	limits_release(mine);
	return NULL;
}

static void readers_see_whole_snapshots_in_their_order(void **state)
{
	struct limits_entry a = entry_of("a", 1, 0), b = entry_of("b", 1, 0);
	struct stress stress = { .over = false };
	struct limits *limits, *half, *next;
	pthread_t threads[READERS];

	(void)state;
	assert_int_equal(limits_new(NULL, &a, 1, &b, 1, &limits), 0);
	limits_slot_init(&stress.slot, limits);
	for (int i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_on, &stress), 0);
	for (uint64_t round = 2; round < ROUNDS; round++) {
		a.limit.hooks.burst = b.limit.hooks.burst = round;
		limits = limits_slot_hold(&stress.slot);
		assert_int_equal(limits_with_override(limits, &a, &half), 0);
		assert_int_equal(limits_with_override(half, &b, &next), 0);
		limits_release(half);
		limits_release(limits);
		limits_slot_set(&stress.slot, next);
	}
	atomic_store(&stress.over, true);
	for (int i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&stress.torn), 0);
	limits_slot_done(&stress.slot);
}

static void a_refresh_says_whether_there_was_a_change(void **state)
{
	struct limits_slot slot;
	struct limits *mine = NULL;

	(void)state;
	limits_slot_init(&slot, sample());
	assert_true(limits_slot_refresh(&slot, &mine));
	assert_false(limits_slot_refresh(&slot, &mine));
	limits_slot_set(&slot, sample());
	assert_true(limits_slot_refresh(&slot, &mine));
	limits_slot_set(&slot, limits_hold(mine));
	assert_false(limits_slot_refresh(&slot, &mine));
	limits_release(mine);
	limits_slot_done(&slot);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_that_is_found_applies_whole),
		cmocka_unit_test(an_id_need_not_end_and_may_be_too_long),
		cmocka_unit_test(without_a_default_others_are_unlimited),
		cmocka_unit_test(a_tenant_stands_once_in_a_list),
		cmocka_unit_test(all_are_listed_in_order),
		cmocka_unit_test(a_change_is_another_snapshot),
		cmocka_unit_test(pages_put_together_are_all),
		cmocka_unit_test(pages_of_any_size_leave_nobody_out),
		cmocka_unit_test(what_has_expired_goes_at_once),
		cmocka_unit_test(a_reload_keeps_the_overrides),
		cmocka_unit_test(a_hundred_thousand_of_each_are_kept),
		cmocka_unit_test(readers_see_whole_snapshots_in_their_order),
		cmocka_unit_test(a_refresh_says_whether_there_was_a_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
