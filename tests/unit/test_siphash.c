/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * include/sluice/siphash.h against a second SipHash, written from the paper for messages of any
 * length and any number of rounds. That one is itself held to what has been published: the vectors
 * of SipHash-2-4 in the paper's appendix and in the reference code, and one of SipHash-1-3.
 */
#include "test.h"

#include <stdbool.h>
#include <string.h>

#include <sluice/siphash.h>

struct state {
	uint64_t a, b, c, d; /* v0 to v3 of the paper */
};

static uint64_t left(uint64_t x, unsigned bits)
{
	return (x << bits) | (x >> (64u - bits));
}

static void mix(struct state *s, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		s->a += s->b;
		s->b = left(s->b, 13);
		s->b ^= s->a;
		s->a = left(s->a, 32);

		s->c += s->d;
		s->d = left(s->d, 16);
		s->d ^= s->c;

		s->a += s->d;
		s->d = left(s->d, 21);
		s->d ^= s->a;

		s->c += s->b;
		s->b = left(s->b, 17);
		s->b ^= s->c;
		s->c = left(s->c, 32);
	}
}

static uint64_t little_endian(const uint8_t *bytes, size_t count)
{
	uint64_t value = 0;

	while (count--)
		value = value << 8 | bytes[count];
	return value;
}

/* "somepseudorandomlygeneratedbytes", as the paper has it, in four words. */
static struct state begin(uint64_t k0, uint64_t k1)
{
	static const char constant[] = "somepseudorandomlygeneratedbytes";
	uint64_t word[4];

	for (int i = 0; i < 4; i++) {
		word[i] = 0;
		for (int byte = 0; byte < 8; byte++)
			word[i] = word[i] << 8 | (uint8_t)constant[8 * i + byte];
	}
	return (struct state){ k0 ^ word[0], k1 ^ word[1], k0 ^ word[2], k1 ^ word[3] };
}

static uint64_t reference(int compression, int finalisation, const uint8_t key[16],
			  const uint8_t *message, size_t bytes)
{
	struct state s = begin(little_endian(key, 8), little_endian(key + 8, 8));
	size_t at = 0;
	bool last = false;

	while (!last) {
		size_t left_over = bytes - at;
		uint64_t word;

		last = left_over < 8;
		word = little_endian(message + at, last ? left_over : 8);
		if (last)
			word |= (uint64_t)(bytes & 0xff) << 56;
		s.d ^= word;
		mix(&s, compression);
		s.a ^= word;
		at += 8;
	}
	s.c ^= 0xff;
	mix(&s, finalisation);
	return s.a ^ s.b ^ s.c ^ s.d;
}

static const uint8_t counting[64] = {
	0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
	22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
	44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63,
};

static void the_reference_gives_the_published_answers(void **state)
{
	static const struct {
		const char *name;
		int compression;
		int finalisation;
		size_t bytes; /* of 00 01 02 …, under the key 00 to 0f */
		uint64_t hash;
	} rows[] = {
		{ "SipHash-2-4 of nothing", 2, 4, 0, 0x726fdb47dd0e0e31 },
		{ "SipHash-2-4 of one byte", 2, 4, 1, 0x74f839c593dc67fd },
		{ "SipHash-2-4 of two bytes", 2, 4, 2, 0x0d6c8009d9a94f5a },
		{ "SipHash-2-4 of eight bytes", 2, 4, 8, 0x93f5f5799a932462 },
		{ "SipHash-2-4 of the paper's fifteen bytes", 2, 4, 15, 0xa129ca6149be45e5 },
		{ "SipHash-1-3 of nothing", 1, 3, 0, 0xabac0158050fc4dc },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		check_row_equal(&rows[i],
				reference(rows[i].compression, rows[i].finalisation, counting,
					  counting, rows[i].bytes),
				rows[i].hash);
}

static uint64_t random_state;

/* splitmix64: the same draws in every run. */
static uint64_t draw(void)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static void put_u64(uint8_t *bytes, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
}

static void check_both(uint64_t k0, uint64_t k1, uint64_t first, uint64_t second)
{
	struct siphash_key key = { { k0, k1 } };
	uint8_t key_bytes[16], message[16];

	put_u64(key_bytes, k0);
	put_u64(key_bytes + 8, k1);
	put_u64(message, first);
	put_u64(message + 8, second);
	assert_true(siphash_16(&key, first, second) == reference(1, 3, key_bytes, message, 16));
}

static void sixteen_bytes_hash_as_the_reference_has_it(void **state)
{
	(void)state;
	random_state = 1;
	check_both(0, 0, 0, 0);
	check_both(~0ULL, ~0ULL, ~0ULL, ~0ULL);
	check_both(0x0706050403020100, 0x0f0e0d0c0b0a0908, 0x0706050403020100, 0x0f0e0d0c0b0a0908);
	for (int i = 0; i < 100000; i++)
		check_both(draw(), draw(), draw(), draw());
}

/* Each bit of key and message turns about half of the bits of the hash. */
static void every_bit_of_key_and_message_counts(void **state)
{
	enum { DRAWS = 2000 };

	(void)state;
	random_state = 2;
	for (int bit = 0; bit < 256; bit++) {
		int turned = 0;

		for (int i = 0; i < DRAWS; i++) {
			uint64_t word[4] = { draw(), draw(), draw(), draw() };
			struct siphash_key key = { { word[0], word[1] } };
			uint64_t before = siphash_16(&key, word[2], word[3]);

			word[bit / 64] ^= 1ULL << bit % 64;
			key = (struct siphash_key){ { word[0], word[1] } };
			turned += __builtin_popcountll(before ^ siphash_16(&key, word[2], word[3]));
		}
		/* The mean is 32 a draw; a fiftieth of it is seven standard deviations. */
		assert_in_range(turned, 32 * DRAWS - 32 * DRAWS / 50, 32 * DRAWS + 32 * DRAWS / 50);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_reference_gives_the_published_answers),
		cmocka_unit_test(sixteen_bytes_hash_as_the_reference_has_it),
		cmocka_unit_test(every_bit_of_key_and_message_counts),
	};

	return cmocka_run_group_tests_name("siphash", tests, NULL, NULL);
}
