/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Frames, layer by layer. Bytes are written one at a time: no struct of the kernel's is used, so
 * that a mistake in one of ours cannot be in both. */
#include "packets.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

static void put_u16(struct frame *frame, uint32_t at, uint32_t value)
{
	frame->byte[at] = (uint8_t)(value >> 8);
	frame->byte[at + 1] = (uint8_t)value;
}

/* Room for so many zero bytes at the end. */
static uint32_t append(struct frame *frame, uint32_t bytes)
{
	uint32_t at = frame->bytes;

	if (at + bytes > FRAME_BYTES_MAX)
		abort();
	memset(frame->byte + at, 0, bytes);
	frame->bytes += bytes;
	return at;
}

/* Tell the layer below what stands above it. */
static void put_number(struct frame *frame, uint16_t number)
{
	if (frame->number_is_wide)
		put_u16(frame, frame->number_at, number);
	else
		frame->byte[frame->number_at] = (uint8_t)number;
}

union address address_of(const char *text)
{
	union address address = {};

	if (inet_pton(AF_INET, text, address.byte + 12) == 1)
		address.byte[10] = address.byte[11] = 0xff;
	else if (inet_pton(AF_INET6, text, address.byte) != 1)
		abort();
	return address;
}

void frame_begin(struct frame *frame)
{
	frame->bytes = 0;
	frame->ip_at = 0;
	frame->udp_at = 0;
	append(frame, 14);
	frame->byte[0] = frame->byte[6] = 2;
	frame->byte[5] = 1;
	frame->byte[11] = 2;
	frame->number_at = 12;
	frame->number_is_wide = true;
}

void frame_vlan(struct frame *frame, uint16_t type, uint16_t tag)
{
	uint32_t at = append(frame, 4);

	put_number(frame, type);
	put_u16(frame, at, tag);
	frame->number_at = at + 2;
}

void frame_type(struct frame *frame, uint16_t type)
{
	put_number(frame, type);
}

static void put_ipv4(struct frame *frame, const struct ip_fields *ip)
{
	uint32_t at = append(frame, 20 + ip->option_words * 4u);

	put_number(frame, 0x0800);
	frame->byte[at] = (uint8_t)(0x40 | (5 + ip->option_words));
	put_u16(frame, at + 6, ip->fragment);
	frame->byte[at + 8] = ip->hop_limit;
	memcpy(frame->byte + at + 12, ip->source.byte + 12, 4);
	memcpy(frame->byte + at + 16, ip->destination.byte + 12, 4);
	memset(frame->byte + at + 20, 1, ip->option_words * 4u);
	frame->number_at = at + 9;
}

static void put_ipv6(struct frame *frame, const struct ip_fields *ip)
{
	uint32_t at = append(frame, 40);

	put_number(frame, 0x86dd);
	frame->byte[at] = 0x60;
	frame->byte[at + 7] = ip->hop_limit;
	memcpy(frame->byte + at + 8, ip->source.byte, 16);
	memcpy(frame->byte + at + 24, ip->destination.byte, 16);
	frame->number_at = at + 6;
}

void frame_ip(struct frame *frame, const struct ip_fields *ip)
{
	frame->ip_at = frame->bytes;
	frame->is_v6 = !address_is_v4(&ip->source);
	if (frame->is_v6)
		put_ipv6(frame, ip);
	else
		put_ipv4(frame, ip);
	frame->number_is_wide = false;
}

void frame_extension(struct frame *frame, uint8_t protocol, uint8_t words)
{
	bool is_ah = protocol == 51;
	uint32_t at = append(frame, is_ah ? 8 + words * 4u : 8 + words * 8u);

	put_number(frame, protocol);
	frame->byte[at + 1] = words;
	frame->number_at = at;
}

void frame_fragment(struct frame *frame, uint16_t offset_bytes, bool more)
{
	uint32_t at = append(frame, 8);

	put_number(frame, 44);
	put_u16(frame, at + 2, (offset_bytes & 0xfff8u) | more);
	put_u16(frame, at + 6, 0x1234);
	frame->number_at = at;
}

void frame_tcp(struct frame *frame, uint16_t source, uint16_t destination, uint8_t flags)
{
	uint32_t at = append(frame, 20);

	put_number(frame, 6);
	put_u16(frame, at, source);
	put_u16(frame, at + 2, destination);
	frame->byte[at + 12] = 0x50;
	frame->byte[at + 13] = flags;
}

void frame_udp(struct frame *frame, uint16_t source, uint16_t destination)
{
	uint32_t at = append(frame, 8);

	put_number(frame, 17);
	put_u16(frame, at, source);
	put_u16(frame, at + 2, destination);
	frame->udp_at = at;
}

void frame_icmp(struct frame *frame, uint8_t type)
{
	uint32_t at = append(frame, 8);

	put_number(frame, frame->is_v6 ? 58 : 1);
	frame->byte[at] = type;
}

void frame_payload(struct frame *frame, uint32_t bytes)
{
	append(frame, bytes);
}

static void put_checksum(struct frame *frame, uint32_t at, uint32_t bytes)
{
	uint32_t sum = 0;

	put_u16(frame, at + 10, 0);
	for (uint32_t i = 0; i < bytes; i += 2)
		sum += (uint32_t)frame->byte[at + i] << 8 | frame->byte[at + i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	put_u16(frame, at + 10, ~sum);
}

void frame_end(struct frame *frame)
{
	uint32_t at = frame->ip_at;

	if (!at)
		return;
	if (frame->udp_at)
		put_u16(frame, frame->udp_at + 4, frame->bytes - frame->udp_at);
	if (frame->is_v6) {
		put_u16(frame, at + 4, frame->bytes - at - 40);
	} else {
		put_u16(frame, at + 2, frame->bytes - at);
		put_checksum(frame, at, (frame->byte[at] & 15) * 4u);
	}
}

static void begin_to_server(struct frame *frame, const char *source)
{
	struct ip_fields ip = { .source = address_of(source), .hop_limit = 64 };

	ip.destination = address_of(address_is_v4(&ip.source) ? "203.0.113.9" : "2001:db8::9");
	frame_begin(frame);
	frame_ip(frame, &ip);
}

static void end_with_bytes(struct frame *frame, uint32_t bytes)
{
	uint32_t have = frame->bytes - frame->ip_at;

	if (bytes > have)
		frame_payload(frame, bytes - have);
	frame_end(frame);
}

void frame_of_tcp(struct frame *frame, const char *source, uint16_t port, uint8_t flags,
		  uint32_t bytes)
{
	begin_to_server(frame, source);
	frame_tcp(frame, SOURCE_PORT, port, flags);
	end_with_bytes(frame, bytes);
}

void frame_of_udp(struct frame *frame, const char *source, uint16_t port, uint32_t bytes)
{
	begin_to_server(frame, source);
	frame_udp(frame, SOURCE_PORT, port);
	end_with_bytes(frame, bytes);
}
