/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two buckets of one exact key in one cache line: the value of the map `tenants`, and of memory of
 * the same shape where there is no BPF. user/limit/slots.[ch] says who may change what, when.
 */
#ifndef SLUICE_SLOT_H
#define SLUICE_SLOT_H

#include "types.h"

enum {
	SLOT_METERS = 2, /* hooks, bytes */
	SLOT_KEY_MAX = 39,
	SLOT_KEY_WORDS = 5,
	SLOT_KEY_DIGEST = 255, /* in key_bytes: key[] is the 32-byte digest of a longer key */
};

/* In hash: what else may stand there than the hash of a key. */
enum { SLOT_EMPTY = 0, SLOT_DROPPED = 1, SLOT_HASH_MIN = 2 };

/* A TAT that nobody may charge: of a slot that has no key, or that is just being dropped. */
#define SLOT_TAT_DEAD 0ULL

struct bucket_slot {
	__u64 tat[SLOT_METERS]; /* ticks of GCRA_TICK_SHIFT */
	__u64 hash;             /* of the key; or SLOT_EMPTY, SLOT_DROPPED */
	union {
		struct {
			__u8 key_bytes;
			__u8 key[SLOT_KEY_MAX]; /* zeros behind the key's end */
		};
		__u64 word[SLOT_KEY_WORDS]; /* the same, as it is read and written */
	};
};

_Static_assert(sizeof(struct bucket_slot) == 64, "a slot is a cache line");

#endif
