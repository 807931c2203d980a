/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bpf/table.h on the host, under threads that lose the CPU anywhere (table_stress.h): every
 * admission is replayed, in the order of its clock, through the reference of tests/bpf/replay.h,
 * and none may be too many. Two faults are put in by hand, to show that the replay would find them.
 */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "limit/build.h"
#include "tests/bpf/replay.h"

#include "table_stress.h"

enum {
	FAULT_ROUNDS_MAX = 20,
	USUAL_NS = 400, /* of one request */
	SLOWNESS_ROUNDS = 5,
	SLOWNESS_REQUESTS = 4000,
	INTERVAL_NS = 1000000, /* where the clock stands */
};

/* How many times slower than usual this machine is: rates are so much lower. */
static unsigned slowness = 1;

static struct replayed run(const struct stress *stress, uint64_t *refused)
{
	struct shared *shared = aligned_alloc(64, (sizeof(*shared) + 63) / 64 * 64);
	struct worker workers[THREADS];
	struct admission_log logs[THREADS];
	struct reference references[KEYS_MAX];
	uint64_t answers[5] = {};
	struct replayed result;

	assert_non_null(shared);
	memset(shared, 0, sizeof(*shared));
	shared->stress = stress;
	set_limits(shared, references, slowness);
	run_threads(shared, workers);
	for (unsigned i = 0; i < THREADS; i++) {
		logs[i] = (struct admission_log){ workers[i].log, workers[i].logged };
		for (unsigned taken = 0; taken < COUNT_OF(answers); taken++)
			answers[taken] += workers[i].answers[taken];
	}
	result = replay(logs, THREADS, references);
	for (unsigned i = 0; i < THREADS; i++)
		free(workers[i].log);
	free(shared);
	*refused = answers[TAKEN_REFUSED] + answers[TAKEN_SET_FULL];
	print_message("# %s: %llu asked, %llu admitted and replayed, %llu excess; refused %llu, "
		      "set full %llu, tries %llu\n",
		      stress->name, (unsigned long long)THREADS * OPERATIONS,
		      (unsigned long long)result.admissions, (unsigned long long)result.excess,
		      (unsigned long long)answers[TAKEN_REFUSED],
		      (unsigned long long)answers[TAKEN_SET_FULL],
		      (unsigned long long)answers[TAKEN_TRIES]);
	return result;
}

static const struct stress scenarios[] = {
	{ "one address", 1, 1, 1000, 3, WHEN_FULL_SHARE, false, false, 1 },
	{ "one address, swept", 1, 1, 1000, 3, WHEN_FULL_SHARE, true, true, 1 },
	{ "six addresses, swept", 6, 1, 4000, 3, WHEN_FULL_SHARE, true, true, 1 },
	{ "six addresses, burst of one, swept", 6, 1, 3000, 1, WHEN_FULL_SHARE, true, true, 1 },
	{ "four classes of words", 8, 4, 4096, 3, WHEN_FULL_SHARE, true, true, 1 },
	{ "more addresses than words, refuse", 12, 1, 5000, 3, WHEN_FULL_REFUSE, true, true, 1 },
	{ "more addresses than words, admit", 12, 1, 5000, 3, WHEN_FULL_ADMIT, true, true, 1 },
	{ "more addresses than words, share", 12, 1, 5000, 3, WHEN_FULL_SHARE, true, true, 1 },
	{ "the same by the tick", 12, 1, 5000, 3, WHEN_FULL_SHARE, false, false, 1 },
	{ "four classes, share", 14, 4, 5120, 3, WHEN_FULL_SHARE, true, true, 1 },
};

static void no_interleaving_admits_more_than_one_caller_at_a_time(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(scenarios); i++) {
		const struct stress *row = &scenarios[i];
		uint64_t refused;
		struct replayed result = run(row, &refused);

		check_row_equal(row, result.backwards, 0);
		check_row_equal(row, result.excess, 0);
		check_row(row,
			  result.admissions * 100 >= THREADS * OPERATIONS * row->least_percent);
		check_row(row, refused > 0);
	}
}

/* The stress must find a fault that is put in: else it would find no other either. */
static void check_stress_finds_a_fault(const struct stress *stress)
{
	struct replayed result = {};
	uint64_t refused;

	for (int round = 0; round < FAULT_ROUNDS_MAX && !result.excess; round++)
		result = run(stress, &refused);
	assert_int_equal(result.backwards, 0);
	assert_true(result.excess > 0);
}

static void stress_finds_the_fault_when_the_second_look_is_left_out(void **state)
{
	static const struct stress stress = {
		"no second look", 8, 1, 5000, 1, WHEN_FULL_REFUSE, true, true, 1,
	};

	(void)state;
	skips_second_look = true;
	check_stress_finds_a_fault(&stress);
	skips_second_look = false;
}

static void stress_finds_the_fault_when_the_clock_is_read_before_the_word(void **state)
{
	static const struct stress stress = {
		"clock before word", 1, 1, 1000, 3, WHEN_FULL_REFUSE, true, false, 1,
	};

	(void)state;
	reads_clock_first = true;
	check_stress_finds_a_fault(&stress);
	reads_clock_first = false;
}

/* One caller, a clock that stands: for interleavings that are told step by step. */
struct stage {
	struct stress stress;
	struct shared shared;
	struct admission log[64];
	struct worker worker;
	struct reference references[KEYS_MAX];
};

static struct stage *stage_new(uint32_t keys, uint64_t burst)
{
	struct stage *stage = aligned_alloc(64, (sizeof(*stage) + 63) / 64 * 64);

	assert_non_null(stage);
	memset(stage, 0, sizeof(*stage));
	stage->stress = (struct stress){
		"by hand", keys, 1, INTERVAL_NS, burst, WHEN_FULL_SHARE, true, false, 0,
	};
	stage->shared.stress = &stage->stress;
	stage->worker = (struct worker){ .shared = &stage->shared, .log = stage->log };
	set_limits(&stage->shared, stage->references, 1);
	fixed_now_ns = 1000000000000;
	return stage;
}

static struct replayed stage_free(struct stage *stage)
{
	struct admission_log log = { stage->log, stage->worker.logged };
	struct replayed result = replay(&log, 1, stage->references);

	fixed_now_ns = 0;
	free(stage);
	return result;
}

/*
 * Two CPUs charge one address whose word is gone. The first has found the second word to take when
 * it is held up; meanwhile the first word passes, and the other CPU takes that one.
 */
static struct replayed take_two_words_at_once(void)
{
	struct stage *stage = stage_new(2, 1);
	struct table_request request;
	struct table_outcome outcome = {};
	__u64 word = WORD_EMPTY;
	int found;

	ask(&stage->worker, 1);
	fixed_now_ns += INTERVAL_NS / 2;
	request = request_of(&stage->shared, 0);
	found = table_find(&stage->shared.set, &request, &word);
	assert_int_equal(found, FOUND_PASSED * SET_WORDS + 1);

	fixed_now_ns += INTERVAL_NS;
	assert_int_equal(ask(&stage->worker, 0), TAKEN_ADMITTED);
	assert_int_equal(word_tag(stage->shared.set.word[0]), request.tag);

	outcome.index = 1;
	if (take_word(&stage->shared.set, &stage->shared.limits[0], &request, &outcome, word,
		      true) == TAKEN_ADMITTED)
		log_admission(&stage->worker, 0, &outcome);
	return stage_free(stage);
}

static void finds_the_fault_when_the_second_look_is_left_out(void **state)
{
	struct replayed result = take_two_words_at_once();

	(void)state;
	assert_int_equal(result.admissions, 2);
	assert_int_equal(result.excess, 0);
	skips_second_look = true;
	result = take_two_words_at_once();
	skips_second_look = false;
	assert_int_equal(result.admissions, 3);
	assert_int_equal(result.excess, 1);
}

/* What an address was admitted while its set was full still counts when a word falls free. */
static void address_keeps_its_debt_when_its_set_is_full_no_more(void **state)
{
	struct stage *stage = stage_new(SET_WORDS + 1, 3);
	struct replayed result;
	int shared = 0, later = 0;

	(void)state;
	for (uint32_t key = 1; key <= SET_WORDS; key++)
		assert_int_equal(ask(&stage->worker, key), TAKEN_ADMITTED);
	fixed_now_ns += INTERVAL_NS / 4;
	for (uint32_t key = 1; key < SET_WORDS; key++)
		assert_int_equal(ask(&stage->worker, key), TAKEN_ADMITTED);
	while (ask(&stage->worker, 0) == TAKEN_ADMITTED)
		shared++;
	/* The last one's word passes. */
	fixed_now_ns += INTERVAL_NS * 4 / 5;
	while (ask(&stage->worker, 0) == TAKEN_ADMITTED)
		later++;
	result = stage_free(stage);
	print_message("# %d admitted while the set was full, %d after\n", shared, later);
	assert_true(shared > 0 && later > 0);
	assert_int_equal(result.excess, 0);
}

/* The best of some rounds: what else the CPU was busy with is not the machine's speed. */
static int measure_slowness(void **state)
{
	static const struct stress stress = {
		"alone", 1, 1, 1000, 3, WHEN_FULL_REFUSE, true, false, 0,
	};
	struct shared shared = { .stress = &stress };
	struct reference references[KEYS_MAX];
	uint64_t least_ns = UINT64_MAX;

	(void)state;
	set_limits(&shared, references, 1);
	for (int round = 0; round < SLOWNESS_ROUNDS; round++) {
		struct admission log[SLOWNESS_REQUESTS];
		struct worker worker = { .shared = &shared, .log = log };
		uint64_t start_ns = read_clock(CLOCK_MONOTONIC), took_ns;

		for (int i = 0; i < SLOWNESS_REQUESTS; i++)
			ask(&worker, 0);
		took_ns = read_clock(CLOCK_MONOTONIC) - start_ns;
		least_ns = took_ns < least_ns ? took_ns : least_ns;
	}
	slowness = 1 + (unsigned)(least_ns / SLOWNESS_REQUESTS / USUAL_NS);
	return 0;
}

static void limits_of_these_tests_are_what_limit_build_makes(void **state)
{
	struct rate_limit wanted = { .rate = 500000, .burst = 3 };
	struct gcra_limit built, ours = limit_of(0, 2000, 3);
	uint64_t longest;

	(void)state;
	assert_int_equal(limit_build(&wanted, BUCKET_WORD, &built, &longest), 0);
	assert_memory_equal(&built, &ours, sizeof(built));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_of_these_tests_are_what_limit_build_makes),
		cmocka_unit_test(no_interleaving_admits_more_than_one_caller_at_a_time),
		cmocka_unit_test(finds_the_fault_when_the_second_look_is_left_out),
		cmocka_unit_test(address_keeps_its_debt_when_its_set_is_full_no_more),
		cmocka_unit_test(stress_finds_the_fault_when_the_second_look_is_left_out),
		cmocka_unit_test(stress_finds_the_fault_when_the_clock_is_read_before_the_word),
	};

	return cmocka_run_group_tests(tests, measure_slowness, NULL);
}
