/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The life of overrides and of their audit, as long as the disk does what it should. */
#include "overrides_fixture.h"

#include <pthread.h>
#include <time.h>

#include "faulty_vfs.h"

/* Mirrors of the program's own bounds, to go beyond each. */
enum { EXPIRING = 600, MANY = 100000, THREADS = 4, CHANGES = 40 };

static struct place place;

static int make_place(void **state)
{
	(void)state;
	place_make(&place);
	return 0;
}

static int remove_place(void **state)
{
	(void)state;
	place_remove(&place);
	return 0;
}

static void makes_a_file_that_only_its_owner_reads(void **state)
{
	mode_t mask = umask(0);
	struct stat status;
	char log[128];

	(void)state;
	struct override_store *store = must_open(place.path);
	assert_int_equal(put(store, "acme", 1), 0);
	assert_int_equal(stat(place.path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
	(void)snprintf(log, sizeof(log), "%s-wal", place.path);
	assert_int_equal(stat(log, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
	override_store_close(store);
	(void)umask(mask);
}

static void leaves_nothing_but_the_file(void **state)
{
	char command[160];

	(void)state;
	override_store_close(must_open(place.path));
	(void)snprintf(command, sizeof(command), "test \"$(ls -A %s)\" = sluice.db",
		       place.directory);
	assert_int_equal(system(command), 0);
}

static void takes_any_path_for_a_file(void **state)
{
	static const char *const paths[] = { "sluice.db", ":memory:", "file:sluice?mode=memory",
					     "with space" };
	char *before = getcwd(NULL, 0);

	(void)state;
	assert_int_equal(chdir(place.directory), 0);
	for (size_t i = 0; i < COUNT_OF(paths); i++) {
		struct override_store *store = must_open(paths[i]);
		struct view view;

		assert_int_equal(put(store, "acme", 1), 0);
		override_store_close(store);
		assert_int_equal(access(paths[i], F_OK), 0);
		store = must_open(paths[i]);
		look(store, &view);
		assert_int_equal(override_of(&view, "acme"), 1);
		override_store_close(store);
	}
	assert_int_equal(chdir(before), 0);
	free(before);
}

static void keeps_overrides_over_a_restart(void **state)
{
	struct override_store *store = must_open(place.path);
	struct view view;

	(void)state;
	look(store, &view);
	assert_int_equal(view.tenants, 0);
	assert_int_equal(put(store, "acme", 1), 0);
	assert_int_equal(put(store, "acme", 2), 0);
	assert_int_equal(put(store, "globex", 3), 0);
	assert_int_equal(take_away(store, "globex"), 0);
	assert_int_equal(put(store, "initech", 4), 0);
	override_store_close(store);

	store = must_open(place.path);
	look(store, &view);
	assert_int_equal(override_of(&view, "acme"), 2);
	assert_int_equal(override_of(&view, "globex"), 0);
	assert_int_equal(override_of(&view, "initech"), 4);
	assert_int_equal(view.records, 5);
	override_store_close(store);
}

static void says_that_there_was_none_to_remove(void **state)
{
	struct override_store *store = must_open(place.path);
	struct view view;

	(void)state;
	assert_int_equal(take_away(store, "acme"), -ENOENT);
	assert_int_equal(put(store, "acme", 1), 0);
	assert_int_equal(take_away(store, "acme"), 0);
	assert_int_equal(take_away(store, "acme"), -ENOENT);
	look(store, &view);
	assert_int_equal(view.records, 2);
	override_store_close(store);
}

static void refuses_what_it_could_not_read_again(void **state)
{
	static const char *const tenants[] = { "", "bad.tenant", "a b", "\xff", "x/y" };
	struct override_store *store = must_open(place.path);
	struct trouble trouble;
	struct view view;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(tenants); i++)
		assert_int_equal(put(store, tenants[i], 1), -EINVAL);
	assert_int_equal(put_until(store, "acme", 1, -1, &trouble), -EINVAL);
	assert_true(trouble.cause[0] != '\0');
	look(store, &view);
	assert_int_equal(view.records, 0);
	override_store_close(store);
}

/* ---- limits and times come back as they were */

static double draw_rate(uint64_t *random)
{
	*random = *random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)((*random >> 38) + 1) / (double)(1ULL << ((*random >> 20) % 20));
}

static struct limits_entry last_entry;

static int keep_entry(const struct limits_entry *entry, void *data)
{
	(void)data;
	last_entry = *entry;
	return 0;
}

static void gives_back_every_rate_to_the_last_bit(void **state)
{
	static const double simple[] = { 0.1, 0.3, 1e-3, 2, 1e8, 1.0 / 3 };
	struct override_store *store = must_open(place.path);
	struct override_visitor visitor = { .entry = keep_entry };
	struct override_change change = { .actor = { .kind = ACTOR_CONFIG }, .now_ms = NOW_MS };
	uint64_t random = 1;
	struct trouble trouble;

	(void)state;
	for (size_t i = 0; i < 300; i++) {
		struct limits_entry entry = { .tenant = "acme", .expires_at_ms = INT64_MAX };
		char message[LIMIT_MESSAGE_MAX];

		entry.limit.hooks.rate = i < COUNT_OF(simple) ? simple[i] : draw_rate(&random);
		entry.limit.hooks.burst = 7;
		assert_int_equal(tenant_limit_build(&entry.limit, message), 0);
		assert_int_equal(override_store_put(store, &entry, &change, &trouble), 0);
		assert_int_equal(override_store_load(store, &visitor, &trouble), 0);
		assert_memory_equal(&last_entry, &entry, sizeof(entry));
	}
	override_store_close(store);
}

static int stop_at_once(const struct limits_entry *entry, void *data)
{
	(void)entry;
	++*(int *)data;
	return -ECANCELED;
}

static void ends_a_load_when_the_visitor_says_so(void **state)
{
	struct override_store *store = must_open(place.path);
	int visits = 0;
	struct override_visitor visitor = { .entry = stop_at_once, .data = &visits };
	struct trouble trouble;

	(void)state;
	assert_int_equal(put(store, "acme", 1), 0);
	assert_int_equal(put(store, "globex", 1), 0);
	assert_int_equal(override_store_load(store, &visitor, &trouble), -ECANCELED);
	assert_int_equal(visits, 1);
	assert_int_equal(override_store_load(store, &visitor, &trouble), -ECANCELED);
	assert_int_equal(visits, 2);
	assert_int_equal(put(store, "acme", 2), 0);
	override_store_close(store);
}

/* ---- rows that cannot be read */

static const struct bad_row {
	const char *name;
	const char *values; /* tenant, rate_limit, expires_at_ms */
	const char *why;    /* begins with */
} bad_rows[] = {
	{ "a tenant id with a dot", "'a.b', '{\"rate\":1,\"burst\":1}', 0", "the tenant id must" },
	{ "an empty tenant id", "'', '{\"rate\":1,\"burst\":1}', 0", "the tenant id must" },
	{ "a tenant id of 65 bytes", "printf('%.65c', 'x'), '{\"rate\":1,\"burst\":1}', 0",
	  "the tenant id must" },
	{ "no tenant id", "NULL, '{\"rate\":1,\"burst\":1}', 0", "the tenant id must" },
	{ "a tenant id of bytes", "x'6162', '{\"rate\":1,\"burst\":1}', 0", "the tenant id must" },
	{ "a tenant id with a zero", "'a' || char(0) || 'b', '{\"rate\":1,\"burst\":1}', 0",
	  "the tenant id must" },
	{ "no limit", "'bad', NULL, 0", "tenant bad: body must be a JSON object" },
	{ "an empty limit", "'bad', '', 0", "tenant bad: body must be a JSON object" },
	{ "a limit of bytes", "'bad', x'7b7d', 0", "tenant bad: body must be a JSON object" },
	{ "half a limit", "'bad', '{\"rate\":1,\"bur', 0", "tenant bad: body must be a JSON" },
	{ "a limit that is a list", "'bad', '[1]', 0", "tenant bad: body must be a JSON object" },
	{ "a limit without burst", "'bad', '{\"rate\":1}', 0", "tenant bad: burst is required" },
	{ "a rate below 0", "'bad', '{\"rate\":-1,\"burst\":1}', 0", "tenant bad: rate must be" },
	{ "a rate beyond all bounds", "'bad', '{\"rate\":1e300,\"burst\":1}', 0", "tenant bad: " },
	{ "a burst of text", "'bad', '{\"rate\":1,\"burst\":\"1\"}', 0", "tenant bad: burst must" },
	{ "a time before all times", "'bad', '{\"rate\":1,\"burst\":1}', -1",
	  "tenant bad: expires_at_ms must be" },
	{ "a time that is text", "'bad', '{\"rate\":1,\"burst\":1}', 'soon'",
	  "tenant bad: expires_at_ms must be" },
	{ "a time that is a fraction", "'bad', '{\"rate\":1,\"burst\":1}', 1.5",
	  "tenant bad: expires_at_ms must be" },
	{ "no time", "'bad', '{\"rate\":1,\"burst\":1}', NULL",
	  "tenant bad: expires_at_ms must be" },
	{ "a time that is over, and no limit", "'bad', '{}', 1", "tenant bad: rate is required" },
};

static void skips_a_row_that_cannot_be_read_and_keeps_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(bad_rows); i++) {
		const struct bad_row *row = &bad_rows[i];
		struct override_store *store = must_open(place.path);
		struct view view;
		char sql[256];

		(void)put(store, "good", 1);
		override_store_close(store);
		(void)snprintf(sql, sizeof(sql),
			       "INSERT INTO overrides (tenant, rate_limit, expires_at_ms)"
			       " VALUES (%s)",
			       row->values);
		run_sql(place.path, sql);
		for (int again = 0; again < 2; again++) {
			store = must_open(place.path);
			check_row_equal(row, expire(store, NOW_MS), 0);
			look(store, &view);
			check_row_equal(row, view.skipped, 1);
			check_row(row, !strncmp(view.why, row->why, strlen(row->why)));
			check_row_equal(row, override_of(&view, "good"), 1);
			override_store_close(store);
		}
		run_sql(place.path, "DELETE FROM overrides WHERE tenant IS NOT 'good'");
	}
}

static void puts_and_removes_over_a_row_that_cannot_be_read(void **state)
{
	static const char insert[] =
		"INSERT INTO overrides (tenant, rate_limit) VALUES ('a', 'x'), ('b', 'x')";
	struct override_store *store;
	struct view view;

	(void)state;
	override_store_close(must_open(place.path));
	run_sql(place.path, insert);
	store = must_open(place.path);
	look(store, &view);
	assert_int_equal(view.skipped, 2);
	assert_int_equal(put(store, "a", 3), 0);
	assert_int_equal(take_away(store, "b"), 0);
	look(store, &view);
	assert_int_equal(view.skipped, 0);
	assert_int_equal(override_of(&view, "a"), 3);
	override_store_close(store);
}

/* ---- expiry */

static void note_expired(const char *tenant, void *data)
{
	unsigned char *seen = data;
	int number = atoi(tenant + 1);

	assert_int_equal(*tenant, 't');
	assert_in_range(number, 0, EXPIRING - 1);
	seen[number]++;
}

static void count_expired(const char *path, int wanted, int at_ms)
{
	char sql[512];

	(void)snprintf(sql, sizeof(sql),
		       "CREATE TEMP TABLE t (ok CHECK (ok)); INSERT INTO t SELECT count(*) = %d"
		       " FROM audit WHERE action = 'expire' AND actor_kind = 'ttl' AND actor = ''"
		       " AND at_ms = %d AND before LIKE '{\"rate\":%%,\"burst\":5}'"
		       " AND after IS NULL",
		       wanted, at_ms);
	run_sql(path, sql);
}

static void takes_away_what_has_expired_and_nothing_else(void **state)
{
	struct override_store *store = must_open(place.path);
	unsigned char seen[EXPIRING] = { 0 };
	struct trouble trouble;
	struct view view;

	(void)state;
	override_store_close(store);
	run_sql(place.path,
		"INSERT INTO overrides (tenant, rate_limit, expires_at_ms)"
		" WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 599)"
		" SELECT 't' || i, '{\"rate\":1,\"burst\":5}', 1 + i FROM n");
	store = must_open(place.path);
	assert_int_equal(put_until(store, "now", 1, NOW_MS, &trouble), 0);
	assert_int_equal(put_until(store, "later", 2, NOW_MS + 1, &trouble), 0);
	assert_int_equal(put_until(store, "never", 3, 0, &trouble), 0);

	assert_int_equal(override_store_expire(store, NOW_MS - 1, note_expired, seen, &trouble), 0);
	count_expired(place.path, EXPIRING, NOW_MS - 1);
	for (int i = 0; i < EXPIRING; i++)
		assert_int_equal(seen[i], 1);
	assert_int_equal(expire(store, NOW_MS), 0);
	assert_int_equal(expire(store, NOW_MS), 0);
	look(store, &view);
	assert_int_equal(override_of(&view, "now"), 0);
	assert_int_equal(override_of(&view, "later"), 2);
	assert_int_equal(override_of(&view, "never"), 3);
	override_store_close(store);
	count_expired(place.path, 1, NOW_MS);
}

/* ---- threads, durability, size */

static void *change_often(void *data)
{
	struct override_store *store = data;
	static int next;
	int number = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
	char tenant[16];

	(void)snprintf(tenant, sizeof(tenant), "tenant%d", number);
	for (unsigned i = 1; i <= CHANGES; i++) {
		struct view view;

		if (put(store, tenant, i) != 0 || (i % 8 == 0 && take_away(store, tenant) != 0) ||
		    expire(store, NOW_MS) != 0)
			abort();
		if (i % 8 == 4) {
			struct override_visitor visitor = { see_override, NULL, &view };
			struct trouble trouble;

			memset(&view, 0, sizeof(view));
			if (override_store_load(store, &visitor, &trouble) != 0 ||
			    override_of(&view, tenant) != i)
				abort();
		}
	}
	return NULL;
}

static void is_used_by_many_threads_at_once(void **state)
{
	struct override_store *store = must_open(place.path);
	pthread_t thread[THREADS];
	struct view view;

	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, change_often, store), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	look(store, &view);
	assert_int_equal(view.records, THREADS * (CHANGES + CHANGES / 8));
	assert_int_equal(view.tenants, THREADS);
	override_store_close(store);
}

static void has_synced_what_it_acknowledges(void **state)
{
	struct override_store *store = must_open(place.path);

	(void)state;
	for (unsigned i = 1; i <= 50; i++) {
		long steps = disk.steps;

		assert_int_equal(put(store, "acme", i), 0);
		assert_true(disk.steps > steps && !disk.unsynced);
		assert_int_equal(take_away(store, "acme"), 0);
		assert_false(disk.unsynced);
	}
	override_store_close(store);
}

static int count_entry(const struct limits_entry *entry, void *data)
{
	(void)entry;
	++*(int *)data;
	return 0;
}

static void loads_a_hundred_thousand_overrides(void **state)
{
	int count = 0;
	struct override_visitor visitor = { .entry = count_entry, .data = &count };
	struct timespec start, opened, loaded;
	struct override_store *store;
	struct trouble trouble;

	(void)state;
	override_store_close(must_open(place.path));
	run_sql(place.path,
		"INSERT INTO overrides (tenant, rate_limit, expires_at_ms)"
		" WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99999)"
		" SELECT 'tenant-' || i, '{\"rate\":0.5,\"burst\":2}', 0 FROM n");
	(void)clock_gettime(CLOCK_MONOTONIC, &start);
	store = must_open(place.path);
	(void)clock_gettime(CLOCK_MONOTONIC, &opened);
	assert_int_equal(override_store_load(store, &visitor, &trouble), 0);
	(void)clock_gettime(CLOCK_MONOTONIC, &loaded);
	assert_int_equal(count, MANY);
	print_message("# %d overrides: opened and checked in %.0f ms, loaded in %.0f ms\n", MANY,
		      (double)(opened.tv_sec - start.tv_sec) * 1e3 +
			      (double)(opened.tv_nsec - start.tv_nsec) / 1e6,
		      (double)(loaded.tv_sec - opened.tv_sec) * 1e3 +
			      (double)(loaded.tv_nsec - opened.tv_nsec) / 1e6);
	override_store_close(store);
}

static void closes_what_was_never_opened(void **state)
{
	(void)state;
	override_store_close(NULL);
}

#define in_a_place(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_a_place(makes_a_file_that_only_its_owner_reads),
		in_a_place(leaves_nothing_but_the_file),
		in_a_place(takes_any_path_for_a_file),
		in_a_place(keeps_overrides_over_a_restart),
		in_a_place(says_that_there_was_none_to_remove),
		in_a_place(refuses_what_it_could_not_read_again),
		in_a_place(gives_back_every_rate_to_the_last_bit),
		in_a_place(ends_a_load_when_the_visitor_says_so),
		in_a_place(skips_a_row_that_cannot_be_read_and_keeps_it),
		in_a_place(puts_and_removes_over_a_row_that_cannot_be_read),
		in_a_place(takes_away_what_has_expired_and_nothing_else),
		in_a_place(is_used_by_many_threads_at_once),
		in_a_place(has_synced_what_it_acknowledges),
		in_a_place(loads_a_hundred_thousand_overrides),
		cmocka_unit_test(closes_what_was_never_opened),
	};

	disk_install();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
