/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CL.THROTTLE: the arithmetic and the words of redis-cell 0.4 and later, on a bucket of one 64-bit
 * word, so that a decision can be stored by compare-and-swap. The key is the caller's. Pure
 * functions; thread safe.
 *
 * It differs where redis-cell crashes or misleads: no argument overflows; a negative max_burst,
 * count or period is refused; `remaining` is right at every rate; seconds are rounded up from
 * nanoseconds, so that waiting retry_after is always enough; giving tokens back never makes a
 * bucket more than full. As there, a token costs period / count cut to whole nanoseconds, which is
 * up to 0.1 % in favour of the caller at a million a second, and more above.
 *
 * The word is a TAT, the instant at which the bucket will be full, in nanoseconds of the monotonic
 * clock. From 2^62 on (146 years) it goes on as a number of 57 significant bits, rounded up. It is
 * never negative and grows with the instant, so a word that is not above now_ns has passed, may be
 * dropped, and is the same as 0, one never seen. A debt beyond 2^120 ns cannot be kept, so a bucket
 * that holds more than that is charged beyond it only when it is full.
 */
#ifndef SLUICE_LIMIT_CELL_H
#define SLUICE_LIMIT_CELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CELL_MESSAGE_MAX = 128, CELL_ARGUMENTS_MIN = 3, CELL_ARGUMENTS_MAX = 4 };

/* One argument as it came: any bytes. */
struct cell_argument {
	const char *text; /* need not end in a zero byte */
	size_t length;
};

struct cell_request {
	uint64_t burst;                /* tokens of a full bucket: max_burst + 1 */
	unsigned __int128 interval_ns; /* what a token costs */
	int64_t quantity;              /* tokens; 0: look; negative: give back */
};

struct cell_answer {
	bool limited;
	int64_t limit;
	int64_t remaining;     /* tokens that would be admitted now, in one charge */
	int64_t retry_after_s; /* rounded up; -1: not limited, or can never be admitted */
	int64_t reset_after_s; /* until the bucket is full; rounded up */
	bool write;            /* new_tat is to be stored; false: nothing has changed */
	uint64_t new_tat;
	uint64_t retry_after_ns; /* 0: not limited; UINT64_MAX: never, or longer than can be said */
};

/*
 * Read the arguments after the key: max_burst, count per period, period in seconds, and if there is
 * a fourth, the quantity, which is 1 otherwise. -EINVAL with the error reply of redis-cell, without
 * any byte that could end a reply: "Cell error: Couldn't parse as integer: x".
 */
int cell_parse(const struct cell_argument *arguments, size_t count, struct cell_request *out,
	       char message[CELL_MESSAGE_MAX]);

/*
 * Decide at now_ns, below 2^62. If answer.write, the caller stores new_tat by compare-and-swap
 * where it read tat, and decides anew if that fails; it must have read tat before the clock.
 */
struct cell_answer cell_decide(const struct cell_request *request, uint64_t tat, uint64_t now_ns);

#endif
