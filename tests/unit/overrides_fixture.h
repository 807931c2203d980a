/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A store in a directory of its own, short ways to change and to look at it, and the one property
 * that all tests of it ask for: that overrides and audit tell the same story.
 */
#ifndef SLUICE_OVERRIDES_FIXTURE_H
#define SLUICE_OVERRIDES_FIXTURE_H

#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>
#include <sqlite3.h>

#include "store/overrides.h"

enum { NOW_MS = 1700000000 };

struct place {
	char directory[64];
	char path[96];
};

static inline void place_make(struct place *place)
{
	(void)snprintf(place->directory, sizeof(place->directory), "/tmp/sluice-test-XXXXXX");
	assert_non_null(mkdtemp(place->directory));
	(void)snprintf(place->path, sizeof(place->path), "%s/sluice.db", place->directory);
}

static inline void place_remove(const struct place *place)
{
	char command[96];

	(void)snprintf(command, sizeof(command), "rm -rf '%s'", place->directory);
	assert_int_equal(system(command), 0);
}

static inline int try_open(const char *path, struct override_store **store, struct trouble *trouble)
{
	struct override_store_options options = { .path = path, .busy_timeout_ms = 20 };

	memset(trouble, 0, sizeof(*trouble));
	return override_store_open(&options, store, trouble);
}

static inline struct override_store *must_open(const char *path)
{
	struct override_store *store = NULL;
	struct trouble trouble;

	if (try_open(path, &store, &trouble) != 0)
		fail_msg("cannot open: %s", trouble.cause);
	return store;
}

/* A limit of burst 5 whose rate is the number, and its JSON as the audit has it. */
static inline void fill(struct limits_entry *entry, const char *tenant, unsigned number,
			char json[64])
{
	char message[LIMIT_MESSAGE_MAX];

	memset(entry, 0, sizeof(*entry));
	(void)snprintf(entry->tenant, sizeof(entry->tenant), "%s", tenant);
	(void)snprintf(json, 64, "{\"rate\":%u,\"burst\":5}", number);
	assert_int_equal(tenant_limit_parse(json, strlen(json), &entry->limit, message), 0);
}

static inline int put_until(struct override_store *store, const char *tenant, unsigned number,
			    int64_t expires_at_ms, struct trouble *trouble)
{
	struct limits_entry entry;
	char json[64];
	struct override_change change = {
		.actor = { .kind = ACTOR_PEER, .uid = 1000, .pid = 42 },
		.now_ms = NOW_MS,
		.after = json,
	};

	fill(&entry, tenant, number, json);
	entry.expires_at_ms = expires_at_ms;
	memset(trouble, 0, sizeof(*trouble));
	return override_store_put(store, &entry, &change, trouble);
}

static inline int put(struct override_store *store, const char *tenant, unsigned number)
{
	struct trouble trouble;

	return put_until(store, tenant, number, 0, &trouble);
}

static inline int take_away(struct override_store *store, const char *tenant)
{
	struct override_change change = { .actor = { .kind = ACTOR_CONFIG }, .now_ms = NOW_MS };
	struct trouble trouble;

	return override_store_remove(store, tenant, &change, &trouble);
}

static inline int expire(struct override_store *store, int64_t now_ms)
{
	struct trouble trouble;

	return override_store_expire(store, now_ms, NULL, NULL, &trouble);
}

/* ---- what is there */

enum { TENANTS_MAX = 1024 };

struct view {
	struct seen {
		char tenant[TENANT_ID_MAX + 1];
		unsigned override; /* the number it was put with; 0: none */
		unsigned audited;  /* of the newest audit record; 0: unset or expired */
		bool is_audited;
	} tenant[TENANTS_MAX];
	size_t tenants;
	size_t skipped;
	size_t records;
	int64_t newest_id, oldest_id;
	char why[512];
};

static inline struct seen *seen_of(struct view *view, const char *tenant)
{
	size_t i = 0;

	while (i < view->tenants && strcmp(view->tenant[i].tenant, tenant) != 0)
		i++;
	assert_true(i < TENANTS_MAX);
	if (i == view->tenants) {
		(void)snprintf(view->tenant[i].tenant, sizeof(view->tenant[i].tenant), "%s",
			       tenant);
		view->tenants++;
	}
	return &view->tenant[i];
}

static inline int see_override(const struct limits_entry *entry, void *data)
{
	seen_of(data, entry->tenant)->override = (unsigned)entry->limit.hooks.rate;
	return 0;
}

static inline void see_skipped(int64_t row_id, const char *why, void *data)
{
	struct view *view = data;

	assert_true(row_id > 0);
	view->skipped++;
	(void)snprintf(view->why, sizeof(view->why), "%s", why);
}

static inline int see_record(const struct audit_record *record, void *data)
{
	struct view *view = data;
	struct seen *seen = seen_of(view, record->tenant);
	json_t *json;

	if (!view->records++)
		view->newest_id = record->id;
	else
		assert_true(record->id == view->oldest_id - 1);
	view->oldest_id = record->id;
	if (seen->is_audited)
		return 0;
	seen->is_audited = true;
	assert_true((record->after != NULL) == !strcmp(record->action, "set"));
	if (!record->after)
		return 0;
	json = json_loads(record->after, 0, NULL);
	seen->audited = (unsigned)json_integer_value(json_object_get(json, "rate"));
	json_decref(json);
	return 0;
}

/* Look at everything; each override must be what its tenant's newest audit record says. */
static inline void look(struct override_store *store, struct view *view)
{
	struct override_visitor visitor = { see_override, see_skipped, view };
	struct audit_query query = { 0 };
	struct trouble trouble;
	size_t before;

	memset(view, 0, sizeof(*view));
	assert_int_equal(override_store_load(store, &visitor, &trouble), 0);
	do {
		before = view->records;
		query.before_id = view->oldest_id;
		assert_int_equal(override_store_audit(store, &query, see_record, view, &trouble),
				 0);
	} while (view->records > before && view->oldest_id > 1);
	for (size_t i = 0; i < view->tenants; i++)
		if (view->tenant[i].override != view->tenant[i].audited)
			fail_msg("tenant %s: override %u, audit %u", view->tenant[i].tenant,
				 view->tenant[i].override, view->tenant[i].audited);
}

static inline unsigned override_of(struct view *view, const char *tenant)
{
	return seen_of(view, tenant)->override;
}

static inline bool is_same(const struct view *a, const struct view *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* ---- from outside */

static inline void run_sql(const char *path, const char *sql)
{
	sqlite3 *sqlite = NULL;
	char *message = NULL;

	assert_int_equal(sqlite3_open(path, &sqlite), SQLITE_OK);
	if (sqlite3_exec(sqlite, sql, NULL, NULL, &message) != SQLITE_OK)
		fail_msg("%s: %s", sql, message);
	assert_int_equal(sqlite3_close(sqlite), SQLITE_OK);
}

/* The file's bytes, to be freed; NULL if there is none. */
static inline unsigned char *read_file(const char *path, size_t *size)
{
	FILE *file = fopen(path, "re");
	unsigned char *bytes;
	struct stat status;

	*size = 0;
	if (!file)
		return NULL;
	assert_int_equal(fstat(fileno(file), &status), 0);
	*size = (size_t)status.st_size;
	bytes = malloc(*size + 1);
	assert_non_null(bytes);
	assert_int_equal(fread(bytes, 1, *size, file), *size);
	(void)fclose(file);
	return bytes;
}

static inline void write_file(const char *path, const void *bytes, size_t size)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

/* What a process that dies now would leave to the next: the database and its log. */
static inline void copy_as_crashed(const struct place *from, const struct place *to)
{
	static const char *const endings[] = { "", "-wal" };
	char source[128], target[128];

	for (size_t i = 0; i < COUNT_OF(endings); i++) {
		unsigned char *bytes;
		size_t size;

		(void)snprintf(source, sizeof(source), "%s%s", from->path, endings[i]);
		(void)snprintf(target, sizeof(target), "%s%s", to->path, endings[i]);
		bytes = read_file(source, &size);
		if (bytes)
			write_file(target, bytes, size);
		free(bytes);
	}
}

#endif
