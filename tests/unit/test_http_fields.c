/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The fields of each generation, to the byte. */
#include "tests/unit/test.h"

#include <stdio.h>
#include <string.h>

#include "server/http_fields.h"

#define S 1000000000ULL

/* 100 tokens in 60 s, one in half a second, very many in 20 s, and none. */
static const struct gcra_limit sixty = {
	.interval = (60 * S << 10) / 100, .capacity = 60 * S << 10, .burst = 100, .tick_shift = 10
};
static const struct gcra_limit fast = {
	.interval = 500000000ULL << 10, .capacity = 500000000ULL << 10, .burst = 1, .tick_shift = 10
};
static const struct gcra_limit coarse = { .interval = 1, /* ticks of 512 ns */
					  .capacity = 20 * S >> 9,
					  .burst = 1ULL << 42,
					  .tick_shift = -9 };
static const struct gcra_limit none = { .capacity = 0 };

static const char *text_of(enum ratelimit_headers generation, const struct decision *decision)
{
	static char text[1024];
	struct http_fields fields;
	size_t i, length = 0;

	http_fields_of(generation, decision, 1764500000, &fields);
	text[0] = '\0';
	for (i = 0; i < fields.count; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s: %s\n",
					   fields.field[i].name, fields.field[i].value.text);
	return text;
}

static const struct decision admitted = {
	.admitted = true, .remaining = 42, .full_after_ns = 6 * S + 1, .limit = &sixty
};
static const struct decision refused = { .reason = DECISION_RATE_LIMITED,
					 .retry_after_ms = 1001,
					 .retry_after_ns = 1001000000,
					 .full_after_ns = 60 * S,
					 .limit = &sixty };

static void writes_each_generation(void **state)
{
	static const struct {
		const char *name;
		enum ratelimit_headers generation;
		const char *admitted;
		const char *refused;
	} rows[] = {
		{ "off", HEADERS_OFF, "", "Retry-After: 2\nX-Retry-After-Ms: 1001\n" },
		{ "legacy", HEADERS_LEGACY,
		  "X-RateLimit-Limit: 100\nX-RateLimit-Remaining: 42\n"
		  "X-RateLimit-Reset: 1764500007\n",
		  "Retry-After: 2\nX-Retry-After-Ms: 1001\n"
		  "X-RateLimit-Limit: 100\nX-RateLimit-Remaining: 0\n"
		  "X-RateLimit-Reset: 1764500002\n" },
		{ "draft6", HEADERS_DRAFT6,
		  "RateLimit-Limit: 100\nRateLimit-Remaining: 42\nRateLimit-Reset: 7\n"
		  "RateLimit-Policy: 100;w=60\n",
		  "Retry-After: 2\nX-Retry-After-Ms: 1001\n"
		  "RateLimit-Limit: 100\nRateLimit-Remaining: 0\nRateLimit-Reset: 2\n"
		  "RateLimit-Policy: 100;w=60\n" },
		{ "draft7", HEADERS_DRAFT7,
		  "RateLimit: limit=100, remaining=42, reset=7\nRateLimit-Policy: 100;w=60\n",
		  "Retry-After: 2\nX-Retry-After-Ms: 1001\n"
		  "RateLimit: limit=100, remaining=0, reset=2\nRateLimit-Policy: 100;w=60\n" },
		{ "draft8", HEADERS_DRAFT8,
		  "RateLimit: \"hooks\";r=42;t=7\nRateLimit-Policy: \"hooks\";q=100;w=60\n",
		  "Retry-After: 2\nX-Retry-After-Ms: 1001\n"
		  "RateLimit: \"hooks\";r=0;t=2\nRateLimit-Policy: \"hooks\";q=100;w=60\n" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(rows); i++) {
		check_row_text(&rows[i], text_of(rows[i].generation, &admitted), rows[i].admitted);
		check_row_text(&rows[i], text_of(rows[i].generation, &refused), rows[i].refused);
	}
}

static void names_the_limit_that_refused(void **state)
{
	static const struct {
		const char *name;
		enum decision_reason reason;
		const char *policy;
	} rows[] = {
		{ "hooks", DECISION_RATE_LIMITED, "\"hooks\";q=100;w=60" },
		{ "bytes", DECISION_BYTES_LIMITED, "\"bytes\";q=100;qu=\"content-bytes\";w=60" },
		{ "queue", DECISION_TENANT_OVERLOAD, "\"queue\";q=100;w=60" },
		{ "ip", DECISION_IP, "\"ip\";q=100;w=60" },
		{ "node", DECISION_NODE, "\"node\";q=100;w=60" },
		{ "source", DECISION_SOURCE, "\"source\";q=100;qu=\"content-bytes\";w=60" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(rows); i++) {
		struct decision decision = refused;
		char wanted[256];

		decision.reason = rows[i].reason;
		snprintf(wanted, sizeof(wanted),
			 "Retry-After: 2\nX-Retry-After-Ms: 1001\nRateLimit: \"%s\";r=0;t=2\n"
			 "RateLimit-Policy: %s\n",
			 rows[i].name, rows[i].policy);
		check_row_text(&rows[i], text_of(HEADERS_DRAFT8, &decision), wanted);
	}
}

static void says_what_is_so_at_the_edges(void **state)
{
	static const struct {
		const char *name;
		struct decision decision;
		const char *wanted;
	} rows[] = {
		{ "no limit", { .admitted = true, .remaining = REMAINING_UNLIMITED }, "" },
		{ "a limit that limits nothing", { .admitted = true, .limit = &none }, "" },
		{ "a window of less than a second counts as one, a full bucket is full now",
		  { .admitted = true, .remaining = 1, .limit = &fast },
		  "RateLimit: \"hooks\";r=1;t=0\nRateLimit-Policy: \"hooks\";q=1;w=1\n" },
		{ "ticks longer than a nanosecond",
		  { .admitted = true, .remaining = 1LL << 42, .limit = &coarse },
		  "RateLimit: \"hooks\";r=4398046511104;t=0\n"
		  "RateLimit-Policy: \"hooks\";q=4398046511104;w=20\n" },
		{ "more than a field can say",
		  { .admitted = true, .remaining = INT64_MAX, .limit = &sixty },
		  "RateLimit: \"hooks\";r=999999999999999;t=0\n"
		  "RateLimit-Policy: \"hooks\";q=100;w=60\n" },
		{ "a wait of a millisecond is a second",
		  { .reason = DECISION_RATE_LIMITED, .retry_after_ms = 1 },
		  "Retry-After: 1\nX-Retry-After-Ms: 1\n" },
		{ "exact seconds are not rounded",
		  { .reason = DECISION_RATE_LIMITED, .retry_after_ms = 1000000 },
		  "Retry-After: 1000\nX-Retry-After-Ms: 1000000\n" },
		{ "the millisecond before",
		  { .reason = DECISION_RATE_LIMITED, .retry_after_ms = 999999 },
		  "Retry-After: 1000\nX-Retry-After-Ms: 999999\n" },
		{ "never", { .reason = DECISION_TOO_LARGE, .retry_after_ms = RETRY_NEVER }, "" },
		{ "never, with a limit",
		  { .reason = DECISION_RATE_LIMITED,
		    .retry_after_ms = RETRY_NEVER,
		    .limit = &sixty },
		  "RateLimit: \"hooks\";r=0\nRateLimit-Policy: \"hooks\";q=100;w=60\n" },
		{ "the longest wait",
		  { .reason = DECISION_RATE_LIMITED, .retry_after_ms = INT64_MAX },
		  "Retry-After: 9223372036854776\nX-Retry-After-Ms: 9223372036854775807\n" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(rows); i++)
		check_row_text(&rows[i], text_of(HEADERS_DRAFT8, &rows[i].decision),
			       rows[i].wanted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_each_generation),
		cmocka_unit_test(names_the_limit_that_refused),
		cmocka_unit_test(says_what_is_so_at_the_edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
