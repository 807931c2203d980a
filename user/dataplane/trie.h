/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A prefix trie in the kernel, many entries at a time: a hundred thousand of them are a hundred
 * thousand system calls otherwise. Where the kernel has no batches for tries, or a batch fails
 * half way, entries go one by one, which also finds out what is really wrong. Functions return 0 or
 * -errno. Not thread safe; nobody else may change the trie meanwhile.
 */
#ifndef SLUICE_DATAPLANE_TRIE_H
#define SLUICE_DATAPLANE_TRIE_H

#include <stddef.h>

#include <sluice/abi.h>

typedef int trie_visit_fn(const struct prefix_key *key, const struct prefix_entry *entry,
			  void *data);

/* Call visit for each entry until it returns other than 0, and return that. */
int trie_walk(int fd, trie_visit_fn *visit, void *data);

/* Remove every entry. */
int trie_empty(int fd);

/* Entries on their way into a trie. */
struct trie_writer {
	int fd;
	size_t count;
	struct trie_batch *batch;
};

int trie_writer_open(struct trie_writer *writer, int fd);

/* Add an entry or put it in the place of the one that has the key. It may not be there before
 * trie_writer_flush(). entry->bits is filled in. */
int trie_write(struct trie_writer *writer, const struct prefix_key *key,
	       const struct prefix_entry *entry);
int trie_writer_flush(struct trie_writer *writer);

/* What was not flushed is lost. One that is zero is fine. */
void trie_writer_close(struct trie_writer *writer);

#endif
