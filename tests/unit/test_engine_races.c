/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads that ask the engine at once while limits are changed, reloaded and swept under them.
 * Whatever is changed, the limit stays the same, so that the bound is one: every admission is
 * replayed, by its date, through the reference of tests/bpf/replay.h, and none may be too many.
 */
#include "test.h"

#include "engine_fixture.h"
#include "tests/bpf/replay.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { OPERATIONS = 60000 };
#else
enum { OPERATIONS = 400000 };
#endif

/* 20000 a second are one in 50 us, to the nanosecond. */
enum { THREADS = 4, BURST = 20, INTERVAL_NS = 50000 };

static const char *const yaml = "rate_limits:\n"
				"  per_ip: {rate: 20000, burst: 20}\n"
				"  default: {rate: 20000, burst: 20}\n"
				"tenant_slots: 1024\n";

/* The same limit from elsewhere; and a node's, which is asked instead of an address. */
static const char *const other_yaml =
	"rate_limits:\n"
	"  per_ip: {rate: 20000, burst: 20}\n"
	"  tenants: {acme: {rate: 20000, burst: 20}, other: {rate: 1, burst: 1}}\n"
	"tenant_slots: 1024\n";
static const char *const node_yaml = "rate_limits:\n"
				     "  node: {hooks: {rate: 20000, burst: 20}}\n"
				     "tenant_slots: 1024\n";

#define SAME_LIMIT "{\"rate\":20000,\"burst\":20}"

struct stress {
	const char *name;
	const char *yaml, *other_yaml; /* reloaded in turn */
	bool (*ask)(struct engine_reader *reader);
	bool overrides;
	bool forgets_debt; /* put wrong by hand */
};

struct shared {
	struct world world;
	const struct stress *stress;
	struct settings *settings[2];
	unsigned changes;
	bool stop;
};

struct worker {
	struct shared *shared;
	pthread_t thread;
	struct admission *log;
	size_t logged;
};

/* ---- what is asked */

static void keep_answer(void *context, const struct decision *decision)
{
	*(bool *)context = decision->admitted;
}

static bool ask_tenant(struct engine_reader *reader)
{
	bool admitted;

	assert_int_equal(engine_hit(reader, name_of("acme"), 0, 0, keep_answer, &admitted), 0);
	return admitted;
}

static bool ask_edge(struct engine_reader *reader)
{
	static const union address peer = { .byte = { [10] = 0xff, 0xff, 192, 0, 2, 1 } };
	struct preread preread = { .peer = &peer, .source = "hook", .source_bytes = 4 };
	bool admitted;

	assert_int_equal(engine_preread(reader, &preread, keep_answer, &admitted), 0);
	return admitted;
}

static bool ask_throttle(struct engine_reader *reader)
{
	static const struct cell_request request = { BURST, INTERVAL_NS, 1 };
	struct cell_answer answer;

	assert_int_equal(engine_throttle(reader, "key", 3, &request, &answer), 0);
	return !answer.limited;
}

/* ---- who asks, and who is in the way */

static void *work(void *argument)
{
	struct worker *worker = argument;
	struct shared *shared = worker->shared;
	struct engine_reader *reader = NULL;

	assert_int_equal(engine_reader_new(shared->world.engine, &reader), 0);
	for (int i = 0; i < OPERATIONS; i++) {
		if (shared->stress->ask(reader))
			worker->log[worker->logged++] = (struct admission){ last_clock_ns, 0, 1 };
		if (i % 1024 == 0)
			sched_yield();
	}
	engine_reader_free(reader);
	return NULL;
}

static bool is_over(struct shared *shared)
{
	return __atomic_load_n(&shared->stop, __ATOMIC_RELAXED);
}

static void *change(void *argument)
{
	struct shared *shared = argument;
	bool keep_debt = !shared->stress->forgets_debt;
	struct trouble trouble;

	while (!is_over(shared)) {
		unsigned turn = shared->changes++;

		if (shared->stress->overrides) {
			(void)set_override(&shared->world, "acme", SAME_LIMIT, 0, keep_debt);
			(void)set_override(&shared->world, "globex", SAME_LIMIT, 1, false);
			(void)unset_override(&shared->world, "acme", keep_debt);
		}
		assert_int_equal(
			engine_reload(shared->world.engine, shared->settings[turn % 2], &trouble),
			0);
		sched_yield();
	}
	return NULL;
}

static void *keep_up(void *argument)
{
	struct shared *shared = argument;
	struct engine_numbers numbers;
	struct limits_entry entry;

	while (!is_over(shared)) {
		engine_tick(shared->world.engine);
		engine_numbers(shared->world.engine, &numbers);
		(void)source_of(&shared->world, "acme", &entry);
		sched_yield();
	}
	return NULL;
}

static struct replayed run(const struct stress *stress)
{
	struct shared shared = { .stress = stress };
	struct reference reference = { .tokens = 1, .period_ns = INTERVAL_NS, .burst = BURST };
	struct worker workers[THREADS];
	struct admission_log logs[THREADS];
	pthread_t changer, keeper;
	struct replayed result;

	world_make(&shared.world, stress->yaml);
	fixed_now_ns = 0;
	shared.settings[0] = settings_of(stress->other_yaml);
	shared.settings[1] = settings_of(stress->yaml);
	for (int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .shared = &shared };
		workers[i].log = malloc(OPERATIONS * sizeof(*workers[i].log));
		assert_non_null(workers[i].log);
	}
	assert_int_equal(pthread_create(&changer, NULL, change, &shared), 0);
	assert_int_equal(pthread_create(&keeper, NULL, keep_up, &shared), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		logs[i] = (struct admission_log){ workers[i].log, workers[i].logged };
	}
	__atomic_store_n(&shared.stop, true, __ATOMIC_RELAXED);
	pthread_join(changer, NULL);
	pthread_join(keeper, NULL);
	result = replay(logs, THREADS, &reference);
	print_message("# %s: %d asked, %llu admissions replayed, %llu excess; %u changes\n",
		      stress->name, THREADS * OPERATIONS, (unsigned long long)result.admissions,
		      (unsigned long long)result.excess, shared.changes);
	for (int i = 0; i < THREADS; i++)
		free(workers[i].log);
	settings_free(shared.settings[0]);
	settings_free(shared.settings[1]);
	world_end(&shared.world);
	return result;
}

/* ---- what is to hold */

static void no_change_lets_anybody_have_more_than_the_limit(void **state)
{
	static const struct stress rows[] = {
		{ "a tenant", yaml, other_yaml, ask_tenant, true, false },
		{ "an address", yaml, other_yaml, ask_edge, false, false },
		{ "the node", node_yaml, node_yaml, ask_edge, false, false },
		{ "a key of CL.THROTTLE", yaml, other_yaml, ask_throttle, true, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct replayed result = run(&rows[i]);

		check_row_equal(&rows[i], result.backwards, 0);
		check_row_equal(&rows[i], result.excess, 0);
		check_row(&rows[i], result.admissions > BURST);
		check_row(&rows[i], result.admissions < (uint64_t)THREADS * OPERATIONS);
	}
}

static void the_replay_sees_debts_that_are_forgotten(void **state)
{
	static const struct stress stress = {
		"a tenant, debts forgotten", yaml, other_yaml, ask_tenant, true, true
	};

	(void)state;
	assert_true(run(&stress).excess > 0);
}

enum { CALLERS = 200, RUSH_BURST = 50 };

struct rush {
	struct engine *engine;
	bool begin;
};

static void *hit_once(void *argument)
{
	struct rush *rush = argument;
	struct engine_reader *reader = NULL;
	bool admitted;

	assert_int_equal(engine_reader_new(rush->engine, &reader), 0);
	while (!__atomic_load_n(&rush->begin, __ATOMIC_ACQUIRE))
		sched_yield();
	admitted = ask_tenant(reader);
	engine_reader_free(reader);
	return (void *)(uintptr_t)admitted;
}

static void two_hundred_at_once_get_exactly_the_burst_of_fifty(void **state)
{
	struct engine_numbers numbers;
	pthread_t threads[CALLERS];
	struct rush rush = { 0 };
	struct world world;
	size_t admitted = 0;

	(void)state;
	world_make(&world, "rate_limits: {default: {rate: 0.001, burst: 50}}\n");
	fixed_now_ns = 0;
	rush.engine = world.engine;
	for (int i = 0; i < CALLERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hit_once, &rush), 0);
	__atomic_store_n(&rush.begin, true, __ATOMIC_RELEASE);
	for (int i = 0; i < CALLERS; i++) {
		void *was_admitted;

		pthread_join(threads[i], &was_admitted);
		admitted += (uintptr_t)was_admitted;
	}
	assert_int_equal(admitted, RUSH_BURST);
	engine_numbers(world.engine, &numbers);
	assert_int_equal(numbers.decisions[QUESTION_HIT][DECISION_OK], RUSH_BURST);
	assert_int_equal(numbers.decisions[QUESTION_HIT][DECISION_RATE_LIMITED],
			 CALLERS - RUSH_BURST);
	world_end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_change_lets_anybody_have_more_than_the_limit),
		cmocka_unit_test(the_replay_sees_debts_that_are_forgotten),
		cmocka_unit_test(two_hundred_at_once_get_exactly_the_burst_of_fifty),
	};

	return cmocka_run_group_tests_name("engine, races", tests, NULL, NULL);
}
