/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stage 2 through the programs: what the prefix lists say of a source, of which the longest prefix
 * counts and a rule by hand wins over the file's, and what `protect` covers.
 */
#include "harness.h"

#include <string.h>

#include <linux/bpf.h>

#define CLIENT "198.51.100.7"

static struct setting_prefix prefix(const char *address, uint32_t bits, enum prefix_action action)
{
	struct setting_prefix setting = { .address = address_of(address), .action = action };

	setting.bits = address_is_v4(&setting.address) ? ADDRESS_V4_OFFSET + bits : bits;
	return setting;
}

static void apply_prefixes(struct harness *harness, struct setting_prefix *prefixes, size_t count)
{
	struct settings settings = harness_settings();

	settings.prefixes = prefixes;
	settings.prefix_count = count;
	settings.ip[METER_PACKETS] = RATE_LIMIT(0.01, 1);
	harness_apply(harness, &settings);
}

static void the_longest_prefix_that_names_the_source_counts(void **state)
{
	struct setting_prefix prefixes[] = {
		prefix("0.0.0.0", 0, PREFIX_DENY),
		prefix("198.51.100.0", 24, PREFIX_EXEMPT),
		prefix("198.51.100.128", 25, PREFIX_DENY),
		prefix("198.51.100.129", 32, PREFIX_EXEMPT),
		prefix("2001:db8::", 32, PREFIX_EXEMPT),
		prefix("2001:db8:1:2::", 64, PREFIX_DENY),
		prefix("2001:db8:1:2::7", 128, PREFIX_EXEMPT),
		prefix("fe80::", 10, PREFIX_DENY),
	};
	static const struct {
		const char *name; /* the source too */
		enum reason reason;
	} rows[] = {
		{ "192.0.2.1", REASON_DENY },         { "198.51.100.7", REASON_EXEMPT },
		{ "198.51.100.127", REASON_EXEMPT },  { "198.51.100.128", REASON_DENY },
		{ "198.51.100.129", REASON_EXEMPT },  { "198.51.100.130", REASON_DENY },
		{ "198.51.101.1", REASON_DENY },      { "2001:db8::1", REASON_EXEMPT },
		{ "2001:db8:1:2::6", REASON_DENY },   { "2001:db8:1:2::7", REASON_EXEMPT },
		{ "2001:db8:1:3::7", REASON_EXEMPT }, { "2001:db9::1", REASON_ADMITTED },
		{ "fe80::1", REASON_DENY },           { "fec0::1", REASON_ADMITTED },
	};
	struct harness *harness = *state;

	apply_prefixes(harness, prefixes, COUNT_OF(prefixes));
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct ran ran = harness_tcp(harness, rows[i].name, TCP_SYN, 0);

		check_row_equal(&rows[i], ran.reason, rows[i].reason);
		check_row_equal(&rows[i], ran.action,
				rows[i].reason == REASON_DENY ? XDP_DROP : XDP_PASS);
	}
}

static void an_exempt_source_is_never_charged_or_refused(void **state)
{
	struct setting_prefix exempt = prefix(CLIENT, 32, PREFIX_EXEMPT);
	struct harness *harness = *state;
	struct settings settings = harness_settings();
	static const struct bucket_set untouched;

	settings.prefixes = &exempt;
	settings.prefix_count = 1;
	settings.ip[METER_PACKETS] = settings.node[METER_PACKETS] = RATE_LIMIT(0.01, 1);
	harness_apply(harness, &settings);
	for (int packet = 0; packet < 5; packet++)
		assert_int_equal(harness_tcp(harness, CLIENT, TCP_SYN, 0).reason, REASON_EXEMPT);
	assert_memory_equal(harness_set(harness, CLIENT), &untouched, sizeof(untouched));
	assert_int_equal(harness->node->tat[METER_PACKETS], 0);
}

static void a_denied_source_is_refused_on_every_port_but_passes_in_a_dry_run(void **state)
{
	struct setting_prefix denied = prefix(CLIENT, 32, PREFIX_DENY);
	struct harness *harness = *state;
	struct settings settings = harness_settings();
	struct ran ran;

	settings.prefixes = &denied;
	settings.prefix_count = 1;
	settings.protect.all = false;
	harness_apply(harness, &settings);
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_SYN, 0).action, XDP_DROP);

	settings.dry_run = true;
	harness_apply(harness, &settings);
	ran = harness_tcp(harness, CLIENT, TCP_SYN, 0);
	assert_int_equal(ran.action, XDP_PASS);
	assert_int_equal(ran.reason, REASON_DENY);
	assert_true(ran.would);
	assert_int_equal(harness_counter(harness, REASON_DENY).would_packets, 1);
}

static int count_admitted(struct harness *harness, const char *source, uint8_t flags, int most)
{
	int admitted = 0;

	while (admitted < most && harness_tcp(harness, source, flags, 0).reason == REASON_ADMITTED)
		admitted++;
	return admitted;
}

/* The prefix's limits are each address's own, and those of per_ip are not added to them. */
static void the_limits_of_a_prefix_stand_instead_of_per_ip_whole(void **state)
{
	struct setting_prefix prefixes[] = {
		prefix("198.51.100.0", 24, PREFIX_LIMIT),
		prefix("198.51.100.64", 26, PREFIX_LIMIT),
	};
	struct harness *harness = *state;
	struct settings settings = harness_settings();

	prefixes[0].limit[METER_PACKETS] = RATE_LIMIT(0.01, 5);
	prefixes[1].limit[METER_CONNECTIONS] = RATE_LIMIT(0.01, 7);
	settings.prefixes = prefixes;
	settings.prefix_count = COUNT_OF(prefixes);
	settings.ip[METER_PACKETS] = RATE_LIMIT(0.01, 2);
	settings.ip[METER_CONNECTIONS] = RATE_LIMIT(0.01, 1);
	harness_apply(harness, &settings);

	assert_int_equal(count_admitted(harness, "192.0.2.1", TCP_SYN, 20), 1);
	assert_int_equal(count_admitted(harness, "192.0.2.2", TCP_ACK, 20), 2);
	assert_int_equal(count_admitted(harness, "198.51.100.1", TCP_SYN, 20), 5);
	assert_int_equal(count_admitted(harness, "198.51.100.2", TCP_SYN, 20), 5);
	assert_int_equal(count_admitted(harness, "198.51.100.65", TCP_SYN, 20), 7);
	assert_int_equal(count_admitted(harness, "198.51.100.66", TCP_ACK, 20), 20);
}

/* Also where per_ip itself sets none. */
static void a_prefix_can_be_limited_where_nobody_else_is(void **state)
{
	struct setting_prefix limited = prefix("198.51.100.0", 24, PREFIX_LIMIT);
	struct harness *harness = *state;
	struct settings settings = harness_settings();

	limited.limit[METER_PACKETS] = RATE_LIMIT(0.01, 5);
	settings.prefixes = &limited;
	settings.prefix_count = 1;
	harness_apply(harness, &settings);
	assert_int_equal(count_admitted(harness, "198.51.100.1", TCP_ACK, 20), 5);
	assert_int_equal(count_admitted(harness, "192.0.2.1", TCP_ACK, 20), 20);
}

static void a_rule_by_hand_wins_for_its_prefix_until_it_is_taken_back(void **state)
{
	struct setting_prefix prefixes[] = {
		prefix("198.51.100.0", 24, PREFIX_EXEMPT),
		prefix("198.51.100.64", 26, PREFIX_DENY),
	};
	struct setting_prefix by_hand = prefix("198.51.100.0", 24, PREFIX_DENY);
	struct harness *harness = *state;

	apply_prefixes(harness, prefixes, COUNT_OF(prefixes));
	assert_int_equal(harness_tcp(harness, "198.51.100.1", TCP_SYN, 0).reason, REASON_EXEMPT);
	harness_by_hand(harness, &by_hand);
	assert_int_equal(harness_tcp(harness, "198.51.100.1", TCP_SYN, 0).reason, REASON_DENY);

	/* Length decides before the hand does. */
	by_hand.action = PREFIX_EXEMPT;
	harness_by_hand(harness, &by_hand);
	assert_int_equal(harness_tcp(harness, "198.51.100.65", TCP_SYN, 0).reason, REASON_DENY);

	by_hand.action = PREFIX_LIMIT;
	by_hand.limit[METER_PACKETS] = RATE_LIMIT(0.01, 3);
	harness_by_hand(harness, &by_hand);
	assert_int_equal(count_admitted(harness, "198.51.100.1", TCP_ACK, 20), 3);

	by_hand.action = PREFIX_NONE;
	harness_by_hand(harness, &by_hand);
	assert_int_equal(harness_tcp(harness, "198.51.100.1", TCP_SYN, 0).reason, REASON_EXEMPT);
}

static void the_lists_of_one_configuration_do_not_reach_into_the_next(void **state)
{
	struct setting_prefix denied = prefix(CLIENT, 32, PREFIX_DENY);
	struct harness *harness = *state;

	apply_prefixes(harness, &denied, 1);
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_SYN, 0).reason, REASON_DENY);
	apply_prefixes(harness, NULL, 0);
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_SYN, 0).reason, REASON_ADMITTED);
	apply_prefixes(harness, &denied, 1);
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_SYN, 0).reason, REASON_DENY);
}

/* ---- protect */

enum { OTHER_PROTOCOL = 47 };

/* A packet of a protocol to a port, if it has ports; later: as a later fragment, which hides them.
 */
static struct ran run_protocol(struct harness *harness, uint8_t protocol, uint16_t port, bool later)
{
	static struct frame frame;
	struct ip_fields ip = { .source = address_of(CLIENT), .hop_limit = 64 };

	ip.fragment = later ? 100 : 0;
	ip.destination = address_of("203.0.113.9");
	frame_begin(&frame);
	frame_ip(&frame, &ip);
	if (protocol == 6)
		frame_tcp(&frame, SOURCE_PORT, port, TCP_SYN);
	else if (protocol == 17)
		frame_udp(&frame, SOURCE_PORT, port);
	else
		frame_icmp(&frame, 8);
	frame.byte[frame.ip_at + 9] = protocol;
	frame_end(&frame);
	return harness_frame(harness, &frame);
}

enum { NONE, TCP_443 = 1, UDP_443 = 2, ICMP = 4, ALL = 8, TCP_EDGES = 16 };

static void apply_protect(struct harness *harness, int protect)
{
	struct settings settings = harness_settings();
	uint64_t port_443 = 1ULL << (443 % 64);

	settings.protect.all = protect & ALL;
	settings.protect.icmp = protect & ICMP;
	settings.protect.tcp[443 / 64] = protect & TCP_443 ? port_443 : 0;
	settings.protect.udp[443 / 64] = protect & UDP_443 ? port_443 : 0;
	if (protect & TCP_EDGES) {
		settings.protect.tcp[0] = 1;
		settings.protect.tcp[PROTECT_WORDS - 1] = 1ULL << 63;
	}
	harness_apply(harness, &settings);
}

static void protect_covers_what_it_names_and_what_hides_behind_it(void **state)
{
	static const struct {
		const char *name;
		int protect;
		uint8_t protocol;
		uint16_t port;
		bool later;
		bool covered;
	} rows[] = {
		{ "nothing: TCP", NONE, 6, 443, false, false },
		{ "nothing: a later fragment", NONE, 6, 443, true, false },
		{ "tcp/443: its port", TCP_443, 6, 443, false, true },
		{ "tcp/443: the port below", TCP_443, 6, 442, false, false },
		{ "tcp/443: the port above", TCP_443, 6, 444, false, false },
		{ "tcp/443: the same bit of another word", TCP_443, 6, 443 + 64, false, false },
		{ "tcp/443: UDP", TCP_443, 17, 443, false, false },
		{ "tcp/443: ICMP", TCP_443, 1, 0, false, false },
		{ "tcp/443: a later fragment of TCP", TCP_443, 6, 0, true, true },
		{ "tcp/443: a later fragment of UDP", TCP_443, 17, 0, true, false },
		{ "udp/443: its port", UDP_443, 17, 443, false, true },
		{ "udp/443: another port", UDP_443, 17, 53, false, false },
		{ "udp/443: TCP", UDP_443, 6, 443, false, false },
		{ "udp/443: a later fragment of UDP", UDP_443, 17, 0, true, true },
		{ "udp/443: a later fragment of TCP", UDP_443, 6, 0, true, false },
		{ "the first port", TCP_EDGES, 6, 0, false, true },
		{ "the last port", TCP_EDGES, 6, 65535, false, true },
		{ "the last port but one", TCP_EDGES, 6, 65534, false, false },
		{ "icmp: ICMP", ICMP, 1, 0, false, true },
		{ "icmp: ICMPv6", ICMP, 58, 0, false, true },
		{ "icmp: TCP", ICMP, 6, 443, false, false },
		{ "icmp: another protocol", ICMP, OTHER_PROTOCOL, 0, false, false },
		{ "all: TCP", ALL, 6, 22, false, true },
		{ "all: ICMP", ALL, 1, 0, false, true },
		{ "all: another protocol", ALL, OTHER_PROTOCOL, 0, false, true },
		{ "all: a later fragment", ALL, 6, 0, true, true },
		{ "tcp/443: another protocol", TCP_443, OTHER_PROTOCOL, 0, false, false },
		{ "tcp/443: an extension header, which could hide TCP", TCP_443, 60, 0, false,
		  true },
		{ "nothing: an extension header", NONE, 60, 0, false, false },
	};
	struct harness *harness = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct ran ran;

		apply_protect(harness, rows[i].protect);
		ran = run_protocol(harness, rows[i].protocol, rows[i].port, rows[i].later);
		check_row_equal(&rows[i], ran.reason,
				rows[i].covered ? REASON_ADMITTED : REASON_UNPROTECTED);
		check_row_equal(&rows[i], ran.action, XDP_PASS);
	}
}

static void what_is_not_protected_is_neither_charged_nor_refused(void **state)
{
	struct harness *harness = *state;
	struct settings settings = harness_settings();
	static const struct bucket_set untouched;

	settings.protect.all = false;
	settings.protect.tcp[80 / 64] = 1ULL << (80 % 64);
	settings.ip[METER_PACKETS] = settings.node[METER_PACKETS] = RATE_LIMIT(0.01, 1);
	harness_apply(harness, &settings);
	for (int packet = 0; packet < 5; packet++)
		assert_int_equal(harness_tcp(harness, CLIENT, TCP_SYN, 0).reason,
				 REASON_UNPROTECTED);
	assert_memory_equal(harness_set(harness, CLIENT), &untouched, sizeof(untouched));
	assert_int_equal(harness->node->tat[METER_PACKETS], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_longest_prefix_that_names_the_source_counts,
				       harness_reset),
		cmocka_unit_test_setup(an_exempt_source_is_never_charged_or_refused, harness_reset),
		cmocka_unit_test_setup(
			a_denied_source_is_refused_on_every_port_but_passes_in_a_dry_run,
			harness_reset),
		cmocka_unit_test_setup(the_limits_of_a_prefix_stand_instead_of_per_ip_whole,
				       harness_reset),
		cmocka_unit_test_setup(a_prefix_can_be_limited_where_nobody_else_is, harness_reset),
		cmocka_unit_test_setup(a_rule_by_hand_wins_for_its_prefix_until_it_is_taken_back,
				       harness_reset),
		cmocka_unit_test_setup(the_lists_of_one_configuration_do_not_reach_into_the_next,
				       harness_reset),
		cmocka_unit_test_setup(protect_covers_what_it_names_and_what_hides_behind_it,
				       harness_reset),
		cmocka_unit_test_setup(what_is_not_protected_is_neither_charged_nor_refused,
				       harness_reset),
	};

	return cmocka_run_group_tests_name("lists, xdp", tests, harness_open_xdp, harness_close) +
	       cmocka_run_group_tests_name("lists, xdp.frags", tests, harness_open_frags,
					   harness_close) +
	       cmocka_run_group_tests_name("lists, tc", tests, harness_open_tc, harness_close);
}
