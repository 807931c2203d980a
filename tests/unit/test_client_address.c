/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whose request it is: every row of the rules about X-Forwarded-For, and the grammar of an entry.
 */
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/client_address.h"
#include "base/parse.h"

enum { VALUES_MAX = 4 };

static const struct resolve_row {
	const char *name;
	const char *peer;    /* NULL: 10.0.0.9 */
	const char *trusted; /* NULL: 10.0.0.0/8; "": none */
	const char *value[VALUES_MAX];
	const char *client; /* NULL: an error */
} resolve_rows[] = {
	{ "nobody trusted", "1.2.3.4", "", { "9.9.9.9" }, "1.2.3.4" },
	{ "peer not trusted", "192.168.1.1", NULL, { "1.2.3.4" }, "192.168.1.1" },
	{ "peer not trusted, garbage", "192.168.1.1", NULL, { "garbage" }, "192.168.1.1" },
	{ "one entry", NULL, NULL, { "1.2.3.4" }, "1.2.3.4" },
	{ "one proxy more", NULL, NULL, { "1.2.3.4, 10.0.0.7" }, "1.2.3.4" },
	{ "forged", NULL, NULL, { "6.6.6.6, 1.2.3.4, 10.0.0.7" }, "1.2.3.4" },
	{ "forged garbage", NULL, NULL, { "garbage, 6.6.6.6, 1.2.3.4, 10.0.0.7" }, "1.2.3.4" },
	{ "forged bad port", NULL, NULL, { "1.2.3.4:abc, 1.2.3.4, 10.0.0.7" }, "1.2.3.4" },
	{ "forged trusted", NULL, NULL, { "1.2.3.4, 10.0.0.5, 6.6.6.6, 10.0.0.7" }, "6.6.6.6" },
	{ "all trusted", NULL, NULL, { "10.0.0.2, 10.0.0.7" }, "10.0.0.2" },
	{ "garbage last", NULL, NULL, { "1.2.3.4, garbage" }, NULL },
	{ "garbage before a proxy", NULL, NULL, { "1.2.3.4, garbage, 10.0.0.7" }, NULL },
	{ "absent", NULL, NULL, { NULL }, "10.0.0.9" },
	{ "empty", NULL, NULL, { "" }, "10.0.0.9" },
	{ "only separators", NULL, NULL, { " , " }, "10.0.0.9" },
	{ "only separators in lines", NULL, NULL, { ",", " ", ",,\t," }, "10.0.0.9" },
	{ "two lines", NULL, NULL, { "6.6.6.6", "1.2.3.4" }, "1.2.3.4" },
	{ "two lines, the last a proxy", NULL, NULL, { "1.2.3.4", "10.0.0.7" }, "1.2.3.4" },
	{ "an empty line between", NULL, NULL, { "1.2.3.4", "", "10.0.0.7" }, "1.2.3.4" },
	{ "lines all trusted", NULL, NULL, { "10.0.0.1", ",10.0.0.2", "10.0.0.3," }, "10.0.0.1" },
	{ "mapped peer", "::ffff:10.0.0.9", NULL, { NULL }, "10.0.0.9" },
	{ "mapped peer is trusted", "::ffff:10.0.0.9", NULL, { "1.2.3.4" }, "1.2.3.4" },
	{ "mapped entry", NULL, NULL, { "::ffff:1.2.3.4" }, "1.2.3.4" },
	{ "mapped entry is trusted", NULL, NULL, { "::ffff:10.0.0.7, 6.6.6.6" }, "6.6.6.6" },
	{ "mapped proxy", NULL, NULL, { "6.6.6.6, ::ffff:10.0.0.7" }, "6.6.6.6" },
	{ "blanks", NULL, NULL, { " 1.2.3.4 ,10.0.0.7" }, "1.2.3.4" },
	{ "tabs", NULL, NULL, { "\t1.2.3.4\t,\t10.0.0.7" }, "1.2.3.4" },
	{ "port", NULL, NULL, { "1.2.3.4:5678" }, "1.2.3.4" },
	{ "port 0", NULL, NULL, { "1.2.3.4:0" }, "1.2.3.4" },
	{ "port 65535", NULL, NULL, { "1.2.3.4:65535" }, "1.2.3.4" },
	{ "IPv6 with a port", NULL, NULL, { "[2001:db8::1]:443" }, "2001:db8::1" },
	{ "IPv6 in brackets", NULL, NULL, { "[2001:db8::1]" }, "2001:db8::1" },
	{ "IPv6", NULL, NULL, { "2001:db8::1" }, "2001:db8::1" },
	{ "the longest",
	  NULL,
	  NULL,
	  { "[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255]:65535" },
	  "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
	{ "mapped in brackets", NULL, NULL, { "[::ffff:1.2.3.4]:1" }, "1.2.3.4" },
	{ "port of letters", NULL, NULL, { "1.2.3.4:abc" }, NULL },
	{ "port too large", NULL, NULL, { "1.2.3.4:99999" }, NULL },
	{ "port 65536", NULL, NULL, { "1.2.3.4:65536" }, NULL },
	{ "port with a sign", NULL, NULL, { "1.2.3.4:+80" }, NULL },
	{ "port missing", NULL, NULL, { "1.2.3.4:" }, NULL },
	{ "two ports", NULL, NULL, { "1.2.3.4:5678:9" }, NULL },
	{ "IPv6 port of letters", NULL, NULL, { "[2001:db8::1]:x" }, NULL },
	{ "IPv6 port too large", NULL, NULL, { "[2001:db8::1]:65536" }, NULL },
	{ "IPv6 port missing", NULL, NULL, { "[2001:db8::1]:" }, NULL },
	{ "bracket open", NULL, NULL, { "[::1" }, NULL },
	{ "bracket shut", NULL, NULL, { "::1]" }, NULL },
	{ "brackets empty", NULL, NULL, { "[]" }, NULL },
	{ "brackets twice", NULL, NULL, { "[[::1]]" }, NULL },
	{ "after the bracket", NULL, NULL, { "[::1]x" }, NULL },
	{ "colon in no address", NULL, NULL, { "[:]" }, NULL },
	{ "IPv4 in brackets", NULL, NULL, { "[1.2.3.4]" }, NULL },
	{ "IPv4 in brackets with a port", NULL, NULL, { "[1.2.3.4]:80" }, NULL },
	{ "zone", NULL, NULL, { "fe80::1%eth0" }, NULL },
	{ "zone in brackets", NULL, NULL, { "[fe80::1%1]:80" }, NULL },
	{ "shorthand", NULL, NULL, { "10" }, NULL },
	{ "shorter", NULL, NULL, { "10.1" }, NULL },
	{ "hexadecimal", NULL, NULL, { "0x7f.1" }, NULL },
	{ "octal", NULL, NULL, { "012.0.0.1" }, NULL },
	{ "large number", NULL, NULL, { "256.0.0.1" }, NULL },
	{ "blank within", NULL, NULL, { "1.2.3 .4" }, NULL },
	{ "quotes", NULL, NULL, { "\"1.2.3.4\"" }, NULL },
	{ "the word unknown", NULL, NULL, { "unknown" }, NULL },
	{ "line end", NULL, NULL, { "1.2.3.4\r" }, NULL },
	{ "byte 0xff", NULL, NULL, { "\xff" }, NULL },
	{ "too long",
	  NULL,
	  NULL,
	  { "1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.17.18.19.20.21.22.23.24.25.26.27" },
	  NULL },
	{ "IPv6 all trusted", "2001:db8::9", "2001:db8::/32", { "2001:db8::1" }, "2001:db8::1" },
	{ "IPv6 client",
	  "2001:db8::9",
	  "2001:db8::/32",
	  { "2001:db9::1,2001:db8::3" },
	  "2001:db9::1" },
	{ "one proxy by address", "192.0.2.1", "192.0.2.1", { "192.0.2.2" }, "192.0.2.2" },
	{ "everyone is trusted", "192.0.2.1", "0.0.0.0/0", { "garbage, 1.2.3.4" }, NULL },
};

static int resolve(const struct resolve_row *row, union address *out)
{
	const char *prefix = row->trusted ? row->trusted : "10.0.0.0/8";
	struct forwarded_for values[VALUES_MAX];
	struct address_prefix trusted;
	union address peer;
	size_t count = 0;

	assert_int_equal(parse_address(row->peer ? row->peer : "10.0.0.9", &peer), 0);
	if (prefix[0])
		assert_int_equal(parse_prefix(prefix, &trusted.address, &trusted.bits), 0);
	for (; count < VALUES_MAX && row->value[count]; count++)
		values[count] =
			(struct forwarded_for){ row->value[count], strlen(row->value[count]) };
	return client_address_resolve(&peer, &trusted, prefix[0] != '\0', values, count, out);
}

static void the_first_that_is_not_trusted_is_the_client(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(resolve_rows); i++) {
		const struct resolve_row *row = &resolve_rows[i];
		union address client, untouched;
		char text[ADDRESS_TEXT_MAX];

		memset(&client, 0x5a, sizeof(client));
		untouched = client;
		check_row_equal(row, resolve(row, &client), row->client ? 0 : -EINVAL);
		if (row->client) {
			format_address(&client, text);
			check_row_text(row, text, row->client);
		} else {
			check_row(row, memcmp(&client, &untouched, sizeof(client)) == 0);
		}
	}
}

/* Nothing is read beyond the length, and a zero byte ends nothing. */
static void values_are_bytes_and_not_strings(void **state)
{
	static const char bytes[] = "1.2.3.4\0, 10.0.0.7";
	struct address_prefix trusted;
	union address peer, client, wanted;
	struct forwarded_for value = { bytes, sizeof(bytes) - 1 };
	char *exact = malloc(7);

	(void)state;
	assert_non_null(exact);
	assert_int_equal(parse_address("10.0.0.9", &peer), 0);
	assert_int_equal(parse_prefix("10.0.0.0/8", &trusted.address, &trusted.bits), 0);
	assert_int_equal(client_address_resolve(&peer, &trusted, 1, &value, 1, &client), -EINVAL);
	memcpy(exact, "1.2.3.4", 7);
	value = (struct forwarded_for){ exact, 7 };
	assert_int_equal(client_address_resolve(&peer, &trusted, 1, &value, 1, &client), 0);
	assert_int_equal(parse_address("1.2.3.4", &wanted), 0);
	assert_memory_equal(&client, &wanted, sizeof(client));
	value = (struct forwarded_for){ NULL, 0 };
	assert_int_equal(client_address_resolve(&peer, &trusted, 1, &value, 1, &client), 0);
	assert_memory_equal(&client, &peer, sizeof(client));
	free(exact);
}

static void without_a_peer_there_is_no_client(void **state)
{
	struct forwarded_for value = { "1.2.3.4", 7 };
	union address client;

	(void)state;
	assert_int_equal(client_address_resolve(NULL, NULL, 0, &value, 1, &client), -EINVAL);
	assert_int_equal(client_address_resolve(NULL, NULL, 0, NULL, 0, &client), -EINVAL);
}

static const struct within_row {
	const char *name; /* the prefix */
	const char *inside, *outside;
} within_rows[] = {
	{ "10.0.0.0/8", "10.255.255.255", "11.0.0.0" },
	{ "10.0.0.0/9", "10.127.255.255", "10.128.0.0" },
	{ "192.0.2.1/32", "192.0.2.1", "192.0.2.0" },
	{ "0.0.0.0/0", "255.255.255.255", "::1" },
	{ "2001:db8::/32", "2001:db8:ffff::", "2001:db9::" },
	{ "2001:db8::/64", "2001:db8::ffff:0:0:1", "2001:db8:0:1::" },
	{ "2001:db8::/65", "2001:db8::7fff:0:0:1", "2001:db8::8000:0:0:0" },
	{ "::1/128", "::1", "::2" },
};

static void a_prefix_holds_its_addresses_and_no_others(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(within_rows); i++) {
		const struct within_row *row = &within_rows[i];
		struct address_prefix prefix;
		union address inside, outside;

		check_row_equal(row, parse_prefix(row->name, &prefix.address, &prefix.bits), 0);
		check_row_equal(row, parse_address(row->inside, &inside), 0);
		check_row_equal(row, parse_address(row->outside, &outside), 0);
		check_row(row, address_is_within(&inside, &prefix));
		check_row(row, !address_is_within(&outside, &prefix));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_that_is_not_trusted_is_the_client),
		cmocka_unit_test(values_are_bytes_and_not_strings),
		cmocka_unit_test(without_a_peer_there_is_no_client),
		cmocka_unit_test(a_prefix_holds_its_addresses_and_no_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
