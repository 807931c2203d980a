/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Buckets by client address in fixed memory: the table of the data plane (sets of eight words, see
 * sluice/word.h), with one owner of a set at a time instead of its lock-free claims, for threads that
 * can lose the CPU anywhere. The memory may be a pinned map that programs read. Thread safe.
 */
#ifndef SLUICE_LIMIT_ADDRESS_TABLE_H
#define SLUICE_LIMIT_ADDRESS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sluice/abi.h>

struct address_table;

/* sets: set_count (a power of two) of them, zeroed or left by an earlier run under the same secret;
 * they stay the caller's. 0 or -ENOMEM. */
int address_table_new(struct bucket_set *sets, uint32_t set_count, const struct siphash_key *secret,
		      struct address_table **out);
void address_table_free(struct address_table *table); /* NULL is fine */

/*
 * Charge tokens for a client. limit: made for BUCKET_WORD. clock is asked with the set's lock held.
 * true: admitted. false: *wait_ns is what is missing, GCRA_NEVER for more than the burst. A set that
 * is full of others' debts gives up the word least in debt, with its debt (when_full: share).
 */
bool address_table_take(struct address_table *table, const union address *client,
			uint32_t ipv6_prefix, const struct gcra_limit *limit, uint64_t tokens,
			uint64_t (*clock)(void), uint64_t *wait_ns);

/* Clear passed words of part of the table: step counts from 0 to ADDRESS_TABLE_STEPS - 1. All steps
 * must come round within the eight seconds that the finest words allow. */
enum { ADDRESS_TABLE_STEPS = 64 };
size_t address_table_sweep(struct address_table *table, unsigned step, uint64_t now_ns);

#endif
