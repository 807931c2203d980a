/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the engine answers: which limit is in force for a tenant and what of it, shares of the
 * queue, the order of what is asked before a body is read, a full table, and the numbers it counts.
 */
#include "test.h"

#include "engine_fixture.h"

static const char *const tenants_yaml =
	"rate_limits:\n"
	"  default: {rate: 0.001, burst: 1, bytes_per_second: 1000}\n"
	"  tenants:\n"
	"    vip: {rate: 0.001, burst: 3}\n"
	"    large: {rate: 1, burst: 1, max_body_bytes: 5000, max_queue: 2, max_queue_bytes: 100}\n"
	"    free: {unlimited: true}\n"
	"  sources: {default: {bytes_per_second: 1000}}\n"
	"tenant_slots: 1024\n";

/* ---- which limit */

static void the_first_limit_that_is_found_applies(void **state)
{
	static const struct row {
		const char *name, *tenant;
		enum limit_source source;
		unsigned burst; /* 0: unlimited */
	} rows[] = {
		{ "the default", "globex", LIMIT_FROM_DEFAULT, 1 },
		{ "the tenant's entry", "vip", LIMIT_FROM_CONFIG, 3 },
		{ "an entry that is unlimited", "free", LIMIT_FROM_CONFIG, 0 },
		{ "an override over the default", "acme", LIMIT_FROM_OVERRIDE, 7 },
		{ "an override over an entry", "large", LIMIT_FROM_OVERRIDE, 7 },
	};
	struct limits_entry entry;
	struct world world;

	(void)state;
	world_make(&world, tenants_yaml);
	assert_int_equal(set_override(&world, "acme", "{\"rate\":1,\"burst\":7}", 0, false), 0);
	assert_int_equal(set_override(&world, "large", "{\"rate\":1,\"burst\":7}", 0, false), 0);
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct row *row = &rows[i];

		check_row_equal(row, source_of(&world, row->tenant, &entry), row->source);
		check_row_text(row, entry.tenant, row->tenant);
		check_row_equal(row, admitted_of(&world, row->tenant, 20),
				row->burst ? row->burst : 20);
	}
	world_end(&world);
}

static void without_any_limit_a_tenant_is_unlimited(void **state)
{
	struct limits_entry entry = { .expires_at_ms = -7 };
	struct decision decision;
	struct world world;
	uint64_t bytes;

	(void)state;
	world_make(&world, "rate_limits: {tenants: {acme: {rate: 1, burst: 1}}}\n");
	assert_int_equal(source_of(&world, "globex", &entry), LIMIT_FROM_NONE);
	assert_int_equal(entry.expires_at_ms, -7); /* not touched */
	decision = ask_hit(&world, "globex", UINT64_MAX, 0);
	assert_true(decision.admitted);
	assert_int_equal(decision.remaining, REMAINING_UNLIMITED);
	assert_null(decision.limit);
	assert_int_equal(engine_body_limit(world.reader, name_of("globex"), &bytes), 0);
	assert_true(bytes == UINT64_MAX);
	world_end(&world);
}

static void no_key_of_another_limit_is_merged(void **state)
{
	struct world world;
	uint64_t bytes;

	(void)state;
	world_make(&world, tenants_yaml);
	/* The default has bytes_per_second; the entry has not. */
	assert_true(ask_hit(&world, "vip", 1 << 30, 0).admitted);
	assert_int_equal(ask_hit(&world, "globex", 600, 0).reason, DECISION_OK);
	/* The entry has max_body_bytes and a queue; the override has neither. */
	assert_int_equal(ask_hit(&world, "large", 5001, 0).reason, DECISION_TOO_LARGE);
	assert_int_equal(set_override(&world, "large", "{\"rate\":1,\"burst\":9}", 0, false), 0);
	assert_int_equal(ask_hit(&world, "large", 5001, 0).reason, DECISION_OK);
	assert_int_equal(engine_body_limit(world.reader, name_of("large"), &bytes), 0);
	assert_true(bytes == UINT64_MAX);
	for (int i = 0; i < 5; i++) {
		struct decision decision;

		assert_int_equal(engine_queue_acquire(world.reader, name_of("large"), 1000, 1, 0,
						      keep_decision, &decision),
				 0);
		assert_true(decision.admitted && decision.lease == 0);
	}
	assert_int_equal(unset_override(&world, "large", false), 0);
	assert_int_equal(ask_hit(&world, "large", 5001, 0).reason, DECISION_TOO_LARGE);
	world_end(&world);
}

static void what_is_no_tenant_id_is_refused_by_every_function(void **state)
{
	static const struct row {
		const char *name, *id;
	} rows[] = { { "nothing", "" },
		     { "a point", "bad.tenant" },
		     { "a line end", "acme\n" },
		     { "65 letters",
		       "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" } };
	struct tenant_limit limit = limit_from("{\"rate\":1,\"burst\":1}");
	struct engine_change change = { 0 };
	struct limits_entry entry;
	enum limit_source source;
	struct decision decision;
	struct trouble trouble;
	struct world world;
	uint64_t bytes;

	(void)state;
	world_make(&world, tenants_yaml);
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct tenant_name name = name_of(rows[i].id);
		struct engine_reader *reader = world.reader;

		check_row_equal(&rows[i], engine_hit(reader, name, 0, 0, keep_decision, &decision),
				-EINVAL);
		check_row_equal(&rows[i], engine_refund(reader, name, 1, 0), -EINVAL);
		check_row_equal(&rows[i], engine_body_limit(reader, name, &bytes), -EINVAL);
		check_row_equal(
			&rows[i],
			engine_queue_acquire(reader, name, 0, 1, 0, keep_decision, &decision),
			-EINVAL);
		check_row_equal(&rows[i], engine_effective(world.engine, name, &entry, &source),
				-EINVAL);
		check_row_equal(&rows[i],
				engine_override_set(world.engine, name, &limit, &change, &trouble),
				-EINVAL);
		check_row_equal(&rows[i],
				engine_override_unset(world.engine, name, &change, &trouble),
				-EINVAL);
	}
	world_end(&world);
}

static void a_reload_changes_limits_and_keeps_debts_and_overrides(void **state)
{
	struct limits_entry entry;
	struct world world;

	(void)state;
	world_make(&world, "rate_limits: {default: {rate: 0.001, burst: 2}}\n");
	assert_int_equal(admitted_of(&world, "globex", 5), 2);
	assert_int_equal(set_override(&world, "acme", "{\"rate\":0.001,\"burst\":4}", 0, false), 0);
	assert_int_equal(reload_with(&world, "rate_limits: {default: {rate: 0.001, burst: 3}}\n"),
			 0);
	assert_int_equal(admitted_of(&world, "globex", 5), 1);
	assert_int_equal(source_of(&world, "acme", &entry), LIMIT_FROM_OVERRIDE);
	assert_int_equal(admitted_of(&world, "acme", 9), 4);
	/* Lowered: a debt longer than the limit allows is a full one, for no longer than that. */
	assert_int_equal(reload_with(&world, "rate_limits: {default: {rate: 1, burst: 1}}\n"), 0);
	assert_int_equal(hit(&world, "globex").retry_after_ms, 1000);
	pass_ns(NS_IN_S);
	assert_int_equal(admitted_of(&world, "globex", 5), 1);
	world_end(&world);
}

/* ---- hooks and bytes */

static void a_hook_that_is_refused_on_bytes_is_spent_unless_atomic(void **state)
{
	static const char yaml[] = "rate_limits: {default: {rate: 0.001, burst: 3, "
				   "bytes_per_second: 1000}}\n";
	struct decision decision;
	struct world world;

	(void)state;
	world_make(&world, yaml);
	assert_int_equal(ask_hit(&world, "acme", 600, 0).remaining, 2);
	decision = ask_hit(&world, "acme", 600, 0);
	assert_int_equal(decision.reason, DECISION_BYTES_LIMITED);
	assert_int_equal(decision.retry_after_ms, 200);
	assert_int_equal(decision.remaining, 400); /* bytes: it is they who refuse */
	assert_int_equal(ask_hit(&world, "acme", 0, HIT_PEEK).remaining, 0);
	assert_int_equal(engine_refund(world.reader, name_of("acme"), 1, 0), 0);
	decision = ask_hit(&world, "acme", 600, HIT_ATOMIC);
	assert_int_equal(decision.reason, DECISION_BYTES_LIMITED);
	assert_int_equal(ask_hit(&world, "acme", 400, 0).remaining, 1);
	assert_int_equal(admitted_of(&world, "acme", 5), 1);
	assert_int_equal(hit(&world, "acme").reason, DECISION_RATE_LIMITED);
	world_end(&world);
}

static void a_peek_charges_nothing_and_a_refund_gives_back(void **state)
{
	struct world world;

	(void)state;
	world_make(&world, tenants_yaml);
	for (int i = 0; i < 10; i++)
		assert_int_equal(ask_hit(&world, "vip", 0, HIT_PEEK).remaining, 2);
	assert_int_equal(admitted_of(&world, "vip", 10), 3);
	assert_false(ask_hit(&world, "vip", 0, HIT_PEEK).admitted);
	assert_int_equal(engine_refund(world.reader, name_of("vip"), 2, 0), 0);
	assert_int_equal(admitted_of(&world, "vip", 10), 2);
	/* Never more than full. */
	assert_int_equal(engine_refund(world.reader, name_of("vip"), 1 << 20, 0), 0);
	assert_int_equal(admitted_of(&world, "vip", 10), 3);
	assert_int_equal(engine_refund(world.reader, name_of("unseen"), 9, 9), 0);
	world_end(&world);
}

/* ---- shares of the queue */

struct queue_step {
	uint64_t owner;  /* 0: no more */
	int64_t acquire; /* bytes; -1: release, -2: the owner's connection ends */
	bool admitted;   /* or released */
	size_t lease;    /* by number, to be released */
};

static const struct queue_row {
	const char *name, *limit;
	struct queue_step step[8];
} queue_rows[] = {
	{ "two hooks",
	  "{\"rate\":1,\"burst\":1,\"max_queue\":2}",
	  { { 1, 1, true, 0 },
	    { 1, 1, true, 0 },
	    { 1, 1, false, 0 },
	    { 1, -1, true, 0 },
	    { 1, 1, true, 0 },
	    { 1, 1, false, 0 } } },
	{ "a hundred bytes",
	  "{\"rate\":1,\"burst\":1,\"max_queue_bytes\":100}",
	  { { 1, 60, true, 0 }, { 1, 60, false, 0 }, { 1, 40, true, 0 }, { 1, 1, false, 0 } } },
	{ "one bigger than all, when nothing is held",
	  "{\"rate\":1,\"burst\":1,\"max_queue_bytes\":100}",
	  { { 1, 500, true, 0 }, { 1, 1, false, 0 }, { 1, -1, true, 0 }, { 1, 1, true, 0 } } },
	{ "what was refused counts nothing",
	  "{\"rate\":1,\"burst\":1,\"max_queue\":2,\"max_queue_bytes\":100}",
	  { { 1, 60, true, 0 },
	    { 1, 60, false, 0 },
	    { 1, 60, false, 0 },
	    { 1, 40, true, 0 },
	    { 1, 0, false, 0 } } },
	{ "twice, and by another",
	  "{\"rate\":1,\"burst\":1,\"max_queue\":1}",
	  { { 1, 1, true, 0 },
	    { 2, -1, false, 0 },
	    { 2, 1, false, 0 },
	    { 1, -1, true, 0 },
	    { 1, -1, false, 0 },
	    { 2, 1, true, 0 },
	    { 1, -1, false, 0 },
	    { 1, 1, false, 0 } } },
	{ "with the connection",
	  "{\"rate\":1,\"burst\":1,\"max_queue\":2}",
	  { { 1, 1, true, 0 },
	    { 2, 1, true, 0 },
	    { 3, 1, false, 0 },
	    { 1, -2, true, 0 },
	    { 3, 1, true, 0 },
	    { 3, 1, false, 0 } } },
};

static void leases_are_held_to_the_tenants_share(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(queue_rows); i++) {
		const struct queue_row *row = &queue_rows[i];
		uint64_t lease[8];
		struct world world;

		world_make(&world, "{}\n");
		assert_int_equal(set_override(&world, "acme", row->limit, 0, false), 0);
		for (size_t at = 0; at < COUNT_OF(row->step) && row->step[at].owner; at++) {
			const struct queue_step *step = &row->step[at];
			struct decision decision = { 0 };

			if (step->acquire == -1) {
				check_row_equal(row,
						engine_queue_release(world.reader,
								     lease[step->lease],
								     step->owner),
						step->admitted);
				continue;
			}
			if (step->acquire == -2) {
				check_row_equal(row,
						engine_connection_closed(world.engine, step->owner),
						1);
				continue;
			}
			assert_int_equal(engine_queue_acquire(world.reader, name_of("acme"),
							      (uint64_t)step->acquire, step->owner,
							      0, keep_decision, &decision),
					 0);
			check_row_equal(row, decision.admitted, step->admitted);
			check_row_equal(row, decision.lease != 0, step->admitted);
			check_row_equal(row, decision.reason,
					step->admitted ? DECISION_OK : DECISION_TENANT_OVERLOAD);
			check_row_equal(row, decision.retry_after_ms, step->admitted ? 0 : 1000);
			lease[at] = decision.lease;
		}
		world_end(&world);
	}
}

static void a_forgotten_lease_ends_with_its_time(void **state)
{
	struct engine_numbers numbers;
	struct decision decision;
	struct world world;

	(void)state;
	world_make(&world, "rate_limits: {default: {rate: 1, burst: 1, max_queue: 1}}\n");
	assert_int_equal(engine_queue_acquire(world.reader, name_of("acme"), 1, 1, 50,
					      keep_decision, &decision),
			 0);
	assert_true(decision.admitted);
	pass_ns(50ULL * NS_IN_MS - 1);
	engine_tick(world.engine);
	assert_int_equal(engine_queue_acquire(world.reader, name_of("acme"), 1, 2, 0, keep_decision,
					      &decision),
			 0);
	assert_false(decision.admitted);
	pass_ns(1);
	engine_tick(world.engine);
	engine_numbers(world.engine, &numbers);
	assert_int_equal(numbers.leases, 0);
	assert_int_equal(engine_queue_acquire(world.reader, name_of("acme"), 1, 2, 0, keep_decision,
					      &decision),
			 0);
	assert_true(decision.admitted);
	world_end(&world);
}

/* ---- a full table */

static void a_full_table_says_so_and_drops_no_debt(void **state)
{
	enum { ASKED = 3000 };
	static bool was_admitted[ASKED];
	struct engine_numbers numbers;
	unsigned admitted = 0, full = 0;
	struct decision decision;
	struct world world;
	char tenant[16];

	(void)state;
	world_make(&world, "rate_limits: {default: {rate: 0.001, burst: 1}}\ntenant_slots: 1024\n");
	for (int i = 0; i < ASKED; i++) {
		(void)snprintf(tenant, sizeof(tenant), "t%d", i);
		decision = hit(&world, tenant);
		was_admitted[i] = decision.admitted;
		admitted += decision.admitted;
		if (decision.admitted)
			continue;
		assert_int_equal(decision.reason, DECISION_TABLE_FULL);
		assert_int_equal(decision.retry_after_ms, 1000);
		full++;
	}
	assert_true(admitted <= 1024 && admitted > 1024 * 3 / 4);
	engine_numbers(world.engine, &numbers);
	assert_int_equal(numbers.tenants, admitted);
	assert_int_equal(numbers.tenant_room, 1024);
	assert_int_equal(numbers.decisions[QUESTION_HIT][DECISION_OK], admitted);
	assert_int_equal(numbers.decisions[QUESTION_HIT][DECISION_TABLE_FULL], full);
	for (int tick = 0; tick < 16 * SHARD_TICKS; tick++)
		engine_tick(world.engine);
	for (int i = 0; i < ASKED; i++) {
		(void)snprintf(tenant, sizeof(tenant), "t%d", i);
		assert_int_equal(ask_hit(&world, tenant, 0, HIT_PEEK).reason,
				 was_admitted[i] ? DECISION_RATE_LIMITED : DECISION_OK);
	}
	/* Once they are repaid, there is room again. */
	pass_ns(1000ULL * NS_IN_S + 1);
	assert_true(hit(&world, "t2999").admitted);
	for (int tick = 0; tick < 16 * SHARD_TICKS; tick++)
		engine_tick(world.engine);
	engine_numbers(world.engine, &numbers);
	assert_int_equal(numbers.tenants, 1);
	world_end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_limit_that_is_found_applies),
		cmocka_unit_test(without_any_limit_a_tenant_is_unlimited),
		cmocka_unit_test(no_key_of_another_limit_is_merged),
		cmocka_unit_test(what_is_no_tenant_id_is_refused_by_every_function),
		cmocka_unit_test(a_reload_changes_limits_and_keeps_debts_and_overrides),
		cmocka_unit_test(a_hook_that_is_refused_on_bytes_is_spent_unless_atomic),
		cmocka_unit_test(a_peek_charges_nothing_and_a_refund_gives_back),
		cmocka_unit_test(leases_are_held_to_the_tenants_share),
		cmocka_unit_test(a_forgotten_lease_ends_with_its_time),
		cmocka_unit_test(a_full_table_says_so_and_drops_no_debt),
	};

	return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
