/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is told of refusals: the content of an event and of an offender's record, how many of them
 * are written, what is lost and that the loss is counted, and the true size of frames in several
 * buffers.
 */
#include "harness.h"

#include <string.h>

#include <linux/bpf.h>

#define CLIENT "198.51.100.7"

/* The clock whose seconds limit what is written: 2^30 ns. */
#define REPORT_SECOND_NS (1ULL << 30)

static void refuse_all(struct harness *harness, bool dry_run)
{
	static struct setting_prefix everybody = { .action = PREFIX_DENY };
	struct settings settings = harness_settings();

	settings.dry_run = dry_run;
	settings.prefixes = &everybody;
	settings.prefix_count = 1;
	harness_apply(harness, &settings);
}

static void limit_packets(struct harness *harness, uint64_t burst)
{
	struct settings settings = harness_settings();

	settings.ip[METER_PACKETS] = RATE_LIMIT(0.01, burst);
	harness_apply(harness, &settings);
}

/* ---- events */

static void an_event_says_who_was_refused_and_why(void **state)
{
	static struct frame frame;
	struct harness *harness = *state;
	union address source = address_of("2001:db8:1:2:3:4:5:6");
	union address destination = address_of("2001:db8::9");
	struct event event;

	limit_packets(harness, 1);
	frame_of_udp(&frame, "2001:db8:1:2:3:4:5:6", 4433, 500);
	harness_clock(harness, HARNESS_START_NS, 1000);
	assert_int_equal(harness_frame(harness, &frame).reason, REASON_ADMITTED);
	assert_int_equal(harness_events(harness, &event, 1), 0);
	assert_int_equal(harness_frame(harness, &frame).reason, REASON_IP_PACKETS);
	assert_int_equal(harness_events(harness, &event, 1), 1);

	assert_int_equal(event.time_ns, HARNESS_START_NS - 1000);
	assert_memory_equal(&event.source, &source, sizeof(source));
	assert_memory_equal(&event.destination, &destination, sizeof(destination));
	assert_int_equal(event.ifindex, 1);
	assert_int_equal(event.reason, REASON_IP_PACKETS);
	assert_int_equal(event.bytes, 500);
	assert_int_equal(event.source_port, SOURCE_PORT);
	assert_int_equal(event.destination_port, 4433);
	assert_int_equal(event.protocol, 17);
	assert_int_equal(event.dry_run, 0);
	assert_int_equal(event.reserved, 0);
	assert_int_equal(event.header_bytes, EVENT_HEADER_BYTES);
	assert_memory_equal(event.header, frame.byte + 14, EVENT_HEADER_BYTES);
}

static void an_event_of_a_dry_run_says_so(void **state)
{
	struct harness *harness = *state;
	struct event event;

	refuse_all(harness, true);
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_SYN, 0).action, XDP_PASS);
	assert_int_equal(harness_events(harness, &event, 1), 1);
	assert_int_equal(event.dry_run, 1);
	assert_int_equal(event.reason, REASON_DENY);
}

/* The header begins at the IP header, wherever that is. */
static void the_header_in_an_event_begins_behind_the_tags(void **state)
{
	static struct frame frame;
	struct ip_fields ip = { .source = address_of(CLIENT), .hop_limit = 64 };
	struct harness *harness = *state;

	refuse_all(harness, false);
	for (uint16_t tags = 0; tags <= 4; tags++) {
		struct event event;

		frame_begin(&frame);
		for (uint16_t tag = 0; tag < tags; tag++)
			frame_vlan(&frame, 0x8100, tag);
		frame_ip(&frame, &ip);
		frame_tcp(&frame, SOURCE_PORT, 443, TCP_SYN);
		frame_end(&frame);
		assert_int_equal(harness_frame(harness, &frame).action, XDP_DROP);
		assert_int_equal(harness_events(harness, &event, 1), 1);
		assert_int_equal(event.header_bytes, 40);
		assert_memory_equal(event.header, frame.byte + 14 + 4 * tags, 40);
	}
}

static void only_so_many_events_are_written_a_second_and_the_rest_is_counted(void **state)
{
	enum { REFUSALS = 3 * EVENTS_PER_S };
	struct harness *harness = *state;

	refuse_all(harness, false);
	for (uint64_t second = 1; second <= 3; second++) {
		harness_clock(harness, HARNESS_START_NS + second * REPORT_SECOND_NS, 0);
		for (int packet = 0; packet < REFUSALS; packet++)
			assert_int_equal(harness_tcp(harness, CLIENT, TCP_SYN, 0).action, XDP_DROP);
		assert_int_equal(harness_events(harness, NULL, 0), EVENTS_PER_S);
		assert_int_equal(harness_note(harness, NOTE_EVENT_SAMPLED_OUT),
				 second * (REFUSALS - EVENTS_PER_S));
	}
	assert_int_equal(harness_note(harness, NOTE_EVENT_LOST), 0);
	assert_int_equal(harness_counter(harness, REASON_DENY).packets, 3 * REFUSALS);
}

static void an_event_without_room_is_lost_and_counted_and_the_verdict_stands(void **state)
{
	/* Each takes eight bytes of its own in the ring. */
	enum { ROOM = EVENTS_BYTES / (sizeof(struct event) + 8), EVENTS = ROOM + 200 };
	struct harness *harness = *state;
	uint64_t kept, lost;

	refuse_all(harness, false);
	for (int packet = 0; packet < EVENTS; packet++) {
		if (packet % EVENTS_PER_S == 0)
			harness_clock(harness, harness_now(harness) + REPORT_SECOND_NS, 0);
		assert_int_equal(harness_tcp(harness, CLIENT, TCP_SYN, 0).action, XDP_DROP);
	}
	lost = harness_note(harness, NOTE_EVENT_LOST);
	kept = harness_events(harness, NULL, 0);
	assert_true(lost > 0);
	assert_int_equal(kept + lost, EVENTS);
	assert_in_range(kept, ROOM - 1, ROOM);
	assert_int_equal(harness_note(harness, NOTE_EVENT_SAMPLED_OUT), 0);

	/* With room again, events are written again. */
	harness_clock(harness, harness_now(harness) + REPORT_SECOND_NS, 0);
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_SYN, 0).action, XDP_DROP);
	assert_int_equal(harness_events(harness, NULL, 0), 1);
}

static void what_is_admitted_is_not_told(void **state)
{
	struct harness *harness = *state;
	union address key = address_of(CLIENT);
	struct offender offender;

	limit_packets(harness, 100);
	for (int packet = 0; packet < 100; packet++)
		assert_int_equal(harness_tcp(harness, CLIENT, TCP_SYN, 0).action, XDP_PASS);
	assert_int_equal(harness_events(harness, NULL, 0), 0);
	assert_false(harness_offender(harness, &key, &offender));
}

/* ---- offenders */

static void an_offender_is_noted_with_what_it_was_refused(void **state)
{
	static struct setting_prefix denied;
	struct harness *harness = *state;
	struct settings settings = harness_settings();
	union address key = address_of(CLIENT);
	struct offender offender;

	limit_packets(harness, 1);
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_SYN, 100).action, XDP_PASS);
	assert_false(harness_offender(harness, &key, &offender));
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_SYN, 200).action, XDP_DROP);
	harness_clock(harness, HARNESS_START_NS + SECOND_NS, 0);
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_SYN, 300).action, XDP_DROP);

	assert_true(harness_offender(harness, &key, &offender));
	assert_int_equal(offender.packets, 2);
	assert_int_equal(offender.bytes, 500);
	assert_int_equal(offender.first_seen_ns, HARNESS_START_NS);
	assert_int_equal(offender.last_seen_ns, HARNESS_START_NS + SECOND_NS);
	assert_int_equal(offender.last_reason, REASON_IP_PACKETS);
	assert_int_equal(offender.reserved, 0);

	denied = (struct setting_prefix){ .address = key, .bits = 128, .action = PREFIX_DENY };
	settings.prefixes = &denied;
	settings.prefix_count = 1;
	harness_apply(harness, &settings);
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_SYN, 400).action, XDP_DROP);
	assert_true(harness_offender(harness, &key, &offender));
	assert_int_equal(offender.packets, 3);
	assert_int_equal(offender.last_reason, REASON_DENY);
}

static void an_offender_is_noted_under_its_buckets_key(void **state)
{
	struct harness *harness = *state;
	union address key = address_of("2001:db8:1:2::");
	union address whole = address_of("2001:db8:1:2::1");
	struct offender offender;

	refuse_all(harness, false);
	assert_int_equal(harness_tcp(harness, "2001:db8:1:2::1", TCP_SYN, 0).action, XDP_DROP);
	assert_int_equal(harness_tcp(harness, "2001:db8:1:2::2", TCP_SYN, 0).action, XDP_DROP);
	assert_true(harness_offender(harness, &key, &offender));
	assert_int_equal(offender.packets, 2);
	assert_false(harness_offender(harness, &whole, &offender));
}

/* It has kept to its own limit, and may be invented: it must not push out a real offender. */
static void an_address_that_only_the_node_refuses_is_noted_if_it_is_known(void **state)
{
	struct harness *harness = *state;
	struct settings settings = harness_settings();
	union address known = address_of(CLIENT), other = address_of("192.0.2.1");
	struct offender offender;

	settings.ip[METER_PACKETS] = RATE_LIMIT(1000, 1);
	settings.node[METER_PACKETS] = RATE_LIMIT(0.01, 1);
	harness_apply(harness, &settings);
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_SYN, 100).reason, REASON_ADMITTED);
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_SYN, 100).reason, REASON_IP_PACKETS);
	harness_clock(harness, HARNESS_START_NS + SECOND_NS, 0);
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_SYN, 100).reason, REASON_NODE_PACKETS);
	assert_int_equal(harness_tcp(harness, "192.0.2.1", TCP_SYN, 100).reason,
			 REASON_NODE_PACKETS);

	assert_true(harness_offender(harness, &known, &offender));
	assert_int_equal(offender.packets, 2);
	assert_int_equal(offender.last_reason, REASON_NODE_PACKETS);
	assert_false(harness_offender(harness, &other, &offender));
	assert_int_equal(harness_note(harness, NOTE_OFFENDER_LOST), 0);
	assert_int_equal(harness_events(harness, NULL, 0), 3);
}

/* Beyond a number of refusals in a second one in so many is noted, for as many. The bounds are six
 * standard deviations wide: one run in five hundred million fails by chance. */
static void beyond_what_is_noted_exactly_the_count_is_an_estimate(void **state)
{
	enum { SAMPLED = 100 * OFFENDERS_SAMPLE, SPREAD = 6 * 10 * OFFENDERS_SAMPLE };
	struct harness *harness = *state;
	union address key = address_of(CLIENT);
	struct offender offender;

	refuse_all(harness, false);
	for (int packet = 0; packet < OFFENDERS_EXACT_PER_S; packet++)
		harness_tcp(harness, CLIENT, TCP_SYN, 100);
	assert_true(harness_offender(harness, &key, &offender));
	assert_int_equal(offender.packets, OFFENDERS_EXACT_PER_S);

	for (int packet = 0; packet < SAMPLED; packet++)
		harness_tcp(harness, CLIENT, TCP_SYN, 100);
	assert_true(harness_offender(harness, &key, &offender));
	assert_int_equal((offender.packets - OFFENDERS_EXACT_PER_S) % OFFENDERS_SAMPLE, 0);
	assert_in_range(offender.packets, OFFENDERS_EXACT_PER_S + SAMPLED - SPREAD,
			OFFENDERS_EXACT_PER_S + SAMPLED + SPREAD);
	assert_int_equal(offender.bytes, offender.packets * 100);
	assert_int_equal(harness_counter(harness, REASON_DENY).packets,
			 OFFENDERS_EXACT_PER_S + SAMPLED);

	/* The next second is exact again. */
	harness_clock(harness, HARNESS_START_NS + 2 * REPORT_SECOND_NS, 0);
	key = address_of("192.0.2.1");
	harness_tcp(harness, "192.0.2.1", TCP_SYN, 100);
	assert_true(harness_offender(harness, &key, &offender));
	assert_int_equal(offender.packets, 1);
}

/* ---- frames in several buffers */

static void the_bytes_of_a_large_frame_are_counted_whole(void **state)
{
	static const uint32_t sizes[] = { 1500, 3000, 4000, 9000, 60000, 65535 };
	static struct frame frame;
	struct harness *harness = *state;

	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		struct settings settings = harness_settings();
		union address key = address_of(CLIENT);
		struct offender offender;
		struct event event;
		struct ran ran;

		/* By TC the large ones come through an interface: test_tc.c. */
		frame_of_tcp(&frame, CLIENT, 443, TCP_ACK, sizes[i]);
		if (!harness_can_run(harness, frame.byte, frame.bytes))
			continue;
		harness_reset(state);
		settings.ip[METER_BYTES] = RATE_LIMIT(1000, 3 * sizes[i] - 1);
		harness_apply(harness, &settings);
		for (int packet = 0; packet < 2; packet++) {
			ran = harness_tcp(harness, CLIENT, TCP_ACK, sizes[i]);
			assert_int_equal(ran.reason, REASON_ADMITTED);
			assert_int_equal(ran.bytes, sizes[i]);
		}
		ran = harness_tcp(harness, CLIENT, TCP_ACK, sizes[i]);
		assert_int_equal(ran.reason, REASON_IP_BYTES);
		assert_int_equal(ran.bytes, sizes[i]);
		assert_int_equal(harness_events(harness, &event, 1), 1);
		assert_int_equal(event.bytes, sizes[i]);
		assert_int_equal(event.header_bytes, EVENT_HEADER_BYTES);
		assert_true(harness_offender(harness, &key, &offender));
		assert_int_equal(offender.bytes, sizes[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(an_event_says_who_was_refused_and_why, harness_reset),
		cmocka_unit_test_setup(an_event_of_a_dry_run_says_so, harness_reset),
		cmocka_unit_test_setup(the_header_in_an_event_begins_behind_the_tags,
				       harness_reset),
		cmocka_unit_test_setup(
			only_so_many_events_are_written_a_second_and_the_rest_is_counted,
			harness_reset),
		cmocka_unit_test_setup(
			an_event_without_room_is_lost_and_counted_and_the_verdict_stands,
			harness_reset),
		cmocka_unit_test_setup(what_is_admitted_is_not_told, harness_reset),
		cmocka_unit_test_setup(an_offender_is_noted_with_what_it_was_refused,
				       harness_reset),
		cmocka_unit_test_setup(an_offender_is_noted_under_its_buckets_key, harness_reset),
		cmocka_unit_test_setup(
			an_address_that_only_the_node_refuses_is_noted_if_it_is_known,
			harness_reset),
		cmocka_unit_test_setup(beyond_what_is_noted_exactly_the_count_is_an_estimate,
				       harness_reset),
		cmocka_unit_test_setup(the_bytes_of_a_large_frame_are_counted_whole, harness_reset),
	};

	return cmocka_run_group_tests_name("report, xdp.frags", tests, harness_open_frags,
					   harness_close) +
	       cmocka_run_group_tests_name("report, tc", tests, harness_open_tc, harness_close);
}
