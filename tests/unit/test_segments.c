/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bpf/segments.h, compiled for the host: what a buffer is charged that stands for many packets, for
 * each row of tests/vectors/segments.h; and that no sizes, however odd, make a charge wrap around
 * to a small one.
 */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "bpf/segments.h"
#include "tests/vectors/segments.h"

/* Only the headers can be read, as where a driver leaves all else in fragments. */
static void a_buffer_is_charged_what_its_packets_were_on_the_wire(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(segments_rows); i++) {
		const struct segments_row *row = &segments_rows[i];
		/* The IP header lies at a multiple of four, as the kernel has it. */
		__u32 room[PACKET_ROW_BYTES_MAX / 4 + 1];
		__u8 *headers = (__u8 *)room + 2;
		__u32 bytes = segments_row_headers(row, headers);
		struct packet packet = { .segments = 1 };

		check_row_equal(
			row,
			packet_parse(headers, headers + bytes, bytes + row->payload_bytes, &packet),
			PARSED_IP);
		check_row_equal(row, packet.flags & PACKET_PORTLESS, 0);
		segments_count(&packet, row->payload_each, row->segments);
		check_row_equal(row, packet.segments, row->packets);
		check_row_equal(row, packet.bytes, row->bytes);
	}
}

static void a_charge_that_is_too_large_to_be_told_is_the_largest(void **state)
{
	struct packet packet = { .segments = 1, .bytes = 500000, .header_bytes = 16400 };

	(void)state;
	segments_count(&packet, 1, 0);
	assert_int_equal(packet.segments, 500000 - 16400);
	assert_int_equal(packet.bytes, 0xffffffff);
}

/* What a packet of this size costs never grows less for being made of more. */
static void more_packets_never_cost_less(void **state)
{
	(void)state;
	for (__u32 headers = 20; headers <= 16400; headers += 910) {
		__u64 last_bytes = 0;

		for (__u32 segments = 0; segments <= 0xffff; segments += 85) {
			struct packet packet = { .segments = 1, .bytes = 500000 };

			packet.header_bytes = (__u16)headers;
			segments_count(&packet, 0xffff, segments ? segments : 1);
			assert_true(packet.bytes >= last_bytes);
			assert_true(packet.bytes >= 500000);
			last_bytes = packet.bytes;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_buffer_is_charged_what_its_packets_were_on_the_wire),
		cmocka_unit_test(a_charge_that_is_too_large_to_be_told_is_the_largest),
		cmocka_unit_test(more_packets_never_cost_less),
	};

	return cmocka_run_group_tests_name("segments", tests, NULL, NULL);
}
