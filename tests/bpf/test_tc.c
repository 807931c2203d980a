/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The program for TC where it stands, at the ingress of an interface: frames as drivers hand them
 * over, cut wherever it may be, their headers in other buffers, longer than a page, or standing for
 * many. What BPF_PROG_TEST_RUN can make of all that is in the other tests.
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#include <linux/bpf.h>

#include "packets.h"
#include "tap.h"
#include "tests/vectors/packets.h"
#include "tests/vectors/segments.h"

#define CLIENT "198.51.100.7"
#define CLIENT_V6 "2001:db8:1:2:3:4:5:6"

enum {
	IFINDEX = 3 * INTERFACE_COUNTERS + 7, /* whose counters stand at 7 */
	PAGE_BYTES = 4096,
	ETHERNET_BYTES = 14,
	TAG_BYTES = 4,
};

static struct tap tap;

static int open_tap(void **state)
{
	int err = harness_open_tc(state);

	if (!err && tap_is_known())
		tap_open(&tap, *state, IFINDEX);
	return err;
}

static int close_tap(void **state)
{
	if (tap.probe)
		tap_close(&tap);
	return harness_close(state);
}

static struct ran send(struct harness *harness, const struct frame *frame, uint32_t linear_bytes)
{
	struct tap_frame as_sent = {
		.byte = frame->byte,
		.bytes = frame->bytes,
		.linear_bytes = linear_bytes,
	};

	return tap_send(&tap, harness, &as_sent);
}

/* ---- whole and cut */

static bool has_tag(const uint8_t *frame)
{
	return (frame[12] == 0x81 && frame[13] == 0x00) || (frame[12] == 0x88 && frame[13] == 0xa8);
}

/* The kernel takes the outermost tag off before TC sees the frame, and drops one cut within it. */
static bool take_tag_off(uint8_t *frame, uint32_t *bytes)
{
	if (!has_tag(frame))
		return true;
	if (*bytes < ETHERNET_BYTES + TAG_BYTES + 2)
		return false;
	memmove(frame + 12, frame + 12 + TAG_BYTES, *bytes - 12 - TAG_BYTES);
	*bytes -= TAG_BYTES;
	return true;
}

/* By a configuration that protects everything and limits nothing. */
static enum reason reason_of(enum parsed parsed, const struct packet *packet)
{
	if (parsed == PARSED_OTHER)
		return REASON_NOT_IP;
	if (parsed == PARSED_NOT)
		return REASON_UNPARSED;
	return packet->flags & PACKET_CONTROL ? REASON_CONTROL : REASON_ADMITTED;
}

static void check_cut(struct harness *harness, const struct packet_row *row, const uint8_t *frame,
		      uint32_t bytes)
{
	struct tap_frame as_sent = { .byte = frame, .bytes = bytes };
	uint8_t memory[2 + PACKET_ROW_BYTES_MAX] __attribute__((aligned(8)));
	uint8_t *seen = memory + 2;
	struct packet packet = {};
	enum parsed parsed;
	struct ran ran;

	memcpy(seen, frame, bytes);
	if (!take_tag_off(seen, &bytes))
		return;
	parsed = packet_parse(seen, seen + bytes, bytes, &packet);
	ran = tap_send(&tap, harness, &as_sent);
	check_row_equal(row, ran.reason, reason_of(parsed, &packet));
	check_row_equal(row, ran.bytes, packet.bytes);
	check_row_equal(row, ran.packets, 1);
}

static void every_frame_cut_anywhere_is_read_as_on_the_host(void **state)
{
	struct harness *harness = *state;
	struct settings settings = harness_settings();

	need_tap();
	harness_apply(harness, &settings);
	for (size_t i = 0; i < COUNT_OF(packet_rows); i++) {
		const struct packet_row *row = &packet_rows[i];
		uint8_t frame[PACKET_ROW_BYTES_MAX];
		uint32_t whole = packet_row_bytes(row, frame);

		for (uint32_t bytes = ETHERNET_BYTES; bytes <= whole; bytes++)
			check_cut(harness, row, frame, bytes);
	}
}

/* ---- headers in other buffers */

static void limit_connections(struct harness *harness)
{
	struct settings settings = harness_settings();

	settings.protect.all = false;
	settings.protect.tcp[443 / 64] = settings.protect.udp[443 / 64] = 1ULL << (443 % 64);
	settings.ip[METER_CONNECTIONS] = RATE_LIMIT(0.001, 1);
	harness_apply(harness, &settings);
}

/* clang-format off */
static const struct split_row {
	const char *name;
	bool is_v6;
	uint8_t protocol;
	uint8_t extensions;      /* destination options before it */
	uint8_t extension_words; /* beyond the first eight bytes of each */
	uint16_t port;
	enum reason first;       /* of a burst of one connection */
	enum reason second;
} split_rows[] = {
	{ "TCP", false, 6, 0, 0, 443, REASON_ADMITTED, REASON_IP_CONNECTIONS },
	{ "TCP to a port that is not protected", false, 6, 0, 0, 80, REASON_UNPROTECTED,
	  REASON_UNPROTECTED },
	{ "TCP over IPv6", true, 6, 0, 0, 443, REASON_ADMITTED, REASON_IP_CONNECTIONS },
	{ "QUIC", false, 17, 0, 0, 443, REASON_ADMITTED, REASON_IP_CONNECTIONS },
	{ "QUIC over IPv6", true, 17, 0, 0, 443, REASON_ADMITTED, REASON_IP_CONNECTIONS },
	{ "TCP behind options", true, 6, 2, 20, 443, REASON_ADMITTED, REASON_IP_CONNECTIONS },
	{ "TCP behind options, not protected", true, 6, 2, 20, 80, REASON_UNPROTECTED,
	  REASON_UNPROTECTED },
	{ "TCP behind options of more than a page", true, 6, 3, 255, 443, REASON_ADMITTED,
	  REASON_IP_CONNECTIONS },
	{ "TCP behind options of more than a page, not protected", true, 6, 3, 255, 80,
	  REASON_UNPROTECTED, REASON_UNPROTECTED },
	/* More than is ever pulled: it may hide any port, and anything may open a connection. */
	{ "TCP behind as many options as are walked", true, 6, 8, 255, 443, REASON_ADMITTED,
	  REASON_IP_CONNECTIONS },
};
/* clang-format on */

static void build_split(struct frame *frame, const struct split_row *row)
{
	struct ip_fields ip = { .hop_limit = 64 };

	ip.source = address_of(row->is_v6 ? CLIENT_V6 : CLIENT);
	ip.destination = address_of(row->is_v6 ? "2001:db8::9" : "203.0.113.9");
	frame_begin(frame);
	frame_ip(frame, &ip);
	for (int header = 0; header < row->extensions; header++)
		frame_extension(frame, 60, row->extension_words);
	if (row->protocol == 6)
		frame_tcp(frame, SOURCE_PORT, row->port, TCP_SYN);
	else
		frame_udp(frame, SOURCE_PORT, row->port);
	frame_payload(frame, 2 * PAGE_BYTES);
	if (row->protocol == 17)
		frame->byte[frame->udp_at + 8] = 0xc3, frame->byte[frame->udp_at + 12] = 1;
	frame_end(frame);
}

static void headers_in_other_buffers_are_read_all_the_same(void **state)
{
	static const uint32_t linear[] = {
		0, 14, 15, 20, 33, 34, 42, 47, 53, 54, 60, 70, 100, 300
	};
	static struct frame frame;
	struct harness *harness = *state;

	need_tap();
	for (size_t i = 0; i < COUNT_OF(split_rows); i++) {
		const struct split_row *row = &split_rows[i];

		build_split(&frame, row);
		for (size_t at = 0; at < COUNT_OF(linear); at++) {
			harness_reset(state);
			limit_connections(harness);
			check_row_equal(row, send(harness, &frame, linear[at]).reason, row->first);
			check_row_equal(row, send(harness, &frame, linear[at]).reason, row->second);
		}
	}
}

/* ---- longer than a page, and standing for many */

static void the_bytes_of_a_large_frame_are_counted_whole(void **state)
{
	static const uint32_t sizes[] = { 4000, 9000, 60000, 65535 };
	static struct frame frame;
	struct harness *harness = *state;

	need_tap();
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		struct settings settings = harness_settings();
		struct event event;

		harness_reset(state);
		settings.ip[METER_BYTES] = RATE_LIMIT(1000, 2 * sizes[i] - 1);
		harness_apply(harness, &settings);
		frame_of_tcp(&frame, CLIENT, 443, TCP_ACK, sizes[i]);
		assert_int_equal(send(harness, &frame, 54).reason, REASON_ADMITTED);
		assert_int_equal(send(harness, &frame, 54).reason, REASON_IP_BYTES);
		assert_int_equal(harness_events(harness, &event, 1), 1);
		assert_int_equal(event.bytes, sizes[i]);
		assert_int_equal(event.ifindex, IFINDEX);
	}
}

/* Of what a guest sends nobody has counted the segments. */
static void what_nobody_has_counted_is_counted(void **state)
{
	static struct frame frame;
	struct harness *harness = *state;
	struct settings settings = harness_settings();
	struct tap_frame as_sent = { .byte = frame.byte, .payload_each = 1000 };
	struct ran ran;

	need_tap();
	settings.ip[METER_PACKETS] = RATE_LIMIT(0.001, 99);
	harness_apply(harness, &settings);
	for (int is_v6 = 0; is_v6 <= 1; is_v6++) {
		uint32_t headers = is_v6 ? 60 : 40;

		frame_of_tcp(&frame, is_v6 ? CLIENT_V6 : CLIENT, 443, TCP_ACK, headers + 49001);
		as_sent.bytes = frame.bytes;
		as_sent.is_v6 = is_v6;
		ran = tap_send(&tap, harness, &as_sent);
		assert_int_equal(ran.reason, REASON_ADMITTED);
		assert_int_equal(ran.packets, 50);
		assert_int_equal(ran.bytes, 49001 + 50 * headers);
		ran = tap_send(&tap, harness, &as_sent);
		assert_int_equal(ran.reason, REASON_IP_PACKETS);
		assert_int_equal(ran.packets, 50);
	}
}

static void more_than_65535_bytes_are_counted_whole(void **state)
{
	struct harness *harness = *state;
	struct settings settings = harness_settings();
	size_t sent = 0;

	need_tap();
	harness_apply(harness, &settings);
	for (size_t i = 0; i < COUNT_OF(segments_rows); i++) {
		const struct segments_row *row = &segments_rows[i];
		struct tap_frame as_sent = { .payload_each = (uint16_t)row->payload_each };
		uint8_t *frame;
		struct ran ran;

		if (row->payload_bytes <= 65535)
			continue;
		frame = calloc(1, PACKET_ROW_BYTES_MAX + row->payload_bytes);
		assert_non_null(frame);
		as_sent.byte = frame;
		as_sent.bytes = segments_row_headers(row, frame) + row->payload_bytes;
		as_sent.is_v6 = frame[12] == 0x86;
		ran = tap_send(&tap, harness, &as_sent);
		check_row_equal(row, ran.reason, REASON_ADMITTED);
		check_row_equal(row, ran.packets, row->packets);
		check_row_equal(row, ran.bytes, row->bytes);
		free(frame);
		sent++;
	}
	assert_true(sent > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(every_frame_cut_anywhere_is_read_as_on_the_host,
				       harness_reset),
		cmocka_unit_test_setup(headers_in_other_buffers_are_read_all_the_same,
				       harness_reset),
		cmocka_unit_test_setup(the_bytes_of_a_large_frame_are_counted_whole, harness_reset),
		cmocka_unit_test_setup(what_nobody_has_counted_is_counted, harness_reset),
		cmocka_unit_test_setup(more_than_65535_bytes_are_counted_whole, harness_reset),
	};

	return cmocka_run_group_tests_name("tc", tests, open_tap, close_tap);
}
