/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A short text put together piece by piece, on the path of every check: several times as fast as
 * printf. What does not fit is cut; who uses it leaves room for the longest that can be.
 */
#ifndef SLUICE_SERVER_SHORT_TEXT_H
#define SLUICE_SERVER_SHORT_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { SHORT_TEXT_MAX = 128, SHORT_TEXT_DIGITS_MAX = 20 };

struct short_text {
	size_t length;
	char text[SHORT_TEXT_MAX]; /* ends in a zero byte once something was put */
};

static inline void short_text_put_bytes(struct short_text *to, const char *bytes, size_t count)
{
	size_t room = sizeof(to->text) - 1 - to->length;

	if (count > room)
		count = room;
	memcpy(to->text + to->length, bytes, count);
	to->length += count;
	to->text[to->length] = '\0';
}

static inline void short_text_put(struct short_text *to, const char *text)
{
	short_text_put_bytes(to, text, strlen(text));
}

static inline void short_text_put_number(struct short_text *to, uint64_t number)
{
	char digits[SHORT_TEXT_DIGITS_MAX];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	short_text_put_bytes(to, digits + at, sizeof(digits) - at);
}

/* RETRY_NEVER and REMAINING_UNLIMITED, too. */
static inline void short_text_put_signed(struct short_text *to, int64_t number)
{
	if (number < 0)
		short_text_put(to, "-");
	short_text_put_number(to, number < 0 ? -(uint64_t)number : (uint64_t)number);
}

#endif
