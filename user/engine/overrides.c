/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Changing limits while they are in force. A change is stored with its audit record, then put in
 * force, then the tenant's debts are forgotten; it holds `change` all the while. What cannot be
 * stored changes nothing.
 */
#include "engine/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

struct loading {
	struct engine *engine;
	struct limits_entry *entries;
	size_t count;
	size_t room;
};

static int add_entry(const struct limits_entry *entry, void *data)
{
	struct loading *loading = data;

	if (loading->count == loading->room) {
		size_t room = loading->room ? loading->room * 2 : 64;
		struct limits_entry *more = reallocarray(loading->entries, room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		loading->entries = more;
		loading->room = room;
	}
	loading->entries[loading->count++] = *entry;
	return 0;
}

static void warn_of_row(int64_t row_id, const char *why, void *data)
{
	struct loading *loading = data;
	char message[256];

	if (!loading->engine->warn)
		return;
	(void)snprintf(message, sizeof(message), "override in row %lld is skipped: %s",
		       (long long)row_id, why);
	loading->engine->warn(message, loading->engine->warn_data);
}

int overrides_load(struct engine *engine, const struct settings *settings, struct limits **out,
		   struct trouble *trouble)
{
	struct loading loading = { .engine = engine };
	int err = 0;

	if (engine->store)
		err = override_store_load(engine->store,
					  &(struct override_visitor){ .entry = add_entry,
								      .skipped = warn_of_row,
								      .data = &loading },
					  trouble);
	if (!err) {
		err = limits_new(settings->has_fallback ? &settings->fallback : NULL,
				 settings->tenants, settings->tenant_count, loading.entries,
				 loading.count, out);
		if (err)
			trouble_set(trouble, 0, "the limits cannot be made: %s", strerror(-err));
	}
	if (!err)
		engine->next_expiry_ms = limits_next_expiry(*out, 0);
	free(loading.entries);
	return err;
}

int engine_effective(struct engine *engine, struct tenant_name tenant, struct limits_entry *out,
		     enum limit_source *source)
{
	struct limits *limits;
	const struct tenant_limit *limit;
	const struct limits_entry *override;
	int64_t now_ms = wall_clock_ms();

	if (!tenant_id_is_valid(tenant.text, tenant.length))
		return -EINVAL;
	limits = limits_slot_hold(&engine->limits);
	limit = limits_find(limits, tenant.text, tenant.length, now_ms, source);
	if (limit) {
		*out = (struct limits_entry){ .limit = *limit };
		(void)snprintf(out->tenant, sizeof(out->tenant), "%.*s", (int)tenant.length,
			       tenant.text);
		override = limits_override(limits, tenant.text, tenant.length, now_ms);
		if (override)
			out->expires_at_ms = override->expires_at_ms;
	}
	limits_release(limits);
	return 0;
}

struct limits *engine_limits(struct engine *engine)
{
	return limits_slot_hold(&engine->limits);
}

static char *limit_text(const struct tenant_limit *limit)
{
	json_t *value = limit ? tenant_limit_to_json(limit) : NULL;
	char *text = value ? json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;

	json_decref(value);
	return text;
}

/* What is to be recorded of a change; the texts are freed by the caller. */
static int record_change(struct engine *engine, struct tenant_name tenant,
			 const struct tenant_limit *after, const struct engine_change *change,
			 struct override_change *record)
{
	struct limits_entry before;
	enum limit_source source = LIMIT_FROM_NONE;
	int err = engine_effective(engine, tenant, &before, &source);

	if (err)
		return err;
	*record = (struct override_change){
		.actor = change->actor,
		.now_ms = wall_clock_ms(),
		.before = limit_text(source == LIMIT_FROM_NONE ? NULL : &before.limit),
		.after = limit_text(after),
		.keep_debt = change->keep_debt,
	};
	return 0;
}

static void free_record(struct override_change *record)
{
	free((char *)record->before);
	free((char *)record->after);
}

static void put_in_force(struct engine *engine, struct limits *limits, struct tenant_name tenant,
			 bool keep_debt)
{
	engine->next_expiry_ms = limits_next_expiry(limits, 0);
	limits_slot_set(&engine->limits, limits);
	if (!keep_debt)
		(void)buckets_reset(engine->tenants, tenant.text, tenant.length,
				    clock_monotonic_ns);
}

static int set_locked(struct engine *engine, const struct limits_entry *entry,
		      struct tenant_name tenant, const struct engine_change *change,
		      struct trouble *trouble)
{
	struct override_change record = { 0 };
	struct limits *current = limits_slot_hold(&engine->limits), *next = NULL;
	int err = record_change(engine, tenant, &entry->limit, change, &record);

	if (!err)
		err = limits_with_override(current, entry, &next);
	if (err)
		trouble_set(trouble, 0, "the limit cannot be set: %s", strerror(-err));
	else if (engine->store)
		err = override_store_put(engine->store, entry, &record, trouble);
	if (!err)
		put_in_force(engine, next, tenant, change->keep_debt);
	else
		limits_release(next);
	limits_release(current);
	free_record(&record);
	return err;
}

int engine_override_set(struct engine *engine, struct tenant_name tenant,
			const struct tenant_limit *limit, const struct engine_change *change,
			struct trouble *trouble)
{
	struct limits_entry entry = { .limit = *limit };
	int err;

	if (!tenant_id_is_valid(tenant.text, tenant.length))
		return trouble_set(trouble, -EINVAL, "invalid_tenant");
	(void)snprintf(entry.tenant, sizeof(entry.tenant), "%.*s", (int)tenant.length, tenant.text);
	(void)pthread_mutex_lock(&engine->change);
	if (change->ttl_ms)
		entry.expires_at_ms = wall_clock_ms() + (int64_t)change->ttl_ms;
	err = set_locked(engine, &entry, tenant, change, trouble);
	(void)pthread_mutex_unlock(&engine->change);
	if (err)
		atomic_fetch_add(&engine->override_errors, 1);
	return err;
}

static int unset_locked(struct engine *engine, const char *name, struct tenant_name tenant,
			const struct engine_change *change, struct trouble *trouble)
{
	struct override_change record = { 0 };
	struct limits *current = limits_slot_hold(&engine->limits), *next = NULL;
	int err = limits_without_override(current, name, &next);

	if (!err)
		err = record_change(engine, tenant, NULL, change, &record);
	if (err)
		trouble_set(trouble, 0,
			    err == -ENOENT ? "there is no override for %s"
					   : "the override of %s cannot be taken away: %s",
			    name, strerror(-err));
	else if (engine->store)
		err = override_store_remove(engine->store, name, &record, trouble);
	if (!err)
		put_in_force(engine, next, tenant, change->keep_debt);
	else
		limits_release(next);
	limits_release(current);
	free_record(&record);
	return err;
}

int engine_override_unset(struct engine *engine, struct tenant_name tenant,
			  const struct engine_change *change, struct trouble *trouble)
{
	char name[TENANT_ID_MAX + 1];
	int err;

	if (!tenant_id_is_valid(tenant.text, tenant.length))
		return trouble_set(trouble, -EINVAL, "invalid_tenant");
	(void)snprintf(name, sizeof(name), "%.*s", (int)tenant.length, tenant.text);
	(void)pthread_mutex_lock(&engine->change);
	err = unset_locked(engine, name, tenant, change, trouble);
	(void)pthread_mutex_unlock(&engine->change);
	if (err && err != -ENOENT)
		atomic_fetch_add(&engine->override_errors, 1);
	return err;
}

struct forgetting {
	struct engine *engine;
	int64_t now_ms;
};

static int forget_ended(const struct limits_entry *entry, enum limit_source source, void *data)
{
	const struct forgetting *forgetting = data;

	if (source == LIMIT_FROM_OVERRIDE && entry->expires_at_ms &&
	    entry->expires_at_ms <= forgetting->now_ms)
		(void)buckets_reset(forgetting->engine->tenants, entry->tenant,
				    strlen(entry->tenant), clock_monotonic_ns);
	return 0;
}

/* Out of memory, too, what has been taken out of the store, and then its debts. */
static void end_locked(struct engine *engine, int64_t now_ms)
{
	struct limits *current = limits_slot_hold(&engine->limits), *next;

	if (limits_without_expired(current, now_ms, &next)) {
		limits_release(current);
		return;
	}
	engine->next_expiry_ms = limits_next_expiry(next, 0);
	limits_slot_set(&engine->limits, next);
	/* As of the beginning of time: those that have ended count as well. */
	(void)limits_each(current, 0, forget_ended, &(struct forgetting){ engine, now_ms });
	limits_release(current);
}

/*
 * An override whose time is over no longer counts from that instant on; here it is only taken away.
 * What cannot be taken out of the store stays in memory, so that it is tried again.
 */
void overrides_expire(struct engine *engine)
{
	int64_t now_ms = wall_clock_ms();
	struct trouble trouble = { 0 };
	int err = 0;

	(void)pthread_mutex_lock(&engine->change);
	if (engine->next_expiry_ms && now_ms >= engine->next_expiry_ms &&
	    now_ms >= engine->expire_again_ms) {
		if (engine->store)
			err = override_store_expire(engine->store, now_ms, NULL, NULL, &trouble);
		if (!err)
			end_locked(engine, now_ms);
		engine->expire_again_ms = err ? now_ms + EXPIRE_AGAIN_MS : 0;
		if (err && engine->warn)
			engine->warn(trouble.cause, engine->warn_data);
	}
	(void)pthread_mutex_unlock(&engine->change);
}

int engine_audit(struct engine *engine, const struct audit_query *query,
		 int (*visit)(const struct audit_record *record, void *data), void *data,
		 struct trouble *trouble)
{
	return engine->store ? override_store_audit(engine->store, query, visit, data, trouble) : 0;
}

int engine_can_store(struct engine *engine, struct trouble *trouble)
{
	return engine->store ? override_store_try(engine->store, trouble) : 0;
}
