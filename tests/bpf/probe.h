/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the probes (table_probe.bpf.c, node_probe.bpf.c) and the tests that run them agree on: what
 * is to be charged, and the log of what was admitted. Compiled by clang -target bpf and by gcc.
 */
#ifndef SLUICE_PROBE_H
#define SLUICE_PROBE_H

#include <sluice/abi.h>

/* One admission, as the program or thread that was admitted has logged it. */
struct admission {
	__u64 now_ns; /* the clock that dates it */
	__u32 key; /* the plan's number of it; of the node's: how long the admission took, in ns */
	__u32 tokens;
};

/* Each thread that runs a probe writes a part of its own, so that logging does not keep two CPUs in
 * step; the part's number is the first byte of the thread's packet. */
enum { PROBE_PARTS = 4, PROBE_PART_ADMISSIONS = 1 << 20, PROBE_KEYS = 64 };

/* How often each answer was given to one thread. A cache line and its neighbour each. */
struct probe_tally {
	__u64 asked;
	__u64 logged;    /* admitted, and charged */
	__u64 uncharged; /* admitted without a charge, as the answer's notes say: not in the log */
	__u64 refused;
	__u64 set_full;
	__u64 tries; /* races lost until it was given up */
	__u64 swept;
	__u64 spent_in_vain;
	__u64 reserved[8];
};

_Static_assert(sizeof(struct probe_tally) == 128, "tallies share no cache line");

/* What a key of table_probe is: whose word, in which set, held to what. */
struct probe_key {
	__u32 set;
	__u32 tag;
	__u32 way;
	__u32 tokens_max; /* tokens are drawn from 1 to this */
};

struct table_plan {
	__u32 keys;
	__u32 when_full;
	__u32 sweeps_of_256; /* so many of 256 runs sweep the set first */
	__u32 fine_coarse;   /* judge by a fine clock, so that words pass between ticks too */
	__u32 active;        /* which of the two limits of each key is in force */
	__u32 reserved;
	__u64 coarse_lag_ns;
	struct probe_key key[PROBE_KEYS];
	struct gcra_limit limit[2][PROBE_KEYS];
};

struct node_plan {
	__u32 active;        /* which slot is in force */
	__u32 bytes_max;     /* of a packet; its bytes are drawn from 1 to this */
	__u32 sweeps_of_256; /* so many of 256 runs sweep the node's buckets first */
	__u32 reserved;
	__u64 coarse_lag_ns;
	struct config_slot slot[2];
};

#endif
