/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bpf/packet.h and bpf/segments.h on any bytes at all, beside a second reader that was written from
 * the RFCs and shares no code with them: it walks the bytes by index and asks of each whether it
 * may be read. Both must come to the same packet and the same charge. The frame stands in memory of
 * exactly the size that may be read, so that the address sanitizer sees one byte too many.
 *
 * An input is how much more than what follows the frame has (three bytes, and the lowest comes
 * first, as in the others), the size and the number of its segments (two bytes each), and its
 * linear part.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/segments.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- the second reader */

struct reader {
	const uint8_t *frame;
	uint32_t linear;      /* bytes of the frame that can be read */
	uint32_t frame_bytes; /* that it has */
	uint32_t end;         /* where it ends according to its headers */
	bool hides;           /* something is there that cannot be read */
};

/* What it has found. */
struct reading {
	enum { READ_IP, READ_OTHER, READ_NOT } what;
	uint32_t ip_at;
	uint8_t source[16];
	uint8_t destination[16];
	uint8_t protocol;
	uint8_t hop_limit;
	bool first_fragment;
	bool later_fragment;
	bool portless;
	bool connection;
	bool control;
	bool jumbo;
	uint32_t header_bytes;
	uint16_t source_port;
	uint16_t destination_port;
};

static bool has(struct reader *reader, uint32_t at, uint32_t bytes)
{
	if (at + bytes > reader->end)
		return false;
	reader->hides |= at + bytes > reader->linear;
	return at + bytes <= reader->linear;
}

/* A header is missing. Whether it is there all the same, where we cannot read; then anything may be
 * behind it. */
static bool hides(const struct reader *reader, struct reading *reading)
{
	if (!reader->hides)
		return false;
	reading->portless = true;
	reading->connection = !reading->later_fragment;
	return true;
}

static uint16_t pair(const struct reader *reader, uint32_t at)
{
	return (uint16_t)(reader->frame[at] * 256 + reader->frame[at + 1]);
}

/* IEEE 802.3, 802.1Q and 802.1ad: the place behind the header and up to four tags; the type, or
 * READ_NOT. */
static bool read_ethernet(struct reader *reader, uint32_t *at, uint16_t *type)
{
	int tags = 0;

	*at = 0;
	if (!has(reader, 0, 14))
		return false;
	*at = 14;
	*type = pair(reader, 12);
	while (tags++ < 4 && (*type == 0x8100 || *type == 0x88a8)) {
		if (!has(reader, *at, 4))
			return false;
		*type = pair(reader, *at + 2);
		*at += 4;
	}
	/* Type 0 is no type, nor a length that a frame can have. */
	return *type != 0;
}

/* RFC 791. The place behind the options, or 0. */
static uint32_t read_ipv4(struct reader *reader, struct reading *reading)
{
	uint32_t at = reading->ip_at, header, total, flags;

	if (!has(reader, at, 20) || reader->frame[at] >> 4 != 4)
		return 0;
	header = (reader->frame[at] % 16) * 4u;
	total = pair(reader, at + 2);
	if (!total && reader->frame_bytes - at > 65535)
		total = reader->frame_bytes - at;
	if (header < 20 || total < header || at + total > reader->frame_bytes)
		return 0;
	reader->end = at + total;
	reading->hop_limit = reader->frame[at + 8];
	reading->protocol = reader->frame[at + 9];
	reading->source[10] = reading->source[11] = 255;
	reading->destination[10] = reading->destination[11] = 255;
	memcpy(reading->source + 12, reader->frame + at + 12, 4);
	memcpy(reading->destination + 12, reader->frame + at + 16, 4);
	flags = pair(reader, at + 6);
	reading->later_fragment = flags % 8192 != 0;
	reading->first_fragment = !reading->later_fragment && flags / 8192 % 2;
	if (!has(reader, at, header) && !hides(reader, reading))
		return 0;
	return at + header;
}

/* RFC 8200, 4302, 6275, 7401, 5533: those that have a next header in their first byte. */
static bool can_be_walked(uint8_t protocol)
{
	static const char walked[] = { 0, 43, 44, 51, 60, (char)135, (char)139, (char)140 };

	return memchr(walked, protocol, sizeof(walked)) != NULL;
}

/* The place behind at most eight extension headers, or 0. */
static uint32_t walk_extensions(struct reader *reader, struct reading *reading, uint32_t at)
{
	for (int walked = 0; can_be_walked(reading->protocol); walked++) {
		uint8_t protocol = reading->protocol;
		uint32_t bytes = 8, offset;

		if (walked == 8) {
			reading->portless = reading->connection = true;
			break;
		}
		if (!has(reader, at, 8))
			return hides(reader, reading) ? at : 0;
		if (protocol == 51)
			bytes = (reader->frame[at + 1] + 2u) * 4;
		else if (protocol != 44)
			bytes = (reader->frame[at + 1] + 1u) * 8;
		reading->protocol = reader->frame[at];
		if (!has(reader, at, bytes))
			return hides(reader, reading) ? at : 0;
		offset = pair(reader, at + 2);
		at += bytes;
		if (protocol != 44)
			continue;
		if (offset / 8) {
			reading->later_fragment = true;
			reading->first_fragment = false;
			break;
		}
		reading->first_fragment |= offset % 2;
	}
	return at;
}

/* RFC 8200, and 2675 for a length of 0. The place behind the extension headers, or 0. */
static uint32_t read_ipv6(struct reader *reader, struct reading *reading)
{
	uint32_t at = reading->ip_at, payload;

	if (!has(reader, at, 40) || reader->frame[at] / 16 != 6)
		return 0;
	payload = pair(reader, at + 4);
	if (at + 40 + payload > reader->frame_bytes)
		return 0;
	reading->protocol = reader->frame[at + 6];
	reading->hop_limit = reader->frame[at + 7];
	memcpy(reading->source, reader->frame + at + 8, 16);
	memcpy(reading->destination, reader->frame + at + 24, 16);
	if (payload || (reading->protocol != 0 && reader->frame_bytes - at - 40 <= 65535))
		reader->end = at + 40 + payload;
	reading->jumbo =
		!payload && reading->protocol == 0 && reader->frame_bytes - at - 40 > 65535;
	return walk_extensions(reader, reading, at + 40);
}

/* RFC 9293. What is asked of TCP are the two times eight bytes that hold its flags. */
static bool read_tcp(struct reader *reader, struct reading *reading, uint32_t at)
{
	uint8_t flags;

	if (!has(reader, at, 16)) {
		reading->portless = reading->connection = true;
		return reading->first_fragment || reader->hides;
	}
	reading->header_bytes += reader->frame[at + 12] / 16 * 4u;
	reading->source_port = pair(reader, at);
	reading->destination_port = pair(reader, at + 2);
	flags = reader->frame[at + 13];
	reading->connection = flags / 2 % 2 && !(flags / 16 % 2);
	return true;
}

static bool between(uint16_t port, uint16_t low, uint16_t high)
{
	return port >= low && port <= high;
}

/* RFC 768, 9000, 2131, 8415. */
static bool read_udp(struct reader *reader, struct reading *reading, uint32_t at)
{
	static const uint8_t mapped[12] = { [10] = 255, [11] = 255 };
	uint16_t low = memcmp(reading->source, mapped, 12) ? 546 : 67;

	if (!has(reader, at, 8)) {
		reading->portless = true;
		return reading->first_fragment || hides(reader, reading);
	}
	reading->header_bytes += 8;
	reading->source_port = pair(reader, at);
	reading->destination_port = pair(reader, at + 2);
	reading->control = between(reading->source_port, low, (uint16_t)(low + 1)) &&
			   between(reading->destination_port, low, (uint16_t)(low + 1));
	if (!reading->control && has(reader, at + 8, 5))
		reading->connection = reader->frame[at + 8] >= 128 &&
				      (pair(reader, at + 9) || pair(reader, at + 11));
	return true;
}

/* RFC 4861: router solicitation to redirect, which no router may have passed on. */
static bool read_icmpv6(struct reader *reader, struct reading *reading, uint32_t at)
{
	static const uint8_t mapped[12] = { [10] = 255, [11] = 255 };

	if (!has(reader, at, 1))
		return hides(reader, reading);
	reading->control = reader->frame[at] >= 133 && reader->frame[at] <= 137 &&
			   reading->hop_limit == 255 && memcmp(reading->source, mapped, 12);
	return true;
}

static bool read_above_ip(struct reader *reader, struct reading *reading, uint32_t at)
{
	reading->header_bytes = at - reading->ip_at;
	if (reading->later_fragment)
		reading->portless = true;
	if (reading->portless)
		return true;
	if (reading->protocol == 6)
		return read_tcp(reader, reading, at);
	if (reading->protocol == 17)
		return read_udp(reader, reading, at);
	if (reading->protocol == 58)
		return read_icmpv6(reader, reading, at);
	return true;
}

static struct reading read_frame(const uint8_t *frame, uint32_t linear, uint32_t frame_bytes)
{
	struct reader reader = { frame, linear, frame_bytes, frame_bytes, false };
	struct reading reading = { .what = READ_NOT };
	uint32_t at = 0;
	uint16_t type = 0;

	if (!read_ethernet(&reader, &reading.ip_at, &type))
		return reading;
	if (type == 0x0800)
		at = read_ipv4(&reader, &reading);
	else if (type == 0x86dd)
		at = read_ipv6(&reader, &reading);
	else
		reading.what = READ_OTHER;
	if (at && read_above_ip(&reader, &reading, at))
		reading.what = READ_IP;
	return reading;
}

/* ---- the comparison */

static void check(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "the two readers differ: %s\n", what);
	abort();
}

static void compare(const struct reading *reading, enum parsed parsed, const struct packet *packet,
		    uint32_t frame_bytes)
{
	static const enum parsed as_parsed[] = {
		[READ_IP] = PARSED_IP, [READ_OTHER] = PARSED_OTHER, [READ_NOT] = PARSED_NOT
	};

	check(parsed == as_parsed[reading->what], "parsed");
	check(packet->ip_offset == reading->ip_at, "ip_offset");
	check(packet->bytes == frame_bytes - reading->ip_at, "bytes");
	if (parsed != PARSED_IP)
		return;
	check(!memcmp(packet->source.byte, reading->source, 16), "source");
	check(!memcmp(packet->destination.byte, reading->destination, 16), "destination");
	check(packet->protocol == reading->protocol, "protocol");
	check(packet->hop_limit == reading->hop_limit, "hop_limit");
	check(packet->source_port == reading->source_port, "source_port");
	check(packet->destination_port == reading->destination_port, "destination_port");
	check((packet->fragment == FRAGMENT_FIRST) == reading->first_fragment, "first fragment");
	check((packet->fragment == FRAGMENT_LATER) == reading->later_fragment, "later fragment");
	check(!(packet->flags & PACKET_PORTLESS) == !reading->portless, "portless");
	check(!(packet->flags & PACKET_CONNECTION) == !reading->connection, "connection");
	check(!(packet->flags & PACKET_CONTROL) == !reading->control, "control");
	check(!(packet->flags & PACKET_JUMBO) == !reading->jumbo, "jumbo");
	check(reading->portless || packet->header_bytes == reading->header_bytes, "header_bytes");
}

/* What all segments were on the wire, from their payload on; at most what 32 bits can say. */
static void compare_charge(const struct reading *reading, const struct packet *packet,
			   uint32_t frame_bytes, uint32_t payload_each, uint32_t segments)
{
	int64_t each = reading->header_bytes - (reading->jumbo ? 8 : 0);
	int64_t payload = (int64_t)frame_bytes - reading->ip_at - reading->header_bytes;
	int64_t wire;

	if (payload_each && !segments)
		for (int64_t sent = 0; sent < payload; sent += payload_each)
			segments++;
	if (!payload_each || segments < 2) {
		check(packet->segments == 1, "one segment");
		check(packet->bytes == frame_bytes - reading->ip_at, "bytes of one segment");
		return;
	}
	wire = payload + segments * each;
	check(packet->segments == segments, "segments");
	check(packet->bytes == (wire > UINT32_MAX ? UINT32_MAX : wire), "bytes of segments");
}

/* Two bytes before the frame, as in the network stack, put the IP header on a multiple of four. No
 * buffer of Linux has more than half a mebibyte. */
enum { CONTROL_BYTES = 7, ALIGN_BYTES = 2, BEYOND_BYTES_MAX = 1 << 19 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct packet packet = { .segments = 1 };
	struct reading reading;
	uint32_t frame_bytes, linear, payload_each, segments;
	uint8_t *memory, *frame;
	enum parsed parsed;

	if (size < CONTROL_BYTES)
		return 0;
	linear = (uint32_t)size - CONTROL_BYTES;
	frame_bytes = linear + (data[0] + data[1] * 256u + data[2] * 65536u) % BEYOND_BYTES_MAX;
	payload_each = data[3] + data[4] * 256u;
	segments = data[5] + data[6] * 256u;
	memory = malloc(ALIGN_BYTES + linear);
	if (!memory)
		return 0;
	frame = memory + ALIGN_BYTES;
	memcpy(frame, data + CONTROL_BYTES, linear);
	parsed = packet_parse(frame, frame + linear, frame_bytes, &packet);
	reading = read_frame(frame, linear, frame_bytes);
	compare(&reading, parsed, &packet, frame_bytes);
	if (parsed == PARSED_IP && !reading.portless) {
		segments_count(&packet, payload_each, segments);
		compare_charge(&reading, &packet, frame_bytes, payload_each, segments);
	}
	free(memory);
	return 0;
}
