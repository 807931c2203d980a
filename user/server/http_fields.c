/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From a decision to the header fields of each generation. */
#include "server/http_fields.h"

#define NS_PER_S 1000000000ULL
/* What a structured field can say. */
#define FIELD_NUMBER_MAX 999999999999999ULL

/* A limit in the terms of the fields. */
struct quota {
	const char *name;
	const char *unit; /* of draft8, unless it is requests */
	uint64_t limit;
	uint64_t window_s;
	uint64_t remaining;
	uint64_t reset_s;
	bool has_reset;
};

static uint64_t bounded(uint64_t number)
{
	return number < FIELD_NUMBER_MAX ? number : FIELD_NUMBER_MAX;
}

static uint64_t seconds_up(uint64_t ns)
{
	return ns / NS_PER_S + (ns % NS_PER_S != 0);
}

int64_t http_retry_after_s(int64_t retry_after_ms)
{
	int64_t seconds = retry_after_ms / 1000 + (retry_after_ms % 1000 != 0);

	return seconds > 1 ? seconds : 1;
}

static const char *quota_name(enum decision_reason reason)
{
	switch (reason) {
	case DECISION_BYTES_LIMITED:
		return "bytes";
	case DECISION_TENANT_OVERLOAD:
		return "queue";
	case DECISION_IP:
	case DECISION_NODE:
	case DECISION_SOURCE:
		return decision_word(reason);
	default:
		return "hooks";
	}
}

static struct quota quota_of(const struct decision *decision)
{
	const struct gcra_limit *limit = decision->limit;
	uint64_t window_s = seconds_up(gcra_wait_ns(limit->capacity, limit->tick_shift));
	bool is_bytes =
		decision->reason == DECISION_BYTES_LIMITED || decision->reason == DECISION_SOURCE;
	struct quota quota = {
		.name = quota_name(decision->reason),
		.unit = is_bytes ? ";qu=\"content-bytes\"" : "",
		.limit = bounded(limit->burst),
		.window_s = bounded(window_s > 0 ? window_s : 1),
		.remaining = bounded(decision->remaining > 0 ? (uint64_t)decision->remaining : 0),
		.reset_s = bounded(seconds_up(decision->full_after_ns)),
		.has_reset = true,
	};

	if (!decision->admitted) {
		quota.has_reset = decision->retry_after_ms >= 0;
		quota.reset_s = (uint64_t)http_retry_after_s(decision->retry_after_ms);
	}
	return quota;
}

/* A further field, to be filled. */
static struct short_text *add(struct http_fields *fields, const char *name)
{
	struct http_field *field = &fields->field[fields->count++];

	field->name = name;
	field->value.length = 0;
	return &field->value;
}

static void add_number(struct http_fields *fields, const char *name, uint64_t number)
{
	short_text_put_number(add(fields, name), number);
}

static void put_pair(struct short_text *to, const char *text, uint64_t number)
{
	short_text_put(to, text);
	short_text_put_number(to, number);
}

/* As drafts 6 and 7 have it: 100;w=60 */
static void add_plain_policy(struct http_fields *fields, const struct quota *quota)
{
	struct short_text *policy = add(fields, "RateLimit-Policy");

	short_text_put_number(policy, quota->limit);
	put_pair(policy, ";w=", quota->window_s);
}

static void add_legacy(struct http_fields *fields, const struct quota *quota, int64_t wall_s)
{
	add_number(fields, "X-RateLimit-Limit", quota->limit);
	add_number(fields, "X-RateLimit-Remaining", quota->remaining);
	if (quota->has_reset)
		add_number(fields, "X-RateLimit-Reset", (uint64_t)wall_s + quota->reset_s);
}

static void add_draft6(struct http_fields *fields, const struct quota *quota)
{
	add_number(fields, "RateLimit-Limit", quota->limit);
	add_number(fields, "RateLimit-Remaining", quota->remaining);
	if (quota->has_reset)
		add_number(fields, "RateLimit-Reset", quota->reset_s);
	add_plain_policy(fields, quota);
}

static void add_draft7(struct http_fields *fields, const struct quota *quota)
{
	struct short_text *left = add(fields, "RateLimit");

	put_pair(left, "limit=", quota->limit);
	put_pair(left, ", remaining=", quota->remaining);
	if (quota->has_reset)
		put_pair(left, ", reset=", quota->reset_s);
	add_plain_policy(fields, quota);
}

static void put_name(struct short_text *to, const struct quota *quota)
{
	short_text_put(to, "\"");
	short_text_put(to, quota->name);
	short_text_put(to, "\"");
}

static void add_draft8(struct http_fields *fields, const struct quota *quota)
{
	struct short_text *left = add(fields, "RateLimit");
	struct short_text *policy = add(fields, "RateLimit-Policy");

	put_name(left, quota);
	put_pair(left, ";r=", quota->remaining);
	if (quota->has_reset)
		put_pair(left, ";t=", quota->reset_s);
	put_name(policy, quota);
	put_pair(policy, ";q=", quota->limit);
	short_text_put(policy, quota->unit);
	put_pair(policy, ";w=", quota->window_s);
}

void http_fields_of(enum ratelimit_headers generation, const struct decision *decision,
		    int64_t wall_s, struct http_fields *out)
{
	struct quota quota;

	out->count = 0;
	if (!decision->admitted && decision->retry_after_ms >= 0) {
		add_number(out, "Retry-After",
			   (uint64_t)http_retry_after_s(decision->retry_after_ms));
		add_number(out, "X-Retry-After-Ms", (uint64_t)decision->retry_after_ms);
	}
	if (generation == HEADERS_OFF || !decision->limit || decision->limit->capacity == 0)
		return;
	quota = quota_of(decision);
	switch (generation) {
	case HEADERS_OFF:
		return;
	case HEADERS_LEGACY:
		add_legacy(out, &quota, wall_s);
		return;
	case HEADERS_DRAFT6:
		add_draft6(out, &quota);
		return;
	case HEADERS_DRAFT7:
		add_draft7(out, &quota);
		return;
	case HEADERS_DRAFT8:
		add_draft8(out, &quota);
		return;
	}
}
