/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * UTF-8 (RFC 3629) and the characters that YAML 1.1 calls printable. libyaml checks the same, but
 * says neither line nor column, takes a zero byte for the end of some values, and guesses UTF-16.
 */
#include "limit/yaml_text.h"

#include <stdbool.h>
#include <stdint.h>

static bool is_continuation(unsigned char byte)
{
	return (byte & 0xc0) == 0x80;
}

/* How many bytes the first one announces; 0 if it cannot come first. */
static size_t announced_length(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first < 0xc2)
		return 0;
	if (first < 0xe0)
		return 2;
	if (first < 0xf0)
		return 3;
	return first < 0xf5 ? 4 : 0;
}

/* The length of the character at text, or 0 if it is not UTF-8. */
static size_t decode(const unsigned char *text, size_t left, uint32_t *out)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	static const unsigned char bits_of_first[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	size_t length = announced_length(text[0]);
	uint32_t character;
	size_t i;

	if (length == 0 || length > left)
		return 0;
	character = text[0] & bits_of_first[length];
	for (i = 1; i < length; i++) {
		if (!is_continuation(text[i]))
			return 0;
		character = character << 6 | (text[i] & 0x3f);
	}
	if (character < smallest[length] || character > 0x10ffff ||
	    (character >= 0xd800 && character <= 0xdfff))
		return 0;
	*out = character;
	return length;
}

static bool is_printable(uint32_t character)
{
	if (character < 0x20)
		return character == '\t' || character == '\n' || character == '\r';
	if (character >= 0x7f && character < 0xa0)
		return character == 0x85;
	return character != 0xfffe && character != 0xffff;
}

const char *yaml_text_problem(const char *text, size_t length, size_t *out_offset)
{
	size_t offset = 0;

	while (offset < length) {
		uint32_t character = 0;
		size_t bytes =
			decode((const unsigned char *)text + offset, length - offset, &character);

		*out_offset = offset;
		if (bytes == 0)
			return "is not UTF-8 text; save the file as UTF-8";
		if (character == 0)
			return "holds a zero byte, so it is not a text file";
		if (!is_printable(character))
			return "holds a control character, so it is not a text file";
		/* A mark of byte order is allowed as the first character, and only there. */
		if (character == 0xfeff && offset > 0)
			return "holds a byte order mark in the middle; remove it";
		offset += bytes;
	}
	return NULL;
}

struct yaml_place yaml_text_place(const char *text, size_t offset)
{
	struct yaml_place place = { 1, 1 };
	size_t i;

	for (i = 0; i < offset; i++) {
		if (text[i] == '\n') {
			place.line++;
			place.column = 1;
		} else if (!is_continuation((unsigned char)text[i])) {
			place.column++;
		}
	}
	return place;
}
