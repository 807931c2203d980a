/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the two halves of the generator agree on. */
#ifndef TESTS_BENCH_FLOOD_H
#define TESTS_BENCH_FLOOD_H

#include <sluice/types.h>

enum flood_sources {
	SOURCES_ONE,
	SOURCES_SOME,   /* source_count addresses, from source on */
	SOURCES_RANDOM, /* any whose bits outside source_mask are source's */
};

/* Offsets in a frame without VLAN tags, IP options or extension headers. */
enum {
	FLOOD_IP = 14,
	FLOOD_IPV4_SUM = FLOOD_IP + 10,
	FLOOD_IPV4_SOURCE = FLOOD_IP + 12,
	FLOOD_IPV6_SOURCE = FLOOD_IP + 8,
	FLOOD_FRAME_MIN = 60, /* the shortest on an Ethernet, without its check sequence */
};

/*
 * Addresses are in host order: an IPv4 address whole, of an IPv6 address the upper half (the lower
 * half stays what the frame has). Sums are of 16-bit words as they lie in memory, not yet folded to
 * the end, of all that the program does not write.
 */
struct flood_plan {
	__u64 source;
	__u64 source_mask;
	__u32 source_count;
	__u32 sources; /* enum flood_sources */
	__u32 device;  /* ifindex */
	__u32 ip_sum;
	__u32 transport_sum;
	__u32 transport_sum_offset; /* in the frame */
	__u32 ipv6;                 /* 1: IPv6, else IPv4 */
	__u32 udp;                  /* 1: UDP, else TCP */
};

#endif
