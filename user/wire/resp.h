/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The Redis protocol as bytes: requests of a client to arguments, values of ours to replies in
 * version 2 or 3. No socket, no command, no clock.
 */
#ifndef SLUICE_WIRE_RESP_H
#define SLUICE_WIRE_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RESP_ARGUMENTS_ROOM = 1024, /* no bound on the number of arguments is higher */
	RESP_ERROR_MAX = 1024,      /* of an error's text, which is cut there */
};

/* ---- requests */

/* What a client may send; beyond it the request is refused as soon as it is announced. */
struct resp_bounds {
	uint32_t arguments_max; /* at most RESP_ARGUMENTS_ROOM */
	uint32_t argument_bytes_max;
	uint32_t inline_bytes_max;  /* a line of a person at telnet */
	uint32_t request_bytes_max; /* all of it, as it came */
	bool is_unauthenticated;    /* only words the refusal, as Redis does */
};

/* Any bytes. One zero byte follows, that is not counted: text can be used as a string. */
struct resp_argument {
	const char *data;
	size_t length;
};

struct resp_request {
	size_t count; /* 0: an empty line or array, which is to be passed over */
	struct resp_argument arguments[RESP_ARGUMENTS_ROOM]; /* the first is the command's name */
	char error[64]; /* "Protocol error: …" without a code word, after -EPROTO */
};

/*
 * The request that stands at the beginning of data, if it is whole: 1, and *consumed bytes are its
 * own. 0: more bytes are needed; then call again with these and the next ones: what has come so far
 * is passed over by its lengths, so that repeating costs little. -EPROTO: not a request, or beyond
 * the bounds; what comes after it is lost. What is said depends on the bytes alone, not on how they
 * arrived. Allocates nothing: arguments lie in data, which is left as it is where 0 is returned
 * (else zero bytes are put between arguments, and the quotes of inline requests resolved).
 */
int resp_decode(uint8_t *data, size_t length, const struct resp_bounds *bounds,
		struct resp_request *out, size_t *consumed);

/* Whether it is this word, in any case. */
bool resp_argument_is(const struct resp_argument *argument, const char *word);

/* As Redis reads integers: the whole text, no sign but -, no leading zeros. -EINVAL or -ERANGE. */
int resp_argument_integer(const struct resp_argument *argument, int64_t *out);

/* ---- replies */

/*
 * A buffer that grows to `most` bytes. Once memory or `most` is used up, is_failed is set and
 * nothing more is written: look once, at the end. owed tells whether what was begun is whole.
 */
struct resp_writer {
	uint8_t *data;
	size_t length;
	size_t room;
	size_t most;
	int64_t owed;      /* values to come; a value that stands by itself makes it -1 */
	unsigned protocol; /* 2 or 3 */
	bool is_failed;
};

void resp_writer_init(struct resp_writer *writer, unsigned protocol, size_t most);
void resp_writer_done(struct resp_writer *writer); /* also of a zeroed one; it is zeroed then */

/* Take away the first bytes, which have been sent. */
void resp_writer_drop(struct resp_writer *writer, size_t bytes);
/* Take back what was written after this length. */
void resp_writer_cut(struct resp_writer *writer, size_t length);

void resp_write_integer(struct resp_writer *writer, int64_t value);
void resp_write_boolean(struct resp_writer *writer, bool value);  /* integer 1 or 0 */
void resp_write_double(struct resp_writer *writer, double value); /* bulk string in version 2 */
void resp_write_bulk(struct resp_writer *writer, const void *data, size_t length);
void resp_write_text(struct resp_writer *writer, const char *text);   /* bulk string */
void resp_write_simple(struct resp_writer *writer, const char *text); /* printable ASCII */
void resp_write_null(struct resp_writer *writer);

/* `ERR …`, with its code word. What is not printable ASCII becomes a space or a `?`. */
void resp_write_error(struct resp_writer *writer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* So many values follow; of a map so many pairs, which version 2 sees as a flat array. */
void resp_write_array(struct resp_writer *writer, size_t count);
void resp_write_map(struct resp_writer *writer, size_t pairs);

/* Whole values that were written into a writer of their own, because their number was not known:
 * resp_writer_count() says how many to announce. */
void resp_write_part(struct resp_writer *writer, const struct resp_writer *part);
size_t resp_writer_count(const struct resp_writer *part);

#endif
