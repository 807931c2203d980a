/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * limit/slots.c and limit/buckets.c, compiled in with a hook before each of their atomic steps:
 * there a thread may lose the CPU, another operation may be put in between, or the memory be
 * copied, as kill -9 would leave it. The date of each swap is noted.
 *
 * Included by test_buckets_races.c and test_buckets_kill.c, one program each.
 */
#ifndef SLUICE_BUCKET_STRESS_H
#define SLUICE_BUCKET_STRESS_H

#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void before_step(void);
static bool note_swap(const void *word, uint64_t to, bool swapped);
static int lock_noting_waits(pthread_mutex_t *lock);

#define __atomic_load_n(...) (before_step(), __atomic_load_n(__VA_ARGS__))
#define __atomic_store_n(...) (before_step(), __atomic_store_n(__VA_ARGS__))
#define __atomic_compare_exchange_n(word, from, to, ...) \
	note_swap(word, to,                              \
		  (before_step(), __atomic_compare_exchange_n(word, from, to, __VA_ARGS__)))
#define pthread_mutex_lock lock_noting_waits
#include "limit/slots.c"
#include "limit/buckets.c"
#undef pthread_mutex_lock
#undef __atomic_load_n
#undef __atomic_store_n
#undef __atomic_compare_exchange_n

static const struct siphash_key test_secret = { { 1, 2 } };

/* Not 0: the clock says this. */
static uint64_t fixed_now_ns;
/* Put wrong by hand: the clock that a charge reads was read before its TAT. */
static bool reads_clock_first;
/* Threads may lose the CPU before each step. */
static bool loses_cpu;

static __thread uint64_t first_clock_ns, last_clock_ns;
static __thread uint64_t swapped_ns[SLOT_METERS]; /* the dates of the last swaps that succeeded */
static __thread uint64_t random_state;

/* Called once, before the step of this number, counted down to 0 in all threads but the uncounted.
 */
static void (*between)(void);
static int steps_left;
static __thread bool is_uncounted;

/* Called by a thread that is about to wait for a lock. */
static void (*waits)(void);

static int lock_noting_waits(pthread_mutex_t *lock_of_shard)
{
	if (!pthread_mutex_trylock(lock_of_shard))
		return 0;
	if (waits)
		waits();
	return pthread_mutex_lock(lock_of_shard);
}

static inline uint64_t draw(void)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static void before_step(void)
{
	if (loses_cpu) {
		uint64_t drawn = draw();

		if (drawn % (1 << 16) == 0)
			usleep(100);
		else if (drawn % 512 == 0)
			sched_yield();
	} else if (!is_uncounted && between && steps_left-- == 0) {
		void (*call)(void) = between;

		between = NULL;
		call();
	}
}

/*
 * A TAT is swapped by a clock that was read after it. Not noted is the end of a life, which is
 * always another key's: a charge between its hooks and its bytes may end one, and its hooks keep
 * their date.
 */
static bool note_swap(const void *word, uint64_t to, bool swapped)
{
	if (swapped && to != SLOT_TAT_DEAD)
		swapped_ns[(uintptr_t)word % sizeof(struct bucket_slot) / sizeof(uint64_t)] =
			last_clock_ns;
	return swapped;
}

static inline uint64_t real_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t stress_clock(void)
{
	last_clock_ns = fixed_now_ns ? fixed_now_ns : real_clock();
	if (reads_clock_first)
		last_clock_ns = first_clock_ns;
	return last_clock_ns;
}

/* An interval of whole ticks, so that the reference needs no slack. */
static inline struct gcra_limit limit_of(uint64_t interval_ns, uint64_t burst)
{
	struct gcra_limit limit = {
		.interval = interval_ns << GCRA_TICK_SHIFT,
		.capacity = (interval_ns << GCRA_TICK_SHIFT) * burst,
		.burst = burst,
		.tick_shift = GCRA_TICK_SHIFT,
	};

	return limit;
}

static inline struct bucket_slot *memory_new(size_t slots)
{
	struct bucket_slot *memory = aligned_alloc(64, slots * sizeof(*memory));

	assert_non_null(memory);
	memset(memory, 0, slots * sizeof(*memory));
	return memory;
}

static inline struct buckets *open_buckets(struct bucket_slot *memory, size_t slots)
{
	struct buckets *buckets;

	assert_int_equal(buckets_new(memory, slots, &test_secret, stress_clock(), &buckets), 0);
	return buckets;
}

static inline void sweep_all(struct buckets *buckets)
{
	for (unsigned shard = 0; shard < BUCKET_SHARDS; shard++)
		buckets_sweep(buckets, shard, stress_clock, UINT64_MAX);
}

/* What must hold whenever no operation is under way: each key stands once, and is found. */
static inline void check_table(struct buckets *buckets)
{
	const struct slots *slots = &buckets->slots;
	size_t live = 0;

	for (size_t i = 0; i < slots->shard_slots * BUCKET_SHARDS; i++) {
		const struct bucket_slot *slot = &slots->shard[0].slot[i];
		struct slot_key key = {
			.hash = slot->hash,
			.shard = &buckets->slots.shard[slot->hash % BUCKET_SHARDS],
			.home = home_of(slot->hash, slots->shard_slots),
		};

		if (!is_live(slot)) {
			assert_true(slot->tat[0] == SLOT_TAT_DEAD && slot->tat[1] == SLOT_TAT_DEAD);
			continue;
		}
		live++;
		memcpy(key.word, slot->word, sizeof(key.word));
		assert_ptr_equal(slots_find(slots, &key), slot);
		assert_int_equal(hash_of(slots, slot->word), slot->hash);
		assert_true(slot->tat[0] != SLOT_TAT_DEAD && slot->tat[1] != SLOT_TAT_DEAD);
	}
	assert_int_equal(buckets_count(buckets), live);
}

#endif
