/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who is refused, when, and by what: each meter of an address and of the node at its exact
 * boundary, what a refusal leaves alone, and which addresses count as one client.
 */
#include "harness.h"

#include <string.h>

#include <linux/bpf.h>

#define CLIENT "198.51.100.7"
#define OTHER_CLIENT "198.51.100.8"

enum { HEADER_BYTES = 40 };

/* ---- without a configuration */

static void everything_passes_without_a_configuration_that_is_understood(void **state)
{
	static const struct {
		const char *name;
		uint64_t generation;
		uint32_t abi_version;
		uint32_t active;
	} rows[] = {
		{ "generation 0", 0, SLUICE_ABI_VERSION, 0 },
		{ "another ABI version", 7, SLUICE_ABI_VERSION + 1, 0 },
		{ "no ABI version", 7, 0, 0 },
		{ "slot 2 of two", 7, SLUICE_ABI_VERSION, 2 },
	};
	struct harness *harness = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct config *config = harness->config;
		struct settings settings = harness_settings();
		struct ran ran;

		settings.ip[METER_PACKETS] = RATE_LIMIT(0.001, 1);
		harness_apply(harness, &settings);
		harness_apply(harness, &settings);
		config->slot[0].generation = config->slot[1].generation = rows[i].generation;
		config->abi_version = rows[i].abi_version;
		config->active = rows[i].active;
		for (int packet = 0; packet < 3; packet++) {
			ran = harness_tcp(harness, CLIENT, TCP_SYN, 0);
			check_row_equal(&rows[i], ran.reason, REASON_NO_CONFIG);
			check_row_equal(&rows[i], ran.action, XDP_PASS);
		}
		config->active = 0;
	}
}

/* ---- the boundary of each meter */

/* clang-format off */
static const struct meter_row {
	const char *name;
	bool node;
	enum meter meter;
	struct rate_limit limit;
	uint32_t bytes;       /* of each packet */
	uint64_t interval_ns; /* until one more is admitted */
	enum reason refused;
} meter_rows[] = {
	{ "connections of an address", false, METER_CONNECTIONS, { 10, 3 }, HEADER_BYTES,
	  100 * MILLISECOND_NS, REASON_IP_CONNECTIONS },
	{ "packets of an address", false, METER_PACKETS, { 1000, 3 }, HEADER_BYTES, MILLISECOND_NS,
	  REASON_IP_PACKETS },
	{ "packets of an address, one in 4096 seconds", false, METER_PACKETS, { 1 / 4096., 3 },
	  HEADER_BYTES, 4096 * SECOND_NS, REASON_IP_PACKETS },
	{ "bytes of an address", false, METER_BYTES, { 10000, 3000 }, 1000, 100 * MILLISECOND_NS,
	  REASON_IP_BYTES },
	{ "connections of the node", true, METER_CONNECTIONS, { 10, 3 }, HEADER_BYTES,
	  100 * MILLISECOND_NS, REASON_NODE_CONNECTIONS },
	{ "packets of the node", true, METER_PACKETS, { 1000, 3 }, HEADER_BYTES, MILLISECOND_NS,
	  REASON_NODE_PACKETS },
	{ "bytes of the node", true, METER_BYTES, { 10000, 3000 }, 1000, 100 * MILLISECOND_NS,
	  REASON_NODE_BYTES },
};
/* clang-format on */

static void limit_one(struct harness *harness, const struct meter_row *row, bool dry_run)
{
	struct settings settings = harness_settings();

	settings.dry_run = dry_run;
	if (row->node)
		settings.node[row->meter] = row->limit;
	else
		settings.ip[row->meter] = row->limit;
	harness_apply(harness, &settings);
}

static void check_refused(const struct meter_row *row, struct ran ran)
{
	check_row_equal(row, ran.reason, row->refused);
	check_row_equal(row, ran.action, XDP_DROP);
	check_row_equal(row, ran.would, false);
	check_row_equal(row, ran.bytes, row->bytes);
}

static void check_admitted(const struct meter_row *row, struct ran ran)
{
	check_row_equal(row, ran.reason, REASON_ADMITTED);
	check_row_equal(row, ran.action, XDP_PASS);
	check_row_equal(row, ran.bytes, row->bytes);
}

static void each_meter_admits_its_burst_and_then_one_at_each_interval(void **state)
{
	struct harness *harness = *state;

	for (size_t i = 0; i < COUNT_OF(meter_rows); i++) {
		const struct meter_row *row = &meter_rows[i];
		uint64_t start_ns;

		harness_reset(state);
		limit_one(harness, row, false);
		start_ns = harness_now(harness);
		for (int packet = 0; packet < 3; packet++)
			check_admitted(row, harness_tcp(harness, CLIENT, TCP_SYN, row->bytes));
		check_refused(row, harness_tcp(harness, CLIENT, TCP_SYN, row->bytes));
		for (uint64_t interval = 1; interval <= 3; interval++) {
			harness_clock(harness, start_ns + interval * row->interval_ns - 1, 0);
			check_refused(row, harness_tcp(harness, CLIENT, TCP_SYN, row->bytes));
			harness_clock(harness, start_ns + interval * row->interval_ns, 0);
			check_admitted(row, harness_tcp(harness, CLIENT, TCP_SYN, row->bytes));
			check_refused(row, harness_tcp(harness, CLIENT, TCP_SYN, row->bytes));
		}
	}
}

static void a_limit_of_an_address_is_its_own_and_one_of_the_node_is_everybodys(void **state)
{
	struct harness *harness = *state;

	for (size_t i = 0; i < COUNT_OF(meter_rows); i++) {
		const struct meter_row *row = &meter_rows[i];
		struct ran ran;

		harness_reset(state);
		limit_one(harness, row, false);
		for (int packet = 0; packet < 3; packet++)
			check_admitted(row, harness_tcp(harness, CLIENT, TCP_SYN, row->bytes));
		ran = harness_tcp(harness, OTHER_CLIENT, TCP_SYN, row->bytes);
		if (row->node)
			check_refused(row, ran);
		else
			check_admitted(row, ran);
	}
}

static void a_dry_run_counts_what_it_would_refuse_and_passes_it(void **state)
{
	struct harness *harness = *state;

	for (size_t i = 0; i < COUNT_OF(meter_rows); i++) {
		const struct meter_row *row = &meter_rows[i];
		struct ran ran;

		harness_reset(state);
		limit_one(harness, row, true);
		for (int packet = 0; packet < 3; packet++)
			check_admitted(row, harness_tcp(harness, CLIENT, TCP_SYN, row->bytes));
		ran = harness_tcp(harness, CLIENT, TCP_SYN, row->bytes);
		check_row_equal(row, ran.action, XDP_PASS);
		check_row_equal(row, ran.reason, row->refused);
		check_row_equal(row, ran.would, true);
		check_row_equal(row, ran.bytes, row->bytes);
		check_row_equal(row, harness_counter(harness, row->refused).packets, 0);
		check_row_equal(row, harness_counter(harness, row->refused).would_packets, 1);
		check_row_equal(row, harness_counter(harness, row->refused).would_bytes,
				row->bytes);
	}
}

static void packets_that_open_nothing_are_not_connections(void **state)
{
	struct harness *harness = *state;
	struct settings settings = harness_settings();

	settings.ip[METER_CONNECTIONS] = settings.node[METER_CONNECTIONS] = RATE_LIMIT(0.001, 1);
	harness_apply(harness, &settings);
	for (int packet = 0; packet < 10; packet++)
		assert_int_equal(harness_tcp(harness, CLIENT, TCP_ACK, 0).reason, REASON_ADMITTED);
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_SYN, 0).reason, REASON_ADMITTED);
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_SYN, 0).reason, REASON_IP_CONNECTIONS);
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_ACK, 0).reason, REASON_ADMITTED);
}

static void a_packet_larger_than_the_burst_is_never_admitted_and_never_charged(void **state)
{
	struct harness *harness = *state;
	struct settings settings = harness_settings();

	settings.ip[METER_BYTES] = RATE_LIMIT(1000, 1000);
	harness_apply(harness, &settings);
	for (int packet = 0; packet < 3; packet++)
		assert_int_equal(harness_tcp(harness, CLIENT, TCP_ACK, 1001).reason,
				 REASON_IP_BYTES);
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_ACK, 1000).reason, REASON_ADMITTED);
}

/* ---- what a refusal leaves alone */

/* clang-format off */
static const struct tight_row {
	const char *name;
	bool node;
	enum meter meter; /* the one that refuses */
	struct rate_limit tight;
	enum reason refused;
} tight_rows[] = {
	{ "connections of an address", false, METER_CONNECTIONS, { 0.01, 2 },
	  REASON_IP_CONNECTIONS },
	{ "packets of an address", false, METER_PACKETS, { 0.01, 2 }, REASON_IP_PACKETS },
	{ "bytes of an address", false, METER_BYTES, { 0.01, 100 }, REASON_IP_BYTES },
	{ "connections of the node", true, METER_CONNECTIONS, { 0.01, 2 },
	  REASON_NODE_CONNECTIONS },
	{ "packets of the node", true, METER_PACKETS, { 0.01, 2 }, REASON_NODE_PACKETS },
	{ "bytes of the node", true, METER_BYTES, { 0.01, 100 }, REASON_NODE_BYTES },
};
/* clang-format on */

/* All meters of both scopes limited, one of them tightly. */
static void limit_all(struct harness *harness, const struct tight_row *row)
{
	struct settings settings = harness_settings();

	for (int meter = 0; meter < METERS; meter++) {
		settings.ip[meter] = RATE_LIMIT(100, 10000);
		settings.node[meter] = RATE_LIMIT(100, 1000000);
	}
	if (row->node)
		settings.node[row->meter] = row->tight;
	else
		settings.ip[row->meter] = row->tight;
	harness_apply(harness, &settings);
}

static void check_unspent(const struct harness *harness, const struct tight_row *row,
			  const uint64_t unspent[METERS])
{
	for (int meter = 0; meter < METERS; meter++)
		check_row_equal(row, harness_unspent(harness, meter), unspent[meter]);
}

/* One meter refuses: the others of its scope are as they were, and those of the node too if it was
 * the address that was refused. */
static void a_refusal_spends_nothing_on_the_meters_beside_it(void **state)
{
	struct harness *harness = *state;

	for (size_t i = 0; i < COUNT_OF(tight_rows); i++) {
		const struct tight_row *row = &tight_rows[i];
		struct bucket_set set;
		struct node_buckets node;
		uint64_t unspent[METERS];

		harness_reset(state);
		limit_all(harness, row);
		for (int packet = 0; packet < 2; packet++)
			check_row_equal(row, harness_tcp(harness, CLIENT, TCP_SYN, 40).reason,
					REASON_ADMITTED);
		set = *harness_set(harness, CLIENT);
		node = *harness->node;
		for (int meter = 0; meter < METERS; meter++)
			unspent[meter] = harness_unspent(harness, meter);
		harness_clock(harness, harness_now(harness) + MILLISECOND_NS, 0);
		check_row_equal(row, harness_tcp(harness, CLIENT, TCP_SYN, 40).reason,
				row->refused);

		check_row(row, memcmp(&node, harness->node, sizeof(node)) == 0);
		check_unspent(harness, row, unspent);
		if (!row->node)
			check_row(row,
				  memcmp(&set, harness_set(harness, CLIENT), sizeof(set)) == 0);
		check_row_equal(row, harness_note(harness, NOTE_SPENT_IN_VAIN), 0);
	}
}

static void an_address_that_the_node_refuses_has_spent_its_own(void **state)
{
	struct harness *harness = *state;
	struct settings settings = harness_settings();

	settings.ip[METER_PACKETS] = RATE_LIMIT(0.01, 3);
	settings.node[METER_PACKETS] = RATE_LIMIT(0.01, 1);
	harness_apply(harness, &settings);
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_ACK, 0).reason, REASON_ADMITTED);
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_ACK, 0).reason, REASON_NODE_PACKETS);
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_ACK, 0).reason, REASON_NODE_PACKETS);
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_ACK, 0).reason, REASON_IP_PACKETS);
}

/* ---- who is one client */

static void addresses_of_one_client_share_a_bucket(void **state)
{
	static const struct {
		const char *name;
		uint32_t ipv6_prefix;
		const char *first;
		const char *second;
		bool shared;
	} rows[] = {
		{ "two IPv4 addresses", 64, "192.0.2.1", "192.0.2.2", false },
		{ "the same /64", 64, "2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true },
		{ "the next /64", 64, "2001:db8:1:2::1", "2001:db8:1:3::1", false },
		{ "the same /56", 56, "2001:db8:1:200::1", "2001:db8:1:2ff::9", true },
		{ "the next /56", 56, "2001:db8:1:200::1", "2001:db8:1:300::1", false },
		{ "the same /48", 48, "2001:db8:1::1", "2001:db8:1:ffff::9", true },
		{ "the same /96", 96, "2001:db8::1", "2001:db8::ffff:ffff", true },
		{ "the next /96", 96, "2001:db8::1", "2001:db8::1:0:1", false },
		{ "each address for itself", 128, "2001:db8::1", "2001:db8::2", false },
		{ "two link-local addresses", 64, "fe80::1", "fe80::2", false },
		{ "two link-local addresses, /48", 48, "fe80::1", "fe80::2", false },
		{ "two IPv4 addresses, /48", 48, "192.0.2.1", "192.0.2.2", false },
	};
	struct harness *harness = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct settings settings = harness_settings();

		harness_reset(state);
		settings.ipv6_prefix = rows[i].ipv6_prefix;
		settings.ip[METER_PACKETS] = RATE_LIMIT(0.01, 1);
		harness_apply(harness, &settings);
		check_row_equal(&rows[i], harness_tcp(harness, rows[i].first, TCP_ACK, 0).reason,
				REASON_ADMITTED);
		check_row_equal(&rows[i], harness_tcp(harness, rows[i].second, TCP_ACK, 0).reason,
				rows[i].shared ? REASON_IP_PACKETS : REASON_ADMITTED);
		check_row_equal(&rows[i], harness_tcp(harness, rows[i].first, TCP_ACK, 0).reason,
				REASON_IP_PACKETS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(everything_passes_without_a_configuration_that_is_understood,
				       harness_reset),
		cmocka_unit_test_setup(each_meter_admits_its_burst_and_then_one_at_each_interval,
				       harness_reset),
		cmocka_unit_test_setup(
			a_limit_of_an_address_is_its_own_and_one_of_the_node_is_everybodys,
			harness_reset),
		cmocka_unit_test_setup(a_dry_run_counts_what_it_would_refuse_and_passes_it,
				       harness_reset),
		cmocka_unit_test_setup(packets_that_open_nothing_are_not_connections,
				       harness_reset),
		cmocka_unit_test_setup(
			a_packet_larger_than_the_burst_is_never_admitted_and_never_charged,
			harness_reset),
		cmocka_unit_test_setup(a_refusal_spends_nothing_on_the_meters_beside_it,
				       harness_reset),
		cmocka_unit_test_setup(an_address_that_the_node_refuses_has_spent_its_own,
				       harness_reset),
		cmocka_unit_test_setup(addresses_of_one_client_share_a_bucket, harness_reset),
	};

	return cmocka_run_group_tests_name("verdicts, xdp", tests, harness_open_xdp,
					   harness_close) +
	       cmocka_run_group_tests_name("verdicts, xdp.frags", tests, harness_open_frags,
					   harness_close) +
	       cmocka_run_group_tests_name("verdicts, tc", tests, harness_open_tc, harness_close);
}
