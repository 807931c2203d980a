/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The buckets of CL.THROTTLE by binary key, in bounded memory of the process's own: sixteen shards,
 * each under a lock. A bucket that has passed is dropped, one that owes never is. Thread safe.
 */
#ifndef SLUICE_LIMIT_CELL_TABLE_H
#define SLUICE_LIMIT_CELL_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include <sluice/siphash.h>

#include "limit/cell.h"

enum { CELL_SHARDS = 16, CELL_KEY_MAX = 64 * 1024 };

struct cell_table;

/* most_keys, most_bytes: of keys and what is kept with them, over all shards. 0 or -ENOMEM. */
int cell_table_new(size_t most_keys, size_t most_bytes, const struct siphash_key *secret,
		   struct cell_table **out);
void cell_table_free(struct cell_table *table); /* NULL is fine */

/* Decide for a key and store what the decision leaves. -ENOSPC: a charge of a new key, and there is no
 * room though passed ones were dropped; -E2BIG: the key is too long. Then *answer is untouched. */
int cell_table_decide(struct cell_table *table, const void *key, size_t key_bytes,
		      const struct cell_request *request, uint64_t (*clock)(void),
		      struct cell_answer *answer);

/* Drop the passed buckets of one shard. Returns how many. */
size_t cell_table_sweep(struct cell_table *table, unsigned shard, uint64_t now_ns);

size_t cell_table_count(const struct cell_table *table);
size_t cell_table_room(const struct cell_table *table);

#endif
