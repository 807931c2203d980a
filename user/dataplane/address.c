/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds an address's words by the same hash as the programs, and reads them. */
#include "dataplane/address.h"

#include <errno.h>

#include <sluice/key.h>
#include <sluice/word.h>

enum { CLAIM_LOOKS = 1000 };

static uint64_t read_word(const struct bucket_set *set, uint32_t index)
{
	return __atomic_load_n(&set->word[index], __ATOMIC_ACQUIRE);
}

static void look_at_rules(const struct maps *maps, const struct config_slot *slot,
			  const union address *address, uint64_t now_ns, struct address_state *out)
{
	const struct gcra_limit *limits = slot->ip;
	uint32_t dry = slot->dry_ip;

	if (maps_rule_find(maps, address, now_ns, &out->found))
		out->found = (struct rule_found){};
	if (out->found.rule.action == PREFIX_LIMIT) {
		limits = out->found.rule.limit;
		dry = out->found.rule.dry;
	}
	for (int meter = 0; meter < METERS; meter++) {
		out->meters[meter].limit = limits[meter];
		out->meters[meter].is_dry = dry & 1u << meter;
	}
}

static void look_at_word(const struct bucket_set *set, uint32_t tag, uint64_t now_ns,
			 struct address_meter *meter)
{
	uint64_t now = word_ticks(now_ns, meter->limit.word_class), tat = now, debt;

	for (uint32_t index = 0; index < SET_WORDS && !meter->has_word; index++) {
		uint64_t word = read_word(set, index);

		if (word == WORD_EMPTY || word_tag(word) != tag)
			continue;
		meter->has_word = true;
		meter->is_claimed = word_is_claim(word);
		meter->index = index;
		meter->word = word;
	}
	if (!meter->limit.capacity)
		return;
	if (meter->has_word && !meter->is_claimed)
		tat = word_tat(meter->word, now_ns, meter->limit.word_class);
	debt = gcra_debt(&meter->limit, tat, now);
	meter->debt = (double)debt * (double)(1ULL << meter->limit.fraction_bits) /
		      (double)meter->limit.interval;
	meter->remaining = gcra_remaining(&meter->limit, tat, now);
	meter->full_after_ns = gcra_wait_ns(debt, meter->limit.tick_shift);
}

static void find_place(const struct maps *maps, const struct config_slot *slot,
		       const union address *address, struct address_state *out)
{
	out->key = address_key(address, slot->ipv6_prefix);
	out->place = key_place(&maps->config->secret, &out->key, IP_SETS - 1);
}

int address_look(const struct maps *maps, const union address *address, uint64_t now_ns,
		 struct address_state *out)
{
	const struct config_slot *slot = maps_slot(maps);
	const struct bucket_set *set;
	unsigned others = 0;

	if (!slot)
		return -ENOENT;
	*out = (struct address_state){};
	find_place(maps, slot, address, out);
	look_at_rules(maps, slot, address, now_ns, out);
	set = &maps->ip_buckets[out->place.set];
	for (uint32_t meter = 0; meter < METERS; meter++)
		look_at_word(set, place_tag(&out->place, meter), now_ns, &out->meters[meter]);
	for (uint32_t index = 0; index < SET_WORDS; index++)
		others += !word_has_passed(read_word(set, index), now_ns);
	out->set_is_full = others == SET_WORDS;
	return 0;
}

/* Empty one word, unless it is a claim: that is over in a moment. */
static bool clear_word(struct bucket_set *set, uint32_t index, uint32_t tag)
{
	for (int looks = 0; looks < CLAIM_LOOKS; looks++) {
		__u64 word = read_word(set, index);

		if (word == WORD_EMPTY || word_tag(word) != tag)
			return false;
		if (!word_is_claim(word) &&
		    __atomic_compare_exchange_n(&set->word[index], &word, WORD_EMPTY, false,
						__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			return true;
	}
	return false;
}

int address_reset(struct maps *maps, const union address *address, unsigned *words)
{
	const struct config_slot *slot = maps_slot(maps);
	struct address_state state = {};
	struct bucket_set *set;

	if (!slot)
		return -ENOENT;
	find_place(maps, slot, address, &state);
	set = &maps->ip_buckets[state.place.set];
	*words = 0;
	for (uint32_t meter = 0; meter < METERS; meter++)
		for (uint32_t index = 0; index < SET_WORDS; index++)
			*words += clear_word(set, index, place_tag(&state.place, meter));
	return 0;
}
