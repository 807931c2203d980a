/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lists of a hundred thousand prefixes are no rarity, and neither are thousands of rules by hand.
 * So nothing here costs more than a sort of what there is: rules by hand find what the
 * configuration says of the same prefix in an index by key, which is made when the first of them is
 * met.
 */
#include "dataplane/prefixes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/hints.h"
#include "dataplane/rules.h"
#include "dataplane/trie.h"

struct load {
	const struct settings *settings;
	uint64_t now_ns;
	struct trie_writer writer;
	const struct setting_prefix **index; /* by address and length; NULL: not made yet */
	uint64_t *hints;                     /* of the idle slot */
	uint32_t flags;
};

static int compare(const void *one, const void *other)
{
	const struct setting_prefix *left = *(const struct setting_prefix *const *)one;
	const struct setting_prefix *right = *(const struct setting_prefix *const *)other;
	int order = memcmp(&left->address, &right->address, sizeof(left->address));

	if (order)
		return order;
	return (left->bits > right->bits) - (left->bits < right->bits);
}

static int make_index(struct load *load)
{
	const struct settings *settings = load->settings;

	load->index = calloc(settings->prefix_count + 1, sizeof(*load->index));
	if (!load->index)
		return -ENOMEM;
	for (size_t at = 0; at < settings->prefix_count; at++)
		load->index[at] = &settings->prefixes[at];
	qsort(load->index, settings->prefix_count, sizeof(*load->index), compare);
	return 0;
}

static const struct setting_prefix *find_setting(const struct load *load,
						 const struct prefix_key *key)
{
	struct setting_prefix wanted = { .address = prefix_key_address(key), .bits = key->bits };
	const struct setting_prefix *wanted_at = &wanted;
	const struct setting_prefix *const *found =
		bsearch(&wanted_at, load->index, load->settings->prefix_count, sizeof(*load->index),
			compare);

	return found ? *found : NULL;
}

static int add(struct load *load, const struct prefix_key *key, const struct prefix_entry *entry)
{
	load->flags |= CONFIG_HAS_PREFIXES | hints_add(load->hints, key);
	return trie_write(&load->writer, key, entry);
}

static int add_configured(struct load *load)
{
	for (size_t at = 0; at < load->settings->prefix_count; at++) {
		const struct setting_prefix *setting = &load->settings->prefixes[at];
		struct prefix_key key = prefix_key_of(&setting->address, setting->bits);
		struct prefix_entry entry = {};
		int err = rules_prefix(setting, &entry.configured);

		if (!err)
			err = add(load, &key, &entry);
		if (err)
			return err;
	}
	return trie_writer_flush(&load->writer);
}

/* What was said by hand stands beside what the configuration says about the same prefix. */
static int carry_over(const struct prefix_key *key, const struct prefix_entry *old, void *data)
{
	struct load *load = data;
	struct prefix_entry entry = { .by_hand = old->by_hand };
	const struct setting_prefix *setting;
	int err = 0;

	if (old->by_hand.action == PREFIX_NONE ||
	    prefix_rule_has_ended(&old->by_hand, load->now_ns))
		return 0;
	if (!load->index)
		err = make_index(load);
	if (err)
		return err;
	setting = find_setting(load, key);
	if (setting)
		err = rules_prefix(setting, &entry.configured);
	if (err)
		return err;
	return add(load, key, &entry);
}

int prefixes_load(struct maps *maps, const struct settings *settings, uint64_t now_ns,
		  uint32_t *flags)
{
	bool idle_is_1 = !(maps->config->active & 1);
	int idle = maps->fd[idle_is_1 ? MAP_PREFIXES_1 : MAP_PREFIXES_0];
	int in_force = maps->fd[idle_is_1 ? MAP_PREFIXES_0 : MAP_PREFIXES_1];
	struct load load = {
		.settings = settings,
		.now_ns = now_ns,
		.hints = maps->prefix_hints + (idle_is_1 ? PREFIX_HINT_WORDS : 0),
	};
	int err = trie_empty(idle);

	hints_clear(load.hints);
	if (!err)
		err = trie_writer_open(&load.writer, idle);
	if (!err)
		err = add_configured(&load);
	if (!err)
		err = trie_walk(in_force, carry_over, &load);
	if (!err)
		err = trie_writer_flush(&load.writer);
	trie_writer_close(&load.writer);
	free(load.index);
	if (!err)
		*flags = load.flags;
	return err;
}
