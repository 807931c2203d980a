/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Under TC a buffer may stand for many packets, put together by the driver or by the stack (GRO) or
 * never taken apart by the guest that sent it. It is charged for each of them and for the headers
 * that each had, so that the same traffic costs the same, wherever the programs are attached. Pure
 * arithmetic on what packet.h has read.
 */
#ifndef SLUICE_SEGMENTS_H
#define SLUICE_SEGMENTS_H

#include "packet.h"

/* payload_each, segments: gso_size and gso_segs of the buffer, below 65536; 0: not known. */
SLUICE_INLINE void segments_count(struct packet *packet, __u32 payload_each, __u32 segments)
{
	__u64 headers = packet->header_bytes, bytes = packet->bytes;

	if (!payload_each)
		return;
	/* The length of the whole was put there when it was put together, and was never sent. */
	if (packet->flags & PACKET_JUMBO) {
		headers -= JUMBO_HEADER_BYTES;
		bytes -= JUMBO_HEADER_BYTES;
	}
	/* Who hands over what it got from a guest does not know how many. */
	if (!segments && bytes > headers)
		segments = (__u32)(bytes - headers + payload_each - 1) / payload_each;
	if (segments < 2)
		return;
	bytes += (segments - 1) * headers;
	packet->segments = segments;
	packet->bytes = bytes > 0xffffffff ? 0xffffffff : (__u32)bytes;
}

#endif
