/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Collects a request, makes its reply, and sets a connection aside while the engine owes an answer.
 *
 * Between the connection's thread and the one that answers there is one word, `wait`. The thread
 * suspends the connection first and then says SET_ASIDE, by compare-and-swap; whoever answers says
 * ANSWERED by exchange and resumes the connection only if it reads SET_ASIDE there. If the answer was
 * first, the compare-and-swap fails, and the thread resumes the connection itself. So it is resumed
 * once, and never before it was suspended. After that its thread may end the exchange at any moment:
 * whoever answers touches only the server any more, which waits in http_server_stop() until as many
 * connections have been resumed as were set aside.
 */
#include "server/http_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/parse.h"

enum {
	BODY_ROOM_FIRST = 1024,
	ARGUMENT_SHOWN_MAX = 64,
	MESSAGE_MAX = 192,
	STATUS_OK = 200,
	STATUS_BAD_REQUEST = 400,
	STATUS_FORBIDDEN = 403,
	STATUS_UNAVAILABLE = 503,
	JSON_FLAGS = JSON_COMPACT | JSON_REAL_PRECISION(15), /* 0.1 stays 0.1 */
};

/* In the order of their counters. */
static const unsigned statuses[HTTP_STATUSES_MAX] = { 200, 204, 400, 401, 403, 404,
						      405, 413, 422, 429, 500, 503 };

/* ---- the header */

static bool is(const char *name, const char *wanted)
{
	return strcasecmp(name, wanted) == 0;
}

/* A line that may stand once. */
static void keep_single(struct http_headers *headers, struct http_text *line, const char *value,
			size_t length)
{
	if (line->text)
		headers->is_ambiguous = true;
	line->text = value ? value : "";
	line->length = length;
}

static void keep_forwarded(struct http_headers *headers, const char *value, size_t length)
{
	if (headers->forwarded_count == HTTP_FORWARDED_MAX) {
		headers->is_ambiguous = true;
		return;
	}
	headers->forwarded[headers->forwarded_count++] =
		(struct forwarded_for){ .text = value, .length = length };
}

struct header_reader {
	struct http_headers *headers;
	struct http_text length;
	struct http_text encoding;
};

static enum MHD_Result read_header(void *context, enum MHD_ValueKind kind, const char *name,
				   size_t name_length, const char *value, size_t value_length)
{
	struct header_reader *reader = context;
	struct http_headers *headers = reader->headers;

	(void)kind;
	switch (name_length) {
	case 6:
		if (is(name, "Expect"))
			headers->has_expect = true;
		break;
	case 8:
		if (is(name, "X-Tenant"))
			keep_single(headers, &headers->tenant, value, value_length);
		break;
	case 9:
		if (is(name, "X-Real-IP"))
			keep_single(headers, &headers->real_ip, value, value_length);
		break;
	case 12:
		if (is(name, "X-Body-Bytes"))
			keep_single(headers, &headers->body_bytes, value, value_length);
		break;
	case 13:
		if (is(name, "Authorization"))
			keep_single(headers, &headers->authorization, value, value_length);
		break;
	case 14:
		if (is(name, "Content-Length"))
			keep_single(headers, &reader->length, value, value_length);
		break;
	case 15:
		if (is(name, "X-Forwarded-For"))
			keep_forwarded(headers, value, value_length);
		break;
	case 17:
		if (is(name, "Transfer-Encoding"))
			keep_single(headers, &reader->encoding, value, value_length);
		break;
	}
	return MHD_YES;
}

static void read_headers(struct http_exchange *exchange)
{
	struct header_reader reader = { .headers = &exchange->headers };

	(void)MHD_get_connection_values_n(exchange->connection, MHD_HEADER_KIND, read_header,
					  &reader);
	if (reader.encoding.text && (reader.length.text || !is(reader.encoding.text, "chunked")))
		exchange->headers.is_ambiguous = true;
	if (reader.length.text &&
	    parse_uint(reader.length.text, 0, INT64_MAX, &exchange->headers.content_length))
		exchange->headers.is_ambiguous = true;
}

static enum MHD_Result read_argument(void *context, enum MHD_ValueKind kind, const char *name,
				     size_t name_length, const char *value, size_t value_length)
{
	struct http_exchange *exchange = context;
	struct http_argument *argument;

	(void)kind;
	(void)name_length;
	if (exchange->argument_count == HTTP_ARGUMENTS_MAX) {
		exchange->has_too_many_arguments = true;
		return MHD_NO;
	}
	argument = &exchange->arguments[exchange->argument_count++];
	argument->name = name;
	argument->value.text = value ? value : "";
	argument->value.length = value_length;
	if (strcmp(name, "mode") == 0 && strcmp(argument->value.text, "nginx") == 0)
		exchange->is_for_nginx = true;
	return MHD_YES;
}

struct http_text http_argument(const struct http_exchange *exchange, const char *name)
{
	size_t i;

	for (i = 0; i < exchange->argument_count; i++)
		if (strcmp(exchange->arguments[i].name, name) == 0)
			return exchange->arguments[i].value;
	return (struct http_text){ NULL, 0 };
}

/* ---- beginning, body, end */

struct http_exchange *http_exchange_begin(struct http_server *server, struct http_worker *worker,
					  struct MHD_Connection *connection, const char *method,
					  const char *path)
{
	struct http_text tenant = { NULL, 0 };
	bool is_path_known;
	const struct http_route *route = http_route_find(method, path, &tenant, &is_path_known);
	struct http_exchange *exchange = worker->spare ? worker->spare : malloc(sizeof(*exchange));

	worker->spare = NULL;
	if (!exchange)
		return NULL;
	memset(exchange, 0, sizeof(*exchange));
	exchange->server = server;
	exchange->worker = worker;
	exchange->connection = connection;
	exchange->route = route;
	exchange->tenant = tenant;
	read_headers(exchange);
	(void)MHD_get_connection_values_n(connection, MHD_GET_ARGUMENT_KIND, read_argument,
					  exchange);
	http_route_judge(exchange, path, is_path_known);
	return exchange;
}

void http_exchange_end(struct http_exchange *exchange)
{
	if (exchange->route && exchange->route->done)
		exchange->route->done(exchange);
	if (exchange->response)
		MHD_destroy_response(exchange->response);
	free(exchange->body);
	if (exchange->worker->spare)
		free(exchange);
	else
		exchange->worker->spare = exchange;
}

bool http_exchange_take_body(struct http_exchange *exchange, const char *bytes, size_t count)
{
	size_t room = exchange->body_room ? exchange->body_room : BODY_ROOM_FIRST;
	char *body;

	exchange->body_seen += count;
	if (exchange->body_seen > HTTP_BODY_DRAIN_MAX)
		return false;
	if (exchange->body_seen > HTTP_BODY_MAX)
		exchange->is_too_large = true;
	if (exchange->is_too_large || exchange->response || !exchange->route->takes_body)
		return true;
	while (room - exchange->body_length < count)
		room *= 2;
	if (room != exchange->body_room) {
		body = realloc(exchange->body, room);
		if (!body)
			return false;
		exchange->body = body;
		exchange->body_room = room;
	}
	memcpy(exchange->body + exchange->body_length, bytes, count);
	exchange->body_length += count;
	return true;
}

/* ---- the reply */

static void add_field(struct http_exchange *exchange, const char *name, const char *value)
{
	if (exchange->response &&
	    MHD_add_response_header(exchange->response, name, value) == MHD_NO)
		exchange->is_broken = true;
}

void http_reply(struct http_exchange *exchange, unsigned status, const char *type, const char *body,
		size_t length)
{
	/* nginx shows its client none of it, and closes a connection on which a body would follow. A
	 * question that was put wrong is one to be read by a person. */
	if (exchange->is_for_nginx && status != STATUS_BAD_REQUEST) {
		length = 0;
		type = NULL;
	}
	/* It is not written to: the library lacks a const. */
	exchange->response =
		MHD_create_response_from_buffer(length, (void *)body, MHD_RESPMEM_MUST_COPY);
	exchange->status = status;
	exchange->is_broken = !exchange->response;
	if (type)
		add_field(exchange, "Content-Type", type);
}

void http_reply_json(struct http_exchange *exchange, unsigned status, json_t *value)
{
	static const char no_memory[] = "{\"error\":\"out_of_memory\"}";
	char *text = value ? json_dumps(value, JSON_FLAGS) : NULL;

	json_decref(value);
	if (text)
		http_reply(exchange, status, "application/json", text, strlen(text));
	else
		http_reply(exchange, STATUS_UNAVAILABLE, "application/json", no_memory,
			   sizeof(no_memory) - 1);
	free(text);
}

/* Texts of others may hold bytes that are no UTF-8, and then JSON cannot hold them. */
static json_t *shown(const char *text)
{
	json_t *value = json_string(text);
	char *plain = value ? NULL : strdup(text), *at;

	for (at = plain; at && *at; at++)
		if (*at & 0x80)
			*at = '?';
	if (plain)
		value = json_string(plain);
	free(plain);
	return value;
}

void http_reply_error(struct http_exchange *exchange, unsigned status, const char *word)
{
	http_reply_json(exchange, status, json_pack("{s:s}", "error", word));
}

void http_reply_message(struct http_exchange *exchange, unsigned status, const char *word,
			const char *message)
{
	http_reply_json(exchange, status,
			json_pack("{s:s, s:o}", "error", word, "message", shown(message)));
}

void http_reply_argument(struct http_exchange *exchange, const char *name, const char *what)
{
	char cut[ARGUMENT_SHOWN_MAX], message[ARGUMENT_SHOWN_MAX + MESSAGE_MAX];

	(void)snprintf(cut, sizeof(cut), "%s", name);
	(void)snprintf(message, sizeof(message), "%s %s", cut, what);
	http_reply_json(exchange, STATUS_BAD_REQUEST,
			json_pack("{s:s, s:o, s:o}", "error", "invalid_argument", "argument",
				  shown(cut), "message", shown(message)));
}

void http_reply_field(struct http_exchange *exchange, const char *name, const char *value)
{
	add_field(exchange, name, value);
}

static void count_answer(const struct http_exchange *exchange)
{
	_Atomic uint64_t *count;
	size_t i;

	for (i = 0; i < HTTP_STATUSES_MAX && statuses[i] != exchange->status; i++)
		;
	count = &exchange->worker->answers[http_route_index(exchange->route)][i];
	/* One thread writes it, so it need not be one indivisible addition. */
	atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

static enum MHD_Result send_reply(struct http_exchange *exchange)
{
	unsigned status = exchange->status;
	char text[16];

	if (exchange->is_for_nginx && status != STATUS_OK) {
		(void)snprintf(text, sizeof(text), "%u", status);
		add_field(exchange, "X-RL-Status", text);
		status = STATUS_FORBIDDEN;
	}
	if (atomic_load_explicit(&exchange->server->is_stopping, memory_order_relaxed))
		add_field(exchange, "Connection", "close");
	if (exchange->is_broken)
		return MHD_NO;
	count_answer(exchange);
	return MHD_queue_response(exchange->connection, status, exchange->response);
}

/* ---- waiting for the engine */

void http_exchange_ask(struct http_exchange *exchange)
{
	atomic_store(&exchange->wait, WAIT_ASKED);
}

bool http_exchange_has_answer(struct http_exchange *exchange)
{
	return atomic_load(&exchange->wait) == WAIT_ANSWERED;
}

static void resume(struct http_server *server, struct MHD_Connection *connection)
{
	MHD_resume_connection(connection);
	(void)pthread_mutex_lock(&server->lock);
	server->set_aside--;
	(void)pthread_cond_broadcast(&server->has_resumed);
	(void)pthread_mutex_unlock(&server->lock);
}

void http_exchange_answered(struct http_exchange *exchange)
{
	struct http_server *server = exchange->server;
	struct MHD_Connection *connection = exchange->connection;

	if (atomic_exchange(&exchange->wait, WAIT_ANSWERED) == WAIT_SET_ASIDE)
		resume(server, connection);
}

static void set_aside(struct http_exchange *exchange)
{
	struct http_server *server = exchange->server;
	struct MHD_Connection *connection = exchange->connection;
	int asked = WAIT_ASKED;

	(void)pthread_mutex_lock(&server->lock);
	server->set_aside++;
	(void)pthread_mutex_unlock(&server->lock);
	MHD_suspend_connection(connection);
	if (!atomic_compare_exchange_strong(&exchange->wait, &asked, WAIT_SET_ASIDE))
		resume(server, connection);
}

static enum MHD_Result ask(struct http_exchange *exchange)
{
	if (exchange->route->is_slow) {
		http_exchange_ask(exchange);
		/* What it holds is not ours from here on until it has been answered. */
		http_clerk_give(&exchange->server->clerk, exchange);
	} else {
		exchange->route->run(exchange);
		if (exchange->response || exchange->is_broken)
			return send_reply(exchange);
	}
	set_aside(exchange);
	return MHD_YES;
}

/*
 * Who stops the server waits for connections that are set aside, and one that is about to be must not
 * escape it: so it is either seen asking, or itself sees that the server closes, and hangs up.
 */
enum MHD_Result http_exchange_proceed(struct http_exchange *exchange)
{
	struct http_worker *worker = exchange->worker;
	enum MHD_Result result = MHD_NO;

	if (exchange->response || exchange->is_broken)
		return send_reply(exchange);
	atomic_store(&worker->is_asking, true);
	if (!atomic_load(&exchange->server->is_closing))
		result = ask(exchange);
	atomic_store(&worker->is_asking, false);
	return result;
}

/* ---- the server */

struct engine *http_engine(const struct http_exchange *exchange)
{
	return exchange->server->options.engine;
}

const struct http_server_options *http_options(const struct http_exchange *exchange)
{
	return &exchange->server->options;
}

enum ratelimit_headers http_generation(const struct http_exchange *exchange)
{
	return (enum ratelimit_headers)atomic_load_explicit(&exchange->server->generation,
							    memory_order_relaxed);
}

int64_t http_wall_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void write_answer(const struct http_route *route, size_t status_index, uint64_t count,
			 struct exposition *out)
{
	char status[16] = "other", path[64] = "other";
	struct exposition_label labels[] = {
		{ .name = "method", .value = route ? route->method : "other" },
		{ .name = "route", .value = path },
		{ .name = "status", .value = status },
	};

	if (status_index < HTTP_STATUSES_MAX)
		(void)snprintf(status, sizeof(status), "%u", statuses[status_index]);
	if (route)
		(void)snprintf(path, sizeof(path), "%s%s%s", route->path,
			       route->rest ? "{tenant}" : "", route->rest ? route->rest : "");
	exposition_count(out, labels, 3, count);
}

/* One series for each that has occurred: at most routes times statuses, whatever clients send. */
void http_write_answers(struct http_server *server, struct exposition *out)
{
	uint64_t counts[HTTP_ROUTES_MAX + 1][HTTP_STATUSES_MAX + 1] = { 0 };
	size_t i, j;

	(void)pthread_mutex_lock(&server->lock);
	for (const struct http_worker *worker = server->workers; worker; worker = worker->next)
		for (i = 0; i <= HTTP_ROUTES_MAX; i++)
			for (j = 0; j <= HTTP_STATUSES_MAX; j++)
				counts[i][j] += atomic_load_explicit(&worker->answers[i][j],
								     memory_order_relaxed);
	(void)pthread_mutex_unlock(&server->lock);
	exposition_family(out, EXPOSITION_COUNTER, "sluice_http_answers_total",
			  "Requests answered over HTTP, by route and status.");
	for (i = 0; i <= HTTP_ROUTES_MAX; i++)
		for (j = 0; j <= HTTP_STATUSES_MAX; j++)
			if (counts[i][j])
				write_answer(http_route_at(i), j, counts[i][j], out);
}
