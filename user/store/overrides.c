/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Overrides as rows: written together with their audit record, read with suspicion.
 *
 * One mutex guards the connection and its statements. Changes are made by operators, a few a second
 * at most, and each waits for the disk, so there is nothing to gain from more connections;
 * decisions about requests never come here.
 */
#include "store/overrides.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "store/database.h"

enum statement { PUT, REMOVE, REMOVE_ROW, LOAD, EXPIRED, STATEMENTS };

/* Both SELECTs begin with the columns that read_row() wants. */
static const char *const texts[STATEMENTS] = {
	[PUT] = "INSERT INTO overrides (tenant, rate_limit, expires_at_ms, changed_at_ms)"
		" VALUES (?1, ?2, ?3, ?4)"
		" ON CONFLICT (tenant) DO UPDATE SET rate_limit = excluded.rate_limit,"
		" expires_at_ms = excluded.expires_at_ms, changed_at_ms = excluded.changed_at_ms",
	[REMOVE] = "DELETE FROM overrides WHERE tenant = ?1",
	[REMOVE_ROW] = "DELETE FROM overrides WHERE id = ?1",
	[LOAD] = "SELECT id, tenant, rate_limit, expires_at_ms FROM overrides",
	[EXPIRED] = ("SELECT id, tenant, rate_limit, expires_at_ms FROM overrides"
		     " WHERE expires_at_ms > 0 AND expires_at_ms <= ?1"),
};

enum {
	EXPIRED_AT_ONCE = 256, /* in one transaction */
	WHY_MAX = LIMIT_MESSAGE_MAX + TENANT_ID_MAX + 16,
};

struct override_store {
	pthread_mutex_t lock;
	struct database database;
	struct audit *audit;
	sqlite3_stmt *statement[STATEMENTS];
};

void override_store_close(struct override_store *store)
{
	if (!store)
		return;
	audit_free(store->audit);
	for (int i = 0; i < STATEMENTS; i++)
		(void)sqlite3_finalize(store->statement[i]);
	database_close(&store->database);
	(void)pthread_mutex_destroy(&store->lock);
	free(store);
}

int override_store_open(const struct override_store_options *options, struct override_store **out,
			struct trouble *trouble)
{
	struct override_store *store = calloc(1, sizeof(*store));
	int busy_timeout_ms = options->busy_timeout_ms;
	int err;

	if (!store)
		return trouble_set(trouble, -ENOMEM, "%s: no memory", options->path);
	(void)pthread_mutex_init(&store->lock, NULL);
	err = database_open(options->path,
			    busy_timeout_ms > 0 ? busy_timeout_ms : OVERRIDE_BUSY_TIMEOUT_MS,
			    &store->database, trouble);
	if (err)
		goto fail;
	err = audit_new(&store->database, options->audit_max, &store->audit, trouble);
	for (int i = 0; i < STATEMENTS && !err; i++)
		err = database_prepare(&store->database, texts[i], &store->statement[i], trouble);
	if (err)
		goto fail;
	*out = store;
	return 0;

fail:
	override_store_close(store);
	return err;
}

/* ---- reading */

/* NULL if it is anything but text. SQLite would make a text of it, and forget what it was. */
static const char *text_at(sqlite3_stmt *statement, int column)
{
	if (sqlite3_column_type(statement, column) != SQLITE_TEXT)
		return NULL;
	return (const char *)sqlite3_column_text(statement, column);
}

/* Why the row cannot be read, or NULL and *entry. */
static const char *read_row(sqlite3_stmt *statement, struct limits_entry *entry, char why[WHY_MAX])
{
	const char *tenant = text_at(statement, 1), *text = text_at(statement, 2);
	size_t tenant_length = (size_t)sqlite3_column_bytes(statement, 1);
	char message[LIMIT_MESSAGE_MAX];

	memset(entry, 0, sizeof(*entry));
	if (!tenant || !tenant_id_is_valid(tenant, tenant_length))
		return "the tenant id must match [A-Za-z0-9_-]{1,64}";
	memcpy(entry->tenant, tenant, tenant_length);
	if (sqlite3_column_type(statement, 3) != SQLITE_INTEGER ||
	    sqlite3_column_int64(statement, 3) < 0) {
		(void)snprintf(why, WHY_MAX,
			       "tenant %s: expires_at_ms must be an integer of at least 0",
			       entry->tenant);
		return why;
	}
	entry->expires_at_ms = sqlite3_column_int64(statement, 3);
	if (tenant_limit_parse(text ? text : "",
			       text ? (size_t)sqlite3_column_bytes(statement, 2) : 0, &entry->limit,
			       message) != 0) {
		(void)snprintf(why, WHY_MAX, "tenant %s: %s", entry->tenant, message);
		return why;
	}
	return NULL;
}

int override_store_load(struct override_store *store, const struct override_visitor *visitor,
			struct trouble *trouble)
{
	sqlite3_stmt *load = store->statement[LOAD];
	struct limits_entry entry;
	char why_text[WHY_MAX];
	int status = SQLITE_DONE, err = 0;

	(void)pthread_mutex_lock(&store->lock);
	while (!err && (status = database_step(load)) == SQLITE_ROW) {
		const char *why = read_row(load, &entry, why_text);

		if (!why)
			err = visitor->entry(&entry, visitor->data);
		else if (visitor->skipped)
			visitor->skipped(sqlite3_column_int64(load, 0), why, visitor->data);
	}
	if (!err && status != SQLITE_DONE)
		err = database_trouble(&store->database, trouble);
	(void)sqlite3_reset(load);
	(void)pthread_mutex_unlock(&store->lock);
	return err;
}

int override_store_audit(struct override_store *store, const struct audit_query *query,
			 int (*visit)(const struct audit_record *record, void *data), void *data,
			 struct trouble *trouble)
{
	int err;

	(void)pthread_mutex_lock(&store->lock);
	err = audit_each(store->audit, query, visit, data, trouble);
	(void)pthread_mutex_unlock(&store->lock);
	return err;
}

/* ---- writing */

/* Doubles need 17 digits at most; most have been written with fewer, and then look better so. */
static char *format_limit(const struct tenant_limit *limit)
{
	json_t *json = tenant_limit_to_json(limit), *again = NULL;
	char *text = json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;

	if (text)
		again = json_loads(text, 0, NULL);
	if (text && !json_equal(json, again)) {
		free(text);
		text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(17));
	}
	json_decref(again);
	json_decref(json);
	return text;
}

static int record(struct override_store *store, const char *tenant, const char *action,
		  const struct override_change *change, struct trouble *trouble)
{
	struct audit_record record = {
		.at_ms = change->now_ms,
		.tenant = tenant,
		.action = action,
		.keep_debt = change->keep_debt,
		.before = change->before,
		.after = change->after,
	};

	return audit_add(store->audit, &record, &change->actor, trouble);
}

/* End the transaction: with 0 it is kept, with an error it has never been. */
static int end(struct override_store *store, int err, struct trouble *trouble)
{
	if (!err)
		return database_commit(&store->database, trouble);
	database_rollback(&store->database);
	return err;
}

static int put_row(struct override_store *store, const struct limits_entry *entry, const char *text,
		   const struct override_change *change, struct trouble *trouble)
{
	sqlite3_stmt *put = store->statement[PUT];

	(void)sqlite3_bind_text(put, 1, entry->tenant, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(put, 2, text, -1, SQLITE_STATIC);
	(void)sqlite3_bind_int64(put, 3, entry->expires_at_ms);
	(void)sqlite3_bind_int64(put, 4, change->now_ms);
	return database_run(&store->database, put, trouble);
}

int override_store_put(struct override_store *store, const struct limits_entry *entry,
		       const struct override_change *change, struct trouble *trouble)
{
	char *text;
	int err;

	if (!tenant_id_is_valid(entry->tenant, strnlen(entry->tenant, sizeof(entry->tenant))))
		return trouble_set(trouble, -EINVAL, "tenant id must match [A-Za-z0-9_-]{1,64}");
	if (entry->expires_at_ms < 0)
		return trouble_set(trouble, -EINVAL, "an override cannot expire before 1970");
	text = format_limit(&entry->limit);
	if (!text)
		return trouble_set(trouble, -ENOMEM, "%s: no memory", store->database.path);
	(void)pthread_mutex_lock(&store->lock);
	err = database_begin(&store->database, trouble);
	if (err)
		goto out;
	err = put_row(store, entry, text, change, trouble);
	if (!err)
		err = record(store, entry->tenant, "set", change, trouble);
	err = end(store, err, trouble);
out:
	(void)pthread_mutex_unlock(&store->lock);
	free(text);
	return err;
}

int override_store_remove(struct override_store *store, const char *tenant,
			  const struct override_change *change, struct trouble *trouble)
{
	sqlite3_stmt *statement = store->statement[REMOVE];
	int err;

	(void)pthread_mutex_lock(&store->lock);
	err = database_begin(&store->database, trouble);
	if (err)
		goto out;
	(void)sqlite3_bind_text(statement, 1, tenant, -1, SQLITE_STATIC);
	err = database_run(&store->database, statement, trouble);
	if (!err && sqlite3_changes(store->database.sqlite) == 0)
		err = trouble_set(trouble, -ENOENT, "tenant %s has no override", tenant);
	if (!err)
		err = record(store, tenant, "unset", change, trouble);
	err = end(store, err, trouble);
out:
	(void)pthread_mutex_unlock(&store->lock);
	return err;
}

/* ---- expiry */

struct expired_row {
	int64_t id;
	char tenant[TENANT_ID_MAX + 1];
	char *limit_text;
};

static int find_expired(struct override_store *store, int64_t now_ms, struct expired_row *rows,
			size_t *count, struct trouble *trouble)
{
	sqlite3_stmt *expired = store->statement[EXPIRED];
	struct limits_entry entry;
	char why[WHY_MAX];
	int status = SQLITE_DONE, err = 0;

	*count = 0;
	(void)sqlite3_bind_int64(expired, 1, now_ms);
	while (*count < EXPIRED_AT_ONCE && (status = database_step(expired)) == SQLITE_ROW) {
		struct expired_row *row = &rows[*count];

		if (read_row(expired, &entry, why))
			continue;
		row->id = sqlite3_column_int64(expired, 0);
		memcpy(row->tenant, entry.tenant, sizeof(row->tenant));
		row->limit_text = strdup((const char *)sqlite3_column_text(expired, 2));
		if (!row->limit_text) {
			err = trouble_set(trouble, -ENOMEM, "%s: no memory", store->database.path);
			break;
		}
		(*count)++;
	}
	if (!err && status != SQLITE_DONE && status != SQLITE_ROW)
		err = database_trouble(&store->database, trouble);
	(void)sqlite3_reset(expired);
	return err;
}

static int remove_expired(struct override_store *store, int64_t now_ms,
			  const struct expired_row *rows, size_t count, struct trouble *trouble)
{
	sqlite3_stmt *statement = store->statement[REMOVE_ROW];
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		struct override_change change = {
			.actor = { .kind = ACTOR_TTL },
			.now_ms = now_ms,
			.before = rows[i].limit_text,
		};

		(void)sqlite3_bind_int64(statement, 1, rows[i].id);
		err = database_run(&store->database, statement, trouble);
		if (!err)
			err = record(store, rows[i].tenant, "expire", &change, trouble);
	}
	return err;
}

/* One transaction; on failure *count is 0. */
static int expire_some(struct override_store *store, int64_t now_ms, struct expired_row *rows,
		       size_t *count, struct trouble *trouble)
{
	size_t found = 0;
	int err;

	*count = 0;
	(void)pthread_mutex_lock(&store->lock);
	err = database_begin(&store->database, trouble);
	if (err)
		goto out;
	err = find_expired(store, now_ms, rows, &found, trouble);
	if (!err)
		err = remove_expired(store, now_ms, rows, found, trouble);
	err = end(store, err, trouble);
	if (!err)
		*count = found;
out:
	(void)pthread_mutex_unlock(&store->lock);
	for (size_t i = 0; i < found; i++)
		free(rows[i].limit_text);
	return err;
}

int override_store_expire(struct override_store *store, int64_t now_ms,
			  void (*expired)(const char *tenant, void *data), void *data,
			  struct trouble *trouble)
{
	struct expired_row *rows = calloc(EXPIRED_AT_ONCE, sizeof(*rows));
	size_t count;
	int err;

	if (!rows)
		return trouble_set(trouble, -ENOMEM, "%s: no memory", store->database.path);
	do {
		err = expire_some(store, now_ms, rows, &count, trouble);
		for (size_t i = 0; i < count && expired; i++)
			expired(rows[i].tenant, data);
	} while (!err && count == EXPIRED_AT_ONCE);
	free(rows);
	return err;
}

int override_store_try(struct override_store *store, struct trouble *trouble)
{
	int err;

	(void)pthread_mutex_lock(&store->lock);
	err = database_begin(&store->database, trouble);
	if (!err)
		err = end(store, database_touch(&store->database, trouble), trouble);
	(void)pthread_mutex_unlock(&store->lock);
	return err;
}
