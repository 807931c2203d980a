/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Chained hashing under a lock for each shard. A decision reads the word, then the clock, then stores,
 * all under the lock: one caller at a time. The lists are short, since there are as many as keys may
 * be kept.
 */
#include "limit/cell_table.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

struct cell {
	struct cell *next;
	uint64_t hash;
	uint64_t tat;
	size_t key_bytes;
	unsigned char key[];
};

struct cell_shard {
	pthread_mutex_t lock;
	struct cell **list;
	size_t count;
	size_t bytes;
} __attribute__((aligned(64)));

struct cell_table {
	struct cell_shard shard[CELL_SHARDS];
	struct siphash_key secret;
	size_t lists;      /* of each shard, a power of two */
	size_t shard_keys; /* that each may keep */
	size_t shard_bytes;
	unsigned locks;
};

int cell_table_new(size_t most_keys, size_t most_bytes, const struct siphash_key *secret,
		   struct cell_table **out)
{
	struct cell_table *table = aligned_alloc(_Alignof(struct cell_table), sizeof(*table));

	if (!table)
		return -ENOMEM;
	memset(table, 0, sizeof(*table));
	table->secret = *secret;
	table->shard_keys = most_keys / CELL_SHARDS ? most_keys / CELL_SHARDS : 1;
	table->shard_bytes = most_bytes / CELL_SHARDS;
	for (table->lists = 1; table->lists < table->shard_keys;)
		table->lists *= 2;
	for (; table->locks < CELL_SHARDS; table->locks++) {
		struct cell_shard *shard = &table->shard[table->locks];

		shard->list = calloc(table->lists, sizeof(*shard->list));
		if (!shard->list || pthread_mutex_init(&shard->lock, NULL)) {
			free(shard->list);
			cell_table_free(table);
			return -ENOMEM;
		}
	}
	*out = table;
	return 0;
}

void cell_table_free(struct cell_table *table)
{
	if (!table)
		return;
	for (unsigned at = 0; at < table->locks; at++) {
		struct cell_shard *shard = &table->shard[at];

		for (size_t list = 0; list < table->lists; list++)
			for (struct cell *cell = shard->list[list], *next; cell; cell = next) {
				next = cell->next;
				free(cell);
			}
		free(shard->list);
		(void)pthread_mutex_destroy(&shard->lock);
	}
	free(table);
}

static struct cell **find(struct cell **link, uint64_t hash, const void *key, size_t key_bytes)
{
	for (; *link; link = &(*link)->next)
		if ((*link)->hash == hash && (*link)->key_bytes == key_bytes &&
		    !memcmp((*link)->key, key, key_bytes))
			break;
	return link;
}

static void drop(struct cell_shard *shard, struct cell **link)
{
	struct cell *cell = *link;

	*link = cell->next;
	__atomic_store_n(&shard->count, shard->count - 1,
			 __ATOMIC_RELAXED); /* read without the lock */
	shard->bytes -= sizeof(*cell) + cell->key_bytes;
	free(cell);
}

static size_t sweep(const struct cell_table *table, struct cell_shard *shard, uint64_t now_ns)
{
	size_t dropped = 0;

	for (size_t list = 0; list < table->lists; list++)
		for (struct cell **link = &shard->list[list]; *link;) {
			if ((*link)->tat > now_ns) {
				link = &(*link)->next;
				continue;
			}
			drop(shard, link);
			dropped++;
		}
	return dropped;
}

static bool is_full(const struct cell_table *table, const struct cell_shard *shard, size_t bytes)
{
	return shard->count >= table->shard_keys || shard->bytes + bytes > table->shard_bytes;
}

static int add(struct cell_table *table, struct cell_shard *shard, struct cell **link,
	       const struct cell *like, const void *key, uint64_t now_ns)
{
	size_t bytes = sizeof(*like) + like->key_bytes;
	struct cell *cell;

	if (is_full(table, shard, bytes)) {
		(void)sweep(table, shard, now_ns);
		if (is_full(table, shard, bytes))
			return -ENOSPC;
		link = find(&shard->list[like->hash / CELL_SHARDS % table->lists], like->hash, key,
			    like->key_bytes);
	}
	cell = malloc(bytes);
	if (!cell)
		return -ENOMEM;
	*cell = *like;
	memcpy(cell->key, key, like->key_bytes);
	cell->next = *link;
	*link = cell;
	__atomic_store_n(&shard->count, shard->count + 1, __ATOMIC_RELAXED);
	shard->bytes += bytes;
	return 0;
}

int cell_table_decide(struct cell_table *table, const void *key, size_t key_bytes,
		      const struct cell_request *request, uint64_t (*clock)(void),
		      struct cell_answer *answer)
{
	struct cell like = { .key_bytes = key_bytes };
	struct cell_shard *shard;
	struct cell_answer decided;
	struct cell **link;
	uint64_t now_ns;
	int err = 0;

	if (key_bytes > CELL_KEY_MAX)
		return -E2BIG;
	like.hash = hash_place(&table->secret, key, key_bytes);
	shard = &table->shard[like.hash % CELL_SHARDS];
	(void)pthread_mutex_lock(&shard->lock);
	link = find(&shard->list[like.hash / CELL_SHARDS % table->lists], like.hash, key,
		    key_bytes);
	now_ns = clock();
	decided = cell_decide(request, *link ? (*link)->tat : 0, now_ns);
	like.tat = decided.new_tat;
	if (decided.write && *link)
		(*link)->tat = decided.new_tat;
	else if (decided.write && decided.new_tat > now_ns)
		err = add(table, shard, link, &like, key, now_ns);
	(void)pthread_mutex_unlock(&shard->lock);
	if (!err)
		*answer = decided;
	return err;
}

size_t cell_table_sweep(struct cell_table *table, unsigned number, uint64_t now_ns)
{
	struct cell_shard *shard = &table->shard[number % CELL_SHARDS];
	size_t dropped;

	(void)pthread_mutex_lock(&shard->lock);
	dropped = sweep(table, shard, now_ns);
	(void)pthread_mutex_unlock(&shard->lock);
	return dropped;
}

size_t cell_table_count(const struct cell_table *table)
{
	size_t count = 0;

	for (int at = 0; at < CELL_SHARDS; at++)
		count += __atomic_load_n(&table->shard[at].count, __ATOMIC_RELAXED);
	return count;
}

size_t cell_table_room(const struct cell_table *table)
{
	return table->shard_keys * CELL_SHARDS;
}
