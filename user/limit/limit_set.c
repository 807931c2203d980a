/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A set is a table of pointers to chunks; a chunk holds the entries of one hash value, seldom more
 * than two. Chunks never change once they are in a set that others may see, so another set copies
 * the table, counts the chunks, and exchanges the one in which it differs. limits.c says why that
 * is safe among threads.
 */
#include "limit/limit_set.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct chunk {
	atomic_uint references;
	unsigned count;
	struct limits_entry entries[];
};

struct limit_set {
	atomic_uint references;
	size_t count;           /* of entries */
	size_t slots;           /* a power of two */
	struct chunk *chunks[]; /* by the hash of the id; NULL: none */
};

static void hold(atomic_uint *references)
{
	atomic_fetch_add_explicit(references, 1, memory_order_relaxed);
}

/* Whether that was the last one. */
static bool release(atomic_uint *references)
{
	return atomic_fetch_sub_explicit(references, 1, memory_order_acq_rel) == 1;
}

/* FNV-1a, stirred. Not keyed: ids come from the configuration and from operators, and a set that
 * they made lopsided would be slow for them alone. */
static size_t slot_of(const struct limit_set *set, const char *tenant, size_t length)
{
	uint64_t hash = 0xcbf29ce484222325ULL;
	size_t i;

	for (i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)tenant[i]) * 0x100000001b3ULL;
	hash ^= hash >> 32;
	hash *= 0x9e3779b97f4a7c15ULL;
	return (size_t)(hash >> 32) & (set->slots - 1);
}

static struct chunk *make_chunk(unsigned count)
{
	struct chunk *chunk = malloc(sizeof(*chunk) + count * sizeof(*chunk->entries));

	if (chunk) {
		atomic_init(&chunk->references, 1);
		chunk->count = count;
	}
	return chunk;
}

static void release_chunk(struct chunk *chunk)
{
	if (chunk && release(&chunk->references))
		free(chunk);
}

/* Empty, with room for so many entries in at most two slots for each. */
static struct limit_set *make(size_t count)
{
	size_t slots = 1;
	struct limit_set *set;

	while (slots < count)
		slots *= 2;
	set = calloc(1, sizeof(*set) + slots * sizeof(struct chunk *));
	if (set) {
		atomic_init(&set->references, 1);
		set->slots = slots;
	}
	return set;
}

struct limit_set *limit_set_hold(struct limit_set *set)
{
	hold(&set->references);
	return set;
}

void limit_set_release(struct limit_set *set)
{
	size_t slot;

	if (!set || !release(&set->references))
		return;
	for (slot = 0; slot < set->slots; slot++)
		release_chunk(set->chunks[slot]);
	free(set);
}

size_t limit_set_count(const struct limit_set *set)
{
	return set->count;
}

static bool is_tenant(const struct limits_entry *entry, const char *tenant, size_t length)
{
	return memcmp(entry->tenant, tenant, length) == 0 && entry->tenant[length] == '\0';
}

/* Its place in the chunk; the count if it is not there. */
static unsigned place_in(const struct chunk *chunk, const char *tenant, size_t length)
{
	unsigned i = 0;

	while (i < chunk->count && !is_tenant(&chunk->entries[i], tenant, length))
		i++;
	return i;
}

const struct limits_entry *limit_set_find(const struct limit_set *set, const char *tenant,
					  size_t length)
{
	const struct chunk *chunk;
	unsigned place;

	/* What is longer than any id must not be compared with one: it would be read beyond its
	 * end. */
	if (set->count == 0 || length == 0 || length > TENANT_ID_MAX)
		return NULL;
	chunk = set->chunks[slot_of(set, tenant, length)];
	if (!chunk)
		return NULL;
	place = place_in(chunk, tenant, length);
	return place < chunk->count ? &chunk->entries[place] : NULL;
}

/*
 * Put an entry into a set that nobody else sees yet; of the same tenant the new one stays. The
 * chunk may be seen through other sets, and is replaced.
 */
static int put(struct limit_set *set, const struct limits_entry *entry)
{
	size_t length = strlen(entry->tenant);
	struct chunk **at = &set->chunks[slot_of(set, entry->tenant, length)];
	unsigned count = *at ? (*at)->count : 0;
	unsigned place = *at ? place_in(*at, entry->tenant, length) : 0;
	struct chunk *grown = make_chunk(place < count ? count : count + 1);

	if (!grown)
		return -ENOMEM;
	if (count)
		memcpy(grown->entries, (*at)->entries, count * sizeof(*grown->entries));
	grown->entries[place] = *entry;
	set->count += grown->count - count;
	release_chunk(*at);
	*at = grown;
	return 0;
}

int limit_set_build(const struct limits_entry *entries, size_t count, struct limit_set **out)
{
	struct limit_set *set = make(count);
	int err = set ? 0 : -ENOMEM;
	size_t i;

	for (i = 0; i < count && !err; i++) {
		err = put(set, &entries[i]);
		if (!err && set->count == i)
			err = -EEXIST;
	}
	if (err) {
		limit_set_release(set);
		return err;
	}
	*out = set;
	return 0;
}

/* A table of the same chunks. */
static struct limit_set *copy(const struct limit_set *set)
{
	size_t bytes = set->slots * sizeof(struct chunk *), slot;
	struct limit_set *same = malloc(sizeof(*same) + bytes);

	if (!same)
		return NULL;
	atomic_init(&same->references, 1);
	same->count = set->count;
	same->slots = set->slots;
	memcpy(same->chunks, set->chunks, bytes);
	for (slot = 0; slot < same->slots; slot++)
		if (same->chunks[slot])
			hold(&same->chunks[slot]->references);
	return same;
}

static int put_visited(const struct limits_entry *entry, void *data)
{
	return put(data, entry);
}

/* The same entries in a table for twice as many. */
static struct limit_set *grow(const struct limit_set *set)
{
	struct limit_set *grown = make(set->count * 2);

	if (grown && limit_set_each(set, put_visited, grown)) {
		limit_set_release(grown);
		return NULL;
	}
	return grown;
}

int limit_set_with(const struct limit_set *set, const struct limits_entry *entry,
		   struct limit_set **out)
{
	struct limit_set *changed = set->count < set->slots ? copy(set) : grow(set);

	if (!changed || put(changed, entry)) {
		limit_set_release(changed);
		return -ENOMEM;
	}
	*out = changed;
	return 0;
}

/* Without the entry at a place; *out is NULL if that was the only one. */
static int take_out(const struct chunk *chunk, unsigned place, struct chunk **out)
{
	struct chunk *shrunk;

	*out = NULL;
	if (chunk->count == 1)
		return 0;
	shrunk = make_chunk(chunk->count - 1);
	if (!shrunk)
		return -ENOMEM;
	memcpy(shrunk->entries, chunk->entries, place * sizeof(*chunk->entries));
	memcpy(shrunk->entries + place, chunk->entries + place + 1,
	       (chunk->count - place - 1) * sizeof(*chunk->entries));
	*out = shrunk;
	return 0;
}

int limit_set_without(const struct limit_set *set, const char *tenant, struct limit_set **out)
{
	size_t length = strlen(tenant), slot;
	struct limit_set *changed;
	struct chunk *shrunk;

	if (!limit_set_find(set, tenant, length))
		return -ENOENT;
	slot = slot_of(set, tenant, length);
	changed = copy(set);
	if (!changed ||
	    take_out(set->chunks[slot], place_in(set->chunks[slot], tenant, length), &shrunk)) {
		limit_set_release(changed);
		return -ENOMEM;
	}
	release_chunk(changed->chunks[slot]);
	changed->chunks[slot] = shrunk;
	changed->count--;
	*out = changed;
	return 0;
}

int limit_set_each(const struct limit_set *set,
		   int (*visit)(const struct limits_entry *entry, void *data), void *data)
{
	size_t slot;
	unsigned i;

	for (slot = 0; slot < set->slots; slot++) {
		const struct chunk *chunk = set->chunks[slot];

		for (i = 0; chunk && i < chunk->count; i++) {
			int result = visit(&chunk->entries[i], data);

			if (result)
				return result;
		}
	}
	return 0;
}
