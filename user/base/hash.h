/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SipHash (Aumasson and Bernstein, 2012) of byte strings of any length: keyed, so that a stranger
 * who chooses the bytes cannot choose the hash. Its answers are the same on every machine. Pure
 * functions; thread safe.
 */
#ifndef SLUICE_BASE_HASH_H
#define SLUICE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include <sluice/siphash.h>

enum { HASH_DIGEST_WORDS = 4 };

/* SipHash-1-3: to find a place in a table, where a collision costs a comparison. */
uint64_t hash_place(const struct siphash_key *secret, const void *bytes, size_t count);

/* SipHash-2-4, the cautious one. */
uint64_t hash_strong(const struct siphash_key *secret, const void *bytes, size_t count);

/* A key of its own for each purpose, so that two hashes of one string tell nothing of each other.
 */
struct siphash_key hash_derive(const struct siphash_key *secret, uint64_t purpose);

/*
 * 256 bits that stand for the string itself: four SipHash-2-4 under keys of their own. Without the
 * secret nobody can aim at a collision, and 2^64 strings have one by chance with probability
 * 2^-129.
 */
void hash_digest(const struct siphash_key *secret, const void *bytes, size_t count,
		 uint64_t digest[HASH_DIGEST_WORDS]);

#endif
