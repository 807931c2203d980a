/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A peer: the same programs, line by line, with an LRU hash of as many buckets where they have
 * their table. The key is what the table goes by, set and tag, in a single word; the value is the
 * same word that the table holds, charged by the same rules and with the same use of the coarse
 * clock.
 *
 * It is given all that can be given to such a design: no lock of its own, a short key, and room
 * for as many addresses as the table has words.
 */
#include "bpf/table.h"

#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, IP_SETS *SET_WORDS);
	__type(key, __u64);
	__type(value, __u64);
} lru_buckets SEC(".maps");

enum { ALREADY_THERE = -17 /* EEXIST */ };

/* A bucket for an address that has none. */
SLUICE_INLINE enum taken lru_insert(__u64 key, const struct gcra_limit *limit,
				    const struct table_request *request)
{
	__u64 cost = gcra_cost(limit, request->tokens);
	__u64 word;
	int err;

	if (cost > limit->capacity)
		return TAKEN_REFUSED;
	if (request->look_only)
		return TAKEN_ADMITTED;
	word = word_pack(request->tag, limit->word_class,
			 word_ticks(clock_now_ns(), limit->word_class) + cost);
	err = bpf_map_update_elem(&lru_buckets, &key, &word, BPF_NOEXIST);
	if (err == ALREADY_THERE)
		return TAKEN_RACED;
	return err ? TAKEN_TRIES : TAKEN_ADMITTED;
}

SLUICE_INLINE enum taken lru_charge(__u64 *bucket, const struct gcra_limit *limit,
				    const struct table_request *request)
{
	__u64 word = *(volatile __u64 *)bucket;
	struct gcra_verdict verdict;
	__u64 now_ns, next;

	if (is_refused_anyway(limit, request, word))
		return TAKEN_REFUSED;
	now_ns = clock_now_ns();
	verdict = gcra_take(limit, word_tat(word, now_ns, limit->word_class),
			    word_ticks(now_ns, limit->word_class), request->tokens);
	if (!verdict.admitted)
		return TAKEN_REFUSED;
	next = word_pack(request->tag, limit->word_class, verdict.tat);
	if (request->look_only || __sync_val_compare_and_swap(bucket, word, next) == word)
		return TAKEN_ADMITTED;
	return TAKEN_RACED;
}

__attribute__((noinline)) int lru_take(__u64 key, const struct gcra_limit *limit,
				       const struct table_request *request);

__attribute__((noinline)) int lru_take(__u64 key, const struct gcra_limit *limit,
				       const struct table_request *request)
{
	if (!limit || !request)
		return TAKEN_TRIES;
	for (int tries = 0; tries < TABLE_TRIES; tries++) {
		__u64 *bucket = bpf_map_lookup_elem(&lru_buckets, &key);
		enum taken taken = bucket ? lru_charge(bucket, limit, request)
					  : lru_insert(key, limit, request);

		if (taken != TAKEN_RACED)
			return taken;
	}
	return TAKEN_TRIES;
}

/* Where bpf/police.h charges the table, `place` is in scope. */
#define table_take(set, limit, request, outcome, seen) \
	((void)(set), (void)(outcome), (void)(seen),   \
	 lru_take((__u64)place->set << 32 | (request)->tag, limit, request))

#include "bpf/sluice.bpf.c"

#include "tests/bench/fresh.h"
