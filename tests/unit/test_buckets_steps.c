/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * limit/buckets.c step by step (bucket_stress.h). Before each atomic step of each operation, a
 * second operation is put in, in a thread of its own that runs until it ends or waits for a lock:
 * of every answer and every bucket, what comes out is what comes out when one follows the other.
 * Three interleavings of more than two operations are told by hand.
 */
#include "test.h"

#include "bucket_world.h"

/* ---- one operation within another */

static struct world *world_of_second;
static const struct operation *second_operation;
static int second_answer;
static pthread_t second_thread;
static pthread_mutex_t second_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t second_changed = PTHREAD_COND_INITIALIZER;
static bool second_is_done_or_waits, second_has_begun;

static void say_done_or_waiting(void)
{
	pthread_mutex_lock(&second_lock);
	second_is_done_or_waits |= is_uncounted;
	pthread_cond_signal(&second_changed);
	pthread_mutex_unlock(&second_lock);
}

static void *run_second(void *unused)
{
	(void)unused;
	is_uncounted = true;
	second_answer = second_operation->run(world_of_second);
	say_done_or_waiting();
	return NULL;
}

static void put_in_second(void)
{
	second_is_done_or_waits = false;
	second_has_begun = true;
	assert_int_equal(pthread_create(&second_thread, NULL, run_second, NULL), 0);
	pthread_mutex_lock(&second_lock);
	while (!second_is_done_or_waits)
		pthread_cond_wait(&second_changed, &second_lock);
	pthread_mutex_unlock(&second_lock);
}

static void run_in_order(const struct beginning *beginning, const struct operation *first,
			 const struct operation *second, bool second_goes_first,
			 int outcome[OUTCOMES])
{
	struct world world = world_new(beginning);

	if (second_goes_first)
		outcome[ANSWER_SECOND] = second->run(&world);
	outcome[ANSWER_FIRST] = first->run(&world);
	if (!second_goes_first)
		outcome[ANSWER_SECOND] = second->run(&world);
	look_at_buckets(&world, outcome);
	world_free(&world);
}

/* False: the first has no step of that number. */
static bool run_interleaved(const struct beginning *beginning, const struct operation *first,
			    const struct operation *second, int step, int outcome[OUTCOMES])
{
	struct world world = world_new(beginning);

	world_of_second = &world;
	second_operation = second;
	second_has_begun = false;
	steps_left = step;
	waits = say_done_or_waiting;
	between = put_in_second;
	outcome[ANSWER_FIRST] = first->run(&world);
	between = NULL;
	if (second_has_begun) {
		pthread_join(second_thread, NULL);
		outcome[ANSWER_SECOND] = second_answer;
		look_at_buckets(&world, outcome);
	}
	waits = NULL;
	world_free(&world);
	return second_has_begun;
}

static size_t check_pair(const struct beginning *beginning, const struct operation *first,
			 const struct operation *second)
{
	int before[OUTCOMES], after[OUTCOMES], outcome[OUTCOMES], step;

	run_in_order(beginning, first, second, false, before);
	run_in_order(beginning, first, second, true, after);
	for (step = 0; run_interleaved(beginning, first, second, step, outcome); step++)
		for (int i = 0; i < OUTCOMES; i++)
			if (outcome[i] != before[i] && outcome[i] != after[i])
				fail_msg("%s: %s before step %d of %s: %s is %d, not %d or %d",
					 beginning->name, second->name, step, first->name,
					 outcome_names[i], outcome[i], before[i], after[i]);
	return (size_t)step;
}

static void whatever_is_put_between_it_is_as_one_after_the_other(void **state)
{
	size_t interleavings = 0;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(beginnings); i++)
		for (size_t first = 0; first < COUNT_OF(operations); first++)
			for (size_t second = 0; second < COUNT_OF(operations); second++)
				interleavings += check_pair(&beginnings[i], &operations[first],
							    &operations[second]);
	print_message("# %zu interleavings\n", interleavings);
	assert_true(interleavings > 5000);
}

/* ---- an operation that is held up, by hand */

static struct world *world_beside;

/* Skipped where the operation that is held up has the lock. */
static bool is_locked_beside(void)
{
	struct slot_key key;

	slots_key(&world_beside->buckets->slots, &world_beside->a, sizeof(uint32_t), &key);
	if (pthread_mutex_trylock(&key.shard->lock))
		return true;
	pthread_mutex_unlock(&key.shard->lock);
	return false;
}

/* A is reset and its slot passes. If it were dropped, B would get it, and come to the very TAT that
 * was read: for that, two hooks of A have been charged. */
static void reset_a_and_charge_b(void)
{
	if (is_locked_beside())
		return;
	reset_a(world_beside);
	fixed_now_ns = START_NS + SECOND;
	sweep_all(world_beside->buckets);
	(void)charge(world_beside, world_beside->b, (struct bucket_charge){ .hook_tokens = 1 });
}

static void charge_that_is_held_up_does_not_reach_another_key(void **state)
{
	bool was_between = true;
	int outcome[OUTCOMES];

	(void)state;
	for (int step = 0; was_between; step++) {
		struct world world = world_new(&beginnings[0]);

		(void)charge(&world, world.a, (struct bucket_charge){ .hook_tokens = 2 });
		world_beside = &world;
		steps_left = step;
		between = reset_a_and_charge_b;
		assert_int_equal(charge_a(&world), BUCKETS_ADMITTED);
		was_between = !between;
		between = NULL;
		look_at_buckets(&world, outcome);
		assert_int_equal(outcome[HOOKS_B], was_between ? 3 : 4);
		assert_int_equal(outcome[HOOKS_A], was_between ? 3 : 1);
		world_free(&world);
	}
}

static void charge_a_reset_it_and_charge_it_again(void)
{
	if (is_locked_beside())
		return;
	charge_a_bytes(world_beside);
	reset_a(world_beside);
	charge_a_bytes(world_beside);
}

/* What it charged at the hooks was forgotten; what is owed there now is another's. */
static void atomic_charge_gives_nothing_back_after_a_reset(void **state)
{
	bool was_between = true;
	int outcome[OUTCOMES];
	int refused = 0;

	(void)state;
	for (int step = 0; was_between; step++) {
		struct world world = world_new(&beginnings[1]);

		world_beside = &world;
		steps_left = step;
		between = charge_a_reset_it_and_charge_it_again;
		refused += charge_a_atomic(&world) != BUCKETS_ADMITTED;
		was_between = !between;
		between = NULL;
		look_at_buckets(&world, outcome);
		assert_int_equal(outcome[HOOKS_A], 3);
		assert_int_equal(outcome[BYTES_A], was_between ? 70 : 20);
		world_free(&world);
	}
	assert_true(refused > 1);
}

static void charge_a_half_a_second_later(void)
{
	if (is_locked_beside())
		return;
	fixed_now_ns += SECOND / 2;
	charge_a_bytes(world_beside);
}

/* Its hook was owed for half a second, in which the bucket would have been full without it. */
static void atomic_charge_gives_back_what_time_has_not_repaid(void **state)
{
	bool was_between = true;
	int refused = 0;

	(void)state;
	for (int step = 0; was_between; step++) {
		struct world world = world_new(&beginnings[1]);
		struct bucket_result result;

		world_beside = &world;
		steps_left = step;
		between = charge_a_half_a_second_later;
		refused += charge_a_atomic(&world) != BUCKETS_ADMITTED;
		was_between = !between;
		between = NULL;
		result = charge(&world, world.a, (struct bucket_charge){ .look_only = true });
		assert_int_equal(result.hooks_full_after_ns, SECOND);
		world_free(&world);
	}
	assert_true(refused > 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whatever_is_put_between_it_is_as_one_after_the_other),
		cmocka_unit_test(charge_that_is_held_up_does_not_reach_another_key),
		cmocka_unit_test(atomic_charge_gives_nothing_back_after_a_reset),
		cmocka_unit_test(atomic_charge_gives_back_what_time_has_not_repaid),
	};

	return cmocka_run_group_tests_name("buckets, steps", tests, make_limits, NULL);
}
