/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walks X-Forwarded-For from its end. IPv4-mapped addresses need no care here: every address is in
 * its mapped form, whatever it was written as.
 */
#include "base/client_address.h"

#include <errno.h>
#include <string.h>

#include "base/parse.h"

enum {
	ENTRY_CHARS_MAX = ADDRESS_TEXT_MAX + 8, /* brackets, a colon and a port */
	PORT_MAX = 65535,
};

bool address_is_within(const union address *address, const struct address_prefix *prefix)
{
	uint32_t low_bits = prefix->bits > 64 ? prefix->bits - 64 : 0;

	return (address->half[0] & address_mask(prefix->bits)) == prefix->address.half[0] &&
	       (address->half[1] & address_mask(low_bits)) == prefix->address.half[1];
}

static bool is_trusted(const union address *address, const struct address_prefix *trusted,
		       size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (address_is_within(address, &trusted[i]))
			return true;
	return false;
}

static bool is_port(const char *text)
{
	uint64_t port;

	return parse_uint(text, 0, PORT_MAX, &port) == 0;
}

/* [IPv6] or [IPv6]:PORT. Cuts the text. */
static int parse_bracketed(char *text, union address *out)
{
	char *end = strchr(text, ']');

	if (!end || !memchr(text, ':', (size_t)(end - text)))
		return -EINVAL;
	if (end[1] && (end[1] != ':' || !is_port(end + 2)))
		return -EINVAL;
	*end = '\0';
	return parse_address(text + 1, out);
}

static int parse_entry(const char *entry, size_t length, union address *out)
{
	char text[ENTRY_CHARS_MAX + 1];
	char *colon;

	if (length > ENTRY_CHARS_MAX || memchr(entry, '\0', length))
		return -EINVAL;
	memcpy(text, entry, length);
	text[length] = '\0';
	if (text[0] == '[')
		return parse_bracketed(text, out);
	colon = strchr(text, ':');
	/* With a second one it is an IPv6 address, to which no port can be added. */
	if (colon && !strchr(colon + 1, ':')) {
		if (!is_port(colon + 1))
			return -EINVAL;
		*colon = '\0';
	}
	return parse_address(text, out);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Take the last entry off the text, or what stands for one between commas: it may be empty. */
static struct forwarded_for take_last(struct forwarded_for *rest)
{
	size_t begin = rest->length, end = rest->length;
	struct forwarded_for entry;

	while (begin > 0 && rest->text[begin - 1] != ',')
		begin--;
	rest->length = begin > 0 ? begin - 1 : 0;
	while (begin < end && is_blank(rest->text[begin]))
		begin++;
	while (end > begin && is_blank(rest->text[end - 1]))
		end--;
	entry.text = rest->text + begin;
	entry.length = end - begin;
	return entry;
}

int client_address_resolve(const union address *peer, const struct address_prefix *trusted,
			   size_t trusted_count, const struct forwarded_for *values,
			   size_t value_count, union address *out)
{
	union address client;
	bool found;

	if (!peer)
		return -EINVAL;
	client = *peer;
	found = !is_trusted(&client, trusted, trusted_count);
	while (value_count > 0 && !found) {
		struct forwarded_for rest = values[--value_count];

		while (rest.length > 0 && !found) {
			struct forwarded_for entry = take_last(&rest);

			if (entry.length == 0)
				continue;
			if (parse_entry(entry.text, entry.length, &client))
				return -EINVAL;
			found = !is_trusted(&client, trusted, trusted_count);
		}
	}
	*out = client;
	return 0;
}
