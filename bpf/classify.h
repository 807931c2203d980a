/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stage 2: from a packet to the limits it is held to, or to the reason why it is held to none.
 * The order is part of the promise: what keeps the host on the network passes whatever else is
 * said; then the lists, of which the longest prefix counts; then `protect`.
 */
#ifndef SLUICE_CLASSIFY_H
#define SLUICE_CLASSIFY_H

#include "clock.h"
#include "maps.h"
#include "packet.h"

/* The configuration in force, or NULL: then everything passes. */
SLUICE_INLINE const struct config *config_read(void)
{
	__u32 only = 0;

	return bpf_map_lookup_elem(&config, &only);
}

SLUICE_INLINE const struct config_slot *config_in_force(const struct config *all, __u32 *active)
{
	const struct config_slot *slot;

	*active = *(const volatile __u32 *)&all->active;
	if (all->abi_version != SLUICE_ABI_VERSION || *active > 1)
		return 0;
	slot = *active ? &all->slot[1] : &all->slot[0];
	return slot->generation ? slot : 0;
}

SLUICE_INLINE const struct prefix_entry *find_entry(__u32 active, const struct prefix_key *key)
{
	return active ? bpf_map_lookup_elem(&prefixes_1, key)
		      : bpf_map_lookup_elem(&prefixes_0, key);
}

/* The rule of an entry, or NULL if all it has has ended. The clock is read only where it matters. */
SLUICE_INLINE const struct prefix_rule *rule_of(const struct prefix_entry *entry)
{
	const struct prefix_rule *by_hand = &entry->by_hand;

	if (by_hand->action != PREFIX_NONE &&
	    !(by_hand->expires_s && prefix_rule_has_ended(by_hand, clock_coarse_ns())))
		return by_hand;
	return entry->configured.action != PREFIX_NONE ? &entry->configured : 0;
}

enum { PREFIX_BITS = 128 };

/*
 * The longest prefix of the source that is shorter than bits and has a rule; its length * 2, + 1 if
 * the rule is the one by hand; negative: there is none. A trie only answers with the longest entry,
 * so where that has ended, one has to ask again, for less than its length. Each step goes to the
 * next entry, and there are no more than there are lengths. A function of its own for the verifier,
 * which looks at so many steps once and not wherever it is called.
 */
__attribute__((noinline)) int find_shorter(const union address *source, __u32 bits, __u32 active);

__attribute__((noinline)) int find_shorter(const union address *source, __u32 bits, __u32 active)
{
	struct prefix_key key;

	if (!source)
		return -1;
	key = prefix_key_of(source, 0);
	for (int step = 0; step < PREFIX_BITS; step++) {
		const struct prefix_entry *entry;
		const struct prefix_rule *rule;

		if (!bits || bits > PREFIX_BITS)
			return -1;
		key.bits = bits - 1;
		entry = find_entry(active, &key);
		if (!entry)
			return -1;
		rule = rule_of(entry);
		bits = entry->bits;
		if (rule)
			return (int)(bits * 2 + (rule == &entry->by_hand));
	}
	return -1;
}

/* Whether any prefix may lie around the source. One look at half a megabyte, so that a flood from
 * everywhere does not walk a long list in the trie for each packet. */
SLUICE_INLINE bool may_be_listed(const struct config_slot *slot, __u32 active,
				 const union address *source)
{
	__u32 hint = prefix_hint_of(source);
	__u32 index = active * PREFIX_HINT_WORDS + hint / 64;
	const __u64 *word = bpf_map_lookup_elem(&prefix_hints, &index);

	if (!word || (slot->flags & CONFIG_SHORT_PREFIXES && !address_is_v4(source)))
		return true;
	return *(const volatile __u64 *)word >> (hint & 63) & 1;
}

/* What the lists say about the source, or NULL. */
SLUICE_INLINE const struct prefix_rule *find_prefix(const struct config_slot *slot, __u32 active,
						    const union address *source)
{
	struct prefix_key key = prefix_key_of(source, PREFIX_BITS);
	const struct prefix_entry *entry;
	const struct prefix_rule *rule;
	int found;

	if (!(slot->flags & CONFIG_HAS_PREFIXES) || !may_be_listed(slot, active, source))
		return 0;
	entry = find_entry(active, &key);
	if (!entry)
		return 0;
	rule = rule_of(entry);
	if (rule)
		return rule;
	found = find_shorter(source, entry->bits, active);
	if (found < 0)
		return 0;
	key.bits = (__u32)found / 2;
	entry = find_entry(active, &key);
	if (!entry)
		return 0;
	return found & 1 ? &entry->by_hand : &entry->configured;
}

SLUICE_INLINE bool is_port_protected(const struct packet *packet, __u32 active)
{
	__u32 index = packet->destination_port / 64;
	const struct protected_ports *ports = bpf_map_lookup_elem(&protect, &index);
	__u64 mask;

	if (!ports)
		return false;
	if (packet->protocol == PROTOCOL_TCP)
		mask = active ? ports->tcp[1] : ports->tcp[0];
	else
		mask = active ? ports->udp[1] : ports->udp[0];
	return mask >> (packet->destination_port & 63) & 1;
}

/* Whether `protect` covers the packet. One that hides its port is covered if its protocol is, and one
 * that hides even its protocol if anything is. */
SLUICE_INLINE bool is_protected(const struct config_slot *slot, const struct packet *packet,
				__u32 active)
{
	__u32 flags = slot->flags;

	if (flags & CONFIG_PROTECT_ALL)
		return true;
	switch (packet->protocol) {
	case PROTOCOL_TCP:
		if (!(flags & CONFIG_PROTECT_TCP))
			return false;
		return packet->flags & PACKET_PORTLESS || is_port_protected(packet, active);
	case PROTOCOL_UDP:
		if (!(flags & CONFIG_PROTECT_UDP))
			return false;
		return packet->flags & PACKET_PORTLESS || is_port_protected(packet, active);
	case PROTOCOL_ICMP:
	case PROTOCOL_ICMPV6:
		return flags & CONFIG_PROTECT_ICMP;
	default:
		return is_extension(packet->protocol) &&
		       flags & (CONFIG_PROTECT_TCP | CONFIG_PROTECT_UDP | CONFIG_PROTECT_ICMP);
	}
}

/* What an address is held to. */
struct held_to {
	const struct gcra_limit *limits; /* METERS of them; NULL: nothing */
	__u32 dry;                       /* bits 1 << enum meter */
};

/* REASON_ADMITTED: to be charged. */
SLUICE_INLINE enum reason classify(const struct config_slot *slot, __u32 active,
				   const struct packet *packet, struct held_to *held)
{
	const struct prefix_rule *rule;

	held->limits = slot->flags & CONFIG_LIMITS_IP ? slot->ip : 0;
	held->dry = slot->dry_ip;
	if (packet->flags & PACKET_CONTROL)
		return REASON_CONTROL;
	rule = find_prefix(slot, active, &packet->source);
	if (rule) {
		if (rule->action == PREFIX_DENY)
			return REASON_DENY;
		if (rule->action == PREFIX_EXEMPT)
			return REASON_EXEMPT;
		if (rule->action == PREFIX_LIMIT) {
			held->limits = rule->limit;
			held->dry = rule->dry;
		}
	}
	return is_protected(slot, packet, active) ? REASON_ADMITTED : REASON_UNPROTECTED;
}

#endif
