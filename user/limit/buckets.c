/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Charges of the buckets in the slots of slots.h: what is judged and written, in which order.
 *
 * Why no interleaving admits more than one caller at a time would have been admitted:
 *
 * 1. A charge finds the key's slot, reads the TAT, sees that the slot is still the key's, reads the
 *    clock, judges, and swaps the TAT it has read for its own. If the swap succeeds, the slot has
 *    been in one life since the TAT was read (slots.h says why), and that life is the key's: what
 * it judged is the key's bucket, and no other key's is charged. An old reader whose slot was
 * dropped, or given to another key, finds a dead TAT or a later one; its swap fails and it starts
 * over.
 * 2. Where the TAT only moves ahead, a swap that succeeds means that nobody was admitted since it
 * was read. So the admissions of a bucket, in the order of their swaps, were each judged by what
 * the one before left, and have clocks that do not go back, since each read its clock after that:
 *    this is GCRA, run by one caller. A refusal and a look swap nothing and need not: a TAT that
 *    was left by another life has passed by the clock that is read after, so it refuses nobody, and
 *    the key's own bucket was full at that time, or it would have kept its slot.
 * 3. Where a debt was lessened, a TAT may come back within its life. Who lessens reads the clock
 *    (call it f) after the TAT it replaces, and puts nothing behind f. A charge that was judged at
 * n by this TAT and is swapped in only then would have been judged the same at f or had more: the
 *    TAT is not behind f, so time has repaid nothing of it, and what the charge leaves depends on n
 *    no more. It counts as one that was made at f.
 * 4. A dropped bucket had passed, so it equals one never seen. No key has two slots: insertion and
 *    drop hold the shard's lock, and insertion looks again under it. Of two inserters of one key
 * the second finds the slot of the first. A sweep and a charge both swap the TAT: if the charge is
 *    first, the sweep leaves the slot; if the sweep is, the charge finds it dead and inserts anew.
 * A reset and a charge likewise: the charge is before it, and forgotten, or judged by what it left.
 * 5. A slot has two buckets, each exact by itself. `atomic` judges both by one clock before it
 * charges one. If it is then overtaken at the second, and refused there, it gives back at the first
 * what it charged, c, at n, less the time e that has gone since (nothing, when that is more). That
 * is never too much. Think of a second bucket which this charge never reached: it owed c less at n,
 * and has seen the same charges since. Those move both alike; time repays both alike, until the
 * second owes nothing, from when on the first catches up, no faster than time goes. So it still
 * owes at least c - e less, and the first bucket after the give-back owes no less than the second.
 * It also holds when others give back meanwhile, for what they give back is owed in the second
 * bucket as well, by the same count. It does not hold across a reset, a refund or a clamp, which
 * may leave both the same: then nothing is given back (shard.lessened). Meanwhile others were
 * judged by more debt than there need have been: to nobody's good.
 *
 * Nothing here waits for a thread that is held up, except those who insert, drop or lessen, for one
 * another in a shard; and a charge that sees a dead TAT, until its slot is settled. Every swap that
 * fails means that another charge was admitted, or a debt lessened; a burst bounds how often.
 */
#include "limit/buckets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "limit/slots.h"

enum { HOOKS, BYTES };

_Static_assert((int)BUCKET_SLOT_BYTES == sizeof(struct bucket_slot), "one slot a key");
_Static_assert((int)BUCKET_KEY_INLINE == SLOT_KEY_MAX, "inline keys are those of the slot");

struct buckets {
	struct slots slots;
};

/* One of the two buckets, and what is to become of it. */
struct bucket {
	const struct gcra_limit *limit; /* NULL: not charged */
	uint64_t tokens;                /* 0: only looked at */
	bool can_exceed; /* more than the burst is admitted by a full bucket, and empties it */
	bool charged;
	uint64_t tat; /* as it was read, or as this charge leaves it */
	uint64_t charged_at;
	struct gcra_verdict verdict;
};

struct attempt {
	struct buckets *buckets;
	const struct bucket_charge *charge;
	uint64_t (*clock)(void);
	struct slot_key key;
	struct bucket bucket[SLOT_METERS];
	uint64_t now;      /* ticks */
	uint64_t lessened; /* shard.lessened, before a TAT was read */
	bool writes;       /* there is something to charge, and it can be admitted */
};

enum { RACED = -1 }; /* where else an enum bucket_answer is */

int buckets_new(void *memory, size_t slot_count, const struct siphash_key *secret, uint64_t now_ns,
		struct buckets **out)
{
	struct buckets *buckets = aligned_alloc(_Alignof(struct buckets), sizeof(*buckets));
	int err;

	if (!buckets)
		return -ENOMEM;
	memset(buckets, 0, sizeof(*buckets));
	err = slots_init(&buckets->slots, memory, slot_count, secret, now_ns);
	if (err)
		goto fail;
	*out = buckets;
	return 0;

fail:
	buckets_free(buckets);
	return err;
}

void buckets_free(struct buckets *buckets)
{
	if (!buckets)
		return;
	slots_done(&buckets->slots);
	free(buckets);
}

static struct bucket bucket_of(const struct gcra_limit *limit, uint64_t tokens)
{
	struct bucket bucket = { .tokens = tokens };

	if (limit && limit->capacity)
		bucket.limit = limit;
	return bucket;
}

static bool is_charged(const struct bucket *bucket)
{
	return bucket->limit && bucket->tokens;
}

/* More than can ever be admitted. */
static bool is_hopeless(const struct bucket *bucket)
{
	return bucket->limit && !bucket->can_exceed &&
	       gcra_cost(bucket->limit, bucket->tokens) > bucket->limit->capacity;
}

static void begin(struct attempt *attempt, struct buckets *buckets,
		  const struct bucket_charge *charge)
{
	attempt->buckets = buckets;
	attempt->charge = charge;
	attempt->bucket[HOOKS] = bucket_of(charge->hooks, charge->hook_tokens);
	attempt->bucket[BYTES] = bucket_of(charge->bytes, charge->byte_tokens);
	attempt->bucket[BYTES].can_exceed =
		charge->bytes && charge->byte_tokens > charge->bytes->burst;
	attempt->writes =
		!charge->look_only && !is_hopeless(&attempt->bucket[HOOKS]) &&
		(is_charged(&attempt->bucket[HOOKS]) || is_charged(&attempt->bucket[BYTES]));
	slots_key(&buckets->slots, charge->key, charge->key_bytes, &attempt->key);
}

/* False if the slot is being dropped, or is another's by now. A key without a slot has full
 * buckets.
 */
static bool read_tats(struct attempt *attempt, const struct bucket_slot *slot)
{
	for (unsigned i = 0; slot && i < SLOT_METERS; i++) {
		attempt->bucket[i].tat = slot_tat(slot, i);
		if (attempt->bucket[i].tat == SLOT_TAT_DEAD) {
			slots_wait(&attempt->key);
			return false;
		}
	}
	if (slot && !slot_is(slot, &attempt->key))
		return false;
	attempt->now = gcra_ticks(attempt->clock(), GCRA_TICK_SHIFT);
	for (unsigned i = 0; !slot && i < SLOT_METERS; i++)
		attempt->bucket[i].tat = attempt->now;
	return true;
}

static void judge(struct bucket *bucket, uint64_t now)
{
	const struct gcra_limit *limit = bucket->limit;
	struct gcra_verdict *verdict = &bucket->verdict;

	if (!is_charged(bucket) || bucket->charged) {
		*verdict = (struct gcra_verdict){ .tat = bucket->tat, .admitted = true };
		return;
	}
	if (!bucket->can_exceed) {
		*verdict = gcra_take(limit, bucket->tat, now, bucket->tokens);
		return;
	}
	*verdict = (struct gcra_verdict){ .clamped = gcra_is_beyond(limit, bucket->tat, now) };
	verdict->wait_ticks = gcra_debt(limit, bucket->tat, now);
	verdict->admitted = verdict->wait_ticks == 0;
	verdict->tat = now + (verdict->admitted ? limit->capacity : verdict->wait_ticks);
}

/* False: it was overtaken. */
static bool settle(struct attempt *attempt, struct bucket_slot *slot, unsigned which)
{
	struct bucket *bucket = &attempt->bucket[which];
	uint64_t next = slot_alive(bucket->verdict.tat);

	if (!is_charged(bucket) || bucket->charged)
		return true;
	if (!slot_swap(slot, which, bucket->tat, next))
		return false;
	bucket->charged = true;
	bucket->charged_at = attempt->now;
	bucket->tat = next;
	return true;
}

/* A TAT further ahead than the capacity is brought back: the only write a refusal may make. */
static void bring_back(struct attempt *attempt, unsigned which)
{
	const struct bucket *bucket = &attempt->bucket[which];
	struct lessening how[SLOT_METERS] = { 0 };

	if (!bucket->verdict.clamped || attempt->charge->look_only)
		return;
	how[which].most = bucket->limit->capacity;
	slots_lessen(&attempt->buckets->slots, &attempt->key, 1u << which, how, attempt->clock);
}

static void give_back(struct attempt *attempt)
{
	struct bucket *hooks = &attempt->bucket[HOOKS];
	struct lessening how[SLOT_METERS] = { [HOOKS] = {
						      .most = UINT64_MAX,
						      .by = gcra_cost(hooks->limit, hooks->tokens),
						      .gives_back = true,
						      .since = hooks->charged_at,
						      .lessened = attempt->lessened,
					      } };

	slots_lessen(&attempt->buckets->slots, &attempt->key, 1u << HOOKS, how, attempt->clock);
	hooks->tat -= how[HOOKS].by;
}

static int refuse_bytes(struct attempt *attempt)
{
	bring_back(attempt, BYTES);
	if (attempt->charge->atomic && attempt->bucket[HOOKS].charged)
		give_back(attempt);
	return BUCKETS_BYTES_REFUSED;
}

/* An enum bucket_answer, or RACED. What is charged already stays charged. */
static int try_to_charge(struct attempt *attempt)
{
	const struct bucket_charge *charge = attempt->charge;
	struct slots *slots = &attempt->buckets->slots;
	struct bucket *hooks = &attempt->bucket[HOOKS], *bytes = &attempt->bucket[BYTES];
	struct bucket_slot *slot;

	if (charge->atomic && !hooks->charged)
		attempt->lessened =
			__atomic_load_n(&attempt->key.shard->lessened, __ATOMIC_ACQUIRE);
	slot = slots_find(slots, &attempt->key);
	if (!slot && attempt->writes) {
		slot = slots_insert(slots, &attempt->key, attempt->clock);
		if (!slot)
			return BUCKETS_FULL;
	}
	if (!read_tats(attempt, slot))
		return RACED;
	judge(hooks, attempt->now);
	judge(bytes, attempt->now);
	if (!hooks->verdict.admitted) {
		bring_back(attempt, HOOKS);
		return BUCKETS_HOOKS_REFUSED;
	}
	if (!bytes->verdict.admitted && (charge->atomic || charge->look_only))
		return refuse_bytes(attempt);
	if (!attempt->writes)
		return BUCKETS_ADMITTED;
	if (!settle(attempt, slot, HOOKS))
		return RACED;
	if (!bytes->verdict.admitted)
		return refuse_bytes(attempt);
	if (!settle(attempt, slot, BYTES))
		return RACED;
	return BUCKETS_ADMITTED;
}

static uint64_t remaining(const struct bucket *bucket, uint64_t now)
{
	return bucket->limit ? gcra_remaining(bucket->limit, bucket->tat, now) : UINT64_MAX;
}

static uint64_t full_after_ns(const struct bucket *bucket, uint64_t now)
{
	if (!bucket->limit)
		return 0;
	return gcra_wait_ns(gcra_debt(bucket->limit, bucket->tat, now), GCRA_TICK_SHIFT);
}

/* How long until both would admit the same again: a hook that was spent is to be paid anew. */
static uint64_t wait_ns(const struct attempt *attempt)
{
	uint64_t longest = 0;

	for (unsigned i = 0; i < SLOT_METERS; i++) {
		struct bucket bucket = attempt->bucket[i];

		bucket.charged = false;
		judge(&bucket, attempt->now);
		if (bucket.verdict.wait_ticks > longest)
			longest = bucket.verdict.wait_ticks;
	}
	return gcra_wait_ns(longest, GCRA_TICK_SHIFT);
}

/* What a look answers is what a charge would have left. */
static void pretend(struct attempt *attempt, int answer)
{
	if (answer == BUCKETS_HOOKS_REFUSED)
		return;
	attempt->bucket[BYTES].tat = attempt->bucket[BYTES].verdict.tat;
	if (answer == BUCKETS_ADMITTED || !attempt->charge->atomic)
		attempt->bucket[HOOKS].tat = attempt->bucket[HOOKS].verdict.tat;
}

void buckets_charge(struct buckets *buckets, const struct bucket_charge *charge,
		    uint64_t (*clock)(void), struct bucket_result *result)
{
	struct attempt attempt = { .clock = clock };
	const struct bucket *hooks = &attempt.bucket[HOOKS], *bytes = &attempt.bucket[BYTES];
	int answer;

	begin(&attempt, buckets, charge);
	do
		answer = try_to_charge(&attempt);
	while (answer == RACED);

	if (charge->look_only)
		pretend(&attempt, answer);
	*result = (struct bucket_result){ .answer = (enum bucket_answer)answer };
	if (answer == BUCKETS_HOOKS_REFUSED || answer == BUCKETS_BYTES_REFUSED)
		result->wait_ns = wait_ns(&attempt);
	result->hooks_remaining = remaining(hooks, attempt.now);
	result->bytes_remaining = remaining(bytes, attempt.now);
	result->hooks_full_after_ns = full_after_ns(hooks, attempt.now);
	result->bytes_full_after_ns = full_after_ns(bytes, attempt.now);
}

void buckets_prefetch(struct buckets *buckets, const void *key, size_t key_bytes)
{
	struct slot_key slot_key;

	if (key_bytes > BUCKET_KEY_INLINE)
		return;
	slots_key(&buckets->slots, key, key_bytes, &slot_key);
	__builtin_prefetch(&slot_key.shard->slot[slot_key.home], 1);
}

/* What the charge has cost, in ticks; more than the burst has cost the capacity. */
static struct lessening refund_of(const struct bucket *bucket)
{
	struct lessening how = { .most = bucket->limit->capacity, .by = bucket->limit->capacity };

	if (bucket->tokens <= bucket->limit->burst)
		how.by = gcra_cost(bucket->limit, bucket->tokens);
	return how;
}

void buckets_refund(struct buckets *buckets, const struct bucket_charge *charge,
		    uint64_t (*clock)(void))
{
	struct attempt attempt = { .clock = clock };
	struct lessening how[SLOT_METERS] = { 0 };
	unsigned meters = 0;

	begin(&attempt, buckets, charge);
	for (unsigned i = 0; i < SLOT_METERS; i++) {
		if (!is_charged(&attempt.bucket[i]))
			continue;
		how[i] = refund_of(&attempt.bucket[i]);
		meters |= 1u << i;
	}
	if (meters)
		slots_lessen(&buckets->slots, &attempt.key, meters, how, clock);
}

bool buckets_reset(struct buckets *buckets, const void *key, size_t key_bytes,
		   uint64_t (*clock)(void))
{
	static const struct lessening all[SLOT_METERS] = {
		{ .most = 0 },
		{ .most = 0 },
	};
	struct slot_key slot_key;

	slots_key(&buckets->slots, key, key_bytes, &slot_key);
	return slots_lessen(&buckets->slots, &slot_key, 1u << HOOKS | 1u << BYTES, all, clock);
}

size_t buckets_sweep(struct buckets *buckets, unsigned shard, uint64_t (*clock)(void),
		     uint64_t budget_ns)
{
	return slots_sweep(&buckets->slots, shard, clock, budget_ns);
}

size_t buckets_count(const struct buckets *buckets)
{
	size_t count = 0;

	for (unsigned i = 0; i < BUCKET_SHARDS; i++)
		count += __atomic_load_n(&buckets->slots.shard[i].count, __ATOMIC_RELAXED);
	return count;
}

size_t buckets_room(const struct buckets *buckets)
{
	return buckets->slots.shard_slots * BUCKET_SHARDS;
}
