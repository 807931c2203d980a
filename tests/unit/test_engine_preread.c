/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is asked before a body is read: address, node and source in this order, each touched only if
 * those before it have admitted; and whose address it is.
 */
#include "test.h"

#include "engine_fixture.h"

static const char *const yaml = "rate_limits:\n"
				"  per_ip: {rate: 0.1, burst: 2}\n"
				"  node: {hooks: {rate: 1, burst: 4}}\n"
				"  sources: {default: {bytes_per_second: 1000}}\n"
				"routes: {trusted_proxies: [10.0.0.0/8]}\n"
				"tenant_slots: 1024\n";

static int try_preread(struct world *world, const char *peer, const char *source, int64_t bytes,
		       const char *forwarded, struct decision *decision)
{
	struct forwarded_for line = { forwarded, forwarded ? strlen(forwarded) : 0 };
	union address address;
	struct preread preread = {
		.peer = &address,
		.source = source,
		.source_bytes = strlen(source),
		.has_bytes = bytes >= 0,
		.bytes = bytes >= 0 ? (uint64_t)bytes : 0,
		.forwarded = &line,
		.forwarded_count = forwarded != NULL,
	};

	assert_int_equal(parse_address(peer, &address), 0);
	return engine_preread(world->reader, &preread, keep_decision, decision);
}

static enum decision_reason preread(struct world *world, const char *peer, const char *source,
				    int64_t bytes)
{
	struct decision decision;

	assert_int_equal(try_preread(world, peer, source, bytes, NULL, &decision), 0);
	assert_int_equal(decision.admitted, decision.reason == DECISION_OK);
	assert_int_equal(decision.retry_after_ms > 0, !decision.admitted);
	return decision.reason;
}

/* What a source has left now, by spending all of it. */
static uint64_t spend_source(struct world *world, const char *source)
{
	struct decision decision;

	assert_int_equal(engine_source_bytes(world->reader, source, strlen(source), 1,
					     keep_decision, &decision),
			 0);
	if (!decision.admitted)
		return 0;
	return 1 + (uint64_t)decision.remaining;
}

static void an_address_that_is_refused_touches_neither_node_nor_source(void **state)
{
	struct world world;

	(void)state;
	world_make(&world, yaml);
	assert_int_equal(preread(&world, "192.0.2.1", "hook", 100), DECISION_OK);
	assert_int_equal(preread(&world, "192.0.2.1", "hook", 100), DECISION_OK);
	for (int i = 0; i < 100; i++)
		assert_int_equal(preread(&world, "192.0.2.1", "hook", 100), DECISION_IP);
	assert_int_equal(preread(&world, "192.0.2.2", "hook", 100), DECISION_OK);
	assert_int_equal(preread(&world, "192.0.2.3", "hook", 100), DECISION_OK);
	assert_int_equal(preread(&world, "192.0.2.4", "hook", 100), DECISION_NODE);
	assert_int_equal(spend_source(&world, "hook"), 600);
	world_end(&world);
}

static void a_refusal_by_the_node_has_spent_the_address_and_not_the_source(void **state)
{
	struct world world;

	(void)state;
	world_make(&world, yaml);
	for (char peer[] = "192.0.2.1"; peer[8] <= '4'; peer[8]++)
		assert_int_equal(preread(&world, peer, "hook", 100), DECISION_OK);
	assert_int_equal(preread(&world, "192.0.2.9", "hook", 100), DECISION_NODE);
	assert_int_equal(preread(&world, "192.0.2.9", "hook", 100), DECISION_NODE);
	assert_int_equal(preread(&world, "192.0.2.9", "hook", 100), DECISION_IP);
	/* The node has one again; the address still has none. */
	assert_int_equal(spend_source(&world, "hook"), 600);
	pass_ns(NS_IN_S);
	assert_int_equal(preread(&world, "192.0.2.9", "hook", 100), DECISION_IP);
	assert_int_equal(preread(&world, "192.0.2.8", "other", 100), DECISION_OK);
	assert_int_equal(preread(&world, "192.0.2.7", "other", 100), DECISION_NODE);
	world_end(&world);
}

static void a_refusal_by_the_source_has_spent_address_and_node(void **state)
{
	struct world world;

	(void)state;
	world_make(&world, yaml);
	assert_int_equal(preread(&world, "192.0.2.1", "hook", 1000), DECISION_OK);
	assert_int_equal(preread(&world, "192.0.2.1", "hook", 1), DECISION_SOURCE);
	assert_int_equal(preread(&world, "192.0.2.1", "other", 1), DECISION_IP);
	assert_int_equal(preread(&world, "192.0.2.2", "hook", 1), DECISION_SOURCE);
	assert_int_equal(preread(&world, "192.0.2.2", "hook", 1), DECISION_SOURCE);
	assert_int_equal(preread(&world, "192.0.2.3", "other", 1), DECISION_NODE);
	world_end(&world);
}

static void what_was_not_declared_is_charged_when_it_was_read(void **state)
{
	struct decision decision;
	struct world world;

	(void)state;
	world_make(&world, yaml);
	assert_int_equal(preread(&world, "192.0.2.1", "hook", -1), DECISION_OK);
	assert_int_equal(
		engine_source_bytes(world.reader, "hook", 4, 900, keep_decision, &decision), 0);
	assert_true(decision.admitted);
	assert_int_equal(decision.remaining, 100);
	assert_int_equal(
		engine_source_bytes(world.reader, "hook", 4, 200, keep_decision, &decision), 0);
	assert_int_equal(decision.reason, DECISION_SOURCE);
	assert_int_equal(decision.retry_after_ms, 100);
	/* More than a second's worth: when nothing is owed, and then it takes all. */
	pass_ns(NS_IN_S);
	assert_int_equal(preread(&world, "192.0.2.2", "hook", 1 << 20), DECISION_OK);
	assert_int_equal(preread(&world, "192.0.2.2", "hook", 0), DECISION_OK);
	assert_int_equal(preread(&world, "192.0.2.3", "hook", 1), DECISION_SOURCE);
	world_end(&world);
}

static void a_source_holds_a_hundred_megabytes_unless_told(void **state)
{
	struct world world;

	(void)state;
	world_make(&world, "{}\n");
	assert_int_equal(preread(&world, "192.0.2.1", "hook", 100000000), DECISION_OK);
	assert_int_equal(preread(&world, "192.0.2.1", "hook", 1), DECISION_SOURCE);
	/* Neither address nor node is limited. */
	for (int i = 0; i < 1000; i++)
		assert_int_equal(preread(&world, "192.0.2.1", "hook", -1), DECISION_OK);
	world_end(&world);
}

static void an_address_is_that_of_the_client(void **state)
{
	static const struct row {
		const char *name, *peer, *forwarded;
		const char *client; /* NULL: cannot be read */
	} rows[] = {
		{ "nobody between", "192.0.2.1", NULL, "192.0.2.1" },
		{ "what a stranger says", "192.0.2.1", "203.0.113.9", "192.0.2.1" },
		{ "behind a proxy", "10.0.0.1", "203.0.113.9", "203.0.113.9" },
		{ "behind two", "10.0.0.1", "6.6.6.6, 203.0.113.9, 10.0.0.7", "203.0.113.9" },
		{ "cannot be read", "10.0.0.1", "nonsense", NULL },
	};
	struct decision decision;
	char expected[ADDRESS_TEXT_MAX];
	struct world world;

	(void)state;
	world_make(&world, "routes: {trusted_proxies: [10.0.0.0/8]}\n");
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct row *row = &rows[i];

		check_row_equal(
			row, try_preread(&world, row->peer, "hook", -1, row->forwarded, &decision),
			row->client ? 0 : -EINVAL);
		if (!row->client)
			continue;
		format_address(&decision.client, expected);
		check_row_text(row, expected, row->client);
	}
	world_end(&world);
}

static void addresses_of_one_ipv6_network_are_one(void **state)
{
	struct world world;

	(void)state;
	world_make(&world, "rate_limits: {per_ip: {rate: 0.1, burst: 2}}\n");
	assert_int_equal(preread(&world, "2001:db8::1", "hook", -1), DECISION_OK);
	assert_int_equal(preread(&world, "2001:db8::2:3", "hook", -1), DECISION_OK);
	assert_int_equal(preread(&world, "2001:db8::4", "hook", -1), DECISION_IP);
	assert_int_equal(preread(&world, "2001:db8:0:1::4", "hook", -1), DECISION_OK);
	/* And an IPv4 address is one, however it is written. */
	assert_int_equal(preread(&world, "192.0.2.1", "hook", -1), DECISION_OK);
	assert_int_equal(preread(&world, "::ffff:192.0.2.1", "hook", -1), DECISION_OK);
	assert_int_equal(preread(&world, "192.0.2.1", "hook", -1), DECISION_IP);
	world_end(&world);
}

static void waits_are_exact_for_address_and_node(void **state)
{
	struct decision decision;
	struct world world;

	(void)state;
	world_make(&world, "rate_limits: {per_ip: {rate: 3, burst: 1}, "
			   "node: {hooks: {rate: 7, burst: 1}}}\n");
	assert_int_equal(preread(&world, "192.0.2.1", "hook", -1), DECISION_OK);
	assert_int_equal(try_preread(&world, "192.0.2.2", "hook", -1, NULL, &decision), 0);
	assert_int_equal(decision.reason, DECISION_NODE);
	pass_ns(decision.retry_after_ns - 1);
	assert_int_equal(preread(&world, "192.0.2.3", "hook", -1), DECISION_NODE);
	pass_ns(1);
	assert_int_equal(preread(&world, "192.0.2.4", "hook", -1), DECISION_OK);
	assert_int_equal(try_preread(&world, "192.0.2.4", "hook", -1, NULL, &decision), 0);
	assert_int_equal(decision.reason, DECISION_IP);
	pass_ns(decision.retry_after_ns);
	assert_int_equal(preread(&world, "192.0.2.4", "hook", -1), DECISION_OK);
	world_end(&world);
}

static void a_reload_changes_what_is_asked(void **state)
{
	struct world world;

	(void)state;
	world_make(&world, "rate_limits: {per_ip: {rate: 0.1, burst: 1}}\n");
	assert_int_equal(preread(&world, "192.0.2.1", "hook", -1), DECISION_OK);
	assert_int_equal(preread(&world, "192.0.2.1", "hook", -1), DECISION_IP);
	assert_int_equal(reload_with(&world, "{}\n"), 0);
	assert_int_equal(preread(&world, "192.0.2.1", "hook", -1), DECISION_OK);
	assert_int_equal(reload_with(&world, "rate_limits: {per_ip: {rate: 0.1, burst: 2}}\n"), 0);
	/* The debt from before counts. */
	assert_int_equal(preread(&world, "192.0.2.1", "hook", -1), DECISION_OK);
	assert_int_equal(preread(&world, "192.0.2.1", "hook", -1), DECISION_IP);
	world_end(&world);
}

static void a_limit_in_a_dry_run_lets_pass_and_counts(void **state)
{
	struct engine_numbers numbers;
	struct world world;

	(void)state;
	world_make(&world, "rate_limits:\n"
			   "  per_ip: {hooks: {rate: 0.1, burst: 2, dry_run: true}}\n"
			   "  node: {hooks: {rate: 0.1, burst: 3}}\n"
			   "  sources: {default: {bytes_per_second: 1000}}\n");
	for (int i = 0; i < 3; i++)
		assert_int_equal(preread(&world, "192.0.2.1", "hook", 100), DECISION_OK);
	/* What comes after it is asked, and answers. */
	assert_int_equal(preread(&world, "192.0.2.1", "hook", 100), DECISION_NODE);
	assert_int_equal(spend_source(&world, "hook"), 700);
	engine_numbers(world.engine, &numbers);
	assert_int_equal(numbers.would_refuse[DECISION_IP], 2);
	assert_int_equal(numbers.would_refuse[DECISION_NODE], 0);
	assert_int_equal(numbers.decisions[QUESTION_PREREAD][DECISION_OK], 3);
	assert_int_equal(numbers.decisions[QUESTION_PREREAD][DECISION_NODE], 1);
	assert_int_equal(reload_with(&world,
				     "rate_limits:\n"
				     "  per_ip: {hooks: {rate: 0.1, burst: 2}}\n"
				     "  node: {hooks: {rate: 0.1, burst: 3, dry_run: true}}\n"),
			 0);
	/* It was not charged for what it would have refused: two are owed, and one comes back. */
	assert_int_equal(preread(&world, "192.0.2.1", "hook", -1), DECISION_IP);
	pass_ns(10ULL * NS_IN_S);
	assert_int_equal(preread(&world, "192.0.2.1", "hook", -1), DECISION_OK);
	assert_int_equal(preread(&world, "192.0.2.2", "hook", -1), DECISION_OK);
	engine_reader_free(world.reader);
	world.reader = NULL;
	engine_numbers(world.engine, &numbers);
	assert_int_equal(numbers.would_refuse[DECISION_IP], 2);
	assert_int_equal(numbers.would_refuse[DECISION_NODE], 1);
	world_end(&world);
}

static struct address_memory new_memory(void)
{
	struct address_memory memory = {
		.sets = aligned_alloc(64, IP_SETS * sizeof(struct bucket_set)),
		.hooks = calloc(1, sizeof(struct hooks)),
	};

	assert_non_null(memory.sets);
	assert_non_null(memory.hooks);
	memset(memory.sets, 0, IP_SETS * sizeof(struct bucket_set));
	return memory;
}

static void debts_move_with_the_memory_and_outlive_the_engine_there(void **state)
{
	struct address_memory first = new_memory(), second = new_memory();
	struct engine_options options = { .client_memory = second };
	struct trouble trouble;
	struct world world;
	uint64_t digest;

	(void)state;
	world_make(&world, yaml);
	assert_int_equal(preread(&world, "192.0.2.1", "hook", -1), DECISION_OK);
	engine_move_clients(world.engine, &first);
	digest = first.hooks->limits_digest;
	assert_true(digest != 0);
	assert_int_equal(preread(&world, "192.0.2.1", "hook", -1), DECISION_OK);
	assert_int_equal(preread(&world, "192.0.2.1", "hook", -1), DECISION_IP);
	engine_move_clients(world.engine, &second);
	assert_true(first.hooks->limits_digest == 0 && second.hooks->limits_digest == digest);
	free(first.sets);
	free(first.hooks);
	assert_int_equal(preread(&world, "192.0.2.1", "hook", -1), DECISION_IP);
	assert_true(second.hooks->refusing_until_ns == fixed_now_ns + 10ULL * NS_IN_S);
	assert_int_equal(reload_with(&world, "rate_limits: {per_ip: {rate: 0.1, burst: 3}}\n"), 0);
	assert_true(second.hooks->limits_digest != 0 && second.hooks->limits_digest != digest);
	world_stop(&world);
	options.settings = world.settings;
	assert_int_equal(engine_new(&options, &world.engine, &trouble), 0);
	assert_int_equal(engine_reader_new(world.engine, &world.reader), 0);
	assert_int_equal(preread(&world, "192.0.2.1", "hook", -1), DECISION_OK);
	assert_int_equal(preread(&world, "192.0.2.1", "hook", -1), DECISION_IP);
	world_end(&world);
	free(second.sets);
	free(second.hooks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_that_is_refused_touches_neither_node_nor_source),
		cmocka_unit_test(a_refusal_by_the_node_has_spent_the_address_and_not_the_source),
		cmocka_unit_test(a_refusal_by_the_source_has_spent_address_and_node),
		cmocka_unit_test(what_was_not_declared_is_charged_when_it_was_read),
		cmocka_unit_test(a_source_holds_a_hundred_megabytes_unless_told),
		cmocka_unit_test(an_address_is_that_of_the_client),
		cmocka_unit_test(addresses_of_one_ipv6_network_are_one),
		cmocka_unit_test(waits_are_exact_for_address_and_node),
		cmocka_unit_test(a_reload_changes_what_is_asked),
		cmocka_unit_test(a_limit_in_a_dry_run_lets_pass_and_counts),
		cmocka_unit_test(debts_move_with_the_memory_and_outlive_the_engine_there),
	};

	return cmocka_run_group_tests_name("engine, pre-read", tests, NULL, NULL);
}
