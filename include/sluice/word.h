/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A bucket packed into one 64-bit word, so that one compare-and-swap is the whole of a charge:
 *
 *      63            46 45 44 43                                            0
 *     +----------------+-----+-----------------------------------------------+
 *     |      tag       |class|          TAT in ticks, modulo 2^44            |
 *     +----------------+-----+-----------------------------------------------+
 *
 * The tag says whose bucket it is. The class says how long a tick is, which lets buckets of very
 * different limits stand in one set and be judged by anyone who looks at the set:
 *
 *     class   a tick is   longest capacity   a passed TAT must be swept within
 *       0      1/512 ns       8.5 s            17   s
 *       1      1/8   ns       9.1 min          18   min
 *       2      8     ns       9.7 h            19   h
 *       3      512   ns      26   days         52   days
 *
 * A limit takes the first class that holds its capacity. A TAT that nobody touched for longer than
 * the last column (2^43 ticks) would be taken for one that lies ahead, so the sweep (bpf/sweep.h)
 * clears passed words every four seconds.
 *
 * The word 0 is empty; no bucket is ever stored as 0, because tag 0 is not given out. In class 3 the
 * last TAT is not a time: it marks a claim, a word that a CPU is just taking for its tag. A claim
 * belongs to that CPU alone, and it has not passed.
 */
#ifndef SLUICE_WORD_H
#define SLUICE_WORD_H

#include "gcra.h"

enum {
	WORD_TAT_BITS = 44,
	WORD_CLASS_BITS = 2,
	WORD_TAG_BITS = 18,
	WORD_CLASSES = 1 << WORD_CLASS_BITS,
	WORD_TICK_SHIFT_MAX = 9,  /* of class 0 */
	WORD_TICK_SHIFT_STEP = 6, /* from one class to the next */
};

#define WORD_EMPTY 0ULL
#define WORD_TAT_MASK ((1ULL << WORD_TAT_BITS) - 1)
#define WORD_TAG_MASK ((1ULL << WORD_TAG_BITS) - 1)
#define WORD_CAPACITY_MAX (1ULL << (WORD_TAT_BITS - 2))

SLUICE_INLINE __s8 word_tick_shift(__u32 word_class)
{
	return (__s8)(WORD_TICK_SHIFT_MAX - WORD_TICK_SHIFT_STEP * (int)word_class);
}

SLUICE_INLINE __u32 word_tag(__u64 word)
{
	return (__u32)(word >> (WORD_TAT_BITS + WORD_CLASS_BITS));
}

SLUICE_INLINE __u32 word_class(__u64 word)
{
	return (__u32)(word >> WORD_TAT_BITS) & (WORD_CLASSES - 1);
}

/* Now in ticks of a class. Wraps, in class 0 after 416 days: only differences mean anything. */
SLUICE_INLINE __u64 word_ticks(__u64 now_ns, __u32 word_class)
{
	return (now_ns << WORD_TICK_SHIFT_MAX) >>
	       (WORD_TICK_SHIFT_STEP * (word_class & (WORD_CLASSES - 1)));
}

#define WORD_CLAIM ((__u64)(WORD_CLASSES - 1) << WORD_TAT_BITS | WORD_TAT_MASK)

SLUICE_INLINE __u64 word_claim(__u32 tag)
{
	return (__u64)tag << (WORD_TAT_BITS + WORD_CLASS_BITS) | WORD_CLAIM;
}

SLUICE_INLINE bool word_is_claim(__u64 word)
{
	return (word & WORD_CLAIM) == WORD_CLAIM;
}

/* A TAT that would read as a claim is put off by one tick: never to the good of who is charged. */
SLUICE_INLINE __u64 word_pack(__u32 tag, __u32 word_class, __u64 tat)
{
	__u64 word = (__u64)tag << (WORD_TAT_BITS + WORD_CLASS_BITS) |
		     (__u64)word_class << WORD_TAT_BITS | (tat & WORD_TAT_MASK);

	return word_is_claim(word) ? word & ~WORD_TAT_MASK : word;
}

/* How far the TAT lies ahead of now, in ticks of the word's own class; negative: it has passed. */
SLUICE_INLINE __s64 word_ahead(__u64 word, __u64 now_ns)
{
	__u64 apart = word - word_ticks(now_ns, word_class(word));

	return (__s64)(apart << (64 - WORD_TAT_BITS)) >> (64 - WORD_TAT_BITS);
}

/* Whether the word may be taken by anyone: it is empty, or its bucket is full again. */
SLUICE_INLINE bool word_has_passed(__u64 word, __u64 now_ns)
{
	return word == WORD_EMPTY || (!word_is_claim(word) && word_ahead(word, now_ns) <= 0);
}

/*
 * The word's TAT in ticks of another class, as a full 64-bit instant near now. Rounded up, relative to
 * now: a debt never shrinks because a limit has changed its class.
 */
SLUICE_INLINE __u64 word_tat(__u64 word, __u64 now_ns, __u32 to_class)
{
	__u64 now = word_ticks(now_ns, to_class);
	__s64 ahead = word_ahead(word, now_ns);
	int shift = WORD_TICK_SHIFT_STEP * ((int)word_class(word) - (int)to_class);

	if (ahead <= 0)
		return now;
	if (shift >= 0)
		return now + ((__u64)ahead << shift);
	return now + (((__u64)ahead + (1ULL << -shift) - 1) >> -shift);
}

#endif
