/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The HTTP server: limits and their changes for operators (http_admin.h), decisions for proxies
 * (http_check.h), and what watches the daemon (http_probes.h).
 *
 * Changes need a bearer token of the configuration with the scope rate_limits:write, and while any
 * token is configured, looking at limits needs one with rate_limits:read. Without any, limits may be
 * looked at and nothing can be changed, and the server listens on the host itself only. /v1/check is
 * open to the host itself; beyond it any token will do. /healthz, /readyz and /metrics are open.
 */
#ifndef SLUICE_SERVER_HTTP_SERVER_H
#define SLUICE_SERVER_HTTP_SERVER_H

#include "base/trouble.h"
#include "engine/engine.h"
#include "limit/settings.h"
#include "wire/exposition.h"

struct http_server;

/* Zero or NULL is a usable value of every member but the first three. */
struct http_server_options {
	struct engine *engine;
	const struct settings *settings;  /* tokens and ratelimit_headers of it are copied */
	struct setting_endpoint endpoint; /* port 0: any that is free */
	int listener; /* a listening socket to be used instead, which becomes the server's; 0: none */
	unsigned workers;         /* 0: 1 */
	unsigned connections_max; /* 0: 4096; those beyond wait until one ends */
	unsigned idle_timeout_s;  /* 0: 75, a little longer than nginx keeps a connection */
	const char *version;      /* NULL: 0.0.0 */
	int64_t started_at_ms;    /* Unix time at which the process began; 0: now */
	void *context;            /* of the callbacks */

	/* Called on the server's threads, also at the same time; each may be NULL. */
	int (*reload)(void *context, struct trouble *trouble);  /* -EINVAL: the file is wrong */
	bool (*is_ready)(void *context, struct trouble *why);   /* why not */
	void (*metrics)(void *context, struct exposition *out); /* add families */
	/* Something the operator should know; not more often than once a second. */
	void (*notice)(void *context, const char *text);
};

/*
 * Bind, listen and begin to serve. -EPERM: without tokens, and not on a loopback address. Other
 * -errno of the system. Signals stay blocked in the server's threads.
 */
int http_server_start(const struct http_server_options *options, struct http_server **out,
		      struct trouble *trouble);

/*
 * Tokens and ratelimit_headers of other settings, for a reload, in two steps: all that can fail is
 * done by http_server_prepare() (-EPERM as above, -ENOMEM), of whose result http_server_commit() and
 * http_server_discard() (NULL is fine) dispose.
 */
struct http_prepared;

int http_server_prepare(const struct http_server *server, const struct settings *settings,
			struct http_prepared **out, struct trouble *trouble);
void http_server_commit(struct http_server *server, struct http_prepared *prepared);
void http_server_discard(struct http_prepared *prepared);

/* Both at once. An error changes nothing. */
int http_server_configure(struct http_server *server, const struct settings *settings,
			  struct trouble *trouble);

/*
 * Stop accepting, answer for up to grace_ms what has been asked, close. What the engine still owes
 * an answer is waited for however long it takes, so let it answer before. Not to be called on a
 * thread of the server. A second call does nothing.
 */
void http_server_stop(struct http_server *server, uint64_t grace_ms);

/* Stops, if it has not been. NULL is fine. */
void http_server_free(struct http_server *server);

/* 0: none, as with a listener that is no TCP socket. */
unsigned http_server_port(const struct http_server *server);

#endif
