/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stage 1: from the bytes of a frame to struct packet. The only code that looks at packet memory.
 *
 * Each take_*() does its own bounds check, against the end of the linear data and against the
 * length that the IP header declares, whichever is shorter. Loops have named bounds. What cannot be
 * read is PARSED_NOT: the packet passes, is counted, and the kernel's stack judges it. But a packet
 * whose IP header is sound, and which only hides its port (a later fragment, a first fragment cut
 * inside the TCP header, more extension headers than we walk or than lie in the frame's first
 * buffer), is PACKET_PORTLESS and is charged: else hiding would be a way around every limit.
 */
#ifndef SLUICE_PACKET_H
#define SLUICE_PACKET_H

#include <sluice/key.h>

#include "net.h"

enum {
	VLAN_TAGS_MAX = 4,
	EXTENSIONS_MAX = 8,
};

enum parsed {
	PARSED_IP,
	PARSED_OTHER, /* not IP */
	PARSED_NOT,   /* truncated, or lengths that lie */
};

enum packet_flag {
	PACKET_CONNECTION = 1 << 0, /* opens one: see METER_CONNECTIONS */
	PACKET_PORTLESS = 1 << 1,   /* has a port that cannot be seen from here */
	PACKET_CONTROL = 1 << 2,    /* keeps the host on the network: never charged */
	PACKET_NOT_LINEAR = 1 << 3, /* some header is in the frame, but not where we can read */
	PACKET_JUMBO = 1 << 4,      /* its length stands in a header of its own */
};

enum fragment {
	FRAGMENT_NONE,
	FRAGMENT_FIRST,
	FRAGMENT_LATER, /* carries no header above IP */
};

struct packet {
	union address source;
	union address destination;
	__u32 bytes;     /* from the IP header to the end of the frame, all of its fragments */
	__u32 segments;  /* packets on the wire that it stands for; whoever gives the frame knows */
	__u32 at;        /* how far it has been read, from the start of the frame */
	__u32 left;      /* how much the IP header declares beyond that */
	__u16 ip_offset; /* of the IP header in the frame */
	__u16 header_bytes; /* of all headers, from IP's to TCP's or UDP's, as far as they are known */
	__u16 source_port; /* host order; 0 if there is none or it cannot be seen */
	__u16 destination_port;
	__u8 protocol; /* enum ip_protocol, after extension headers */
	__u8 flags;    /* enum packet_flag */
	__u8 hop_limit;
	__u8 fragment; /* enum fragment */
};

/* What of the frame can be read. */
struct linear {
	const __u8 *data;
	const __u8 *end;
};

/*
 * The next bytes, fewer than 2048, or NULL if the frame or the IP packet has fewer, or, which is
 * noted, if they lie in another buffer.
 *
 * How far we are is kept in *packet, and read from there each time, for the verifier's sake: it
 * forgets what it knew of a number in memory that a caller lent, so that all ways to a place in a
 * frame look alike to it. With the place in a register it follows each way on its own (a million
 * instructions). It wants to see the bounds of both numbers, which the compiler knows and leaves out.
 */
SLUICE_INLINE const void *take_bytes(const struct linear *linear, struct packet *packet,
				     __u32 bytes)
{
	__u32 offset = *(volatile __u32 *)&packet->at;
	const __u8 *at;

	asm volatile("" : "+r"(bytes), "+r"(offset));
	bytes &= 2047;
	offset &= 32767;
	at = linear->data + offset;
	if (bytes > packet->left)
		return 0;
	if (at + bytes > linear->end) {
		packet->flags |= PACKET_NOT_LINEAR;
		return 0;
	}
	*(volatile __u32 *)&packet->at = offset + bytes;
	packet->left -= bytes;
	return at;
}

/* The type of what the frame carries, after VLAN tags; 0 if it ends before that (or says 0). */
SLUICE_INLINE __u16 take_ethernet(const struct linear *linear, struct packet *packet)
{
	const struct ethhdr *ethernet = take_bytes(linear, packet, sizeof(*ethernet));
	__u16 type;

	if (!ethernet)
		return 0;
	type = net_u16(ethernet->h_proto);
	for (int tags = 0; tags < VLAN_TAGS_MAX; tags++) {
		const struct vlan_header *vlan;

		if (type != ETHERTYPE_VLAN && type != ETHERTYPE_QINQ)
			break;
		vlan = take_bytes(linear, packet, sizeof(*vlan));
		if (!vlan)
			return 0;
		type = net_u16(vlan->type);
	}
	return type;
}

SLUICE_INLINE bool is_extension(__u8 protocol)
{
	switch (protocol) {
	case PROTOCOL_HOP_BY_HOP:
	case PROTOCOL_ROUTING:
	case PROTOCOL_FRAGMENT:
	case PROTOCOL_AH:
	case PROTOCOL_DESTINATION:
	case PROTOCOL_MOBILITY:
	case PROTOCOL_HIP:
	case PROTOCOL_SHIM6:
		return true;
	default:
		return false;
	}
}

/* What is behind here cannot be seen, and may well be what opens a connection. */
SLUICE_INLINE void hide(struct packet *packet)
{
	packet->flags |= PACKET_PORTLESS;
	if (packet->fragment != FRAGMENT_LATER)
		packet->flags |= PACKET_CONNECTION;
}

/* A header that cannot be read: of a packet that is cut or lies; or it is only we who cannot. */
SLUICE_INLINE enum parsed hidden_or_not(struct packet *packet)
{
	if (!(packet->flags & PACKET_NOT_LINEAR))
		return PARSED_NOT;
	hide(packet);
	return PARSED_IP;
}

/* What follows the first eight bytes: AH counts four-byte words less two, others eight-byte words less
 * one. Written without a subtraction, so that the verifier sees how small it is. */
SLUICE_INLINE __u32 extension_rest(__u8 protocol, __u8 length)
{
	return protocol == PROTOCOL_AH ? length * 4u : length * 8u;
}

/* One extension header: what it says of fragments, and what comes next. */
SLUICE_INLINE enum parsed take_extension(const struct linear *linear, struct packet *packet)
{
	const struct extension_header *header = take_bytes(linear, packet, sizeof(*header));
	__u8 protocol = packet->protocol;
	__u16 offset;

	if (!header)
		return hidden_or_not(packet);
	*(volatile __u8 *)&packet->protocol = header->next;
	if (protocol != PROTOCOL_FRAGMENT)
		return take_bytes(linear, packet, extension_rest(protocol, header->length))
			       ? PARSED_IP
			       : hidden_or_not(packet);
	offset = net_u16(header->offset);
	if (offset & IPV6_OFFSET_MASK)
		packet->fragment = FRAGMENT_LATER;
	else if (offset & IPV6_MORE_FRAGMENTS)
		packet->fragment = FRAGMENT_FIRST;
	return PARSED_IP;
}

SLUICE_INLINE enum parsed take_extensions(const struct linear *linear, struct packet *packet)
{
	for (int walked = 0; walked < EXTENSIONS_MAX; walked++) {
		if (packet->fragment == FRAGMENT_LATER || packet->flags & PACKET_NOT_LINEAR ||
		    !is_extension(*(volatile __u8 *)&packet->protocol))
			return PARSED_IP;
		if (take_extension(linear, packet) != PARSED_IP)
			return PARSED_NOT;
	}
	/* Nobody has use for so many but to hide what is behind them. */
	if (is_extension(packet->protocol))
		hide(packet);
	return PARSED_IP;
}

SLUICE_INLINE enum parsed take_ipv4(const struct linear *linear, struct packet *packet)
{
	const struct iphdr *ip = take_bytes(linear, packet, sizeof(*ip));
	__u32 header_bytes, total_bytes;
	__u16 offset;

	if (!ip || ip->version != 4 || ip->ihl < 5)
		return PARSED_NOT;
	header_bytes = ip->ihl * 4u;
	total_bytes = net_u16(ip->tot_len);
	/* Segments put together to more than the field can say (BIG TCP) leave it 0. */
	if (!total_bytes && packet->bytes > IPV4_LENGTH_MAX)
		total_bytes = packet->bytes;
	if (total_bytes < header_bytes || total_bytes > packet->bytes)
		return PARSED_NOT;
	packet->left = total_bytes - sizeof(*ip);
	packet->source.byte[10] = packet->source.byte[11] = 0xff;
	packet->source.word[3] = ip->saddr;
	packet->destination.byte[10] = packet->destination.byte[11] = 0xff;
	packet->destination.word[3] = ip->daddr;
	packet->protocol = ip->protocol;
	packet->hop_limit = ip->ttl;
	offset = net_u16(ip->frag_off);
	if (offset & IPV4_OFFSET_MASK)
		packet->fragment = FRAGMENT_LATER;
	else if (offset & IPV4_MORE_FRAGMENTS)
		packet->fragment = FRAGMENT_FIRST;
	if (ip->ihl > 5 && !take_bytes(linear, packet, header_bytes - sizeof(*ip)))
		return hidden_or_not(packet);
	return PARSED_IP;
}

SLUICE_INLINE enum parsed take_ipv6(const struct linear *linear, struct packet *packet)
{
	const struct ipv6hdr *ip = take_bytes(linear, packet, sizeof(*ip));
	__u32 payload_bytes;

	if (!ip || ip->version != 6)
		return PARSED_NOT;
	payload_bytes = net_u16(ip->payload_len);
	if (payload_bytes > packet->bytes - sizeof(*ip))
		return PARSED_NOT;
	/* A length of 0 is that of a jumbogram, if a hop-by-hop header follows or if it is of segments
	 * that were put together (BIG TCP, the younger kind): its length is the frame's. */
	if (payload_bytes)
		packet->left = payload_bytes;
	else if (ip->nexthdr != PROTOCOL_HOP_BY_HOP && packet->left <= IPV6_PAYLOAD_MAX)
		packet->left = 0;
	else if (ip->nexthdr == PROTOCOL_HOP_BY_HOP && packet->left > IPV6_PAYLOAD_MAX)
		packet->flags |= PACKET_JUMBO;

	__builtin_memcpy(&packet->source, &ip->saddr, sizeof(packet->source));
	__builtin_memcpy(&packet->destination, &ip->daddr, sizeof(packet->destination));
	packet->protocol = ip->nexthdr;
	packet->hop_limit = ip->hop_limit;
	return take_extensions(linear, packet);
}

SLUICE_INLINE enum parsed take_tcp(const struct linear *linear, struct packet *packet)
{
	const struct tcp_start *tcp = take_bytes(linear, packet, sizeof(*tcp));

	if (!tcp) {
		if (packet->fragment == FRAGMENT_NONE)
			return hidden_or_not(packet);
		/* Nobody cuts a TCP header but to hide its flags. */
		packet->flags |= PACKET_PORTLESS | PACKET_CONNECTION;
		return PARSED_IP;
	}
	packet->header_bytes += tcp->offset / 16 * 4;
	packet->source_port = net_u16(tcp->source);
	packet->destination_port = net_u16(tcp->destination);
	if ((tcp->flags & (TCP_FLAG_SYN | TCP_FLAG_ACK)) == TCP_FLAG_SYN)
		packet->flags |= PACKET_CONNECTION;
	return PARSED_IP;
}

SLUICE_INLINE bool is_dhcp(const struct packet *packet)
{
	__u16 first = DHCPV6_PORT_FIRST, last = DHCPV6_PORT_LAST;

	if (address_is_v4(&packet->source)) {
		first = DHCP_PORT_FIRST;
		last = DHCP_PORT_LAST;
	}
	return packet->source_port >= first && packet->source_port <= last &&
	       packet->destination_port >= first && packet->destination_port <= last;
}

SLUICE_INLINE enum parsed take_udp(const struct linear *linear, struct packet *packet)
{
	const struct udphdr *udp = take_bytes(linear, packet, sizeof(*udp));
	const struct {
		__u8 first;
		__u8 version[4];
	} * quic;

	if (!udp) {
		if (packet->fragment == FRAGMENT_NONE)
			return hidden_or_not(packet);
		packet->flags |= PACKET_PORTLESS;
		return PARSED_IP;
	}
	packet->header_bytes += sizeof(*udp);
	packet->source_port = net_u16(udp->source);
	packet->destination_port = net_u16(udp->dest);
	if (is_dhcp(packet)) {
		packet->flags |= PACKET_CONTROL;
		return PARSED_IP;
	}
	quic = take_bytes(linear, packet, sizeof(*quic));
	if (quic && (quic->first & QUIC_LONG_HEADER) &&
	    (quic->version[0] | quic->version[1] | quic->version[2] | quic->version[3]))
		packet->flags |= PACKET_CONNECTION;
	return PARSED_IP;
}

SLUICE_INLINE enum parsed take_icmpv6(const struct linear *linear, struct packet *packet)
{
	const __u8 *type = take_bytes(linear, packet, 1);

	if (!type)
		return hidden_or_not(packet);
	if (*type >= NDP_TYPE_FIRST && *type <= NDP_TYPE_LAST &&
	    packet->hop_limit == NDP_HOP_LIMIT && !address_is_v4(&packet->source))
		packet->flags |= PACKET_CONTROL;
	return PARSED_IP;
}

/* What is above IP, as far as a limit needs to know it. */
SLUICE_INLINE enum parsed take_transport(const struct linear *linear, struct packet *packet)
{
	if (packet->fragment == FRAGMENT_LATER) {
		packet->flags |= PACKET_PORTLESS;
		return PARSED_IP;
	}
	if (packet->flags & PACKET_PORTLESS)
		return PARSED_IP;
	switch (packet->protocol) {
	case PROTOCOL_TCP:
		return take_tcp(linear, packet);
	case PROTOCOL_UDP:
		return take_udp(linear, packet);
	case PROTOCOL_ICMPV6:
		return take_icmpv6(linear, packet);
	default:
		return PARSED_IP;
	}
}

/*
 * Read a frame. *packet must be zero. data to data_end can be read; frame_bytes is the frame's true
 * length, which is more if it has fragments beyond the linear part.
 */
SLUICE_INLINE enum parsed packet_parse(const void *data, const void *data_end, __u32 frame_bytes,
				       struct packet *packet)
{
	const struct linear linear = { .data = data, .end = data_end };
	enum parsed parsed;
	__u16 type;

	packet->left = frame_bytes;
	type = take_ethernet(&linear, packet);
	packet->ip_offset = packet->at;
	packet->bytes = packet->left;
	if (type == ETHERTYPE_IPV4)
		parsed = take_ipv4(&linear, packet);
	else if (type == ETHERTYPE_IPV6)
		parsed = take_ipv6(&linear, packet);
	else
		return type ? PARSED_OTHER : PARSED_NOT;
	if (parsed != PARSED_IP)
		return parsed;
	packet->header_bytes = packet->at - packet->ip_offset;
	return take_transport(&linear, packet);
}

#endif
