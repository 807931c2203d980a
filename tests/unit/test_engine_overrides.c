/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The life of an override: set, replaced, ended by its time or taken away; what becomes of the
 * tenant's debts; what a restart finds; and that nothing changes when it cannot be stored.
 */
#include "test.h"

#include "engine_fixture.h"
#include "faulty_vfs.h"

static const char *const yaml = "rate_limits:\n"
				"  tenants: {acme: {rate: 0.001, burst: 1}}\n"
				"tenant_slots: 1024\n";

#define BURST_OF_TWO "{\"rate\":0.001,\"burst\":2}"
#define BURST_OF_NINE "{\"rate\":0.001,\"burst\":9}"

struct audit_view {
	size_t records;
	char newest[160]; /* kind, actor, action, before, after, keep_debt */
};

static int see_record(const struct audit_record *record, void *data)
{
	struct audit_view *view = data;

	if (!view->records++)
		(void)snprintf(
			view->newest, sizeof(view->newest), "%s %s %s %s %s%s", record->actor_kind,
			record->actor, record->action, record->before ? record->before : "-",
			record->after ? record->after : "-", record->keep_debt ? " keep_debt" : "");
	return 0;
}

static struct audit_view audit_of(struct world *world)
{
	struct audit_view view = { 0 };
	struct audit_query query = { 0 };
	struct trouble trouble;

	assert_int_equal(engine_audit(world->engine, &query, see_record, &view, &trouble), 0);
	return view;
}

static void it_lives_from_set_over_a_restart_until_it_is_unset(void **state)
{
	struct limits_entry entry;
	struct audit_view view;
	struct world world;

	(void)state;
	world_make_lasting(&world, yaml);
	assert_int_equal(admitted_of(&world, "acme", 5), 1);
	assert_int_equal(set_override(&world, "acme", BURST_OF_TWO, 0, false), 0);
	view = audit_of(&world);
	assert_string_equal(view.newest,
			    "peer 1000:42 set {\"rate\":0.001,\"burst\":1} " BURST_OF_TWO);
	assert_int_equal(admitted_of(&world, "acme", 5), 2);
	world_restart(&world);
	assert_int_equal(source_of(&world, "acme", &entry), LIMIT_FROM_OVERRIDE);
	assert_int_equal(entry.limit.hooks.burst, 2);
	/* The memory outlived the engine, and so has the debt. */
	assert_int_equal(admitted_of(&world, "acme", 5), 0);
	assert_int_equal(unset_override(&world, "acme", false), 0);
	view = audit_of(&world);
	assert_string_equal(view.newest, "token ops unset " BURST_OF_TWO " -");
	assert_int_equal(source_of(&world, "acme", &entry), LIMIT_FROM_CONFIG);
	assert_int_equal(admitted_of(&world, "acme", 5), 1);
	assert_int_equal(unset_override(&world, "acme", false), -ENOENT);
	assert_int_equal(admitted_of(&world, "acme", 5), 0); /* it has not reset anything */
	assert_int_equal(audit_of(&world).records, 2);
	world_restart(&world);
	assert_int_equal(source_of(&world, "acme", &entry), LIMIT_FROM_CONFIG);
	assert_int_equal(audit_of(&world).records, 2);
	assert_int_equal(world.warnings, 0);
	world_end(&world);
}

static void a_restart_in_fresh_memory_finds_full_buckets(void **state)
{
	struct world world;

	(void)state;
	world_make_lasting(&world, yaml);
	assert_int_equal(admitted_of(&world, "acme", 5), 1);
	world_stop(&world);
	memset(world.memory, 0, (size_t)WORLD_SLOTS * BUCKET_SLOT_BYTES);
	world_start(&world);
	assert_int_equal(admitted_of(&world, "acme", 5), 1);
	world_end(&world);
}

static void debts_are_forgotten_unless_they_are_kept(void **state)
{
	static const struct row {
		const char *name;
		bool keep_at_set, keep_at_unset;
		unsigned after_set, after_unset; /* hooks admitted of a burst of 2, then of 1 */
	} rows[] = {
		{ "forgotten both times", false, false, 2, 1 },
		{ "kept when it is set", true, false, 1, 1 },
		{ "kept when it is unset", false, true, 2, 0 },
		{ "kept both times", true, true, 1, 0 },
	};
	struct audit_view view;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct row *row = &rows[i];
		struct world world;

		world_make_lasting(&world, yaml);
		assert_int_equal(admitted_of(&world, "acme", 5), 1);
		assert_int_equal(set_override(&world, "acme", BURST_OF_TWO, 0, row->keep_at_set),
				 0);
		view = audit_of(&world);
		check_row_equal(row, strstr(view.newest, "keep_debt") != NULL, row->keep_at_set);
		check_row_equal(row, admitted_of(&world, "acme", 5), row->after_set);
		assert_int_equal(unset_override(&world, "acme", row->keep_at_unset), 0);
		view = audit_of(&world);
		check_row_equal(row, strstr(view.newest, "keep_debt") != NULL, row->keep_at_unset);
		check_row_equal(row, admitted_of(&world, "acme", 5), row->after_unset);
		world_end(&world);
	}
}

static void one_with_a_time_ends_with_it(void **state)
{
	struct limits_entry entry;
	struct audit_view view;
	struct world world;
	int64_t before_ms;
	int ticks = 0;

	(void)state;
	world_make_lasting(&world, yaml);
	before_ms = wall_clock_ms();
	assert_int_equal(set_override(&world, "acme", BURST_OF_NINE, 60000, false), 0);
	assert_int_equal(source_of(&world, "acme", &entry), LIMIT_FROM_OVERRIDE);
	assert_true(entry.expires_at_ms >= before_ms + 60000);
	assert_true(entry.expires_at_ms <= wall_clock_ms() + 60000);
	engine_tick(world.engine);
	assert_int_equal(admitted_of(&world, "acme", 10), 9);
	wall_ahead_ms = 61000;
	/* It no longer counts, whether it has been taken away or not. */
	assert_int_equal(source_of(&world, "acme", &entry), LIMIT_FROM_CONFIG);
	assert_int_equal(hit(&world, "acme").limit->burst, 1);
	assert_int_equal(audit_of(&world).records, 1);
	engine_tick(world.engine);
	view = audit_of(&world);
	assert_int_equal(view.records, 2);
	assert_string_equal(view.newest, "ttl  expire " BURST_OF_NINE " -");
	assert_int_equal(admitted_of(&world, "acme", 5), 1); /* its debt is forgotten */
	while (ticks++ < 100)
		engine_tick(world.engine);
	assert_int_equal(audit_of(&world).records, 2);
	assert_int_equal(unset_override(&world, "acme", false), -ENOENT);
	world_end(&world);
}

/* The same by a clock that nobody sets. */
static void fifty_milliseconds_end_by_themselves(void **state)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct world world;
	int polls = 0;

	(void)state;
	world_make_lasting(&world, yaml);
	assert_int_equal(set_override(&world, "acme", BURST_OF_NINE, 50, false), 0);
	while (audit_of(&world).records < 2 && polls++ < 20000) {
		engine_tick(world.engine);
		(void)nanosleep(&pause, NULL);
	}
	assert_int_equal(audit_of(&world).records, 2);
	assert_int_equal(admitted_of(&world, "acme", 10), 1);
	world_end(&world);
}

static void one_whose_time_ends_while_nobody_is_there_is_not_found_again(void **state)
{
	struct limits_entry entry;
	struct audit_view view;
	struct world world;

	(void)state;
	world_make_lasting(&world, yaml);
	assert_int_equal(set_override(&world, "acme", BURST_OF_NINE, 60000, false), 0);
	assert_int_equal(set_override(&world, "globex", BURST_OF_NINE, 600000, false), 0);
	assert_int_equal(admitted_of(&world, "acme", 20), 9);
	assert_int_equal(admitted_of(&world, "globex", 20), 9);
	world_stop(&world);
	wall_ahead_ms = 61000;
	world_start(&world);
	assert_int_equal(source_of(&world, "acme", &entry), LIMIT_FROM_CONFIG);
	assert_int_equal(source_of(&world, "globex", &entry), LIMIT_FROM_OVERRIDE);
	view = audit_of(&world);
	assert_int_equal(view.records, 3);
	assert_string_equal(view.newest, "ttl  expire " BURST_OF_NINE " -");
	/* As when it ends before our eyes: its debt is forgotten, and that of no other. */
	assert_int_equal(admitted_of(&world, "acme", 5), 1);
	assert_int_equal(admitted_of(&world, "globex", 5), 0);
	wall_ahead_ms = 610000;
	engine_tick(world.engine);
	assert_int_equal(source_of(&world, "globex", &entry), LIMIT_FROM_NONE);
	world_end(&world);
}

static void replacing_one_with_a_time_by_one_without_is_for_good(void **state)
{
	struct limits_entry entry;
	struct world world;

	(void)state;
	world_make_lasting(&world, yaml);
	assert_int_equal(set_override(&world, "acme", BURST_OF_NINE, 60000, false), 0);
	assert_int_equal(set_override(&world, "acme", BURST_OF_TWO, 0, false), 0);
	wall_ahead_ms = 61000;
	engine_tick(world.engine);
	assert_int_equal(source_of(&world, "acme", &entry), LIMIT_FROM_OVERRIDE);
	assert_int_equal(entry.limit.hooks.burst, 2);
	assert_int_equal(entry.expires_at_ms, 0);
	assert_int_equal(audit_of(&world).records, 2);
	world_end(&world);
}

static void what_cannot_be_stored_changes_nothing(void **state)
{
	struct engine_numbers numbers;
	struct limits_entry entry;
	struct world world;

	(void)state;
	world_make_lasting(&world, yaml);
	assert_int_equal(set_override(&world, "globex", BURST_OF_TWO, 0, false), 0);
	assert_int_equal(admitted_of(&world, "acme", 5), 1);
	assert_int_equal(admitted_of(&world, "globex", 5), 2);
	disk.is_full = true;
	disk_break(FAULT_ALWAYS, 1);
	assert_int_equal(set_override(&world, "acme", BURST_OF_NINE, 0, false), -ENOSPC);
	assert_int_equal(unset_override(&world, "globex", false), -ENOSPC);
	assert_true(disk.failed);
	assert_int_equal(source_of(&world, "acme", &entry), LIMIT_FROM_CONFIG);
	assert_int_equal(source_of(&world, "globex", &entry), LIMIT_FROM_OVERRIDE);
	assert_int_equal(admitted_of(&world, "acme", 5), 0);
	assert_int_equal(admitted_of(&world, "globex", 5), 0);
	engine_numbers(world.engine, &numbers);
	assert_int_equal(numbers.override_errors, 2);
	assert_int_equal(numbers.overrides, 1);
	disk_repair();
	assert_int_equal(audit_of(&world).records, 1);
	assert_int_equal(set_override(&world, "acme", BURST_OF_NINE, 0, false), 0);
	assert_int_equal(admitted_of(&world, "acme", 20), 9);
	world_restart(&world);
	assert_int_equal(source_of(&world, "acme", &entry), LIMIT_FROM_OVERRIDE);
	assert_int_equal(audit_of(&world).records, 2);
	world_end(&world);
}

/* It has ended all the same; what is left is to write it down, which is tried again. */
static void an_end_that_cannot_be_stored_is_an_end(void **state)
{
	struct limits_entry entry;
	struct world world;
	int warnings;

	(void)state;
	world_make_lasting(&world, yaml);
	assert_int_equal(set_override(&world, "acme", BURST_OF_NINE, 60000, false), 0);
	wall_ahead_ms = 61000;
	disk.is_full = true;
	disk_break(FAULT_ALWAYS, 1);
	engine_tick(world.engine);
	warnings = world.warnings;
	assert_int_equal(warnings, 1);
	assert_int_equal(source_of(&world, "acme", &entry), LIMIT_FROM_CONFIG);
	engine_tick(world.engine);
	assert_int_equal(world.warnings, warnings); /* not with every tick */
	disk_repair();
	/* Whatever is changed before the next try. */
	assert_int_equal(set_override(&world, "globex", BURST_OF_TWO, 0, false), 0);
	wall_ahead_ms += 5000;
	engine_tick(world.engine);
	assert_int_equal(audit_of(&world).records, 3);
	assert_int_equal(unset_override(&world, "acme", false), -ENOENT);
	world_end(&world);
}

/* Likewise when a new engine finds it ended, and cannot store that either. */
static void an_end_that_is_found_on_a_full_disk_is_stored_later(void **state)
{
	struct limits_entry entry;
	struct trouble trouble;
	struct world world;
	int err = -EIO;

	(void)state;
	world_make_lasting(&world, yaml);
	assert_int_equal(set_override(&world, "acme", BURST_OF_NINE, 60000, false), 0);
	world_stop(&world);
	wall_ahead_ms = 61000;
	disk.is_full = true;
	/* The first steps open the file, which this is not about. */
	for (long step = 1; err && step < 100; step++) {
		disk_break(FAULT_ALWAYS, step);
		err = world_try_start(&world, &trouble);
	}
	assert_int_equal(err, 0);
	assert_true(disk.failed);
	assert_int_equal(world.warnings, 1);
	assert_int_equal(source_of(&world, "acme", &entry), LIMIT_FROM_CONFIG);
	disk_repair();
	wall_ahead_ms += 5000;
	engine_tick(world.engine);
	assert_int_equal(audit_of(&world).records, 2);
	world_end(&world);
}

/* Without a database they last as long as the engine. */
static void in_memory_an_override_lives_and_ends_likewise(void **state)
{
	struct limits_entry entry;
	struct world world;

	(void)state;
	world_make(&world, yaml);
	assert_int_equal(set_override(&world, "acme", BURST_OF_NINE, 60000, false), 0);
	assert_int_equal(admitted_of(&world, "acme", 20), 9);
	assert_int_equal(audit_of(&world).records, 0);
	wall_ahead_ms = 61000;
	engine_tick(world.engine);
	assert_int_equal(source_of(&world, "acme", &entry), LIMIT_FROM_CONFIG);
	assert_int_equal(unset_override(&world, "acme", false), -ENOENT);
	assert_int_equal(admitted_of(&world, "acme", 5), 1); /* its debt is forgotten */
	world_restart(&world);
	assert_int_equal(source_of(&world, "acme", &entry), LIMIT_FROM_CONFIG);
	world_end(&world);
}

/* Made ready, it is nothing yet; in force, it is under the overrides of that time. */
static void one_that_is_set_while_a_configuration_is_made_ready_is_kept(void **state)
{
	struct engine_prepared *prepared, *given_up;
	struct trouble trouble;
	struct limits_entry entry;
	struct world world;

	(void)state;
	world_make(&world, yaml);
	assert_int_equal(set_override(&world, "globex", BURST_OF_TWO, 0, false), 0);
	settings_free(world.settings);
	world.settings = settings_of("rate_limits:\n"
				     "  tenants: {acme: {rate: 0.001, burst: 4}}\n");
	assert_int_equal(engine_prepare(world.settings, &prepared, &trouble), 0);
	assert_int_equal(engine_prepare(world.settings, &given_up, &trouble), 0);
	engine_discard(given_up);
	engine_discard(NULL);
	assert_int_equal(admitted_of(&world, "acme", 5), 1);
	assert_int_equal(set_override(&world, "initech", BURST_OF_NINE, 0, false), 0);
	assert_int_equal(unset_override(&world, "globex", false), 0);
	engine_commit(world.engine, prepared);
	assert_int_equal(source_of(&world, "acme", &entry), LIMIT_FROM_CONFIG);
	assert_int_equal(entry.limit.hooks.burst, 4);
	assert_int_equal(source_of(&world, "initech", &entry), LIMIT_FROM_OVERRIDE);
	assert_int_equal(source_of(&world, "globex", &entry), LIMIT_FROM_NONE);
	world_end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_lives_from_set_over_a_restart_until_it_is_unset),
		cmocka_unit_test(a_restart_in_fresh_memory_finds_full_buckets),
		cmocka_unit_test(debts_are_forgotten_unless_they_are_kept),
		cmocka_unit_test(one_with_a_time_ends_with_it),
		cmocka_unit_test(fifty_milliseconds_end_by_themselves),
		cmocka_unit_test(one_whose_time_ends_while_nobody_is_there_is_not_found_again),
		cmocka_unit_test(replacing_one_with_a_time_by_one_without_is_for_good),
		cmocka_unit_test(what_cannot_be_stored_changes_nothing),
		cmocka_unit_test(an_end_that_cannot_be_stored_is_an_end),
		cmocka_unit_test(an_end_that_is_found_on_a_full_disk_is_stored_later),
		cmocka_unit_test(in_memory_an_override_lives_and_ends_likewise),
		cmocka_unit_test(one_that_is_set_while_a_configuration_is_made_ready_is_kept),
	};

	disk_install();
	return cmocka_run_group_tests_name("engine, overrides", tests, NULL, NULL);
}
