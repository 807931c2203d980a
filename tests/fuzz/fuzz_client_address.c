/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * X-Forwarded-For of any bytes. Two things hold whatever is sent: lines are worth what they are
 * when joined by commas, and what a client writes in front of an address that is not trusted
 * changes nothing.
 *
 * The first byte of an input chooses who is trusted; the rest is lines that end in '\n'.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/client_address.h"
#include "base/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINES_MAX = 64 };

static void must(bool condition)
{
	if (!condition)
		abort();
}

static bool is_same(const union address *a, const union address *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static size_t split(const char *text, size_t length, struct forwarded_for lines[LINES_MAX])
{
	size_t count = 0;

	while (length > 0 && count < LINES_MAX) {
		const char *end = memchr(text, '\n', length);
		size_t taken = end ? (size_t)(end - text) : length;

		lines[count++] = (struct forwarded_for){ text, taken };
		text += taken + (end != NULL);
		length -= taken + (end != NULL);
	}
	return count;
}

/* As one line, with something in front. The caller owns it. */
static struct forwarded_for join(const char *front, const struct forwarded_for *lines, size_t count)
{
	size_t length = strlen(front), i;
	char *text;

	for (i = 0; i < count; i++)
		length += lines[i].length + 1;
	text = malloc(length + 1);
	must(text != NULL);
	strcpy(text, front);
	length = strlen(front);
	for (i = 0; i < count; i++) {
		memcpy(text + length, lines[i].text, lines[i].length);
		length += lines[i].length;
		text[length++] = ',';
	}
	return (struct forwarded_for){ text, length };
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const prefixes[] = { "10.0.0.0/8", "2001:db8::/32", "0.0.0.0/0" };
	struct forwarded_for lines[LINES_MAX], joined, forged;
	struct address_prefix trusted[3];
	union address peer, client = { .half = { 1, 2 } }, untouched = client, other;
	size_t trusted_count, count, i;
	bool is_trusted = false;
	int err;

	if (size == 0)
		return 0;
	trusted_count = data[0] % 4;
	for (i = 0; i < 3; i++)
		must(parse_prefix(prefixes[i], &trusted[i].address, &trusted[i].bits) == 0);
	must(parse_address(data[0] & 4 ? "2001:db8::9" : "::ffff:10.0.0.9", &peer) == 0);
	count = split((const char *)data + 1, size - 1, lines);
	err = client_address_resolve(&peer, trusted, trusted_count, lines, count, &client);
	must(err == 0 || (err == -EINVAL && is_same(&client, &untouched)));

	joined = join("", lines, count);
	other = untouched;
	must(client_address_resolve(&peer, trusted, trusted_count, &joined, 1, &other) == err);
	must(is_same(&client, &other));

	for (i = 0; i < trusted_count && !err; i++)
		is_trusted |= address_is_within(&client, &trusted[i]);
	forged = join("6.6.6.6, garbage:x, 10.0.0.1,", lines, count);
	if (!is_trusted) {
		other = untouched;
		must(client_address_resolve(&peer, trusted, trusted_count, &forged, 1, &other) ==
		     err);
		must(is_same(&client, &other));
	}
	free((char *)joined.text);
	free((char *)forged.text);
	return 0;
}
