/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads the lists `exempt` and `deny` and the map `prefixes` into one array, and finds the prefix
 * that two of them name: in the kernel's trie the one would silently replace the other. Reads
 * `routes.trusted_proxies` into an array of its own, which no trie will hold.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "limit/settings_draft.h"

static const char *section_of(enum prefix_action action)
{
	switch (action) {
	case PREFIX_EXEMPT:
		return "exempt";
	case PREFIX_DENY:
		return "deny";
	default:
		return "rate_limits.prefixes";
	}
}

static int grow(struct settings_draft *draft)
{
	struct settings *settings = draft->settings;
	void *grown =
		draft_grow(settings->prefixes, sizeof(*settings->prefixes), &draft->prefix_places,
			   settings->prefix_count, &draft->prefix_room);

	if (!grown)
		return -ENOMEM;
	settings->prefixes = grown;
	return 0;
}

static int fail_host_bits(struct yaml_reader *reader, const char *word)
{
	union address address;
	uint32_t bits;
	char meant[PREFIX_TEXT_MAX];

	if (parse_prefix_loose(word, &address, &bits) != 0)
		return yaml_fail_got(reader, "bits are set beyond the length of the prefix");
	format_prefix(&address, bits, meant);
	return yaml_fail(reader, "bits are set beyond the length of the prefix; did you mean %s?",
			 meant);
}

static int scan_prefix(struct yaml_reader *reader, const char *word, union address *address,
		       uint32_t *bits)
{
	int err = parse_prefix(word, address, bits);

	if (err == -EDOM)
		return fail_host_bits(reader, word);
	if (err == -EAFNOSUPPORT)
		return yaml_fail_got(reader, "must not be so short that it holds all of IPv4 as "
					     "well; 2000::/3 is the IPv6 Internet");
	if (err)
		return yaml_fail_got(reader, "must be an address or a prefix such as 10.0.0.0/8 or "
					     "2001:db8::/32");
	return 0;
}

/* Append what the word says, at the place where it stands. */
static int add(struct yaml_reader *reader, struct settings_draft *draft, const char *word,
	       enum prefix_action action)
{
	struct setting_prefix prefix = { .action = action };
	int err = scan_prefix(reader, word, &prefix.address, &prefix.bits);

	if (err)
		return err;
	if (draft->settings->prefix_count == PREFIXES_MAX)
		return yaml_fail(reader, "is one prefix more than the %d that there is room for",
				 PREFIXES_MAX);
	err = grow(draft);
	if (err)
		return err;
	draft->prefix_places[draft->settings->prefix_count] = yaml_place(reader);
	draft->settings->prefixes[draft->settings->prefix_count++] = prefix;
	return 0;
}

static int read_item(struct yaml_reader *reader, struct settings_draft *draft,
		     enum prefix_action action)
{
	const char *word;
	int err = yaml_read_word(reader, "must be an address or a prefix", &word);

	return err ? err : add(reader, draft, word, action);
}

static int read_exempt_item(struct yaml_reader *reader, void *target)
{
	return read_item(reader, target, PREFIX_EXEMPT);
}

static int read_deny_item(struct yaml_reader *reader, void *target)
{
	return read_item(reader, target, PREFIX_DENY);
}

int read_exempt(struct yaml_reader *reader, void *target)
{
	return yaml_read_list(reader, "must be a list such as [10.0.0.0/8]", read_exempt_item,
			      target);
}

int read_deny(struct yaml_reader *reader, void *target)
{
	return yaml_read_list(reader, "must be a list such as [192.0.2.0/24]", read_deny_item,
			      target);
}

static int read_prefix(struct yaml_reader *reader, const char *word, void *target)
{
	struct settings_draft *draft = target;
	struct rate_limit limit[METERS] = { { 0 } };
	unsigned dry = 0;
	struct limit_scope scope = { .limit = limit, .dry = &dry };
	struct yaml_place place = yaml_place(reader);
	struct setting_prefix *added;
	int err = add(reader, draft, word, PREFIX_LIMIT);
	size_t meter;

	if (!err)
		err = yaml_enter(reader);
	if (!err)
		err = read_meters(reader, &scope);
	if (err)
		return err;
	added = &draft->settings->prefixes[draft->settings->prefix_count - 1];
	memcpy(added->limit, limit, sizeof(limit));
	added->dry = dry;
	for (meter = 0; meter < METERS; meter++)
		if (limit[meter].burst)
			return 0;
	return yaml_fail_at(reader, place, NULL,
			    "sets no limit: give connections, packets or bytes, or list the prefix "
			    "under exempt");
}

int read_prefixes(struct yaml_reader *reader, void *target)
{
	return yaml_read_open_map(reader, "must be a map from prefix to limits", read_prefix,
				  target);
}

static int read_proxy(struct yaml_reader *reader, void *target)
{
	struct settings *settings = ((struct settings_draft *)target)->settings;
	struct address_prefix proxy, *grown;
	const char *word;
	int err = yaml_read_word(reader, "must be an address or a prefix", &word);

	if (!err)
		err = scan_prefix(reader, word, &proxy.address, &proxy.bits);
	if (err)
		return err;
	/* Each request looks at all of them. */
	if (settings->trusted_proxy_count == TRUSTED_PROXIES_MAX)
		return yaml_fail(reader, "is one prefix more than the %d that there may be",
				 TRUSTED_PROXIES_MAX);
	grown = reallocarray(settings->trusted_proxies, settings->trusted_proxy_count + 1,
			     sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	grown[settings->trusted_proxy_count++] = proxy;
	settings->trusted_proxies = grown;
	return 0;
}

static int read_proxies(struct yaml_reader *reader, void *target)
{
	return yaml_read_list(reader, "must be a list such as [10.0.0.0/8]", read_proxy, target);
}

int read_routes(struct yaml_reader *reader, void *target)
{
	static const struct yaml_key keys[] = {
		{ "trusted_proxies", read_proxies },
		{ NULL, NULL },
	};

	return yaml_read_map(reader, keys, target);
}

/* By address, length and then place in the file. */
static int compare(const void *a, const void *b, void *prefixes)
{
	const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct setting_prefix *left = (const struct setting_prefix *)prefixes + i;
	const struct setting_prefix *right = (const struct setting_prefix *)prefixes + j;
	int order = memcmp(&left->address, &right->address, sizeof(left->address));

	if (order)
		return order;
	if (left->bits != right->bits)
		return left->bits < right->bits ? -1 : 1;
	return i < j ? -1 : i > j;
}

static bool is_same(const struct setting_prefix *a, const struct setting_prefix *b)
{
	return a->bits == b->bits && memcmp(&a->address, &b->address, sizeof(a->address)) == 0;
}

static int fail_twice(struct yaml_reader *reader, const struct settings_draft *draft,
		      uint32_t first, uint32_t second)
{
	const struct setting_prefix *prefixes = draft->settings->prefixes;
	char name[PREFIX_TEXT_MAX];

	format_prefix(&prefixes[second].address, prefixes[second].bits, name);
	return yaml_fail_at(reader, draft->prefix_places[second],
			    section_of(prefixes[second].action),
			    "%s is given twice; the first is on line %u, under %s", name,
			    draft->prefix_places[first].line, section_of(prefixes[first].action));
}

int check_prefixes(struct yaml_reader *reader, const struct settings_draft *draft)
{
	struct setting_prefix *prefixes = draft->settings->prefixes;
	size_t count = draft->settings->prefix_count, i;
	uint32_t first = 0, second = 0;
	uint32_t *order = calloc(count + 1, sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (i = 0; i < count; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, count, sizeof(*order), compare, prefixes);
	/* Of several the one that comes first in the file, as for every other error. */
	for (i = 1; i < count; i++) {
		if (is_same(&prefixes[order[i - 1]], &prefixes[order[i]]) &&
		    (!second || order[i] < second)) {
			first = order[i - 1];
			second = order[i];
		}
	}
	free(order);
	return second ? fail_twice(reader, draft, first, second) : 0;
}
