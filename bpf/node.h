/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The node's bucket of one meter, charged in slices, so that CPUs do not fight over a word for each
 * packet.
 *
 * Why no interleaving admits more than the limit:
 *
 * 1. The bucket is one TAT, charged as in table.h (1): read the word, then the clock, then swap.
 * 2. A CPU takes tokens in slices and spends them later, without a look at the clock. To spend later
 *    than one was charged could add to a full burst, so the bucket's own capacity is less by what all
 *    CPUs together may hold (user/dataplane/rules.c takes it off). In any stretch of time, what is
 *    admitted is at most what was taken in it plus what lay unspent before: (burst - held) + rate *
 *    time + held. To keep to burst + rate * time in every stretch is the same as passing GCRA with
 *    the whole burst.
 * 3. A CPU never holds more than one slice: it takes one only if what it holds does not suffice, and
 *    then it holds less than a slice afterwards.
 * 4. A slice belongs to its CPU and is touched only by programs that run to their end there with
 *    softirqs off, so plain arithmetic is enough. One taken under another configuration is dropped.
 *
 * What may lie unspent on idle CPUs is thus at most one slice for each CPU, an eighth of the burst in
 * all, and it is charged once, not again and again.
 */
#ifndef SLUICE_NODE_H
#define SLUICE_NODE_H

#include <sluice/abi.h>

#include "clock.h"
#include "table.h"

enum {
	NODE_TRIES = 8,
	/* Lags of the coarse clock that a bucket must hold, for it to wait one. */
	NODE_PATIENCE = 16,
};

struct node_request {
	__u64 tokens;
	__u64 coarse_ns;
	__u64 coarse_lag_ns;
	__u32 look_only;
	__u32 reserved;
};

struct node_outcome {
	__u32 notes; /* bits 1 << enum note */
	__u32 reserved;
};

SLUICE_INLINE bool node_is_refused_anyway(const struct gcra_limit *limit,
					  const struct node_request *request, __u64 tat,
					  __u64 tokens)
{
	__u64 now = gcra_ticks(request->coarse_ns, GCRA_TICK_SHIFT);
	__u64 late = gcra_ticks(request->coarse_ns + request->coarse_lag_ns, GCRA_TICK_SHIFT);
	__u64 cost = gcra_cost(limit, tokens);

	return tat && cost <= limit->capacity && !gcra_is_beyond(limit, tat, now) &&
	       gcra_debt(limit, tat, late) + cost > limit->capacity;
}

/*
 * Whether this CPU has seen the bucket refuse as much within this tick of the coarse clock. Then the
 * fine clock, the dearest thing on the path, is not asked again until the next tick: in a flood that
 * the node refuses, nearly every packet would. What comes free meanwhile is handed out a tick later
 * and nothing of it is lost, as long as the bucket holds many ticks' worth.
 */
SLUICE_INLINE bool was_just_refused(const struct node_share *share, const struct node_limit *node,
				    const struct node_request *request, __u64 needed)
{
	return share->refused_at_ns == request->coarse_ns && needed >= share->refused_tokens &&
	       node->limit.capacity >=
		       gcra_ticks(request->coarse_lag_ns, GCRA_TICK_SHIFT) * NODE_PATIENCE;
}

/* Try once to take a slice or, if there is not that much, just what is needed. */
SLUICE_INLINE enum taken node_draw(__u64 *bucket, const struct node_limit *node,
				   const struct node_request *request, struct node_outcome *outcome,
				   __u64 needed, __u64 *drawn)
{
	__u64 seen = *(volatile __u64 *)bucket;
	struct gcra_verdict verdict = {};
	__u64 now, tat;
	bool swapped;

	if (node_is_refused_anyway(&node->limit, request, seen, needed))
		return TAKEN_REFUSED;
	now = gcra_ticks(clock_now_ns(), GCRA_TICK_SHIFT);
	tat = seen ? seen : now;
	*drawn = node->slice;
	if (node->slice > needed)
		verdict = gcra_take(&node->limit, tat, now, node->slice);
	if (!verdict.admitted) {
		*drawn = needed;
		verdict = gcra_take(&node->limit, tat, now, needed);
	}
	if (!verdict.admitted && !verdict.clamped)
		return TAKEN_REFUSED;
	if (verdict.admitted && request->look_only)
		return TAKEN_ADMITTED;
	/* A TAT of 0 would say that the bucket was never charged. */
	verdict.tat += !verdict.tat;
	swapped = __sync_val_compare_and_swap(bucket, seen, verdict.tat) == seen;
	if (!verdict.admitted) {
		outcome->notes |= swapped ? 1u << NOTE_CLAMPED : 0;
		return TAKEN_REFUSED;
	}
	return swapped ? TAKEN_ADMITTED : TAKEN_RACED;
}

/*
 * Charge one meter of the node: its bucket, and what this CPU holds of it. After NODE_TRIES lost
 * races the packet passes, and is counted.
 */
__attribute__((noinline)) int node_take(__u64 *bucket, struct node_share *share,
					const struct node_limit *node,
					const struct node_request *request,
					struct node_outcome *outcome);

__attribute__((noinline)) int node_take(__u64 *bucket, struct node_share *share,
					const struct node_limit *node,
					const struct node_request *request,
					struct node_outcome *outcome)
{
	__u64 held, drawn = 0;

	if (!bucket || !share || !node || !request || !outcome)
		return TAKEN_TRIES;
	held = share->unspent;
	if (request->tokens <= held) {
		if (!request->look_only)
			share->unspent = held - request->tokens;
		return TAKEN_ADMITTED;
	}
	if (was_just_refused(share, node, request, request->tokens - held))
		return TAKEN_REFUSED;
/* So that nothing loops: clang 14 lays the loop out so that its last instruction falls through into its
 * first, and kernel 6.1 takes no way back that is not a jump ("back-edge from insn", 6.18 does). */
#pragma clang loop unroll(full)
	for (int tries = 0; tries < NODE_TRIES; tries++) {
		enum taken taken =
			node_draw(bucket, node, request, outcome, request->tokens - held, &drawn);

		if (taken == TAKEN_RACED)
			continue;
		if (taken == TAKEN_ADMITTED && !request->look_only)
			share->unspent = held + drawn - request->tokens;
		if (taken == TAKEN_REFUSED) {
			share->refused_at_ns = request->coarse_ns;
			share->refused_tokens = request->tokens - held;
		}
		return taken;
	}
	outcome->notes |= 1u << NOTE_NODE_TRIES;
	return TAKEN_TRIES;
}

#endif
