/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which addresses are one client, and where the buckets of a client lie. */
#include "test.h"

#include <stdbool.h>
#include <string.h>
#include <arpa/inet.h>

#include <sluice/abi.h>

static union address address_of(const char *text)
{
	union address address = {};

	if (inet_pton(AF_INET, text, address.byte + 12) == 1)
		address.byte[10] = address.byte[11] = 0xff;
	else
		assert_int_equal(inet_pton(AF_INET6, text, address.byte), 1);
	return address;
}

static void an_address_is_kept_under_the_key_of_its_client(void **state)
{
	static const struct {
		const char *name; /* the address too */
		uint32_t ipv6_prefix;
		const char *key;
	} rows[] = {
		{ "192.0.2.1", 64, "192.0.2.1" },
		{ "192.0.2.1", 48, "192.0.2.1" },
		{ "0.0.0.0", 64, "0.0.0.0" },
		{ "255.255.255.255", 128, "255.255.255.255" },
		{ "::ffff:192.0.2.1", 64, "192.0.2.1" },
		{ "::fffe:192.0.2.1", 64, "::" },
		{ "::1:ffff:192.0.2.1", 64, "::" },
		{ "1::ffff:192.0.2.1", 64, "1::" },
		{ "2001:db8:1:2:3:4:5:6", 64, "2001:db8:1:2::" },
		{ "2001:db8:1:2:3:4:5:6", 48, "2001:db8:1::" },
		{ "2001:db8:1:2ff:3:4:5:6", 56, "2001:db8:1:200::" },
		{ "2001:db8:1:2:ffff:4:5:6", 65, "2001:db8:1:2:8000::" },
		{ "2001:db8:1:2:3:4:5:6", 96, "2001:db8:1:2:3:4::" },
		{ "2001:db8:1:2:3:4:5:7", 127, "2001:db8:1:2:3:4:5:6" },
		{ "2001:db8:1:2:3:4:5:7", 128, "2001:db8:1:2:3:4:5:7" },
		{ "fe80::1", 64, "fe80::1" },
		{ "febf:ffff::1", 48, "febf:ffff::1" },
		{ "fec0::1", 64, "fec0::" },
		{ "fe7f::1", 64, "fe7f::" },
		{ "::1", 64, "::" },
		{ "::", 64, "::" },
		{ "ff02::1", 64, "ff02::" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		union address address = address_of(rows[i].name);
		union address wanted = address_of(rows[i].key);
		union address key = address_key(&address, rows[i].ipv6_prefix);

		check_row(&rows[i], memcmp(&key, &wanted, sizeof(key)) == 0);
		key = address_key(&key, rows[i].ipv6_prefix);
		check_row(&rows[i], memcmp(&key, &wanted, sizeof(key)) == 0);
	}
}

/* Every length against a mask made bit by bit. */
static void an_ipv6_key_keeps_exactly_the_bits_of_the_prefix(void **state)
{
	union address all;

	(void)state;
	memset(&all, 0xff, sizeof(all));
	for (uint32_t bits = 48; bits <= 128; bits++) {
		union address key = address_key(&all, bits);

		for (uint32_t bit = 0; bit < 128; bit++)
			assert_int_equal(key.byte[bit / 8] >> (7 - bit % 8) & 1, bit < bits);
	}
}

static void a_place_lies_within_the_table(void **state)
{
	const struct siphash_key secret = { { 1, 2 } };
	union address address = address_of("10.0.0.0");
	uint32_t ways = 0;

	(void)state;
	for (uint32_t number = 0; number < 100000; number++) {
		struct place place;

		address.word[3] = number;
		place = key_place(&secret, &address, IP_SETS - 1);
		assert_true(place.set < IP_SETS);
		assert_true(place.way < SET_WORDS);
		assert_true(place.tag <= WORD_TAG_MASK);
		ways |= 1u << place.way;
	}
	assert_int_equal(ways, 0xff);
}

/* Neighbours, as a scan or a botnet in one network has them, are as evenly spread as drawn lots. Of
 * 2^20 in 2^17 sets eight are expected in each, and thirty in any under one secret in 5000. */
static void neighbouring_addresses_spread_over_the_sets(void **state)
{
	static uint8_t load[IP_SETS];
	const struct siphash_key secret = { { 3, 4 } };
	union address address = address_of("10.0.0.0");

	(void)state;
	for (uint32_t number = 0; number < 8 * IP_SETS; number++) {
		address.word[3] = htonl(0x0a000000 + number);
		load[key_place(&secret, &address, IP_SETS - 1).set]++;
	}
	for (uint32_t set = 0; set < IP_SETS; set++)
		assert_true(load[set] < 30);
}

static void the_place_of_an_address_depends_on_the_secret(void **state)
{
	union address address = address_of("192.0.2.1");
	uint32_t same = 0;

	(void)state;
	for (uint64_t number = 0; number < 1000; number++) {
		const struct siphash_key one = { { number, 0 } }, other = { { number, 1 } };

		same += key_place(&one, &address, IP_SETS - 1).set ==
			key_place(&other, &address, IP_SETS - 1).set;
	}
	assert_true(same < 10);
}

/* Or two meters would share a word, or a bucket be taken for an empty word. Of every tag there is.
 */
static void the_tags_of_an_addresss_meters_differ_and_are_never_0(void **state)
{
	(void)state;
	for (uint32_t base = 0; base <= WORD_TAG_MASK; base++) {
		const struct place place = { .tag = base };

		for (uint32_t meter = 0; meter < METERS; meter++) {
			uint32_t tag = place_tag(&place, meter);

			assert_true(tag != 0 && tag <= WORD_TAG_MASK);
			for (uint32_t other = 0; other < meter; other++)
				assert_true(place_tag(&place, other) != tag);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_is_kept_under_the_key_of_its_client),
		cmocka_unit_test(an_ipv6_key_keeps_exactly_the_bits_of_the_prefix),
		cmocka_unit_test(a_place_lies_within_the_table),
		cmocka_unit_test(neighbouring_addresses_spread_over_the_sets),
		cmocka_unit_test(the_place_of_an_address_depends_on_the_secret),
		cmocka_unit_test(the_tags_of_an_addresss_meters_differ_and_are_never_0),
	};

	return cmocka_run_group_tests_name("key", tests, NULL, NULL);
}
