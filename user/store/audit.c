/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The audit's statements: append, prune, and read newest first. */
#include "store/audit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/database.h"

enum statement { INSERT, PRUNE, LIST, LIST_TENANT, STATEMENTS };

/*
 * Ids have no gaps, so the records beyond max are those max and more below the newest. Both ends of
 * what is deleted are found in the table's own order, without counting.
 */
static const char *const texts[STATEMENTS] = {
	[INSERT] = "INSERT INTO audit"
		   " (at_ms, actor_kind, actor, tenant, action, keep_debt, before, after)"
		   " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
	[PRUNE] = "DELETE FROM audit WHERE id <= ?1"
		  " AND id < (SELECT min(id) FROM audit) + ?2",
	[LIST] = "SELECT id, at_ms, actor_kind, actor, tenant, action, keep_debt, before, after"
		 " FROM audit WHERE id < ?1 ORDER BY id DESC LIMIT ?2",
	[LIST_TENANT] =
		"SELECT id, at_ms, actor_kind, actor, tenant, action, keep_debt, before, after"
		" FROM audit WHERE id < ?1 AND tenant = ?3 ORDER BY id DESC LIMIT ?2",
};

struct audit {
	struct database *database;
	int64_t max;
	sqlite3_stmt *statement[STATEMENTS];
};

void audit_free(struct audit *audit)
{
	if (!audit)
		return;
	for (int i = 0; i < STATEMENTS; i++)
		(void)sqlite3_finalize(audit->statement[i]);
	free(audit);
}

int audit_new(struct database *database, uint64_t max, struct audit **out, struct trouble *trouble)
{
	struct audit *audit = calloc(1, sizeof(*audit));

	if (!audit)
		return trouble_set(trouble, -ENOMEM, "%s: no memory", database->path);
	audit->database = database;
	audit->max = !max ? AUDIT_MAX_DEFAULT : max > INT64_MAX ? INT64_MAX : (int64_t)max;
	for (int i = 0; i < STATEMENTS; i++) {
		int err = database_prepare(database, texts[i], &audit->statement[i], trouble);

		if (err) {
			audit_free(audit);
			return err;
		}
	}
	*out = audit;
	return 0;
}

static void format_actor(const struct audit_actor *actor, char out[AUDIT_ACTOR_MAX])
{
	switch (actor->kind) {
	case ACTOR_TOKEN:
		(void)snprintf(out, AUDIT_ACTOR_MAX, "%s", actor->token ? actor->token : "");
		return;
	case ACTOR_PEER:
		(void)snprintf(out, AUDIT_ACTOR_MAX, "%" PRIu32 ":%" PRId32, actor->uid,
			       actor->pid);
		return;
	case ACTOR_TTL:
	case ACTOR_CONFIG:
		break;
	}
	*out = '\0';
}

static const char *actor_kind_name(enum audit_actor_kind kind)
{
	static const char *const names[] = {
		[ACTOR_TOKEN] = "token",
		[ACTOR_PEER] = "peer",
		[ACTOR_TTL] = "ttl",
		[ACTOR_CONFIG] = "config",
	};

	return names[kind];
}

static void bind_text(sqlite3_stmt *statement, int index, const char *text)
{
	/* All texts outlive the statement's run; NULL is bound as NULL. */
	(void)sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC);
}

int audit_add(struct audit *audit, const struct audit_record *record,
	      const struct audit_actor *actor, struct trouble *trouble)
{
	sqlite3_stmt *insert = audit->statement[INSERT], *prune = audit->statement[PRUNE];
	char actor_text[AUDIT_ACTOR_MAX];
	int64_t newest;
	int err;

	format_actor(actor, actor_text);
	(void)sqlite3_bind_int64(insert, 1, record->at_ms);
	bind_text(insert, 2, actor_kind_name(actor->kind));
	bind_text(insert, 3, actor_text);
	bind_text(insert, 4, record->tenant);
	bind_text(insert, 5, record->action);
	(void)sqlite3_bind_int(insert, 6, record->keep_debt);
	bind_text(insert, 7, record->before);
	bind_text(insert, 8, record->after);
	err = database_run(audit->database, insert, trouble);
	if (err)
		return err;
	newest = sqlite3_last_insert_rowid(audit->database->sqlite);
	if (newest <= audit->max)
		return 0;
	(void)sqlite3_bind_int64(prune, 1, newest - audit->max);
	(void)sqlite3_bind_int(prune, 2, AUDIT_PRUNED_AT_ONCE);
	return database_run(audit->database, prune, trouble);
}

static const char *text_at(sqlite3_stmt *statement, int column)
{
	const char *text = (const char *)sqlite3_column_text(statement, column);

	return text ? text : "";
}

static const char *text_or_null_at(sqlite3_stmt *statement, int column)
{
	return (const char *)sqlite3_column_text(statement, column);
}

static struct audit_record record_at(sqlite3_stmt *statement)
{
	return (struct audit_record){
		.id = sqlite3_column_int64(statement, 0),
		.at_ms = sqlite3_column_int64(statement, 1),
		.actor_kind = text_at(statement, 2),
		.actor = text_at(statement, 3),
		.tenant = text_at(statement, 4),
		.action = text_at(statement, 5),
		.keep_debt = sqlite3_column_int(statement, 6) != 0,
		.before = text_or_null_at(statement, 7),
		.after = text_or_null_at(statement, 8),
	};
}

int audit_each(struct audit *audit, const struct audit_query *query,
	       int (*visit)(const struct audit_record *record, void *data), void *data,
	       struct trouble *trouble)
{
	sqlite3_stmt *list = audit->statement[query->tenant ? LIST_TENANT : LIST];
	size_t limit = query->limit;
	int status, err = 0;

	if (limit == 0 || limit > AUDIT_PAGE_MAX)
		limit = AUDIT_PAGE_MAX;
	(void)sqlite3_bind_int64(list, 1, query->before_id > 0 ? query->before_id : INT64_MAX);
	(void)sqlite3_bind_int64(list, 2, (int64_t)limit);
	if (query->tenant)
		bind_text(list, 3, query->tenant);
	while (!err && (status = database_step(list)) == SQLITE_ROW) {
		struct audit_record record = record_at(list);

		err = visit(&record, data);
	}
	if (!err && status != SQLITE_DONE)
		err = database_trouble(audit->database, trouble);
	(void)sqlite3_reset(list);
	(void)sqlite3_clear_bindings(list);
	return err;
}
