/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Slots: found, inserted, dropped, lessened, swept, and put in order after another process. The
 * rules, and what they are good for, are in slots.h. The words of a key are read while they may be
 * overwritten, so they are atomic too; they need no order of their own, the TATs give it.
 */
#include "limit/slots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/gcra.h>

#include "base/hash.h"

enum { PURPOSE_PLACE, PURPOSE_DIGEST };

/* ---- keys */

static size_t home_of(uint64_t hash, size_t shard_slots)
{
	return (size_t)((hash >> 32) * shard_slots >> 32);
}

static uint64_t hash_of(const struct slots *slots, const __u64 word[SLOT_KEY_WORDS])
{
	uint8_t bytes[sizeof(uint64_t) * SLOT_KEY_WORDS];
	size_t count;
	uint64_t hash;

	memcpy(bytes, word, sizeof(bytes));
	count = bytes[0] <= SLOT_KEY_MAX ? bytes[0] + 1u : sizeof(bytes);
	hash = hash_place(&slots->place_key, bytes, count);
	return hash < SLOT_HASH_MIN ? hash + SLOT_HASH_MIN : hash;
}

void slots_key(struct slots *slots, const void *key, size_t key_bytes, struct slot_key *out)
{
	uint8_t bytes[sizeof(out->word)] = { 0 };
	uint64_t digest[HASH_DIGEST_WORDS];

	if (key_bytes <= SLOT_KEY_MAX) {
		bytes[0] = (uint8_t)key_bytes;
		if (key_bytes)
			memcpy(bytes + 1, key, key_bytes);
	} else {
		bytes[0] = SLOT_KEY_DIGEST;
		hash_digest(&slots->digest_key, key, key_bytes, digest);
		memcpy(bytes + 1, digest, sizeof(digest));
	}
	memcpy(out->word, bytes, sizeof(bytes));
	out->hash = hash_of(slots, out->word);
	out->shard = &slots->shard[out->hash % BUCKET_SHARDS];
	out->home = home_of(out->hash, slots->shard_slots);
}

/* ---- slots */

static uint64_t slot_hash(const struct bucket_slot *slot)
{
	return __atomic_load_n(&slot->hash, __ATOMIC_ACQUIRE);
}

static bool is_live(const struct bucket_slot *slot)
{
	return slot_hash(slot) >= SLOT_HASH_MIN;
}

uint64_t slot_tat(const struct bucket_slot *slot, unsigned meter)
{
	return __atomic_load_n(&slot->tat[meter], __ATOMIC_ACQUIRE);
}

bool slot_swap(struct bucket_slot *slot, unsigned meter, uint64_t from, uint64_t to)
{
	__u64 expected = from;

	return __atomic_compare_exchange_n(&slot->tat[meter], &expected, to, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE);
}

/* Of a dead TAT only, which is nobody else's to change. */
static void set_tat(struct bucket_slot *slot, unsigned meter, uint64_t tat)
{
	__atomic_store_n(&slot->tat[meter], tat, __ATOMIC_RELEASE);
}

static void set_hash(struct bucket_slot *slot, uint64_t hash)
{
	__atomic_store_n(&slot->hash, hash, __ATOMIC_RELEASE);
}

bool slot_is(const struct bucket_slot *slot, const struct slot_key *key)
{
	if (__atomic_load_n(&slot->hash, __ATOMIC_RELAXED) != key->hash)
		return false;
	for (int i = 0; i < SLOT_KEY_WORDS; i++)
		if (__atomic_load_n(&slot->word[i], __ATOMIC_RELAXED) != key->word[i])
			return false;
	return true;
}

static size_t after(const struct slots *slots, size_t at)
{
	return at + 1 == slots->shard_slots ? 0 : at + 1;
}

struct bucket_slot *slots_find(const struct slots *slots, const struct slot_key *key)
{
	size_t at = key->home;

	for (size_t step = 0; step < slots->probe; step++, at = after(slots, at)) {
		struct bucket_slot *slot = &key->shard->slot[at];
		uint64_t hash = slot_hash(slot);

		if (hash == SLOT_EMPTY)
			return NULL;
		if (hash == key->hash && slot_is(slot, key))
			return slot;
	}
	return NULL;
}

/* ---- under the lock */

static void lock(struct shard *shard)
{
	(void)pthread_mutex_lock(&shard->lock); /* fails only for faults of ours */
}

static void unlock(struct shard *shard)
{
	(void)pthread_mutex_unlock(&shard->lock);
}

void slots_wait(const struct slot_key *key)
{
	lock(key->shard);
	unlock(key->shard);
}

static uint64_t shard_now(struct shard *shard, uint64_t (*clock)(void))
{
	uint64_t now_ns = clock();

	if (now_ns > shard->latest_ns)
		shard->latest_ns = now_ns;
	return shard->latest_ns;
}

static void add_count(struct shard *shard, size_t change)
{
	__atomic_store_n(&shard->count, shard->count + change, __ATOMIC_RELAXED);
}

/* Strictly: the next life must not begin with a TAT that this one had. */
static bool has_gone_by(uint64_t tat, uint64_t now)
{
	return (int64_t)(tat - now) < 0;
}

/* End a life, if all its TATs have passed. */
static bool drop(struct shard *shard, size_t at, uint64_t now_ns)
{
	struct bucket_slot *slot = &shard->slot[at];
	uint64_t now = gcra_ticks(now_ns, GCRA_TICK_SHIFT);
	uint64_t tat[SLOT_METERS] = { slot_tat(slot, 0), slot_tat(slot, 1) };

	if (!has_gone_by(tat[0], now) || !has_gone_by(tat[1], now) || shard->held_ns[at] >= now_ns)
		return false;
	if (!slot_swap(slot, 0, tat[0], SLOT_TAT_DEAD))
		return false;
	if (!slot_swap(slot, 1, tat[1], SLOT_TAT_DEAD)) {
		set_tat(slot, 0, tat[0]);
		return false;
	}
	set_hash(slot, SLOT_DROPPED);
	add_count(shard, (size_t)-1);
	return true;
}

/* The first slot on the key's way that has no life, or whose life can end. */
static struct bucket_slot *find_free(const struct slots *slots, const struct slot_key *key,
				     uint64_t now_ns)
{
	struct shard *shard = key->shard;
	size_t at = key->home;

	for (size_t step = 0; step < slots->probe; step++, at = after(slots, at))
		if (!is_live(&shard->slot[at]))
			return &shard->slot[at];
	at = key->home;
	for (size_t step = 0; step < slots->probe; step++, at = after(slots, at))
		if (drop(shard, at, now_ns))
			return &shard->slot[at];
	return NULL;
}

static void begin_life(struct bucket_slot *slot, const struct slot_key *key, uint64_t now_ns)
{
	uint64_t tat = slot_alive(gcra_ticks(now_ns, GCRA_TICK_SHIFT));

	for (int i = 0; i < SLOT_KEY_WORDS; i++)
		__atomic_store_n(&slot->word[i], key->word[i], __ATOMIC_RELAXED);
	for (unsigned meter = 0; meter < SLOT_METERS; meter++)
		set_tat(slot, meter, tat);
	set_hash(slot, key->hash);
}

struct bucket_slot *slots_insert(struct slots *slots, const struct slot_key *key,
				 uint64_t (*clock)(void))
{
	struct shard *shard = key->shard;
	struct bucket_slot *slot;

	lock(shard);
	slot = slots_find(slots, key);
	if (!slot) {
		uint64_t now_ns = shard_now(shard, clock);

		slot = find_free(slots, key, now_ns);
		if (slot) {
			begin_life(slot, key, now_ns);
			add_count(shard, 1);
		}
	}
	unlock(shard);
	return slot;
}

/* No drop before the TAT, which is about to be replaced, has passed. */
static void hold(struct shard *shard, const struct bucket_slot *slot, uint64_t ahead,
		 uint64_t now_ns)
{
	uint64_t *held_ns = &shard->held_ns[slot - shard->slot];
	uint64_t until_ns = now_ns + gcra_wait_ns(ahead, GCRA_TICK_SHIFT);

	if (until_ns > *held_ns)
		*held_ns = until_ns;
}

static void lessen(struct shard *shard, struct bucket_slot *slot, unsigned meter,
		   const struct lessening *how, uint64_t (*clock)(void))
{
	for (;;) {
		uint64_t tat = slot_tat(slot, meter);
		uint64_t now_ns = shard_now(shard, clock);
		uint64_t now = gcra_ticks(now_ns, GCRA_TICK_SHIFT);
		uint64_t ahead = tat - now, gone = now - how->since, by = how->by, debt;

		if ((int64_t)ahead <= 0)
			return;
		if (how->gives_back)
			by = shard->lessened != how->lessened || gone > by ? 0 : by - gone;
		debt = ahead < how->most ? ahead : how->most;
		debt -= by < debt ? by : debt;
		if (debt == ahead)
			return;
		hold(shard, slot, ahead, now_ns);
		if (slot_swap(slot, meter, tat, slot_alive(now + debt)))
			return;
	}
}

bool slots_lessen(struct slots *slots, const struct slot_key *key, unsigned meters,
		  const struct lessening how[SLOT_METERS], uint64_t (*clock)(void))
{
	struct shard *shard = key->shard;
	struct bucket_slot *slot;
	bool gives_back = false;

	lock(shard);
	slot = slots_find(slots, key);
	for (unsigned meter = 0; slot && meter < SLOT_METERS; meter++) {
		if (!(meters & 1u << meter))
			continue;
		lessen(shard, slot, meter, &how[meter], clock);
		gives_back |= how[meter].gives_back;
	}
	/* Last: who has read the new number has also read the TAT that goes with it. */
	if (!gives_back)
		__atomic_store_n(&shard->lessened, shard->lessened + 1, __ATOMIC_RELEASE);
	unlock(shard);
	return slot != NULL;
}

/* ---- sweep */

/*
 * Make dropped slots empty that no key's way leads over, from `first`, `count` of them. Backwards,
 * from as far behind them as a key can stand from its home; `reach` is how much further back the
 * ways of the keys seen so far lead.
 */
static void clear_dropped(const struct slots *slots, struct shard *shard, size_t first,
			  size_t count)
{
	int64_t reach = -1;

	for (size_t left = count + slots->probe; left--;) {
		size_t at = (first + left) % slots->shard_slots;
		struct bucket_slot *slot = &shard->slot[at];
		uint64_t hash = slot_hash(slot);
		size_t home = home_of(hash, slots->shard_slots);
		int64_t way = (int64_t)(at >= home ? at - home : at + slots->shard_slots - home);

		reach--;
		if (hash >= SLOT_HASH_MIN)
			reach = way > reach ? way : reach;
		else if (hash == SLOT_DROPPED && left < count && reach < 0)
			set_hash(slot, SLOT_EMPTY);
	}
}

/* From the cursor on, `count` slots. */
static size_t sweep_some(struct slots *slots, struct shard *shard, size_t count, uint64_t now_ns)
{
	size_t first = shard->cursor, dropped = 0, ended = 0;

	for (size_t i = 0; i < count; i++, shard->cursor = after(slots, shard->cursor)) {
		if (is_live(&shard->slot[shard->cursor]))
			dropped += drop(shard, shard->cursor, now_ns);
		ended += slot_hash(&shard->slot[shard->cursor]) == SLOT_DROPPED;
	}
	if (ended)
		clear_dropped(slots, shard, first, count);
	return dropped;
}

size_t slots_sweep(struct slots *slots, unsigned number, uint64_t (*clock)(void),
		   uint64_t budget_ns)
{
	struct shard *shard = &slots->shard[number % BUCKET_SHARDS];
	size_t left = slots->shard_slots, dropped = 0;
	uint64_t start_ns = clock(), now_ns = start_ns;

	while (left && now_ns - start_ns <= budget_ns) {
		size_t count = left < SLOTS_SWEPT_AT_ONCE ? left : SLOTS_SWEPT_AT_ONCE;

		lock(shard);
		now_ns = shard_now(shard, clock);
		dropped += sweep_some(slots, shard, count, now_ns);
		unlock(shard);
		left -= count;
	}
	return dropped;
}

/* ---- from one process to the next */

static bool is_whole(const struct slots *slots, const struct bucket_slot *slot, unsigned number)
{
	size_t key_bytes = slot->key_bytes == SLOT_KEY_DIGEST ? sizeof(uint64_t) * HASH_DIGEST_WORDS
							      : slot->key_bytes;

	if (slot->hash < SLOT_HASH_MIN || key_bytes > SLOT_KEY_MAX)
		return false;
	for (size_t i = key_bytes; i < SLOT_KEY_MAX; i++)
		if (slot->key[i])
			return false;
	return hash_of(slots, slot->word) == slot->hash && slot->hash % BUCKET_SHARDS == number &&
	       (slot->tat[0] != SLOT_TAT_DEAD || slot->tat[1] != SLOT_TAT_DEAD);
}

static void clear(struct bucket_slot *slot, uint64_t hash)
{
	memset(slot, 0, sizeof(*slot));
	slot->hash = hash;
}

/* As fresh memory is. It is left alone, so that pages which nobody needs yet are never made. */
static bool is_untouched(const struct bucket_slot *slot)
{
	static const struct bucket_slot untouched;

	return !memcmp(slot, &untouched, sizeof(untouched));
}

/* What one slot says by itself. A bucket that was being dropped is put back as the full one it was.
 */
static void repair(const struct slots *slots, struct bucket_slot *slot, unsigned number,
		   uint64_t now_ns)
{
	if (is_untouched(slot))
		return;
	if (!is_whole(slots, slot, number)) {
		clear(slot, slot->hash == SLOT_EMPTY ? SLOT_EMPTY : SLOT_DROPPED);
		return;
	}
	for (unsigned meter = 0; meter < SLOT_METERS; meter++)
		if (slot->tat[meter] == SLOT_TAT_DEAD)
			slot->tat[meter] = slot_alive(gcra_ticks(now_ns, GCRA_TICK_SHIFT));
}

/* A slot that is not found by its key does not come from us, whatever it is; no debt of a key that
 * stands twice is forgotten all the same. */
static void drop_unfound(struct slots *slots, struct shard *shard, struct bucket_slot *slot)
{
	struct slot_key key = { .hash = slot->hash, .shard = shard };
	struct bucket_slot *found;

	memcpy(key.word, slot->word, sizeof(key.word));
	key.home = home_of(key.hash, slots->shard_slots);
	found = slots_find(slots, &key);
	if (found == slot) {
		shard->count++;
		return;
	}
	for (unsigned meter = 0; found && meter < SLOT_METERS; meter++)
		if ((int64_t)(slot->tat[meter] - found->tat[meter]) > 0)
			found->tat[meter] = slot->tat[meter];
	clear(slot, SLOT_DROPPED);
}

static void shard_put_in_order(struct slots *slots, unsigned number, uint64_t now_ns)
{
	struct shard *shard = &slots->shard[number];

	for (size_t at = 0; at < slots->shard_slots; at++)
		repair(slots, &shard->slot[at], number, now_ns);
	for (size_t at = 0; at < slots->shard_slots; at++)
		if (is_live(&shard->slot[at]))
			drop_unfound(slots, shard, &shard->slot[at]);
	clear_dropped(slots, shard, 0, slots->shard_slots);
}

int slots_init(struct slots *slots, struct bucket_slot *memory, size_t count,
	       const struct siphash_key *secret, uint64_t now_ns)
{
	if (!memory || (uintptr_t)memory % BUCKET_SLOT_BYTES || !count ||
	    count % (BUCKET_SHARDS * 8) || count / BUCKET_SHARDS > UINT32_MAX)
		return -EINVAL;
	slots->shard_slots = count / BUCKET_SHARDS;
	slots->probe = slots->shard_slots < SLOTS_PROBE ? slots->shard_slots : SLOTS_PROBE;
	slots->place_key = hash_derive(secret, PURPOSE_PLACE);
	slots->digest_key = hash_derive(secret, PURPOSE_DIGEST);
	/* Pages of it that are never written cost nothing. */
	slots->held_ns = calloc(count, sizeof(*slots->held_ns));
	if (!slots->held_ns)
		return -ENOMEM;
	for (unsigned i = 0; i < BUCKET_SHARDS; i++) {
		struct shard *shard = &slots->shard[i];
		int err = pthread_mutex_init(&shard->lock, NULL);

		if (err)
			return -err;
		slots->locks++;
		shard->slot = memory + i * slots->shard_slots;
		shard->held_ns = slots->held_ns + i * slots->shard_slots;
		shard->latest_ns = now_ns;
		shard_put_in_order(slots, i, now_ns);
	}
	return 0;
}

void slots_done(struct slots *slots)
{
	while (slots->locks)
		(void)pthread_mutex_destroy(&slots->shard[--slots->locks].lock);
	free(slots->held_ns);
	slots->held_ns = NULL;
}
