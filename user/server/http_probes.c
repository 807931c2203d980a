/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Health, readiness, metrics. */
#include "server/http_probes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/http_exchange.h"
#include "server/metrics.h"

enum { STATUS_OK = 200, STATUS_UNAVAILABLE = 503 };

static const char plain[] = "text/plain; charset=utf-8";

void http_healthz_run(struct http_exchange *exchange)
{
	http_reply(exchange, STATUS_OK, plain, "ok", 2);
}

void http_readyz_run(struct http_exchange *exchange)
{
	const struct http_server_options *options = http_options(exchange);
	struct trouble why = { .cause = "not ready" };

	if (!options->is_ready || options->is_ready(options->context, &why))
		http_reply(exchange, STATUS_OK, plain, "ok", 2);
	else
		http_reply(exchange, STATUS_UNAVAILABLE, plain, why.cause, strlen(why.cause));
}

void http_metrics_run(struct http_exchange *exchange)
{
	const struct http_server_options *options = http_options(exchange);
	struct exposition *page = exposition_new();
	char *text = NULL;
	size_t length = 0;
	int err = page ? 0 : -ENOMEM;

	if (!err) {
		metrics_write(options->engine, options->version, options->started_at_ms, page);
		http_write_answers(exchange->server, page);
		if (options->metrics)
			options->metrics(options->context, page);
		err = exposition_finish(page, &text, &length);
	}
	if (err)
		http_reply_json(exchange, STATUS_UNAVAILABLE, NULL);
	else
		http_reply(exchange, STATUS_OK, EXPOSITION_CONTENT_TYPE, text, length);
	free(text);
}
