/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Builds frames layer by layer, for the tests that run the programs. Each layer writes its number
 * into the one below, and frame_end() writes the lengths, so a frame is sound unless a test spoils
 * it afterwards. It shares nothing with bpf/packet.h but the addresses' type.
 */
#ifndef SLUICE_TESTS_PACKETS_H
#define SLUICE_TESTS_PACKETS_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/key.h>

enum { FRAME_BYTES_MAX = 14 + 65535 };

struct frame {
	uint32_t bytes;
	uint32_t ip_at;      /* where the IP header begins; 0: there is none yet */
	uint32_t udp_at;     /* where the UDP header begins; 0: there is none */
	uint32_t number_at;  /* of the field that says what comes next */
	bool number_is_wide; /* it has two bytes, as an Ethernet type */
	bool is_v6;
	uint8_t byte[FRAME_BYTES_MAX];
};

/* What a test may want to choose of an IP header. */
struct ip_fields {
	union address source;
	union address destination;
	uint8_t hop_limit;
	uint8_t option_words; /* IPv4: words of options, all of them "no operation" */
	uint16_t fragment;    /* IPv4: flags and offset, as in the header */
};

/* An address from its text, IPv4 in the mapped form. Aborts on anything else. */
union address address_of(const char *text);

/* Begin anew with the two MAC addresses. */
void frame_begin(struct frame *frame);
/* A VLAN tag; type is 0x8100 or 0x88a8. */
void frame_vlan(struct frame *frame, uint16_t type, uint16_t tag);
/* Anything that is not IP: its type and then payload. */
void frame_type(struct frame *frame, uint16_t type);
/* The family is that of the source. */
void frame_ip(struct frame *frame, const struct ip_fields *ip);
/* An IPv6 extension header, or AH, with words more words than the least; of 8 bytes, in AH of 4. */
void frame_extension(struct frame *frame, uint8_t protocol, uint8_t words);
void frame_fragment(struct frame *frame, uint16_t offset_bytes, bool more);
void frame_tcp(struct frame *frame, uint16_t source, uint16_t destination, uint8_t flags);
void frame_udp(struct frame *frame, uint16_t source, uint16_t destination);
/* ICMP or ICMPv6, as the family is. */
void frame_icmp(struct frame *frame, uint8_t type);
void frame_payload(struct frame *frame, uint32_t bytes);
/* Write the lengths and the IPv4 checksum. */
void frame_end(struct frame *frame);

/* Whole frames, as most tests want them: to a server, of so many bytes from the IP header on (or of
 * as many as the headers take, if that is more). */
void frame_of_tcp(struct frame *frame, const char *source, uint16_t port, uint8_t flags,
		  uint32_t bytes);
void frame_of_udp(struct frame *frame, const char *source, uint16_t port, uint32_t bytes);

enum { TCP_SYN = 0x02, TCP_ACK = 0x10 };

/* The port that such frames come from. */
enum { SOURCE_PORT = 40000 };

#endif
