/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps that have keys: the prefix tries and the offenders. */
#include "dataplane/maps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>


static int active_trie(const struct maps *maps)
{
	return maps->fd[maps->config->active & 1 ? MAP_PREFIXES_1 : MAP_PREFIXES_0];
}

int maps_prefix_find(const struct maps *maps, const struct prefix_key *key,
		     struct prefix_entry *entry)
{
	return bpf_map_lookup_elem(active_trie(maps), key, entry) ? -errno : 0;
}

static bool is_same(const struct prefix_key *one, const struct prefix_key *other)
{
	return !memcmp(one, other, sizeof(*one));
}

/* A trie's look-up answers with the longest match; whether it is the key itself, only a walk shows. */
struct search {
	const struct prefix_key *key;
	struct prefix_entry *entry;
};

static int compare(const struct prefix_key *key, const struct prefix_entry *entry, void *data)
{
	struct search *search = data;

	if (!is_same(key, search->key))
		return 0;
	*search->entry = *entry;
	return 1;
}

int maps_prefix_set(struct maps *maps, const struct prefix_key *key,
		    const struct prefix_rule *by_hand)
{
	struct config_slot *slot = &maps->config->slot[maps->config->active & 1];
	struct prefix_entry entry = {};
	int found = maps_each_prefix(maps, maps->config->active & 1, compare,
				     &(struct search){ .key = key, .entry = &entry });

	if (found < 0)
		return found;
	if (by_hand->action == PREFIX_NONE && !entry.by_hand.action)
		return -ENOENT;
	entry.by_hand = *by_hand;
	if (!entry.by_hand.action && !entry.configured.action)
		return bpf_map_delete_elem(active_trie(maps), key) ? -errno : 0;
	if (bpf_map_update_elem(active_trie(maps), key, &entry, BPF_ANY))
		return -errno;
	__atomic_fetch_or(&slot->flags, CONFIG_HAS_PREFIXES, __ATOMIC_RELEASE);
	return 0;
}

int maps_each_prefix(const struct maps *maps, unsigned slot,
		     int (*visit)(const struct prefix_key *key, const struct prefix_entry *entry,
				  void *data),
		     void *data)
{
	int fd = maps->fd[slot ? MAP_PREFIXES_1 : MAP_PREFIXES_0];
	struct prefix_key key, next;
	struct prefix_entry entry;
	bool first = true;
	int result = 0;

	while (!result) {
		if (bpf_map_get_next_key(fd, first ? NULL : &key, &next))
			return errno == ENOENT ? 0 : -errno;
		first = false;
		key = next;
		if (!bpf_map_lookup_elem(fd, &key, &entry))
			result = visit(&key, &entry, data);
	}
	return result;
}

static int by_packets(const void *one, const void *other)
{
	const struct known_offender *left = one, *right = other;

	if (left->offender.packets != right->offender.packets)
		return left->offender.packets < right->offender.packets ? 1 : -1;
	return memcmp(&left->address, &right->address, sizeof(left->address));
}

int maps_offenders(const struct maps *maps, struct known_offender **out, size_t *count)
{
	struct known_offender *offenders = calloc(OFFENDERS_MAX, sizeof(*offenders));
	union address key, next;
	size_t found = 0;
	bool first = true;

	if (!offenders)
		return -ENOMEM;
	/* Under a flood keys move while we walk; the bound ends the walk. */
	for (size_t walked = 0; walked < 2 * OFFENDERS_MAX && found < OFFENDERS_MAX; walked++) {
		if (bpf_map_get_next_key(maps->fd[MAP_OFFENDERS], first ? NULL : &key, &next))
			break;
		first = false;
		key = next;
		offenders[found].address = key;
		if (!bpf_map_lookup_elem(maps->fd[MAP_OFFENDERS], &key, &offenders[found].offender))
			found++;
	}
	qsort(offenders, found, sizeof(*offenders), by_packets);
	*out = offenders;
	*count = found;
	return 0;
}
