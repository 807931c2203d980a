/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table that buckets.c charges: which slot is whose. Sixteen shards, each a run of slots that
 * is probed one by one from a key's home, for at most SLOTS_PROBE slots. Finding is lock-free;
 * whoever inserts, drops or lessens a debt holds the shard's lock. Only limit/buckets.c includes
 * this.
 *
 * A slot has *lives*, one key each, and what makes lock-free charges safe is that a TAT of one life
 * never comes back in a later one:
 *
 * 1. A life begins, under the lock, with TATs that are the clock's ticks, and its hash is published
 *    last. Charges only move a TAT ahead. What moves one back (reset, refund, clamp) does so under
 *    the lock, never behind the clock that it has read under it, and first notes in held_ns until
 *    when the TAT that it replaces lies ahead.
 * 2. A life ends, under the lock, only when both TATs and held_ns have passed, strictly, by a clock
 *    read under it: so every TAT that the life ever had has passed. Both TATs are swapped for
 *    SLOT_TAT_DEAD first, each by compare-and-swap from the value that had passed; if the second
 * was charged meanwhile, the first is put back as it was, and the life goes on. A dead TAT is
 * changed under the lock only.
 * 3. The clock read under the lock does not go back (shard.latest_ns), so the next life begins at a
 *    later tick than any TAT of the one before, and has no other since then.
 *
 * 4. A key stands in one slot: insertion looks for it again under the lock. It takes the first slot
 *    from the key's home that has no life, and an ended slot becomes empty, where searches stop,
 *    only when no key's way from its home leads over it; so a key that has a slot is found under
 * the lock. Who misses it without the lock has seen it without a slot; it may have one since.
 *
 * So a compare-and-swap that finds the TAT that was read finds the same life, which has lasted all
 * the time between; and a key that was seen in the slot after the TAT was read, and before the
 * swap, is that life's key. (Two instants more than 104 days apart cannot be compared; no thread is
 * held up that long.)
 *
 * Kept across kill -9. A store that was made stays made, in the order they were made. Whatever the
 * step, slots_init() finds: a slot without a hash but with other bytes (an insertion that was not
 * finished: nothing was charged yet), a hash with a dead TAT (a drop: what died had passed), or a
 * whole slot. Locks, held_ns and who was held up died with the process.
 */
#ifndef SLUICE_LIMIT_SLOTS_H
#define SLUICE_LIMIT_SLOTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sluice/siphash.h>
#include <sluice/slot.h>

#include "limit/buckets.h"

enum {
	SLOTS_PROBE = 1024,        /* how far from its home a key may stand */
	SLOTS_SWEPT_AT_ONCE = 256, /* while the lock is held */
};

struct shard {
	pthread_mutex_t lock;
	/* Under the lock. */
	struct bucket_slot *slot; /* slots.shard_slots of them */
	uint64_t *held_ns;        /* beside each: no drop before that */
	uint64_t latest_ns;       /* the latest clock read under the lock */
	size_t cursor;            /* where the sweep goes on */
	/* Written under the lock, read without. */
	size_t count;
	uint64_t lessened; /* how often a debt was made less by other than a give-back */
} __attribute__((aligned(64)));

struct slots {
	struct shard shard[BUCKET_SHARDS]; /* sixteen: the hash's last four bits say which */
	size_t shard_slots;
	size_t probe; /* SLOTS_PROBE, or all of a smaller shard */
	uint64_t *held_ns;
	struct siphash_key place_key;
	struct siphash_key digest_key;
	unsigned locks; /* how many of the shards' locks are initialised */
};

/* A key as the table knows it. */
struct slot_key {
	uint64_t hash;
	__u64 word[SLOT_KEY_WORDS];
	struct shard *shard;
	size_t home;
};

/* 0, -EINVAL (see buckets_new()) or -ENOMEM. What an earlier process left is put in order. */
int slots_init(struct slots *slots, struct bucket_slot *memory, size_t count,
	       const struct siphash_key *secret, uint64_t now_ns);
void slots_done(struct slots *slots);

void slots_key(struct slots *slots, const void *key, size_t key_bytes, struct slot_key *out);

/* The key's slot or NULL. Without the lock both may be out of date at once: see slot_is(). */
struct bucket_slot *slots_find(const struct slots *slots, const struct slot_key *key);

/* Whether the slot is the key's. Said of the life whose TAT was read before, by the rule above. */
bool slot_is(const struct bucket_slot *slot, const struct slot_key *key);

uint64_t slot_tat(const struct bucket_slot *slot, unsigned meter);
/* to: slot_alive() of a TAT. */
bool slot_swap(struct bucket_slot *slot, unsigned meter, uint64_t from, uint64_t to);

/* A TAT that would read as dead is put off by a tick: never to the good of who is charged. */
static inline uint64_t slot_alive(uint64_t tat)
{
	return tat == SLOT_TAT_DEAD ? SLOT_TAT_DEAD + 1 : tat;
}

/* The key's slot, inserted if need be. NULL: no room, though what has passed was dropped. Takes the
 * lock. */
struct bucket_slot *slots_insert(struct slots *slots, const struct slot_key *key,
				 uint64_t (*clock)(void));

/* How a debt is made less. In ticks. */
struct lessening {
	uint64_t most; /* of what is owed, no more than this counts */
	uint64_t by;   /* and of that, so much is taken off, as far as there is debt */
	/* A give-back: `by` was charged at `since`. What has gone by since is not given back, and
	 * nothing is if shard.lessened is no longer what it was before the charge. */
	bool gives_back;
	uint64_t since;
	uint64_t lessened;
};

/* Lessen the debt of the meters given as bits. Takes the lock. Returns whether the key has a slot.
 */
bool slots_lessen(struct slots *slots, const struct slot_key *key, unsigned meters,
		  const struct lessening how[SLOT_METERS], uint64_t (*clock)(void));

/* Wait for who is just dropping or inserting in the key's shard. */
void slots_wait(const struct slot_key *key);

size_t slots_sweep(struct slots *slots, unsigned number, uint64_t (*clock)(void),
		   uint64_t budget_ns);

#endif
