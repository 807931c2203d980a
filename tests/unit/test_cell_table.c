/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The buckets of CL.THROTTLE by key: which keys are the same, what is kept and what is dropped when
 * there is no room, and that threads together are admitted no more than one caller at a time.
 */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "limit/cell_table.h"
#include "tests/bpf/replay.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { OPERATIONS = 60000 };
#else
enum { OPERATIONS = 400000 };
#endif

enum { THREADS = 4, ROOM = 1024, NS_IN_S = 1000000000 };

static const struct siphash_key secret = { { 1, 2 } };

/* 0: the real one. */
static uint64_t fixed_now_ns;
static __thread uint64_t last_clock_ns;

static uint64_t test_clock(void)
{
	struct timespec now;

	last_clock_ns = fixed_now_ns;
	if (!fixed_now_ns) {
		(void)clock_gettime(CLOCK_MONOTONIC, &now);
		last_clock_ns = (uint64_t)now.tv_sec * NS_IN_S + (uint64_t)now.tv_nsec;
	}
	return last_clock_ns;
}

static struct cell_table *table_of(size_t most_keys, size_t most_bytes)
{
	struct cell_table *table;

	fixed_now_ns = 1000ULL * NS_IN_S;
	assert_int_equal(cell_table_new(most_keys, most_bytes, &secret, &table), 0);
	return table;
}

/* 0 admitted, 1 refused, -errno. */
static int ask(struct cell_table *table, const void *key, size_t key_bytes, uint64_t burst,
	       uint64_t interval_ns, int64_t quantity)
{
	struct cell_request request = { burst, interval_ns, quantity };
	struct cell_answer answer = { .limit = -7 };
	int err = cell_table_decide(table, key, key_bytes, &request, test_clock, &answer);

	assert_int_equal(answer.limit, err ? -7 : (int64_t)burst);
	return err ? err : answer.limited;
}

static int ask_number(struct cell_table *table, uint32_t number, uint64_t interval_s,
		      int64_t quantity)
{
	return ask(table, &number, sizeof(number), 1, interval_s * NS_IN_S, quantity);
}

static size_t sweep_all(struct cell_table *table)
{
	size_t dropped = 0;

	for (unsigned shard = 0; shard < CELL_SHARDS; shard++)
		dropped += cell_table_sweep(table, shard, test_clock());
	return dropped;
}

/* ---- keys */

static void keys_are_the_same_only_if_every_byte_is(void **state)
{
	static char long_key[CELL_KEY_MAX + 1], other[CELL_KEY_MAX];
	static const struct row {
		const char *name, *key;
		size_t bytes;
	} rows[] = {
		{ "nothing", "", 0 },
		{ "a zero", "\0", 1 },
		{ "two zeros", "\0\0", 2 },
		{ "one letter", "a", 1 },
		{ "a letter and a zero", "a\0", 2 },
		{ "a letter, a zero and another", "a\0b", 3 },
		{ "a slash", "a/b", 3 },
		{ "no text", "\xff\xfe", 2 },
		{ "the longest", long_key, CELL_KEY_MAX },
		{ "as long", other, CELL_KEY_MAX },
	};
	struct cell_table *table = table_of(ROOM, 1 << 24);

	(void)state;
	other[CELL_KEY_MAX - 1] = 1;
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		check_row_equal(&rows[i], ask(table, rows[i].key, rows[i].bytes, 1, NS_IN_S, 1), 0);
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		check_row_equal(&rows[i], ask(table, rows[i].key, rows[i].bytes, 1, NS_IN_S, 1), 1);
	assert_int_equal(ask(table, long_key, CELL_KEY_MAX + 1, 1, NS_IN_S, 1), -E2BIG);
	assert_int_equal(cell_table_count(table), COUNT_OF(rows));
	cell_table_free(table);
}

static void looks_and_what_owes_nothing_take_no_room(void **state)
{
	struct cell_table *table = table_of(ROOM, 1 << 20);

	(void)state;
	assert_int_equal(ask_number(table, 1, 1, 0), 0);
	assert_int_equal(ask_number(table, 1, 1, -5), 0);
	assert_int_equal(ask_number(table, 1, 1, 2), 1); /* more than the burst */
	assert_int_equal(cell_table_count(table), 0);
	assert_int_equal(ask_number(table, 1, 1, 1), 0);
	assert_int_equal(ask_number(table, 1, 1, -1), 0);
	assert_int_equal(ask_number(table, 1, 1, 1), 0);
	assert_int_equal(cell_table_count(table), 1);
	cell_table_free(table);
}

/* ---- bounds */

static void a_full_table_refuses_new_keys_and_keeps_every_debt(void **state)
{
	static int answer[4 * ROOM];
	struct cell_table *table = table_of(ROOM, 1 << 20);
	size_t kept = 0;

	(void)state;
	assert_int_equal(cell_table_room(table), ROOM);
	for (uint32_t number = 0; number < COUNT_OF(answer); number++) {
		answer[number] = ask_number(table, number, 1000, 1);
		assert_true(answer[number] == 0 || answer[number] == -ENOSPC);
		kept += answer[number] == 0;
	}
	assert_int_equal(kept, ROOM); /* each shard was offered more than it holds */
	assert_int_equal(cell_table_count(table), ROOM);
	assert_int_equal(sweep_all(table), 0);
	for (uint32_t number = 0; number < COUNT_OF(answer); number++) {
		assert_int_equal(ask_number(table, number, 1000, 0), 0);
		assert_int_equal(ask_number(table, number, 1000, 1), answer[number] ? -ENOSPC : 1);
	}
	cell_table_free(table);
}

static void bytes_are_bounded_as_keys_are(void **state)
{
	static char key[CELL_KEY_MAX];
	struct cell_table *table = table_of(1 << 20, 16 << 20);
	uint32_t kept = 0;

	(void)state;
	for (uint32_t number = 0; number < 1000; number++) {
		memcpy(key, &number, sizeof(number));
		kept += ask(table, key, sizeof(key), 1, 1000ULL * NS_IN_S, 1) == 0;
	}
	/* Less than 256, since each has a little more than its key. */
	assert_true(kept < 256 && kept >= 128);
	assert_int_equal(cell_table_count(table), kept);
	assert_int_equal(ask(table, "x", 1, 1, 1000ULL * NS_IN_S, 1), 0); /* a small one fits */
	cell_table_free(table);
}

static void what_has_passed_makes_room(void **state)
{
	struct cell_table *table = table_of(ROOM, 1 << 20);

	(void)state;
	for (uint32_t number = 0; number < 4 * ROOM; number++)
		(void)ask_number(table, number, number % 2 ? 1 : 1000, 1);
	assert_int_equal(cell_table_count(table), ROOM);
	assert_int_equal(ask_number(table, 1 << 20, 1, 1), -ENOSPC);
	fixed_now_ns += 1ULL * NS_IN_S;
	assert_int_equal(ask_number(table, 1 << 20, 1, 1), 0);
	(void)sweep_all(table);
	/* Only those that owe for a thousand seconds are left, and the new one. */
	assert_true(cell_table_count(table) > ROOM / 4 && cell_table_count(table) < ROOM);
	fixed_now_ns += 1000ULL * NS_IN_S;
	(void)sweep_all(table);
	assert_int_equal(cell_table_count(table), 0);
	cell_table_free(table);
}

static void a_sweep_drops_what_has_passed_and_nothing_else(void **state)
{
	struct cell_table *table = table_of(ROOM, 1 << 20);

	(void)state;
	for (uint32_t number = 0; number < 200; number++)
		assert_int_equal(ask_number(table, number, number % 2 ? 1 : 1000, 1), 0);
	fixed_now_ns += NS_IN_S - 1;
	assert_int_equal(sweep_all(table), 0);
	fixed_now_ns += 1;
	assert_int_equal(sweep_all(table), 100);
	assert_int_equal(cell_table_count(table), 100);
	for (uint32_t number = 0; number < 200; number++)
		assert_int_equal(ask_number(table, number, 1000, 1), number % 2 ? 0 : 1);
	cell_table_free(table);
}

/* ---- threads */

struct stress {
	const char *name;
	uint32_t keys;
	uint64_t interval_ns, burst;
	size_t room; /* of keys */
};

struct shared {
	const struct stress *stress;
	struct cell_table *table;
	bool stop;
};

struct worker {
	struct shared *shared;
	pthread_t thread;
	unsigned number;
	struct admission *log;
	size_t logged, without_room;
};

static void *work(void *argument)
{
	struct worker *worker = argument;
	const struct stress *stress = worker->shared->stress;
	uint32_t drawn = worker->number;

	for (int i = 0; i < OPERATIONS; i++) {
		uint32_t key = (drawn = drawn * 1664525 + 1013904223) >> 16;
		int answer;

		key %= stress->keys;
		answer = ask(worker->shared->table, &key, sizeof(key), stress->burst,
			     stress->interval_ns, 1);
		if (answer == 0)
			worker->log[worker->logged++] = (struct admission){ last_clock_ns, key, 1 };
		worker->without_room += answer == -ENOSPC;
		if (i % 1024 == 0)
			sched_yield();
	}
	return NULL;
}

static void *keep_up(void *argument)
{
	struct shared *shared = argument;

	while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED)) {
		(void)sweep_all(shared->table);
		assert_true(cell_table_count(shared->table) <= cell_table_room(shared->table));
		sched_yield();
	}
	return NULL;
}

static struct replayed run(const struct stress *stress, size_t *without_room)
{
	struct shared shared = { .stress = stress, .table = table_of(stress->room, 1 << 20) };
	struct reference references[PROBE_KEYS];
	struct admission_log logs[THREADS];
	struct worker workers[THREADS];
	struct replayed result;
	pthread_t keeper;

	fixed_now_ns = 0;
	*without_room = 0;
	for (uint32_t key = 0; key < PROBE_KEYS; key++)
		references[key] = (struct reference){ .tokens = 1,
						      .period_ns = stress->interval_ns,
						      .burst = stress->burst };
	assert_int_equal(pthread_create(&keeper, NULL, keep_up, &shared), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .shared = &shared, .number = i };
		workers[i].log = malloc(OPERATIONS * sizeof(*workers[i].log));
		assert_non_null(workers[i].log);
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		logs[i] = (struct admission_log){ workers[i].log, workers[i].logged };
		*without_room += workers[i].without_room;
	}
	__atomic_store_n(&shared.stop, true, __ATOMIC_RELAXED);
	pthread_join(keeper, NULL);
	result = replay(logs, THREADS, references);
	print_message("# %s: %d asked, %llu admissions replayed, %llu excess, %zu without room\n",
		      stress->name, THREADS * OPERATIONS, (unsigned long long)result.admissions,
		      (unsigned long long)result.excess, *without_room);
	for (unsigned i = 0; i < THREADS; i++)
		free(workers[i].log);
	cell_table_free(shared.table);
	return result;
}

static void threads_are_admitted_no_more_than_one_caller(void **state)
{
	static const struct stress rows[] = {
		{ "one key", 1, 50000, 20, ROOM },
		{ "one key of burst one", 1, 50000, 1, ROOM },
		{ "many keys", PROBE_KEYS, 5000000, 2, ROOM },
		{ "more keys than room", PROBE_KEYS, 5000000, 2, CELL_SHARDS },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		size_t without_room;
		struct replayed result = run(&rows[i], &without_room);

		check_row_equal(&rows[i], result.backwards, 0);
		check_row_equal(&rows[i], result.excess, 0);
		check_row(&rows[i], result.admissions > rows[i].burst);
		check_row(&rows[i], result.admissions < (uint64_t)THREADS * OPERATIONS);
		check_row_equal(&rows[i], without_room > 0, rows[i].room < rows[i].keys);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_the_same_only_if_every_byte_is),
		cmocka_unit_test(looks_and_what_owes_nothing_take_no_room),
		cmocka_unit_test(a_full_table_refuses_new_keys_and_keeps_every_debt),
		cmocka_unit_test(bytes_are_bounded_as_keys_are),
		cmocka_unit_test(what_has_passed_makes_room),
		cmocka_unit_test(a_sweep_drops_what_has_passed_and_nothing_else),
		cmocka_unit_test(threads_are_admitted_no_more_than_one_caller),
	};

	return cmocka_run_group_tests_name("cell table", tests, NULL, NULL);
}
