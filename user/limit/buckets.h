/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Buckets by exact key, two to a key (hooks and bytes), in memory that the caller provides: a
 * pinned BPF map, so that debts survive the process, or memory of its own. Sixteen shards, open
 * addressing, one cache line a key; charges are lock-free, compare-and-swap on the TAT; only
 * insertion and sweep take the shard's lock. Bounded: when no slot is free, the answer is
 * BUCKETS_FULL, and no bucket in debt is ever dropped. Thread safe.
 */
#ifndef SLUICE_LIMIT_BUCKETS_H
#define SLUICE_LIMIT_BUCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sluice/gcra.h>
#include <sluice/siphash.h>

enum {
	BUCKET_SHARDS = 16,
	BUCKET_SLOT_BYTES = 64,
	BUCKET_KEY_INLINE = 39, /* longer keys are kept as a 256-bit keyed digest */
	BUCKET_KEY_MAX = 64 * 1024,
};

struct buckets;

enum bucket_answer {
	BUCKETS_ADMITTED,
	BUCKETS_HOOKS_REFUSED,
	BUCKETS_BYTES_REFUSED, /* the hook's token is spent, unless atomic */
	BUCKETS_FULL,          /* no room for a new key: what that means is the caller's to say */
};

struct bucket_charge {
	const void *key;
	size_t key_bytes;
	const struct gcra_limit *hooks; /* GCRA_TICK_SHIFT; NULL or capacity 0: not charged */
	uint64_t hook_tokens;
	const struct gcra_limit *bytes; /* the same */
	uint64_t byte_tokens; /* more than the burst: admitted only by a full bucket, and empties it
			       */
	bool atomic;          /* all or nothing */
	bool look_only;       /* answer as if, charge nothing; never BUCKETS_FULL */
};

struct bucket_result {
	enum bucket_answer answer;
	uint64_t wait_ns;         /* refused: waiting this long suffices, for both; GCRA_NEVER */
	uint64_t hooks_remaining; /* after this charge; UINT64_MAX: not limited */
	uint64_t bytes_remaining;
	uint64_t hooks_full_after_ns; /* until the bucket is full again */
	uint64_t bytes_full_after_ns;
};

/*
 * memory: slot_count slots of BUCKET_SLOT_BYTES (struct bucket_slot of sluice/slot.h), aligned to
 * 64, zeroed or left by an earlier run with the same secret, at whatever instant it was killed, no
 * longer than 104 days ago. slot_count: a multiple of 16 shards * 8. It stays the caller's, must
 * outlive the buckets, and is written by one process at a time. now_ns: CLOCK_MONOTONIC. 0, -EINVAL
 * (of memory or slot_count), -ENOMEM or what pthread_mutex_init() says.
 */
int buckets_new(void *memory, size_t slot_count, const struct siphash_key *secret, uint64_t now_ns,
		struct buckets **out);
void buckets_free(struct buckets *buckets); /* NULL is fine; memory is left as it is */

/*
 * Charge. clock is called for the time after a TAT was read (see the argument at the top of
 * buckets.c); it may answer from a cached time only if that time was read after every charge that
 * this one can build upon, as within one batch of one thread under no contention: so give the real
 * clock where threads share keys. BUCKETS_FULL has charged nothing; its wait_ns is 0.
 */
void buckets_charge(struct buckets *buckets, const struct bucket_charge *charge,
		    uint64_t (*clock)(void), struct bucket_result *result);

/* Fetch what the charge of this key will read. Worth it where many are to be charged one after the
 * other: all of them first, then charge. Keys longer than BUCKET_KEY_INLINE are left alone. */
void buckets_prefetch(struct buckets *buckets, const void *key, size_t key_bytes);

/* Give tokens back, of hooks and bytes, as far as there is debt. Unknown keys are fine. */
void buckets_refund(struct buckets *buckets, const struct bucket_charge *charge,
		    uint64_t (*clock)(void));

/* Forget a key's debts. Returns whether it had a slot, which it keeps until the debts would have
 * passed. */
bool buckets_reset(struct buckets *buckets, const void *key, size_t key_bytes,
		   uint64_t (*clock)(void));

/* Drop the passed buckets of one shard, for about budget_ns by clock (256 slots at a time, at least
 * once). Returns how many. The shard goes on where it stopped at the next call for it. */
size_t buckets_sweep(struct buckets *buckets, unsigned shard, uint64_t (*clock)(void),
		     uint64_t budget_ns);

size_t buckets_count(const struct buckets *buckets); /* slots in use */
size_t buckets_room(const struct buckets *buckets);  /* slots in all */

#endif
