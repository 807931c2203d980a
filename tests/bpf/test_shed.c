/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shedding: the programs look at buckets that the daemon's own table has charged in the same maps,
 * and refuse connections whose next request that table would refuse: no others, and nothing else.
 */
#include "shed_fixture.h"

enum { HOOKS_BIT = 1 << METER_HOOKS };

/* ---- whom it meets */

static void connections_of_an_address_at_its_limit_are_refused_and_nothing_else(void **state)
{
	struct harness *harness = *state;
	struct settings settings = shedding(0.1, 3);

	configure(harness, &settings);
	assert_true(request(CLIENT) && request(CLIENT));
	expect_reason(syn(harness, CLIENT), REASON_ADMITTED);
	assert_true(request(CLIENT));
	expect_reason(syn(harness, CLIENT), REASON_SHED_IP);
	expect_reason(quic_initial(harness, CLIENT), REASON_SHED_IP);
	expect_reason(harness_tcp(harness, CLIENT, TCP_ACK, 500), REASON_ADMITTED);
	expect_reason(harness_tcp(harness, CLIENT, TCP_SYN | TCP_ACK, 0), REASON_ADMITTED);
	expect_reason(syn(harness, OTHER), REASON_ADMITTED);
	expect_reason(quic_initial(harness, OTHER), REASON_ADMITTED);
	clocks(harness, HARNESS_START_NS + 10 * SECOND_NS, 0);
	expect_reason(syn(harness, CLIENT), REASON_ADMITTED);
	assert_true(request(CLIENT));
	expect_reason(syn(harness, CLIENT), REASON_SHED_IP);
}

static void an_ipv6_client_is_shed_with_its_whole_prefix(void **state)
{
	struct harness *harness = *state;
	struct settings settings = shedding(0.1, 2);

	configure(harness, &settings);
	exhaust(CLIENT_6);
	expect_reason(syn(harness, CLIENT_6), REASON_SHED_IP);
	expect_reason(syn(harness, "2001:db8:7::ffff:1"), REASON_SHED_IP);
	expect_reason(syn(harness, "2001:db8:7:1::1"), REASON_ADMITTED);
}

static void exempt_prefixes_and_unprotected_ports_are_never_shed(void **state)
{
	struct harness *harness = *state;
	struct settings settings = shedding(0.1, 1);
	struct setting_prefix prefix = { .address = address_of("198.51.100.0"), .bits = 120 };
	static struct frame frame;

	settings.prefixes = &prefix;
	settings.prefix_count = 1;
	prefix.action = PREFIX_EXEMPT;
	configure(harness, &settings);
	exhaust(CLIENT);
	expect_reason(syn(harness, CLIENT), REASON_EXEMPT);
	prefix.action = PREFIX_DENY;
	configure(harness, &settings);
	expect_reason(syn(harness, CLIENT), REASON_DENY);
	/* Limits of its own are of what the kernel counts. */
	prefix.action = PREFIX_LIMIT;
	prefix.limit[METER_PACKETS] = RATE_LIMIT(1000, 1000);
	configure(harness, &settings);
	expect_reason(syn(harness, CLIENT), REASON_SHED_IP);
	settings.prefix_count = 0;
	settings.protect.all = false;
	settings.protect.tcp[443 / 64] = 1ULL << 443 % 64;
	configure(harness, &settings);
	expect_reason(syn(harness, CLIENT), REASON_SHED_IP);
	frame_of_tcp(&frame, CLIENT, 22, TCP_SYN, 0);
	expect_reason(harness_frame(harness, &frame), REASON_UNPROTECTED);
	expect_reason(quic_initial(harness, CLIENT), REASON_UNPROTECTED);
}

static void another_address_of_the_same_set_is_not_shed(void **state)
{
	struct harness *harness = *state;
	struct settings settings = shedding(0.1, 1);
	struct place place, other;
	char text[32];
	int found = 0;

	configure(harness, &settings);
	exhaust(CLIENT);
	set_of(CLIENT, &place);
	for (unsigned number = 0; number < 1u << 20; number++) {
		(void)snprintf(text, sizeof(text), "10.%u.%u.%u", number >> 16, number >> 8 & 255,
			       number & 255);
		set_of(text, &other);
		if (other.set != place.set)
			continue;
		found++;
		expect_reason(syn(harness, text), REASON_ADMITTED);
	}
	assert_true(found > 2);
	expect_reason(syn(harness, CLIENT), REASON_SHED_IP);
}

static void while_the_node_is_at_its_limit_every_connection_is_refused(void **state)
{
	struct harness *harness = *state;
	struct settings settings = shedding(0, 0);

	settings.node_hooks = RATE_LIMIT(0.5, 2);
	configure(harness, &settings);
	expect_reason(syn(harness, CLIENT), REASON_ADMITTED);
	assert_true(request_of_node() && request_of_node());
	expect_reason(syn(harness, CLIENT), REASON_SHED_NODE);
	expect_reason(quic_initial(harness, CLIENT_6), REASON_SHED_NODE);
	expect_reason(harness_tcp(harness, CLIENT, TCP_ACK, 0), REASON_ADMITTED);
	clocks(harness, HARNESS_START_NS + 2 * SECOND_NS - HARNESS_LAG_NS, 0);
	assert_false(request_of_node());
	expect_reason(syn(harness, CLIENT), REASON_ADMITTED);
	clocks(harness, HARNESS_START_NS + 2 * SECOND_NS - HARNESS_LAG_NS - 1, 0);
	expect_reason(syn(harness, CLIENT), REASON_SHED_NODE);
}

/* ---- in doubt it passes */

static void without_a_daemon_or_with_one_of_other_limits_everything_passes(void **state)
{
	struct harness *harness = *state;
	struct settings settings = shedding(0.1, 2), daemons = settings;

	settings.node_hooks = daemons.node_hooks = RATE_LIMIT(0.1, 2);
	harness_apply(harness, &settings);
	expect_reason(syn(harness, CLIENT), REASON_ADMITTED);
	hold_to(&daemons);
	exhaust(CLIENT);
	assert_true(request_of_node() && request_of_node());
	expect_reason(syn(harness, CLIENT), REASON_SHED_IP);
	expect_reason(syn(harness, OTHER), REASON_SHED_NODE);
	for (int what = 0; what < 5; what++) {
		daemons = settings;
		if (what == 0)
			daemons.ip_hooks.burst++;
		else if (what == 1)
			daemons.node_hooks.rate *= 2;
		else if (what == 2)
			daemons.ipv6_prefix = 56;
		else if (what == 3)
			daemons.dry_ip = HOOKS_BIT;
		else
			daemons.dry_node = HOOKS_BIT;
		hold_to(&daemons);
		expect_reason(syn(harness, CLIENT), REASON_ADMITTED);
		expect_reason(syn(harness, OTHER), REASON_ADMITTED);
	}
	/* What it may not judge by. */
	address_table_announce(sluiced.table, 0, 0);
	expect_reason(syn(harness, CLIENT), REASON_ADMITTED);
	hold_to(&settings);
	expect_reason(syn(harness, CLIENT), REASON_SHED_IP);
}

static void words_that_mean_nothing_to_this_limit_pass(void **state)
{
	struct harness *harness = *state;
	struct settings settings = shedding(0.0001, 100); /* class 3, as claims are */
	struct place place;
	__u64 *word, owing;
	uint32_t tag;

	configure(harness, &settings);
	assert_int_equal(sluiced.client.word_class, WORD_CLASSES - 1);
	exhaust(CLIENT);
	set_of(CLIENT, &place);
	tag = place_tag(&place, METER_HOOKS);
	word = word_of(CLIENT);
	owing = *word;
	expect_reason(syn(harness, CLIENT), REASON_SHED_IP);
	for (uint32_t class = 0; class < WORD_CLASSES - 1; class ++) {
		*word = word_pack(tag, class, owing);
		expect_reason(syn(harness, CLIENT), REASON_ADMITTED);
	}
	*word = word_pack(tag, WORD_CLASSES - 1, owing + 1);
	expect_reason(syn(harness, CLIENT), REASON_ADMITTED); /* beyond the capacity */
	/* The clock at which a claim would read as a debt that is just full. */
	*word = word_claim(tag);
	clocks(harness, ((WORD_TAT_MASK - sluiced.client.capacity + 1) << 9), 0);
	sluiced.memory.hooks->refusing_until_ns = UINT64_MAX;
	expect_reason(syn(harness, CLIENT), REASON_ADMITTED);
	*word = word_pack(tag, WORD_CLASSES - 1, WORD_TAT_MASK - 1);
	expect_reason(syn(harness, CLIENT), REASON_SHED_IP);
	*word = word_pack((tag + 1) & WORD_TAG_MASK, WORD_CLASSES - 1, WORD_TAT_MASK - 1);
	expect_reason(syn(harness, CLIENT), REASON_ADMITTED);
	*word = WORD_EMPTY;
	expect_reason(syn(harness, CLIENT), REASON_ADMITTED);
}

static void once_nobody_can_be_at_the_limit_nobody_is_looked_up(void **state)
{
	struct harness *harness = *state;
	struct settings settings = shedding(0.1, 1);

	configure(harness, &settings);
	exhaust(CLIENT);
	assert_true(sluiced.memory.hooks->refusing_until_ns == daemon_now_ns + 10 * SECOND_NS);
	expect_reason(syn(harness, CLIENT), REASON_SHED_IP);
	sluiced.memory.hooks->refusing_until_ns = daemon_now_ns;
	expect_reason(syn(harness, CLIENT), REASON_ADMITTED);
	sluiced.memory.hooks->refusing_until_ns = daemon_now_ns + 1;
	expect_reason(syn(harness, CLIENT), REASON_SHED_IP);
}

static void with_shed_false_nothing_is_shed(void **state)
{
	struct harness *harness = *state;
	struct settings settings = shedding(0.1, 1);

	settings.node_hooks = RATE_LIMIT(0.1, 1);
	settings.shed = false;
	configure(harness, &settings);
	exhaust(CLIENT);
	assert_true(request_of_node());
	expect_reason(syn(harness, CLIENT), REASON_ADMITTED);
	settings.shed = true;
	configure(harness, &settings);
	expect_reason(syn(harness, CLIENT), REASON_SHED_IP);
	settings.ip_hooks.burst = 0;
	configure(harness, &settings);
	expect_reason(syn(harness, CLIENT), REASON_SHED_NODE);
}

/* ---- dry runs */

static void a_limit_in_a_dry_run_sheds_nothing_and_counts_it(void **state)
{
	struct harness *harness = *state;
	struct settings settings = shedding(0.1, 1);
	struct ran ran;

	settings.node_hooks = RATE_LIMIT(0.1, 1);
	settings.dry_ip = HOOKS_BIT;
	configure(harness, &settings);
	exhaust(CLIENT);
	ran = syn(harness, CLIENT);
	check(&ran, REASON_ADMITTED);
	assert_int_equal(ran.would_reasons, 1u << REASON_SHED_IP);
	/* The other one refuses all the same. */
	assert_true(request_of_node());
	ran = syn(harness, CLIENT);
	check(&ran, REASON_SHED_NODE);
	assert_int_equal(ran.would_reasons, 1u << REASON_SHED_IP);
	settings.dry_node = HOOKS_BIT;
	configure(harness, &settings);
	ran = syn(harness, CLIENT);
	check(&ran, REASON_ADMITTED);
	assert_int_equal(ran.would_reasons, 1u << REASON_SHED_IP | 1u << REASON_SHED_NODE);
	settings.dry_ip = settings.dry_node = 0;
	settings.dry_run = true;
	configure(harness, &settings);
	ran = syn(harness, CLIENT);
	assert_int_equal(ran.action, XDP_PASS);
	assert_true(ran.would);
	assert_int_equal(ran.would_reasons, 1u << REASON_SHED_IP);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(connections_of_an_address_at_its_limit_are_refused_and_nothing_else),
		TEST(an_ipv6_client_is_shed_with_its_whole_prefix),
		TEST(exempt_prefixes_and_unprotected_ports_are_never_shed),
		TEST(another_address_of_the_same_set_is_not_shed),
		TEST(while_the_node_is_at_its_limit_every_connection_is_refused),
		TEST(without_a_daemon_or_with_one_of_other_limits_everything_passes),
		TEST(words_that_mean_nothing_to_this_limit_pass),
		TEST(once_nobody_can_be_at_the_limit_nobody_is_looked_up),
		TEST(with_shed_false_nothing_is_shed),
		TEST(a_limit_in_a_dry_run_sheds_nothing_and_counts_it),
	};

	return cmocka_run_group_tests_name("shed, xdp", tests, harness_open_xdp, harness_close) +
	       cmocka_run_group_tests_name("shed, xdp.frags", tests, harness_open_frags,
					   harness_close) +
	       cmocka_run_group_tests_name("shed, tc", tests, harness_open_tc, harness_close);
}
