/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * limit/buckets.c, killed before each atomic step of each operation (bucket_stress.h), which is to
 * say that the memory is copied there: what opens the copy finds every bucket as it was before the
 * operation, or as it is after it, and goes on.
 */
#include "test.h"

#include "bucket_world.h"

static struct bucket_slot *copied_from, *copied_to;

static void copy_memory(void)
{
	memcpy(copied_to, copied_from, SLOTS * sizeof(*copied_to));
}

static void check_copy(const struct beginning *beginning, const struct operation *operation,
		       int step, const int before[OUTCOMES], const int after[OUTCOMES])
{
	struct world world = world_new(beginning);
	int outcome[OUTCOMES], answer;

	buckets_free(world.buckets);
	memcpy(world.memory, copied_to, SLOTS * sizeof(*copied_to));
	world.buckets = open_buckets(world.memory, SLOTS);
	look_at_buckets(&world, outcome);
	for (int i = HOOKS_A; i < OUTCOMES; i++)
		if (outcome[i] != before[i] && outcome[i] != after[i])
			fail_msg("%s: killed before step %d of %s: %s is %d, not %d or %d",
				 beginning->name, step, operation->name, outcome_names[i],
				 outcome[i], before[i], after[i]);
	/* And it goes on. */
	answer = charge_b(&world);
	assert_true(answer == BUCKETS_ADMITTED ||
		    (answer == BUCKETS_FULL && beginning->run == begin_crowded));
	fixed_now_ns += 100 * SECOND;
	sweep_all(world.buckets);
	assert_int_equal(buckets_count(world.buckets), 0);
	check_table(world.buckets);
	assert_int_equal(charge_a_bytes(&world), BUCKETS_ADMITTED);
	world_free(&world);
}

static size_t check_kills(const struct beginning *beginning, const struct operation *operation)
{
	for (int step = 0;; step++) {
		struct world world = world_new(beginning);
		int before[OUTCOMES], after[OUTCOMES];
		bool copied;

		look_at_buckets(&world, before);
		copied_from = world.memory;
		steps_left = step;
		between = copy_memory;
		(void)operation->run(&world);
		copied = !between;
		between = NULL;
		look_at_buckets(&world, after);
		world_free(&world);
		if (!copied)
			return (size_t)step;
		check_copy(beginning, operation, step, before, after);
	}
}

static void killed_at_any_step_it_goes_on_with_the_debts(void **state)
{
	size_t kills = 0;

	(void)state;
	copied_to = memory_new(SLOTS);
	for (size_t i = 0; i < COUNT_OF(beginnings); i++)
		for (size_t operation = 0; operation < COUNT_OF(operations); operation++)
			kills += check_kills(&beginnings[i], &operations[operation]);
	free(copied_to);
	print_message("# %zu kills\n", kills);
	assert_true(kills > 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_at_any_step_it_goes_on_with_the_debts),
	};

	return cmocka_run_group_tests_name("buckets, killed step by step", tests, make_limits,
					   NULL);
}
