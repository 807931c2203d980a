/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SipHash-1-3 of sixteen bytes (Aumasson and Bernstein, 2012), little-endian words in, one word
 * out. Keyed, so that a stranger who chooses his addresses cannot choose where they land. One
 * compression round and three at the end are what hash tables use; this is no message code.
 */
#ifndef SLUICE_SIPHASH_H
#define SLUICE_SIPHASH_H

#include "types.h"

struct siphash_key {
	__u64 half[2];
};

SLUICE_INLINE __u64 siphash_rotate(__u64 value, int bits)
{
	return value << bits | value >> (64 - bits);
}

SLUICE_INLINE void siphash_round(__u64 v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = siphash_rotate(v[1], 13) ^ v[0];
	v[3] = siphash_rotate(v[3], 16) ^ v[2];
	v[0] = siphash_rotate(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = siphash_rotate(v[1], 17) ^ v[2];
	v[3] = siphash_rotate(v[3], 21) ^ v[0];
	v[2] = siphash_rotate(v[2], 32);
}

SLUICE_INLINE void siphash_word(__u64 v[4], __u64 word)
{
	v[3] ^= word;
	siphash_round(v);
	v[0] ^= word;
}

SLUICE_INLINE __u64 siphash_16(const struct siphash_key *key, __u64 first, __u64 second)
{
	__u64 v[4] = {
		key->half[0] ^ 0x736f6d6570736575ULL,
		key->half[1] ^ 0x646f72616e646f6dULL,
		key->half[0] ^ 0x6c7967656e657261ULL,
		key->half[1] ^ 0x7465646279746573ULL,
	};

	siphash_word(v, first);
	siphash_word(v, second);
	siphash_word(v, 16ULL << 56); /* the length closes the message */
	v[2] ^= 0xff;
	siphash_round(v);
	siphash_round(v);
	siphash_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
