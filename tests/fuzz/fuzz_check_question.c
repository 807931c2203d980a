/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What anybody can send to /v1/check: a body of any bytes, and arguments of any text. Either refused
 * with words for it, or a question whose every text can be read to its length.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/check_question.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile unsigned sum;

static void must(bool condition)
{
	if (!condition)
		abort();
}

/* Touch each byte, so that the sanitizer sees one that is gone. */
static void read_text(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		sum += (unsigned char)text[i];
}

static void read_question(const struct check_question *question)
{
	must(question->forwarded_count <= HTTP_FORWARDED_MAX);
	must(question->has_bytes || question->bytes == 0);
	must(question->bytes <= INT64_MAX);
	read_text(question->tenant.text, question->tenant.length);
	read_text(question->source.text, question->source.length);
	read_text(question->peer.text, question->peer.length);
	for (size_t i = 0; i < question->forwarded_count; i++)
		read_text(question->forwarded[i].text, question->forwarded[i].length);
}

/* The same bytes as arguments: name, zero byte, value, zero byte, … */
static void fill_arguments(struct http_exchange *exchange, const char *text, size_t length)
{
	const char *at = text, *end = text + length;

	while (at < end && exchange->argument_count < HTTP_ARGUMENTS_MAX) {
		struct http_argument *argument = &exchange->arguments[exchange->argument_count];

		argument->name = at;
		at += strlen(at) + 1;
		if (at >= end)
			return;
		argument->value.text = at;
		argument->value.length = strlen(at);
		at += argument->value.length + 1;
		exchange->argument_count++;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_exchange *exchange = calloc(1, sizeof(*exchange));
	struct check_question question = { .has_bytes = false };
	struct check_fault fault = { NULL, NULL };
	char *text = malloc(size + 1);
	int err;

	must(exchange && text);
	memcpy(text, data, size);
	text[size] = '\0';
	fill_arguments(exchange, text, size);
	err = check_question_read_json(&question, (const char *)data, size, &fault);
	if (err) {
		/* Go on as for a request without a body. */
		must(fault.name && fault.what);
		check_question_done(&question);
		memset(&question, 0, sizeof(question));
	}
	err = check_question_read_request(&question, exchange, &fault);
	must(!err || (fault.name && fault.what));
	if (!err)
		read_question(&question);
	check_question_done(&question);
	free(text);
	free(exchange);
	return 0;
}
