/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shares of a queue: how many hooks and bytes each tenant holds at once, as leases that belong to
 * an owner (a connection). Refused when a cap would be passed, and then nothing is counted; a body
 * bigger than max_queue_bytes is admitted when the tenant holds nothing. Bounded; thread safe.
 */
#ifndef SLUICE_LIMIT_LEASES_H
#define SLUICE_LIMIT_LEASES_H

#include <stddef.h>
#include <stdint.h>

#include <sluice/siphash.h>

struct leases;

enum { LEASE_NONE = 0, LEASE_TENANT_MAX = 64, LEASES_MAX = 1 << 24 };

/*
 * most: from 1 to LEASES_MAX. secret: so that who chooses tenants' ids cannot choose where they are
 * looked for. 0, -EINVAL, -ENOMEM or what pthread_mutex_init() says. Some 300 bytes a lease, taken
 * at once; what was never used is not touched.
 */
int leases_new(size_t most, const struct siphash_key *secret, struct leases **out);
void leases_free(struct leases *leases); /* NULL is fine */

/*
 * 0 and *lease (never LEASE_NONE; below 2^53, so that every client can tell it exactly). -EAGAIN:
 * the tenant's share is full. -ENOSPC: `most` leases are out. -EINVAL: the tenant's id is longer
 * than LEASE_TENANT_MAX. max_*: 0 is no cap. expires_ns: CLOCK_MONOTONIC; 0: never. owner: 0
 * belongs to nobody.
 */
int leases_acquire(struct leases *leases, const char *tenant, size_t tenant_length, uint64_t bytes,
		   uint64_t max_queue, uint64_t max_queue_bytes, uint64_t owner,
		   uint64_t expires_ns, uint64_t *lease);

/* Give one back. owner must match (0: any). Returns 1 if it was held, 0 if not (twice, foreign,
 * unknown): harmless, for no number is given out twice. */
int leases_release(struct leases *leases, uint64_t lease, uint64_t owner);

/* All of one owner (0: none); how many. */
size_t leases_release_owner(struct leases *leases, uint64_t owner);

/* Those whose time is over; how many. */
size_t leases_expire(struct leases *leases, uint64_t now_ns);

/* When the next one's time is over; 0: none's ever. */
uint64_t leases_next_expiry(const struct leases *leases);

/* What a tenant holds. */
void leases_held(const struct leases *leases, const char *tenant, size_t tenant_length,
		 uint64_t *hooks, uint64_t *bytes);
size_t leases_count(const struct leases *leases);

#endif
