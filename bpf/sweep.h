/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Clears words whose TAT has passed, so that a TAT kept modulo its width is never taken for one that
 * lies ahead. A timer in the kernel does it, not a process: the data plane stays exact when nobody
 * in userspace is left. It lives as long as its map is pinned, and each new program arms it anew.
 *
 * One hundred and twenty-eighth of the table every 31 ms, so the whole in four seconds, where the
 * tightest class of words allows seventeen. Clearing is lossless: a passed word equals an empty one,
 * and the swap fails if it was charged in between.
 */
#ifndef SLUICE_SWEEP_H
#define SLUICE_SWEEP_H

#include "clock.h"
#include "maps.h"
#include "report.h"
#include "table.h"

/* CLOCK_MONOTONIC, from <linux/time.h>. */
enum { SWEEP_CLOCK = 1 };

__attribute__((noinline)) int sweep_set(struct bucket_set *set, __u64 now_ns);

/* How many words of the set were cleared. */
__attribute__((noinline)) int sweep_set(struct bucket_set *set, __u64 now_ns)
{
	int cleared = 0;

	if (!set)
		return 0;
	for (__u32 index = 0; index < SET_WORDS; index++) {
		__u64 word = table_read(set, index);

		if (word != WORD_EMPTY && word_has_passed(word, now_ns))
			cleared += table_swap(set, index, word, WORD_EMPTY);
	}
	return cleared;
}

/*
 * Passed TATs are brought to now, not to 0: a CPU that read 0 and was held up since would else swap
 * successfully although the bucket was charged in between, and date its charge before that one.
 */
SLUICE_INLINE void sweep_node(__u64 now_ns)
{
	__u64 now = gcra_ticks(now_ns, GCRA_TICK_SHIFT);
	__u32 only = 0;
	struct node_buckets *buckets = bpf_map_lookup_elem(&node_buckets, &only);

	if (!buckets)
		return;
	for (__u32 meter = 0; meter < METERS; meter++) {
		__u64 tat = *(volatile __u64 *)&buckets->tat[meter];

		if (tat && gcra_has_passed(tat, now))
			__sync_val_compare_and_swap(&buckets->tat[meter], tat, now + !now);
	}
}

/* One step: clear the next share of the table. */
SLUICE_INLINE void sweep_step(struct sweeper *state)
{
	__u64 now_ns = clock_now_ns();
	__u64 cleared = 0;

	for (__u32 step = 0; step < SWEEP_SETS; step++) {
		__u32 number = (state->next_set + step) & (IP_SETS - 1);
		struct bucket_set *set = bpf_map_lookup_elem(&ip_buckets, &number);

		cleared += sweep_set(set, now_ns);
	}
	state->next_set = (state->next_set + SWEEP_SETS) & (IP_SETS - 1);
	note_add(NOTE_SWEPT, cleared);
	if (!state->next_set) {
		note_add(NOTE_SWEEPS, 1);
		sweep_node(now_ns);
	}
}

static int sweep_timer(void *map, __u32 *key, struct sweeper *state)
{
	(void)map;
	(void)key;
	sweep_step(state);
	bpf_timer_start(&state->timer, SWEEP_PERIOD_NS, 0);
	return 0;
}

/* Arm the timer. Again is fine: then it goes on with this program's callback. */
SLUICE_INLINE int sweep_arm(void)
{
	__u32 only = 0;
	struct sweeper *state = bpf_map_lookup_elem(&sweeper, &only);
	int err;

	if (!state)
		return -1;
	bpf_timer_init(&state->timer, &sweeper, SWEEP_CLOCK);
	err = bpf_timer_set_callback(&state->timer, sweep_timer);
	if (err)
		return err;
	return bpf_timer_start(&state->timer, SWEEP_PERIOD_NS, 0);
}

#endif
