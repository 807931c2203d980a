/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Leases in a pool of fixed size, found by their number; tenants and owners, which hold leases, in
 * another, found by hash; and a heap of those that expire. Everything is O(1) but for the heap,
 * which is O(log n), and nothing is allocated after leases_new(). A holder is dropped with its last
 * lease.
 *
 * One lock for all of it. A lease is taken, or given back, with all that it counts for in one go,
 * so a share is compared and counted in one step, and no thread sees a lease without its tenant's
 * count. Many that go at once go LEASES_AT_ONCE by LEASES_AT_ONCE, so that others get in between.
 */
#include "limit/leases.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum {
	NONE = 0, /* pools are counted from 1 */
	LEASES_AT_ONCE = 256,
};

enum holder_kind { HOLDER_FREE, HOLDER_TENANT, HOLDER_OWNER };

/* What holds leases. */
struct holder {
	uint64_t hooks;
	uint64_t bytes;
	uint32_t next;  /* of its hash, or of those that are free */
	uint32_t first; /* an owner's leases */
	uint8_t kind;
	uint8_t key_bytes;
	char key[LEASE_TENANT_MAX];
};

struct lease {
	uint64_t id;
	uint64_t bytes;
	uint64_t expires_ns;  /* 0: never, and not in the heap */
	uint32_t next_of_ids; /* whose ids end alike */
	uint32_t tenant;
	uint32_t owner;          /* NONE: nobody's */
	uint32_t next, previous; /* of the owner's, or (next) of those that are free */
	uint32_t heap_at;
};

struct leases {
	pthread_mutex_t lock;
	bool has_lock;
	struct siphash_key secret;
	size_t most;
	size_t count;
	uint64_t last_id;
	struct lease *lease;   /* most + 1 */
	struct holder *holder; /* 2 * most + 1: each lease has a tenant, and may have an owner */
	uint32_t *chain;       /* of holders, by hash; a power of two of them */
	uint32_t *ids;         /* of leases, by the end of their ids; as many */
	size_t chain_mask;
	uint32_t *heap; /* of leases, the first to expire first, from 1 */
	size_t heap_count;
	uint32_t free_lease, free_holder;   /* lists of what was used before */
	uint32_t fresh_lease, fresh_holder; /* what never was begins here */
};

int leases_new(size_t most, const struct siphash_key *secret, struct leases **out)
{
	struct leases *leases;
	size_t chains = 1;
	int err;

	if (!most || most > LEASES_MAX)
		return -EINVAL;
	leases = calloc(1, sizeof(*leases));
	if (!leases)
		return -ENOMEM;
	while (chains < 2 * most)
		chains *= 2;
	leases->secret = *secret;
	leases->most = most;
	leases->chain_mask = chains - 1;
	leases->fresh_lease = leases->fresh_holder = 1;
	leases->lease = calloc(most + 1, sizeof(*leases->lease));
	leases->holder = calloc(2 * most + 1, sizeof(*leases->holder));
	leases->chain = calloc(chains, sizeof(*leases->chain));
	leases->ids = calloc(chains, sizeof(*leases->ids));
	leases->heap = calloc(most + 1, sizeof(*leases->heap));
	err = -ENOMEM;
	if (!leases->lease || !leases->holder || !leases->chain || !leases->ids || !leases->heap)
		goto fail;
	err = -pthread_mutex_init(&leases->lock, NULL);
	if (err)
		goto fail;
	leases->has_lock = true;
	*out = leases;
	return 0;

fail:
	leases_free(leases);
	return err;
}

void leases_free(struct leases *leases)
{
	if (!leases)
		return;
	if (leases->has_lock)
		(void)pthread_mutex_destroy(&leases->lock);
	free(leases->lease);
	free(leases->holder);
	free(leases->chain);
	free(leases->ids);
	free(leases->heap);
	free(leases);
}

/* Only looking takes the lock too, which is no change that a caller could see. */
static struct leases *lock(const struct leases *leases)
{
	struct leases *own = (struct leases *)leases;

	(void)pthread_mutex_lock(&own->lock); /* fails only for faults of ours */
	return own;
}

static void unlock(struct leases *leases)
{
	(void)pthread_mutex_unlock(&leases->lock);
}

/* ---- holders */

static uint32_t *chain_of(struct leases *leases, const void *key, size_t key_bytes)
{
	return &leases->chain[hash_place(&leases->secret, key, key_bytes) & leases->chain_mask];
}

static uint32_t find_holder(struct leases *leases, enum holder_kind kind, const void *key,
			    size_t key_bytes)
{
	uint32_t at = *chain_of(leases, key, key_bytes);

	for (; at != NONE; at = leases->holder[at].next) {
		const struct holder *holder = &leases->holder[at];

		if (holder->kind == kind && holder->key_bytes == key_bytes &&
		    !memcmp(holder->key, key, key_bytes))
			break;
	}
	return at;
}

static uint32_t add_holder(struct leases *leases, enum holder_kind kind, const void *key,
			   size_t key_bytes)
{
	uint32_t *chain = chain_of(leases, key, key_bytes);
	uint32_t at = leases->free_holder;
	struct holder *holder;

	if (at != NONE)
		leases->free_holder = leases->holder[at].next;
	else
		at = leases->fresh_holder++;
	holder = &leases->holder[at];
	*holder = (struct holder){ .kind = (uint8_t)kind, .key_bytes = (uint8_t)key_bytes };
	memcpy(holder->key, key, key_bytes);
	holder->next = *chain;
	*chain = at;
	return at;
}

static void drop_holder(struct leases *leases, uint32_t at)
{
	struct holder *holder = &leases->holder[at];
	uint32_t *link = chain_of(leases, holder->key, holder->key_bytes);

	while (*link != at)
		link = &leases->holder[*link].next;
	*link = holder->next;
	holder->kind = HOLDER_FREE;
	holder->next = leases->free_holder;
	leases->free_holder = at;
}

static void hold(struct leases *leases, uint32_t at, uint64_t bytes)
{
	leases->holder[at].hooks++;
	leases->holder[at].bytes += bytes;
}

static void let_go(struct leases *leases, uint32_t at, uint64_t bytes)
{
	leases->holder[at].hooks--;
	leases->holder[at].bytes -= bytes;
	if (!leases->holder[at].hooks)
		drop_holder(leases, at);
}

/* ---- the heap */

static uint64_t expiry_at(const struct leases *leases, size_t at)
{
	return leases->lease[leases->heap[at]].expires_ns;
}

static void put_in_heap(struct leases *leases, size_t at, uint32_t number)
{
	leases->heap[at] = number;
	leases->lease[number].heap_at = (uint32_t)at;
}

/* Put a lease at a place of the heap that is free, or as far up or down as it belongs. */
static void sift(struct leases *leases, size_t at, uint32_t number)
{
	uint64_t expires_ns = leases->lease[number].expires_ns;

	for (; at > 1 && expiry_at(leases, at / 2) > expires_ns; at /= 2)
		put_in_heap(leases, at, leases->heap[at / 2]);
	for (;;) {
		size_t child = 2 * at;

		if (child < leases->heap_count &&
		    expiry_at(leases, child + 1) < expiry_at(leases, child))
			child++;
		if (child > leases->heap_count || expiry_at(leases, child) >= expires_ns)
			break;
		put_in_heap(leases, at, leases->heap[child]);
		at = child;
	}
	put_in_heap(leases, at, number);
}

static void take_from_heap(struct leases *leases, uint32_t number)
{
	size_t at = leases->lease[number].heap_at;
	uint32_t last = leases->heap[leases->heap_count--];

	if (last != number)
		sift(leases, at, last);
}

/* ---- leases */

/* Ids are counted up, so their ends are spread as evenly as can be. */
static uint32_t *ids_like(struct leases *leases, uint64_t id)
{
	return &leases->ids[id & leases->chain_mask];
}

/* The lease's number in the pool, or NONE if it is not out. */
static uint32_t find_lease(struct leases *leases, uint64_t id)
{
	uint32_t number = *ids_like(leases, id);

	while (number != NONE && leases->lease[number].id != id)
		number = leases->lease[number].next_of_ids;
	return number;
}

static uint32_t take_lease(struct leases *leases)
{
	uint32_t number = leases->free_lease;
	uint64_t id = ++leases->last_id;

	if (number != NONE)
		leases->free_lease = leases->lease[number].next;
	else
		number = leases->fresh_lease++;
	leases->lease[number] = (struct lease){ .id = id, .next_of_ids = *ids_like(leases, id) };
	*ids_like(leases, id) = number;
	leases->count++;
	return number;
}

static void drop_lease(struct leases *leases, uint32_t number)
{
	struct lease *lease = &leases->lease[number];
	uint32_t *link = ids_like(leases, lease->id);

	while (*link != number)
		link = &leases->lease[*link].next_of_ids;
	*link = lease->next_of_ids;
	lease->next = leases->free_lease;
	leases->free_lease = number;
	leases->count--;
}

static void link_to_owner(struct leases *leases, uint32_t number, uint64_t owner)
{
	struct lease *lease = &leases->lease[number];

	lease->owner = find_holder(leases, HOLDER_OWNER, &owner, sizeof(owner));
	if (lease->owner == NONE)
		lease->owner = add_holder(leases, HOLDER_OWNER, &owner, sizeof(owner));
	hold(leases, lease->owner, lease->bytes);
	lease->next = leases->holder[lease->owner].first;
	if (lease->next != NONE)
		leases->lease[lease->next].previous = number;
	leases->holder[lease->owner].first = number;
}

static void unlink_from_owner(struct leases *leases, const struct lease *lease)
{
	if (lease->next != NONE)
		leases->lease[lease->next].previous = lease->previous;
	if (lease->previous != NONE)
		leases->lease[lease->previous].next = lease->next;
	else
		leases->holder[lease->owner].first = lease->next;
	let_go(leases, lease->owner, lease->bytes);
}

static void give_back(struct leases *leases, uint32_t number)
{
	struct lease *lease = &leases->lease[number];

	if (lease->expires_ns)
		take_from_heap(leases, number);
	if (lease->owner != NONE)
		unlink_from_owner(leases, lease);
	let_go(leases, lease->tenant, lease->bytes);
	drop_lease(leases, number);
}

static bool is_over(const struct holder *tenant, uint64_t bytes, uint64_t max_queue,
		    uint64_t max_queue_bytes)
{
	uint64_t sum;

	if (max_queue && tenant->hooks >= max_queue)
		return true;
	if (__builtin_add_overflow(tenant->bytes, bytes, &sum))
		return true;
	return max_queue_bytes && tenant->hooks && sum > max_queue_bytes;
}

int leases_acquire(struct leases *leases, const char *tenant, size_t tenant_length, uint64_t bytes,
		   uint64_t max_queue, uint64_t max_queue_bytes, uint64_t owner,
		   uint64_t expires_ns, uint64_t *lease)
{
	uint32_t holder, number;
	int err = 0;

	if (tenant_length > LEASE_TENANT_MAX)
		return -EINVAL;
	lock(leases);
	holder = find_holder(leases, HOLDER_TENANT, tenant, tenant_length);
	if (holder != NONE && is_over(&leases->holder[holder], bytes, max_queue, max_queue_bytes))
		err = -EAGAIN;
	else if (leases->count == leases->most)
		err = -ENOSPC;
	if (err)
		goto out;
	if (holder == NONE)
		holder = add_holder(leases, HOLDER_TENANT, tenant, tenant_length);
	hold(leases, holder, bytes);
	number = take_lease(leases);
	leases->lease[number].tenant = holder;
	leases->lease[number].bytes = bytes;
	leases->lease[number].expires_ns = expires_ns;
	if (owner)
		link_to_owner(leases, number, owner);
	if (expires_ns)
		sift(leases, ++leases->heap_count, number);
	*lease = leases->lease[number].id;
out:
	unlock(leases);
	return err;
}

static bool is_owned_by(const struct leases *leases, uint32_t number, uint64_t owner)
{
	uint32_t holder = leases->lease[number].owner;

	return !owner ||
	       (holder != NONE && !memcmp(leases->holder[holder].key, &owner, sizeof(owner)));
}

int leases_release(struct leases *leases, uint64_t lease, uint64_t owner)
{
	uint32_t number;
	bool was_held;

	lock(leases);
	number = find_lease(leases, lease);
	was_held = number != NONE && is_owned_by(leases, number, owner);
	if (was_held)
		give_back(leases, number);
	unlock(leases);
	return was_held;
}

size_t leases_release_owner(struct leases *leases, uint64_t owner)
{
	size_t released = 0, last;

	if (!owner)
		return 0;
	do {
		uint32_t holder;

		lock(leases);
		holder = find_holder(leases, HOLDER_OWNER, &owner, sizeof(owner));
		last = holder == NONE ? 0 : leases->holder[holder].hooks;
		last = last < LEASES_AT_ONCE ? last : LEASES_AT_ONCE;
		for (size_t left = last; left--; released++)
			give_back(leases, leases->holder[holder].first);
		unlock(leases);
	} while (last == LEASES_AT_ONCE);
	return released;
}

size_t leases_expire(struct leases *leases, uint64_t now_ns)
{
	size_t expired = 0, last;

	do {
		lock(leases);
		for (last = 0;
		     last < LEASES_AT_ONCE && leases->heap_count && expiry_at(leases, 1) <= now_ns;
		     last++)
			give_back(leases, leases->heap[1]);
		unlock(leases);
		expired += last;
	} while (last == LEASES_AT_ONCE);
	return expired;
}

uint64_t leases_next_expiry(const struct leases *leases)
{
	struct leases *own = lock(leases);
	uint64_t expires_ns = own->heap_count ? expiry_at(own, 1) : 0;

	unlock(own);
	return expires_ns;
}

void leases_held(const struct leases *leases, const char *tenant, size_t tenant_length,
		 uint64_t *hooks, uint64_t *bytes)
{
	struct leases *own = lock(leases);
	uint32_t holder = tenant_length > LEASE_TENANT_MAX
				  ? NONE
				  : find_holder(own, HOLDER_TENANT, tenant, tenant_length);

	/* The holder in front of the first holds nothing. */
	*hooks = own->holder[holder].hooks;
	*bytes = own->holder[holder].bytes;
	unlock(own);
}

size_t leases_count(const struct leases *leases)
{
	struct leases *own = lock(leases);
	size_t count = own->count;

	unlock(own);
	return count;
}
