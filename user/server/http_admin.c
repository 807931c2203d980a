/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The admin routes. A change is made by the engine, which stores it with its audit record before it is
 * in force: so whatever is not a success has changed nothing. What waits for the disk or goes through
 * all tenants is run by the clerk.
 */
#include "server/http_admin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "server/http_exchange.h"

enum {
	STATUS_OK = 200,
	STATUS_NO_CONTENT = 204,
	STATUS_BAD_REQUEST = 400,
	STATUS_NOT_FOUND = 404,
	STATUS_UNPROCESSABLE = 422,
	STATUS_FAILED = 500,
	STATUS_UNAVAILABLE = 503,
	AUDIT_PAGE_DEFAULT = 100,
	NS_PER_MS = 1000000,
};

/* ---- entries */

/* Takes both; whether it was done. */
static bool set(json_t *object, const char *key, json_t *value)
{
	return json_object_set_new(object, key, value) == 0;
}

/*
 * {"tenant":"acme","rate":1,"burst":2,"source":"config"}, with the optional keys before the source.
 * limit NULL: none. Unlimited ones show a rate and a burst of null beside it, for those who know no
 * other way to say so. NULL: no memory.
 */
static json_t *entry_of(const char *tenant, size_t length, const struct tenant_limit *limit,
			enum limit_source source, int64_t expires_at_ms)
{
	json_t *entry = json_object();
	json_t *nothing = tenant_limit_to_json(NULL);
	json_t *keys = tenant_limit_to_json(limit);
	bool is_done =
		entry && nothing && keys && set(entry, "tenant", json_stringn(tenant, length)) &&
		json_object_update(entry, nothing) == 0 && json_object_update(entry, keys) == 0 &&
		set(entry, "source", json_string(limit_source_name(source)));

	if (is_done && expires_at_ms)
		is_done = set(entry, "expires_at_ms", json_integer(expires_at_ms));
	json_decref(nothing);
	json_decref(keys);
	if (is_done)
		return entry;
	json_decref(entry);
	return NULL;
}

/* ---- one tenant */

static bool has_tenant(struct http_exchange *exchange, struct tenant_name *out)
{
	out->text = exchange->tenant.text;
	out->length = exchange->tenant.length;
	if (tenant_id_is_valid(out->text, out->length))
		return true;
	http_reply_error(exchange, STATUS_BAD_REQUEST, "invalid_tenant");
	return false;
}

static void reply_entry(struct http_exchange *exchange, struct tenant_name tenant)
{
	struct limits_entry entry = { .expires_at_ms = 0 };
	enum limit_source source = LIMIT_FROM_NONE;

	if (engine_effective(http_engine(exchange), tenant, &entry, &source)) {
		http_reply_error(exchange, STATUS_BAD_REQUEST, "invalid_tenant");
		return;
	}
	http_reply_json(exchange, STATUS_OK,
			entry_of(tenant.text, tenant.length,
				 source == LIMIT_FROM_NONE ? NULL : &entry.limit, source,
				 source == LIMIT_FROM_OVERRIDE ? entry.expires_at_ms : 0));
}

void http_limit_get_run(struct http_exchange *exchange)
{
	struct tenant_name tenant;

	if (has_tenant(exchange, &tenant))
		reply_entry(exchange, tenant);
}

/* Of a change that failed. What it was goes to the operator, not to the client. */
static void reply_unavailable(struct http_exchange *exchange, const struct trouble *trouble)
{
	http_notice(exchange->server, trouble->cause);
	http_reply_error(exchange, STATUS_UNAVAILABLE, "store_unavailable");
	http_reply_field(exchange, "Retry-After", "1");
}

static bool read_keep_debt(struct http_exchange *exchange, bool *out)
{
	struct http_text word = http_argument(exchange, "keep_debt");

	*out = word.text && strcmp(word.text, "true") == 0;
	if (!word.text || *out || strcmp(word.text, "false") == 0)
		return true;
	http_reply_argument(exchange, "keep_debt", "must be true or false");
	return false;
}

static bool read_ttl(struct http_exchange *exchange, uint64_t *out_ms)
{
	struct http_text word = http_argument(exchange, "ttl");
	uint64_t ns = 0;

	*out_ms = 0;
	if (!word.text)
		return true;
	if (parse_duration(word.text, &ns) || ns == 0) {
		http_reply_argument(exchange, "ttl",
				    "must be a duration above 0 with its unit, as 30s or 1h");
		return false;
	}
	/* Rounded up, because 0 means for good. */
	*out_ms = ns / NS_PER_MS + (ns % NS_PER_MS != 0);
	return true;
}

static bool read_change(struct http_exchange *exchange, struct engine_change *out)
{
	*out = (struct engine_change){
		.actor = { .kind = ACTOR_TOKEN, .token = exchange->holder.name },
	};
	return read_ttl(exchange, &out->ttl_ms) && read_keep_debt(exchange, &out->keep_debt);
}

static bool read_limit(struct http_exchange *exchange, struct tenant_limit *out)
{
	char message[LIMIT_MESSAGE_MAX];
	/* A body that was too large was not kept; its length alone says what to answer. */
	int err = tenant_limit_parse(
		exchange->body, exchange->is_too_large ? 0 : exchange->body_length, out, message);

	if (err == -ENOMEM)
		http_reply_json(exchange, STATUS_UNAVAILABLE, NULL);
	else if (err)
		http_reply_message(exchange, STATUS_BAD_REQUEST, "invalid_rate_limit", message);
	return err == 0;
}

void http_limit_put_run(struct http_exchange *exchange)
{
	struct trouble trouble = { .cause = "" };
	struct engine_change change;
	struct tenant_limit limit;
	struct tenant_name tenant;

	if (!has_tenant(exchange, &tenant) || !read_change(exchange, &change) ||
	    !read_limit(exchange, &limit))
		return;
	if (engine_override_set(http_engine(exchange), tenant, &limit, &change, &trouble))
		reply_unavailable(exchange, &trouble);
	else
		reply_entry(exchange, tenant);
}

void http_limit_delete_run(struct http_exchange *exchange)
{
	struct trouble trouble = { .cause = "" };
	struct engine_change change;
	struct tenant_name tenant;
	int err;

	if (!has_tenant(exchange, &tenant) || !read_change(exchange, &change))
		return;
	err = engine_override_unset(http_engine(exchange), tenant, &change, &trouble);
	if (err == -ENOENT)
		http_reply_error(exchange, STATUS_NOT_FOUND, "rate_limit_not_found");
	else if (err)
		reply_unavailable(exchange, &trouble);
	else
		http_reply(exchange, STATUS_NO_CONTENT, NULL, "", 0);
}

static bool read_count(struct http_exchange *exchange, const char *name, uint64_t most,
		       const char *what, uint64_t *out)
{
	struct http_text word = http_argument(exchange, name);

	if (!word.text || parse_uint(word.text, 1, most, out) == 0)
		return true;
	http_reply_argument(exchange, name, what);
	return false;
}

/* ---- all of them, in pages */

struct page {
	const char *after; /* "": from the beginning */
	size_t limit;      /* SIZE_MAX: all */
	json_t *tenants;
	bool has_more;
};

static bool read_page(struct http_exchange *exchange, struct page *out)
{
	struct http_text after = http_argument(exchange, "after");
	uint64_t limit = SIZE_MAX - 1;

	_Static_assert(LIMITS_PAGE_MAX == 10000, "the message says so");
	if (after.text && !tenant_id_is_valid(after.text, after.length)) {
		http_reply_error(exchange, STATUS_BAD_REQUEST, "invalid_tenant");
		return false;
	}
	if (!read_count(exchange, "limit", LIMITS_PAGE_MAX,
			"must be a whole number from 1 to 10000", &limit))
		return false;
	*out = (struct page){ .after = after.text ? after.text : "", .limit = (size_t)limit };
	return true;
}

static int add_entry(const struct limits_entry *entry, enum limit_source source, void *data)
{
	struct page *page = data;
	json_t *shown;

	page->has_more = json_array_size(page->tenants) == page->limit;
	if (page->has_more)
		return 0;
	shown = entry_of(entry->tenant, strlen(entry->tenant), &entry->limit, source,
			 source == LIMIT_FROM_OVERRIDE ? entry->expires_at_ms : 0);
	return json_array_append_new(page->tenants, shown) == 0 ? 0 : -ENOMEM;
}

/* The last tenant shown, to go on with ?after=; left out at the end. */
static bool set_next(json_t *body, const struct page *page)
{
	json_t *last = json_array_get(page->tenants, json_array_size(page->tenants) - 1);

	return !page->has_more ||
	       json_object_set(body, "next", json_object_get(last, "tenant")) == 0;
}

void http_limits_run(struct http_exchange *exchange)
{
	struct limits *limits;
	const struct tenant_limit *fallback;
	struct page page;
	json_t *body;
	bool is_done;

	if (!read_page(exchange, &page))
		return;
	limits = engine_limits(http_engine(exchange));
	fallback = limits_default(limits);
	body = json_object();
	page.tenants = json_array();
	/* One more than is shown, which tells whether there is one. */
	is_done = limits_page(limits, http_wall_ms(), page.after, page.limit + 1, add_entry,
			      &page) == 0 &&
		  set(body, "default", fallback ? tenant_limit_to_json(fallback) : json_null()) &&
		  json_object_set(body, "tenants", page.tenants) == 0 && set_next(body, &page);
	limits_release(limits);
	json_decref(page.tenants);
	if (!is_done) {
		json_decref(body);
		body = NULL;
	}
	http_reply_json(exchange, STATUS_OK, body);
}

/* ---- audit */

/* What a record holds is JSON, unless somebody has edited the database by hand. */
static json_t *load_text(const char *text)
{
	json_t *value = text ? json_loads(text, JSON_DECODE_ANY, NULL) : json_null();

	if (!value)
		value = json_string(text);
	return value ? value : json_null();
}

static json_t *text_or_null(const char *text)
{
	json_t *value = json_string(text);

	return value ? value : json_null();
}

static int add_record(const struct audit_record *record, void *data)
{
	json_t *records = data, *shown = json_object();
	bool is_done = set(shown, "id", json_integer(record->id)) &&
		       set(shown, "at_ms", json_integer(record->at_ms)) &&
		       set(shown, "actor_kind", text_or_null(record->actor_kind)) &&
		       set(shown, "actor", text_or_null(record->actor)) &&
		       set(shown, "tenant", text_or_null(record->tenant)) &&
		       set(shown, "action", text_or_null(record->action)) &&
		       set(shown, "keep_debt", json_boolean(record->keep_debt)) &&
		       set(shown, "before", load_text(record->before)) &&
		       set(shown, "after", load_text(record->after));

	if (is_done)
		return json_array_append_new(records, shown) == 0 ? 0 : -ENOMEM;
	json_decref(shown);
	return -ENOMEM;
}

static bool read_query(struct http_exchange *exchange, struct audit_query *out)
{
	struct http_text tenant = http_argument(exchange, "tenant");
	uint64_t limit = AUDIT_PAGE_DEFAULT, before = 0;

	_Static_assert(AUDIT_PAGE_MAX == 1000, "the message says so");
	if (tenant.text && !tenant_id_is_valid(tenant.text, tenant.length)) {
		http_reply_error(exchange, STATUS_BAD_REQUEST, "invalid_tenant");
		return false;
	}
	if (!read_count(exchange, "limit", AUDIT_PAGE_MAX, "must be a whole number from 1 to 1000",
			&limit) ||
	    !read_count(exchange, "before", INT64_MAX,
			"must be the id of a record, a whole number from 1 on", &before))
		return false;
	*out = (struct audit_query){ .tenant = tenant.text,
				     .before_id = (int64_t)before,
				     .limit = (size_t)limit };
	return true;
}

/* {"records":[…],"next_before":7}: to go on with ?before=7; null at the end. */
static json_t *page_of(json_t *records, size_t limit)
{
	size_t count = json_array_size(records);
	json_t *last =
		count == limit ? json_object_get(json_array_get(records, count - 1), "id") : NULL;

	return json_pack("{s:O, s:o}", "records", records, "next_before",
			 last ? json_incref(last) : json_null());
}

void http_audit_run(struct http_exchange *exchange)
{
	struct trouble trouble = { .cause = "" };
	struct audit_query query;
	json_t *records;
	int err;

	if (!read_query(exchange, &query))
		return;
	records = json_array();
	err = records ? engine_audit(http_engine(exchange), &query, add_record, records, &trouble)
		      : -ENOMEM;
	if (err == -ENOMEM)
		http_reply_json(exchange, STATUS_OK, NULL);
	else if (err)
		reply_unavailable(exchange, &trouble);
	else
		http_reply_json(exchange, STATUS_OK, page_of(records, query.limit));
	json_decref(records);
}

/* ---- reload */

void http_reload_run(struct http_exchange *exchange)
{
	const struct http_server_options *options = http_options(exchange);
	struct trouble trouble = { .cause = "" };
	int err;

	if (!options->reload) {
		http_reply_error(exchange, STATUS_NOT_FOUND, "not_found");
		return;
	}
	err = options->reload(options->context, &trouble);
	if (!err)
		http_reply_json(exchange, STATUS_OK, json_pack("{s:s}", "status", "reloaded"));
	else if (err == -EINVAL)
		http_reply_message(exchange, STATUS_UNPROCESSABLE, "invalid_configuration",
				   trouble.cause);
	else
		http_reply_message(exchange, STATUS_FAILED, "reload_failed", trouble.cause);
}
