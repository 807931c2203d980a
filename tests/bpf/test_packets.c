/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The frames of tests/vectors/packets.h through each of the programs: the verdict of each, what an
 * event says of it, and that the program in the kernel reads a cut frame as the same code does on
 * the host. Then frames stacked at random, of which the builder knows what it has put in.
 *
 * BPF_PROG_TEST_RUN gives the program for TC no frame that is cut in its IP header; those come
 * through an interface in test_tc.c.
 */
#include "harness.h"

#include <string.h>

#include <linux/bpf.h>

#include "packets.h"
#include "tests/vectors/packets.h"

static void protect_port(struct settings *settings, uint16_t port)
{
	settings->protect.tcp[port / 64] |= 1ULL << (port % 64);
	settings->protect.udp[port / 64] |= 1ULL << (port % 64);
}

/* Port 443 and ICMP are protected, and nothing is limited. */
static void protect_some(struct harness *harness)
{
	struct settings settings = harness_settings();

	settings.protect.all = false;
	settings.protect.icmp = true;
	protect_port(&settings, 443);
	harness_apply(harness, &settings);
}

static bool has_protected_port(uint8_t flags, uint16_t port)
{
	return flags & PACKET_PORTLESS || port == 443;
}

/* By protect_some(), for a packet that could be read. */
static bool is_protected_here(uint8_t protocol, uint8_t flags, uint16_t port)
{
	static const uint8_t extensions[] = { 0, 43, 44, 51, 60, 135, 139, 140 };

	if (protocol == 6 || protocol == 17)
		return has_protected_port(flags, port);
	return protocol == 1 || protocol == 58 ||
	       memchr(extensions, protocol, sizeof(extensions)) != NULL;
}

static enum reason expected_reason(enum parsed parsed, uint8_t protocol, uint8_t flags,
				   uint16_t port)
{
	if (parsed == PARSED_OTHER)
		return REASON_NOT_IP;
	if (parsed == PARSED_NOT)
		return REASON_UNPARSED;
	if (flags & PACKET_CONTROL)
		return REASON_CONTROL;
	return is_protected_here(protocol, flags, port) ? REASON_ADMITTED : REASON_UNPROTECTED;
}

static void every_frame_passes_for_the_reason_its_row_asks_for(void **state)
{
	struct harness *harness = *state;

	protect_some(harness);
	for (size_t i = 0; i < COUNT_OF(packet_rows); i++) {
		const struct packet_row *row = &packet_rows[i];
		uint8_t frame[PACKET_ROW_BYTES_MAX];
		uint32_t bytes = packet_row_bytes(row, frame);
		struct ran ran;

		if (!harness_can_run(harness, frame, bytes))
			continue;
		ran = harness_run(harness, frame, bytes);
		check_row_equal(row, ran.reason,
				expected_reason(row->parsed, row->protocol, row->flags,
						row->destination_port));
		check_row_equal(row, ran.bytes, row->bytes);
		check_row_equal(row, ran.action, XDP_PASS);
	}
}

static void deny_everybody(struct harness *harness)
{
	struct setting_prefix everybody = { .action = PREFIX_DENY };
	struct settings settings = harness_settings();

	settings.prefixes = &everybody;
	settings.prefix_count = 1;
	harness_apply(harness, &settings);
}

static union address key_of(const struct packet_row *row)
{
	struct packet_row as_frame = { .frame = row->key };
	uint8_t bytes[PACKET_ROW_BYTES_MAX];
	union address key;

	assert_int_equal(packet_row_bytes(&as_frame, bytes), sizeof(key));
	memcpy(&key, bytes, sizeof(key));
	return key;
}

static void check_event(const struct packet_row *row, const struct event *event,
			const uint8_t *frame, uint32_t frame_bytes)
{
	uint32_t at = frame_bytes - row->bytes;
	bool is_v4 = frame[at] >> 4 == 4;
	union address key = address_key(&event->source, 64), wanted = key_of(row);

	check_row_equal(row, event->bytes, row->bytes);
	check_row_equal(row, event->protocol, row->protocol);
	check_row_equal(row, event->source_port, row->source_port);
	check_row_equal(row, event->destination_port, row->destination_port);
	check_row(row, memcmp(&key, &wanted, sizeof(key)) == 0);
	if (is_v4)
		check_row(row,
			  memcmp(event->source.byte + 12, frame + at + 12, 4) == 0 &&
				  memcmp(event->destination.byte + 12, frame + at + 16, 4) == 0);
	else
		check_row(row, memcmp(event->source.byte, frame + at + 8, 16) == 0 &&
				       memcmp(event->destination.byte, frame + at + 24, 16) == 0);
	check_row(row, event->header_bytes <= row->bytes);
	check_row(row, event->header_bytes > (int)row->bytes - 4 ||
			       event->header_bytes == EVENT_HEADER_BYTES);
	check_row(row, memcmp(event->header, frame + at, event->header_bytes) == 0);
}

/* Refused for its prefix, a packet is described by an event and noted under its key. */
static void what_the_programs_read_of_a_frame_is_what_its_row_says(void **state)
{
	struct harness *harness = *state;

	deny_everybody(harness);
	for (size_t i = 0; i < COUNT_OF(packet_rows); i++) {
		const struct packet_row *row = &packet_rows[i];
		bool is_refused = row->parsed == PARSED_IP && !(row->flags & PACKET_CONTROL);
		uint8_t frame[PACKET_ROW_BYTES_MAX];
		uint32_t bytes = packet_row_bytes(row, frame);
		struct offender offender;
		struct event event;
		struct ran ran;
		union address key;

		if (!harness_can_run(harness, frame, bytes))
			continue;
		harness_clock(harness, harness_now(harness) + 2 * SECOND_NS, 0);
		ran = harness_run(harness, frame, bytes);
		check_row_equal(row, ran.action, is_refused ? XDP_DROP : XDP_PASS);
		check_row_equal(row, harness_events(harness, &event, 1), is_refused);
		if (!is_refused)
			continue;
		check_row_equal(row, ran.reason, REASON_DENY);
		check_event(row, &event, frame, bytes);
		key = key_of(row);
		check_row(row, harness_offender(harness, &key, &offender));
		check_row_equal(row, offender.last_seen_ns, harness_now(harness));
	}
}

static void only_what_opens_a_connection_is_charged_as_one(void **state)
{
	struct harness *harness = *state;
	struct settings settings = harness_settings();

	settings.ip[METER_CONNECTIONS] = (struct rate_limit){ .rate = 0.001, .burst = 1 };
	for (size_t i = 0; i < COUNT_OF(packet_rows); i++) {
		const struct packet_row *row = &packet_rows[i];
		uint8_t frame[PACKET_ROW_BYTES_MAX];
		uint32_t bytes = packet_row_bytes(row, frame);
		struct ran first, second;

		if (!harness_can_run(harness, frame, bytes))
			continue;
		harness_reset(state);
		harness_apply(harness, &settings);
		first = harness_run(harness, frame, bytes);
		second = harness_run(harness, frame, bytes);
		check_row_equal(row, first.action, XDP_PASS);
		check_row_equal(row, second.action,
				row->flags & PACKET_CONNECTION ? XDP_DROP : XDP_PASS);
		check_row_equal(row, second.reason,
				row->flags & PACKET_CONNECTION ? REASON_IP_CONNECTIONS
							       : first.reason);
	}
}

/* The kernel runs no frame without a whole Ethernet header. */
enum { RUN_BYTES_MIN = 14, HOST_ALIGN_BYTES = 2 };

static void a_cut_frame_is_read_in_the_kernel_as_on_the_host(void **state)
{
	struct harness *harness = *state;

	protect_some(harness);
	for (size_t i = 0; i < COUNT_OF(packet_rows); i++) {
		const struct packet_row *row = &packet_rows[i];
		uint8_t memory[HOST_ALIGN_BYTES + PACKET_ROW_BYTES_MAX] __attribute__((aligned(8)));
		uint8_t *frame = memory + HOST_ALIGN_BYTES;
		uint32_t whole = packet_row_bytes(row, frame);

		for (uint32_t bytes = RUN_BYTES_MIN; bytes < whole; bytes++) {
			struct packet packet = {};
			enum parsed parsed = packet_parse(frame, frame + bytes, bytes, &packet);
			struct ran ran;

			if (!harness_can_run(harness, frame, bytes))
				continue;
			ran = harness_run(harness, frame, bytes);
			check_row_equal(row, ran.reason,
					expected_reason(parsed, packet.protocol, packet.flags,
							packet.destination_port));
			check_row_equal(row, ran.bytes, packet.bytes);
		}
	}
}

/* What stack_frame() has put into a frame. */
struct stacked {
	uint32_t bytes;
	uint8_t protocol;
	uint16_t destination_port;
	union address source;
};

static uint64_t random_state;

/* splitmix64: the same draws in every run. */
static uint64_t draw(uint64_t below)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (z ^ (z >> 31)) % below;
}

static void stack_extensions(struct frame *frame)
{
	static const uint8_t protocols[] = { 0, 43, 51, 60, 135, 139, 140 };
	uint64_t count = draw(9);

	for (uint64_t i = 0; i < count; i++) {
		if (draw(8) == 0)
			frame_fragment(frame, 0, draw(2));
		else
			frame_extension(frame, protocols[draw(sizeof(protocols))],
					(uint8_t)(draw(16) ? draw(4) : draw(256)));
	}
}

static void stack_ip(struct frame *frame, struct stacked *stacked)
{
	struct ip_fields ip = { .hop_limit = (uint8_t)(1 + draw(254)) };
	bool is_v6 = draw(2);

	for (int i = 0; i < 16; i++)
		ip.source.byte[i] = (uint8_t)draw(256);
	ip.source.byte[0] = 0x20;
	if (!is_v6) {
		memset(ip.source.byte, 0, 10);
		ip.source.byte[10] = ip.source.byte[11] = 0xff;
	}
	ip.destination = ip.source;
	ip.option_words = (uint8_t)draw(11);
	ip.fragment = (uint16_t)(draw(2) << 13);
	stacked->source = ip.source;
	frame_ip(frame, &ip);
	if (is_v6)
		stack_extensions(frame);
}

static void stack_frame(struct frame *frame, struct stacked *stacked)
{
	uint64_t tags = draw(5);

	frame_begin(frame);
	for (uint64_t i = 0; i < tags; i++)
		frame_vlan(frame, draw(2) ? 0x8100 : 0x88a8, (uint16_t)draw(65536));
	stack_ip(frame, stacked);
	stacked->destination_port = 0;
	switch (draw(3)) {
	case 0:
		stacked->protocol = 6;
		stacked->destination_port = (uint16_t)(1000 + draw(60000));
		frame_tcp(frame, SOURCE_PORT, stacked->destination_port, (uint8_t)draw(256));
		break;
	case 1:
		stacked->protocol = 17;
		stacked->destination_port = (uint16_t)(1000 + draw(60000));
		frame_udp(frame, SOURCE_PORT, stacked->destination_port);
		break;
	default:
		stacked->protocol = frame->is_v6 ? 58 : 1;
		frame_icmp(frame, (uint8_t)draw(256));
		break;
	}
	frame_payload(frame, (uint32_t)draw(100));
	frame_end(frame);
	stacked->bytes = frame->bytes - frame->ip_at;
}

/* Frames longer than this are not given to the program that sees only their linear part. */
enum { STACKS = 20000, LINEAR_BYTES_MAX = 2500 };

static void whatever_is_stacked_is_found_again(void **state)
{
	static struct frame frame;
	struct harness *harness = *state;

	random_state = 1;
	deny_everybody(harness);
	for (int i = 0; i < STACKS; i++) {
		struct stacked stacked;
		struct event event;
		struct ran ran;

		stack_frame(&frame, &stacked);
		if (frame.bytes > LINEAR_BYTES_MAX)
			continue;
		harness_clock(harness, harness_now(harness) + 2 * SECOND_NS, 0);
		ran = harness_frame(harness, &frame);
		assert_int_equal(ran.reason, REASON_DENY);
		assert_int_equal(harness_events(harness, &event, 1), 1);
		if (event.bytes != stacked.bytes || event.protocol != stacked.protocol ||
		    event.destination_port != stacked.destination_port ||
		    memcmp(&event.source, &stacked.source, sizeof(event.source)) != 0)
			fail_msg("stack %d: read as protocol %u to port %u, is %u to port %u", i,
				 event.protocol, event.destination_port, stacked.protocol,
				 stacked.destination_port);
	}
}

/* ---- frames in several buffers, of which the program sees the first */

/* So many bytes of options that the TCP header lies in the second buffer. */
static void build_deep(struct frame *frame, uint8_t headers)
{
	struct ip_fields ip = { .source = address_of("2001:db8::1"), .hop_limit = 64 };

	ip.destination = address_of("2001:db8::9");
	frame_begin(frame);
	frame_ip(frame, &ip);
	for (int header = 0; header < headers; header++)
		frame_extension(frame, 60, 255);
	frame_tcp(frame, SOURCE_PORT, 443, TCP_SYN);
	frame_payload(frame, 100);
	frame_end(frame);
}

/* Nor can one get around a limit on connections by more headers than are walked. */
static void what_lies_beyond_the_first_buffer_is_charged_as_if_it_opened_a_connection(void **state)
{
	static struct frame frame;
	struct harness *harness = *state;
	struct settings settings = harness_settings();

	settings.protect.all = false;
	protect_port(&settings, 443);
	settings.ip[METER_CONNECTIONS] = RATE_LIMIT(0.001, 1);
	for (uint8_t headers = 0; headers <= 9; headers++) {
		harness_reset(state);
		harness_apply(harness, &settings);
		build_deep(&frame, headers);
		assert_int_equal(harness_frame(harness, &frame).reason, REASON_ADMITTED);
		assert_int_equal(harness_frame(harness, &frame).reason, REASON_IP_CONNECTIONS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(every_frame_passes_for_the_reason_its_row_asks_for,
				       harness_reset),
		cmocka_unit_test_setup(what_the_programs_read_of_a_frame_is_what_its_row_says,
				       harness_reset),
		cmocka_unit_test_setup(only_what_opens_a_connection_is_charged_as_one,
				       harness_reset),
		cmocka_unit_test_setup(a_cut_frame_is_read_in_the_kernel_as_on_the_host,
				       harness_reset),
		cmocka_unit_test_setup(whatever_is_stacked_is_found_again, harness_reset),
	};
	const struct CMUnitTest frags[] = {
		cmocka_unit_test_setup(
			what_lies_beyond_the_first_buffer_is_charged_as_if_it_opened_a_connection,
			harness_reset),
	};

	return cmocka_run_group_tests_name("packets, xdp", tests, harness_open_xdp, harness_close) +
	       cmocka_run_group_tests_name("packets, xdp.frags", tests, harness_open_frags,
					   harness_close) +
	       cmocka_run_group_tests_name("packets in several buffers", frags, harness_open_frags,
					   harness_close) +
	       cmocka_run_group_tests_name("packets, tc", tests, harness_open_tc, harness_close);
}
