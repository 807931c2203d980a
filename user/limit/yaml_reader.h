/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads YAML as a stream, driven by tables of the keys that are allowed, and keeps line, column and
 * dotted key for whatever there is to say about a value. Knows nothing of what the keys mean.
 *
 * A read function is called with the reader standing at the beginning of a value and must read the
 * whole of it with one of the yaml_read_ functions, or fail. Nothing is kept of what has been read,
 * and what the tables do not expect is refused where it begins, so memory and depth are bounded by
 * the tables and not by the file.
 *
 * All int functions return 0 or -errno, and once one has failed the error is filled and the caller
 * passes the failure on. A reader belongs to one thread.
 */
#ifndef SLUICE_LIMIT_YAML_READER_H
#define SLUICE_LIMIT_YAML_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "limit/yaml_text.h"

struct settings_error;
struct yaml_reader;

typedef int yaml_read_fn(struct yaml_reader *reader, void *target);

struct yaml_key {
	const char *name;
	yaml_read_fn *read;
};

enum { YAML_KEYS_MAX = 24 };

/* text must outlive the reader; error is filled by whatever fails. */
int yaml_reader_open(const char *text, size_t length, struct settings_error *error,
		     struct yaml_reader **out);

/* NULL is fine. */
void yaml_reader_close(struct yaml_reader *reader);

/* Read the whole text: exactly one document, whose value read() reads. */
int yaml_read_document(struct yaml_reader *reader, yaml_read_fn *read, void *target);

/* Read a map of these keys, each at most once. keys ends with a NULL name; at most YAML_KEYS_MAX.
 */
int yaml_read_map(struct yaml_reader *reader, const struct yaml_key *keys, void *target);

/*
 * Read a map whose keys are data. read() is called standing at the key, goes on to the value with
 * yaml_enter() and reads it. `must` says what it has to be: "must be a map from prefix to limits".
 */
int yaml_read_open_map(struct yaml_reader *reader, const char *must,
		       int (*read)(struct yaml_reader *reader, const char *key, void *target),
		       void *target);

/* Go from a key of such a map to its value. */
int yaml_enter(struct yaml_reader *reader);

/* Read a list, each item by read(). `must` says what it has to be: "must be a list of prefixes". */
int yaml_read_list(struct yaml_reader *reader, const char *must, yaml_read_fn *read, void *target);

/*
 * Read a plain or quoted word. `must` says what it has to be: "must be a number". *out is valid
 * until the next read.
 */
int yaml_read_word(struct yaml_reader *reader, const char *must, const char **out);

/* Whether the value that is being read is the word null, or ~, which reads it. */
bool yaml_is_null(const struct yaml_reader *reader);

/* Copy what a stranger wrote so that it can be shown on a terminal, cut off at size. */
void yaml_show(const char *from, char *to, size_t size);

/* Where the value that is being read begins. */
struct yaml_place yaml_place(const struct yaml_reader *reader);

/* Where the key stands that was read last: in a read function of a map, the value's own. */
struct yaml_place yaml_key_place(const struct yaml_reader *reader);

/* Fail at the value that is being read: returns -EINVAL. */
int yaml_fail(struct yaml_reader *reader, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The same, ending in what was found instead: `must be a number, got "fast"`. */
int yaml_fail_got(struct yaml_reader *reader, const char *must);

/* Fail at another place. child: a key below the one that is being read, or NULL. */
int yaml_fail_at(struct yaml_reader *reader, struct yaml_place place, const char *child,
		 const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
