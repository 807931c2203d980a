/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Each parser against texts it must take and texts it must not, and each formatter. */
#include "test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"

/* Rows are named by the text itself: the empty one reads as row "". */
static const struct number_row {
	const char *name;
	int err;
	double value;
} decimals[] = {
	{ "0", 0, 0 },
	{ "1", 0, 1 },
	{ "5000", 0, 5000 },
	{ "0.5", 0, 0.5 },
	{ "1e6", 0, 1e6 },
	{ "1.5E-3", 0, 1.5e-3 },
	{ "1e+2", 0, 100 },
	{ "1e308", 0, 1e308 },
	{ "1e309", -ERANGE, 0 },
	{ "1e999", -ERANGE, 0 },
	{ "1e99999999999", -ERANGE, 0 },
	{ "1e-999", -ERANGE, 0 },
	{ "1e-310", -ERANGE, 0 },
	{ "", -EINVAL, 0 },
	{ " 1", -EINVAL, 0 },
	{ "1 ", -EINVAL, 0 },
	{ "+1", -EINVAL, 0 },
	{ "-1", -EINVAL, 0 },
	{ "-0", -EINVAL, 0 },
	{ "01", -EINVAL, 0 },
	{ "00.5", -EINVAL, 0 },
	{ ".5", -EINVAL, 0 },
	{ "5.", -EINVAL, 0 },
	{ "1.e3", -EINVAL, 0 },
	{ "1e", -EINVAL, 0 },
	{ "1e+", -EINVAL, 0 },
	{ "1,5", -EINVAL, 0 },
	{ "0x10", -EINVAL, 0 },
	{ "1_000", -EINVAL, 0 },
	{ "nan", -EINVAL, 0 },
	{ "NaN", -EINVAL, 0 },
	{ ".inf", -EINVAL, 0 },
	{ "inf", -EINVAL, 0 },
	{ "infinity", -EINVAL, 0 },
	{ "1MB", -EINVAL, 0 },
	{ "1\n", -EINVAL, 0 },
}, sizes[] = {
	{ "1500", 0, 1500 },
	{ "1500B", 0, 1500 },
	{ "64KiB", 0, 65536 },
	{ "10MB", 0, 10e6 },
	{ "1.5GB", 0, 1.5e9 },
	{ "0.5B", 0, 0.5 },
	{ "1kB", 0, 1000 },
	{ "1KB", 0, 1000 },
	{ "2MiB", 0, 2097152 },
	{ "1GiB", 0, 1073741824 },
	{ "1TiB", 0, 1099511627776 },
	{ "1TB", 0, 1e12 },
	{ "1e3KB", 0, 1e6 },
	{ "1e308TB", -ERANGE, 0 },
	{ "1e999MB", -ERANGE, 0 },
	{ "1e999XB", -EINVAL, 0 },
	{ "1EB", -EINVAL, 0 },
	{ "10 MB", -EINVAL, 0 },
	{ "10M", -EINVAL, 0 },
	{ "10mb", -EINVAL, 0 },
	{ "10Mbit", -EINVAL, 0 },
	{ "10MB/s", -EINVAL, 0 },
	{ "MB", -EINVAL, 0 },
	{ "-1MB", -EINVAL, 0 },
	{ "", -EINVAL, 0 },
};

static void decimals_are_read_whole_or_not_at_all(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(decimals); i++) {
		const struct number_row *row = &decimals[i];
		double value = -77;

		check_row_equal(row, parse_decimal(row->name, &value), row->err);
		check_row(row, value == (row->err ? -77 : row->value));
	}
}

static void sizes_take_units_of_1000_and_of_1024(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		const struct number_row *row = &sizes[i];
		double value = -77;

		check_row_equal(row, parse_size(row->name, &value), row->err);
		check_row(row, value == (row->err ? -77 : row->value));
	}
}

static const struct whole_row {
	const char *name;
	int err;
	uint64_t value;
} integers[] = {
	{ "10", 0, 10 },
	{ "18446744073709551615", 0, UINT64_MAX },
	{ "9", -ERANGE, 0 },
	{ "18446744073709551616", -ERANGE, 0 },
	{ "99999999999999999999999999999999", -ERANGE, 0 },
	{ "", -EINVAL, 0 },
	{ "-10", -EINVAL, 0 },
	{ "+10", -EINVAL, 0 },
	{ " 10", -EINVAL, 0 },
	{ "10 ", -EINVAL, 0 },
	{ "010", -EINVAL, 0 },
	{ "0x10", -EINVAL, 0 },
	{ "1_0", -EINVAL, 0 },
	{ "1e1", -EINVAL, 0 },
	{ "10.0", -EINVAL, 0 },
}, whole_sizes[] = {
	{ "20MB", 0, 20000000 },
	{ "0.7KB", 0, 700 },
	{ "1.1KB", 0, 1100 },
	{ "0.001MB", 0, 1000 },
	{ "1.5KiB", 0, 1536 },
	{ "0", 0, 0 },
	{ "9007199254740993", 0, 9007199254740993 },
	{ "18446744073709551615", 0, UINT64_MAX },
	{ "18446744073709551616", -ERANGE, 0 },
	{ "16777216TiB", -ERANGE, 0 },
	{ "1.5", -EINVAL, 0 },
	{ "0.0001KB", -EINVAL, 0 },
	{ "ten", -EINVAL, 0 },
}, durations[] = {
	{ "1ns", 0, 1 },
	{ "5us", 0, 5000 },
	{ "250ms", 0, 250000000 },
	{ "60s", 0, 60000000000 },
	{ "1.5s", 0, 1500000000 },
	{ "5m", 0, 300000000000 },
	{ "1h", 0, 3600000000000 },
	{ "2d", 0, 172800000000000 },
	{ "0s", 0, 0 },
	{ "106751d", 0, 9223286400000000000 },
	{ "106752d", -ERANGE, 0 },
	{ "1e30d", -ERANGE, 0 },
	{ "60", -EINVAL, 0 },
	{ "s", -EINVAL, 0 },
	{ "1 s", -EINVAL, 0 },
	{ "1S", -EINVAL, 0 },
	{ "1min", -EINVAL, 0 },
	{ "1h30m", -EINVAL, 0 },
	{ "-1s", -EINVAL, 0 },
	{ "nans", -EINVAL, 0 },
	{ "0x1s", -EINVAL, 0 },
	{ "", -EINVAL, 0 },
};

static void integers_keep_to_their_range(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(integers); i++) {
		const struct whole_row *row = &integers[i];
		uint64_t value = 77;

		check_row_equal(row, parse_uint(row->name, 10, UINT64_MAX, &value), row->err);
		check_row_equal(row, value, row->err ? 77 : row->value);
	}
}

static void whole_sizes_refuse_parts_of_a_byte(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(whole_sizes); i++) {
		const struct whole_row *row = &whole_sizes[i];
		uint64_t value = 77;

		check_row_equal(row, parse_size_whole(row->name, &value), row->err);
		check_row_equal(row, value, row->err ? 77 : row->value);
	}
}

static void durations_need_their_unit(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(durations); i++) {
		const struct whole_row *row = &durations[i];
		uint64_t value = 77;

		check_row_equal(row, parse_duration(row->name, &value), row->err);
		check_row_equal(row, value, row->err ? 77 : row->value);
	}
}

/* written: what the formatter makes of it; NULL: err is expected. */
static const struct text_row {
	const char *name;
	const char *written;
	int err;
	uint32_t bits;
} addresses[] = {
	{ "192.0.2.1", "192.0.2.1", 0, 0 },
	{ "0.0.0.0", "0.0.0.0", 0, 0 },
	{ "::ffff:192.0.2.1", "192.0.2.1", 0, 0 },
	{ "::ffff:c000:201", "192.0.2.1", 0, 0 },
	{ "2001:DB8:0::1", "2001:db8::1", 0, 0 },
	{ "::", "::", 0, 0 },
	{ "::1.2.3.4", "::1.2.3.4", 0, 0 },
	{ "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255",
	  "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 0, 0 },
	{ "", NULL, -EINVAL, 0 },
	{ "10.1", NULL, -EINVAL, 0 },
	{ "10", NULL, -EINVAL, 0 },
	{ "010.0.0.1", NULL, -EINVAL, 0 },
	{ "10.0.0.256", NULL, -EINVAL, 0 },
	{ "10.0.0.1 ", NULL, -EINVAL, 0 },
	{ " 10.0.0.1", NULL, -EINVAL, 0 },
	{ "10.0.0.1.2", NULL, -EINVAL, 0 },
	{ "0x0a.0.0.1", NULL, -EINVAL, 0 },
	{ "fe80::1%eth0", NULL, -EINVAL, 0 },
	{ "[::1]", NULL, -EINVAL, 0 },
	{ "1:2:3", NULL, -EINVAL, 0 },
	{ "::1::", NULL, -EINVAL, 0 },
	{ "localhost", NULL, -EINVAL, 0 },
}, prefixes[] = {
	{ "10.0.0.0/8", "10.0.0.0/8", 0, 104 },
	{ "10.0.0.1", "10.0.0.1/32", 0, 128 },
	{ "0.0.0.0/0", "0.0.0.0/0", 0, 96 },
	{ "10.128.0.0/9", "10.128.0.0/9", 0, 105 },
	{ "2001:db8::/32", "2001:db8::/32", 0, 32 },
	{ "2001:db8::1", "2001:db8::1/128", 0, 128 },
	{ "2000::/3", "2000::/3", 0, 3 },
	{ "fe80::/10", "fe80::/10", 0, 10 },
	{ "::ffff:10.0.0.0/104", "10.0.0.0/8", 0, 104 },
	{ "::ffff:0:0/96", "0.0.0.0/0", 0, 96 },
	{ "::/96", "::/96", 0, 96 },
	{ "2001:db8:0:0:1::/80", "2001:db8:0:0:1::/80", 0, 80 },
	{ "10.1.2.3/8", NULL, -EDOM, 0 },
	{ "10.0.0.1/31", NULL, -EDOM, 0 },
	{ "255.255.255.255/0", NULL, -EDOM, 0 },
	{ "2001:db8::1/64", NULL, -EDOM, 0 },
	{ "2001:db8:0:0:1::/64", NULL, -EDOM, 0 },
	{ "::/0", NULL, -EAFNOSUPPORT, 0 },
	{ "::/64", NULL, -EAFNOSUPPORT, 0 },
	{ "::/80", NULL, -EAFNOSUPPORT, 0 },
	{ "::ffff:0:0/95", NULL, -EDOM, 0 },
	{ "::fffe:0:0/95", NULL, -EAFNOSUPPORT, 0 },
	{ "10.0.0.0/33", NULL, -ERANGE, 0 },
	{ "2001:db8::/129", NULL, -ERANGE, 0 },
	{ "10.0.0.0/", NULL, -EINVAL, 0 },
	{ "10.0.0.0/08", NULL, -EINVAL, 0 },
	{ "10.0.0.0/-1", NULL, -EINVAL, 0 },
	{ "10.0.0.0/8/8", NULL, -EINVAL, 0 },
	{ "10.0.0.0/255.0.0.0", NULL, -EINVAL, 0 },
	{ "10.0.0.0 /8", NULL, -EINVAL, 0 },
	{ "10/8", NULL, -EINVAL, 0 },
	{ "/8", NULL, -EINVAL, 0 },
	{ "", NULL, -EINVAL, 0 },
	{ "00000000000000000000000000000000000000000000000001::/16", NULL, -EINVAL, 0 },
};

static void addresses_come_back_in_their_usual_form(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(addresses); i++) {
		const struct text_row *row = &addresses[i];
		union address address = { .half = { 7, 7 } };
		char text[ADDRESS_TEXT_MAX];

		check_row_equal(row, parse_address(row->name, &address), row->err);
		if (row->err) {
			check_row(row, address.half[0] == 7 && address.half[1] == 7);
			continue;
		}
		format_address(&address, text);
		check_row_text(row, text, row->written);
	}
}

static void ipv4_has_one_form_however_it_is_written(void **state)
{
	union address dotted, mapped;

	(void)state;
	assert_int_equal(parse_address("192.0.2.1", &dotted), 0);
	assert_int_equal(parse_address("::ffff:192.0.2.1", &mapped), 0);
	assert_memory_equal(&dotted, &mapped, sizeof(dotted));
	assert_true(address_is_v4(&dotted));
}

static void prefixes_count_their_bits_in_sixteen_bytes(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(prefixes); i++) {
		const struct text_row *row = &prefixes[i];
		union address address = { .half = { 7, 7 } };
		uint32_t bits = 77;
		char text[PREFIX_TEXT_MAX];

		check_row_equal(row, parse_prefix(row->name, &address, &bits), row->err);
		if (row->err) {
			check_row(row, address.half[0] == 7 && bits == 77);
			continue;
		}
		check_row_equal(row, bits, row->bits);
		format_prefix(&address, bits, text);
		check_row_text(row, text, row->written);
	}
}

static void loose_prefixes_say_what_was_meant(void **state)
{
	union address address;
	uint32_t bits;
	char text[PREFIX_TEXT_MAX];

	(void)state;
	assert_int_equal(parse_prefix_loose("10.1.2.3/8", &address, &bits), 0);
	format_prefix(&address, bits, text);
	assert_string_equal(text, "10.0.0.0/8");
	assert_int_equal(parse_prefix_loose("2001:db8:1:2:3::4/48", &address, &bits), 0);
	format_prefix(&address, bits, text);
	assert_string_equal(text, "2001:db8:1::/48");
	assert_int_equal(parse_prefix_loose("::1/0", &address, &bits), -EAFNOSUPPORT);
	assert_int_equal(parse_prefix_loose("10.1/8", &address, &bits), -EINVAL);
}

static const struct ports_row {
	const char *name;
	int err;
	struct port_range range;
} port_rows[] = {
	{ "all", 0, { PORTS_ALL, 0, 0 } },
	{ "icmp", 0, { PORTS_ICMP, 0, 0 } },
	{ "tcp/443", 0, { PORTS_TCP, 443, 443 } },
	{ "udp/4433-4440", 0, { PORTS_UDP, 4433, 4440 } },
	{ "tcp/1-65535", 0, { PORTS_TCP, 1, 65535 } },
	{ "tcp/80-80", 0, { PORTS_TCP, 80, 80 } },
	{ "tcp/0", -ERANGE, { 0 } },
	{ "tcp/65536", -ERANGE, { 0 } },
	{ "tcp/443-80", -ERANGE, { 0 } },
	{ "tcp/80-65536", -ERANGE, { 0 } },
	{ "tcp", -EINVAL, { 0 } },
	{ "tcp/", -EINVAL, { 0 } },
	{ "tcp/-", -EINVAL, { 0 } },
	{ "tcp/80-", -EINVAL, { 0 } },
	{ "tcp/-80", -EINVAL, { 0 } },
	{ "tcp/80-90-100", -EINVAL, { 0 } },
	{ "tcp/http", -EINVAL, { 0 } },
	{ "tcp/0443", -EINVAL, { 0 } },
	{ "tcp/99999999999", -EINVAL, { 0 } },
	{ "TCP/443", -EINVAL, { 0 } },
	{ "443/tcp", -EINVAL, { 0 } },
	{ "443", -EINVAL, { 0 } },
	{ "sctp/443", -EINVAL, { 0 } },
	{ "icmp/8", -EINVAL, { 0 } },
	{ "all ", -EINVAL, { 0 } },
	{ "", -EINVAL, { 0 } },
};

static void ports_go_from_1_to_65535(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(port_rows); i++) {
		const struct ports_row *row = &port_rows[i];
		struct port_range range = { PORTS_UDP, 7, 7 };

		check_row_equal(row, parse_ports(row->name, &range), row->err);
		check_row_equal(row, range.kind, row->err ? PORTS_UDP : row->range.kind);
		check_row_equal(row, range.first, row->err ? 7 : row->range.first);
		check_row_equal(row, range.last, row->err ? 7 : row->range.last);
	}
}

static const struct format_row {
	const char *name; /* what is expected */
	double value;
} duration_texts[] = {
	{ "0 ns", 0 },
	{ "1 ns", 1 },
	{ "999 ns", 999 },
	{ "1.5 us", 1500 },
	{ "250 ms", 250e6 },
	{ "1 s", 999.6e6 },
	{ "1.5 s", 1.5e9 },
	{ "60 s", 60e9 },
	{ "119 s", 119e9 },
	{ "2 min", 120e9 },
	{ "90 min", 90 * 60e9 },
	{ "2 h", 7200e9 },
	{ "47.5 h", 47.5 * 3600e9 },
	{ "26.1 days", 26.06 * 86400e9 },
	{ "213504 days", 18446744073709551615.0 * 0.99999999999 },
}, size_texts[] = {
	{ "0 B", 0 },
	{ "1500 B", 1500 },
	{ "65.54 kB", 65536 },
	{ "10 MB", 10e6 },
	{ "1 GB", 999.96e6 },
	{ "100 GB", 1e11 },
}, rate_texts[] = {
	{ "5000/s", 5000 },
	{ "0.5/s", 0.5 },
	{ "2/min", 2.0 / 60 },
	{ "12/h", 12.0 / 3600 },
	{ "1/day", 1.0 / 86400 },
	{ "100000000/s", 1e8 },
	{ "4999.983/s", 4999.983 },
};

static void values_are_written_for_people(void **state)
{
	char text[64];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(duration_texts); i++) {
		format_duration((uint64_t)duration_texts[i].value, text);
		check_row_text(&duration_texts[i], text, duration_texts[i].name);
	}
	for (size_t i = 0; i < COUNT_OF(size_texts); i++) {
		format_size(size_texts[i].value, text);
		check_row_text(&size_texts[i], text, size_texts[i].name);
	}
	for (size_t i = 0; i < COUNT_OF(rate_texts); i++) {
		format_rate(rate_texts[i].value, text);
		check_row_text(&rate_texts[i], text, rate_texts[i].name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decimals_are_read_whole_or_not_at_all),
		cmocka_unit_test(sizes_take_units_of_1000_and_of_1024),
		cmocka_unit_test(integers_keep_to_their_range),
		cmocka_unit_test(whole_sizes_refuse_parts_of_a_byte),
		cmocka_unit_test(durations_need_their_unit),
		cmocka_unit_test(addresses_come_back_in_their_usual_form),
		cmocka_unit_test(ipv4_has_one_form_however_it_is_written),
		cmocka_unit_test(prefixes_count_their_bits_in_sixteen_bytes),
		cmocka_unit_test(loose_prefixes_say_what_was_meant),
		cmocka_unit_test(ports_go_from_1_to_65535),
		cmocka_unit_test(values_are_written_for_people),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
