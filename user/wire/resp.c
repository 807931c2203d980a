/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Decoding requests: a request is taken up only when it is whole, and what is missing is found out
 * anew with each call, by way of the announced lengths: a connection that is in the middle of a
 * request needs no state beside its bytes. Each refusal follows from the shortest prefix that
 * cannot become a request, which is why it does not depend on how the bytes were cut. We are
 * stricter than Redis where it skips two bytes without looking at them: a line and a bulk string
 * end in CR LF, or a wrong length would shift the meaning of all that follows.
 */
#include "wire/resp.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
	LENGTH_DIGITS_MAX = 18, /* any such number fits */
	INTEGER_CHARS_MAX = 20, /* of -9223372036854775808 */
};

static int refuse(struct resp_request *request, const char *what)
{
	snprintf(request->error, sizeof(request->error), "Protocol error: %s", what);
	return -EPROTO;
}

/*
 * The number between the type byte and CR LF. 1: *position is behind the line. 0: it is not whole.
 */
static int read_length(const uint8_t *data, size_t length, size_t *position, int64_t *out)
{
	size_t at = *position, first;
	bool is_negative = at < length && data[at] == '-';
	int64_t value = 0;

	at += is_negative;
	first = at;
	for (; at < length && data[at] >= '0' && data[at] <= '9'; at++) {
		bool is_after_zero = at > first && data[first] == '0';

		if (is_after_zero || at - first == LENGTH_DIGITS_MAX)
			return -EPROTO;
		value = value * 10 + (data[at] - '0');
	}
	if (at == length)
		return 0;
	if (data[at] != '\r' || at == first || (is_negative && data[first] == '0'))
		return -EPROTO;
	if (at + 1 == length)
		return 0;
	if (data[at + 1] != '\n')
		return -EPROTO;
	*position = at + 2;
	*out = is_negative ? -value : value;
	return 1;
}

static int read_count(const uint8_t *data, size_t length, const struct resp_bounds *bounds,
		      struct resp_request *request, size_t *position, size_t *out)
{
	int64_t count;
	int whole = read_length(data, length, position, &count);

	if (whole < 0 || (whole && count > INT_MAX))
		return refuse(request, "invalid multibulk length");
	if (whole && count > bounds->arguments_max)
		return refuse(request, bounds->is_unauthenticated
					       ? "unauthenticated multibulk length"
					       : "invalid multibulk length");
	/* Redis passes over *0 and *-1; so do we. */
	*out = whole && count > 0 ? (size_t)count : 0;
	return whole;
}

static int read_bulk(const uint8_t *data, size_t length, const struct resp_bounds *bounds,
		     struct resp_request *request, size_t *position, struct resp_argument *out)
{
	int64_t bytes;
	int whole;

	if (*position == length)
		return 0;
	if (data[*position] != '$') {
		char what[] = "expected '$', got 'x'";
		uint8_t got = data[*position];

		what[sizeof(what) - 3] = got < ' ' || got > '~' ? '?' : (char)got;
		return refuse(request, what);
	}
	(*position)++;
	whole = read_length(data, length, position, &bytes);
	if (whole == 0)
		return 0;
	if (whole < 0 || bytes < 0)
		return refuse(request, "invalid bulk length");
	if (bytes > bounds->argument_bytes_max)
		return refuse(request, bounds->is_unauthenticated ? "unauthenticated bulk length"
								  : "invalid bulk length");
	if (*position + (size_t)bytes + 2 > bounds->request_bytes_max)
		return refuse(request, "invalid bulk length");
	out->data = (const char *)data + *position;
	out->length = (size_t)bytes;
	*position += (size_t)bytes;
	if (*position < length && data[*position] != '\r')
		return refuse(request, "invalid bulk length");
	if (*position + 1 < length && data[*position + 1] != '\n')
		return refuse(request, "invalid bulk length");
	*position += 2;
	return *position <= length;
}

static int decode_array(uint8_t *data, size_t length, const struct resp_bounds *bounds,
			struct resp_request *out, size_t *consumed)
{
	size_t position = 1, count, i;
	int whole = read_count(data, length, bounds, out, &position, &count);

	if (whole <= 0)
		return whole;
	for (i = 0; i < count; i++) {
		whole = read_bulk(data, length, bounds, out, &position, &out->arguments[i]);
		if (whole <= 0)
			return whole;
	}
	for (i = 0; i < count; i++)
		((char *)out->arguments[i].data)[out->arguments[i].length] = '\0';
	out->count = count;
	*consumed = position;
	return 1;
}

/* ---- inline requests: words of a line, with the quotes and escapes of redis-cli */

static bool is_blank(uint8_t c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static int hex_value(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One character within quotes. Returns how many bytes it takes. */
static size_t unescape(const uint8_t *from, const uint8_t *end, uint8_t *out)
{
	static const char plain[] = "nrtba", meant[] = "\n\r\t\b\a";
	const char *found;

	*out = from[0];
	if (from[0] != '\\' || end - from < 2)
		return 1;
	if (end - from >= 4 && from[1] == 'x' && hex_value(from[2]) >= 0 &&
	    hex_value(from[3]) >= 0) {
		*out = (uint8_t)(hex_value(from[2]) << 4 | hex_value(from[3]));
		return 4;
	}
	found = from[1] ? strchr(plain, from[1]) : NULL;
	*out = found ? (uint8_t)meant[found - plain] : from[1];
	return 2;
}

/*
 * What stands in quotes, from behind the opening one, to *to. Returns the place behind the closing
 * quote, or NULL if there is none or if anything but a blank follows it.
 */
static uint8_t *read_quoted(uint8_t *from, const uint8_t *end, uint8_t quote, uint8_t **to)
{
	while (from < end && *from != quote) {
		uint8_t c = *from;
		/* In single quotes the only escape is that of the quote itself. */
		bool may_escape = quote == '"' || (end - from >= 2 && from[1] == quote);

		if (may_escape)
			from += unescape(from, end, &c);
		else
			from++;
		*(*to)++ = c;
	}
	if (from == end || (from + 1 < end && !is_blank(from[1])))
		return NULL;
	return from + 1;
}

/* The next word of the line, unquoted to where it stands; it never gets longer. */
static uint8_t *read_word(uint8_t *from, const uint8_t *end, struct resp_argument *out)
{
	uint8_t *at = from, *to = from;

	while (at < end && *at != ' ' && *at != '\t' && *at != '\r' && *at != '\n') {
		if (*at == '"' || *at == '\'') {
			at = read_quoted(at + 1, end, *at, &to);
			break;
		}
		*to++ = *at++;
	}
	out->data = (const char *)from;
	out->length = (size_t)(to - from);
	return at;
}

static int decode_inline(uint8_t *data, size_t length, const struct resp_bounds *bounds,
			 struct resp_request *out, size_t *consumed)
{
	size_t within = length <= bounds->inline_bytes_max ? length : bounds->inline_bytes_max + 1u;
	uint8_t *newline = memchr(data, '\n', within);
	uint8_t *end = newline, *at = data;
	size_t count = 0, i;

	if (!newline)
		return within > bounds->inline_bytes_max ? refuse(out, "too big inline request")
							 : 0;
	for (;;) {
		while (at < end && is_blank(*at))
			at++;
		if (at == end)
			break;
		if (count == bounds->arguments_max)
			return refuse(out, "too big inline request");
		at = read_word(at, end, &out->arguments[count]);
		if (!at)
			return refuse(out, "unbalanced quotes in request");
		if (out->arguments[count++].length > bounds->argument_bytes_max)
			return refuse(out, "too big inline request");
	}
	/* Behind each word there is a blank, its closing quote or the newline. */
	for (i = 0; i < count; i++)
		((char *)out->arguments[i].data)[out->arguments[i].length] = '\0';
	out->count = count;
	*consumed = (size_t)(newline + 1 - data);
	return 1;
}

int resp_decode(uint8_t *data, size_t length, const struct resp_bounds *bounds,
		struct resp_request *out, size_t *consumed)
{
	if (length == 0)
		return 0;
	if (data[0] == '*')
		return decode_array(data, length, bounds, out, consumed);
	return decode_inline(data, length, bounds, out, consumed);
}

bool resp_argument_is(const struct resp_argument *argument, const char *word)
{
	return strlen(word) == argument->length &&
	       strncasecmp(argument->data, word, argument->length) == 0;
}

int resp_argument_integer(const struct resp_argument *argument, int64_t *out)
{
	const char *at = argument->data, *end = at + argument->length;
	bool is_negative = at < end && *at == '-';
	uint64_t value = 0, most = is_negative ? (uint64_t)INT64_MAX + 1 : INT64_MAX;
	bool is_beyond = false;

	at += is_negative;
	if (at == end || (*at == '0' && (end - at > 1 || is_negative)))
		return -EINVAL;
	for (; at < end; at++) {
		unsigned digit = (unsigned)(unsigned char)*at - '0';

		if (digit > 9)
			return -EINVAL;
		is_beyond = is_beyond || value > (most - digit) / 10;
		value = is_beyond ? 0 : value * 10 + digit;
	}
	if (is_beyond)
		return -ERANGE;
	*out = (int64_t)(is_negative ? 0 - value : value);
	return 0;
}
