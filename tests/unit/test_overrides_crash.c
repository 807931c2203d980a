/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processes that are killed while they change overrides: at each step of a change in turn, and at
 * random moments. Afterwards each override is there with its audit record or neither is, and what
 * had been acknowledged is there.
 */
#include "overrides_fixture.h"

#include <sys/wait.h>

#include "faulty_vfs.h"

enum { KILLS = 200, CHILD_TENANTS = 5 };

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

/* Whether the child was killed, else it must have ended well. */
static bool was_killed(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status)) {
		assert_int_equal(WTERMSIG(status), SIGKILL);
		return true;
	}
	assert_int_equal(WEXITSTATUS(status), 0);
	return false;
}

/* ---- at each step */

static int open_and_close(const char *path)
{
	struct override_store *store = NULL;
	struct trouble trouble;
	int err = try_open(path, &store, &trouble);

	override_store_close(store);
	return err;
}

static int change(const char *path, int (*how)(struct override_store *store))
{
	struct override_store *store = NULL;
	struct trouble trouble;
	int err = try_open(path, &store, &trouble);

	if (!err)
		err = how(store);
	override_store_close(store);
	return err;
}

static int set_acme(struct override_store *store)
{
	return put(store, "acme", 9);
}

static int unset_acme(struct override_store *store)
{
	return take_away(store, "acme");
}

static int expire_all(struct override_store *store)
{
	return expire(store, NOW_MS);
}

static int open_set_close(const char *path)
{
	return change(path, set_acme);
}

static int open_unset_close(const char *path)
{
	return change(path, unset_acme);
}

static int open_expire_close(const char *path)
{
	return change(path, expire_all);
}

static const struct crash_row {
	const char *name;
	int (*run)(const char *path);
	bool begins_filled;
	unsigned records_before, records_after;
	unsigned acme_before, acme_after;
} crash_rows[] = {
	{ "make the file", open_and_close, false, 0, 0, 0, 0 },
	{ "make the file and put", open_set_close, false, 0, 1, 0, 9 },
	{ "open and close", open_and_close, true, 2, 2, 1, 1 },
	{ "put", open_set_close, true, 2, 3, 1, 9 },
	{ "remove", open_unset_close, true, 2, 3, 1, 0 },
	{ "expire", open_expire_close, true, 2, 3, 1, 0 },
};

static void begin(const struct crash_row *row)
{
	struct override_store *store;
	struct trouble trouble;

	place_remove(&place);
	place_make(&place);
	if (!row->begins_filled)
		return;
	store = must_open(place.path);
	check_row_equal(row, put_until(store, "acme", 1, NOW_MS, &trouble), 0);
	check_row_equal(row, put(store, "globex", 2), 0);
	override_store_close(store);
}

static bool kill_at(const struct crash_row *row, long step)
{
	struct override_store *store;
	struct view view;
	bool killed;
	pid_t child;

	begin(row);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		disk_break(FAULT_KILL, step);
		_exit(row->run(place.path) ? 1 : 0);
	}
	killed = was_killed(child);
	store = must_open(place.path);
	look(store, &view);
	check_row(row, view.records == row->records_before || view.records == row->records_after);
	check_row_equal(row, override_of(&view, "acme"),
			view.records == row->records_after ? row->acme_after : row->acme_before);
	check_row_equal(row, override_of(&view, "globex"), row->begins_filled ? 2 : 0);
	check_row(row, killed || view.records == row->records_after);
	check_row_equal(row, put(store, "globex", 3), 0);
	override_store_close(store);
	return killed;
}

static void keeps_both_or_neither_whichever_step_is_the_last(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(crash_rows); i++) {
		long step = 1;

		while (kill_at(&crash_rows[i], step))
			step++;
		check_row(&crash_rows[i], step > 3);
		print_message("# %s: killed at each of %ld steps\n", crash_rows[i].name, step - 1);
	}
}

/* ---- at random moments */

struct message {
	unsigned number; /* of the change that was acknowledged */
};

/* Changes for ever. The number of a change says what it does, so that the parent knows it too. */
static bool is_put(unsigned number)
{
	return number % 7 != 0;
}

static void tenant_of(unsigned number, char out[16])
{
	(void)snprintf(out, 16, "tenant%u", number % CHILD_TENANTS);
}

static void change_for_ever(unsigned number, int acknowledge)
{
	struct override_store *store = must_open(place.path);
	char tenant[16];

	for (;; number++) {
		struct message message = { number };
		int err;

		tenant_of(number, tenant);
		err = is_put(number) ? put(store, tenant, number) : take_away(store, tenant);
		if (err && err != -ENOENT)
			_exit(2);
		if (write(acknowledge, &message, sizeof(message)) != sizeof(message))
			_exit(3);
	}
}

static uint32_t draw(void)
{
	static uint32_t random = 42;

	random = random * 1664525 + 1013904223;
	return random >> 8;
}

/* The number of the last change that was acknowledged before the child died. */
static unsigned run_and_kill(unsigned first)
{
	volatile uint32_t spin = draw() % 400000;
	unsigned acknowledged = first - 1, wait_for = first + draw() % 12;
	struct message message;
	int ends[2];
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		change_for_ever(first, ends[1]);
	(void)close(ends[1]);
	/* One time in eight already while it opens. */
	while (wait_for % 8 && acknowledged < wait_for &&
	       read(ends[0], &message, sizeof(message)) == sizeof(message))
		acknowledged = message.number;
	while (spin)
		spin--;
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_true(was_killed(child));
	while (read(ends[0], &message, sizeof(message)) == sizeof(message))
		acknowledged = message.number;
	(void)close(ends[0]);
	return acknowledged;
}

/* Whether the overrides are what the changes up to this one have made of them. */
static bool is_state_after(struct view *view, unsigned last)
{
	for (unsigned tenant = 0; tenant < CHILD_TENANTS; tenant++) {
		unsigned number = last, wanted = 0;
		char name[16];

		while (number && number % CHILD_TENANTS != tenant)
			number--;
		if (number && is_put(number))
			wanted = number;
		tenant_of(tenant, name);
		if (override_of(view, name) != wanted)
			return false;
	}
	return true;
}

static void keeps_what_was_acknowledged_whenever_it_is_killed(void **state)
{
	unsigned last = 0, in_flight = 0;

	(void)state;
	for (int i = 0; i < KILLS; i++) {
		unsigned acknowledged = run_and_kill(last + 1);
		struct override_store *store = must_open(place.path);
		struct view view;

		look(store, &view);
		last = acknowledged;
		if (!is_state_after(&view, last)) {
			last++; /* stored, but the child did not live to say so */
			in_flight++;
			assert_true(is_state_after(&view, last));
		}
		/* A change that finds nothing to remove leaves no record. */
		assert_in_range(view.records, last - last / 7, last);
		override_store_close(store);
	}
	print_message("# %d kills, %u changes, %u stored and not yet acknowledged\n", KILLS, last,
		      in_flight);
	assert_true(last > KILLS);
}

#define in_a_place(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_a_place(keeps_both_or_neither_whichever_step_is_the_last),
		in_a_place(keeps_what_was_acknowledged_whenever_it_is_killed),
	};

	disk_install();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
