/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Hints of prefixes: no address that lies in a prefix is without its hint, and no more hints are
 * set than the prefix needs.
 */
#include "test.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "dataplane/hints.h"

enum { ROUNDS = 2000, ADDRESSES = 50 };

static uint64_t hints[PREFIX_HINT_WORDS];

static unsigned count_set(void)
{
	unsigned count = 0;

	for (int word = 0; word < PREFIX_HINT_WORDS; word++)
		count += (unsigned)__builtin_popcountll(hints[word]);
	return count;
}

static bool is_hinted(const union address *address)
{
	uint32_t hint = prefix_hint_of(address);

	return hints[hint / 64] >> (hint % 64) & 1;
}

static uint32_t add(const char *prefix)
{
	struct prefix_key key;
	union address address;
	uint32_t bits;

	assert_int_equal(parse_prefix(prefix, &address, &bits), 0);
	key = prefix_key_of(&address, bits);
	return hints_add(hints, &key);
}

static void a_prefix_sets_as_many_hints_as_it_needs(void **state)
{
	static const struct {
		const char *name; /* the prefix */
		unsigned hints;
		bool is_short;
		const char *within, *beside; /* NULL: not asked */
	} rows[] = {
		{ "198.51.100.7/32", 1, false, "198.51.100.7", "198.51.104.7" },
		{ "198.51.100.0/24", 1, false, "198.51.100.255", "198.51.99.255" },
		{ "198.51.100.0/22", 1, false, "198.51.103.255", "198.51.104.0" },
		{ "198.51.96.0/21", 2, false, "198.51.103.255", "198.51.104.0" },
		{ "198.51.0.0/17", 32, false, "198.51.127.255", "198.51.128.0" },
		{ "198.51.0.0/16", 64, false, "198.51.255.255", "198.52.0.0" },
		{ "198.50.0.0/15", 128, false, "198.51.255.255", "198.49.255.255" },
		{ "10.0.0.0/8", 16384, false, "10.255.255.255", "11.0.0.0" },
		{ "0.0.0.0/1", 1 << 21, false, "127.255.255.255", "128.0.0.0" },
		{ "0.0.0.0/0", 1 << 22, false, "255.255.255.255", NULL },
		{ "2001:db8:1:2::7/128", 1, false, "2001:db8:1:2::7", "2001:db8:2:2::7" },
		{ "2001:db8:1::/48", 1, false, "2001:db8:1:ffff::1", "2001:db8:2::1" },
		{ "2001:db8::/47", 1, true, NULL, NULL },
		{ "2000::/3", 1, true, NULL, NULL },
		{ "::ffff:10.0.0.0/104", 16384, false, "10.9.8.7", "11.0.0.0" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		union address address;
		uint32_t flags;

		hints_clear(hints);
		flags = add(rows[i].name);
		check_row_equal(&rows[i], flags, rows[i].is_short ? CONFIG_SHORT_PREFIXES : 0);
		check_row_equal(&rows[i], count_set(), rows[i].hints);
		if (rows[i].within) {
			assert_int_equal(parse_address(rows[i].within, &address), 0);
			check_row(&rows[i], is_hinted(&address));
		}
		if (rows[i].beside) {
			assert_int_equal(parse_address(rows[i].beside, &address), 0);
			check_row(&rows[i], !is_hinted(&address));
		}
	}
	hints_clear(hints);
	assert_int_equal(count_set(), 0);
}

static void fill(void *memory, size_t bytes)
{
	for (size_t at = 0; at < bytes; at++)
		((uint8_t *)memory)[at] = (uint8_t)rand();
}

/* Bits of one up to a length, of the other from there on. */
static union address join(const union address *prefix, const union address *rest, uint32_t bits)
{
	const uint64_t mask[2] = { address_mask(bits), address_mask(bits > 64 ? bits - 64 : 0) };
	union address address;

	for (int half = 0; half < 2; half++)
		address.half[half] =
			(prefix->half[half] & mask[half]) | (rest->half[half] & ~mask[half]);
	return address;
}

static void no_address_in_a_prefix_is_without_its_hint(void **state)
{
	static const union address zero;

	(void)state;
	srand(20260401);
	hints_clear(hints);
	for (int round = 0; round < ROUNDS; round++) {
		bool is_v4 = rand() % 2;
		union address base = { .byte = { [10] = 0xff, [11] = 0xff } };
		uint32_t bits =
			is_v4 ? ADDRESS_V4_OFFSET + (uint32_t)rand() % 33 : (uint32_t)rand() % 129;
		struct prefix_key key;
		uint32_t flags;

		fill(is_v4 ? &base.byte[12] : base.byte, is_v4 ? 4 : 16);
		/* Now and then a prefix that all of IPv4 lies in, or nearly. */
		if (!is_v4 && rand() % 3 == 0)
			memset(base.byte, 0, 10);
		base = join(&base, &zero, bits);
		key = prefix_key_of(&base, bits);
		if (round % 20 == 0)
			hints_clear(hints);
		flags = hints_add(hints, &key);
		for (int at = 0; at < ADDRESSES; at++) {
			union address rest = { .byte = { [10] = 0xff, [11] = 0xff } }, address;

			fill(rand() % 2 ? rest.byte : &rest.byte[12], 4);
			if (rand() % 2)
				fill(rest.byte, sizeof(rest));
			address = join(&base, &rest, bits);
			if (!is_hinted(&address) &&
			    (address_is_v4(&address) || !(flags & CONFIG_SHORT_PREFIXES)))
				fail_msg("round %d: an address in a prefix of %u bits has no hint",
					 round, bits);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_prefix_sets_as_many_hints_as_it_needs),
		cmocka_unit_test(no_address_in_a_prefix_is_without_its_hint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
