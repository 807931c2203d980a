/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * limit/buckets.c with a million keys: each has its own bucket, also when threads insert them at
 * once and when the table is as full as it gets, and the sweep gives all the room back. How long a
 * charge takes and what a key costs is printed; nothing depends on it.
 */
#include "test.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <sluice/slot.h>

#include "base/clock.h"
#include "limit/buckets.h"
#include "limit/build.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { KEYS = 1 << 16, SLOTS = 1 << 17, CHARGES = 100000 };
#else
enum { KEYS = 1000000, SLOTS = 1 << 21, CHARGES = 2000000 };
#endif

enum { THREADS_MAX = 2, KEY_MAX = 24, BURST = 2 };

static const struct siphash_key secret = { { 1, 2 } };
static struct bucket_slot *memory;

static struct buckets *buckets_of(size_t slots)
{
	struct buckets *buckets;

	memory = mmap(NULL, slots * sizeof(*memory), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(memory != MAP_FAILED);
	assert_int_equal(buckets_new(memory, slots, &secret, clock_monotonic_ns(), &buckets), 0);
	return buckets;
}

static void done(struct buckets *buckets)
{
	munmap(memory, buckets_room(buckets) * sizeof(*memory));
	buckets_free(buckets);
}

static enum bucket_answer charge(struct buckets *buckets, const struct gcra_limit *limit,
				 uint32_t number)
{
	char key[KEY_MAX];
	struct bucket_charge what = { .key = key, .hooks = limit, .hook_tokens = 1 };
	struct bucket_result result;

	memcpy(key, "tenant-", 7);
	memcpy(key + 7, &number, sizeof(number));
	what.key_bytes = 7 + sizeof(number);
	buckets_charge(buckets, &what, clock_monotonic_ns, &result);
	return result.answer;
}

struct caller {
	struct buckets *buckets;
	struct gcra_limit limit;
	pthread_t thread;
	uint32_t keys;
	uint64_t random_state;
	size_t admitted;
};

static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static struct gcra_limit limit_of(double rate, uint64_t burst)
{
	struct rate_limit wanted = { .rate = rate, .burst = burst };
	struct gcra_limit limit;
	uint64_t longest;

	assert_int_equal(limit_build(&wanted, BUCKET_WHOLE, &limit, &longest), 0);
	return limit;
}

static void *charge_all_in_turn(void *argument)
{
	struct caller *caller = argument;

	for (uint32_t key = 0; key < caller->keys; key++)
		caller->admitted +=
			charge(caller->buckets, &caller->limit, key) == BUCKETS_ADMITTED;
	return NULL;
}

static void *charge_at_random(void *argument)
{
	struct caller *caller = argument;

	for (int i = 0; i < CHARGES; i++)
		caller->admitted +=
			charge(caller->buckets, &caller->limit,
			       (uint32_t)(draw(&caller->random_state) % caller->keys)) ==
			BUCKETS_ADMITTED;
	return NULL;
}

/* What all of them were admitted. */
static size_t run(struct buckets *buckets, void *(*work)(void *), unsigned threads,
		  const struct gcra_limit *limit, uint32_t keys, uint64_t *took_ns)
{
	struct caller callers[THREADS_MAX];
	uint64_t start_ns = clock_monotonic_ns();
	size_t admitted = 0;

	for (unsigned i = 0; i < threads; i++) {
		callers[i] = (struct caller){ buckets, *limit, 0, keys, i, 0 };
		assert_int_equal(pthread_create(&callers[i].thread, NULL, work, &callers[i]), 0);
	}
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(callers[i].thread, NULL);
		admitted += callers[i].admitted;
	}
	*took_ns = clock_monotonic_ns() - start_ns;
	return admitted;
}

static void every_key_has_its_own_bucket_whoever_inserts_it(void **state)
{
	struct buckets *buckets = buckets_of(SLOTS);
	struct gcra_limit rare = limit_of(1e-5, BURST);
	uint64_t took_ns;

	(void)state;
	/* Each thread asks once for each key, so both get all that the burst is. */
	assert_int_equal(run(buckets, charge_all_in_turn, 2, &rare, KEYS, &took_ns), 2 * KEYS);
	print_message("# %d keys inserted and charged twice by 2 threads: %llu ns a charge\n", KEYS,
		      (unsigned long long)took_ns / KEYS);
	assert_int_equal(buckets_count(buckets), KEYS);
	assert_int_equal(run(buckets, charge_all_in_turn, 2, &rare, KEYS, &took_ns), 0);
	done(buckets);
}

static void charges_are_timed(void **state)
{
	static const uint32_t keys[] = { 1, 1000, KEYS };
	struct gcra_limit plenty = limit_of(1e8, 1ULL << 40);

	(void)state;
	for (size_t i = 0; i < COUNT_OF(keys); i++) {
		struct buckets *buckets = buckets_of(SLOTS);
		uint64_t took_ns[THREADS_MAX], ignored_ns;

		run(buckets, charge_all_in_turn, 1, &plenty, keys[i], &ignored_ns);
		for (unsigned threads = 1; threads <= THREADS_MAX; threads++)
			assert_int_equal(run(buckets, charge_at_random, threads, &plenty, keys[i],
					     &took_ns[threads - 1]),
					 (size_t)threads * CHARGES);
		print_message("# %u keys: %llu ns a charge by 1 thread, %llu by each of 2\n",
			      keys[i], (unsigned long long)took_ns[0] / CHARGES,
			      (unsigned long long)took_ns[1] / CHARGES);
		done(buckets);
	}
}

static uint64_t days_later(void)
{
	return clock_monotonic_ns() + 2 * 86400ULL * 1000000000;
}

static void table_fills_up_and_is_emptied_by_the_sweep(void **state)
{
	struct buckets *buckets = buckets_of(SLOTS / 2);
	struct gcra_limit rare = limit_of(1e-5, 1);
	uint64_t start_ns, took_ns;
	size_t filled, dropped = 0;
	uint32_t key = 0;

	(void)state;
	while (charge(buckets, &rare, key) != BUCKETS_FULL)
		key++;
	filled = buckets_count(buckets);
	assert_int_equal(filled, key);
	assert_true(filled > SLOTS / 2 / 4 * 3);
	print_message(
		"# the first that finds no room comes at %.1f %% of %d slots: %.1f bytes a key\n",
		100.0 * (double)filled / (SLOTS / 2), SLOTS / 2,
		(double)sizeof(*memory) * (SLOTS / 2) / (double)filled);
	for (uint32_t one = 0; one < key; one++)
		assert_int_equal(charge(buckets, &rare, one), BUCKETS_HOOKS_REFUSED);

	start_ns = clock_monotonic_ns();
	for (unsigned shard = 0; shard < BUCKET_SHARDS; shard++)
		dropped += buckets_sweep(buckets, shard, clock_monotonic_ns, UINT64_MAX);
	took_ns = clock_monotonic_ns() - start_ns;
	assert_int_equal(dropped, 0);
	print_message("# a sweep that drops none: %llu us a shard\n",
		      (unsigned long long)took_ns / 1000 / BUCKET_SHARDS);
	start_ns = clock_monotonic_ns();
	for (unsigned shard = 0; shard < BUCKET_SHARDS; shard++)
		dropped += buckets_sweep(buckets, shard, days_later, UINT64_MAX);
	took_ns = clock_monotonic_ns() - start_ns;
	assert_int_equal(dropped, filled);
	print_message("# a sweep that drops all: %llu us a shard\n",
		      (unsigned long long)took_ns / 1000 / BUCKET_SHARDS);
	for (unsigned shard = 0; shard < BUCKET_SHARDS; shard++)
		buckets_sweep(buckets, shard, days_later, UINT64_MAX);
	assert_int_equal(buckets_count(buckets), 0);
	for (size_t i = 0; i < SLOTS / 2; i++)
		assert_int_equal(memory[i].hash, SLOT_EMPTY);
	done(buckets);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_has_its_own_bucket_whoever_inserts_it),
		cmocka_unit_test(charges_are_timed),
		cmocka_unit_test(table_fills_up_and_is_emptied_by_the_sweep),
	};

	return cmocka_run_group_tests_name("buckets, many", tests, NULL, NULL);
}
