/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A bit too many only costs a look-up, one too few would let a denied address in. So bits are set
 * here for every address that a prefix holds, and cleared with a new configuration only, or when no
 * rule is left.
 */
#include "dataplane/hints.h"

#include <stdbool.h>

static void set_word(uint64_t *word, uint64_t bits)
{
	__atomic_fetch_or(word, bits, __ATOMIC_RELEASE);
}

void hints_clear(uint64_t *hints)
{
	for (int word = 0; word < PREFIX_HINT_WORDS; word++)
		__atomic_store_n(&hints[word], 0, __ATOMIC_RELAXED);
}

/* Whether all of IPv4, which is ::ffff:0:0/96, lies within the prefix. */
static bool holds_all_of_v4(const struct prefix_key *key)
{
	union address v4 = { .byte = { [10] = 0xff, [11] = 0xff } };
	union address prefix = prefix_key_address(key);

	if (key->bits > ADDRESS_V4_OFFSET)
		return false;
	v4.half[0] &= address_mask(key->bits);
	v4.half[1] &= address_mask(key->bits > 64 ? key->bits - 64 : 0);
	return v4.half[0] == prefix.half[0] && v4.half[1] == prefix.half[1];
}

uint32_t hints_add(uint64_t *hints, const struct prefix_key *key)
{
	union address address = prefix_key_address(key);
	bool is_v4 = address_is_v4(&address) && key->bits >= ADDRESS_V4_OFFSET;
	uint32_t bits = is_v4 ? key->bits - ADDRESS_V4_OFFSET : PREFIX_HINT_BITS;
	uint32_t first = prefix_hint_of(&address), count = 1;

	if (bits < PREFIX_HINT_BITS)
		count = 1u << (PREFIX_HINT_BITS - bits);
	if (holds_all_of_v4(key)) {
		first = 0;
		count = 1u << PREFIX_HINT_BITS;
	}
	/* As many as a power of two, beginning at a multiple of that: they share no word, or fill
	 * it. */
	if (count < 64)
		set_word(&hints[first / 64], ((1ULL << count) - 1) << (first % 64));
	for (uint32_t word = first / 64; count >= 64; word++, count -= 64)
		set_word(&hints[word], ~0ULL);
	return !is_v4 && key->bits < PREFIX_HINT_V6_BITS ? CONFIG_SHORT_PREFIXES : 0;
}
