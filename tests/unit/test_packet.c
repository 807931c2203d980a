/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bpf/packet.h, compiled for the host: what is read from every frame of tests/vectors/packets.h,
 * and that no frame, cut at whatever byte, is read beyond its end. Frames stand in memory of
 * exactly their size, so that the address sanitizer sees one byte too many.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/vectors/packets.h"

/* Two bytes before the frame, as in the network stack, put the IP header on a multiple of four. */
enum { ALIGN_BYTES = 2 };

/* Read the first linear bytes of a frame that is frame_bytes long. */
static enum parsed parse(const __u8 *frame, __u32 linear, __u32 frame_bytes, struct packet *packet)
{
	__u8 *memory = malloc(ALIGN_BYTES + linear);
	__u8 *copy = memory + ALIGN_BYTES;
	enum parsed parsed;

	assert_non_null(memory);
	memcpy(copy, frame, linear);
	memset(packet, 0, sizeof(*packet));
	parsed = packet_parse(copy, copy + linear, frame_bytes, packet);
	free(memory);
	return parsed;
}

static void format_address(const union address *address, char text[33])
{
	for (int i = 0; i < 16; i++)
		snprintf(text + 2 * i, 3, "%02x", address->byte[i]);
}

static void every_frame_is_read_as_its_row_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(packet_rows); i++) {
		const struct packet_row *row = &packet_rows[i];
		__u8 frame[PACKET_ROW_BYTES_MAX];
		__u32 bytes = packet_row_bytes(row, frame);
		struct packet packet;
		union address key;
		char text[33];

		check_row_equal(row, parse(frame, bytes, bytes, &packet), row->parsed);
		check_row_equal(row, packet.bytes, row->bytes);
		if (row->parsed != PARSED_IP)
			continue;
		check_row_equal(row, packet.protocol, row->protocol);
		check_row_equal(row, packet.flags, row->flags);
		check_row_equal(row, packet.fragment, row->fragment);
		check_row_equal(row, packet.source_port, row->source_port);
		check_row_equal(row, packet.destination_port, row->destination_port);
		check_row_equal(row, packet.ip_offset, bytes - row->bytes);
		key = address_key(&packet.source, 64);
		format_address(&key, text);
		check_row_text(row, text, row->key);
	}
}

static void no_two_rows_have_the_same_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(packet_rows); i++)
		for (size_t other = 0; other < i; other++)
			check_row(&packet_rows[i],
				  strcmp(packet_rows[i].name, packet_rows[other].name) != 0);
}

/* What must hold of any frame, whatever is in it. */
static void check_sane(const struct packet_row *row, enum parsed parsed,
		       const struct packet *packet, __u32 linear, __u32 frame_bytes)
{
	check_row(row, parsed == PARSED_IP || parsed == PARSED_OTHER || parsed == PARSED_NOT);
	check_row(row, packet->at <= linear);
	check_row(row, packet->ip_offset <= packet->at);
	check_row(row, packet->ip_offset + packet->bytes == frame_bytes);
	if (parsed != PARSED_IP)
		return;
	check_row(row, packet->bytes >= 20);
	check_row(row, packet->at + packet->left <= frame_bytes);
	if (packet->flags & PACKET_PORTLESS)
		check_row(row, packet->source_port == 0 && packet->destination_port == 0);
	if (packet->fragment == FRAGMENT_LATER)
		check_row(row, (packet->flags & ~PACKET_NOT_LINEAR) == PACKET_PORTLESS);
	if (linear == frame_bytes)
		check_row(row, !(packet->flags & PACKET_NOT_LINEAR));
}

/* A frame that ends early, as on the wire. */
static void no_frame_is_read_beyond_where_it_was_cut(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(packet_rows); i++) {
		const struct packet_row *row = &packet_rows[i];
		__u8 frame[PACKET_ROW_BYTES_MAX];
		__u32 whole = packet_row_bytes(row, frame);

		for (__u32 bytes = 0; bytes <= whole; bytes++) {
			struct packet packet;
			enum parsed parsed = parse(frame, bytes, bytes, &packet);

			check_sane(row, parsed, &packet, bytes, bytes);
			if (bytes < 14)
				check_row_equal(row, parsed, PARSED_NOT);
		}
	}
}

static void check_hidden(const struct packet_row *row, const struct packet *packet,
			 const struct packet *all)
{
	check_row(row, memcmp(&packet->source, &all->source, 16) == 0);
	if (row->parsed == PARSED_IP && row->flags & PACKET_CONNECTION)
		check_row(row, packet->flags & PACKET_CONNECTION);
	check_row(row, !(packet->flags & PACKET_CONTROL));
}

/*
 * A frame whose end is in another buffer: what can be read is cut, and its length is not. Then all
 * that is read must be what the whole frame says, or nothing; or only the source, and what hides
 * behind it is taken for the dearest that it could be. Nothing gets away for hiding.
 */
static void a_frame_that_is_not_linear_is_read_the_same_or_not_at_all(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(packet_rows); i++) {
		const struct packet_row *row = &packet_rows[i];
		__u8 frame[PACKET_ROW_BYTES_MAX];
		__u32 whole = packet_row_bytes(row, frame);
		struct packet all;
		__u32 ip_bytes;

		parse(frame, whole, whole, &all);
		ip_bytes = frame[all.ip_offset] >> 4 == 4 ? 20 : 40;
		for (__u32 linear = 14; linear < whole; linear++) {
			struct packet packet;
			enum parsed parsed = parse(frame, linear, whole, &packet);

			check_sane(row, parsed, &packet, linear, whole);
			if (row->parsed == PARSED_IP && linear >= all.ip_offset + ip_bytes)
				check_row_equal(row, parsed, PARSED_IP);
			if (parsed != PARSED_IP)
				continue;
			check_row_equal(row, packet.bytes, all.bytes);
			if (packet.flags & PACKET_NOT_LINEAR && packet.flags & PACKET_PORTLESS) {
				check_hidden(row, &packet, &all);
				continue;
			}
			check_row_equal(row, row->parsed, PARSED_IP);
			check_row_equal(row, packet.fragment, all.fragment);
			check_row(row, memcmp(&packet.source, &all.source, 16) == 0);
			if (!(packet.flags & PACKET_PORTLESS))
				check_row_equal(row, packet.destination_port, all.destination_port);
		}
	}
}

/* Cut inside its IP header, or inside a header above it where nothing excuses that, a packet is not
 * half read. */
static void a_header_that_is_cut_is_never_half_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(packet_rows); i++) {
		const struct packet_row *row = &packet_rows[i];
		__u8 frame[PACKET_ROW_BYTES_MAX];
		__u32 whole = packet_row_bytes(row, frame);
		struct packet all;
		enum parsed parsed = parse(frame, whole, whole, &all);

		if (parsed != PARSED_IP || all.fragment != FRAGMENT_NONE || all.left)
			continue;
		/* The length in the IP header now lies, so none of these is to be believed. */
		for (__u32 bytes = 14; bytes < all.at; bytes++) {
			struct packet packet;

			if (all.bytes == whole - all.ip_offset &&
			    parse(frame, bytes, bytes, &packet) == PARSED_IP)
				fail_msg("row \"%s\": read although cut to %u bytes", row->name,
					 bytes);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_frame_is_read_as_its_row_says),
		cmocka_unit_test(no_two_rows_have_the_same_name),
		cmocka_unit_test(no_frame_is_read_beyond_where_it_was_cut),
		cmocka_unit_test(a_frame_that_is_not_linear_is_read_the_same_or_not_at_all),
		cmocka_unit_test(a_header_that_is_cut_is_never_half_read),
	};

	return cmocka_run_group_tests_name("packet", tests, NULL, NULL);
}
