/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One request and its reply, as those who answer requests see them: no word of libmicrohttpd. An
 * exchange belongs to the thread of its connection, which calls run() of its route, or to the
 * clerk's (http_clerk.h) while that runs a slow one; all functions are for the thread that has it,
 * but http_exchange_answered().
 *
 * run() either replies or asks the engine. If no answer has come when it returns, the connection is
 * set aside, and run() is called again when it has.
 */
#ifndef SLUICE_SERVER_HTTP_EXCHANGE_H
#define SLUICE_SERVER_HTTP_EXCHANGE_H

#include <stdatomic.h>

#include <jansson.h>

#include "base/client_address.h"
#include "server/http_server.h"
#include "server/tokens.h"

struct http_exchange;
struct MHD_Connection;
struct MHD_Response;

enum {
	HTTP_BODY_MAX = 65536,
	HTTP_BODY_DRAIN_MAX = 1 << 20, /* of a body that is not wanted: beyond it, hang up */
	HTTP_STATE_BYTES = 640,
	HTTP_ARGUMENTS_MAX = 16,
	HTTP_FORWARDED_MAX = 16, /* lines of X-Forwarded-For */
};

/* Ended by a zero byte that does not count. text NULL: it is not there. */
struct http_text {
	const char *text;
	size_t length;
};

enum http_guard {
	GUARD_NONE,
	GUARD_CHECK, /* any token, unless asked from the host itself */
	GUARD_READ,  /* SCOPE_RATE_LIMITS_READ */
	GUARD_WRITE,
};

struct http_route {
	const char *method; /* GET answers HEAD, too */
	const char *path;   /* with `rest`: what stands before the tenant */
	const char *rest;   /* what stands after it */
	enum http_guard guard;
	bool takes_body;
	bool is_slow; /* may wait, or take long: for the clerk, who has no reader to ask with */
	const char *const *arguments; /* those that the query may have, up to NULL */
	void (*run)(struct http_exchange *exchange);
	void (*done)(struct http_exchange *exchange); /* NULL: nothing to free in state */
};

/* Header lines that anybody looks at. */
struct http_headers {
	struct http_text authorization;
	struct http_text tenant;     /* X-Tenant */
	struct http_text body_bytes; /* X-Body-Bytes */
	struct http_text real_ip;    /* X-Real-IP */
	struct forwarded_for forwarded[HTTP_FORWARDED_MAX];
	size_t forwarded_count;
	uint64_t content_length; /* 0 also if it was not said */
	bool has_expect;
	bool is_ambiguous; /* where the body ends, or a line that may stand once stands twice */
};

struct http_argument {
	const char *name;
	struct http_text value;
};

/* What one thread of the server has to itself; others read the counts. */
enum { HTTP_ROUTES_MAX = 16, HTTP_STATUSES_MAX = 16 };

struct http_worker {
	struct http_worker *next;
	struct engine_reader *reader;
	struct http_exchange *spare;   /* one that has ended, for the next; NULL: none */
	_Atomic uint64_t begun, ended; /* exchanges */
	/* Its thread is putting a question, whose connection may come to be set aside. */
	_Atomic bool is_asking;
	_Atomic uint64_t answers[HTTP_ROUTES_MAX + 1][HTTP_STATUSES_MAX + 1]; /* the last: others */
};

enum http_wait { WAIT_NONE, WAIT_ASKED, WAIT_SET_ASIDE, WAIT_ANSWERED };

struct http_exchange {
	struct http_server *server;
	struct http_worker *worker;
	struct MHD_Connection *connection;
	const struct http_route *route; /* NULL: there is none */
	struct http_text tenant;        /* of the path */
	struct http_headers headers;
	struct http_argument arguments[HTTP_ARGUMENTS_MAX];
	size_t argument_count;
	bool has_too_many_arguments;
	struct token_holder holder; /* name "": nobody in particular */

	char *body;
	size_t body_length;
	size_t body_room;
	uint64_t body_seen;
	bool is_too_large; /* the body, which is not kept then */

	/* Say 403 for whatever is not 200, and what it would be in X-RL-Status: nginx lets no other
	 * status of a subrequest through. And say it without a body. */
	bool is_for_nginx;
	struct MHD_Response *response; /* NULL: none yet */
	unsigned status;               /* before is_for_nginx */
	bool is_broken;                /* no memory for a reply: hang up */

	_Atomic int wait;                                   /* enum http_wait */
	struct http_exchange *next;                         /* in the clerk's queue */
	_Alignas(16) unsigned char state[HTTP_STATE_BYTES]; /* of the route; zeroed */
};

/* ---- the request */

/* NULL text if it was not given. */
struct http_text http_argument(const struct http_exchange *exchange, const char *name);

/* ---- the reply: one call of these, then fields */

/* length bytes of body, copied. */
void http_reply(struct http_exchange *exchange, unsigned status, const char *type, const char *body,
		size_t length);
/* Takes value; NULL is no memory. */
void http_reply_json(struct http_exchange *exchange, unsigned status, json_t *value);
/* {"error":"word"} */
void http_reply_error(struct http_exchange *exchange, unsigned status, const char *word);
/* {"error":"word","message":"…"} */
void http_reply_message(struct http_exchange *exchange, unsigned status, const char *word,
			const char *message);
/* 400 {"error":"invalid_argument","argument":"name","message":"name …"} */
void http_reply_argument(struct http_exchange *exchange, const char *name, const char *what);
void http_reply_field(struct http_exchange *exchange, const char *name, const char *value);

/* ---- answers of the engine */

/* A question is about to be asked, whose callback calls http_exchange_answered(). */
void http_exchange_ask(struct http_exchange *exchange);
/* Whether the last question has been answered. */
bool http_exchange_has_answer(struct http_exchange *exchange);
/* By any thread, once for each question, when what the answer says is where run() finds it. The
 * exchange is not the caller's from then on. */
void http_exchange_answered(struct http_exchange *exchange);

/* ---- the server */

struct engine *http_engine(const struct http_exchange *exchange);
const struct http_server_options *http_options(const struct http_exchange *exchange);
enum ratelimit_headers http_generation(const struct http_exchange *exchange);
/* Tell the operator. */
void http_notice(struct http_server *server, const char *text);
int64_t http_wall_ms(void);
/* Add the family of answers by route and status. */
void http_write_answers(struct http_server *server, struct exposition *out);

#endif
