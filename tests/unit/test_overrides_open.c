/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files that must not be opened: each is refused with a cause and a remedy, is left as it was, and
 * can be opened once what was wrong has been put right.
 */
#include "overrides_fixture.h"

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

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

static void must_refuse(const char *path, int err, const char *name)
{
	const struct {
		const char *name;
	} row = { name };
	struct override_store *store = NULL;
	struct trouble trouble;

	check_row_equal(&row, try_open(path, &store, &trouble), err);
	check_row(&row, store == NULL);
	check_row(&row, strstr(trouble.cause, path) != NULL);
	check_row(&row, trouble.remedy[0] != '\0');
	check_row(&row, strchr(trouble.cause, '\n') == NULL);
}

/* A database of a few hundred pages, closed. */
static unsigned char *make_database(size_t *size)
{
	struct override_store *store = must_open(place.path);

	assert_int_equal(put(store, "acme", 1), 0);
	override_store_close(store);
	run_sql(place.path,
		"INSERT INTO overrides (tenant, rate_limit, expires_at_ms)"
		" WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
		" SELECT 'tenant-' || i, '{\"rate\":0.5,\"burst\":2}', i FROM n;"
		"INSERT INTO audit (tenant, after)"
		" WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
		" SELECT 'tenant-' || i, '{\"rate\":0.5,\"burst\":2}' FROM n");
	return read_file(place.path, size);
}

static void must_be_unchanged(const unsigned char *bytes, size_t size, const char *name)
{
	const struct {
		const char *name;
	} row = { name };
	size_t now_size;
	unsigned char *now = read_file(place.path, &now_size);

	check_row_equal(&row, now_size, size);
	check_row(&row, !memcmp(now, bytes, size));
	free(now);
}

/* ---- what stands in the file */

static const struct damage {
	const char *name;
	const char *text; /* written at at */
	long at;          /* from the beginning; -1: behind cut */
	long cut;         /* the size that is left; 0: all of it; -1: nothing */
} damages[] = {
	{ "another magic", "SQLite format 4", 0, 0 },
	{ "a file of text", "rate_limits:\n  default: {rate: 1, burst: 2}\n", 0, -1 },
	{ "an empty file", "", 0, -1 },
	{ "half a header", "", 0, 50 },
	{ "a header and nothing else", "", 0, 100 },
	{ "half a page", "", 0, 2048 },
	{ "one page", "", 0, 4096 },
	{ "cut at a page", "", 0, 40 * 4096 },
	{ "cut within a page", "", 0, 40 * 4096 + 1000 },
	{ "an impossible page size", "\x00\x01", 16, 0 },
	{ "a future file format", "\x09\x09", 18, 0 },
	{ "an impossible schema format", "\x00\x00\x00\x7f", 44, 0 },
	{ "another application's mark", "abcd", 68, 0 },
	{ "a schema in shreds", "CREATE GARBAGE overrides (", 4000, 0 },
};

static void refuses_damage_in_the_header_and_missing_pages(void **state)
{
	size_t size;
	unsigned char *bytes = make_database(&size);

	(void)state;
	for (size_t i = 0; i < COUNT_OF(damages); i++) {
		const struct damage *row = &damages[i];
		unsigned char *damaged = malloc(size + 64);
		size_t length = strlen(row->text), left = row->cut ? (size_t)row->cut : size;

		if (row->at == 16 || row->at == 18)
			length = 2;
		if (row->at == 44)
			length = 4;
		if (row->cut < 0)
			left = length;
		memcpy(damaged, bytes, size);
		memcpy(damaged + row->at, row->text, length);
		write_file(place.path, damaged, left);
		must_refuse(place.path, -EUCLEAN, row->name);
		must_be_unchanged(damaged, left, row->name);
		free(damaged);
	}
	write_file(place.path, bytes, size);
	override_store_close(must_open(place.path));
	free(bytes);
}

static void refuses_a_page_of_other_bytes_wherever_it_is(void **state)
{
	size_t size, page;
	unsigned char *bytes = make_database(&size);
	char name[32];

	(void)state;
	assert_true(size > 100 * 4096);
	for (page = 0; page < size / 4096; page++) {
		unsigned char *damaged = malloc(size);

		memcpy(damaged, bytes, size);
		memset(damaged + page * 4096, 0xa5, 4096);
		write_file(place.path, damaged, size);
		(void)snprintf(name, sizeof(name), "page %zu of 0xa5", page);
		must_refuse(place.path, -EUCLEAN, name);
		must_be_unchanged(damaged, size, name);
		free(damaged);
	}
	write_file(place.path, bytes, size);
	override_store_close(must_open(place.path));
	free(bytes);
}

/* Whatever single byte is changed: opened or refused, never a crash, nor a limit that cannot be. */
static void survives_any_changed_byte(void **state)
{
	struct override_store *store = must_open(place.path);
	size_t size;
	unsigned char *bytes;
	uint32_t random = 1;

	(void)state;
	assert_int_equal(put(store, "acme", 1), 0);
	override_store_close(store);
	bytes = read_file(place.path, &size);
	for (int i = 0; i < 800; i++) {
		size_t at;
		unsigned char before;
		struct trouble trouble;

		random = random * 1664525 + 1013904223;
		at = i < 200 ? (size_t)i : (random >> 8) % size;
		before = bytes[at];
		bytes[at] ^= (unsigned char)(1 + (random >> 3) % 255);
		write_file(place.path, bytes, size);
		bytes[at] = before;
		store = NULL;
		if (try_open(place.path, &store, &trouble) == 0) {
			struct view view = { 0 };
			struct override_visitor visitor = { see_override, see_skipped, &view };

			(void)override_store_load(store, &visitor, &trouble);
			(void)put(store, "acme", 2);
			override_store_close(store);
		}
	}
	free(bytes);
}

static void refuses_what_a_newer_version_wrote(void **state)
{
	(void)state;
	override_store_close(must_open(place.path));
	run_sql(place.path, "PRAGMA user_version = 2");
	must_refuse(place.path, -ENOTSUP, "version 2");
	run_sql(place.path, "PRAGMA user_version = 0");
	must_refuse(place.path, -EUCLEAN, "version 0");
	run_sql(place.path, "PRAGMA user_version = 1");
	override_store_close(must_open(place.path));
}

static void refuses_a_database_without_its_tables(void **state)
{
	(void)state;
	override_store_close(must_open(place.path));
	run_sql(place.path, "DROP TABLE audit");
	must_refuse(place.path, -EUCLEAN, "no audit");
	run_sql(place.path, "CREATE TABLE audit (id INTEGER PRIMARY KEY, tenant)");
	must_refuse(place.path, -EUCLEAN, "another audit");
}

static void leaves_the_database_of_another_program_alone(void **state)
{
	size_t size;
	unsigned char *bytes;

	(void)state;
	run_sql(place.path, "CREATE TABLE overrides (tenant); INSERT INTO overrides VALUES ('x')");
	bytes = read_file(place.path, &size);
	must_refuse(place.path, -EUCLEAN, "of another program");
	must_be_unchanged(bytes, size, "of another program");
	free(bytes);
}

/* A trigger in the file would run with every change. */
static void runs_nothing_that_the_file_brings(void **state)
{
	struct override_store *store;
	struct view view;

	(void)state;
	override_store_close(must_open(place.path));
	run_sql(place.path, "CREATE TRIGGER t AFTER INSERT ON audit BEGIN DELETE FROM audit; END");
	store = must_open(place.path);
	assert_int_equal(put(store, "acme", 1), 0);
	look(store, &view);
	assert_int_equal(view.records, 1);
	override_store_close(store);
}

static void refuses_to_begin_anew_beside_an_old_log(void **state)
{
	struct override_store *store = must_open(place.path);
	struct place copy = place;
	char log[128];

	(void)state;
	assert_int_equal(put(store, "acme", 1), 0);
	(void)snprintf(copy.path, sizeof(copy.path), "%s/copy.db", place.directory);
	(void)snprintf(log, sizeof(log), "%s-wal", copy.path);
	copy_as_crashed(&place, &copy);
	override_store_close(store);
	assert_int_equal(unlink(copy.path), 0);
	must_refuse(copy.path, -EUCLEAN, "a log without its database");
	assert_int_equal(access(log, F_OK), 0);
	assert_int_equal(unlink(log), 0);
	override_store_close(must_open(copy.path));
}

/* SQLite would take the empty file for a new one, and throw its log away. */
static void keeps_the_log_beside_an_empty_file(void **state)
{
	struct override_store *store = must_open(place.path);
	struct place copy = place;
	char log[128];
	size_t size, size_before;

	(void)state;
	assert_int_equal(put(store, "acme", 1), 0);
	(void)snprintf(copy.path, sizeof(copy.path), "%s/copy.db", place.directory);
	(void)snprintf(log, sizeof(log), "%s-wal", copy.path);
	copy_as_crashed(&place, &copy);
	override_store_close(store);
	assert_int_equal(truncate(copy.path, 0), 0);
	free(read_file(log, &size_before));
	must_refuse(copy.path, -EUCLEAN, "an empty file with a log");
	free(read_file(log, &size));
	assert_true(size_before > 0);
	assert_int_equal(size, size_before);
}

/* ---- the place */

static void refuses_a_place_where_no_file_can_be(void **state)
{
	char path[160];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/none/sluice.db", place.directory);
	must_refuse(path, -ENOENT, "no such directory");
	write_file(place.path, "x", 1);
	(void)snprintf(path, sizeof(path), "%s/sluice.db", place.path);
	must_refuse(path, -ENOTDIR, "a directory that is a file");
	assert_int_equal(unlink(place.path), 0);
	assert_int_equal(mkdir(place.path, 0700), 0);
	must_refuse(place.path, -EISDIR, "a directory");
}

/* ---- others who use it */

static void refuses_while_another_process_owns_it(void **state)
{
	int ready[2];
	char byte = 0;
	pid_t child;

	(void)state;
	override_store_close(must_open(place.path));
	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		struct trouble trouble;
		struct override_store *store;

		byte = (char)(try_open(place.path, &store, &trouble) == 0);
		(void)!write(ready[1], &byte, 1);
		(void)pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(byte, 1);
	must_refuse(place.path, -EBUSY, "owned");
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	override_store_close(must_open(place.path));
	(void)close(ready[0]);
	(void)close(ready[1]);
}

static const struct lock_row {
	const char *name;
	const char *sql;
	int open_err; /* while it is held */
	int put_err;
} lock_rows[] = {
	{ "a writer", "BEGIN IMMEDIATE", -EBUSY, -EBUSY },
	{ "a reader", "BEGIN; SELECT count(*) FROM overrides", 0, 0 },
	{ "a hermit", "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE", -EBUSY, -EBUSY },
};

static void waits_for_a_lock_only_so_long(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(lock_rows); i++) {
		const struct lock_row *row = &lock_rows[i];
		struct override_store *store = must_open(place.path);
		struct trouble trouble;
		struct view before, after;
		sqlite3 *other;

		check_row_equal(row, put(store, "acme", 1), 0);
		check_row_equal(row, sqlite3_open(place.path, &other), SQLITE_OK);
		/* The hermit gets in only when nobody else is there. */
		if (strstr(row->sql, "EXCLUSIVE")) {
			override_store_close(store);
			store = NULL;
		}
		check_row_equal(row, sqlite3_exec(other, row->sql, NULL, NULL, NULL), SQLITE_OK);
		if (store) {
			look(store, &before);
			check_row_equal(row, put(store, "acme", 2), row->put_err);
			check_row_equal(row, expire(store, NOW_MS), row->put_err);
			look(store, &after);
			check_row(row, row->put_err == 0 || is_same(&before, &after));
			override_store_close(store);
		}
		if (row->open_err)
			must_refuse(place.path, row->open_err, row->name);
		else
			override_store_close(must_open(place.path));
		check_row_equal(row, sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
		check_row_equal(row, sqlite3_close(other), SQLITE_OK);
		store = must_open(place.path);
		check_row_equal(row, put_until(store, "acme", 3, 0, &trouble), 0);
		override_store_close(store);
	}
}

static int is_putting;

static void *put_while_locked(void *data)
{
	__atomic_store_n(&is_putting, 1, __ATOMIC_SEQ_CST);
	return put(data, "acme", 1) == 0 ? data : NULL;
}

static void waits_for_a_lock_that_is_given_back(void **state)
{
	struct override_store_options patient = { .path = place.path, .busy_timeout_ms = 60000 };
	struct override_store *store;
	struct trouble trouble;
	pthread_t thread;
	sqlite3 *other;
	void *result;

	(void)state;
	assert_int_equal(override_store_open(&patient, &store, &trouble), 0);
	assert_int_equal(sqlite3_open(place.path, &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(pthread_create(&thread, NULL, put_while_locked, store), 0);
	/* It has most probably met the lock then; if not, nothing is shown. */
	while (!__atomic_load_n(&is_putting, __ATOMIC_SEQ_CST))
		(void)sched_yield();
	for (int i = 0; i < 10000; i++)
		(void)sched_yield();
	assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, store);
	assert_int_equal(sqlite3_close(other), SQLITE_OK);
	override_store_close(store);
}

/* Opens as soon as the others let it, and puts one override. */
static void put_among_others(int number, int start)
{
	struct override_store *store;
	struct trouble trouble;
	char tenant[16], byte;
	int err;

	(void)snprintf(tenant, sizeof(tenant), "tenant%d", number);
	(void)!read(start, &byte, 1);
	do {
		err = try_open(place.path, &store, &trouble);
	} while (err == -EBUSY);
	_exit(err || put(store, tenant, 1) ? 1 : 0);
}

static void is_made_once_however_many_make_it(void **state)
{
	enum { MAKERS = 8 };
	pid_t child[MAKERS];
	struct override_store *store;
	struct view view;
	int start[2], status;

	(void)state;
	assert_int_equal(pipe(start), 0);
	for (int i = 0; i < MAKERS; i++) {
		child[i] = fork();
		assert_true(child[i] >= 0);
		if (child[i] == 0) {
			(void)close(start[1]);
			put_among_others(i, start[0]);
		}
	}
	(void)close(start[0]);
	(void)close(start[1]);
	for (int i = 0; i < MAKERS; i++) {
		assert_int_equal(waitpid(child[i], &status, 0), child[i]);
		assert_int_equal(status, 0);
	}
	store = must_open(place.path);
	look(store, &view);
	assert_int_equal(view.tenants, MAKERS);
	assert_int_equal(view.records, MAKERS);
	override_store_close(store);
}

#define in_a_place(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_a_place(refuses_damage_in_the_header_and_missing_pages),
		in_a_place(refuses_a_page_of_other_bytes_wherever_it_is),
		in_a_place(survives_any_changed_byte),
		in_a_place(refuses_what_a_newer_version_wrote),
		in_a_place(refuses_a_database_without_its_tables),
		in_a_place(leaves_the_database_of_another_program_alone),
		in_a_place(runs_nothing_that_the_file_brings),
		in_a_place(refuses_to_begin_anew_beside_an_old_log),
		in_a_place(keeps_the_log_beside_an_empty_file),
		in_a_place(refuses_a_place_where_no_file_can_be),
		in_a_place(refuses_while_another_process_owns_it),
		in_a_place(waits_for_a_lock_only_so_long),
		in_a_place(waits_for_a_lock_that_is_given_back),
		in_a_place(is_made_once_however_many_make_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
