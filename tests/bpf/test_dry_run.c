/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One meter in a dry run, of an address, of a prefix or of the node: it counts what it would have
 * refused, is charged for nothing of that, and stops nothing, while every other meter is charged
 * and refuses as ever. Then the same within a dry run of everything.
 */
#include "harness.h"

#include <string.h>

#include <linux/bpf.h>

#define CLIENT "198.51.100.7"

enum { PACKET_BYTES = 100, TIGHT = 2, LESS_TIGHT = 5 };

enum scope { SCOPE_IP, SCOPE_PREFIX, SCOPE_NODE, SCOPES };

/* A token comes in a hundred seconds, of bytes a packet's worth. */
static struct rate_limit limit_of(enum meter meter, uint64_t packets)
{
	uint64_t each = meter == METER_BYTES ? PACKET_BYTES : 1;

	return RATE_LIMIT(0.01 * (double)each, packets * each);
}

#define INTERVAL_NS (100 * SECOND_NS)

static enum reason refused_by(enum scope scope, enum meter meter)
{
	return (scope == SCOPE_NODE ? REASON_NODE_CONNECTIONS : REASON_IP_CONNECTIONS) + meter;
}

/* clang-format off */
static const struct dry_row {
	const char *name;
	enum scope scope;
	enum meter meter;
} dry_rows[] = {
	{ "connections of an address", SCOPE_IP, METER_CONNECTIONS },
	{ "packets of an address", SCOPE_IP, METER_PACKETS },
	{ "bytes of an address", SCOPE_IP, METER_BYTES },
	{ "connections of a prefix", SCOPE_PREFIX, METER_CONNECTIONS },
	{ "packets of a prefix", SCOPE_PREFIX, METER_PACKETS },
	{ "bytes of a prefix", SCOPE_PREFIX, METER_BYTES },
	{ "connections of the node", SCOPE_NODE, METER_CONNECTIONS },
	{ "packets of the node", SCOPE_NODE, METER_PACKETS },
	{ "bytes of the node", SCOPE_NODE, METER_BYTES },
};
/* clang-format on */

/* The limits of a scope, and the bits that say which are in a dry run. */
struct wanted {
	struct settings settings;
	struct setting_prefix prefix;
};

static struct rate_limit *limits_of(struct wanted *wanted, enum scope scope)
{
	if (scope == SCOPE_NODE)
		return wanted->settings.node;
	return scope == SCOPE_PREFIX ? wanted->prefix.limit : wanted->settings.ip;
}

static void make_dry(struct wanted *wanted, const struct dry_row *row)
{
	unsigned bit = 1u << row->meter;

	if (row->scope == SCOPE_NODE)
		wanted->settings.dry_node |= bit;
	else if (row->scope == SCOPE_PREFIX)
		wanted->prefix.dry |= bit;
	else
		wanted->settings.dry_ip |= bit;
}

/* The row's meter tight and in a dry run; nothing else is limited. */
static struct wanted want(const struct dry_row *row)
{
	struct wanted wanted = { .settings = harness_settings() };

	wanted.prefix = (struct setting_prefix){
		.address = address_of(CLIENT),
		.bits = 128,
		.action = PREFIX_LIMIT,
	};
	limits_of(&wanted, row->scope)[row->meter] = limit_of(row->meter, TIGHT);
	make_dry(&wanted, row);
	return wanted;
}

static void apply(struct harness *harness, struct wanted *wanted, const struct dry_row *row)
{
	wanted->settings.prefixes = &wanted->prefix;
	wanted->settings.prefix_count = row->scope == SCOPE_PREFIX;
	harness_apply(harness, &wanted->settings);
}

static struct ran run(struct harness *harness)
{
	return harness_tcp(harness, CLIENT, TCP_SYN, PACKET_BYTES);
}

static void check_passes(const struct dry_row *row, struct ran ran, uint32_t would)
{
	check_row_equal(row, ran.action, XDP_PASS);
	check_row_equal(row, ran.reason, REASON_ADMITTED);
	check_row_equal(row, ran.would_reasons, would);
}

static void a_meter_in_a_dry_run_counts_and_stops_nothing(void **state)
{
	struct harness *harness = *state;

	for (size_t i = 0; i < COUNT_OF(dry_rows); i++) {
		const struct dry_row *row = &dry_rows[i];
		enum reason refused = refused_by(row->scope, row->meter);
		struct wanted wanted = want(row);
		struct counter counter;

		harness_reset(state);
		apply(harness, &wanted, row);
		for (int packet = 0; packet < TIGHT; packet++)
			check_passes(row, run(harness), 0);
		for (int packet = 0; packet < 10; packet++)
			check_passes(row, run(harness), 1u << refused);
		counter = harness_counter(harness, refused);
		check_row_equal(row, counter.packets, 0);
		check_row_equal(row, counter.would_packets, 10);
		check_row_equal(row, counter.would_bytes, 10 * PACKET_BYTES);
		check_row_equal(row, harness_counter(harness, REASON_ADMITTED).packets, 12);
	}
}

/* Ten that it would have refused have not moved its bucket: each interval has room for one. */
static void a_meter_in_a_dry_run_is_not_charged_for_what_it_would_refuse(void **state)
{
	struct harness *harness = *state;

	for (size_t i = 0; i < COUNT_OF(dry_rows); i++) {
		const struct dry_row *row = &dry_rows[i];
		uint32_t would = 1u << refused_by(row->scope, row->meter);
		struct wanted wanted = want(row);

		harness_reset(state);
		apply(harness, &wanted, row);
		for (int packet = 0; packet < TIGHT; packet++)
			check_passes(row, run(harness), 0);
		for (uint64_t interval = 1; interval <= 3; interval++) {
			harness_clock(harness, HARNESS_START_NS + interval * INTERVAL_NS - 1, 0);
			for (int packet = 0; packet < 10; packet++)
				check_passes(row, run(harness), would);
			harness_clock(harness, HARNESS_START_NS + interval * INTERVAL_NS, 0);
			check_passes(row, run(harness), 0);
			check_passes(row, run(harness), would);
		}
	}
}

/* Whether the meter of the row is asked before another. */
static bool comes_before(const struct dry_row *row, enum scope scope, enum meter meter)
{
	if ((row->scope == SCOPE_NODE) != (scope == SCOPE_NODE))
		return scope == SCOPE_NODE;
	return row->meter < meter;
}

/* The other meter has admitted and been charged for what the first would have refused, and then
 * refuses for itself. What was found before is told beside it. */
static void check_other(struct harness *harness, const struct dry_row *row, enum scope scope,
			enum meter meter, bool dry_run)
{
	enum reason refused = refused_by(scope, meter);
	uint32_t dry = 1u << refused_by(row->scope, row->meter);
	uint32_t found = comes_before(row, scope, meter) ? dry : 0;
	struct wanted wanted = want(row);
	struct ran ran;

	limits_of(&wanted, scope)[meter] = limit_of(meter, LESS_TIGHT);
	wanted.settings.dry_run = dry_run;
	apply(harness, &wanted, row);
	for (int packet = 0; packet < LESS_TIGHT; packet++)
		check_passes(row, run(harness), packet < TIGHT ? 0 : dry);
	for (int packet = 0; packet < 3; packet++) {
		ran = run(harness);
		check_row_equal(row, ran.action, dry_run ? XDP_PASS : XDP_DROP);
		check_row_equal(row, ran.would, dry_run);
		check_row_equal(row, ran.would_reasons, found | (dry_run ? 1u << refused : 0));
		if (!dry_run)
			check_row_equal(row, ran.reason, refused);
	}
	/* A refusal spends nothing, on the one in a dry run neither. */
	harness_clock(harness, HARNESS_START_NS + INTERVAL_NS, 0);
	check_passes(row, run(harness), 0);
	check_row_equal(row, harness_note(harness, NOTE_SPENT_IN_VAIN), 0);
}

static void the_other_meters_are_charged_and_refuse_all_the_same(void **state)
{
	struct harness *harness = *state;

	for (size_t i = 0; i < COUNT_OF(dry_rows); i++)
		for (int scope = 0; scope < SCOPES; scope++)
			for (int meter = 0; meter < METERS; meter++) {
				const struct dry_row *row = &dry_rows[i];

				/* The limits of a prefix stand instead of those of addresses. */
				if (scope != SCOPE_NODE && scope != (int)row->scope &&
				    row->scope != SCOPE_NODE)
					continue;
				if (scope == SCOPE_PREFIX && row->scope == SCOPE_NODE)
					continue;
				if (scope == (int)row->scope && meter == (int)row->meter)
					continue;
				for (int dry_run = 0; dry_run <= 1; dry_run++) {
					harness_reset(state);
					check_other(harness, row, scope, meter, dry_run);
				}
			}
}

/* ---- what is told of it */

static void an_event_tells_what_would_have_refused(void **state)
{
	struct harness *harness = *state;
	union address key = address_of(CLIENT);

	for (size_t i = 0; i < COUNT_OF(dry_rows); i++) {
		const struct dry_row *row = &dry_rows[i];
		enum reason refused = refused_by(row->scope, row->meter);
		struct wanted wanted = want(row);
		struct offender offender;
		struct event event;

		harness_reset(state);
		apply(harness, &wanted, row);
		for (int packet = 0; packet < TIGHT; packet++)
			check_passes(row, run(harness), 0);
		check_row_equal(row, harness_events(harness, &event, 1), 0);
		check_passes(row, run(harness), 1u << refused);
		check_row_equal(row, harness_events(harness, &event, 1), 1);
		check_row_equal(row, event.reason, refused);
		check_row_equal(row, event.dry_run, 1);
		check_row_equal(row, event.bytes, PACKET_BYTES);
		/* Whom only the node refuses is not noted: test_report.c. */
		check_row_equal(row, harness_offender(harness, &key, &offender),
				row->scope != SCOPE_NODE);
		if (row->scope == SCOPE_NODE)
			continue;
		check_row_equal(row, offender.packets, 1);
		check_row_equal(row, offender.last_reason, refused);
	}
}

/* What truly refuses is told, not what would have. */
static void an_event_of_a_refusal_is_none_of_a_dry_run(void **state)
{
	struct harness *harness = *state;
	struct wanted wanted = want(&dry_rows[0]);
	struct event event;

	wanted.settings.ip[METER_PACKETS] = limit_of(METER_PACKETS, TIGHT);
	apply(harness, &wanted, &dry_rows[0]);
	for (int packet = 0; packet < TIGHT; packet++)
		assert_int_equal(run(harness).reason, REASON_ADMITTED);
	assert_int_equal(run(harness).action, XDP_DROP);
	assert_int_equal(harness_events(harness, &event, 1), 1);
	assert_int_equal(event.reason, REASON_IP_PACKETS);
	assert_int_equal(event.dry_run, 0);
}

static void all_meters_in_a_dry_run_tell_each_for_itself(void **state)
{
	struct harness *harness = *state;
	struct settings settings = harness_settings();
	uint32_t would = 0;
	struct event event;

	for (int meter = 0; meter < METERS; meter++) {
		settings.ip[meter] = settings.node[meter] = limit_of(meter, TIGHT);
		settings.dry_ip |= 1u << meter;
		settings.dry_node |= 1u << meter;
		would |= 1u << refused_by(SCOPE_IP, meter) | 1u << refused_by(SCOPE_NODE, meter);
	}
	harness_apply(harness, &settings);
	for (int packet = 0; packet < 10; packet++)
		check_passes(&dry_rows[0], run(harness), packet < TIGHT ? 0 : would);
	assert_int_equal(harness_events(harness, &event, 1), 10 - TIGHT);
	assert_int_equal(event.reason, REASON_IP_CONNECTIONS);
	assert_int_equal(event.dry_run, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_meter_in_a_dry_run_counts_and_stops_nothing,
				       harness_reset),
		cmocka_unit_test_setup(a_meter_in_a_dry_run_is_not_charged_for_what_it_would_refuse,
				       harness_reset),
		cmocka_unit_test_setup(the_other_meters_are_charged_and_refuse_all_the_same,
				       harness_reset),
		cmocka_unit_test_setup(an_event_tells_what_would_have_refused, harness_reset),
		cmocka_unit_test_setup(an_event_of_a_refusal_is_none_of_a_dry_run, harness_reset),
		cmocka_unit_test_setup(all_meters_in_a_dry_run_tell_each_for_itself, harness_reset),
	};

	return cmocka_run_group_tests_name("dry run, xdp", tests, harness_open_xdp, harness_close) +
	       cmocka_run_group_tests_name("dry run, xdp.frags", tests, harness_open_frags,
					   harness_close) +
	       cmocka_run_group_tests_name("dry run, tc", tests, harness_open_tc, harness_close);
}
