/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Buckets by client address: what they admit, what a full set gives up and never loses, what is
 * swept, and that threads together are admitted no more than one caller at a time, also while the table
 * is moved from memory to memory under them.
 */
#include "address_world.h"

#include <pthread.h>
#include <sched.h>

#include "tests/bpf/replay.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { OPERATIONS = 60000 };
#else
enum { OPERATIONS = 400000 };
#endif

enum { THREADS = 4, SETS_MAX = 256 };

/* ---- one caller */

static void each_address_has_its_own_burst_and_rate(void **state)
{
	struct gcra_limit limit = limit_of(2, 3);
	struct world world;

	(void)state;
	world_make(&world, SETS_MAX);
	for (uint32_t number = 0; number < 100; number++)
		assert_int_equal(admitted_of(&world, number, &limit, 10), 3);
	fixed_now_ns += NS_IN_S;
	for (uint32_t number = 0; number < 100; number++)
		assert_int_equal(admitted_of(&world, number, &limit, 10), 2);
	world_end(&world);
}

static void more_than_the_burst_is_never_admitted(void **state)
{
	struct gcra_limit limit = limit_of(2, 3);
	union address address = address_of(1);
	struct world world;
	uint64_t wait_ns;

	(void)state;
	world_make(&world, 1);
	assert_false(address_table_take(world.table, &address, WHOLE_IPV6, &limit, 4, test_clock,
					&wait_ns));
	assert_true(wait_ns == GCRA_NEVER);
	assert_int_equal(words_in_use(&world), 0);
	assert_true(address_table_take(world.table, &address, WHOLE_IPV6, &limit, 3, test_clock,
				       &wait_ns));
	world_end(&world);
}

static void a_refusal_writes_nothing(void **state)
{
	struct gcra_limit limit = limit_of(0.001, 2);
	struct bucket_set before;
	struct world world;

	(void)state;
	world_make(&world, 1);
	assert_int_equal(admitted_of(&world, 1, &limit, 2), 2);
	before = world.memory.sets[0];
	for (int i = 0; i < 100; i++) {
		fixed_now_ns += NS_IN_S;
		assert_false(take(&world, 1, &limit));
	}
	assert_memory_equal(&before, &world.memory.sets[0], sizeof(before));
	world_end(&world);
}

/* Also into ticks of another length, and never for longer than the limit can hold. */
static void a_debt_is_kept_when_the_limit_changes(void **state)
{
	struct gcra_limit fast = limit_of(1, 3), slow = limit_of(0.001, 3), more = limit_of(1, 8);
	struct world world;

	(void)state;
	world_make(&world, 1);
	assert_int_not_equal(fast.word_class, slow.word_class);
	assert_int_equal(admitted_of(&world, 1, &fast, 9), 3);
	assert_int_equal(admitted_of(&world, 1, &more, 9), 5);
	/* Eight seconds of debt are no more than a hook of a thousand seconds. */
	assert_int_equal(admitted_of(&world, 1, &slow, 9), 2);
	assert_int_equal(admitted_of(&world, 1, &fast, 9), 0);
	fixed_now_ns += NS_IN_S;
	assert_int_equal(admitted_of(&world, 1, &fast, 9), 1);
	world_end(&world);
}

static void a_full_set_gives_up_the_word_least_in_debt_with_its_debt(void **state)
{
	enum { LEAST = 3 };
	struct gcra_limit limit = limit_of(0.001, 5);
	struct world world;

	(void)state;
	world_make(&world, 1);
	for (uint32_t number = 0; number < SET_WORDS; number++)
		assert_int_equal(admitted_of(&world, number, &limit, number == LEAST ? 2 : 4),
				 number == LEAST ? 2 : 4);
	/* Two of five are owed there. */
	assert_int_equal(admitted_of(&world, 100, &limit, 9), 3);
	/* One of five each is left in the others; what was given up has come back with no less. */
	assert_int_equal(admitted_of(&world, LEAST, &limit, 9), 1);
	for (uint32_t number = 0, more = 0; number < 1000; number++) {
		more += take(&world, number, &limit);
		assert_true(more <= SET_WORDS - 2);
	}
	assert_int_equal(words_in_use(&world), SET_WORDS);
	world_end(&world);
}

static void however_many_addresses_a_set_admits_eight_bursts(void **state)
{
	struct gcra_limit limit = limit_of(0.001, 5);
	unsigned admitted = 0;
	struct world world;

	(void)state;
	world_make(&world, 1);
	for (uint32_t number = 0; number < 10000; number++)
		admitted += admitted_of(&world, number % 977, &limit, 3);
	assert_int_equal(admitted, SET_WORDS * 5);
	world_end(&world);
}

static void a_sweep_clears_what_has_passed_and_nothing_else(void **state)
{
	struct gcra_limit fast = limit_of(1, 1), slow = limit_of(0.001, 1);
	struct world world;

	(void)state;
	world_make(&world, SETS_MAX);
	for (uint32_t number = 0; number < 200; number++)
		assert_true(take(&world, number, number % 2 ? &fast : &slow));
	assert_int_equal(sweep_all(&world), 0);
	fixed_now_ns += NS_IN_S;
	assert_int_equal(sweep_all(&world), 100);
	assert_int_equal(words_in_use(&world), 100);
	for (uint32_t number = 0; number < 200; number++)
		assert_int_equal(take(&world, number, number % 2 ? &fast : &slow), number % 2);
	world_end(&world);
}

/* Its tick counter would come round, and the debt with it. */
static void swept_in_time_a_debt_does_not_come_back(void **state)
{
	struct gcra_limit limit = limit_of(1000000, 1);
	struct world world;

	(void)state;
	world_make(&world, 1);
	assert_int_equal(limit.word_class, 0);
	assert_true(take(&world, 1, &limit));
	for (int second = 0; second < 100; second += 8) {
		fixed_now_ns += 8ULL * NS_IN_S;
		(void)sweep_all(&world);
		assert_true(second == 0 || words_in_use(&world) == 0);
	}
	assert_true(take(&world, 1, &limit));
	world_end(&world);
}

/* ---- threads */

struct stress {
	const char *name;
	uint32_t keys, sets;
	double rate; /* of each; an interval in whole ticks, so that the replay needs no slack */
	uint64_t burst;
	bool sweeps;
	bool moves;   /* from one memory to the other and back */
	bool is_node; /* all keys are one bucket, the node's */
};

struct shared {
	const struct stress *stress;
	struct world world;
	struct address_memory other; /* to move to */
	struct hooks other_hooks;
	struct gcra_limit limit;
	unsigned moves;
	bool stop;
};

struct worker {
	struct shared *shared;
	pthread_t thread;
	unsigned number;
	struct admission *log;
	size_t logged;
};

static bool take_key(struct shared *shared, unsigned number, uint32_t key)
{
	if (shared->stress->is_node)
		return take_from_node(&shared->world, number, &shared->limit);
	return take(&shared->world, key, &shared->limit);
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	struct shared *shared = worker->shared;
	uint32_t drawn = worker->number;

	for (int i = 0; i < OPERATIONS; i++) {
		uint32_t key = (drawn = drawn * 1664525 + 1013904223) >> 16;

		key %= shared->stress->keys;
		if (take_key(shared, worker->number, key))
			worker->log[worker->logged++] = (struct admission){ last_clock_ns, key, 1 };
		if (i % 1024 == 0)
			sched_yield();
	}
	return NULL;
}

static void *sweep(void *argument)
{
	struct shared *shared = argument;

	while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED)) {
		(void)sweep_all(&shared->world);
		sched_yield();
	}
	return NULL;
}

/* What was moved away from is filled with debts: whoever still looked there would be refused, and
 * whoever charged there would be seen. */
static void spoil(const struct address_memory *memory, uint32_t set_count)
{
	memset(memory->sets, 0x5a, set_count * sizeof(*memory->sets));
	memset(memory->hooks, 0x5a, sizeof(*memory->hooks));
}

static bool is_spoilt(const struct address_memory *memory, uint32_t set_count)
{
	const unsigned char *byte = (const unsigned char *)memory->sets;

	for (size_t at = 0; at < set_count * sizeof(*memory->sets); at++)
		if (byte[at] != 0x5a)
			return false;
	byte = (const unsigned char *)memory->hooks;
	for (size_t at = 0; at < sizeof(*memory->hooks); at++)
		if (byte[at] != 0x5a)
			return false;
	return true;
}

static void *move(void *argument)
{
	struct shared *shared = argument;
	struct world *world = &shared->world;

	while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED)) {
		struct address_memory old = world->memory;

		assert_true(is_spoilt(&shared->other, world->set_count));
		address_table_move(world->table, &shared->other);
		world->memory = shared->other;
		shared->other = old;
		spoil(&old, world->set_count);
		shared->moves++;
		sched_yield();
	}
	return NULL;
}

static struct replayed run(const struct stress *stress)
{
	struct shared shared = {
		.stress = stress,
		.limit = limit_of_kind(stress->rate, stress->burst,
				       stress->is_node ? BUCKET_WHOLE : BUCKET_WORD),
	};
	struct reference references[PROBE_KEYS];
	struct admission_log logs[THREADS];
	struct worker workers[THREADS];
	struct replayed result;
	pthread_t sweeper, mover;

	world_make_at(&shared.world, stress->sets, 0);
	shared.other = (struct address_memory){ new_sets(stress->sets), &shared.other_hooks };
	spoil(&shared.other, stress->sets);
	for (uint32_t key = 0; key < PROBE_KEYS; key++)
		references[key] = (struct reference){ .tokens = (uint64_t)stress->rate,
						      .period_ns = NS_IN_S,
						      .burst = stress->burst };
	if (stress->sweeps)
		assert_int_equal(pthread_create(&sweeper, NULL, sweep, &shared), 0);
	if (stress->moves)
		assert_int_equal(pthread_create(&mover, NULL, move, &shared), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .shared = &shared, .number = i };
		workers[i].log = malloc(OPERATIONS * sizeof(*workers[i].log));
		assert_non_null(workers[i].log);
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		logs[i] = (struct admission_log){ workers[i].log, workers[i].logged };
	}
	__atomic_store_n(&shared.stop, true, __ATOMIC_RELAXED);
	if (stress->sweeps)
		pthread_join(sweeper, NULL);
	if (stress->moves) {
		pthread_join(mover, NULL);
		assert_true(is_spoilt(&shared.other, stress->sets));
		assert_true(shared.moves > 1);
	}
	result = replay(logs, THREADS, references);
	print_message("# %s: %d asked, %llu admissions replayed, %llu excess, moved %u times\n",
		      stress->name, THREADS * OPERATIONS, (unsigned long long)result.admissions,
		      (unsigned long long)result.excess, shared.moves);
	for (unsigned i = 0; i < THREADS; i++)
		free(workers[i].log);
	free(shared.other.sets);
	world_end(&shared.world);
	return result;
}

static void threads_are_admitted_no_more_than_one_caller(void **state)
{
	static const struct stress rows[] = {
		{ "one address", 1, 1, 20000, 20, false, false, false },
		{ "one address, swept", 1, 1, 20000, 1, true, false, false },
		{ "a full set", SET_WORDS, 1, 2000, 5, true, false, false },
		{ "more addresses than words", 2 * SET_WORDS, 1, 2000, 3, true, false, false },
		{ "many sets", PROBE_KEYS, SETS_MAX, 200, 2, true, false, false },
		{ "one address, moved", 1, 1, 20000, 20, false, true, false },
		{ "more addresses than words, moved", 2 * SET_WORDS, 1, 2000, 3, true, true,
		  false },
		{ "many sets, moved", PROBE_KEYS, SETS_MAX, 200, 2, true, true, false },
		{ "the node", 1, 1, 20000, 20, true, false, true },
		{ "the node, moved", 1, 1, 20000, 1, true, true, true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct replayed result = run(&rows[i]);

		check_row_equal(&rows[i], result.backwards, 0);
		check_row_equal(&rows[i], result.excess, 0);
		check_row(&rows[i], result.admissions > rows[i].burst);
		check_row(&rows[i], result.admissions < (uint64_t)THREADS * OPERATIONS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_address_has_its_own_burst_and_rate),
		cmocka_unit_test(more_than_the_burst_is_never_admitted),
		cmocka_unit_test(a_refusal_writes_nothing),
		cmocka_unit_test(a_debt_is_kept_when_the_limit_changes),
		cmocka_unit_test(a_full_set_gives_up_the_word_least_in_debt_with_its_debt),
		cmocka_unit_test(however_many_addresses_a_set_admits_eight_bursts),
		cmocka_unit_test(a_sweep_clears_what_has_passed_and_nothing_else),
		cmocka_unit_test(swept_in_time_a_debt_does_not_come_back),
		cmocka_unit_test(threads_are_admitted_no_more_than_one_caller),
	};

	return cmocka_run_group_tests_name("address table", tests, NULL, NULL);
}
