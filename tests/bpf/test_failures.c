/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Failures within that no other test provokes: an offender for whom there is no room, and a meter
 * in a dry run that finds no word for its address. docs/architecture.md names the test for each row
 * of what happens when.
 */
#include "harness.h"

#include <string.h>

#include <linux/bpf.h>

#include <sluice/word.h>

#define CLIENT "198.51.100.7"
#define OTHER_CLIENT "198.51.100.8"

static void an_offender_without_room_is_lost_and_counted_and_the_verdict_stands(void **state)
{
	struct harness *harness = *state;
	struct setting_prefix everybody = { .action = PREFIX_DENY };
	struct settings settings = harness_settings();
	union address first = address_of(CLIENT), second = address_of(OTHER_CLIENT);
	struct offender offender;

	settings.prefixes = &everybody;
	settings.prefix_count = 1;
	harness_apply(harness, &settings);
	for (uint64_t packet = 1; packet <= 3; packet++) {
		assert_int_equal(harness_tcp(harness, CLIENT, TCP_SYN, 0).action, XDP_DROP);
		assert_int_equal(harness_tcp(harness, OTHER_CLIENT, TCP_SYN, 0).action, XDP_DROP);
		assert_int_equal(harness_note(harness, NOTE_OFFENDER_LOST), packet);
	}
	assert_true(harness_offender(harness, &first, &offender));
	assert_int_equal(offender.packets, 3);
	assert_false(harness_offender(harness, &second, &offender));
	assert_int_equal(harness_events(harness, NULL, 0), 6);
}

/* Two meters of an address, of which connections are asked first; all words of its set are taken,
 * but one that is the packets'. */
static void crowd(struct harness *harness, enum when_full when_full, bool dry)
{
	struct settings settings = harness_settings();
	struct bucket_set *set;
	struct place place;

	settings.when_full = when_full;
	settings.ip[METER_CONNECTIONS] = settings.ip[METER_PACKETS] = RATE_LIMIT(100, 10);
	settings.dry_ip = dry ? 1u << METER_CONNECTIONS : 0;
	harness_apply(harness, &settings);
	place = harness_place(harness, CLIENT);
	set = harness_set(harness, CLIENT);
	for (uint32_t at = 0; at < SET_WORDS; at++)
		set->word[at] =
			word_claim((place_tag(&place, METER_PACKETS) + 64 + at) & WORD_TAG_MASK);
	set->word[5] = word_pack(place_tag(&place, METER_PACKETS), 0,
				 word_ticks(harness_now(harness) + 1000, 0));
}

static void a_meter_in_a_dry_run_that_finds_no_word_counts_that_and_stops_nothing(void **state)
{
	static const struct {
		const char *name;
		enum when_full when_full;
		enum reason reason;
	} rows[] = {
		{ "refuse", WHEN_FULL_REFUSE, REASON_IP_SET_FULL },
		/* The others' debts cannot be seen, so it tries in vain. */
		{ "share", WHEN_FULL_SHARE, REASON_IP_TRIES },
	};
	struct harness *harness = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct ran ran;

		harness_reset(state);
		crowd(harness, rows[i].when_full, false);
		check_row_equal(&rows[i], harness_tcp(harness, CLIENT, TCP_SYN, 0).reason,
				rows[i].reason);

		harness_reset(state);
		crowd(harness, rows[i].when_full, true);
		/* The meter beside it has its word, a thousandth of a packet in debt. */
		for (int packet = 0; packet < 9; packet++) {
			ran = harness_tcp(harness, CLIENT, TCP_SYN, 0);
			check_row_equal(&rows[i], ran.reason, REASON_ADMITTED);
			check_row_equal(&rows[i], ran.would_reasons, 1u << rows[i].reason);
		}
		check_row_equal(&rows[i], harness_tcp(harness, CLIENT, TCP_SYN, 0).reason,
				REASON_IP_PACKETS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			a_meter_in_a_dry_run_that_finds_no_word_counts_that_and_stops_nothing,
			harness_reset),
	};
	const struct CMUnitTest crowded[] = {
		cmocka_unit_test_setup(
			an_offender_without_room_is_lost_and_counted_and_the_verdict_stands,
			harness_reset),
	};

	return cmocka_run_group_tests_name("failures, xdp", tests, harness_open_xdp,
					   harness_close) +
	       cmocka_run_group_tests_name("failures, tc", tests, harness_open_tc, harness_close) +
	       cmocka_run_group_tests_name("no room for offenders", crowded, harness_open_crowded,
					   harness_close);
}
