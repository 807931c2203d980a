/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SipHash over byte strings, with the rounds of include/sluice/siphash.h. Words are read
 * little-endian whatever the machine is, since hashes stand in maps that outlive the process.
 */
#include "base/hash.h"

#include <endian.h>
#include <string.h>

static void rounds(__u64 v[4], int count)
{
	while (count--)
		siphash_round(v);
}

static void absorb(__u64 v[4], uint64_t word, int compression)
{
	v[3] ^= word;
	rounds(v, compression);
	v[0] ^= word;
}

/* What is left of the string after its whole words, and its length modulo 256 on top. */
static uint64_t last_word(const uint8_t *bytes, size_t count)
{
	uint64_t word = (uint64_t)count << 56;

	for (size_t i = 0; i < count % 8; i++)
		word |= (uint64_t)bytes[count - count % 8 + i] << 8 * i;
	return word;
}

/* Always inlined: each of its callers is compiled with its own number of rounds. */
static inline __attribute__((always_inline)) uint64_t siphash(const struct siphash_key *secret,
							      const uint8_t *bytes, size_t count,
							      int compression, int finalisation)
{
	__u64 v[4] = {
		secret->half[0] ^ 0x736f6d6570736575ULL,
		secret->half[1] ^ 0x646f72616e646f6dULL,
		secret->half[0] ^ 0x6c7967656e657261ULL,
		secret->half[1] ^ 0x7465646279746573ULL,
	};

	for (size_t at = 0; at + 8 <= count; at += 8) {
		uint64_t word;

		memcpy(&word, bytes + at, sizeof(word));
		absorb(v, le64toh(word), compression);
	}
	absorb(v, last_word(bytes, count), compression);
	v[2] ^= 0xff;
	rounds(v, finalisation);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t hash_place(const struct siphash_key *secret, const void *bytes, size_t count)
{
	return siphash(secret, bytes, count, 1, 3);
}

uint64_t hash_strong(const struct siphash_key *secret, const void *bytes, size_t count)
{
	return siphash(secret, bytes, count, 2, 4);
}

struct siphash_key hash_derive(const struct siphash_key *secret, uint64_t purpose)
{
	uint64_t half[2][2] = {
		{ htole64(purpose), htole64(0) },
		{ htole64(purpose), htole64(1) },
	};
	struct siphash_key derived = { {
		hash_strong(secret, half[0], sizeof(half[0])),
		hash_strong(secret, half[1], sizeof(half[1])),
	} };

	return derived;
}

void hash_digest(const struct siphash_key *secret, const void *bytes, size_t count,
		 uint64_t digest[HASH_DIGEST_WORDS])
{
	for (uint64_t i = 0; i < HASH_DIGEST_WORDS; i++) {
		struct siphash_key key = hash_derive(secret, i);

		digest[i] = hash_strong(&key, bytes, count);
	}
}
