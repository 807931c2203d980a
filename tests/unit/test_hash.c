/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * base/hash.h against what has been published: all 64 vectors of SipHash-2-4 that come with the
 * reference implementation, those of SipHash-1-3 that are known, and siphash_16() of the kernel's
 * half, which is SipHash-1-3 too.
 */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* The key 00 to 0f of all published vectors. */
static const struct siphash_key counting_key = { { 0x0706050403020100, 0x0f0e0d0c0b0a0908 } };

/* SipHash-2-4 of nothing, 00, 00 01, 00 01 02, … as numbers: vectors.h of the reference has their
 * bytes, lowest first. */
static const uint64_t siphash_2_4[] = {
	0x726fdb47dd0e0e31, 0x74f839c593dc67fd, 0x0d6c8009d9a94f5a, 0x85676696d7fb7e2d,
	0xcf2794e0277187b7, 0x18765564cd99a68d, 0xcbc9466e58fee3ce, 0xab0200f58b01d137,
	0x93f5f5799a932462, 0x9e0082df0ba9e4b0, 0x7a5dbbc594ddb9f3, 0xf4b32f46226bada7,
	0x751e8fbc860ee5fb, 0x14ea5627c0843d90, 0xf723ca908e7af2ee, 0xa129ca6149be45e5,
	0x3f2acc7f57c29bdb, 0x699ae9f52cbe4794, 0x4bc1b3f0968dd39c, 0xbb6dc91da77961bd,
	0xbed65cf21aa2ee98, 0xd0f2cbb02e3b67c7, 0x93536795e3a33e88, 0xa80c038ccd5ccec8,
	0xb8ad50c6f649af94, 0xbce192de8a85b8ea, 0x17d835b85bbb15f3, 0x2f2e6163076bcfad,
	0xde4daaaca71dc9a5, 0xa6a2506687956571, 0xad87a3535c49ef28, 0x32d892fad841c342,
	0x7127512f72f27cce, 0xa7f32346f95978e3, 0x12e0b01abb051238, 0x15e034d40fa197ae,
	0x314dffbe0815a3b4, 0x027990f029623981, 0xcadcd4e59ef40c4d, 0x9abfd8766a33735c,
	0x0e3ea96b5304a7d0, 0xad0c42d6fc585992, 0x187306c89bc215a9, 0xd4a60abcf3792b95,
	0xf935451de4f21df2, 0xa9538f0419755787, 0xdb9acddff56ca510, 0xd06c98cd5c0975eb,
	0xe612a3cb9ecba951, 0xc766e62cfcadaf96, 0xee64435a9752fe72, 0xa192d576b245165a,
	0x0a8787bf8ecb74b2, 0x81b3e73d20b49b6f, 0x7fa8220ba3b2ecea, 0x245731c13ca42499,
	0xb78dbfaf3a8d83bd, 0xea1ad565322a1a0b, 0x60e61c23a3795013, 0x6606d7e446282b93,
	0x6ca4ecb15c5f91e1, 0x9f626da15c9625f3, 0xe51b38608ef25f57, 0x958a324ceb064572,
};

static void fill_counting(uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		bytes[i] = (uint8_t)i;
}

static void siphash_2_4_gives_the_published_answers(void **state)
{
	uint8_t message[COUNT_OF(siphash_2_4)];

	(void)state;
	fill_counting(message, sizeof(message));
	for (size_t count = 0; count < COUNT_OF(siphash_2_4); count++)
		assert_int_equal(hash_strong(&counting_key, message, count), siphash_2_4[count]);
}

static void siphash_1_3_gives_the_published_answers(void **state)
{
	static const struct {
		const char *name;
		size_t count;
		uint64_t hash;
	} rows[] = {
		{ "of nothing", 0, 0xabac0158050fc4dc },
		{ "of one byte", 1, 0xc9f49bf37d57ca93 },
		{ "of two bytes", 2, 0x82cb9b024dc7d44d },
		{ "of three bytes", 3, 0x8bf80ab8e7ddf7fb },
	};
	uint8_t message[8];

	(void)state;
	fill_counting(message, sizeof(message));
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		check_row_equal(&rows[i], hash_place(&counting_key, message, rows[i].count),
				rows[i].hash);
}

static void sixteen_bytes_hash_as_in_the_kernel(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		uint64_t words[2] = { i * 0x9e3779b97f4a7c15, ~i * 0xbf58476d1ce4e5b9 };
		struct siphash_key key = { { words[1] ^ i, words[0] + i } };

		assert_int_equal(hash_place(&key, words, sizeof(words)),
				 siphash_16(&key, words[0], words[1]));
	}
}

static void alignment_of_the_bytes_does_not_matter(void **state)
{
	uint8_t message[80];

	(void)state;
	for (size_t offset = 0; offset < 8; offset++) {
		fill_counting(message + offset, 64);
		for (size_t count = 0; count < COUNT_OF(siphash_2_4); count++)
			assert_int_equal(hash_strong(&counting_key, message + offset, count),
					 siphash_2_4[count]);
	}
}

static void purposes_have_keys_of_their_own(void **state)
{
	struct siphash_key keys[16];

	(void)state;
	for (uint64_t i = 0; i < COUNT_OF(keys); i++) {
		keys[i] = hash_derive(&counting_key, i);
		assert_int_not_equal(keys[i].half[0], keys[i].half[1]);
		for (uint64_t j = 0; j < i; j++)
			assert_memory_not_equal(&keys[i], &keys[j], sizeof(keys[i]));
	}
}

/* Wherever one bit of the message turns, about half of the digest's bits turn. */
static void every_byte_counts_in_a_digest(void **state)
{
	enum { BYTES = 65536, STEP = 127 };

	uint8_t *message = calloc(1, BYTES);
	uint64_t plain[HASH_DIGEST_WORDS], digest[HASH_DIGEST_WORDS];

	(void)state;
	assert_non_null(message);
	hash_digest(&counting_key, message, BYTES, plain);
	for (size_t at = 0; at < BYTES; at += at < 300 || at + 300 > BYTES ? 1 : STEP) {
		int turned = 0;

		message[at] ^= (uint8_t)(1u << at % 8);
		hash_digest(&counting_key, message, BYTES, digest);
		message[at] ^= (uint8_t)(1u << at % 8);
		for (int i = 0; i < HASH_DIGEST_WORDS; i++)
			turned += __builtin_popcountll(plain[i] ^ digest[i]);
		assert_in_range(turned, 64, 192);
	}
	free(message);
}

static void digests_of_different_lengths_differ(void **state)
{
	uint8_t zeros[600] = { 0 };
	uint64_t digest[COUNT_OF(zeros)][HASH_DIGEST_WORDS];

	(void)state;
	for (size_t count = 0; count < sizeof(zeros); count++) {
		hash_digest(&counting_key, zeros, count, digest[count]);
		for (size_t shorter = 0; shorter < count; shorter++)
			assert_memory_not_equal(digest[count], digest[shorter], sizeof(*digest));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(siphash_2_4_gives_the_published_answers),
		cmocka_unit_test(siphash_1_3_gives_the_published_answers),
		cmocka_unit_test(sixteen_bytes_hash_as_in_the_kernel),
		cmocka_unit_test(alignment_of_the_bytes_does_not_matter),
		cmocka_unit_test(purposes_have_keys_of_their_own),
		cmocka_unit_test(every_byte_counts_in_a_digest),
		cmocka_unit_test(digests_of_different_lengths_differ),
	};

	return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
