/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Works in 128-bit nanoseconds and saturates: the longest interval is below 2^93 ns (2^63 seconds),
 * so only products with a number of tokens can overflow.
 */
#include "limit/cell.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef unsigned __int128 wide;

enum {
	NS_PER_S = 1000000000,
	FINE_BITS = 62, /* up to here a TAT counts nanoseconds */
	MANTISSA_BITS = 56,
	REACH_BITS = 120, /* of the longest debt; the word holds instants below 2^126 */
	SHOWN_MAX = 40,
};

#define FINE_END (1ULL << FINE_BITS)
#define MANTISSA_END (1ULL << MANTISSA_BITS)
#define REACH ((wide)1 << REACH_BITS)

/* ---- arguments */

/* What Rust's i64 takes: a sign, then digits. */
static int parse_integer(const struct cell_argument *argument, int64_t *out)
{
	const char *text = argument->text;
	size_t length = argument->length, i = 0;
	bool negative = length > 0 && text[0] == '-';
	uint64_t bound = negative ? 1ULL << 63 : INT64_MAX, value = 0;

	if (length > 0 && (text[0] == '-' || text[0] == '+'))
		i++;
	if (i == length)
		return -EINVAL;
	for (; i < length; i++) {
		unsigned digit = (unsigned)text[i] - '0';

		if (digit > 9 || value > (bound - digit) / 10)
			return -EINVAL;
		value = value * 10 + digit;
	}
	*out = negative ? (int64_t)(0 - value) : (int64_t)value;
	return 0;
}

static int fail_integer(const struct cell_argument *argument, char message[CELL_MESSAGE_MAX])
{
	char shown[SHOWN_MAX + 1];
	size_t i;

	for (i = 0; i < argument->length && i < SHOWN_MAX; i++)
		shown[i] = argument->text[i] < ' ' || argument->text[i] > '~' ? '?'
									      : argument->text[i];
	shown[i] = '\0';
	snprintf(message, CELL_MESSAGE_MAX, "Cell error: Couldn't parse as integer: %s%s", shown,
		 argument->length > SHOWN_MAX ? "..." : "");
	return -EINVAL;
}

int cell_parse(const struct cell_argument *arguments, size_t count, struct cell_request *out,
	       char message[CELL_MESSAGE_MAX])
{
	/* max_burst, count, period, quantity */
	int64_t value[CELL_ARGUMENTS_MAX] = { 0, 0, 0, 1 };
	wide interval_ns;
	size_t i;

	if (count < CELL_ARGUMENTS_MIN || count > CELL_ARGUMENTS_MAX) {
		snprintf(message, CELL_MESSAGE_MAX,
			 "Cell error: Usage: cl.throttle <key> <max_burst> <count per period> "
			 "<period> [<quantity>]");
		return -EINVAL;
	}
	for (i = 0; i < count; i++)
		if (parse_integer(&arguments[i], &value[i]))
			return fail_integer(&arguments[i], message);
	if (value[0] < 0 || value[1] < 0 || value[2] < 0) {
		snprintf(message, CELL_MESSAGE_MAX, "Cell error: %s must not be negative",
			 value[0] < 0   ? "max_burst"
			 : value[1] < 0 ? "count per period"
					: "period");
		return -EINVAL;
	}
	interval_ns = value[1] ? (wide)value[2] * NS_PER_S / (wide)value[1] : 0;
	if (interval_ns == 0) {
		snprintf(message, CELL_MESSAGE_MAX, "Cell error: Zero rates are not supported");
		return -EINVAL;
	}
	out->burst = (uint64_t)value[0] + 1;
	out->interval_ns = interval_ns;
	out->quantity = value[3];
	return 0;
}

/* ---- the word */

static wide instant_of(uint64_t tat)
{
	uint64_t beyond = tat - FINE_END;

	if ((int64_t)tat < 0)
		return 0;
	if (tat < FINE_END)
		return tat;
	return (wide)(MANTISSA_END + beyond % MANTISSA_END)
	       << (FINE_BITS - MANTISSA_BITS + beyond / MANTISSA_END);
}

static int bits_of(wide instant)
{
	uint64_t high = (uint64_t)(instant >> 64);

	return high ? 127 - __builtin_clzll(high) : 63 - __builtin_clzll((uint64_t)instant);
}

/* Rounded up, so that a debt never shrinks by being stored. A mantissa that overflows is carried.
 */
static uint64_t tat_of(wide instant)
{
	int bits, shift;
	uint64_t mantissa;

	if (instant < FINE_END)
		return (uint64_t)instant;
	bits = bits_of(instant);
	shift = bits - MANTISSA_BITS;
	mantissa = (uint64_t)((instant + ((wide)1 << shift) - 1) >> shift);
	return FINE_END + (uint64_t)(bits - FINE_BITS) * MANTISSA_END + mantissa - MANTISSA_END;
}

/* ---- the decision */

/* What tokens cost, or the longest debt if they cost more. */
static wide cost_of(const struct cell_request *request, uint64_t tokens)
{
	if (tokens && request->interval_ns > REACH / tokens)
		return REACH;
	return request->interval_ns * tokens;
}

static int64_t seconds_up(wide ns)
{
	wide seconds = (ns + NS_PER_S - 1) / NS_PER_S;

	return seconds > INT64_MAX ? INT64_MAX : (int64_t)seconds;
}

static int64_t remaining_of(const struct cell_request *request, wide debt, wide capacity)
{
	wide tokens = debt < capacity ? (capacity - debt) / request->interval_ns : 0;

	/* A full bucket admits its burst even if that is more than it can remember. */
	if (debt == 0 || tokens > request->burst)
		tokens = request->burst;
	return tokens > INT64_MAX ? INT64_MAX : (int64_t)tokens;
}

/* The answer of a bucket that stays, or has become, what its debt says. */
static struct cell_answer describe(const struct cell_request *request, wide debt)
{
	struct cell_answer answer = {
		.limit = request->burst > INT64_MAX ? INT64_MAX : (int64_t)request->burst,
		.remaining = remaining_of(request, debt, cost_of(request, request->burst)),
		.retry_after_s = -1,
		.reset_after_s = seconds_up(debt),
	};

	return answer;
}

static struct cell_answer admit(const struct cell_request *request, wide before, wide debt,
				uint64_t now_ns)
{
	struct cell_answer answer = describe(request, debt);

	answer.write = debt != before;
	answer.new_tat = tat_of(now_ns + debt);
	return answer;
}

static struct cell_answer refuse(const struct cell_request *request, wide debt, wide wait_ns)
{
	struct cell_answer answer = describe(request, debt);

	answer.limited = true;
	answer.retry_after_s = seconds_up(wait_ns);
	answer.retry_after_ns = wait_ns > UINT64_MAX ? UINT64_MAX : (uint64_t)wait_ns;
	return answer;
}

struct cell_answer cell_decide(const struct cell_request *request, uint64_t tat, uint64_t now_ns)
{
	wide instant = instant_of(tat);
	wide debt = instant > now_ns ? instant - now_ns : 0;
	wide capacity = cost_of(request, request->burst), cost;
	struct cell_answer answer;

	if (request->quantity < 0) {
		cost = cost_of(request, 0 - (uint64_t)request->quantity);
		return admit(request, debt, debt > cost ? debt - cost : 0, now_ns);
	}
	if ((uint64_t)request->quantity > request->burst) {
		answer = refuse(request, debt, UINT64_MAX);
		answer.retry_after_s = -1;
		return answer;
	}
	cost = cost_of(request, (uint64_t)request->quantity);
	if (debt + cost <= capacity || debt == 0)
		return admit(request, debt, debt + cost, now_ns);
	/* Where the cost alone is as much as can be remembered, only a full bucket will do. */
	if (cost >= REACH)
		return refuse(request, debt, debt);
	return refuse(request, debt, debt + cost - capacity);
}
