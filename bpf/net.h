/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The protocol numbers and headers that packet.h reads. BPF programs take the headers from
 * vmlinux.h; the tests and the fuzzer, which compile packet.h for the host, from the system's.
 */
#ifndef SLUICE_NET_H
#define SLUICE_NET_H

#include <sluice/types.h>

#ifndef __bpf__
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#endif

enum ethertype {
	ETHERTYPE_LENGTH_MAX = 0x05ff, /* below: an 802.3 length, not a type */
	ETHERTYPE_IPV4 = 0x0800,
	ETHERTYPE_VLAN = 0x8100,
	ETHERTYPE_IPV6 = 0x86dd,
	ETHERTYPE_QINQ = 0x88a8,
};

enum ip_protocol {
	PROTOCOL_HOP_BY_HOP = 0,
	PROTOCOL_ICMP = 1,
	PROTOCOL_TCP = 6,
	PROTOCOL_UDP = 17,
	PROTOCOL_ROUTING = 43,
	PROTOCOL_FRAGMENT = 44,
	PROTOCOL_ESP = 50,
	PROTOCOL_AH = 51,
	PROTOCOL_ICMPV6 = 58,
	PROTOCOL_NO_NEXT = 59,
	PROTOCOL_DESTINATION = 60,
	PROTOCOL_MOBILITY = 135,
	PROTOCOL_HIP = 139,
	PROTOCOL_SHIM6 = 140,
};

enum {
	NDP_TYPE_FIRST = 133, /* router solicitation */
	NDP_TYPE_LAST = 137,  /* redirect */
	NDP_HOP_LIMIT = 255,  /* cannot have crossed a router */
	DHCP_PORT_FIRST = 67,
	DHCP_PORT_LAST = 68,
	DHCPV6_PORT_FIRST = 546,
	DHCPV6_PORT_LAST = 547,
	IPV4_LENGTH_MAX = 0xffff,
	IPV4_OFFSET_MASK = 0x1fff,
	IPV4_MORE_FRAGMENTS = 0x2000,
	IPV6_PAYLOAD_MAX = 0xffff,
	JUMBO_HEADER_BYTES = 8, /* the hop-by-hop header with such a length */
	IPV6_OFFSET_MASK = 0xfff8,
	IPV6_MORE_FRAGMENTS = 1,
	TCP_FLAG_SYN = 0x02, /* in the fourteenth byte */
	TCP_FLAG_ACK = 0x10,
	QUIC_LONG_HEADER = 0x80,
};

/* What every IPv6 extension header but the fragment header begins with. */
struct extension_header {
	__u8 next;
	__u8 length;   /* see extension_rest(): the unit differs */
	__be16 offset; /* of a fragment header */
	__u32 rest;
};

struct vlan_header {
	__be16 tag;
	__be16 type;
};

/* Of a TCP header, what can be asked of a packet that may be the first fragment of one: fragments are
 * cut at multiples of eight. */
struct tcp_start {
	__be16 source;
	__be16 destination;
	__be32 sequence;
	__be32 acknowledged;
	__u8 offset;
	__u8 flags;
	__be16 window;
};

SLUICE_INLINE __u16 net_u16(__be16 value)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return __builtin_bswap16((__u16)value);
#else
	return (__u16)value;
#endif
}

#endif
