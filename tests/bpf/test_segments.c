/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What TC is told of buffers that stand for many packets, through the program: each row of
 * tests/vectors/segments.h is charged to the packet and to the byte, of the address and of the
 * node, and one that is larger than a burst is refused and spends nothing.
 */
#include "harness.h"

#include <string.h>

#include <linux/bpf.h>

#include "tests/vectors/segments.h"

#define CLIENT "198.51.100.7"

static bool build(const struct harness *harness, const struct segments_row *row,
		  struct frame *frame)
{
	__u8 headers[PACKET_ROW_BYTES_MAX];
	__u32 bytes = segments_row_headers(row, headers);

	/* The largest come through an interface: test_tc.c. */
	if (!harness_can_run(harness, headers, bytes + row->payload_bytes))
		return false;
	frame->bytes = bytes;
	memcpy(frame->byte, headers, bytes);
	frame_payload(frame, row->payload_bytes);
	return true;
}

static struct ran run(struct harness *harness, const struct segments_row *row,
		      const struct frame *frame)
{
	return harness_many(
		harness, frame,
		(struct many){ .payload_each = row->payload_each, .segments = row->segments });
}

/* The frame three times, of which the burst has room for `admitted`. */
static void check_charge(struct harness *harness, const struct segments_row *row,
			 const struct frame *frame, enum reason refused, int admitted)
{
	for (int packet = 0; packet < 3; packet++) {
		struct ran ran = run(harness, row, frame);

		check_row_equal(row, ran.packets, row->packets);
		check_row_equal(row, ran.bytes, row->bytes);
		check_row_equal(row, ran.reason, packet < admitted ? REASON_ADMITTED : refused);
		check_row_equal(row, ran.action, packet < admitted ? XDP_PASS : XDP_DROP);
	}
}

static void a_buffer_is_charged_for_all_its_packets(void **state)
{
	static struct frame frame;
	struct harness *harness = *state;
	size_t run_rows = 0;

	for (size_t i = 0; i < COUNT_OF(segments_rows); i++) {
		const struct segments_row *row = &segments_rows[i];

		if (!build(harness, row, &frame))
			continue;
		run_rows++;
		for (int meter = METER_PACKETS; meter <= METER_BYTES; meter++) {
			uint64_t each = meter == METER_PACKETS ? row->packets : row->bytes;

			for (int spare = 0; spare <= 1; spare++) {
				struct settings settings = harness_settings();

				harness_reset(state);
				settings.ip[meter] = RATE_LIMIT(1000, 3 * each - 1 + spare);
				harness_apply(harness, &settings);
				check_charge(harness, row, &frame, REASON_IP_CONNECTIONS + meter,
					     2 + spare);
			}
		}
	}
	assert_true(run_rows > COUNT_OF(segments_rows) / 2);
}

/* clang-format off */
static const struct large_row {
	const char *name;
	bool node;
	enum meter meter;
	struct rate_limit limit;
	enum reason refused;
	int single; /* packets of 1040 bytes that are admitted afterwards */
} large_rows[] = {
	{ "packets of an address", false, METER_PACKETS, { 0.001, 4 }, REASON_IP_PACKETS, 4 },
	{ "bytes of an address", false, METER_BYTES, { 1, 4400 }, REASON_IP_BYTES, 4 },
	{ "packets of the node", true, METER_PACKETS, { 0.001, 4 }, REASON_NODE_PACKETS, 4 },
	{ "bytes of the node", true, METER_BYTES, { 1, 4400 }, REASON_NODE_BYTES, 4 },
};
/* clang-format on */

/* Both buffers are 3340 bytes long; in the rows of bytes, the headers of 33 packets make them 4620.
 */
static void a_buffer_larger_than_a_burst_is_refused_and_spends_nothing(void **state)
{
	static struct frame large, single;
	struct harness *harness = *state;

	frame_of_tcp(&large, CLIENT, 443, TCP_ACK, 40 + 5 * 660);
	frame_of_tcp(&single, CLIENT, 443, TCP_ACK, 1040);
	for (size_t i = 0; i < COUNT_OF(large_rows); i++) {
		const struct large_row *row = &large_rows[i];
		struct settings settings = harness_settings();
		struct many five = { .payload_each = 660, .segments = 5 };

		harness_reset(state);
		(row->node ? settings.node : settings.ip)[row->meter] = row->limit;
		if (row->meter == METER_BYTES)
			five = (struct many){ .payload_each = 100, .segments = 33 };
		harness_apply(harness, &settings);
		for (int packet = 0; packet < 3; packet++) {
			struct ran ran = harness_many(harness, &large, five);

			check_row_equal(row, ran.reason, row->refused);
			check_row_equal(row, ran.action, XDP_DROP);
		}
		for (int packet = 0; packet < row->single; packet++)
			check_row_equal(row, harness_frame(harness, &single).reason,
					REASON_ADMITTED);
		check_row_equal(row, harness_frame(harness, &single).reason, row->refused);
	}
}

/* The other meter of the scope had room. */
static void a_buffer_that_one_meter_refuses_leaves_the_others_alone(void **state)
{
	static struct frame large;
	struct harness *harness = *state;
	struct settings settings = harness_settings();
	static const struct bucket_set untouched;
	static const struct node_buckets unspent;

	settings.ip[METER_PACKETS] = RATE_LIMIT(0.001, 4);
	settings.ip[METER_BYTES] = RATE_LIMIT(1000, 1000000);
	settings.node[METER_PACKETS] = RATE_LIMIT(1000, 1000000);
	settings.node[METER_BYTES] = RATE_LIMIT(1000, 1000000);
	harness_apply(harness, &settings);
	frame_of_tcp(&large, CLIENT, 443, TCP_ACK, 40 + 5 * 600);
	assert_int_equal(
		harness_many(harness, &large, (struct many){ .payload_each = 600, .segments = 5 })
			.reason,
		REASON_IP_PACKETS);
	assert_memory_equal(harness_set(harness, CLIENT), &untouched, sizeof(untouched));
	assert_memory_equal(harness->node, &unspent, sizeof(unspent));
	assert_int_equal(harness_note(harness, NOTE_SPENT_IN_VAIN), 0);
}

/* A connection is one, however much comes with its SYN. */
static void a_buffer_that_opens_a_connection_opens_one(void **state)
{
	static struct frame frame;
	struct harness *harness = *state;
	struct settings settings = harness_settings();
	struct many three = { .payload_each = 1000, .segments = 3 };

	settings.ip[METER_CONNECTIONS] = RATE_LIMIT(0.001, 2);
	harness_apply(harness, &settings);
	frame_of_tcp(&frame, CLIENT, 443, TCP_SYN, 3040);
	assert_int_equal(harness_many(harness, &frame, three).reason, REASON_ADMITTED);
	assert_int_equal(harness_many(harness, &frame, three).reason, REASON_ADMITTED);
	assert_int_equal(harness_many(harness, &frame, three).reason, REASON_IP_CONNECTIONS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_buffer_is_charged_for_all_its_packets, harness_reset),
		cmocka_unit_test_setup(a_buffer_larger_than_a_burst_is_refused_and_spends_nothing,
				       harness_reset),
		cmocka_unit_test_setup(a_buffer_that_one_meter_refuses_leaves_the_others_alone,
				       harness_reset),
		cmocka_unit_test_setup(a_buffer_that_opens_a_connection_opens_one, harness_reset),
	};

	return cmocka_run_group_tests_name("segments, tc", tests, harness_open_tc, harness_close);
}
