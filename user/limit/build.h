/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From what an operator writes (a rate and a burst) to what a bucket is held to (struct
 * gcra_limit), and back to what is really enforced. Pure functions; thread safe.
 */
#ifndef SLUICE_LIMIT_BUILD_H
#define SLUICE_LIMIT_BUILD_H

#include <stdint.h>

#include <sluice/gcra.h>

/* What an operator writes. burst 0: no limit. */
struct rate_limit {
	double rate;    /* tokens per second, above 0 */
	uint64_t burst; /* tokens, at least 1 */
};

/* Where the bucket lives, which decides how long its debt can be and how fine its ticks are. */
enum bucket_kind {
	BUCKET_WORD,       /* one word of a set, one token a charge */
	BUCKET_WORD_BYTES, /* one word of a set, charged by the packet's bytes */
	BUCKET_WHOLE,      /* 64 bits of its own, one token a charge */
	BUCKET_WHOLE_BYTES,
};

enum {
	RATE_BURST_MAX_BITS = 42,
	/* The size of packet for which a rate in bytes is still within 0.1 %, at any rate. */
	RATE_EXACT_BYTES = 128,
};

/* The highest rates that are enforced within 0.1 %; above them limit_build() says -ERANGE. */
#define RATE_MAX_TOKENS 1e8
#define RATE_MAX_BYTES 1.1e11

/*
 * Make *limit from what the operator wrote. The interval is rounded up to a tick, so the enforced
 * rate is never above the configured one and less than 0.1 % below it (for bytes: within 0.1 % of
 * it, for packets of RATE_EXACT_BYTES and more).
 * -EINVAL: rate not above 0 or not finite, or burst 0. -ERANGE: rate or burst above the maximum.
 * -EOVERFLOW: burst / rate is longer than such a bucket can hold; *longest_burst is the longest
 * that it can (0: none at this rate).
 */
int limit_build(const struct rate_limit *wanted, enum bucket_kind kind, struct gcra_limit *limit,
		uint64_t *longest_burst);

/* The rate that the limit really enforces, in tokens per second. */
double limit_enforced_rate(const struct gcra_limit *limit);

#endif
