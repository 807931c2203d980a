/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A disk that is full, read-only or failing under an open store: the change that meets it fails and
 * has not happened, neither for this process nor for one that comes after a crash; what was there
 * is still there; and when the disk is well again, so is the store.
 */
#include "overrides_fixture.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "faulty_vfs.h"

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
	disk_repair();
	place_remove(&place);
	return 0;
}

/* ---- each step of each change fails */

static int change_put(struct override_store *store)
{
	return put(store, "acme", 9);
}

static int change_remove(struct override_store *store)
{
	return take_away(store, "acme");
}

static int change_expire(struct override_store *store)
{
	return expire(store, NOW_MS);
}

static const struct change_row {
	const char *name;
	int (*change)(struct override_store *store);
	bool is_full;
	enum fault fault;
	int err;
} change_rows[] = {
	{ "put, an error once", change_put, false, FAULT_ONCE, -EIO },
	{ "put, errors from then on", change_put, false, FAULT_ALWAYS, -EIO },
	{ "put, full once", change_put, true, FAULT_ONCE, -ENOSPC },
	{ "put, full from then on", change_put, true, FAULT_ALWAYS, -ENOSPC },
	{ "remove, an error once", change_remove, false, FAULT_ONCE, -EIO },
	{ "remove, errors from then on", change_remove, false, FAULT_ALWAYS, -EIO },
	{ "remove, full once", change_remove, true, FAULT_ONCE, -ENOSPC },
	{ "expire, an error once", change_expire, false, FAULT_ONCE, -EIO },
	{ "expire, errors from then on", change_expire, false, FAULT_ALWAYS, -EIO },
};

/* What the next process would find if this one died now. */
static void look_as_crashed(struct view *view)
{
	struct place crashed;
	struct override_store *store;

	place_make(&crashed);
	copy_as_crashed(&place, &crashed);
	store = must_open(crashed.path);
	look(store, view);
	override_store_close(store);
	place_remove(&crashed);
}

/* So many pages that the next commit empties the log into the database. */
static void lengthen_log(void)
{
	sqlite3 *other;

	assert_int_equal(sqlite3_open(place.path, &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other,
				      "PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = OFF",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	for (int i = 0; i < 1100; i++)
		assert_int_equal(sqlite3_exec(other,
					      "UPDATE overrides SET"
					      " changed_at_ms = changed_at_ms + 1",
					      NULL, NULL, NULL),
				 SQLITE_OK);
	assert_int_equal(sqlite3_close(other), SQLITE_OK);
}

static struct override_store *open_filled(const struct change_row *row, bool log_is_long)
{
	struct override_store *store = must_open(place.path);
	struct trouble trouble;

	check_row_equal(row, put_until(store, "acme", 1, NOW_MS, &trouble), 0);
	check_row_equal(row, put(store, "globex", 2), 0);
	if (log_is_long)
		lengthen_log();
	return store;
}

/* Returns false once the change has run to its end without meeting the fault. */
static bool fail_at(const struct change_row *row, long step, bool log_is_long)
{
	struct override_store *store = open_filled(row, log_is_long);
	struct view before, after, crashed;
	bool failed;
	int err;

	look(store, &before);
	disk.is_full = row->is_full;
	disk_break(row->fault, step);
	err = row->change(store);
	failed = disk.failed;
	/* Before the disk is well again: closing would write. */
	disk_repair();
	look_as_crashed(&crashed);
	look(store, &after);
	check_row(row, failed || err == 0);
	if (err) {
		check_row(row, err == row->err || err == -EIO);
		check_row(row, is_same(&before, &after));
		/* Where even the log could not be emptied it may come back: whole, as look() saw.
		 */
		check_row(row, row->fault == FAULT_ALWAYS || is_same(&before, &crashed));
		check_row(row, crashed.records - before.records <= 1);
		check_row_equal(row, row->change(store), 0);
		look(store, &after);
	} else {
		check_row(row, is_same(&after, &crashed));
	}
	check_row_equal(row, after.records, before.records + 1);
	check_row_equal(row, override_of(&after, "globex"), 2);
	override_store_close(store);
	store = must_open(place.path);
	look(store, &crashed);
	check_row(row, is_same(&after, &crashed));
	override_store_close(store);
	return failed;
}

static void changes_nothing_whichever_step_fails(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(change_rows); i++) {
		const struct change_row *row = &change_rows[i];
		long step = 1;

		while (fail_at(row, step, false))
			step++;
		check_row(row, step > 5);
	}
}

static void changes_nothing_while_the_log_is_emptied(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		long step = 1;

		while (fail_at(&change_rows[i], step, true))
			step++;
		check_row(&change_rows[i], step > 15);
	}
}

/* What stands in the way of a change is in the way of a try, which changes nothing. */
static void a_try_finds_what_a_change_would(void **state)
{
	struct override_store *store = open_filled(&change_rows[0], false);
	struct view before, after;
	struct trouble trouble;
	long step = 0;
	int err;

	(void)state;
	look(store, &before);
	do {
		disk.is_full = ++step & 1;
		disk_break(FAULT_ALWAYS, step);
		err = override_store_try(store, &trouble);
		assert_int_equal(err != 0, disk.failed);
		disk_repair();
		assert_int_equal(override_store_try(store, &trouble), 0);
	} while (err);
	assert_true(step > 2);
	look(store, &after);
	assert_true(is_same(&before, &after));
	override_store_close(store);
}

static void makes_no_half_file_whichever_step_fails(void **state)
{
	struct override_store *store;
	struct trouble trouble;
	struct view view;
	long step;

	(void)state;
	for (step = 1;; step++) {
		int err;

		store = NULL;
		disk.is_full = step & 1;
		disk_break(FAULT_ONCE, step);
		err = try_open(place.path, &store, &trouble);
		disk_repair();
		if (err) {
			assert_null(store);
			assert_true(trouble.cause[0] && trouble.remedy[0]);
		}
		override_store_close(store);
		if (!disk.failed)
			break;
		store = must_open(place.path);
		assert_int_equal(put(store, "acme", 1), 0);
		look(store, &view);
		assert_int_equal(view.records, 1);
		override_store_close(store);
		place_remove(&place);
		place_make(&place);
	}
	assert_true(step > 10);
}

/* ---- a file that may not grow: what SQLite sees of a quota, without root */

static void reports_a_file_that_may_not_grow(void **state)
{
	struct override_store *store = must_open(place.path);
	struct rlimit before, small;
	struct view views[2];
	unsigned number = 0;
	int err;

	(void)state;
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 100000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	do {
		look(store, &views[0]);
		err = put(store, "acme", ++number);
	} while (!err && number < 1000);
	look(store, &views[1]);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(err, -ENOSPC);
	assert_true(is_same(&views[0], &views[1]));
	assert_int_equal(put(store, "acme", number), 0);
	override_store_close(store);
	store = must_open(place.path);
	look(store, &views[0]);
	assert_int_equal(views[0].records, number);
	override_store_close(store);
}

/* ---- in a child of its own: with other rights, or with other mounts */

/* Runs in a child; fails the test with what the child printed if it does not return true. */
static void must_hold_in_child(bool (*check)(void))
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0)
		_exit(check() ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static bool says(bool condition, const char *what)
{
	if (!condition)
		print_message("# does not hold: %s\n", what);
	return condition;
}

#define says(condition) says(condition, #condition)

static int try(const char *path)
{
	struct override_store *store = NULL;
	struct trouble trouble;
	int err = try_open(path, &store, &trouble);

	override_store_close(store);
	return err;
}

/* Nobody, if this is root; it owns the directory, so that modes decide. */
static bool refused_without_rights(void)
{
	char command[96];
	struct override_store *store;

	(void)snprintf(command, sizeof(command), "chown -R 65534 '%s'", place.directory);
	if (geteuid() == 0 && (system(command) != 0 || setgid(65534) != 0 || setuid(65534) != 0))
		return false;
	store = must_open(place.path);
	/* Once the log is there, nothing has to be made in the directory any more. */
	if (!says(put(store, "acme", 1) == 0 && chmod(place.directory, 0500) == 0 &&
		  put(store, "acme", 2) == 0))
		return false;
	/* It cannot be removed either, so that the next one finds it. */
	override_store_close(store);
	if (!says(try(place.path) == 0 && chmod(place.directory, 0700) == 0 &&
		  try(place.path) == 0))
		return false;
	if (!says(chmod(place.path, 0400) == 0 && try(place.path) == -EACCES) ||
	    !says(chmod(place.path, 0000) == 0 && try(place.path) == -EACCES) ||
	    !says(chmod(place.path, 0600) == 0 && chmod(place.directory, 0) == 0 &&
		  try(place.path) == -EACCES) ||
	    !says(chmod(place.directory, 0500) == 0 && try(place.path) == -EACCES))
		return false;
	(void)snprintf(command, sizeof(command), "%s/new.db", place.directory);
	if (!says(try(command) == -EACCES))
		return false;
	return says(chmod(place.directory, 0700) == 0 && try(place.path) == 0);
}

static void needs_the_right_to_write(void **state)
{
	(void)state;
	must_hold_in_child(refused_without_rights);
}

/* A file system of 256 KiB over the place, which only this process sees. */
static bool mount_small(void)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("none", place.directory, "tmpfs", 0, "size=256k") == 0;
}

static bool fill_up(const char *path)
{
	static const char zeros[4096];
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	while (write(fd, zeros, sizeof(zeros)) > 0)
		;
	(void)close(fd);
	return fd >= 0;
}

static bool lives_on_a_full_disk(void)
{
	struct override_store *store;
	struct view before, after;
	char filler[128];
	unsigned number = 1;
	int err;

	(void)snprintf(filler, sizeof(filler), "%s/filler", place.directory);
	if (!says(mount_small()))
		return false;
	store = must_open(place.path);
	if (!says(put(store, "acme", 1) == 0 && fill_up(filler)))
		return false;
	do {
		look(store, &before);
		err = put(store, "acme", ++number);
	} while (!err && number < 100);
	look(store, &after);
	if (!says(err == -ENOSPC) || !says(is_same(&before, &after)))
		return false;
	override_store_close(store);
	if (!says(fill_up(filler)))
		return false;
	/* It must come up with what it has, and only changes fail. */
	store = must_open(place.path);
	look(store, &after);
	if (!says(is_same(&before, &after)) || !says(put(store, "acme", 99) == -ENOSPC))
		return false;
	look(store, &after);
	if (!says(is_same(&before, &after)) || !says(unlink(filler) == 0) ||
	    !says(put(store, "acme", 99) == 0))
		return false;
	override_store_close(store);
	return says(try(place.path) == 0);
}

static void lives_on_a_full_file_system(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	must_hold_in_child(lives_on_a_full_disk);
}

static bool makes_nothing_on_a_full_disk(void)
{
	char filler[128], command[128];

	(void)snprintf(filler, sizeof(filler), "%s/filler", place.directory);
	(void)snprintf(command, sizeof(command), "test \"$(ls -A %s)\" = filler", place.directory);
	return says(mount_small()) && says(fill_up(filler)) && says(try(place.path) == -ENOSPC) &&
	       says(system(command) == 0) && says(unlink(filler) == 0) &&
	       says(try(place.path) == 0);
}

static void makes_nothing_on_a_full_file_system(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	must_hold_in_child(makes_nothing_on_a_full_disk);
}

static bool refused_where_nothing_can_be_written(void)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/new.db", place.directory);
	if (!says(mount_small()) || !says(try(place.path) == 0) ||
	    !says(mount(NULL, place.directory, NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0))
		return false;
	return says(try(place.path) == -EROFS) && says(try(path) == -EROFS) &&
	       says(mount(NULL, place.directory, NULL, MS_REMOUNT, NULL) == 0) &&
	       says(try(place.path) == 0);
}

static void needs_a_file_system_that_can_be_written(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	must_hold_in_child(refused_where_nothing_can_be_written);
}

/* ---- the file is taken away under the store */

static void changes_nothing_in_a_file_that_was_replaced(void **state)
{
	struct override_store *store = must_open(place.path);
	struct trouble trouble;
	struct view before, after;
	char aside[128];

	(void)state;
	(void)snprintf(aside, sizeof(aside), "%s.aside", place.path);
	assert_int_equal(put(store, "acme", 1), 0);
	look(store, &before);
	assert_int_equal(rename(place.path, aside), 0);
	assert_int_equal(put_until(store, "acme", 2, 0, &trouble), -ESTALE);
	assert_true(trouble.cause[0] && trouble.remedy[0]);
	assert_int_equal(take_away(store, "acme"), -ESTALE);
	assert_int_equal(expire(store, NOW_MS), -ESTALE);
	write_file(place.path, "", 0);
	assert_int_equal(put(store, "acme", 2), -ESTALE);
	assert_int_equal(rename(aside, place.path), 0);
	look(store, &after);
	assert_true(is_same(&before, &after));
	assert_int_equal(put(store, "acme", 2), 0);
	override_store_close(store);
}

#define in_a_place(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_a_place(changes_nothing_whichever_step_fails),
		in_a_place(changes_nothing_while_the_log_is_emptied),
		in_a_place(a_try_finds_what_a_change_would),
		in_a_place(makes_no_half_file_whichever_step_fails),
		in_a_place(reports_a_file_that_may_not_grow),
		in_a_place(needs_the_right_to_write),
		in_a_place(lives_on_a_full_file_system),
		in_a_place(makes_nothing_on_a_full_file_system),
		in_a_place(needs_a_file_system_that_can_be_written),
		in_a_place(changes_nothing_in_a_file_that_was_replaced),
	};

	disk_install();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
