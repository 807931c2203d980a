/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Builds the frames of the benchmarks: Ethernet, IPv4 or IPv6, TCP or UDP, with right lengths and,
 * but for the source address, right checksums; also the sums from which a program makes them right
 * once it has drawn a source.
 */
#ifndef TESTS_BENCH_FRAME_H
#define TESTS_BENCH_FRAME_H

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <sluice/key.h>

enum frame_kind { FRAME_SYN, FRAME_ACK, FRAME_UDP, FRAME_QUIC };

enum { FRAME_BYTES_MIN = 60, FRAME_BYTES_MAX = 1514 };

struct frame_wish {
	enum frame_kind kind;
	bool ipv6;
	uint16_t destination_port;
	unsigned bytes; /* of the frame; 0: as few as it takes */
	union address source;
	union address destination;
	unsigned char destination_mac[ETH_ALEN];
	unsigned char source_mac[ETH_ALEN];
};

/* A SYN from 198.18.0.1 to port 443 of 198.19.0.1. */
static inline struct frame_wish frame_wish_syn(void)
{
	return (struct frame_wish){
		.kind = FRAME_SYN,
		.destination_port = 443,
		.source = { .byte = { [10] = 0xff, 0xff, 198, 18, 0, 1 } },
		.destination = { .byte = { [10] = 0xff, 0xff, 198, 19, 0, 1 } },
	};
}

struct frame {
	unsigned char data[FRAME_BYTES_MAX];
	unsigned bytes;
	uint32_t ip_sum;        /* of the IPv4 header, without source and checksum */
	uint32_t transport_sum; /* with the pseudo header, without source and checksum */
	unsigned transport_sum_offset;
};

/* Of 16-bit words as they lie in memory; not yet folded to the end. An odd byte is padded. */
static inline uint32_t frame_sum(const void *data, unsigned bytes, uint32_t sum)
{
	const unsigned char *at = data;

	for (; bytes; at += 2, bytes -= bytes < 2 ? 1 : 2) {
		unsigned char pair[2] = { at[0], bytes > 1 ? at[1] : 0 };
		uint16_t word;

		memcpy(&word, pair, sizeof(word));
		sum += word;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return sum;
}

static inline bool frame_is_udp(enum frame_kind kind)
{
	return kind == FRAME_UDP || kind == FRAME_QUIC;
}

/* The transport header and what follows it; the checksum stays 0. Returns where it belongs. */
static inline unsigned frame_transport(const struct frame_wish *wish, unsigned char *at,
				       unsigned bytes)
{
	static const unsigned char quic[] = { 0xc0, 0, 0, 0, 1 }; /* an Initial of version 1 */
	struct udphdr udp = {
		.source = htons(40000),
		.dest = htons(wish->destination_port),
		.len = htons((uint16_t)bytes),
	};
	struct tcphdr tcp = {
		.source = htons(40000),
		.dest = htons(wish->destination_port),
		.seq = htonl(1),
		.doff = sizeof(tcp) / 4,
		.syn = wish->kind == FRAME_SYN,
		.ack = wish->kind == FRAME_ACK,
		.window = htons(65535),
	};

	if (!frame_is_udp(wish->kind)) {
		memcpy(at, &tcp, sizeof(tcp));
		return offsetof(struct tcphdr, check);
	}
	memcpy(at, &udp, sizeof(udp));
	if (wish->kind == FRAME_QUIC)
		memcpy(at + sizeof(udp), quic, sizeof(quic));
	return offsetof(struct udphdr, check);
}

static inline unsigned frame_ip(const struct frame_wish *wish, unsigned char *at, unsigned bytes)
{
	uint8_t protocol = frame_is_udp(wish->kind) ? IPPROTO_UDP : IPPROTO_TCP;
	struct iphdr ipv4 = {
		.version = 4,
		.ihl = sizeof(ipv4) / 4,
		.tot_len = htons((uint16_t)bytes),
		.frag_off = htons(0x4000), /* not to be fragmented */
		.ttl = 64,
		.protocol = protocol,
		.saddr = wish->source.word[3],
		.daddr = wish->destination.word[3],
	};
	struct ipv6hdr ipv6 = {
		.version = 6,
		.payload_len = htons((uint16_t)(bytes - sizeof(ipv6))),
		.nexthdr = protocol,
		.hop_limit = 64,
	};

	if (!wish->ipv6) {
		memcpy(at, &ipv4, sizeof(ipv4));
		return sizeof(ipv4);
	}
	memcpy(&ipv6.saddr, &wish->source, sizeof(ipv6.saddr));
	memcpy(&ipv6.daddr, &wish->destination, sizeof(ipv6.daddr));
	memcpy(at, &ipv6, sizeof(ipv6));
	return sizeof(ipv6);
}

static inline void frame_sums(const struct frame_wish *wish, struct frame *frame, unsigned ip_bytes,
			      unsigned sum_at)
{
	unsigned char *ip = frame->data + ETH_HLEN;
	unsigned transport_bytes = frame->bytes - ETH_HLEN - ip_bytes;
	uint16_t pseudo[] = {
		htons((uint16_t)transport_bytes),
		htons(frame_is_udp(wish->kind) ? IPPROTO_UDP : IPPROTO_TCP),
	};
	/* Of an IPv6 source a program draws the upper half only. */
	const void *kept = &wish->source.half[1];

	frame->transport_sum_offset = ETH_HLEN + ip_bytes + sum_at;
	frame->transport_sum = frame_sum(pseudo, sizeof(pseudo), 0);
	frame->transport_sum = frame_sum(ip + ip_bytes, transport_bytes, frame->transport_sum);
	if (wish->ipv6) {
		frame->transport_sum = frame_sum(kept, 8, frame->transport_sum);
		frame->transport_sum = frame_sum(&wish->destination, 16, frame->transport_sum);
		return;
	}
	frame->transport_sum = frame_sum(&wish->destination.word[3], 4, frame->transport_sum);
	frame->ip_sum = frame_sum(ip, offsetof(struct iphdr, saddr), 0);
	frame->ip_sum = frame_sum(ip + offsetof(struct iphdr, daddr), 4, frame->ip_sum);
}

/* -EINVAL: the frame that is asked for is too short for its headers, or longer than Ethernet's. */
static inline int frame_build(const struct frame_wish *wish, struct frame *frame)
{
	unsigned ip_bytes = wish->ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
	unsigned transport_bytes =
		frame_is_udp(wish->kind) ? sizeof(struct udphdr) + 8 : sizeof(struct tcphdr);
	unsigned least = ETH_HLEN + ip_bytes + transport_bytes;
	struct ethhdr ethernet = { .h_proto = htons(wish->ipv6 ? ETH_P_IPV6 : ETH_P_IP) };
	unsigned sum_at;

	if (least < FRAME_BYTES_MIN)
		least = FRAME_BYTES_MIN;
	memset(frame, 0, sizeof(*frame));
	frame->bytes = wish->bytes ? wish->bytes : least;
	if (frame->bytes < least || frame->bytes > FRAME_BYTES_MAX)
		return -EINVAL;
	memcpy(ethernet.h_dest, wish->destination_mac, ETH_ALEN);
	memcpy(ethernet.h_source, wish->source_mac, ETH_ALEN);
	memcpy(frame->data, &ethernet, sizeof(ethernet));
	(void)frame_ip(wish, frame->data + ETH_HLEN, frame->bytes - ETH_HLEN);
	sum_at = frame_transport(wish, frame->data + ETH_HLEN + ip_bytes,
				 frame->bytes - ETH_HLEN - ip_bytes);
	frame_sums(wish, frame, ip_bytes, sum_at);
	return 0;
}

#endif
