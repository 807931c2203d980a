/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A check is one or two questions to the engine, one after the other, each of which may be answered
 * later, on another thread. So it is a small machine: run() asks, and goes on whenever the answer to
 * the last question is there. The next question is always asked by the connection's own thread,
 * whose reader it needs.
 */
#include "server/http_check.h"

#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "server/check_question.h"
#include "server/http_fields.h"

enum {
	STATUS_OK = 200,
	STATUS_BAD_REQUEST = 400,
	STATUS_TOO_LARGE = 413,
	STATUS_TOO_MANY = 429,
	STATUS_UNAVAILABLE = 503,
};

enum check_stage { CHECK_BEGUN, CHECK_PREREAD, CHECK_HIT };

struct check {
	struct check_question question;
	enum check_stage stage;
	struct decision decision; /* the last */
	struct gcra_limit limit;  /* what decision.limit points to, unless NULL */
};

_Static_assert(sizeof(struct check) <= HTTP_STATE_BYTES, "an exchange has room for it");

static const char json[] = "application/json";

static void take_answer(void *context, const struct decision *decision)
{
	struct http_exchange *exchange = context;
	struct check *check = (struct check *)exchange->state;

	check->decision = *decision;
	if (decision->limit) {
		/* The one it points to may be gone when this returns. */
		check->limit = *decision->limit;
		check->decision.limit = &check->limit;
	}
	http_exchange_answered(exchange);
}

/* ---- asking; whether the question was asked, else there is a reply */

static bool ask_hit(struct http_exchange *exchange, struct check *check)
{
	const struct check_question *question = &check->question;
	struct tenant_name tenant = { question->tenant.text, question->tenant.length };

	check->stage = CHECK_HIT;
	http_exchange_ask(exchange);
	if (engine_hit(exchange->worker->reader, tenant, question->bytes,
		       question->is_atomic ? HIT_ATOMIC : 0, take_answer, exchange) == 0)
		return true;
	http_reply_error(exchange, STATUS_BAD_REQUEST, "invalid_tenant");
	return false;
}

static bool ask_preread(struct http_exchange *exchange, struct check *check)
{
	const struct check_question *question = &check->question;
	union address peer;
	struct preread preread = {
		.peer = &peer,
		.source = question->source.text,
		.source_bytes = question->source.length,
		.has_bytes = question->has_bytes,
		.bytes = question->bytes,
		.forwarded = question->forwarded,
		.forwarded_count = question->forwarded_count,
	};

	check->stage = CHECK_PREREAD;
	http_exchange_ask(exchange);
	/* A zero byte within would hide what follows. */
	if (strlen(question->peer.text) == question->peer.length &&
	    parse_address(question->peer.text, &peer) == 0 &&
	    engine_preread(exchange->worker->reader, &preread, take_answer, exchange) == 0)
		return true;
	http_reply_error(exchange, STATUS_BAD_REQUEST, "invalid_client_address");
	return false;
}

/* ---- replying */

static void reply_text(struct http_exchange *exchange, unsigned status,
		       const struct short_text *body)
{
	http_reply(exchange, status, json, body->text, body->length);
}

static void reply_admitted(struct http_exchange *exchange, const struct check *check)
{
	struct short_text body = { .length = 0 };

	short_text_put(&body, "{\"admitted\":true,\"reason\":\"ok\",\"remaining\":");
	if (check->decision.remaining == REMAINING_UNLIMITED)
		short_text_put(&body, "null");
	else
		short_text_put_signed(&body, check->decision.remaining);
	short_text_put(&body, "}");
	reply_text(exchange, STATUS_OK, &body);
}

static void reply_too_large(struct http_exchange *exchange, uint64_t limit)
{
	struct short_text body = { .length = 0 };

	short_text_put(&body, "{\"error\":\"payload_too_large\",\"limit\":");
	short_text_put_number(&body, limit);
	short_text_put(&body, "}");
	reply_text(exchange, STATUS_TOO_LARGE, &body);
}

static void reply_over_body_limit(struct http_exchange *exchange, const struct check *check)
{
	struct tenant_name tenant = { check->question.tenant.text, check->question.tenant.length };
	uint64_t limit = UINT64_MAX;

	/* If the limit was lifted meanwhile, there is no number to say. */
	if (engine_body_limit(exchange->worker->reader, tenant, &limit) || limit == UINT64_MAX)
		http_reply_error(exchange, STATUS_TOO_LARGE, "payload_too_large");
	else
		reply_too_large(exchange, limit);
}

static void reply_refusal(struct http_exchange *exchange, unsigned status, const char *beginning,
			  int64_t retry_after_ms)
{
	struct short_text body = { .length = 0 };

	short_text_put(&body, beginning);
	short_text_put(&body, "\"retry_after_ms\":");
	short_text_put_signed(&body, retry_after_ms);
	short_text_put(&body, "}");
	reply_text(exchange, status, &body);
}

static void reply_refused(struct http_exchange *exchange, const struct check *check)
{
	static const char *const beginnings[DECISIONS] = {
		[DECISION_RATE_LIMITED] = "{\"error\":\"rate_limited\",\"scope\":\"tenant\",",
		[DECISION_BYTES_LIMITED] = "{\"error\":\"rate_limited\",\"scope\":\"bytes\",",
		[DECISION_IP] = "{\"error\":\"rate_limited\",\"scope\":\"ip\",",
		[DECISION_NODE] = "{\"error\":\"rate_limited\",\"scope\":\"node\",",
		[DECISION_SOURCE] = "{\"error\":\"rate_limited\",\"scope\":\"source\",",
	};
	const struct decision *decision = &check->decision;
	const char *beginning = beginnings[decision->reason];

	if (decision->reason == DECISION_TOO_LARGE)
		reply_over_body_limit(exchange, check);
	else if (beginning)
		reply_refusal(exchange, STATUS_TOO_MANY, beginning, decision->retry_after_ms);
	else
		reply_refusal(exchange, STATUS_UNAVAILABLE, "{\"error\":\"overload\",",
			      decision->retry_after_ms);
}

static void reply(struct http_exchange *exchange, const struct check *check)
{
	struct http_fields fields;
	size_t i;

	if (check->decision.admitted)
		reply_admitted(exchange, check);
	else
		reply_refused(exchange, check);
	http_fields_of(http_generation(exchange), &check->decision, http_wall_ms() / 1000, &fields);
	for (i = 0; i < fields.count; i++)
		http_reply_field(exchange, fields.field[i].name, fields.field[i].value.text);
}

/* ---- the machine */

static bool is_given(struct http_text text)
{
	return text.text && text.length > 0;
}

static bool read_question(struct http_exchange *exchange, struct check *check)
{
	struct http_text mode = http_argument(exchange, "mode");
	struct check_question *question = &check->question;
	struct check_fault fault;
	int err = 0;

	if (mode.text && strcmp(mode.text, "nginx") != 0) {
		http_reply_argument(exchange, "mode", "must be nginx, or left out");
		return false;
	}
	if (exchange->body_length > 0)
		err = check_question_read_json(question, exchange->body, exchange->body_length,
					       &fault);
	if (!err)
		err = check_question_read_request(question, exchange, &fault);
	if (err)
		http_reply_argument(exchange, fault.name, fault.what);
	return !err;
}

/* Ask the first question. false: there is a reply. */
static bool begin(struct http_exchange *exchange, struct check *check)
{
	const struct check_question *question = &check->question;

	if (exchange->is_too_large && exchange->route->takes_body) {
		reply_too_large(exchange, HTTP_BODY_MAX);
		return false;
	}
	if (!read_question(exchange, check))
		return false;
	if (question->tenant.text &&
	    !tenant_id_is_valid(question->tenant.text, question->tenant.length)) {
		/* Before anything is charged. */
		http_reply_error(exchange, STATUS_BAD_REQUEST, "invalid_tenant");
		return false;
	}
	if (is_given(question->source)) {
		if (is_given(question->peer))
			return ask_preread(exchange, check);
		http_reply_argument(exchange, "peer", "is required beside source");
		return false;
	}
	if (question->tenant.text)
		return ask_hit(exchange, check);
	http_reply_argument(exchange, "tenant", "is required, or a source");
	return false;
}

/* An answer is there. Whether another question was asked, else there is a reply. */
static bool advance(struct http_exchange *exchange, struct check *check)
{
	if (check->stage == CHECK_PREREAD && check->decision.admitted &&
	    check->question.tenant.text)
		return ask_hit(exchange, check);
	reply(exchange, check);
	return false;
}

void http_check_run(struct http_exchange *exchange)
{
	struct check *check = (struct check *)exchange->state;

	if (check->stage == CHECK_BEGUN && !begin(exchange, check))
		return;
	while (http_exchange_has_answer(exchange) && advance(exchange, check))
		;
}

void http_check_done(struct http_exchange *exchange)
{
	check_question_done(&((struct check *)exchange->state)->question);
}
