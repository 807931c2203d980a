/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes into a bounded text and stops as soon as that is full, so that a message costs no more
 * than it shows, however large and deep the value is.
 */
#include "limit/term_text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	DEPTH_MAX = 8, /* as much as could be shown */
	REAL_DIGITS_MAX = 17,
	REAL_TEXT_MAX = 32,
	ELLIPSIS_CHARS = 3,
};

/* A text that takes whole pieces until one does not fit. */
struct text {
	char *at;
	size_t length;
	bool full;
};

static void put(struct text *text, const char *piece, size_t length)
{
	if (text->full)
		return;
	if (text->length + length > TERM_TEXT_MAX - 1 - ELLIPSIS_CHARS) {
		memcpy(text->at + text->length, "...", ELLIPSIS_CHARS);
		text->length += ELLIPSIS_CHARS;
		text->full = true;
	} else {
		memcpy(text->at + text->length, piece, length);
		text->length += length;
	}
	text->at[text->length] = '\0';
}

static void put_word(struct text *text, const char *word)
{
	put(text, word, strlen(word));
}

/* The bytes of the UTF-8 character that a text begins with; what is no UTF-8 counts singly. */
static size_t character_bytes(const unsigned char *from, size_t length)
{
	size_t wanted = from[0] < 0xc2 ? 1 : from[0] < 0xe0 ? 2 : from[0] < 0xf0 ? 3 : 4;
	size_t bytes = 1;

	if (from[0] > 0xf4 || wanted > length)
		return 1;
	while (bytes < wanted && (from[bytes] & 0xc0) == 0x80)
		bytes++;
	return bytes == wanted ? wanted : 1;
}

static void put_character(struct text *text, const unsigned char *from, size_t bytes)
{
	static const char plain[] = "\"\\\a\b\t\n\v\f\r\033";
	static const char letters[] = "\"\\abtnvfre";
	const char *found = from[0] ? strchr(plain, from[0]) : NULL;
	char escape[12];

	if (bytes == 1 && found) {
		snprintf(escape, sizeof(escape), "\\%c", letters[found - plain]);
		put_word(text, escape);
	} else if (bytes == 1 && (from[0] < ' ' || from[0] >= 0x7f)) {
		snprintf(escape, sizeof(escape), "\\x%02X", from[0]);
		put_word(text, escape);
	} else if (bytes == 2 && from[0] == 0xc2 && from[1] < 0xa0) {
		/* Terminals take these for control characters too. */
		snprintf(escape, sizeof(escape), "\\x{%02X}", from[1]);
		put_word(text, escape);
	} else {
		put(text, (const char *)from, bytes);
	}
}

static void put_string(struct text *text, const char *string, size_t length)
{
	const unsigned char *from = (const unsigned char *)string;
	size_t bytes;

	put_word(text, "\"");
	for (; length && !text->full; from += bytes, length -= bytes) {
		bytes = character_bytes(from, length);
		put_character(text, from, bytes);
	}
	put_word(text, "\"");
}

/* The fewest digits that mean this number, and where its point stands: 0.DIGITS * 10^place. */
static void find_digits(double value, char digits[REAL_TEXT_MAX], int *place)
{
	char text[REAL_TEXT_MAX];
	size_t length = 0;
	int precision, i;

	for (precision = 0; precision < REAL_DIGITS_MAX; precision++) {
		snprintf(text, sizeof(text), "%.*e", precision, value);
		if (strtod(text, NULL) == value)
			break;
	}
	for (i = 0; text[i] && text[i] != 'e'; i++)
		if (text[i] != '.')
			digits[length++] = text[i];
	while (length > 1 && digits[length - 1] == '0')
		length--;
	digits[length] = '\0';
	*place = atoi(text + i + 1) + 1;
}

/* As a decimal or with an exponent, whichever is shorter, and always with a point. */
static void put_real(struct text *text, double value)
{
	char digits[REAL_TEXT_MAX], out[2 * REAL_TEXT_MAX], exponent[16];
	int place, length, cost;

	if (value < 0)
		put_word(text, "-");
	find_digits(value < 0 ? -value : value, digits, &place);
	length = (int)strlen(digits);
	snprintf(exponent, sizeof(exponent), "%d", place - 1);
	cost = (int)strlen(exponent) + 1 + (length == 1 ? 2 : 1);
	if (digits[0] == '0')
		snprintf(out, sizeof(out), "0.0");
	else if (place > 0 && place < length)
		snprintf(out, sizeof(out), "%.*s.%s", place, digits, digits + place);
	else if (place <= 0 && (place == 0 || 2 - place <= cost))
		snprintf(out, sizeof(out), "0.%.*s%s", -place, "0000000000", digits);
	else if (place >= length && place - length + 2 <= cost)
		snprintf(out, sizeof(out), "%s%.*s.0", digits, place - length, "0000000000");
	else
		snprintf(out, sizeof(out), "%c.%se%s", digits[0], length > 1 ? digits + 1 : "0",
			 exponent);
	put_word(text, out);
}

static void put_value(struct text *text, const json_t *value, unsigned depth);

static void put_array(struct text *text, const json_t *array, unsigned depth)
{
	size_t i;

	put_word(text, "[");
	for (i = 0; i < json_array_size(array) && !text->full; i++) {
		put_word(text, i ? ", " : "");
		put_value(text, json_array_get(array, i), depth + 1);
	}
	put_word(text, "]");
}

/* The first key after `last`, by name; looked for anew each time, since few can be shown. */
static const char *next_key(const json_t *object, const char *last)
{
	const char *key, *next = NULL;
	json_t *value;

	json_object_foreach((json_t *)object, key, value)
	{
		if ((!last || strcmp(key, last) > 0) && (!next || strcmp(key, next) < 0))
			next = key;
	}
	return next;
}

static void put_object(struct text *text, const json_t *object, unsigned depth)
{
	const char *key = NULL;

	put_word(text, "%{");
	while (!text->full) {
		const char *next = next_key(object, key);

		if (!next)
			break;
		put_word(text, key ? ", " : "");
		put_string(text, next, strlen(next));
		put_word(text, " => ");
		put_value(text, json_object_get(object, next), depth + 1);
		key = next;
	}
	put_word(text, "}");
}

static void put_value(struct text *text, const json_t *value, unsigned depth)
{
	char number[REAL_TEXT_MAX];

	if (depth > DEPTH_MAX) {
		put_word(text, "...");
		return;
	}
	if (!value || json_is_null(value)) {
		put_word(text, "nil");
	} else if (json_is_boolean(value)) {
		put_word(text, json_is_true(value) ? "true" : "false");
	} else if (json_is_string(value)) {
		put_string(text, json_string_value(value), json_string_length(value));
	} else if (json_is_integer(value)) {
		snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT,
			 json_integer_value(value));
		put_word(text, number);
	} else if (json_is_real(value)) {
		put_real(text, json_real_value(value));
	} else if (json_is_array(value)) {
		put_array(text, value, depth);
	} else {
		put_object(text, value, depth);
	}
}

void term_format(const json_t *value, char out[TERM_TEXT_MAX])
{
	struct text text = { .at = out };

	out[0] = '\0';
	put_value(&text, value, 0);
}

void term_format_string(const char *string, size_t length, char out[TERM_TEXT_MAX])
{
	struct text text = { .at = out };

	out[0] = '\0';
	put_string(&text, string, length);
}
