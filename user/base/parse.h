/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Strict text parsers, one function per kind of value, and the formatters that write the same
 * values for people. Strict means: the whole text or nothing; no spaces, no sign, no hexadecimal,
 * no leading zeros, no guesses. What a text has to look like is the same in the configuration file,
 * on the command line and in a protocol, because all of them come here.
 *
 * Every parse_ function returns 0, -EINVAL (not such a text) or -ERANGE (such a text, but beyond
 * what can be), and leaves *out untouched unless it returns 0. Numbers are read with the C
 * locale's decimal point. All functions are pure and thread safe.
 */
#ifndef SLUICE_BASE_PARSE_H
#define SLUICE_BASE_PARSE_H

#include <stdint.h>

#include <sluice/key.h>

/* Bytes for the text of any address, prefix, duration, size or rate, with its final zero. */
enum {
	ADDRESS_TEXT_MAX = 46,
	PREFIX_TEXT_MAX = 50,
	DURATION_TEXT_MAX = 24,
	SIZE_TEXT_MAX = 24,
	RATE_TEXT_MAX = 32,
};

enum port_kind {
	PORTS_ALL,  /* every IP packet */
	PORTS_ICMP, /* ICMP and ICMPv6 */
	PORTS_TCP,
	PORTS_UDP,
};

/* One entry of `protect`. */
struct port_range {
	enum port_kind kind;
	uint16_t first; /* with PORTS_TCP and PORTS_UDP: 1 to 65535; else 0 */
	uint16_t last;  /* included */
};

/* A whole number from min to max, both included: `0`, `4433`. */
int parse_uint(const char *text, uint64_t min, uint64_t max, uint64_t *out);

/* A finite number of at least 0: `5000`, `0.5`, `1e6`. -ERANGE also if it is too near to 0. */
int parse_decimal(const char *text, double *out);

/* Bytes, with or without a unit: `1500`, `64KiB`, `10MB`, `1.5GB`. KB is 1000, KiB is 1024. */
int parse_size(const char *text, double *out);

/* The same, of which -EINVAL says also that it is not a whole number of bytes. */
int parse_size_whole(const char *text, uint64_t *out);

/* A length of time up to 292 years with its unit (ns, us, ms, s, m, h, d): `250ms`, `1.5h`. */
int parse_duration(const char *text, uint64_t *out_ns);

/* An IPv4 address with all four numbers, or an IPv6 address without zone. */
int parse_address(const char *text, union address *out);

/*
 * `10.0.0.0/8`, `2001:db8::/32`, or an address, which is a prefix of its full length. *out_bits
 * counts within the sixteen bytes. -EDOM: bits beyond the length are set, as in 10.1.0.0/8.
 * -EAFNOSUPPORT: an IPv6 prefix so short that all of IPv4 would lie within it, as ::/0.
 */
int parse_prefix(const char *text, union address *out, uint32_t *out_bits);

/* The same with the bits beyond the length cleared: what a text that got -EDOM must have meant. */
int parse_prefix_loose(const char *text, union address *out, uint32_t *out_bits);

/* `tcp/443`, `udp/4433-4440`, `icmp` or `all`. -ERANGE: a port beyond 1 to 65535, or first > last.
 */
int parse_ports(const char *text, struct port_range *out);

/* Dotted for IPv4 in its mapped form. */
void format_address(const union address *address, char out[ADDRESS_TEXT_MAX]);

/* Always with its length; that of IPv4 counts from 0 to 32. */
void format_prefix(const union address *address, uint32_t bits, char out[PREFIX_TEXT_MAX]);

/* To three digits in the unit that suits: `250 ms`, `1.5 s`, `26 days`. */
void format_duration(uint64_t ns, char out[DURATION_TEXT_MAX]);

/* Bytes to four digits in decimal units: `10 MB`, `1500 B`. */
void format_size(double bytes, char out[SIZE_TEXT_MAX]);

/* Per second, or per the longest unit that keeps it readable: `5000/s`, `0.5/s`, `1/day`. */
void format_rate(double per_second, char out[RATE_TEXT_MAX]);

#endif
