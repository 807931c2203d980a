/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Encoding replies. Failure sticks: whoever writes a reply of many parts asks once, at its end. The
 * count of values owed lets the server see that a command has given exactly one reply; one too few
 * or too many would shift every later answer to another question.
 */
#include "wire/resp.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	ROOM_FIRST = 256,
	NUMBER_CHARS_MAX = 40, /* any integer or double with type byte and CR LF */
};

void resp_writer_init(struct resp_writer *writer, unsigned protocol, size_t most)
{
	*writer = (struct resp_writer){ .protocol = protocol, .most = most };
}

void resp_writer_done(struct resp_writer *writer)
{
	free(writer->data);
	*writer = (struct resp_writer){ 0 };
}

void resp_writer_drop(struct resp_writer *writer, size_t bytes)
{
	writer->length -= bytes;
	if (bytes && writer->length)
		memmove(writer->data, writer->data + bytes, writer->length);
}

void resp_writer_cut(struct resp_writer *writer, size_t length)
{
	writer->length = length;
}

/* Room for so many bytes more, or NULL. */
static uint8_t *reserve(struct resp_writer *writer, size_t bytes)
{
	size_t room = writer->room ? writer->room : ROOM_FIRST;
	uint8_t *data;

	if (writer->is_failed)
		return NULL;
	if (writer->room - writer->length >= bytes)
		return writer->data + writer->length;
	if (bytes > writer->most || writer->length > writer->most - bytes)
		goto fail;
	while (room - writer->length < bytes)
		room *= 2;
	data = realloc(writer->data, room);
	if (!data)
		goto fail;
	writer->data = data;
	writer->room = room;
	return data + writer->length;

fail:
	writer->is_failed = true;
	return NULL;
}

static void append(struct resp_writer *writer, const void *bytes, size_t length)
{
	uint8_t *to = reserve(writer, length);

	if (!to || length == 0)
		return;
	memcpy(to, bytes, length);
	writer->length += length;
}

/* `:`, `$`, `*` or `%`, a number, CR LF: most of what we ever send. */
static void append_header(struct resp_writer *writer, char type, int64_t value)
{
	uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
	char text[NUMBER_CHARS_MAX];
	char *at = text + sizeof(text);

	*--at = '\n';
	*--at = '\r';
	do {
		*--at = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest);
	if (value < 0)
		*--at = '-';
	*--at = type;
	append(writer, at, (size_t)(text + sizeof(text) - at));
}

void resp_write_integer(struct resp_writer *writer, int64_t value)
{
	writer->owed--;
	append_header(writer, ':', value);
}

void resp_write_boolean(struct resp_writer *writer, bool value)
{
	resp_write_integer(writer, value);
}

void resp_write_double(struct resp_writer *writer, double value)
{
	char text[NUMBER_CHARS_MAX];
	int digits;

	if (isnan(value))
		strcpy(text, "nan");
	else if (isinf(value))
		strcpy(text, value < 0 ? "-inf" : "inf");
	else /* the shortest that reads back as the same */
		for (digits = 15; digits <= 17; digits++) {
			snprintf(text, sizeof(text), "%.*g", digits, value);
			if (strtod(text, NULL) == value)
				break;
		}
	if (writer->protocol < 3) {
		resp_write_text(writer, text);
		return;
	}
	writer->owed--;
	append(writer, ",", 1);
	append(writer, text, strlen(text));
	append(writer, "\r\n", 2);
}

void resp_write_bulk(struct resp_writer *writer, const void *data, size_t length)
{
	writer->owed--;
	append_header(writer, '$', (int64_t)length);
	append(writer, data, length);
	append(writer, "\r\n", 2);
}

void resp_write_text(struct resp_writer *writer, const char *text)
{
	resp_write_bulk(writer, text, strlen(text));
}

/* A line of one type. It must not hold what would end it, nor what a terminal would obey. */
static void append_line(struct resp_writer *writer, char type, const char *text, size_t length)
{
	uint8_t *to = reserve(writer, length + 3);
	size_t i;

	writer->owed--;
	if (!to)
		return;
	*to++ = (uint8_t)type;
	for (i = 0; i < length; i++) {
		uint8_t c = (uint8_t)text[i];

		*to++ = c < ' ' || c == 0x7f ? ' ' : c > 0x7f ? '?' : c;
	}
	*to++ = '\r';
	*to = '\n';
	writer->length += length + 3;
}

void resp_write_simple(struct resp_writer *writer, const char *text)
{
	append_line(writer, '+', text, strlen(text));
}

void resp_write_error(struct resp_writer *writer, const char *format, ...)
{
	char text[RESP_ERROR_MAX];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	append_line(writer, '-', text, strlen(text));
}

void resp_write_null(struct resp_writer *writer)
{
	writer->owed--;
	if (writer->protocol < 3)
		append(writer, "$-1\r\n", 5);
	else
		append(writer, "_\r\n", 3);
}

void resp_write_array(struct resp_writer *writer, size_t count)
{
	writer->owed += (int64_t)count - 1;
	append_header(writer, '*', (int64_t)count);
}

void resp_write_map(struct resp_writer *writer, size_t pairs)
{
	writer->owed += 2 * (int64_t)pairs - 1;
	if (writer->protocol < 3)
		append_header(writer, '*', 2 * (int64_t)pairs);
	else
		append_header(writer, '%', (int64_t)pairs);
}

void resp_write_part(struct resp_writer *writer, const struct resp_writer *part)
{
	writer->owed += part->owed;
	writer->is_failed = writer->is_failed || part->is_failed;
	append(writer, part->data, part->length);
}

size_t resp_writer_count(const struct resp_writer *part)
{
	return part->owed < 0 ? (size_t)-part->owed : 0;
}
