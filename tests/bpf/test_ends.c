/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules by hand that end, through the programs: when they do, and what counts then, which is what
 * would count had they never been given.
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#include <linux/bpf.h>

#define CLIENT "198.51.100.7"
#define NESTED "2001:db8:1:2:3:4:5:6"

static struct setting_prefix prefix(const char *address, uint32_t bits, enum prefix_action action)
{
	struct setting_prefix setting = { .address = address_of(address), .action = action };

	setting.bits = address_is_v4(&setting.address) ? ADDRESS_V4_OFFSET + bits : bits;
	return setting;
}

/* A prefix around an IPv6 address. */
static struct setting_prefix around(const char *address, uint32_t bits, enum prefix_action action)
{
	struct setting_prefix one = prefix(address, bits, action);

	one.address.half[0] &= address_mask(bits);
	one.address.half[1] &= address_mask(bits > 64 ? bits - 64 : 0);
	return one;
}

static void apply_prefixes(struct harness *harness, struct setting_prefix *prefixes, size_t count)
{
	struct settings settings = harness_settings();

	settings.prefixes = prefixes;
	settings.prefix_count = count;
	settings.ip[METER_PACKETS] = RATE_LIMIT(0.01, 1);
	harness_apply(harness, &settings);
}

static int count_admitted(struct harness *harness, const char *source, uint8_t flags, int most)
{
	int admitted = 0;

	while (admitted < most && harness_tcp(harness, source, flags, 0).reason == REASON_ADMITTED)
		admitted++;
	return admitted;
}

static void a_rule_by_hand_ends_at_its_time_and_not_before(void **state)
{
	struct setting_prefix configured = prefix(CLIENT, 32, PREFIX_EXEMPT);
	struct setting_prefix by_hand = prefix(CLIENT, 32, PREFIX_DENY);
	const uint32_t end_s = HARNESS_START_NS / SECOND_NS + 60;
	const uint64_t end_ns = end_s * SECOND_NS;
	const struct {
		const char *name;
		uint64_t now_ns, lag_ns;
		enum reason reason;
	} rows[] = {
		{ "a minute before", HARNESS_START_NS, 0, REASON_DENY },
		{ "a nanosecond before", end_ns - 1, 0, REASON_DENY },
		{ "at its end, by a clock that lags", end_ns, 1, REASON_DENY },
		{ "at its end", end_ns, 0, REASON_EXEMPT },
		{ "long after", end_ns + 86400 * SECOND_NS, 0, REASON_EXEMPT },
	};
	struct harness *harness = *state;

	apply_prefixes(harness, &configured, 1);
	harness_by_hand_until(harness, &by_hand, end_s);
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		harness_clock(harness, rows[i].now_ns, rows[i].lag_ns);
		check_row_equal(&rows[i], harness_tcp(harness, CLIENT, TCP_SYN, 0).reason,
				rows[i].reason);
	}
}

static void the_limits_of_a_rule_that_has_ended_are_no_more(void **state)
{
	struct setting_prefix by_hand = prefix("198.51.100.0", 24, PREFIX_LIMIT);
	struct harness *harness = *state;

	by_hand.limit[METER_PACKETS] = RATE_LIMIT(0.01, 3);
	apply_prefixes(harness, NULL, 0);
	harness_by_hand_until(harness, &by_hand, HARNESS_START_NS / SECOND_NS + 60);
	assert_int_equal(count_admitted(harness, "198.51.100.1", TCP_ACK, 20), 3);
	harness_clock(harness, HARNESS_START_NS + 60 * SECOND_NS, 0);
	assert_int_equal(count_admitted(harness, "198.51.100.2", TCP_ACK, 20), 1);
}

/* A trie answers with the longest entry alone, and what has ended may lie over what has not. */
static void what_has_ended_hides_nothing_however_deep_it_lies(void **state)
{
	const uint32_t past = HARNESS_START_NS / SECOND_NS - 1;
	struct setting_prefix configured = prefix("2000::", 3, PREFIX_DENY);
	struct harness *harness = *state;

	apply_prefixes(harness, &configured, 1);
	for (uint32_t bits = 4; bits <= 128; bits++) {
		struct setting_prefix ended = around("2001:db8:1:2::7", bits, PREFIX_EXEMPT);

		harness_by_hand_until(harness, &ended, past);
	}
	assert_int_equal(harness_tcp(harness, "2001:db8:1:2::7", TCP_SYN, 0).reason, REASON_DENY);
	/* Nor does it if nothing is left below. */
	apply_prefixes(harness, NULL, 0);
	configured = prefix("::", 1, PREFIX_DENY);
	harness_by_hand_until(harness, &configured, past);
	configured = prefix("2001:db8:1:2::7", 128, PREFIX_DENY);
	harness_by_hand_until(harness, &configured, past);
	assert_int_equal(harness_tcp(harness, "2001:db8:1:2::7", TCP_SYN, 0).reason,
			 REASON_ADMITTED);
}

enum { NESTS = 400, NESTED_MAX = 12 };

struct nested {
	struct setting_prefix by_hand, configured; /* action PREFIX_NONE: there is none */
	uint32_t expires_s;
};

/* Of all that is in force, the longest; by hand before configured. As the documents have it. */
static enum reason expected_of(const struct nested *nest, size_t count, uint32_t now_s)
{
	enum prefix_action action = PREFIX_NONE;
	uint32_t longest = 0;

	for (size_t at = 0; at < count; at++) {
		bool by_hand = nest[at].by_hand.action != PREFIX_NONE &&
			       (!nest[at].expires_s || now_s < nest[at].expires_s);
		enum prefix_action here =
			by_hand ? nest[at].by_hand.action : nest[at].configured.action;

		if (here == PREFIX_NONE || nest[at].by_hand.bits < longest)
			continue;
		longest = nest[at].by_hand.bits;
		action = here;
	}
	if (action == PREFIX_NONE)
		return REASON_ADMITTED;
	return action == PREFIX_DENY ? REASON_DENY : REASON_EXEMPT;
}

static enum prefix_action draw_action(void)
{
	return (enum prefix_action)(rand() % 3); /* none, exempt, deny */
}

/* Prefixes around one address, of different lengths. Returns how many. */
static size_t draw_nest(struct nested *nest)
{
	size_t count = 1 + (size_t)rand() % NESTED_MAX;
	uint32_t bits = 3 + (uint32_t)rand() % 20;

	for (size_t at = 0; at < count; at++, bits += 1 + (uint32_t)rand() % 8) {
		struct setting_prefix one = around(NESTED, bits, draw_action());

		nest[at].by_hand = nest[at].configured = one;
		nest[at].configured.action = draw_action();
		nest[at].expires_s =
			rand() % 3 ? HARNESS_START_NS / SECOND_NS + (uint32_t)rand() % 5 : 0;
	}
	return count;
}

static void of_any_nest_of_rules_the_longest_in_force_counts(void **state)
{
	struct harness *harness = *state;

	srand(20260104);
	for (int round = 0; round < (int)test_repeat(NESTS); round++) {
		struct setting_prefix configured[NESTED_MAX];
		struct nested nest[NESTED_MAX];
		size_t count = draw_nest(nest), used = 0;

		for (size_t at = 0; at < count; at++)
			if (nest[at].configured.action != PREFIX_NONE)
				configured[used++] = nest[at].configured;
		harness_clock(harness, HARNESS_START_NS, 0);
		apply_prefixes(harness, configured, used);
		for (size_t at = 0; at < count; at++)
			if (nest[at].by_hand.action != PREFIX_NONE)
				harness_by_hand_until(harness, &nest[at].by_hand,
						      nest[at].expires_s);
		for (uint32_t s = 0; s < 5; s++) {
			uint64_t now_ns = HARNESS_START_NS + s * SECOND_NS;
			struct row {
				const char *name;
			} row = { "a nest" };
			enum reason reason;

			harness_clock(harness, now_ns, 0);
			/* So that none is refused by its bucket. */
			memset(harness_set(harness, NESTED), 0, sizeof(struct bucket_set));
			reason = harness_tcp(harness, NESTED, TCP_SYN, 0).reason;
			check_row_equal(&row, reason,
					expected_of(nest, count, (uint32_t)(now_ns / SECOND_NS)));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_rule_by_hand_ends_at_its_time_and_not_before,
				       harness_reset),
		cmocka_unit_test_setup(the_limits_of_a_rule_that_has_ended_are_no_more,
				       harness_reset),
		cmocka_unit_test_setup(what_has_ended_hides_nothing_however_deep_it_lies,
				       harness_reset),
		cmocka_unit_test_setup(of_any_nest_of_rules_the_longest_in_force_counts,
				       harness_reset),
	};

	return cmocka_run_group_tests_name("ends, xdp", tests, harness_open_xdp, harness_close) +
	       cmocka_run_group_tests_name("ends, xdp.frags", tests, harness_open_frags,
					   harness_close) +
	       cmocka_run_group_tests_name("ends, tc", tests, harness_open_tc, harness_close);
}
