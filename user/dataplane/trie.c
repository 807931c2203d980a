/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Batches of the bpf system call, and what to do where there are none; see trie.h. */
#include "dataplane/trie.h"

#include <errno.h>
#include <stdlib.h>

#include <bpf/bpf.h>

enum { BATCH_ENTRIES = 1024 };

struct trie_batch {
	struct prefix_key keys[BATCH_ENTRIES];
	struct prefix_entry entries[BATCH_ENTRIES];
};

/* Read the entries that follow a key (NULL: from the first). *count: how many. 1: there are more.
 */
static int read_batch(int fd, const struct prefix_key *after, struct prefix_key *last,
		      struct trie_batch *batch, uint32_t *count)
{
	LIBBPF_OPTS(bpf_map_batch_opts, options);
	struct prefix_key from = after ? *after : (struct prefix_key){};
	int err;

	*count = BATCH_ENTRIES;
	err = bpf_map_lookup_batch(fd, after ? &from : NULL, last, batch->keys, batch->entries,
				   count, &options);
	if (!err)
		return 1;
	return err == -ENOENT ? 0 : err;
}

static int walk_singly(int fd, const struct prefix_key *after, trie_visit_fn *visit, void *data)
{
	struct prefix_key key = after ? *after : (struct prefix_key){}, next;
	struct prefix_entry entry;
	bool first = !after;
	int result = 0;

	while (!result) {
		if (bpf_map_get_next_key(fd, first ? NULL : &key, &next))
			return errno == ENOENT ? 0 : -errno;
		first = false;
		key = next;
		if (!bpf_map_lookup_elem(fd, &key, &entry))
			result = visit(&key, &entry, data);
	}
	return result;
}

int trie_walk(int fd, trie_visit_fn *visit, void *data)
{
	struct trie_batch *batch = malloc(sizeof(*batch));
	struct prefix_key after, last;
	bool first = true;
	int result = 0, more = 1;

	if (!batch)
		return -ENOMEM;
	while (!result && more == 1) {
		uint32_t count;

		more = read_batch(fd, first ? NULL : &after, &last, batch, &count);
		if (more < 0) {
			result = walk_singly(fd, first ? NULL : &after, visit, data);
			break;
		}
		for (uint32_t at = 0; !result && at < count; at++)
			result = visit(&batch->keys[at], &batch->entries[at], data);
		after = last;
		first = false;
	}
	free(batch);
	return result;
}

static int remove_all(int fd, const struct prefix_key *keys, uint32_t count)
{
	LIBBPF_OPTS(bpf_map_batch_opts, options);
	uint32_t done = count;

	if (!bpf_map_delete_batch(fd, keys, &done, &options))
		return 0;
	for (uint32_t at = 0; at < count; at++)
		if (bpf_map_delete_elem(fd, &keys[at]) && errno != ENOENT)
			return -errno;
	return 0;
}

static int empty_singly(int fd)
{
	struct prefix_key key;

	while (!bpf_map_get_next_key(fd, NULL, &key))
		if (bpf_map_delete_elem(fd, &key))
			return -errno;
	return errno == ENOENT ? 0 : -errno;
}

int trie_empty(int fd)
{
	struct trie_batch *batch = malloc(sizeof(*batch));
	int err = 0, more = 1;

	if (!batch)
		return -ENOMEM;
	while (!err && more == 1) {
		struct prefix_key last;
		uint32_t count;

		more = read_batch(fd, NULL, &last, batch, &count);
		if (more < 0)
			err = empty_singly(fd);
		else
			err = remove_all(fd, batch->keys, count);
	}
	free(batch);
	return err;
}

int trie_writer_open(struct trie_writer *writer, int fd)
{
	*writer = (struct trie_writer){ .fd = fd, .batch = malloc(sizeof(*writer->batch)) };
	return writer->batch ? 0 : -ENOMEM;
}

int trie_writer_flush(struct trie_writer *writer)
{
	LIBBPF_OPTS(bpf_map_batch_opts, options, .elem_flags = BPF_ANY);
	struct trie_batch *batch = writer->batch;
	uint32_t done = (uint32_t)writer->count;
	size_t count = writer->count;

	writer->count = 0;
	if (!count ||
	    !bpf_map_update_batch(writer->fd, batch->keys, batch->entries, &done, &options))
		return 0;
	for (size_t at = 0; at < count; at++)
		if (bpf_map_update_elem(writer->fd, &batch->keys[at], &batch->entries[at], BPF_ANY))
			return -errno;
	return 0;
}

int trie_write(struct trie_writer *writer, const struct prefix_key *key,
	       const struct prefix_entry *entry)
{
	struct trie_batch *batch = writer->batch;

	batch->keys[writer->count] = *key;
	batch->entries[writer->count] = *entry;
	batch->entries[writer->count].bits = key->bits;
	writer->count++;
	return writer->count < BATCH_ENTRIES ? 0 : trie_writer_flush(writer);
}

void trie_writer_close(struct trie_writer *writer)
{
	free(writer->batch);
	*writer = (struct trie_writer){};
}
