/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Buffers that stand for many packets, and what they are charged: as many packets as were put
 * together, and the bytes of all of them, each with its headers. Run by tests/unit/test_segments.c
 * on bpf/segments.h compiled for the host, and by tests/bpf/test_segments.c through the program for
 * TC. The headers are written as the frames of packets.h; the payload is so many zero bytes.
 */
#ifndef SLUICE_VECTORS_SEGMENTS_H
#define SLUICE_VECTORS_SEGMENTS_H

#include "tests/vectors/packets.h"

struct segments_row {
	const char *name;
	const char *headers;
	__u32 payload_bytes;
	__u32 payload_each; /* gso_size */
	__u32 segments;     /* gso_segs */
	__u32 packets;      /* what is charged */
	__u32 bytes;
};

/* TCP with 12 bytes of options, as nearly all of it has (timestamps); and with as many as can be. */
#define TCP_STAMPED TCP_START("80", "10") "2000 0000 0000 " Z8 Z4
#define TCP_LONGEST TCP_START("f0", "10") "2000 0000 0000 " Z16 Z16 Z8

/* clang-format off */
static const struct segments_row segments_rows[] = {
	{ "TCP over IPv4", MACS V4("0be0", "0000", "06") TCP("10"), 3000, 1000, 3,
	  .packets = 3, .bytes = 3 * 1040 },
	{ "TCP over IPv4 with timestamps", MACS V4("0bec", "0000", "06") TCP_STAMPED, 3000, 1000, 3,
	  .packets = 3, .bytes = 3 * 1052 },
	{ "TCP over IPv4 with all its options", MACS V4("0c08", "0000", "06") TCP_LONGEST, 3000,
	  1000, 3, .packets = 3, .bytes = 3 * 1080 },
	{ "TCP over IPv4 with options", MACS V4_HEADER("49", "0bf0") Z16 TCP("10"), 3000, 1000, 3,
	  .packets = 3, .bytes = 3 * 1056 },
	{ "TCP over IPv4 with a VLAN tag", MACS "8100 0064" V4("0be0", "0000", "06") TCP("10"),
	  3000, 1000, 3, .packets = 3, .bytes = 3 * 1040 },
	{ "TCP over IPv6", MACS V6("0bcc", "06") TCP("10"), 3000, 1000, 3,
	  .packets = 3, .bytes = 3 * 1060 },
	{ "TCP over IPv6 with timestamps", MACS V6("0bd8", "06") TCP_STAMPED, 3000, 1000, 3,
	  .packets = 3, .bytes = 3 * 1072 },
	{ "TCP over IPv6 behind extension headers", MACS V6("0be0", "00") EXT("3c") "0601 000000000000"
	  Z4 "00000000" TCP("10"), 2996, 1000, 3, .packets = 3, .bytes = 2 * 1084 + 1080 },
	{ "UDP over IPv4", MACS V4("0bd4", "0000", "11") UDP("0bc0"), 3000, 1000, 3,
	  .packets = 3, .bytes = 3 * 1028 },
	{ "UDP over IPv6", MACS V6("0bc0", "11") UDP("0bc0"), 3000, 1000, 3,
	  .packets = 3, .bytes = 3 * 1048 },
	{ "the last one is short", MACS V4("07f9", "0000", "06") TCP("10"), 2001, 1000, 3,
	  .packets = 3, .bytes = 2 * 1040 + 41 },
	/* What is within a tunnel is not read, so its headers are not known. */
	{ "a tunnel", MACS V4("0bd0", "0000", "2f") "0000 0800", 3000, 1000, 3,
	  .packets = 3, .bytes = 3024 + 2 * 20 },

	{ "nobody has counted them", MACS V4("0be0", "0000", "06") TCP("10"), 3000, 1000, 0,
	  .packets = 3, .bytes = 3 * 1040 },
	{ "nobody has counted them, and the last is short", MACS V4("07f9", "0000", "06") TCP("10"),
	  2001, 1000, 0, .packets = 3, .bytes = 2 * 1040 + 41 },
	{ "nobody has counted them, and there is one", MACS V4("0410", "0000", "06") TCP("10"),
	  1000, 1000, 0, .packets = 1, .bytes = 1040 },
	{ "nobody has counted them, and there is no payload", MACS V4("0028", "0000", "06")
	  TCP("10"), 0, 1000, 0, .packets = 1, .bytes = 40 },
	{ "nobody has counted them, UDP", MACS V4("0bd4", "0000", "11") UDP("0bc0"), 3000, 1000, 0,
	  .packets = 3, .bytes = 3 * 1028 },
	{ "a byte each", MACS V4("0be0", "0000", "06") TCP("10"), 3000, 1, 0,
	  .packets = 3000, .bytes = 3000 * 41 },
	{ "one", MACS V4("0410", "0000", "06") TCP("10"), 1000, 1000, 1,
	  .packets = 1, .bytes = 1040 },
	{ "a packet like any other", MACS V4("0be0", "0000", "06") TCP("10"), 3000, 0, 0,
	  .packets = 1, .bytes = 3040 },
	{ "a number of segments without their size", MACS V4("0be0", "0000", "06") TCP("10"), 3000,
	  0, 3, .packets = 1, .bytes = 3040 },

	/* BIG TCP: more than the length in the IP header can say. */
	{ "more than 65535 bytes over IPv4", MACS V4("0000", "0000", "06") TCP_STAMPED, 200000,
	  1448, 139, .packets = 139, .bytes = 200000 + 139 * 52 },
	{ "a jumbogram, whose own header was never sent", MACS V6("0000", "00")
	  "06 00 c204 00030d60" TCP_STAMPED, 200000, 1448, 139,
	  .packets = 139, .bytes = 200000 + 139 * 72 },
	{ "a jumbogram that nobody has counted", MACS V6("0000", "00") "06 00 c204 00030d60"
	  TCP_STAMPED, 200000, 1448, 0, .packets = 139, .bytes = 200000 + 139 * 72 },
	{ "more than 65535 bytes over IPv6, without a header for it", MACS V6("0000", "06")
	  TCP_STAMPED, 200000, 1448, 139, .packets = 139, .bytes = 200000 + 139 * 72 },
};
/* clang-format on */

/* The headers of a row, as packet_row_bytes(). */
static inline __u32 segments_row_headers(const struct segments_row *row,
					 __u8 bytes[PACKET_ROW_BYTES_MAX])
{
	struct packet_row as_frame = { .frame = row->headers };

	return packet_row_bytes(&as_frame, bytes);
}

#endif
