/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames and what is to be read from them. Run by tests/unit/test_packet.c on bpf/packet.h compiled
 * for the host, and by tests/bpf/test_packets.c through the programs; the fuzzer begins with them.
 *
 * A frame is written as hexadecimal text, in which spaces mean nothing. The key is the one of the
 * bucket, with a /64 for a client. Members left out are 0, NULL for a key: there is none to be had.
 */
#ifndef SLUICE_VECTORS_PACKETS_H
#define SLUICE_VECTORS_PACKETS_H

#include "bpf/packet.h"

struct packet_row {
	const char *name;
	const char *frame;
	enum parsed parsed;
	__u32 bytes; /* from behind the Ethernet header and its tags to the end of the frame */
	__u8 protocol;
	__u8 flags;
	__u8 fragment;
	__u16 source_port;
	__u16 destination_port;
	const char *key;
};

/* Bytes from the IP header to the end of the longest frame. */
enum { PACKET_ROW_BYTES_MAX = 512 };

#define MACS "020000000001 020000000002 "
#define Z4 "00000000 "
#define Z8 Z4 Z4
#define Z16 Z8 Z8

/* From 198.51.100.7 to 203.0.113.9. V4 has no options; the protocol's type comes with it. */
#define V4_LIVES(total, fragment, lives, protocol) \
	"0800 4500 " total " 0001 " fragment " " lives " " protocol " 0000 c6336407 cb007109 "
#define V4(total, fragment, protocol) V4_LIVES(total, fragment, "40", protocol)
/* first: version and header length. */
#define V4_HEADER(first, total) \
	"0800 " first " 00 " total " 0001 0000 40 06 0000 c6336407 cb007109 "
#define V4_KEY .key = "00000000000000000000ffffc6336407"

/* From 2001:db8:1:2:3:4:5:6 to 2001:db8::9. */
#define V6_FROM(payload, next, hops, source) \
	"86dd 60000000 " payload " " next " " hops " " source " 20010db8000000000000000000000009 "
#define V6(payload, next) V6_FROM(payload, next, "40", "20010db8000100020003000400050006")
#define V6_KEY .key = "20010db8000100020000000000000000"
#define LINK_LOCAL "fe800000000000000011223344556677"

/* From port 40000 to 443. */
#define TCP_START(offset, flags) "9c40 01bb 00000001 00000000 " offset " " flags " "
#define TCP(flags) TCP_START("50", flags) "2000 0000 0000 "
#define UDP(length) "9c40 01bb " length " 0000 "
#define UDP_PORTS(source, destination) source " " destination " 0008 0000 "
#define PORTS .source_port = 40000, .destination_port = 443
#define IS_TCP .parsed = PARSED_IP, .protocol = 6, PORTS
#define IS_UDP .parsed = PARSED_IP, .protocol = 17, PORTS
#define SYN .flags = PACKET_CONNECTION

/* Extension headers of eight bytes but AH, which has twelve at least. */
#define EXT(next) next "00 000000000000 "
#define FRAG(next, offset) next "00 " offset " 00000001 "
#define AH12(next) next "01 0000 " Z8

/* clang-format off */
static const struct packet_row packet_rows[] = {
	/* ---- TCP flags */
	{ "TCP ACK", MACS V4("0028", "0000", "06") TCP("10"), IS_TCP, .bytes = 40, V4_KEY },
	{ "TCP SYN", MACS V4("0028", "0000", "06") TCP("02"), IS_TCP, .bytes = 40, SYN, V4_KEY },
	{ "TCP SYN and ACK", MACS V4("0028", "0000", "06") TCP("12"), IS_TCP, .bytes = 40, V4_KEY },
	{ "TCP SYN and FIN", MACS V4("0028", "0000", "06") TCP("03"), IS_TCP, .bytes = 40, SYN,
	  V4_KEY },
	{ "TCP SYN with ECE and CWR", MACS V4("0028", "0000", "06") TCP("c2"), IS_TCP, .bytes = 40,
	  SYN, V4_KEY },
	{ "TCP RST", MACS V4("0028", "0000", "06") TCP("04"), IS_TCP, .bytes = 40, V4_KEY },
	{ "TCP without flags", MACS V4("0028", "0000", "06") TCP("00"), IS_TCP, .bytes = 40,
	  V4_KEY },
	{ "TCP whose header length is less than five words",
	  MACS V4("0028", "0000", "06") TCP_START("40", "02") "2000 0000 0000", IS_TCP,
	  .bytes = 40, SYN, V4_KEY },
	{ "TCP cut behind its window", MACS V4("0024", "0000", "06") TCP_START("50", "02") "2000",
	  IS_TCP, .bytes = 36, SYN, V4_KEY },
	{ "TCP cut before its flags", MACS V4("0021", "0000", "06") "9c40 01bb" Z8 "50",
	  PARSED_NOT, .bytes = 33 },

	/* ---- below IP */
	{ "VLAN tag", MACS "8100 0064" V4("0028", "0000", "06") TCP("02"), IS_TCP, .bytes = 40, SYN,
	  V4_KEY },
	{ "priority tag with VID 0", MACS "8100 e000" V4("0028", "0000", "06") TCP("02"), IS_TCP,
	  .bytes = 40, SYN, V4_KEY },
	{ "QinQ, 88a8 outside", MACS "88a8 0064 8100 0065" V4("0028", "0000", "06") TCP("02"),
	  IS_TCP, .bytes = 40, SYN, V4_KEY },
	{ "QinQ, 8100 twice", MACS "8100 0064 8100 0065" V6("0014", "06") TCP("02"), IS_TCP,
	  .bytes = 60, SYN, V6_KEY },
	{ "four tags", MACS "88a8 0001 88a8 0002 8100 0003 8100 0004" V4("0028", "0000", "06")
	  TCP("02"), IS_TCP, .bytes = 40, SYN, V4_KEY },
	{ "five tags", MACS "88a8 0001 88a8 0002 88a8 0003 8100 0004 8100 0005"
	  V4("0028", "0000", "06") TCP("02"), PARSED_OTHER, .bytes = 44 },
	{ "VLAN tag and nothing behind it", MACS "8100 0064 0800", PARSED_NOT, .bytes = 0 },
	{ "ARP", MACS "0806 0001 0800 06 04 0001 020000000002 c6336407 000000000000 cb007109",
	  PARSED_OTHER, .bytes = 28 },
	{ "ARP with a VLAN tag", MACS "8100 0064 0806 0001 0800 06 04 0001" Z16 Z4,
	  PARSED_OTHER, .bytes = 28 },
	{ "802.3 length", MACS "0026 aa aa 03 000000 0800 4500 0028" Z16, PARSED_OTHER,
	  .bytes = 28 },
	{ "802.3 length, the longest", MACS "05ff 42 42 03" Z16, PARSED_OTHER, .bytes = 19 },
	{ "LLDP", MACS "88cc 0207 04 020000000002" Z16, PARSED_OTHER, .bytes = 25 },
	{ "MPLS", MACS "8847 00010140 4500 0028" Z16, PARSED_OTHER, .bytes = 24 },
	{ "PPPoE", MACS "8864 11000001 0016 0021 4500 0014" Z16, PARSED_OTHER, .bytes = 28 },

	/* ---- the IPv4 header */
	{ "IPv4 of version 5", MACS V4_HEADER("55", "0028") TCP("02"), PARSED_NOT, .bytes = 40 },
	{ "IPv4 with a header of four words", MACS V4_HEADER("44", "0028") TCP("02"), PARSED_NOT,
	  .bytes = 40 },
	{ "IPv4 with one word of options", MACS V4_HEADER("46", "002c") "01010101" TCP("02"),
	  IS_TCP, .bytes = 44, SYN, V4_KEY },
	{ "IPv4 with all options", MACS V4_HEADER("4f", "0050") Z16 Z16 Z8 TCP("02"), IS_TCP,
	  .bytes = 80, SYN, V4_KEY },
	{ "IPv4 whose options do not fit the frame", MACS V4_HEADER("4f", "0028") TCP("02"),
	  PARSED_NOT, .bytes = 40 },
	{ "IPv4 shorter than its header", MACS V4("0013", "0000", "06") TCP("02"), PARSED_NOT,
	  .bytes = 40 },
	{ "IPv4 shorter than its header with options",
	  MACS V4_HEADER("46", "0014") "01010101" TCP("02"), PARSED_NOT, .bytes = 44 },
	{ "IPv4 of length 0", MACS V4("0000", "0000", "06") TCP("02"), PARSED_NOT, .bytes = 40 },
	{ "IPv4 longer than the frame", MACS V4("0029", "0000", "06") TCP("02"), PARSED_NOT,
	  .bytes = 40 },
	{ "IPv4 with padding behind it", MACS V4("0028", "0000", "06") TCP("02") "0000 00000000",
	  IS_TCP, .bytes = 46, SYN, V4_KEY },
	{ "IPv4 whose ports are only in the padding", MACS V4("0014", "0000", "11") UDP("0008"),
	  PARSED_NOT, .bytes = 28 },
	{ "IPv4, do not fragment", MACS V4("0028", "4000", "06") TCP("02"), IS_TCP, .bytes = 40,
	  SYN, V4_KEY },
	{ "IPv4 with the reserved bit", MACS V4("0028", "8000", "06") TCP("02"), IS_TCP,
	  .bytes = 40, SYN, V4_KEY },
	{ "IPv4 first fragment", MACS V4("0028", "2000", "06") TCP("02"), IS_TCP, .bytes = 40, SYN,
	  .fragment = FRAGMENT_FIRST, V4_KEY },
	{ "IPv4 middle fragment", MACS V4("0028", "20b9", "06") TCP("02"), PARSED_IP, .bytes = 40,
	  .protocol = 6, .flags = PACKET_PORTLESS, .fragment = FRAGMENT_LATER, V4_KEY },
	{ "IPv4 last fragment", MACS V4("001c", "00b9", "11") Z8, PARSED_IP, .bytes = 28,
	  .protocol = 17, .flags = PACKET_PORTLESS, .fragment = FRAGMENT_LATER, V4_KEY },
	{ "IPv4 fragment that would overlap the ports", MACS V4("0028", "0001", "06") TCP("02"),
	  PARSED_IP, .bytes = 40, .protocol = 6, .flags = PACKET_PORTLESS,
	  .fragment = FRAGMENT_LATER, V4_KEY },
	{ "IPv4 first fragment with eight bytes of TCP",
	  MACS V4("001c", "2000", "06") "9c40 01bb 00000001", PARSED_IP, .bytes = 28,
	  .protocol = 6, .flags = PACKET_PORTLESS | PACKET_CONNECTION,
	  .fragment = FRAGMENT_FIRST, V4_KEY },
	{ "IPv4 first fragment with half a UDP header", MACS V4("0018", "2000", "11") "9c40 01bb",
	  PARSED_IP, .bytes = 24, .protocol = 17, .flags = PACKET_PORTLESS,
	  .fragment = FRAGMENT_FIRST, V4_KEY },
	{ "ICMP", MACS V4("001c", "0000", "01") "0800 0000" Z4, PARSED_IP, .bytes = 28,
	  .protocol = 1, V4_KEY },
	{ "ICMP, later fragment", MACS V4("001c", "00b9", "01") Z8, PARSED_IP, .bytes = 28,
	  .protocol = 1, .flags = PACKET_PORTLESS, .fragment = FRAGMENT_LATER, V4_KEY },
	{ "GRE", MACS V4("0018", "0000", "2f") "0000 0800", PARSED_IP, .bytes = 24, .protocol = 47,
	  V4_KEY },
	{ "AH over IPv4 is not walked", MACS V4("0034", "0000", "33") AH12("06") TCP("02"),
	  PARSED_IP, .bytes = 52, .protocol = 51, V4_KEY },

	/* ---- UDP, QUIC, DHCP */
	{ "QUIC Initial", MACS V4("0024", "0000", "11") UDP("0010") "c3 00000001 08 0000", IS_UDP,
	  .bytes = 36, SYN, V4_KEY },
	{ "QUIC Initial over IPv6", MACS V6("0010", "11") UDP("0010") "c3 6b3343cf 08 0000", IS_UDP,
	  .bytes = 56, SYN, V6_KEY },
	{ "QUIC version negotiation", MACS V4("0024", "0000", "11") UDP("0010")
	  "c3 00000000 08 0000", IS_UDP, .bytes = 36, V4_KEY },
	{ "QUIC short header", MACS V4("0024", "0000", "11") UDP("0010") "43 00000001 08 0000",
	  IS_UDP, .bytes = 36, V4_KEY },
	{ "QUIC cut in its version", MACS V4("0020", "0000", "11") UDP("000c") "c3 000001", IS_UDP,
	  .bytes = 32, V4_KEY },
	{ "QUIC version only in the padding", MACS V4("0020", "0000", "11") UDP("000c")
	  "c3 000000 01", IS_UDP, .bytes = 33, V4_KEY },
	{ "other UDP", MACS V4("0024", "0000", "11") UDP("0010") "1234 0100 0001 0000", IS_UDP,
	  .bytes = 36, V4_KEY },
	{ "UDP without data", MACS V4("001c", "0000", "11") UDP("0008"), IS_UDP, .bytes = 28,
	  V4_KEY },
	{ "UDP of length 0", MACS V4("001c", "0000", "11") UDP("0000"), IS_UDP, .bytes = 28,
	  V4_KEY },
	{ "UDP cut in its header", MACS V4("001b", "0000", "11") "9c40 01bb 0008 00", PARSED_NOT,
	  .bytes = 27 },
	{ "DHCP request", MACS V4("001c", "0000", "11") UDP_PORTS("0044", "0043"), PARSED_IP,
	  .bytes = 28, .protocol = 17, .flags = PACKET_CONTROL, .source_port = 68,
	  .destination_port = 67, V4_KEY },
	{ "DHCP answer", MACS V4("001c", "0000", "11") UDP_PORTS("0043", "0044"), PARSED_IP,
	  .bytes = 28, .protocol = 17, .flags = PACKET_CONTROL, .source_port = 67,
	  .destination_port = 68, V4_KEY },
	{ "from a DHCP port, but to another",
	  MACS V4("001c", "0000", "11") UDP_PORTS("0043", "01bb"),
	  PARSED_IP, .bytes = 28, .protocol = 17, .source_port = 67, .destination_port = 443,
	  V4_KEY },
	{ "to a DHCP port, but from another",
	  MACS V4("001c", "0000", "11") UDP_PORTS("9c40", "0043"),
	  PARSED_IP, .bytes = 28, .protocol = 17, .source_port = 40000, .destination_port = 67,
	  V4_KEY },
	{ "DHCPv6 ports over IPv4", MACS V4("001c", "0000", "11") UDP_PORTS("0222", "0223"),
	  PARSED_IP, .bytes = 28, .protocol = 17, .source_port = 546, .destination_port = 547,
	  V4_KEY },
	{ "DHCPv6", MACS V6_FROM("0008", "11", "01", LINK_LOCAL) UDP_PORTS("0222", "0223"),
	  PARSED_IP, .bytes = 48, .protocol = 17, .flags = PACKET_CONTROL, .source_port = 546,
	  .destination_port = 547, .key = LINK_LOCAL },
	{ "DHCP ports over IPv6", MACS V6("0008", "11") UDP_PORTS("0044", "0043"), PARSED_IP,
	  .bytes = 48, .protocol = 17, .source_port = 68, .destination_port = 67, V6_KEY },
	{ "from a DHCPv6 port, but to another", MACS V6("0008", "11") UDP_PORTS("0223", "01bb"),
	  PARSED_IP, .bytes = 48, .protocol = 17, .source_port = 547, .destination_port = 443,
	  V6_KEY },

	/* ---- the IPv6 header and its sources */
	{ "IPv6", MACS V6("0014", "06") TCP("10"), IS_TCP, .bytes = 60, V6_KEY },
	{ "IPv6 SYN", MACS V6("0014", "06") TCP("02"), IS_TCP, .bytes = 60, SYN, V6_KEY },
	{ "IPv6 of version 4", MACS "86dd 45000000 0014 06 40" Z16 Z16 TCP("02"), PARSED_NOT,
	  .bytes = 60 },
	{ "IPv6 longer than the frame", MACS V6("0015", "06") TCP("02"), PARSED_NOT, .bytes = 60 },
	{ "IPv6 with padding behind it", MACS V6("0014", "06") TCP("02") Z4, IS_TCP, .bytes = 64,
	  SYN, V6_KEY },
	{ "IPv6 whose ports are only in the padding", MACS V6("0004", "06") TCP("02"), PARSED_NOT,
	  .bytes = 60 },
	{ "IPv6 of length 0 that is no jumbogram", MACS V6("0000", "06") TCP("02"), PARSED_NOT,
	  .bytes = 60 },
	{ "IPv6 jumbogram", MACS V6("0000", "00") "06 00 c204 0000001c" TCP("02"), IS_TCP,
	  .bytes = 68, SYN, V6_KEY },
	{ "IPv6 from an IPv4-mapped source",
	  MACS V6_FROM("0014", "06", "40", "00000000000000000000ffffc6336407") TCP("02"), IS_TCP,
	  .bytes = 60, SYN, V4_KEY },
	{ "IPv6 from ::", MACS V6_FROM("0014", "06", "40", Z16) TCP("02"), IS_TCP, .bytes = 60, SYN,
	  .key = "00000000000000000000000000000000" },
	{ "IPv6 from a link-local source", MACS V6_FROM("0014", "06", "40", LINK_LOCAL) TCP("02"),
	  IS_TCP, .bytes = 60, SYN, .key = LINK_LOCAL },
	{ "IPv6 from the last link-local prefix",
	  MACS V6_FROM("0014", "06", "40", "febf0000000000000011223344556677") TCP("02"), IS_TCP,
	  .bytes = 60, SYN, .key = "febf0000000000000011223344556677" },
	{ "IPv6 from behind the link-local prefixes",
	  MACS V6_FROM("0014", "06", "40", "fec00000000000000011223344556677") TCP("02"), IS_TCP,
	  .bytes = 60, SYN, .key = "fec00000000000000000000000000000" },
	{ "IPv6 from a multicast source",
	  MACS V6_FROM("0014", "06", "40", "ff020000000000000000000000000001") TCP("02"), IS_TCP,
	  .bytes = 60, SYN, .key = "ff020000000000000000000000000000" },

	/* ---- extension headers */
	{ "hop-by-hop options", MACS V6("001c", "00") EXT("06") TCP("02"), IS_TCP, .bytes = 68, SYN,
	  V6_KEY },
	{ "routing header", MACS V6("001c", "2b") EXT("06") TCP("02"), IS_TCP, .bytes = 68, SYN,
	  V6_KEY },
	{ "destination options of 24 bytes", MACS V6("002c", "3c") "0602 000000000000" Z16
	  TCP("02"), IS_TCP, .bytes = 84, SYN, V6_KEY },
	{ "mobility, HIP and Shim6", MACS V6("002c", "87") EXT("8b") EXT("8c") EXT("06") TCP("02"),
	  IS_TCP, .bytes = 84, SYN, V6_KEY },
	{ "AH counts words of four bytes", MACS V6("0020", "33") AH12("06") TCP("02"), IS_TCP,
	  .bytes = 72, SYN, V6_KEY },
	{ "AH of 24 bytes", MACS V6("002c", "33") "0604 0000" Z16 Z4 TCP("02"), IS_TCP, .bytes = 84,
	  SYN, V6_KEY },
	{ "every extension header in the order of RFC 8200",
	  MACS V6("0048", "00") EXT("3c") EXT("2b") EXT("2c") FRAG("33", "0001") AH12("3c")
	  EXT("06") TCP("02"), IS_TCP, .bytes = 112, SYN, .fragment = FRAGMENT_FIRST, V6_KEY },
	{ "eight extension headers", MACS V6("0054", "00") EXT("3c") EXT("3c") EXT("3c") EXT("3c")
	  EXT("3c") EXT("3c") EXT("3c") EXT("06") TCP("02"), IS_TCP, .bytes = 124, SYN, V6_KEY },
	{ "nine extension headers", MACS V6("005c", "00") EXT("3c") EXT("3c") EXT("3c") EXT("3c")
	  EXT("3c") EXT("3c") EXT("3c") EXT("3c") EXT("06") TCP("02"), PARSED_IP, .bytes = 132,
	  .protocol = 60, .flags = PACKET_PORTLESS | PACKET_CONNECTION, V6_KEY },
	{ "extension header longer than the packet", MACS V6("001c", "3c") "06ff 000000000000"
	  TCP("02"), PARSED_NOT, .bytes = 68 },
	{ "extension header longer than the length in the IP header",
	  MACS V6("0008", "3c") "0601 000000000000" Z8 TCP("02"), PARSED_NOT, .bytes = 76 },
	{ "ESP ends the walk", MACS V6("0018", "32") Z16 Z8, PARSED_IP, .bytes = 64, .protocol = 50,
	  V6_KEY },
	{ "ESP behind options", MACS V6("0018", "3c") EXT("32") Z16, PARSED_IP, .bytes = 64,
	  .protocol = 50, V6_KEY },
	{ "no next header", MACS V6("0008", "00") EXT("3b"), PARSED_IP, .bytes = 48, .protocol = 59,
	  V6_KEY },
	{ "no next header and no length", MACS V6("0000", "3b"), PARSED_IP, .bytes = 40,
	  .protocol = 59, V6_KEY },

	/* ---- IPv6 fragments */
	{ "fragment header of a whole packet", MACS V6("001c", "2c") FRAG("06", "0000") TCP("02"),
	  IS_TCP, .bytes = 68, SYN, V6_KEY },
	{ "IPv6 first fragment", MACS V6("001c", "2c") FRAG("06", "0001") TCP("02"), IS_TCP,
	  .bytes = 68, SYN, .fragment = FRAGMENT_FIRST, V6_KEY },
	{ "IPv6 middle fragment", MACS V6("001c", "2c") FRAG("06", "0009") TCP("02"), PARSED_IP,
	  .bytes = 68, .protocol = 6, .flags = PACKET_PORTLESS, .fragment = FRAGMENT_LATER,
	  V6_KEY },
	{ "IPv6 last fragment of options", MACS V6("0010", "2c") FRAG("3c", "0008") "06ff" Z4
	  "0000", PARSED_IP, .bytes = 56, .protocol = 60, .flags = PACKET_PORTLESS,
	  .fragment = FRAGMENT_LATER, V6_KEY },
	{ "IPv6 first fragment with eight bytes of TCP",
	  MACS V6("0010", "2c") FRAG("06", "0001") "9c40 01bb 00000001", PARSED_IP, .bytes = 56,
	  .protocol = 6, .flags = PACKET_PORTLESS | PACKET_CONNECTION,
	  .fragment = FRAGMENT_FIRST, V6_KEY },

	/* ---- ICMPv6 */
	{ "ICMPv6 echo", MACS V6("0008", "3a") "8000 0000" Z4, PARSED_IP, .bytes = 48,
	  .protocol = 58, V6_KEY },
	{ "ICMPv6 without a type", MACS V6("0000", "3a"), PARSED_NOT, .bytes = 40 },
	{ "neighbour solicitation", MACS V6_FROM("0018", "3a", "ff", LINK_LOCAL) "8700 0000" Z4 Z16,
	  PARSED_IP, .bytes = 64, .protocol = 58, .flags = PACKET_CONTROL, .key = LINK_LOCAL },
	{ "neighbour solicitation that a router has passed on",
	  MACS V6_FROM("0018", "3a", "fe", LINK_LOCAL) "8700 0000" Z4 Z16, PARSED_IP, .bytes = 64,
	  .protocol = 58, .key = LINK_LOCAL },
	{ "duplicate address detection, from ::",
	  MACS V6_FROM("0018", "3a", "ff", Z16) "8700 0000" Z4 Z16, PARSED_IP, .bytes = 64,
	  .protocol = 58, .flags = PACKET_CONTROL, .key = "00000000000000000000000000000000" },
	{ "router solicitation", MACS V6_FROM("0008", "3a", "ff", LINK_LOCAL) "8500 0000" Z4,
	  PARSED_IP, .bytes = 48, .protocol = 58, .flags = PACKET_CONTROL, .key = LINK_LOCAL },
	{ "redirect", MACS V6_FROM("0008", "3a", "ff", LINK_LOCAL) "8900 0000" Z4, PARSED_IP,
	  .bytes = 48, .protocol = 58, .flags = PACKET_CONTROL, .key = LINK_LOCAL },
	{ "router renumbering is no neighbour discovery",
	  MACS V6_FROM("0008", "3a", "ff", LINK_LOCAL) "8a00 0000" Z4, PARSED_IP, .bytes = 48,
	  .protocol = 58, .key = LINK_LOCAL },
	{ "ICMPv6 over IPv4 is no neighbour discovery",
	  MACS V4_LIVES("001c", "0000", "ff", "3a") "8700 0000" Z4, PARSED_IP, .bytes = 28,
	  .protocol = 58, V4_KEY },
};
/* clang-format on */

/* Read a row's frame into bytes; how many there are. */
static inline __u32 packet_row_bytes(const struct packet_row *row, __u8 bytes[PACKET_ROW_BYTES_MAX])
{
	__u32 nibbles = 0;

	for (const char *at = row->frame; *at; at++) {
		__u8 nibble = (__u8)(*at <= '9' ? *at - '0' : *at - 'a' + 10);

		if (*at == ' ')
			continue;
		if (nibbles == 2 * PACKET_ROW_BYTES_MAX)
			__builtin_trap();
		bytes[nibbles / 2] =
			nibbles & 1 ? (__u8)(bytes[nibbles / 2] | nibble) : (__u8)(nibble << 4);
		nibbles++;
	}
	return nibbles / 2;
}

#endif
