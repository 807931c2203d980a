/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a decision says in header fields: how long to wait, and how much of which limit is left, in
 * the words of the generation that the operator has chosen (those of express-rate-limit, which wrote
 * most of what clients read):
 *
 *   legacy  X-RateLimit-Limit: 100, X-RateLimit-Remaining: 42, X-RateLimit-Reset: 1764500000 (Unix
 *           time)
 *   draft6  RateLimit-Limit: 100, RateLimit-Remaining: 42, RateLimit-Reset: 7 (seconds from now),
 *           RateLimit-Policy: 100;w=60
 *   draft7  RateLimit: limit=100, remaining=42, reset=7; RateLimit-Policy: 100;w=60
 *   draft8  RateLimit: "hooks";r=42;t=7; RateLimit-Policy: "hooks";q=100;w=60 (also of the drafts
 *           after it)
 *
 * q is the burst, w the seconds in which an empty bucket fills. The reset is when the bucket will be
 * full, so that nobody is led to spend all of a large remainder within a second; of a refusal it is
 * when to come again, as Retry-After. All seconds are whole and rounded up. Pure functions; thread
 * safe.
 */
#ifndef SLUICE_SERVER_HTTP_FIELDS_H
#define SLUICE_SERVER_HTTP_FIELDS_H

#include <stdint.h>

#include "engine/engine.h"
#include "limit/settings.h"
#include "server/short_text.h"

enum { HTTP_FIELDS_MAX = 6 };

struct http_field {
	const char *name; /* static */
	struct short_text value;
};

struct http_fields {
	size_t count;
	struct http_field field[HTTP_FIELDS_MAX];
};

/* Retry-After for a wait in ms, above 0: whole seconds, rounded up. */
int64_t http_retry_after_s(int64_t retry_after_ms);

/*
 * The fields of a decision. Retry-After and X-Retry-After-Ms stand on each refusal that does not last
 * for ever, whatever the generation. Without a limit there is nothing to say of it. wall_s: Unix
 * time.
 */
void http_fields_of(enum ratelimit_headers generation, const struct decision *decision,
		    int64_t wall_s, struct http_fields *out);

#endif
