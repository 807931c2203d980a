/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of routes, and what is judged of a request before its route is run, in this order: is
 * there such a path, such a method, may this client, does the query hold only what the route knows.
 * Paths are compared as they are once percent signs are resolved; there is no second spelling.
 */
#include "server/http_internal.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "server/http_admin.h"
#include "server/http_check.h"
#include "server/http_probes.h"

enum {
	STATUS_BAD_REQUEST = 400,
	STATUS_UNAUTHORIZED = 401,
	STATUS_FORBIDDEN = 403,
	STATUS_NOT_FOUND = 404,
	STATUS_METHOD = 405,
	ALLOW_TEXT_MAX = 64
};

static const char *const no_arguments[] = { NULL };
static const char *const list_arguments[] = { "limit", "after", NULL };
static const char *const audit_arguments[] = { "tenant", "limit", "before", NULL };
static const char *const change_arguments[] = { "ttl", "keep_debt", NULL };
static const char *const removal_arguments[] = { "keep_debt", NULL };
static const char *const check_arguments[] = { "tenant", "bytes", "atomic",        "peer",
					       "source", "mode",  "forwarded_for", NULL };

static const char tenants_path[] = "/v1/tenants/", limit_path[] = "/rate-limit";

/* The busiest first: they are looked through one by one. */
static const struct http_route routes[] = {
	{ "GET", "/v1/check", NULL, GUARD_CHECK, false, false, check_arguments, http_check_run,
	  http_check_done },
	{ "POST", "/v1/check", NULL, GUARD_CHECK, true, false, check_arguments, http_check_run,
	  http_check_done },
	{ "GET", "/metrics", NULL, GUARD_NONE, false, true, no_arguments, http_metrics_run, NULL },
	{ "GET", "/healthz", NULL, GUARD_NONE, false, false, no_arguments, http_healthz_run, NULL },
	{ "GET", "/readyz", NULL, GUARD_NONE, false, true, no_arguments, http_readyz_run, NULL },
	{ "GET", "/v1/rate-limits", NULL, GUARD_READ, false, true, list_arguments, http_limits_run,
	  NULL },
	{ "GET", tenants_path, limit_path, GUARD_READ, false, false, no_arguments,
	  http_limit_get_run, NULL },
	{ "PUT", tenants_path, limit_path, GUARD_WRITE, true, true, change_arguments,
	  http_limit_put_run, NULL },
	{ "DELETE", tenants_path, limit_path, GUARD_WRITE, false, true, removal_arguments,
	  http_limit_delete_run, NULL },
	{ "GET", "/v1/audit", NULL, GUARD_READ, false, true, audit_arguments, http_audit_run,
	  NULL },
	{ "POST", "/v1/reload", NULL, GUARD_WRITE, false, true, no_arguments, http_reload_run,
	  NULL },
};

enum { ROUTES = sizeof(routes) / sizeof(*routes) };

_Static_assert((int)ROUTES <= (int)HTTP_ROUTES_MAX, "a worker counts each");

size_t http_route_index(const struct http_route *route)
{
	return route ? (size_t)(route - routes) : HTTP_ROUTES_MAX;
}

const struct http_route *http_route_at(size_t index)
{
	return index < ROUTES ? &routes[index] : NULL;
}

/* ---- finding */

static bool matches(const struct http_route *route, const char *path, struct http_text *tenant)
{
	size_t before = strlen(route->path), length, after;

	if (!route->rest)
		return strcmp(route->path, path) == 0;
	if (strncmp(route->path, path, before) != 0)
		return false;
	length = strlen(path);
	after = strlen(route->rest);
	if (length < before + after || strcmp(path + length - after, route->rest) != 0)
		return false;
	tenant->text = path + before;
	tenant->length = length - before - after;
	return !memchr(tenant->text, '/', tenant->length);
}

static bool is_method(const struct http_route *route, const char *method)
{
	return strcmp(route->method, method) == 0 ||
	       (strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0);
}

const struct http_route *http_route_find(const char *method, const char *path,
					 struct http_text *tenant, bool *is_path_known)
{
	struct http_text found = { NULL, 0 };
	size_t i;

	*is_path_known = false;
	for (i = 0; i < ROUTES; i++) {
		if (!matches(&routes[i], path, &found))
			continue;
		*is_path_known = true;
		if (!is_method(&routes[i], method))
			continue;
		*tenant = found;
		return &routes[i];
	}
	return NULL;
}

/* ---- judging */

static void refuse_method(struct http_exchange *exchange, const char *path)
{
	char allow[ALLOW_TEXT_MAX] = "";
	struct http_text tenant;
	size_t i, length = 0;

	for (i = 0; i < ROUTES; i++)
		if (matches(&routes[i], path, &tenant))
			length += (size_t)snprintf(allow + length, sizeof(allow) - length, "%s%s%s",
						   length ? ", " : "", routes[i].method,
						   routes[i].method[0] == 'G' ? ", HEAD" : "");
	http_reply_error(exchange, STATUS_METHOD, "method_not_allowed");
	http_reply_field(exchange, "Allow", allow);
}

/* `Bearer TOKEN`; text NULL if it is something else. */
static struct http_text find_bearer(const struct http_text *authorization)
{
	static const char scheme[] = "Bearer ";
	struct http_text token = { NULL, 0 };
	const char *text = authorization->text;

	if (!text || strncasecmp(text, scheme, sizeof(scheme) - 1) != 0)
		return token;
	text += sizeof(scheme) - 1;
	text += strspn(text, " ");
	token.text = text;
	token.length = strlen(text);
	return token;
}

static void refuse_scope(struct http_exchange *exchange, enum admin_scope scope, bool has_tokens)
{
	json_t *body =
		json_pack("{s:s, s:s}", "error", "forbidden", "scope", admin_scope_name(scope));
	char challenge[128];

	if (!has_tokens && body)
		(void)json_object_set_new(body, "message",
					  json_string("nothing can be changed over HTTP until "
						      "admin.tokens holds a token for it"));
	http_reply_json(exchange, STATUS_FORBIDDEN, body);
	if (!has_tokens)
		return;
	(void)snprintf(challenge, sizeof(challenge),
		       "Bearer realm=\"sluice\", error=\"insufficient_scope\", scope=\"%s\"",
		       admin_scope_name(scope));
	http_reply_field(exchange, "WWW-Authenticate", challenge);
}

static void refuse_client(struct http_exchange *exchange, bool has_presented)
{
	http_reply_error(exchange, STATUS_UNAUTHORIZED, "unauthorized");
	http_reply_field(exchange, "WWW-Authenticate",
			 has_presented ? "Bearer realm=\"sluice\", error=\"invalid_token\""
				       : "Bearer realm=\"sluice\"");
}

static bool may(struct http_exchange *exchange)
{
	struct http_server *server = exchange->server;
	enum http_guard guard = exchange->route->guard;
	enum admin_scope scope =
		guard == GUARD_WRITE ? SCOPE_RATE_LIMITS_WRITE : SCOPE_RATE_LIMITS_READ;
	struct http_text token;

	if (guard == GUARD_NONE || (guard == GUARD_CHECK && server->is_local))
		return true;
	if (tokens_count(&server->tokens) == 0) {
		if (guard == GUARD_READ)
			return true;
		refuse_scope(exchange, scope, false);
		return false;
	}
	token = find_bearer(&exchange->headers.authorization);
	if (!token.text ||
	    !tokens_find(&server->tokens, token.text, token.length, &exchange->holder)) {
		refuse_client(exchange, exchange->headers.authorization.text != NULL);
		return false;
	}
	if (guard == GUARD_CHECK || (exchange->holder.scopes & scope))
		return true;
	refuse_scope(exchange, scope, true);
	return false;
}

static bool is_known(const struct http_route *route, const char *name)
{
	const char *const *known;

	for (known = route->arguments; *known; known++)
		if (strcmp(*known, name) == 0)
			return true;
	return false;
}

/* A misspelt argument must not be silently without effect. */
static bool has_only_known_arguments(struct http_exchange *exchange)
{
	size_t i, j;

	for (i = 0; i < exchange->argument_count; i++) {
		const char *name = exchange->arguments[i].name;

		if (!is_known(exchange->route, name)) {
			http_reply_argument(exchange, name, "is no argument of this route");
			return false;
		}
		for (j = 0; j < i; j++)
			if (strcmp(exchange->arguments[j].name, name) == 0) {
				http_reply_argument(exchange, name, "is given twice");
				return false;
			}
	}
	if (exchange->has_too_many_arguments)
		http_reply_message(exchange, STATUS_BAD_REQUEST, "invalid_argument",
				   "there are too many arguments");
	return !exchange->has_too_many_arguments;
}

void http_route_judge(struct http_exchange *exchange, const char *path, bool is_path_known)
{
	if (exchange->headers.is_ambiguous) {
		/* Whoever stands before us may see the next request where we see this one's body. */
		http_reply_message(exchange, STATUS_BAD_REQUEST, "bad_request",
				   "the header is ambiguous");
		http_reply_field(exchange, "Connection", "close");
	} else if (!exchange->route && !is_path_known) {
		http_reply_error(exchange, STATUS_NOT_FOUND, "not_found");
	} else if (!exchange->route) {
		refuse_method(exchange, path);
	} else if (may(exchange)) {
		(void)has_only_known_arguments(exchange);
	}
}
