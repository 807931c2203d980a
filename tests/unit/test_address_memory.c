/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a table of client addresses leaves in its memory for others: until when somebody is refused,
 * what limits its words mean, and all debts for who comes after it.
 */
#include "address_world.h"

#include <sluice/key.h>

static uint64_t random_state = 1;

static uint64_t draw(uint64_t below)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (random_state >> 33) % below;
}

/* The same words and the same instant, asked without a trace. */
static uint64_t wait_of(const struct world *world, uint32_t number, const struct gcra_limit *limit)
{
	struct hooks hooks = { .secret = secret, .swept_ns = fixed_now_ns };
	struct address_memory memory = { new_sets(world->set_count), &hooks };
	struct address_table *table;
	union address address = address_of(number);
	uint64_t wait_ns;

	memcpy(memory.sets, world->memory.sets, world->set_count * sizeof(*memory.sets));
	assert_int_equal(
		address_table_new(&memory, world->set_count, &secret, fixed_now_ns, &table), 0);
	(void)address_table_take(table, &address, WHOLE_IPV6, limit, 1, test_clock, &wait_ns);
	address_table_free(table);
	free(memory.sets);
	return wait_ns;
}

/* ---- until when somebody is refused */

static void who_has_nothing_left_is_told_of_before_it_was_refused(void **state)
{
	struct gcra_limit limit = limit_of(2, 3);
	struct world world;

	(void)state;
	world_make(&world, 1);
	assert_int_equal(admitted_of(&world, 1, &limit, 2), 2);
	assert_true(world.hooks.refusing_until_ns == 0);
	assert_true(take(&world, 1, &limit));
	assert_true(world.hooks.refusing_until_ns == fixed_now_ns + NS_IN_S / 2);
	assert_false(take(&world, 1, &limit));
	assert_true(world.hooks.refusing_until_ns == fixed_now_ns + NS_IN_S / 2);
	world_end(&world);
}

/* Limits of all classes; the latest of all addresses, and nothing that is not so. */
static void it_is_the_latest_instant_at_which_a_next_request_would_be_refused(void **state)
{
	static const double rates[] = { 1000, 20, 0.3, 0.001 };
	enum { ADDRESSES = 4, CHARGES = 200 };
	unsigned raised = 0, kept = 0;

	(void)state;
	for (int round = 0; round < 40; round++) {
		struct gcra_limit limit = limit_of(rates[round % 4], 1 + draw(6));
		uint64_t latest_ns = 0;
		struct world world;

		world_make(&world, 1);
		for (int charge = 0; charge < CHARGES; charge++) {
			uint32_t number = (uint32_t)draw(ADDRESSES);
			uint64_t wait_ns;

			fixed_now_ns += draw(2 * gcra_wait_ns(limit.interval, limit.tick_shift));
			(void)take(&world, number, &limit);
			wait_ns = wait_of(&world, number, &limit);
			if (wait_ns && fixed_now_ns + wait_ns > latest_ns)
				latest_ns = fixed_now_ns + wait_ns;
			raised += wait_ns != 0;
			kept += wait_ns == 0;
			assert_true(world.hooks.refusing_until_ns == latest_ns);
		}
		world_end(&world);
	}
	assert_true(raised > 100 && kept > 100);
}

static void it_is_never_further_ahead_than_the_limit_in_force_can_owe(void **state)
{
	struct gcra_limit days = limit_of(0.001, 100), second = limit_of(10, 10);
	struct world world;

	(void)state;
	world_make(&world, 1);
	assert_int_equal(admitted_of(&world, 1, &days, 200), 100);
	(void)sweep_all(&world);
	assert_true(world.hooks.refusing_until_ns == fixed_now_ns + 1000ULL * NS_IN_S);
	address_table_announce(world.table, 2, gcra_wait_ns(second.capacity, second.tick_shift));
	(void)address_table_sweep(world.table, 0, fixed_now_ns);
	assert_true(world.hooks.refusing_until_ns == fixed_now_ns + NS_IN_S);
	/* Whom the old limit held is held by no more than the new one. */
	assert_false(take(&world, 1, &second));
	fixed_now_ns += NS_IN_S / 10;
	assert_true(take(&world, 1, &second));
	world_end(&world);
}

static void a_nodes_bucket_that_is_full_again_is_as_one_never_charged(void **state)
{
	struct gcra_limit limit = limit_of_kind(1, 2, BUCKET_WHOLE);
	struct world world;

	(void)state;
	world_make(&world, 1);
	assert_true(take_from_node(&world, 0, &limit));
	assert_true(take_from_node(&world, 1, &limit));
	assert_false(take_from_node(&world, 2, &limit));
	(void)sweep_all(&world);
	assert_true(world.hooks.node_tat != 0);
	fixed_now_ns += 2ULL * NS_IN_S;
	(void)sweep_all(&world);
	assert_true(world.hooks.node_tat == 0);
	assert_true(take_from_node(&world, 0, &limit));
	assert_true(take_from_node(&world, 0, &limit));
	assert_false(take_from_node(&world, 0, &limit));
	world_end(&world);
}

/* ---- for who comes after */

/* A table dies without a word, and another begins where it was. */
static void restart_after(struct world *world, uint64_t pause_ns)
{
	address_table_free(world->table);
	fixed_now_ns += pause_ns;
	assert_int_equal(address_table_new(&world->memory, world->set_count,
					   &(struct siphash_key){ { 3, 4 } }, fixed_now_ns,
					   &world->table),
			 0);
	address_table_announce(world->table, 1, CAPACITY_NS);
}

static void debts_outlive_a_table_and_its_secret_with_them(void **state)
{
	struct gcra_limit limit = limit_of(0.5, 3), node = limit_of_kind(0.5, 10, BUCKET_WHOLE);
	struct world world;

	(void)state;
	world_make(&world, 64);
	for (uint32_t number = 0; number < 100; number++)
		assert_int_equal(admitted_of(&world, number, &limit, 9), 3);
	for (int i = 0; i < 10; i++)
		assert_true(take_from_node(&world, 0, &node));
	(void)sweep_all(&world);
	restart_after(&world, 2ULL * NS_IN_S);
	for (uint32_t number = 0; number < 100; number++)
		assert_int_equal(admitted_of(&world, number, &limit, 9), 1);
	assert_true(take_from_node(&world, 0, &node));
	assert_false(take_from_node(&world, 0, &node));
	world_end(&world);
}

/* However long nobody was there, and whatever the length of the ticks. */
static void nobody_owes_anew_what_has_passed_while_nobody_swept(void **state)
{
	static const struct row {
		const char *name;
		double rate;
		uint64_t burst;
		uint32_t word_class;
	} rows[] = {
		{ "1/512 ns", 2, 16, 0 },
		{ "1/8 ns", 0.1, 50, 1 },
		{ "8 ns", 0.01, 300, 2 },
		{ "512 ns", 0.0001, 200, 3 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct row *row = &rows[i];
		struct gcra_limit limit = limit_of(row->rate, row->burst);
		uint64_t full_ns = gcra_wait_ns(limit.capacity, limit.tick_shift);
		uint64_t around_ns = gcra_wait_ns(1ULL << WORD_TAT_BITS, limit.tick_shift);

		check_row_equal(row, limit.word_class, row->word_class);
		for (int pause = 0; pause < 64; pause++) {
			struct world world;

			world_make(&world, 1);
			check_row_equal(row, admitted_of(&world, 1, &limit, 1000), row->burst);
			(void)sweep_all(&world);
			restart_after(&world, full_ns + pause * around_ns / 20);
			check_row_equal(row, admitted_of(&world, 1, &limit, 1000), row->burst);
			world_end(&world);
		}
	}
}

/* Also such as were made after the last sweep. */
static void no_debt_is_forgotten_that_has_not_passed(void **state)
{
	(void)state;
	for (int round = 0; round < 2000; round++) {
		static const double rates[] = { 2, 0.2, 0.01, 0.0001 };
		uint64_t burst = 2 + draw(15);
		struct gcra_limit limit = limit_of(rates[round % 4], burst);
		uint64_t full_ns = gcra_wait_ns(limit.capacity, limit.tick_shift);
		uint64_t pause_ns, wait_ns;
		struct world world;

		world_make(&world, 1);
		(void)sweep_all(&world);
		fixed_now_ns += draw(NS_IN_S);
		assert_int_equal(admitted_of(&world, 1, &limit, 100), burst);
		pause_ns = draw(full_ns);
		wait_ns = gcra_wait_ns(limit.interval, limit.tick_shift);
		restart_after(&world, pause_ns);
		assert_int_equal(admitted_of(&world, 1, &limit, 100), pause_ns / wait_ns);
		world_end(&world);
	}
}

/* ---- moving */

static void a_move_takes_every_debt_along_and_leaves_nothing_to_judge_by(void **state)
{
	struct gcra_limit limit = limit_of(0.001, 3), node = limit_of_kind(0.001, 5, BUCKET_WHOLE);
	struct hooks hooks = { .secret = { { 9, 9 } },
			       .limits_digest = 77,
			       .node_tat = 1,
			       .refusing_until_ns = UINT64_MAX };
	struct address_memory to = { new_sets(64), &hooks };
	struct world world;

	(void)state;
	memset(to.sets, 0x77, 64 * sizeof(*to.sets));
	world_make(&world, 64);
	for (uint32_t number = 0; number < 100; number++)
		assert_int_equal(admitted_of(&world, number, &limit, 1 + number % 3),
				 1 + number % 3);
	assert_true(take_from_node(&world, 0, &node));
	address_table_announce(world.table, 42, CAPACITY_NS);
	address_table_move(world.table, &to);
	assert_memory_equal(to.sets, world.memory.sets, 64 * sizeof(*to.sets));
	assert_memory_equal(&hooks.secret, &secret, sizeof(secret));
	assert_true(hooks.limits_digest == 42 && world.hooks.limits_digest == 0);
	assert_true(hooks.node_tat == world.hooks.node_tat && hooks.node_tat);
	assert_true(hooks.refusing_until_ns == world.hooks.refusing_until_ns);
	memset(world.memory.sets, 0, 64 * sizeof(*to.sets));
	for (uint32_t number = 0; number < 100; number++)
		assert_int_equal(admitted_of(&world, number, &limit, 9), 2 - number % 3);
	for (int i = 0; i < 4; i++)
		assert_true(take_from_node(&world, 0, &node));
	assert_false(take_from_node(&world, 0, &node));
	assert_int_equal(words_in_use(&world), 0);
	world_end(&world);
	free(to.sets);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_has_nothing_left_is_told_of_before_it_was_refused),
		cmocka_unit_test(it_is_the_latest_instant_at_which_a_next_request_would_be_refused),
		cmocka_unit_test(it_is_never_further_ahead_than_the_limit_in_force_can_owe),
		cmocka_unit_test(a_nodes_bucket_that_is_full_again_is_as_one_never_charged),
		cmocka_unit_test(debts_outlive_a_table_and_its_secret_with_them),
		cmocka_unit_test(nobody_owes_anew_what_has_passed_while_nobody_swept),
		cmocka_unit_test(no_debt_is_forgotten_that_has_not_passed),
		cmocka_unit_test(a_move_takes_every_debt_along_and_leaves_nothing_to_judge_by),
	};

	return cmocka_run_group_tests_name("address memory", tests, NULL, NULL);
}
