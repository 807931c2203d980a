/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Buckets by client address in fixed memory: the table of the data plane (sets of eight words, see
 * sluice/word.h), with one owner of a set at a time instead of its lock-free claims, for threads that
 * can lose the CPU anywhere; and beside it the one bucket of all clients together. The memory may be
 * pinned maps that programs read, and may be exchanged for another while threads charge. Thread safe.
 */
#ifndef SLUICE_LIMIT_ADDRESS_TABLE_H
#define SLUICE_LIMIT_ADDRESS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sluice/abi.h>

struct address_table;

/* What a table lies in. It stays the caller's. */
struct address_memory {
	struct bucket_set *sets; /* zeroed, or as an earlier table left them */
	struct hooks *hooks;     /* what there is to know of them */
};

/*
 * set_count: a power of two. Memory that an earlier table has left is adopted, debts and all, but for
 * those that must have passed by now; memory that none has used gets the secret. 0 or -ENOMEM.
 */
int address_table_new(const struct address_memory *memory, uint32_t set_count,
		      const struct siphash_key *secret, uint64_t now_ns,
		      struct address_table **out);
void address_table_free(struct address_table *table); /* NULL is fine */

/* Go on in other memory, with every debt; what is there is overwritten. When it returns, the old
 * memory is touched no more. Takes milliseconds, in which nobody is admitted. */
void address_table_move(struct address_table *table, const struct address_memory *to);

/*
 * Tell programs what is charged from now on, so that they judge by the same: a digest of all limits
 * (limit/hook_limits.h) and the clients' capacity. Digest 0: not to judge, while limits change.
 */
void address_table_announce(struct address_table *table, uint64_t digest, uint64_t capacity_ns);

/*
 * Charge tokens for a client. limit: made for BUCKET_WORD. clock is asked with the set's lock held.
 * true: admitted. false: *wait_ns is what is missing, GCRA_NEVER for more than the burst. A set that
 * is full of others' debts gives up the word least in debt, with its debt (when_full: share).
 */
bool address_table_take(struct address_table *table, const union address *client,
			uint32_t ipv6_prefix, const struct gcra_limit *limit, uint64_t tokens,
			uint64_t (*clock)(void), uint64_t *wait_ns);

/* Charge one token to the bucket of all clients. limit: made for BUCKET_WHOLE. stripe: any number,
 * best one of the caller's thread: callers of different stripes do not wait for each other. */
bool address_table_take_node(struct address_table *table, unsigned stripe,
			     const struct gcra_limit *limit, uint64_t (*clock)(void),
			     uint64_t *wait_ns);

/* Clear passed words of part of the table: step counts from 0 to ADDRESS_TABLE_STEPS - 1. All steps
 * must come round within the eight seconds that the finest words allow. */
enum { ADDRESS_TABLE_STEPS = 64 };
size_t address_table_sweep(struct address_table *table, unsigned step, uint64_t now_ns);

#endif
