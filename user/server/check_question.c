/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads what a proxy asks. An empty value is as if it had not been given, for that is what a proxy
 * writes where its client has said nothing; but not an empty tenant, which would be let through.
 */
#include "server/check_question.h"

#include <errno.h>
#include <string.h>

#include "base/parse.h"

static const char bytes_must[] = "must be a whole number of at least 0";
static const char flag_must[] = "must be true or false";

static int fail(struct check_fault *fault, const char *name, const char *what)
{
	fault->name = name;
	fault->what = what;
	return -EINVAL;
}

/* ---- JSON */

static int take_text(const json_t *value, const char *name, struct http_text *out,
		     struct check_fault *fault)
{
	if (!json_is_string(value))
		return fail(fault, name, "must be a string");
	out->text = json_string_value(value);
	out->length = json_string_length(value);
	return 0;
}

static int take_bytes(const json_t *value, struct check_question *question,
		      struct check_fault *fault)
{
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return fail(fault, "bytes", bytes_must);
	question->has_bytes = true;
	question->bytes = (uint64_t)json_integer_value(value);
	return 0;
}

static int take_forwarded_line(const json_t *value, struct check_question *question,
			       struct check_fault *fault)
{
	struct http_text line;

	if (question->forwarded_count == HTTP_FORWARDED_MAX)
		return fail(fault, "forwarded_for", "must have at most 16 lines");
	if (take_text(value, "forwarded_for", &line, fault))
		return fail(fault, "forwarded_for", "must be a string or a list of strings");
	question->forwarded[question->forwarded_count++] =
		(struct forwarded_for){ .text = line.text, .length = line.length };
	return 0;
}

static int take_forwarded(const json_t *value, struct check_question *question,
			  struct check_fault *fault)
{
	size_t i;
	int err = 0;

	if (!json_is_array(value))
		return take_forwarded_line(value, question, fault);
	for (i = 0; i < json_array_size(value) && !err; i++)
		err = take_forwarded_line(json_array_get(value, i), question, fault);
	return err;
}

static int take(struct check_question *question, const char *key, const json_t *value,
		struct check_fault *fault)
{
	if (json_is_null(value))
		return 0;
	if (strcmp(key, "tenant") == 0)
		return take_text(value, "tenant", &question->tenant, fault);
	if (strcmp(key, "source") == 0)
		return take_text(value, "source", &question->source, fault);
	if (strcmp(key, "peer") == 0)
		return take_text(value, "peer", &question->peer, fault);
	if (strcmp(key, "bytes") == 0)
		return take_bytes(value, question, fault);
	if (strcmp(key, "forwarded_for") == 0)
		return take_forwarded(value, question, fault);
	if (strcmp(key, "atomic") != 0)
		return fail(fault, "body",
			    "must hold only tenant, bytes, atomic, source, peer and "
			    "forwarded_for");
	if (!json_is_boolean(value))
		return fail(fault, "atomic", flag_must);
	question->is_atomic = json_is_true(value);
	return 0;
}

int check_question_read_json(struct check_question *question, const char *text, size_t length,
			     struct check_fault *fault)
{
	const char *key;
	json_t *value;
	int err;

	/* A source may hold any byte. */
	question->body = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	if (!json_is_object(question->body))
		return fail(fault, "body", "must be a JSON object without a key twice");
	json_object_foreach(question->body, key, value)
	{
		err = take(question, key, value, fault);
		if (err)
			return err;
	}
	return 0;
}

/* ---- query and header */

static bool is_given(struct http_text text)
{
	return text.text && text.length > 0;
}

static int read_bytes(struct check_question *question, const struct http_exchange *exchange,
		      struct check_fault *fault)
{
	struct http_text word = http_argument(exchange, "bytes");

	if (question->has_bytes)
		return 0;
	if (!is_given(word))
		word = exchange->headers.body_bytes;
	if (!is_given(word))
		return 0;
	if (parse_uint(word.text, 0, INT64_MAX, &question->bytes))
		return fail(fault, "bytes", bytes_must);
	question->has_bytes = true;
	return 0;
}

static int read_atomic(struct check_question *question, const struct http_exchange *exchange,
		       struct check_fault *fault)
{
	struct http_text word = http_argument(exchange, "atomic");

	if (!is_given(word))
		return 0;
	if (strcmp(word.text, "true") != 0 && strcmp(word.text, "false") != 0)
		return fail(fault, "atomic", flag_must);
	if (!question->body || !json_object_get(question->body, "atomic"))
		question->is_atomic = word.text[0] == 't';
	return 0;
}

static void read_forwarded(struct check_question *question, const struct http_exchange *exchange)
{
	struct http_text line = http_argument(exchange, "forwarded_for");

	if (question->forwarded_count > 0)
		return;
	if (is_given(line)) {
		question->forwarded[question->forwarded_count++] =
			(struct forwarded_for){ .text = line.text, .length = line.length };
		return;
	}
	question->forwarded_count = exchange->headers.forwarded_count;
	memcpy(question->forwarded, exchange->headers.forwarded,
	       question->forwarded_count * sizeof(question->forwarded[0]));
}

int check_question_read_request(struct check_question *question,
				const struct http_exchange *exchange, struct check_fault *fault)
{
	int err;

	if (!question->tenant.text)
		question->tenant = http_argument(exchange, "tenant");
	if (!question->tenant.text)
		question->tenant = exchange->headers.tenant;
	if (!is_given(question->source))
		question->source = http_argument(exchange, "source");
	if (!is_given(question->peer))
		question->peer = http_argument(exchange, "peer");
	if (!is_given(question->peer))
		question->peer = exchange->headers.real_ip;
	if (is_given(question->source))
		read_forwarded(question, exchange);
	err = read_bytes(question, exchange, fault);
	return err ? err : read_atomic(question, exchange, fault);
}

void check_question_done(struct check_question *question)
{
	json_decref(question->body);
	question->body = NULL;
}
