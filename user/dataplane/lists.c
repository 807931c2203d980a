/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps that have keys: the prefix tries and the offenders. */
#include "dataplane/maps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "dataplane/hints.h"
#include "dataplane/trie.h"

enum {
	ADDRESS_BITS = 128,
	LOOKED_AT = 16, /* entries, with each change by hand */
};

static int active_trie(const struct maps *maps)
{
	return maps->fd[maps->config->active & 1 ? MAP_PREFIXES_1 : MAP_PREFIXES_0];
}

int maps_rule_find(const struct maps *maps, const union address *address, uint64_t now_ns,
		   struct rule_found *out)
{
	const struct config_slot *slot = &maps->config->slot[maps->config->active & 1];
	struct prefix_key key = prefix_key_of(address, ADDRESS_BITS);
	struct prefix_entry entry;

	if (!(slot->flags & CONFIG_HAS_PREFIXES))
		return -ENOENT;
	for (;;) {
		if (bpf_map_lookup_elem(active_trie(maps), &key, &entry))
			return -errno;
		out->bits = entry.bits;
		out->by_hand = entry.by_hand.action != PREFIX_NONE &&
			       !prefix_rule_has_ended(&entry.by_hand, now_ns);
		out->rule = out->by_hand ? entry.by_hand : entry.configured;
		if (out->rule.action != PREFIX_NONE)
			return 0;
		/* All that it said has ended: the next shorter one counts. */
		if (!entry.bits || entry.bits > key.bits)
			return -ENOENT;
		key.bits = entry.bits - 1;
	}
}

/* Exactly the key's own entry: a look-up answers with the longest that is no longer than the key.
 * Zero if there is none. */
static int find_own(int fd, const struct prefix_key *key, struct prefix_entry *entry)
{
	if (bpf_map_lookup_elem(fd, key, entry)) {
		if (errno != ENOENT)
			return -errno;
		entry->bits = UINT32_MAX;
	}
	if (entry->bits != key->bits)
		*entry = (struct prefix_entry){ .bits = key->bits };
	return 0;
}

static int write_own(int fd, const struct prefix_key *key, const struct prefix_entry *entry)
{
	if (!entry->by_hand.action && !entry->configured.action)
		return bpf_map_delete_elem(fd, key) && errno != ENOENT ? -errno : 0;
	return bpf_map_update_elem(fd, key, entry, BPF_ANY) ? -errno : 0;
}

/*
 * Forget rules that have ended among the entries that follow a key, but look at a few only: so a
 * change costs the same however many entries there are, and what has ended can still not pile up.
 * With each rule that is given and will end, LOOKED_AT entries are looked at; once one in LOOKED_AT
 * has ended, as many are forgotten as are given.
 */
static void forget_ended(int fd, const struct prefix_key *key, uint64_t now_ns)
{
	struct prefix_key at = *key, next;
	struct prefix_entry entry;

	for (int looks = 0; looks < LOOKED_AT; looks++) {
		if (bpf_map_get_next_key(fd, &at, &next) || bpf_map_lookup_elem(fd, &next, &entry))
			return;
		if (!prefix_rule_has_ended(&entry.by_hand, now_ns)) {
			at = next;
			continue;
		}
		entry.by_hand = (struct prefix_rule){};
		if (write_own(fd, &next, &entry))
			return;
		if (entry.configured.action)
			at = next;
	}
}

/* Programs ask the trie only if the flags and the hints say so. */
static void announce(const struct maps *maps, const struct prefix_key *key)
{
	unsigned active = maps->config->active & 1;
	uint32_t flags = hints_add(maps->prefix_hints + active * PREFIX_HINT_WORDS, key);

	__atomic_fetch_or(&maps->config->slot[active].flags, flags | CONFIG_HAS_PREFIXES,
			  __ATOMIC_RELEASE);
}

/* When no rule is left they need not ask any more. */
static void renounce_if_empty(const struct maps *maps, int fd)
{
	const uint32_t flags = CONFIG_HAS_PREFIXES | CONFIG_SHORT_PREFIXES;
	unsigned active = maps->config->active & 1;
	struct prefix_key first;

	if (!bpf_map_get_next_key(fd, NULL, &first) || errno != ENOENT)
		return;
	__atomic_fetch_and(&maps->config->slot[active].flags, ~flags, __ATOMIC_RELEASE);
	hints_clear(maps->prefix_hints + active * PREFIX_HINT_WORDS);
}

int maps_prefix_set(struct maps *maps, const struct prefix_key *key,
		    const struct prefix_rule *by_hand, uint64_t now_ns)
{
	int fd = active_trie(maps);
	struct prefix_entry entry;
	bool was_said;
	int err = find_own(fd, key, &entry);

	if (err)
		return err;
	was_said = entry.by_hand.action && !prefix_rule_has_ended(&entry.by_hand, now_ns);
	if (by_hand->action == PREFIX_NONE && !entry.by_hand.action)
		return -ENOENT;
	entry.by_hand = *by_hand;
	/* While the key is there: from a key that is not, a walk begins at the first. */
	if (by_hand->action == PREFIX_NONE)
		forget_ended(fd, key, now_ns);
	else
		announce(maps, key);
	err = write_own(fd, key, &entry);
	if (!err && by_hand->action != PREFIX_NONE)
		forget_ended(fd, key, now_ns);
	renounce_if_empty(maps, fd);
	if (!err && by_hand->action == PREFIX_NONE && !was_said)
		return -ENOENT;
	return err;
}

int maps_each_prefix(const struct maps *maps, unsigned slot,
		     int (*visit)(const struct prefix_key *key, const struct prefix_entry *entry,
				  void *data),
		     void *data)
{
	return trie_walk(maps->fd[slot ? MAP_PREFIXES_1 : MAP_PREFIXES_0], visit, data);
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
