/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The set-associative table of per-address buckets: one set is one cache line of eight words.
 * Any number of CPUs work on a set at once, with nothing but 64-bit compare-and-swap.
 *
 * Why no interleaving admits more than one caller at a time would have been admitted:
 *
 * 1. A charge of an existing word reads the word, then the fine clock, then swaps. If the swap
 *    succeeds, the word has not changed since it was read, so every admission that this one does
 *    not know of comes later, and reads the clock later. So the admissions of one word, in the order
 *    of their swaps, have clocks that do not go back, and each was computed from the one before:
 *    that is GCRA, run by one caller. (Read the other way round, clock before word, a CPU that
 *    was held up would date its charge before a charge that it builds upon.)
 * 2. A bucket is only ever dropped when its TAT has passed, and then it equals one never seen. The
 *    swap that drops it names the whole word, so a charge in between makes it fail.
 * 3. No address has two live words. To take a word, a CPU swaps in its tag as a claim, then looks
 *    through the set again. Of two CPUs that claim different words for the same address, the one
 *    whose claim came later sees the other's, since compare-and-swap is a full barrier on both sides;
 *    so at most one goes on, and a loser gives its word back empty. A tag that is there already, live
 *    or not, is used and never doubled.
 * 4. A claim belongs to the CPU that made it: nobody else changes it, so giving it back and settling
 *    it always succeed. The clock that dates the first admission is read after the claim, so (1)
 *    holds from there on. (A claim that is a bucket in full debt, instead of a mark, ages while its
 *    maker is held up; somebody is then admitted against it, and it can no longer be given back.)
 * Nothing here relies on not being preempted; being held up only makes others of the same address
 * wait, and after TABLE_TRIES looks they are refused and counted.
 *
 * The coarse clock is used where being late cannot admit anyone: to refuse what would be refused
 * even config.coarse_lag_ns from then, to judge that a word has passed, and, in a look that charges
 * nothing, to foresee that a charge will be admitted.
 *
 * A word that refused is remembered by the CPU for the rest of the coarse clock's tick: as long as it
 * has not changed it refuses again, without the fine clock, the dearest thing on the path of a flood
 * from one address. What comes free meanwhile is had a tick later, and nothing of it is lost, as long
 * as the bucket holds many ticks' worth; one that does not is asked each time.
 *
 * When all eight words are in debt to others, when_full decides. To share is to take over the word
 * that is least in debt, and its debt with it. So an address that is pushed out loses nothing that
 * it owes: the least debt of a set never becomes less (charges add to it, who takes a word over
 * begins with it, and a word only falls free when its TAT has passed), so that whatever word the
 * address finds later owes at least as much as it did, or its own debt has passed as well. Two
 * things that seem simpler admit too much: to charge another's word and forget it when a word falls
 * free (the address then has two bursts), and to compare debts while a word is claimed (what it
 * owes cannot be seen then, so one starts over). A word that was claimed and is given back keeps
 * its debt, but has no owner: its owner may have another by then.
 */
#ifndef SLUICE_TABLE_H
#define SLUICE_TABLE_H

#include <sluice/abi.h>

#include "clock.h"

/* Lost races before giving up. Each loss means that another CPU has got on. */
enum { TABLE_TRIES = 8 };

/* Lags of the coarse clock that a bucket must hold for its refusals to be remembered. */
enum { TABLE_PATIENCE = 16 };

enum taken {
	TAKEN_ADMITTED,
	TAKEN_REFUSED,
	TAKEN_SET_FULL, /* refused because of when_full */
	TAKEN_TRIES,    /* refused because of races */
	TAKEN_RACED,    /* within this file: try again */
};

struct table_request {
	__u64 tokens;
	__u64 coarse_ns;     /* the coarse clock, read for this packet */
	__u64 coarse_lag_ns; /* how far it may lie behind */
	__u32 tag;
	__u32 way;        /* where to begin to look */
	__u32 when_full;  /* enum when_full */
	__u32 look_only;  /* answer as if, and charge nothing */
	__u32 generation; /* of the configuration, its low bits */
	__u32 reserved;
};

struct table_outcome {
	__u64 now_ns; /* the fine clock that decided; 0: the coarse one did */
	__u32 notes;  /* bits 1 << enum note */
	__u32 index;  /* the word it concerned */
};

SLUICE_INLINE __u64 table_read(const struct bucket_set *set, __u32 index)
{
	const __u64 *word = &set->word[index & (SET_WORDS - 1)];

#ifdef __bpf__
	return *(const volatile __u64 *)word; /* clang 14 has no atomic load for BPF */
#else
	return __atomic_load_n(word, __ATOMIC_RELAXED);
#endif
}

/* Put the debt in the place of a claim, which nobody else changes. */
SLUICE_INLINE void table_settle(struct bucket_set *set, __u32 index, __u64 to)
{
	__u64 *word = &set->word[index & (SET_WORDS - 1)];

#ifdef __bpf__
	*(volatile __u64 *)word = to;
#else
	__atomic_store_n(word, to, __ATOMIC_RELAXED);
#endif
}

SLUICE_INLINE bool table_swap(struct bucket_set *set, __u32 index, __u64 from, __u64 to)
{
	return __sync_val_compare_and_swap(&set->word[index & (SET_WORDS - 1)], from, to) == from;
}

/* Nobody's tag is 0, which is that of an empty word. */
SLUICE_INLINE bool is_owned_by(__u64 word, __u32 tag)
{
	return word_tag(word) == tag;
}

enum found { FOUND_OWN, FOUND_PASSED, FOUND_NONE };

/*
 * The address's own word, else one that anybody may take: enum found * SET_WORDS + index, and what
 * the word was. This and the other functions here that are not inlined are so for the verifier: it
 * looks at each once, where inlined their results multiply (a million instructions with clang 14).
 */
__attribute__((noinline)) int table_find(const struct bucket_set *set,
					 const struct table_request *request, __u64 *word);

__attribute__((noinline)) int table_find(const struct bucket_set *set,
					 const struct table_request *request, __u64 *word)
{
	__u32 way;

	if (!set || !request || !word)
		return FOUND_NONE * SET_WORDS;
	way = request->way;
	/* Two loops, since most packets find their word in the first: it has less to ask of each. */
	for (__u32 step = 0; step < SET_WORDS; step++) {
		__u32 at = (way + step) & (SET_WORDS - 1);
		__u64 seen = table_read(set, at);

		if (is_owned_by(seen, request->tag)) {
			*word = seen;
			return FOUND_OWN * SET_WORDS + at;
		}
	}
	/* Else the compiler keeps all eight places from the first loop, on a stack that is short. */
	asm volatile("" : "+r"(way));
	for (__u32 step = 0; step < SET_WORDS; step++) {
		__u32 at = (way + step) & (SET_WORDS - 1);
		__u64 seen = table_read(set, at);

		if (word_has_passed(seen, request->coarse_ns)) {
			*word = seen;
			return FOUND_PASSED * SET_WORDS + at;
		}
	}
	return FOUND_NONE * SET_WORDS;
}

/* Whether the charge would be refused even when the coarse clock's lag is given away. A TAT beyond
 * the capacity is left to the fine clock, which brings it back. */
SLUICE_INLINE bool is_refused_anyway(const struct gcra_limit *limit,
				     const struct table_request *request, __u64 word)
{
	__u64 now = word_ticks(request->coarse_ns, limit->word_class);
	/* Not the ticks of the sum: those of the coarser classes jump where class 0 wraps. */
	__u64 late = now + word_ticks(request->coarse_lag_ns, limit->word_class) + 1;
	__u64 cost = gcra_cost(limit, request->tokens);
	__u64 tat;

	if (word_class(word) != limit->word_class || cost > limit->capacity)
		return false;
	tat = word_tat(word, request->coarse_ns, limit->word_class);
	return !gcra_is_beyond(limit, tat, now) &&
	       gcra_debt(limit, tat, late) + cost > limit->capacity;
}

/* Whether the charge would be admitted even as early as the coarse clock says. Good for a look only: a
 * charge has to be dated. */
SLUICE_INLINE bool is_admitted_anyway(const struct gcra_limit *limit,
				      const struct table_request *request, __u64 word)
{
	__u64 now = word_ticks(request->coarse_ns, limit->word_class);
	__u64 tat = word_tat(word, request->coarse_ns, limit->word_class);

	return gcra_take(limit, tat, now, request->tokens).admitted;
}

SLUICE_INLINE bool is_remembered(const struct refusal_seen *seen, const struct gcra_limit *limit,
				 const struct table_request *request, __u64 word)
{
	return seen->word == word && seen->at_ns == request->coarse_ns &&
	       seen->generation == request->generation && request->tokens >= seen->tokens &&
	       limit->capacity >=
		       word_ticks(request->coarse_lag_ns, limit->word_class) * TABLE_PATIENCE;
}

/* Charge the word that is the address's own. */
SLUICE_INLINE enum taken charge_word(struct bucket_set *set, const struct gcra_limit *limit,
				     const struct table_request *request,
				     struct table_outcome *outcome, struct refusal_seen *seen,
				     __u64 word)
{
	struct gcra_verdict verdict;
	__u64 now, next;

	outcome->index &= SET_WORDS - 1;
	outcome->now_ns = 0;
	if (word_is_claim(word))
		return TAKEN_RACED;
	if (is_remembered(seen, limit, request, word) || is_refused_anyway(limit, request, word))
		return TAKEN_REFUSED;
	if (request->look_only && is_admitted_anyway(limit, request, word))
		return TAKEN_ADMITTED;
	outcome->now_ns = clock_now_ns();
	now = word_ticks(outcome->now_ns, limit->word_class);
	verdict = gcra_take(limit, word_tat(word, outcome->now_ns, limit->word_class), now,
			    request->tokens);
	next = word_pack(word_tag(word), limit->word_class, verdict.tat);
	if (!verdict.admitted) {
		if (verdict.clamped && table_swap(set, outcome->index, word, next))
			outcome->notes |= 1u << NOTE_CLAMPED;
		*seen = (struct refusal_seen){
			.word = word,
			.at_ns = request->coarse_ns,
			.tokens = (__u32)request->tokens,
			.generation = request->generation,
		};
		return TAKEN_REFUSED;
	}
	if (request->look_only || table_swap(set, outcome->index, word, next))
		return TAKEN_ADMITTED;
	return TAKEN_RACED;
}

/* Whether the tag stands anywhere in the set but at index. */
__attribute__((noinline)) int table_has_other(const struct bucket_set *set, __u32 tag, __u32 index);

__attribute__((noinline)) int table_has_other(const struct bucket_set *set, __u32 tag, __u32 index)
{
	if (!set)
		return 0;
	for (__u32 at = 0; at < SET_WORDS; at++)
		if (at != index && is_owned_by(table_read(set, at), tag))
			return 1;
	return 0;
}

/* What a word of another address leaves to the one that takes it: its debt, or none. */
SLUICE_INLINE struct gcra_verdict take_over(const struct gcra_limit *limit,
					    const struct table_request *request, __u64 word,
					    __u64 now_ns)
{
	__u64 now = word_ticks(now_ns, limit->word_class);
	__u64 tat = word == WORD_EMPTY ? now : word_tat(word, now_ns, limit->word_class);

	return gcra_take(limit, tat, now, request->tokens);
}

/* A word given back: empty, or if it was in debt, the debt without its owner. */
SLUICE_INLINE __u64 word_disowned(__u64 word, __u64 coarse_ns)
{
	if (word_has_passed(word, coarse_ns))
		return WORD_EMPTY;
	word = word_pack(0, word_class(word), word);
	return word + (word == WORD_EMPTY);
}

/* Take a word for an address that has none: claim, look again, then settle. */
SLUICE_INLINE enum taken take_word(struct bucket_set *set, const struct gcra_limit *limit,
				   const struct table_request *request,
				   struct table_outcome *outcome, __u64 word, bool has_passed)
{
	__u64 cost = gcra_cost(limit, request->tokens);
	__u64 claim = word_claim(request->tag), tat;

	outcome->now_ns = 0;
	if (cost > limit->capacity)
		return TAKEN_REFUSED;
	if (request->look_only)
		return TAKEN_ADMITTED;
	if (!table_swap(set, outcome->index, word, claim))
		return TAKEN_RACED;
	if (table_has_other(set, request->tag, outcome->index)) {
		table_swap(set, outcome->index, claim, word_disowned(word, request->coarse_ns));
		return TAKEN_RACED;
	}
	outcome->now_ns = clock_now_ns();
	tat = word_ticks(outcome->now_ns, limit->word_class) + cost;
	if (!has_passed)
		tat = take_over(limit, request, word, outcome->now_ns).tat;
	table_settle(set, outcome->index, word_pack(request->tag, limit->word_class, tat));
	return TAKEN_ADMITTED;
}

/* How long until the word is full again, in the finest ticks. Exact, so that words of any class can
 * be compared: the ticks of a class are not cut off at now. */
SLUICE_INLINE __s64 word_left(__u64 word, __u64 now_ns)
{
	int shift = WORD_TICK_SHIFT_STEP * (int)word_class(word);
	__u64 cut = word_ticks(now_ns, 0) & ((1ULL << shift) - 1);

	if (word == WORD_EMPTY)
		return 0;
	return (__s64)(((__u64)word_ahead(word, now_ns) << shift) - cut);
}

/* The word that is least in debt, and which; -1 if that cannot be told while somebody claims one. */
__attribute__((noinline)) int table_find_least(const struct bucket_set *set, __u64 now_ns,
					       __u64 *word);

__attribute__((noinline)) int table_find_least(const struct bucket_set *set, __u64 now_ns,
					       __u64 *word)
{
	__s64 least = 0;
	int found = -1;

	if (!set || !word)
		return -1;
	for (__u32 at = 0; at < SET_WORDS; at++) {
		__u64 seen = table_read(set, at);
		__s64 left = word_left(seen, now_ns);

		if (word_is_claim(seen))
			return -1;
		if (found >= 0 && left >= least)
			continue;
		least = left;
		found = at;
		*word = seen;
	}
	return found;
}

/* All words of the set are in debt to others. */
SLUICE_INLINE enum taken charge_full_set(struct bucket_set *set, const struct gcra_limit *limit,
					 const struct table_request *request,
					 struct table_outcome *outcome)
{
	__u64 word = WORD_EMPTY;
	enum taken taken;
	int least;

	if (request->when_full == WHEN_FULL_REFUSE)
		return TAKEN_SET_FULL;
	if (request->when_full == WHEN_FULL_ADMIT) {
		outcome->notes |= 1u << NOTE_SET_FULL_ADMITTED;
		return TAKEN_ADMITTED;
	}
	outcome->now_ns = clock_now_ns();
	least = table_find_least(set, outcome->now_ns, &word);
	if (least < 0)
		return TAKEN_RACED;
	outcome->index = least & (SET_WORDS - 1);
	if (!take_over(limit, request, word, outcome->now_ns).admitted)
		return TAKEN_REFUSED;
	taken = take_word(set, limit, request, outcome, word, false);
	if (taken == TAKEN_ADMITTED && !request->look_only)
		outcome->notes |= 1u << NOTE_SET_FULL_SHARED;
	return taken;
}

/* Not inlined: the verifier would look at each of the tries anew. */
__attribute__((noinline)) int table_try(struct bucket_set *set, const struct gcra_limit *limit,
					const struct table_request *request,
					struct table_outcome *outcome, struct refusal_seen *seen);

__attribute__((noinline)) int table_try(struct bucket_set *set, const struct gcra_limit *limit,
					const struct table_request *request,
					struct table_outcome *outcome, struct refusal_seen *seen)
{
	__u64 word = WORD_EMPTY;
	__u32 found;

	if (!set || !limit || !request || !outcome || !seen)
		return TAKEN_TRIES;
	found = table_find(set, request, &word);
	outcome->index = found & (SET_WORDS - 1);
	switch (found / SET_WORDS) {
	case FOUND_OWN:
		return charge_word(set, limit, request, outcome, seen, word);
	case FOUND_PASSED:
		return take_word(set, limit, request, outcome, word, true);
	default:
		return charge_full_set(set, limit, request, outcome);
	}
}

/* Charge one meter of one address in its set. seen: what this CPU remembers under the tag. */
SLUICE_INLINE enum taken table_take(struct bucket_set *set, const struct gcra_limit *limit,
				    const struct table_request *request,
				    struct table_outcome *outcome, struct refusal_seen *seen)
{
	for (int tries = 0; tries < TABLE_TRIES; tries++) {
		enum taken taken = table_try(set, limit, request, outcome, seen);

		if (taken != TAKEN_RACED)
			return taken;
	}
	return TAKEN_TRIES;
}

#endif
