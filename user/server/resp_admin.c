/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Limits are shown as JSON, the same as the admin API's. On a Unix socket root and the daemon's own
 * user may change them, as the kernel says who is at the other end; over TCP whoever has
 * authenticated with a token that may.
 */
#include "server/resp_admin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "server/resp_commands.h"

static bool may(const struct resp_peer *peer, uint64_t scope)
{
	if (peer->is_unix && (peer->uid == 0 || peer->uid == geteuid()))
		return true;
	return peer->is_authenticated && peer->identity.scopes & scope;
}

static bool may_change(struct resp_call *call)
{
	if (may(resp_call_peer(call), SCOPE_RATE_LIMITS_WRITE))
		return true;
	resp_write_error(
		resp_call_writer(call),
		"NOPERM limits are changed by root on the Unix socket, or after AUTH with a "
		"token that has rate_limits:write");
	return false;
}

static struct audit_actor actor_of(struct resp_call *call)
{
	const struct resp_peer *peer = resp_call_peer(call);

	if (peer->is_authenticated)
		return (struct audit_actor){ .kind = ACTOR_TOKEN, .token = peer->identity.name };
	return (struct audit_actor){ .kind = ACTOR_PEER, .uid = peer->uid, .pid = peer->pid };
}

static void write_json(struct resp_call *call, json_t *value)
{
	char *text = value ? json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;

	if (text)
		resp_write_text(resp_call_writer(call), text);
	else
		resp_write_error(resp_call_writer(call), "OOM out of memory");
	free(text);
	json_decref(value);
}

/* {tenant, rate, burst, …, source[, expires_at_ms]}: one row of every list of limits. */
static json_t *entry_json(const char *tenant, size_t length, const struct tenant_limit *limit,
			  int64_t expires_at_ms, enum limit_source source)
{
	json_t *value = tenant_limit_to_json(limit);

	if (!value)
		return NULL;
	json_object_set_new(value, "tenant", json_stringn(tenant, length));
	json_object_set_new(value, "source", json_string(limit_source_name(source)));
	if (expires_at_ms)
		json_object_set_new(value, "expires_at_ms", json_integer(expires_at_ms));
	return value;
}

void resp_tenant_effective(struct resp_call *call)
{
	struct resp_commands *commands = resp_call_context(call);
	struct tenant_name tenant = resp_tenant(call);
	enum limit_source source = LIMIT_FROM_NONE;
	struct limits_entry entry;

	if (engine_effective(commands->engine, tenant, &entry, &source))
		resp_refuse_tenant(call);
	else
		write_json(call,
			   entry_json(tenant.text, tenant.length,
				      source == LIMIT_FROM_NONE ? NULL : &entry.limit,
				      source == LIMIT_FROM_NONE ? 0 : entry.expires_at_ms, source));
}

struct listing {
	json_t *array;
	bool only_overrides;
	size_t limit;
	bool has_more;
};

static int list_entry(const struct limits_entry *entry, enum limit_source source, void *data)
{
	struct listing *listing = data;

	if (listing->only_overrides && source != LIMIT_FROM_OVERRIDE)
		return 0;
	listing->has_more = json_array_size(listing->array) == listing->limit;
	if (listing->has_more)
		return 0;
	return json_array_append_new(listing->array,
				     entry_json(entry->tenant, strlen(entry->tenant), &entry->limit,
						entry->expires_at_ms, source))
		       ? -ENOMEM
		       : 0;
}

static int64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void list(struct resp_call *call, const char *after, struct listing *listing)
{
	struct resp_commands *commands = resp_call_context(call);
	struct limits *limits = engine_limits(commands->engine);
	json_t *value = json_object(), *last;

	listing->array = json_array();
	if (!listing->only_overrides)
		json_object_set_new(value, "default",
				    limits_default(limits)
					    ? tenant_limit_to_json(limits_default(limits))
					    : json_null());
	/* One more than is shown, which tells whether there is one. */
	if (limits_page(limits, now_ms(), after, listing->limit + 1, list_entry, listing)) {
		json_decref(value);
		value = NULL;
	}
	last = json_array_get(listing->array, json_array_size(listing->array) - 1);
	json_object_set(value, listing->only_overrides ? "overrides" : "tenants", listing->array);
	if (listing->has_more)
		json_object_set(value, "next", json_object_get(last, "tenant"));
	json_decref(listing->array);
	limits_release(limits);
	write_json(call, value);
}

void resp_tenant_list(struct resp_call *call)
{
	struct listing listing = { .limit = SIZE_MAX - 1 };
	const char *after = "";
	int64_t limit;

	for (size_t at = 1; at + 1 < resp_call_count(call); at += 2) {
		const struct resp_argument *word = resp_call_argument(call, at);
		const struct resp_argument *value = resp_call_argument(call, at + 1);

		if (resp_argument_is(word, "AFTER") &&
		    tenant_id_is_valid(value->data, value->length)) {
			after = value->data; /* a zero byte stands behind it */
		} else if (resp_argument_is(word, "AFTER")) {
			resp_refuse_tenant(call);
			return;
		} else if (!resp_argument_is(word, "LIMIT")) {
			resp_refuse_syntax(call, "syntax: [LIMIT n] [AFTER tenant]");
			return;
		} else if (!resp_integer_in(call, at + 1, 1, LIMITS_PAGE_MAX, &limit)) {
			return;
		} else {
			listing.limit = (size_t)limit;
		}
	}
	if (resp_call_count(call) % 2)
		list(call, after, &listing);
	else
		resp_refuse_syntax(call, "syntax: [LIMIT n] [AFTER tenant]");
}

void resp_override_list(struct resp_call *call)
{
	struct listing listing = { .only_overrides = true, .limit = SIZE_MAX - 1 };

	list(call, "", &listing);
}

void resp_override_get(struct resp_call *call)
{
	struct resp_commands *commands = resp_call_context(call);
	struct tenant_name tenant = resp_tenant(call);
	enum limit_source source = LIMIT_FROM_NONE;
	struct limits_entry entry;

	if (engine_effective(commands->engine, tenant, &entry, &source))
		resp_refuse_tenant(call);
	else if (source != LIMIT_FROM_OVERRIDE)
		resp_write_null(resp_call_writer(call));
	else
		write_json(call, entry_json(tenant.text, tenant.length, &entry.limit,
					    entry.expires_at_ms, source));
}

/* [TTL ms] [KEEPDEBT] from an argument on. */
static bool read_change(struct resp_call *call, size_t next, struct engine_change *change)
{
	size_t count = resp_call_count(call);
	int64_t ttl_ms;

	*change = (struct engine_change){ .actor = actor_of(call) };
	while (next < count) {
		if (resp_argument_is(resp_call_argument(call, next), "KEEPDEBT")) {
			change->keep_debt = true;
			next++;
		} else if (resp_argument_is(resp_call_argument(call, next), "TTL") &&
			   next + 1 < count) {
			if (!resp_integer_in(call, next + 1, 1, INT64_MAX / 4, &ttl_ms))
				return false;
			change->ttl_ms = (uint64_t)ttl_ms;
			next += 2;
		} else {
			resp_refuse_syntax(call, "syntax: [TTL ms] [KEEPDEBT]");
			return false;
		}
	}
	return true;
}

static void write_failure(struct resp_call *call, int err, const struct trouble *trouble)
{
	if (err == -EINVAL)
		resp_refuse_tenant(call);
	else
		resp_write_error(resp_call_writer(call), "ERR store_unavailable: %s",
				 trouble->cause);
}

void resp_override_set(struct resp_call *call)
{
	struct resp_commands *commands = resp_call_context(call);
	const struct resp_argument *text = resp_call_argument(call, 2);
	char message[LIMIT_MESSAGE_MAX];
	struct engine_change change;
	struct tenant_limit limit;
	struct trouble trouble = { 0 };
	int err;

	if (!may_change(call) || !read_change(call, 3, &change))
		return;
	if (tenant_limit_parse(text->data, text->length, &limit, message)) {
		resp_write_error(resp_call_writer(call), "ERR invalid_rate_limit: %s", message);
		return;
	}
	err = engine_override_set(commands->engine, resp_tenant(call), &limit, &change, &trouble);
	if (err)
		write_failure(call, err, &trouble);
	else
		resp_write_simple(resp_call_writer(call), "OK");
}

void resp_override_del(struct resp_call *call)
{
	struct resp_commands *commands = resp_call_context(call);
	struct engine_change change;
	struct trouble trouble = { 0 };
	int err;

	if (!may_change(call) || !read_change(call, 2, &change))
		return;
	err = engine_override_unset(commands->engine, resp_tenant(call), &change, &trouble);
	if (err && err != -ENOENT)
		write_failure(call, err, &trouble);
	else
		resp_write_integer(resp_call_writer(call), !err);
}

static json_t *text_json(const char *text)
{
	json_t *value = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;

	return value ? value : json_null();
}

static int list_record(const struct audit_record *record, void *data)
{
	json_t *value = json_pack("{sI sI ss ss ss ss sb}", "id", (json_int_t)record->id, "at_ms",
				  (json_int_t)record->at_ms, "actor_kind", record->actor_kind,
				  "actor", record->actor, "tenant", record->tenant, "action",
				  record->action, "keep_debt", record->keep_debt);

	if (!value)
		return -ENOMEM;
	json_object_set_new(value, "before", text_json(record->before));
	json_object_set_new(value, "after", text_json(record->after));
	return json_array_append_new(data, value) ? -ENOMEM : 0;
}

/* Arguments have a zero byte behind them; a tenant with one inside names nobody. */
static bool read_query(struct resp_call *call, struct audit_query *query)
{
	int64_t number;

	for (size_t at = 1; at < resp_call_count(call); at += 2) {
		const struct resp_argument *word = resp_call_argument(call, at);

		if (at + 1 == resp_call_count(call)) {
			resp_refuse_syntax(call, "syntax: [TENANT t] [LIMIT n] [BEFORE id]");
			return false;
		}
		if (resp_argument_is(word, "TENANT")) {
			query->tenant = resp_call_argument(call, at + 1)->data;
			continue;
		}
		if (!resp_integer_in(call, at + 1, 1, INT64_MAX, &number))
			return false;
		if (resp_argument_is(word, "LIMIT")) {
			query->limit = (size_t)number;
		} else if (resp_argument_is(word, "BEFORE")) {
			query->before_id = number;
		} else {
			resp_refuse_syntax(call, "syntax: [TENANT t] [LIMIT n] [BEFORE id]");
			return false;
		}
	}
	return true;
}

void resp_audit_list(struct resp_call *call)
{
	struct resp_commands *commands = resp_call_context(call);
	struct audit_query query = { .limit = 100 };
	struct trouble trouble = { 0 };
	json_t *array;
	int err;

	if (!may(resp_call_peer(call), SCOPE_RATE_LIMITS_READ)) {
		resp_write_error(resp_call_writer(call),
				 "NOPERM the audit is shown to root on the Unix "
				 "socket, or after AUTH with a token that has "
				 "rate_limits:read");
		return;
	}
	if (!read_query(call, &query))
		return;
	array = json_array();
	err = engine_audit(commands->engine, &query, list_record, array, &trouble);
	if (err) {
		json_decref(array);
		write_failure(call, err, &trouble);
		return;
	}
	write_json(call, json_pack("{so}", "audit", array));
}

void resp_reload(struct resp_call *call)
{
	struct resp_commands *commands = resp_call_context(call);
	struct trouble trouble = { 0 };

	if (!may_change(call))
		return;
	if (!commands->reload)
		resp_refuse_syntax(call, "this daemon was started without a configuration file");
	else if (commands->reload(commands->data, &trouble))
		resp_write_error(resp_call_writer(call), "ERR %s", trouble.cause);
	else
		resp_write_simple(resp_call_writer(call), "OK");
}
