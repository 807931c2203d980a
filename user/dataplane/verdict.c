/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The steps of the programs, on copies. Where they ask the coarse clock first, to be spared the
 * fine one, only the fine one is asked here: it has the last word there, too. Races are left out: a
 * copy has no others that write it.
 */
#include "dataplane/verdict.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>

#include <bpf/bpf.h>

#include <sluice/word.h>

enum {
	CLAIM_LOOKS = 1000, /* for a word that is just being taken to be settled */
	SLOT_LOOKS = 8,     /* while configurations are turned over */
};

struct foresight {
	const struct maps *maps;
	const struct config_slot *slot;
	const struct verdict_question *question;
	struct verdict *out;
	const struct gcra_limit *limits; /* of the address, METERS; NULL: none */
	uint32_t dry;                    /* its meters that stop nothing */
	uint64_t tokens[METERS];
	struct place place;
	struct bucket_set set; /* a copy */
};

enum outcome { OUTCOME_ADMITTED, OUTCOME_REFUSED, OUTCOME_SET_FULL, OUTCOME_TRIES };

/* ---- the address: bpf/table.h */

static void copy_set(struct foresight *sight)
{
	const struct bucket_set *set = &sight->maps->ip_buckets[sight->place.set];

	for (int looks = 0; looks < CLAIM_LOOKS; looks++) {
		bool is_claimed = false;

		for (int index = 0; index < SET_WORDS; index++) {
			sight->set.word[index] =
				__atomic_load_n(&set->word[index], __ATOMIC_RELAXED);
			is_claimed |= word_is_claim(sight->set.word[index]);
		}
		if (!is_claimed)
			return;
	}
}

static enum outcome refuse(struct foresight *sight, const struct gcra_limit *limit, uint64_t ticks)
{
	sight->out->wait_ns = gcra_wait_ns(ticks, limit->tick_shift);
	return OUTCOME_REFUSED;
}

static enum outcome charge_word(struct foresight *sight, const struct gcra_limit *limit,
				uint64_t tokens, bool look_only, uint32_t index)
{
	__u64 now_ns = sight->question->now_ns, *word = &sight->set.word[index];
	struct gcra_verdict verdict;

	if (word_is_claim(*word))
		return OUTCOME_TRIES;
	verdict = gcra_take(limit, word_tat(*word, now_ns, limit->word_class),
			    word_ticks(now_ns, limit->word_class), tokens);
	if (verdict.admitted ? !look_only : verdict.clamped)
		*word = word_pack(word_tag(*word), limit->word_class, verdict.tat);
	return verdict.admitted ? OUTCOME_ADMITTED : refuse(sight, limit, verdict.wait_ticks);
}

static enum outcome take_word(struct foresight *sight, const struct gcra_limit *limit,
			      uint32_t meter, bool look_only, uint32_t index)
{
	uint64_t cost = gcra_cost(limit, sight->tokens[meter]);

	if (cost > limit->capacity)
		return refuse(sight, limit, GCRA_NEVER);
	if (!look_only)
		sight->set.word[index] =
			word_pack(place_tag(&sight->place, meter), limit->word_class,
				  word_ticks(sight->question->now_ns, limit->word_class) + cost);
	return OUTCOME_ADMITTED;
}

/* In the finest ticks, as word_left() there. */
static int64_t left_of(uint64_t word, uint64_t now_ns)
{
	int shift = WORD_TICK_SHIFT_STEP * (int)word_class(word);
	uint64_t cut = word_ticks(now_ns, 0) & ((1ULL << shift) - 1);

	return word == WORD_EMPTY ? 0
				  : (int64_t)(((uint64_t)word_ahead(word, now_ns) << shift) - cut);
}

/* The word least in debt; -1: one of them is a claim. */
static int find_least(const struct bucket_set *set, uint64_t now_ns)
{
	int found = 0;

	for (int at = 0; at < SET_WORDS; at++) {
		if (word_is_claim(set->word[at]))
			return -1;
		if (left_of(set->word[at], now_ns) < left_of(set->word[found], now_ns))
			found = at;
	}
	return found;
}

/* The word least in debt, with its debt. Nobody brings that back if it is beyond what this limit
 * allows, since it is another's; so then all of it has to be waited for. */
static enum outcome take_over(struct foresight *sight, const struct gcra_limit *limit,
			      uint32_t meter, bool look_only)
{
	uint64_t now_ns = sight->question->now_ns;
	uint64_t now = word_ticks(now_ns, limit->word_class), tat = now;
	int least = find_least(&sight->set, now_ns);
	struct gcra_verdict verdict;

	if (least < 0)
		return OUTCOME_TRIES;
	if (sight->set.word[least] != WORD_EMPTY)
		tat = word_tat(sight->set.word[least], now_ns, limit->word_class);
	verdict = gcra_take(limit, tat, now, sight->tokens[meter]);
	if (!verdict.admitted && verdict.wait_ticks != GCRA_NEVER)
		return refuse(sight, limit,
			      tat - now + gcra_cost(limit, sight->tokens[meter]) - limit->capacity);
	if (!verdict.admitted)
		return refuse(sight, limit, GCRA_NEVER);
	if (!look_only)
		sight->set.word[least] =
			word_pack(place_tag(&sight->place, meter), limit->word_class, verdict.tat);
	return OUTCOME_ADMITTED;
}

/* One meter: its own word, else one that has passed, else as when_full says. */
static enum outcome take(struct foresight *sight, uint32_t meter, bool look_only)
{
	const struct gcra_limit *limit = &sight->limits[meter];
	uint32_t tag = place_tag(&sight->place, meter), way = sight->place.way, at;

	for (uint32_t step = 0; step < SET_WORDS; step++) {
		at = (way + step) & (SET_WORDS - 1);
		if (word_tag(sight->set.word[at]) == tag)
			return charge_word(sight, limit, sight->tokens[meter], look_only, at);
	}
	for (uint32_t step = 0; step < SET_WORDS; step++) {
		at = (way + step) & (SET_WORDS - 1);
		if (word_has_passed(sight->set.word[at], sight->question->coarse_ns))
			return take_word(sight, limit, meter, look_only, at);
	}
	sight->out->is_set_full = true;
	if (sight->slot->when_full == WHEN_FULL_REFUSE)
		return OUTCOME_SET_FULL;
	if (sight->slot->when_full == WHEN_FULL_ADMIT)
		return OUTCOME_ADMITTED;
	return take_over(sight, limit, meter, look_only);
}

static enum reason reason_of(enum outcome outcome, uint32_t meter)
{
	if (outcome == OUTCOME_SET_FULL)
		return REASON_IP_SET_FULL;
	return outcome == OUTCOME_TRIES ? REASON_IP_TRIES : REASON_IP_CONNECTIONS + meter;
}

/* ---- all of it: bpf/police.h */

static enum reason pass_address(struct foresight *sight, bool look_only)
{
	for (uint32_t meter = 0; meter < METERS; meter++) {
		enum outcome outcome;

		if (!sight->tokens[meter] || !sight->limits[meter].capacity)
			continue;
		outcome = take(sight, meter, look_only);
		if (outcome == OUTCOME_ADMITTED)
			continue;
		if (!(sight->dry & 1u << meter))
			return reason_of(outcome, meter);
		sight->out->would |= 1u << reason_of(outcome, meter);
		sight->out->wait_ns = 0;
	}
	return REASON_ADMITTED;
}

static enum reason police_address(struct foresight *sight)
{
	enum reason reason = REASON_ADMITTED;
	unsigned meters = 0;

	for (int meter = 0; meter < METERS; meter++)
		meters += sight->tokens[meter] && sight->limits[meter].capacity;
	/* What one meter takes is not there for the next, so the copy is charged as well. */
	if (meters > 1)
		reason = pass_address(sight, true);
	return reason == REASON_ADMITTED ? pass_address(sight, false) : reason;
}

/* Whether a debt refuses a request even when the coarse clock's lag is given away. */
static bool refuses_anyway(const struct gcra_limit *limit, uint64_t tat, uint64_t now,
			   uint64_t late)
{
	uint64_t cost = gcra_cost(limit, 1);

	return cost <= limit->capacity && !gcra_is_beyond(limit, tat, now) &&
	       gcra_debt(limit, tat, late) + cost > limit->capacity;
}

static bool sheds_address(const struct foresight *sight, const struct hooks *state)
{
	const struct gcra_limit *limit = &sight->slot->ip_hooks;
	uint64_t coarse_ns = sight->question->coarse_ns;
	uint64_t now = word_ticks(coarse_ns, limit->word_class);
	uint64_t lag = word_ticks(sight->maps->config->coarse_lag_ns, limit->word_class);
	union address key = address_key(&sight->question->source, sight->slot->ipv6_prefix);
	struct place place = key_place(&state->secret, &key, IP_SETS - 1);
	struct bucket_set set;

	if (!limit->capacity || state->refusing_until_ns <= coarse_ns ||
	    bpf_map_lookup_elem(sight->maps->fd[MAP_HOOK_BUCKETS], &place.set, &set))
		return false;
	for (int at = 0; at < SET_WORDS; at++)
		if (word_tag(set.word[at]) == place_tag(&place, METER_HOOKS))
			return !word_is_claim(set.word[at]) &&
			       word_class(set.word[at]) == limit->word_class &&
			       refuses_anyway(limit,
					      word_tat(set.word[at], coarse_ns, limit->word_class),
					      now, now + lag + 1);
	return false;
}

static bool sheds_node(const struct foresight *sight, const struct hooks *state)
{
	const struct gcra_limit *limit = &sight->slot->node_hooks;
	uint64_t coarse_ns = sight->question->coarse_ns;
	uint64_t late_ns = coarse_ns + sight->maps->config->coarse_lag_ns;

	return limit->capacity && state->node_tat &&
	       refuses_anyway(limit, state->node_tat, gcra_ticks(coarse_ns, GCRA_TICK_SHIFT),
			      gcra_ticks(late_ns, GCRA_TICK_SHIFT));
}

static enum reason shed(struct foresight *sight)
{
	struct hooks state;
	uint32_t only = 0;

	if (bpf_map_lookup_elem(sight->maps->fd[MAP_HOOKS], &only, &state) ||
	    state.limits_digest != sight->slot->hooks_digest)
		return REASON_ADMITTED;
	if (sheds_address(sight, &state)) {
		if (!(sight->slot->dry_ip & 1u << METER_HOOKS))
			return REASON_SHED_IP;
		sight->out->would |= 1u << REASON_SHED_IP;
	}
	if (!sheds_node(sight, &state))
		return REASON_ADMITTED;
	if (!(sight->slot->dry_node & 1u << METER_HOOKS))
		return REASON_SHED_NODE;
	sight->out->would |= 1u << REASON_SHED_NODE;
	return REASON_ADMITTED;
}

/* The node's meters, for a CPU that holds these slices. */
static enum reason pass_node(const struct foresight *sight, const struct node_slices *slices,
			     uint32_t *would, uint64_t *wait_ns)
{
	uint64_t now = gcra_ticks(sight->question->now_ns, GCRA_TICK_SHIFT);
	bool is_current = slices->generation == sight->slot->generation;

	for (int meter = 0; meter < METERS; meter++) {
		const struct gcra_limit *limit = &sight->slot->node[meter].limit;
		uint64_t held = is_current ? slices->meter[meter].unspent : 0, tat;
		struct gcra_verdict verdict;

		if (!limit->capacity || sight->tokens[meter] <= held)
			continue;
		tat = __atomic_load_n(&sight->maps->node_buckets->tat[meter], __ATOMIC_RELAXED);
		verdict = gcra_take(limit, tat ? tat : now, now, sight->tokens[meter] - held);
		if (verdict.admitted)
			continue;
		if (sight->slot->dry_node & 1u << meter) {
			*would |= 1u << (REASON_NODE_CONNECTIONS + meter);
			continue;
		}
		*wait_ns = gcra_wait_ns(verdict.wait_ticks, limit->tick_shift);
		return REASON_NODE_CONNECTIONS + meter;
	}
	return REASON_ADMITTED;
}

/* *reason: of the first CPU that refuses it. */
static int police_node(struct foresight *sight, enum reason *reason)
{
	unsigned cpus = maps_cpus();
	struct node_slices *slices = calloc(cpus, sizeof(*slices));
	uint32_t only = 0;
	int err = slices ? 0 : -ENOMEM;

	if (!err && bpf_map_lookup_elem(sight->maps->fd[MAP_NODE_SLICES], &only, slices))
		err = -errno;
	for (unsigned cpu = 0; !err && cpu < cpus; cpu++) {
		uint32_t would = 0;
		uint64_t wait_ns = 0;
		enum reason here;

		if (sight->question->cpu >= 0 && (unsigned)sight->question->cpu != cpu)
			continue;
		here = pass_node(sight, &slices[cpu], &would, &wait_ns);
		sight->out->cpus++;
		sight->out->cpus_admitting += here == REASON_ADMITTED;
		sight->out->would |= would;
		if (here == REASON_ADMITTED || *reason != REASON_ADMITTED)
			continue;
		*reason = here;
		sight->out->wait_ns = wait_ns;
	}
	free(slices);
	return err;
}

static int police(struct foresight *sight, enum reason *reason)
{
	const struct verdict_question *question = sight->question;
	union address key = address_key(&question->source, sight->slot->ipv6_prefix);

	sight->tokens[METER_CONNECTIONS] = question->opens;
	sight->tokens[METER_PACKETS] = 1;
	sight->tokens[METER_BYTES] = question->bytes;
	sight->place = key_place(&sight->maps->config->secret, &key, IP_SETS - 1);
	copy_set(sight);
	*reason = REASON_ADMITTED;
	if (sight->limits)
		*reason = police_address(sight);
	if (*reason == REASON_ADMITTED && sight->slot->flags & CONFIG_SHED && question->opens)
		*reason = shed(sight);
	if (*reason == REASON_ADMITTED && sight->slot->flags & CONFIG_LIMITS_NODE)
		return police_node(sight, reason);
	return 0;
}

/* ---- bpf/classify.h */

static bool names_port(const struct maps *maps, unsigned slot, uint8_t protocol, uint16_t port)
{
	const struct protected_ports *ports = &maps->protect[port / 64];

	return (protocol == IPPROTO_TCP ? ports->tcp : ports->udp)[slot] >> (port % 64) & 1;
}

bool verdict_names_port(const struct maps *maps, uint8_t protocol, uint16_t port)
{
	return names_port(maps, maps->config->active & 1, protocol, port);
}

static bool is_protected(const struct foresight *sight)
{
	const struct verdict_question *question = sight->question;
	uint32_t flags = sight->slot->flags;
	unsigned slot = sight->slot == &sight->maps->config->slot[1];

	if (flags & CONFIG_PROTECT_ALL)
		return true;
	switch (question->protocol) {
	case IPPROTO_TCP:
	case IPPROTO_UDP:
		return names_port(sight->maps, slot, question->protocol, question->port);
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return flags & CONFIG_PROTECT_ICMP;
	default:
		return false;
	}
}

static int foresee(struct foresight *sight)
{
	const struct verdict_question *question = sight->question;
	struct verdict *out = sight->out;
	const struct prefix_rule *rule = &out->found.rule;

	*out = (struct verdict){};
	sight->limits = sight->slot->flags & CONFIG_LIMITS_IP ? sight->slot->ip : NULL;
	sight->dry = sight->slot->dry_ip;
	if (maps_rule_find(sight->maps, &question->source, question->coarse_ns, &out->found))
		out->found = (struct rule_found){};
	if (rule->action == PREFIX_DENY || rule->action == PREFIX_EXEMPT) {
		out->reason = rule->action == PREFIX_DENY ? REASON_DENY : REASON_EXEMPT;
		return 0;
	}
	if (rule->action == PREFIX_LIMIT) {
		sight->limits = rule->limit;
		sight->dry = rule->dry;
	}
	if (!is_protected(sight)) {
		out->reason = REASON_UNPROTECTED;
		return 0;
	}
	return police(sight, &out->reason);
}

int verdict_foresee(const struct maps *maps, const struct verdict_question *question,
		    struct verdict *out)
{
	struct foresight sight = { .maps = maps, .question = question, .out = out };
	int err = 0;

	/* Of one configuration, if it is turned over meanwhile. */
	for (int looks = 0; !err && looks < SLOT_LOOKS && sight.slot != maps_slot(maps); looks++) {
		sight.slot = maps_slot(maps);
		err = sight.slot ? foresee(&sight) : 0;
	}
	if (!sight.slot)
		return -ENOENT;
	out->is_refused = reason_is_refusal(out->reason) && !(sight.slot->flags & CONFIG_DRY_RUN);
	return err;
}
