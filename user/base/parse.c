/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Text to values and back. Shapes are checked here, character by character; the values are then
 * left to the C library, which is laxer than we want about shapes and right about the rest.
 */
#include "base/parse.h"

#include <arpa/inet.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	ADDRESS_BITS = 128,
	NUMBER_CHARS_MAX = 64, /* no number that means anything is longer */
	PORT_MAX = 65535,
};

struct unit {
	const char *name;
	double factor;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *skip_digits(const char *text)
{
	while (is_digit(*text))
		text++;
	return text;
}

static bool has_leading_zero(const char *text)
{
	return text[0] == '0' && is_digit(text[1]);
}

/* The end of the decimal number that the text begins with, or NULL. */
static const char *decimal_end(const char *text)
{
	const char *end = skip_digits(text);
	const char *exponent;

	if (end == text || has_leading_zero(text))
		return NULL;
	if (*end == '.') {
		const char *fraction = end + 1;

		end = skip_digits(fraction);
		if (end == fraction)
			return NULL;
	}
	if (*end != 'e' && *end != 'E')
		return end;
	exponent = end + 1;
	if (*exponent == '-' || *exponent == '+')
		exponent++;
	/* Without digits it is no exponent but the first letter of a unit. */
	return is_digit(*exponent) ? skip_digits(exponent) : end;
}

static int scan_decimal(const char *text, const char **out_end, long double *out)
{
	const char *end = decimal_end(text);
	char *stopped;
	long double value;

	if (!end || end - text > NUMBER_CHARS_MAX)
		return -EINVAL;
	errno = 0;
	value = strtold(text, &stopped);
	if (stopped != end)
		return -EINVAL;
	if (errno == ERANGE || value > (long double)DBL_MAX ||
	    (value > 0 && value < (long double)DBL_MIN))
		return -ERANGE;
	*out_end = end;
	*out = value;
	return 0;
}

static const struct unit *find_unit(const struct unit *units, const char *name)
{
	for (; units->name; units++)
		if (strcmp(units->name, name) == 0)
			return units;
	return NULL;
}

static int scan_with_unit(const char *text, const struct unit *units, long double *out)
{
	const struct unit *unit;
	const char *end;
	long double value;
	int err = scan_decimal(text, &end, &value);

	/* A number out of range is worth saying only of what else is well formed. */
	if (err == -ERANGE)
		end = decimal_end(text);
	else if (err)
		return err;
	unit = find_unit(units, end);
	if (!unit)
		return -EINVAL;
	if (err || value * (long double)unit->factor > (long double)DBL_MAX)
		return -ERANGE;
	*out = value * (long double)unit->factor;
	return 0;
}

int parse_uint(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	const char *end = skip_digits(text);
	unsigned long long value;

	if (end == text || *end || has_leading_zero(text))
		return -EINVAL;
	errno = 0;
	value = strtoull(text, NULL, 10);
	if (errno == ERANGE || value < min || value > max)
		return -ERANGE;
	*out = value;
	return 0;
}

int parse_decimal(const char *text, double *out)
{
	static const struct unit none[] = { { "", 1 }, { NULL, 0 } };
	long double value;
	int err = scan_with_unit(text, none, &value);

	if (!err)
		*out = (double)value;
	return err;
}

static int scan_size(const char *text, long double *out)
{
	static const struct unit units[] = {
		{ "", 1 },
		{ "B", 1 },
		{ "kB", 1e3 },
		{ "KB", 1e3 },
		{ "MB", 1e6 },
		{ "GB", 1e9 },
		{ "TB", 1e12 },
		{ "KiB", 1024.0 },
		{ "MiB", 1024.0 * 1024 },
		{ "GiB", 1024.0 * 1024 * 1024 },
		{ "TiB", 1024.0 * 1024 * 1024 * 1024 },
		{ NULL, 0 },
	};

	return scan_with_unit(text, units, out);
}

int parse_size(const char *text, double *out)
{
	long double bytes;
	int err = scan_size(text, &bytes);

	if (!err)
		*out = (double)bytes;
	return err;
}

int parse_size_whole(const char *text, uint64_t *out)
{
	long double bytes, whole;
	int err = scan_size(text, &bytes);

	if (err)
		return err;
	whole = roundl(bytes);
	/* 0.7KB is 700 bytes, whatever binary fractions make of it. */
	if (fabsl(bytes - whole) > 1e-6L)
		return -EINVAL;
	if (whole >= ldexpl(1, 64))
		return -ERANGE;
	*out = (uint64_t)whole;
	return 0;
}

int parse_duration(const char *text, uint64_t *out_ns)
{
	static const struct unit units[] = {
		{ "ns", 1 },   { "us", 1e3 },   { "ms", 1e6 },    { "s", 1e9 },
		{ "m", 60e9 }, { "h", 3600e9 }, { "d", 86400e9 }, { NULL, 0 },
	};
	long double ns;
	int err = scan_with_unit(text, units, &ns);

	if (err)
		return err;
	ns = roundl(ns);
	/* One bit is left over, so that two of them can be compared by signed difference. */
	if (ns >= ldexpl(1, 63))
		return -ERANGE;
	*out_ns = (uint64_t)ns;
	return 0;
}

int parse_address(const char *text, union address *out)
{
	union address address = { .byte = { [10] = 0xff, [11] = 0xff } };

	if (inet_pton(AF_INET, text, &address.word[3]) != 1 &&
	    inet_pton(AF_INET6, text, &address) != 1)
		return -EINVAL;
	*out = address;
	return 0;
}

static void clear_host_bits(union address *address, uint32_t bits)
{
	address->half[0] &= address_mask(bits);
	address->half[1] &= address_mask(bits > 64 ? bits - 64 : 0);
}

static bool is_same(const union address *a, const union address *b)
{
	return a->half[0] == b->half[0] && a->half[1] == b->half[1];
}

/* Whether ::ffff:0:0/96, which stands for all of IPv4, lies within the prefix. */
static bool holds_all_of_v4(const union address *prefix, uint32_t bits)
{
	union address v4 = { .byte = { [10] = 0xff, [11] = 0xff } };

	if (bits >= ADDRESS_V4_OFFSET)
		return false;
	clear_host_bits(&v4, bits);
	return is_same(&v4, prefix);
}

/* Address and length as they stand in the text. */
static int split_prefix(const char *text, union address *out, uint32_t *out_bits)
{
	const char *slash = strchr(text, '/');
	size_t length = slash ? (size_t)(slash - text) : strlen(text);
	char name[ADDRESS_TEXT_MAX];
	uint64_t bits = ADDRESS_BITS;
	uint32_t offset;
	int err;

	if (length >= sizeof(name))
		return -EINVAL;
	memcpy(name, text, length);
	name[length] = '\0';
	err = parse_address(name, out);
	if (err)
		return err;
	/* Written as IPv4, the length counts IPv4's bits; ::ffff:10.0.0.0 is written as IPv6. */
	offset = strchr(name, ':') ? 0 : ADDRESS_V4_OFFSET;
	if (slash) {
		err = parse_uint(slash + 1, 0, ADDRESS_BITS - offset, &bits);
		if (err)
			return err;
		bits += offset;
	}
	*out_bits = (uint32_t)bits;
	return 0;
}

int parse_prefix_loose(const char *text, union address *out, uint32_t *out_bits)
{
	union address address;
	uint32_t bits;
	int err = split_prefix(text, &address, &bits);

	if (err)
		return err;
	clear_host_bits(&address, bits);
	if (holds_all_of_v4(&address, bits))
		return -EAFNOSUPPORT;
	*out = address;
	*out_bits = bits;
	return 0;
}

int parse_prefix(const char *text, union address *out, uint32_t *out_bits)
{
	union address address, cleared;
	uint32_t bits;
	int err = split_prefix(text, &address, &bits);

	if (err)
		return err;
	cleared = address;
	clear_host_bits(&cleared, bits);
	if (!is_same(&address, &cleared))
		return -EDOM;
	return parse_prefix_loose(text, out, out_bits);
}

static int scan_port(const char *text, size_t length, uint16_t *out)
{
	char digits[8];
	uint64_t port;
	int err;

	if (length >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, text, length);
	digits[length] = '\0';
	err = parse_uint(digits, 1, PORT_MAX, &port);
	if (!err)
		*out = (uint16_t)port;
	return err;
}

int parse_ports(const char *text, struct port_range *out)
{
	struct port_range range = { .kind = PORTS_ALL };
	const char *ports = text + 4;
	size_t length;
	int err;

	if (strcmp(text, "all") == 0 || strcmp(text, "icmp") == 0) {
		range.kind = text[0] == 'a' ? PORTS_ALL : PORTS_ICMP;
		*out = range;
		return 0;
	}
	if (strncmp(text, "tcp/", 4) != 0 && strncmp(text, "udp/", 4) != 0)
		return -EINVAL;
	range.kind = text[0] == 't' ? PORTS_TCP : PORTS_UDP;
	length = strcspn(ports, "-");
	err = scan_port(ports, length, &range.first);
	if (err)
		return err;
	range.last = range.first;
	if (ports[length] == '-')
		err = scan_port(ports + length + 1, strlen(ports + length + 1), &range.last);
	if (err)
		return err;
	if (range.last < range.first)
		return -ERANGE;
	*out = range;
	return 0;
}

void format_address(const union address *address, char out[ADDRESS_TEXT_MAX])
{
	if (address_is_v4(address))
		(void)inet_ntop(AF_INET, &address->word[3], out, ADDRESS_TEXT_MAX);
	else
		(void)inet_ntop(AF_INET6, address, out, ADDRESS_TEXT_MAX);
}

void format_prefix(const union address *address, uint32_t bits, char out[PREFIX_TEXT_MAX])
{
	char name[ADDRESS_TEXT_MAX];

	format_address(address, name);
	if (address_is_v4(address) && bits >= ADDRESS_V4_OFFSET)
		bits -= ADDRESS_V4_OFFSET;
	snprintf(out, PREFIX_TEXT_MAX, "%s/%u", name, bits <= ADDRESS_BITS ? bits : ADDRESS_BITS);
}

/* With so many digits, but never as 1e+06. */
static void format_number(double value, int digits, char *out, size_t size)
{
	if (value >= pow(10, digits) - 0.5)
		snprintf(out, size, "%.0f", value);
	else
		snprintf(out, size, "%.*g", digits, value);
}

void format_duration(uint64_t ns, char out[DURATION_TEXT_MAX])
{
	static const struct unit units[] = {
		/* The unit is used below `limit` of it; from there on the next is easier to read.
		 */
		{ "ns", 1 },     { "us", 1e3 },   { "ms", 1e6 },       { "s", 1e9 },
		{ "min", 60e9 }, { "h", 3600e9 }, { "days", 86400e9 }, { NULL, 0 },
	};
	static const double limits[] = { 999.5, 999.5, 999.5, 120, 120, 48 };
	char number[DURATION_TEXT_MAX - 8];
	size_t i = 0;

	while (i < sizeof(limits) / sizeof(*limits) && (double)ns / units[i].factor >= limits[i])
		i++;
	format_number((double)ns / units[i].factor, 3, number, sizeof(number));
	snprintf(out, DURATION_TEXT_MAX, "%s %s", number, units[i].name);
}

void format_size(double bytes, char out[SIZE_TEXT_MAX])
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB", "EB" };
	char number[SIZE_TEXT_MAX - 4];
	size_t i = 0;

	/* 1500 B is easier to recognise than 1.5 kB. */
	while (i + 1 < sizeof(units) / sizeof(*units) && bytes >= (i ? 999.95 : 9999.5)) {
		bytes /= 1000;
		i++;
	}
	format_number(bytes, 4, number, sizeof(number));
	snprintf(out, SIZE_TEXT_MAX, "%s %s", number, units[i]);
}

void format_rate(double per_second, char out[RATE_TEXT_MAX])
{
	static const struct unit units[] = {
		{ "s", 1 }, { "min", 60 }, { "h", 3600 }, { "day", 86400 }, { NULL, 0 },
	};
	char number[RATE_TEXT_MAX - 4];
	size_t i = 0;

	while (units[i + 1].name && per_second * units[i].factor < (i ? 0.9995 : 0.1))
		i++;
	format_number(per_second * units[i].factor, 7, number, sizeof(number));
	snprintf(out, RATE_TEXT_MAX, "%s/%s", number, units[i].name);
}
