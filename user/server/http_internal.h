/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the HTTP server share, and those who answer requests do not see. */
#ifndef SLUICE_SERVER_HTTP_INTERNAL_H
#define SLUICE_SERVER_HTTP_INTERNAL_H

#include <pthread.h>

#include <microhttpd.h>

#include "server/http_clerk.h"
#include "server/http_exchange.h"

struct http_server {
	struct http_server_options options;
	struct tokens tokens;
	_Atomic int generation; /* enum ratelimit_headers */
	bool is_local;          /* reached from the host itself only */
	int listener;           /* -1: none */
	struct MHD_Daemon *daemon;
	struct http_clerk clerk;
	_Atomic bool is_stopping;
	_Atomic bool is_closing; /* nothing more is asked */
	_Atomic uint64_t noticed_at_ns;

	pthread_key_t worker_key;
	bool has_worker_key;
	pthread_mutex_t lock;       /* guards the rest */
	pthread_cond_t has_resumed; /* set_aside has become less */
	struct http_worker *workers;
	size_t set_aside;
};

/* http_listener.c. -errno with *trouble. */
int http_listen(const struct setting_endpoint *endpoint, int *out, struct trouble *trouble);
/* A socket that somebody else opened: check that it listens, and make it ours to close. */
int http_adopt(int fd, struct trouble *trouble);
/* Whether only the host itself can connect. */
bool http_is_local(int fd);
unsigned http_port(int fd);

/* http_routes.c: find the route of an exchange; NULL with *is_path_known if only another method has
 * one. *tenant is that of the path. */
const struct http_route *http_route_find(const char *method, const char *path,
					 struct http_text *tenant, bool *is_path_known);
/* Refuse what need not be run: replies, or leaves it to run(). */
void http_route_judge(struct http_exchange *exchange, const char *path, bool is_path_known);
size_t http_route_index(const struct http_route *route); /* HTTP_ROUTES_MAX: none */
const struct http_route *http_route_at(size_t index);    /* NULL: there are no more */

/* http_exchange.c. NULL: no memory. */
struct http_exchange *http_exchange_begin(struct http_server *server, struct http_worker *worker,
					  struct MHD_Connection *connection, const char *method,
					  const char *path);
void http_exchange_end(struct http_exchange *exchange);
/* Keep a piece of the body, or drop it. false: hang up. */
bool http_exchange_take_body(struct http_exchange *exchange, const char *bytes, size_t count);
/* Reply or go on, as far as it can be done now. */
enum MHD_Result http_exchange_proceed(struct http_exchange *exchange);

#endif
