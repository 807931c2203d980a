/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * limit/buckets.c under threads that lose the CPU anywhere (bucket_stress.h): every admission is
 * replayed, in the order of its date, through the reference of tests/bpf/replay.h, and none may be
 * too many, whatever is swept and reset meanwhile. And step by step: whatever one operation is put
 * into the middle of another, what comes out is what they give one after the other.
 */
#include "test.h"

#include "bucket_stress.h"
#include "tests/bpf/replay.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { OPERATIONS = 100000 };
#else
enum { OPERATIONS = 1000000 };
#endif

enum {
	THREADS = 4,
	SLOTS = 128,
	KEYS_MAX = 256,
	RESET_IN = 512,
	FAULT_ROUNDS_MAX = 20,
	USUAL_NS = 300, /* of one charge */
	SLOWNESS_CHARGES = 5000,
};

/* How many times slower than usual this machine is: rates are so much lower. */
static uint64_t slowness = 1;

struct stress {
	const char *name;
	uint32_t keys;
	uint64_t interval_ns; /* of hooks, times slowness */
	uint64_t burst;
	uint64_t bytes_burst; /* 0: bytes are not limited; else a byte costs a tenth of a hook */
	bool atomic;
	bool sweeps;
	bool resets;
};

struct shared {
	const struct stress *stress;
	struct buckets *buckets;
	struct gcra_limit hooks, bytes;
	bool stop;
};

/* Admissions, and as those of 0 tokens resets. Those of bytes have keys from KEYS_MAX on. */
struct worker {
	struct shared *shared;
	pthread_t thread;
	unsigned number;
	struct admission *log;
	size_t logged;
	uint64_t answers[4];
};

static void log_admission(struct worker *worker, uint32_t key, unsigned meter, uint64_t tokens)
{
	worker->log[worker->logged++] = (struct admission){
		.now_ns = swapped_ns[meter],
		.key = key + meter * KEYS_MAX,
		.tokens = (__u32)tokens,
	};
}

static void ask(struct worker *worker, uint32_t key)
{
	const struct shared *shared = worker->shared;
	const struct stress *stress = shared->stress;
	struct bucket_charge charge = {
		.key = &key,
		.key_bytes = sizeof(key),
		.hooks = &shared->hooks,
		.hook_tokens = 1,
		.bytes = stress->bytes_burst ? &shared->bytes : NULL,
		.byte_tokens = stress->bytes_burst ? draw() % (stress->bytes_burst + 2) : 0,
		.atomic = stress->atomic,
	};
	uint64_t bytes =
		charge.byte_tokens < stress->bytes_burst ? charge.byte_tokens : stress->bytes_burst;
	struct bucket_result result;

	first_clock_ns = reads_clock_first ? real_clock() : 0;
	buckets_charge(shared->buckets, &charge, stress_clock, &result);
	worker->answers[result.answer]++;
	if (result.answer == BUCKETS_ADMITTED ||
	    (result.answer == BUCKETS_BYTES_REFUSED && !stress->atomic))
		log_admission(worker, key, 0, 1);
	if (result.answer == BUCKETS_ADMITTED && bytes)
		log_admission(worker, key, 1, bytes);
}

static void reset(struct worker *worker, uint32_t key)
{
	memset(swapped_ns, 0, sizeof(swapped_ns));
	buckets_reset(worker->shared->buckets, &key, sizeof(key), stress_clock);
	for (unsigned meter = 0; meter < SLOT_METERS; meter++)
		if (swapped_ns[meter])
			log_admission(worker, key, meter, 0);
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	const struct stress *stress = worker->shared->stress;

	random_state = worker->number * 0x1234567ULL;
	for (int i = 0; i < OPERATIONS; i++) {
		uint32_t key = (uint32_t)(draw() % stress->keys);

		if (stress->resets && draw() % RESET_IN == 0)
			reset(worker, key);
		ask(worker, key);
	}
	return NULL;
}

static void *sweep(void *argument)
{
	struct shared *shared = argument;

	random_state = 99;
	while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED)) {
		sweep_all(shared->buckets);
		sched_yield();
	}
	return NULL;
}

static void run_threads(struct shared *shared, struct worker *workers)
{
	pthread_t sweeper;

	loses_cpu = true;
	if (shared->stress->sweeps)
		assert_int_equal(pthread_create(&sweeper, NULL, sweep, shared), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .shared = shared, .number = i + 1 };
		workers[i].log = malloc(3UL * OPERATIONS * sizeof(*workers[i].log));
		assert_non_null(workers[i].log);
	}
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	__atomic_store_n(&shared->stop, true, __ATOMIC_RELAXED);
	if (shared->stress->sweeps)
		pthread_join(sweeper, NULL);
	loses_cpu = false;
}

/* The next of all logs by date, resets before admissions. */
static struct admission_log *next_of(struct admission_log *logs)
{
	struct admission_log *next = NULL;

	for (unsigned i = 0; i < THREADS; i++) {
		const struct admission *one = logs[i].admissions;

		if (logs[i].count && (!next || one->now_ns < next->admissions->now_ns ||
				      (one->now_ns == next->admissions->now_ns && !one->tokens)))
			next = &logs[i];
	}
	return next;
}

/* Like replay() of replay.h, with resets. Of what has a reset's very date, it cannot be told
 * whether it was before the reset or after: so the reset counts at both ends of that nanosecond. */
static struct replayed replay_with_resets(struct admission_log *logs, struct reference *references)
{
	uint64_t reset_ns[2 * KEYS_MAX] = { 0 }, last_ns[THREADS] = { 0 };
	struct replayed result = { 0 };
	struct admission_log *next;

	while ((next = next_of(logs))) {
		const struct admission *one = next->admissions++;
		struct reference *reference = &references[one->key];

		next->count--;
		result.backwards += one->now_ns < last_ns[next - logs];
		last_ns[next - logs] = one->now_ns;
		if (!one->tokens || (reset_ns[one->key] && one->now_ns > reset_ns[one->key])) {
			reference->full_at = 0;
			reset_ns[one->key] = one->tokens ? 0 : one->now_ns;
		}
		if (!one->tokens)
			continue;
		result.admissions++;
		if (!reference_admits(reference, one->now_ns, one->tokens))
			result.excess++;
	}
	return result;
}

static void set_limits(struct shared *shared, struct reference *references)
{
	const struct stress *stress = shared->stress;
	uint64_t interval_ns = stress->interval_ns * slowness;

	shared->hooks = limit_of(interval_ns, stress->burst);
	shared->bytes = limit_of(interval_ns / 10, stress->bytes_burst);
	for (uint32_t key = 0; key < KEYS_MAX; key++) {
		references[key] = (struct reference){
			.tokens = 1,
			.period_ns = interval_ns,
			.burst = stress->burst,
		};
		references[KEYS_MAX + key] = (struct reference){
			.tokens = 1,
			.period_ns = interval_ns / 10,
			.burst = stress->bytes_burst,
		};
	}
}

static struct replayed run(const struct stress *stress, uint64_t answers[4])
{
	struct bucket_slot *memory = memory_new(SLOTS);
	struct shared shared = { .stress = stress, .buckets = open_buckets(memory, SLOTS) };
	struct reference references[2 * KEYS_MAX];
	struct worker workers[THREADS];
	struct admission_log logs[THREADS];
	struct replayed result;

	set_limits(&shared, references);
	run_threads(&shared, workers);
	memset(answers, 0, 4 * sizeof(*answers));
	for (unsigned i = 0; i < THREADS; i++) {
		logs[i] = (struct admission_log){ workers[i].log, workers[i].logged };
		for (int answer = 0; answer < 4; answer++)
			answers[answer] += workers[i].answers[answer];
	}
	result = replay_with_resets(logs, references);
	for (unsigned i = 0; i < THREADS; i++)
		free(workers[i].log);
	buckets_free(shared.buckets);
	free(memory);
	print_message("# %s: %llu asked, %llu admissions replayed, %llu excess; admitted %llu, "
		      "refused on hooks %llu, on bytes %llu, full %llu\n",
		      stress->name, (unsigned long long)THREADS * OPERATIONS,
		      (unsigned long long)result.admissions, (unsigned long long)result.excess,
		      (unsigned long long)answers[BUCKETS_ADMITTED],
		      (unsigned long long)answers[BUCKETS_HOOKS_REFUSED],
		      (unsigned long long)answers[BUCKETS_BYTES_REFUSED],
		      (unsigned long long)answers[BUCKETS_FULL]);
	return result;
}

static const struct stress scenarios[] = {
	{ "one key", 1, 1000, 3, 0, false, false, false },
	{ "one key, swept", 1, 400, 1, 0, false, true, false },
	{ "one key, reset", 1, 1000, 3, 0, false, false, true },
	{ "one key, swept and reset", 1, 400, 2, 0, false, true, true },
	{ "hooks and bytes", 4, 4000, 3, 30, false, true, true },
	{ "hooks and bytes, atomic", 2, 2000, 3, 30, true, false, false },
	{ "hooks and bytes, atomic, swept and reset", 4, 4000, 3, 30, true, true, true },
	{ "a few more keys than slots, swept", 160, 30000, 1, 20, false, true, false },
	{ "a few more keys than slots, atomic, swept and reset", 160, 30000, 1, 20, true, true,
	  true },
	{ "more keys than slots, swept", KEYS_MAX, 50000, 1, 0, false, true, false },
	{ "more keys than slots, atomic, swept and reset", KEYS_MAX, 100000, 2, 20, true, true,
	  true },
};

static void no_interleaving_admits_more_than_one_caller_at_a_time(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(scenarios); i++) {
		const struct stress *row = &scenarios[i];
		uint64_t answers[4];
		struct replayed result = run(row, answers);

		check_row_equal(row, result.backwards, 0);
		check_row_equal(row, result.excess, 0);
		check_row(row, result.admissions > OPERATIONS / 100);
		check_row(row, answers[BUCKETS_HOOKS_REFUSED] > 0);
		check_row(row, !row->bytes_burst || answers[BUCKETS_BYTES_REFUSED] > 0);
	}
}

static void stress_finds_the_fault_when_the_clock_is_read_before_the_tat(void **state)
{
	static const struct stress stress = { "clock before TAT", 1, 1000, 3, 0, 0, 0, 0 };
	struct replayed result = { 0 };
	uint64_t answers[4];

	(void)state;
	reads_clock_first = true;
	for (int round = 0; round < FAULT_ROUNDS_MAX && !result.excess; round++)
		result = run(&stress, answers);
	reads_clock_first = false;
	assert_true(result.excess > 0);
}

enum { CALLERS = 200, BURST = 50 };

static void *hit_once(void *argument)
{
	static const struct bucket_charge plain = { .key = "acme",
						    .key_bytes = 4,
						    .hook_tokens = 1 };
	struct shared *shared = argument;
	struct bucket_charge charge = plain;
	struct bucket_result result;

	random_state = (uintptr_t)&result;
	charge.hooks = &shared->hooks;
	while (!__atomic_load_n(&shared->stop, __ATOMIC_ACQUIRE))
		sched_yield();
	buckets_charge(shared->buckets, &charge, stress_clock, &result);
	return (void *)(uintptr_t)(result.answer == BUCKETS_ADMITTED);
}

static void two_hundred_at_once_get_exactly_the_burst_of_fifty(void **state)
{
	struct bucket_slot *memory = memory_new(SLOTS);
	struct shared shared = {
		.buckets = open_buckets(memory, SLOTS),
		.hooks = limit_of(1000000000000, BURST), /* 0.001 a second */
	};
	pthread_t threads[CALLERS];
	size_t admitted = 0;

	(void)state;
	loses_cpu = true;
	for (int i = 0; i < CALLERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hit_once, &shared), 0);
	__atomic_store_n(&shared.stop, true, __ATOMIC_RELEASE);
	for (int i = 0; i < CALLERS; i++) {
		void *was_admitted;

		pthread_join(threads[i], &was_admitted);
		admitted += (uintptr_t)was_admitted;
	}
	loses_cpu = false;
	assert_int_equal(admitted, BURST);
	buckets_free(shared.buckets);
	free(memory);
}

/* The best of some rounds: what else the CPU was busy with is not the machine's speed. */
static int measure_slowness(void **state)
{
	static const struct stress stress = { "alone", 1, 1000, 3, 0, 0, 0, 0 };
	static struct admission log[SLOWNESS_CHARGES];
	struct bucket_slot *memory = memory_new(SLOTS);
	struct shared shared = { .stress = &stress, .buckets = open_buckets(memory, SLOTS) };
	struct reference references[2 * KEYS_MAX];
	uint64_t least_ns = UINT64_MAX;

	(void)state;
	set_limits(&shared, references);
	for (int round = 0; round < 5; round++) {
		struct worker worker = { .shared = &shared, .log = log };
		uint64_t start_ns = real_clock(), took_ns;

		for (int i = 0; i < SLOWNESS_CHARGES; i++)
			ask(&worker, 0);
		took_ns = real_clock() - start_ns;
		least_ns = took_ns < least_ns ? took_ns : least_ns;
	}
	slowness = 1 + least_ns / SLOWNESS_CHARGES / USUAL_NS;
	buckets_free(shared.buckets);
	free(memory);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_interleaving_admits_more_than_one_caller_at_a_time),
		cmocka_unit_test(stress_finds_the_fault_when_the_clock_is_read_before_the_tat),
		cmocka_unit_test(two_hundred_at_once_get_exactly_the_burst_of_fifty),
	};

	return cmocka_run_group_tests_name("buckets, races", tests, measure_slowness, NULL);
}
