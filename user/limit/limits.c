/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two sets of limits under a default, and the rule which of them applies.
 *
 * Why readers need no lock. What is reachable from a snapshot is written before the snapshot is
 * published, by limits_slot_set() with a releasing store that readers acquire, and not after. The
 * counts are the only words that change. Whoever raises one holds a reference through which it
 * reaches the object, or the slot's lock while the slot holds one, so none is raised from 0;
 * whoever brings one to 0 has acquired all releases before it, and is alone.
 *
 * limits_slot_refresh() compares without the lock: *mine is held, so its address cannot have been
 * given to another snapshot, and equal addresses are the same snapshot.
 */
#include "limit/limits.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "limit/limit_set.h"

struct limits {
	atomic_uint references;
	bool has_fallback;
	struct tenant_limit fallback;
	struct limit_set *configured;
	struct limit_set *overrides;
};

static const char *const source_names[] = {
	[LIMIT_FROM_NONE] = "none",
	[LIMIT_FROM_DEFAULT] = "default",
	[LIMIT_FROM_CONFIG] = "config",
	[LIMIT_FROM_OVERRIDE] = "override",
};

const char *limit_source_name(enum limit_source source)
{
	return source_names[source];
}

/* Takes over both sets, also when it fails. */
static int make(const struct tenant_limit *fallback, struct limit_set *configured,
		struct limit_set *overrides, struct limits **out)
{
	struct limits *limits = calloc(1, sizeof(*limits));

	if (!limits) {
		limit_set_release(configured);
		limit_set_release(overrides);
		return -ENOMEM;
	}
	atomic_init(&limits->references, 1);
	limits->has_fallback = fallback != NULL;
	if (fallback)
		limits->fallback = *fallback;
	limits->configured = configured;
	limits->overrides = overrides;
	*out = limits;
	return 0;
}

int limits_new(const struct tenant_limit *fallback, const struct limits_entry *configured,
	       size_t configured_count, const struct limits_entry *overrides, size_t override_count,
	       struct limits **out)
{
	struct limit_set *configured_set, *override_set;
	int err = limit_set_build(configured, configured_count, &configured_set);

	if (err)
		return err;
	err = limit_set_build(overrides, override_count, &override_set);
	if (err) {
		limit_set_release(configured_set);
		return err;
	}
	return make(fallback, configured_set, override_set, out);
}

/* The same configuration under other overrides, which it takes over. */
static int exchange_overrides(const struct limits *limits, struct limit_set *overrides,
			      struct limits **out)
{
	return make(limits_default(limits), limit_set_hold(limits->configured), overrides, out);
}

int limits_with_override(const struct limits *limits, const struct limits_entry *entry,
			 struct limits **out)
{
	struct limit_set *overrides;
	int err = limit_set_with(limits->overrides, entry, &overrides);

	return err ? err : exchange_overrides(limits, overrides, out);
}

int limits_without_override(const struct limits *limits, const char *tenant, struct limits **out)
{
	struct limit_set *overrides;
	int err = limit_set_without(limits->overrides, tenant, &overrides);

	return err ? err : exchange_overrides(limits, overrides, out);
}

void limits_take_overrides(struct limits *unpublished, const struct limits *from)
{
	struct limit_set *own = unpublished->overrides;

	unpublished->overrides = limit_set_hold(from->overrides);
	limit_set_release(own);
}

struct limits *limits_hold(struct limits *limits)
{
	atomic_fetch_add_explicit(&limits->references, 1, memory_order_relaxed);
	return limits;
}

void limits_release(struct limits *limits)
{
	if (!limits || atomic_fetch_sub_explicit(&limits->references, 1, memory_order_acq_rel) > 1)
		return;
	limit_set_release(limits->configured);
	limit_set_release(limits->overrides);
	free(limits);
}

const struct tenant_limit *limits_default(const struct limits *limits)
{
	return limits->has_fallback ? &limits->fallback : NULL;
}

size_t limits_override_count(const struct limits *limits)
{
	return limit_set_count(limits->overrides);
}

static bool is_over(const struct limits_entry *entry, int64_t wall_ms)
{
	return entry->expires_at_ms && entry->expires_at_ms <= wall_ms;
}

const struct limits_entry *limits_override(const struct limits *limits, const char *tenant,
					   size_t length, int64_t wall_ms)
{
	const struct limits_entry *entry = limit_set_find(limits->overrides, tenant, length);

	return entry && !is_over(entry, wall_ms) ? entry : NULL;
}

const struct tenant_limit *limits_find(const struct limits *limits, const char *tenant,
				       size_t length, int64_t wall_ms, enum limit_source *source)
{
	const struct limits_entry *entry = limits_override(limits, tenant, length, wall_ms);

	*source = LIMIT_FROM_OVERRIDE;
	if (!entry) {
		entry = limit_set_find(limits->configured, tenant, length);
		*source = LIMIT_FROM_CONFIG;
	}
	if (entry)
		return &entry->limit;
	*source = limits->has_fallback ? LIMIT_FROM_DEFAULT : LIMIT_FROM_NONE;
	return limits_default(limits);
}

/* ---- overrides whose time is over */

struct expiry {
	int64_t wall_ms;
	int64_t next_ms; /* 0: none */
};

static int note_expiry(const struct limits_entry *entry, void *data)
{
	struct expiry *expiry = data;

	if (entry->expires_at_ms > expiry->wall_ms &&
	    (!expiry->next_ms || entry->expires_at_ms < expiry->next_ms))
		expiry->next_ms = entry->expires_at_ms;
	return 0;
}

int64_t limits_next_expiry(const struct limits *limits, int64_t wall_ms)
{
	struct expiry expiry = { .wall_ms = wall_ms };

	(void)limit_set_each(limits->overrides, note_expiry, &expiry);
	return expiry.next_ms;
}

/* Entries of one or two sets, in an array of pointers that is long enough for both. */
struct list {
	const struct limits *limits;
	int64_t wall_ms;
	const char *after; /* only those after it */
	size_t count;
	const struct limits_entry **entries;
};

static int list_if_in_force(const struct limits_entry *entry, void *data)
{
	struct list *list = data;

	if (!is_over(entry, list->wall_ms) && strcmp(entry->tenant, list->after) > 0)
		list->entries[list->count++] = entry;
	return 0;
}

int limits_without_expired(const struct limits *limits, int64_t wall_ms, struct limits **out)
{
	size_t before = limit_set_count(limits->overrides), i;
	struct list list = { limits, wall_ms, "", 0, calloc(before + 1, sizeof(*list.entries)) };
	struct limits_entry *kept = NULL;
	struct limit_set *overrides = NULL;
	int err = -ENOMEM;

	if (!list.entries)
		return err;
	(void)limit_set_each(limits->overrides, list_if_in_force, &list);
	if (list.count == before) {
		err = -ENOENT;
		goto out;
	}
	kept = calloc(list.count + 1, sizeof(*kept));
	if (!kept)
		goto out;
	for (i = 0; i < list.count; i++)
		kept[i] = *list.entries[i];
	err = limit_set_build(kept, list.count, &overrides);
	if (!err)
		err = exchange_overrides(limits, overrides, out);
out:
	free(kept);
	free(list.entries);
	return err;
}

/* ---- all of them, in order */

static int list_unless_overridden(const struct limits_entry *entry, void *data)
{
	struct list *list = data;

	if (strcmp(entry->tenant, list->after) > 0 &&
	    !limits_override(list->limits, entry->tenant, strlen(entry->tenant), list->wall_ms))
		list->entries[list->count++] = entry;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct limits_entry *const *left = a, *const *right = b;

	return strcmp((*left)->tenant, (*right)->tenant);
}

static void swap(const struct limits_entry **one, const struct limits_entry **other)
{
	const struct limits_entry *kept = *one;

	*one = *other;
	*other = kept;
}

/* Bring the first `most` of them, in the order of their ids, to the front and sort them. A page need
 * not sort all: the part in which the border lies is divided again and again. */
static void sort_first(struct list *list, size_t most)
{
	size_t from = 0, to = list->count;

	while (from < most && most < to) {
		const struct limits_entry **part = list->entries, **last = &part[to - 1];
		size_t border = from;

		swap(&part[from + (to - from) / 2], last);
		for (size_t at = from; at < to - 1; at++)
			if (compare(&part[at], last) < 0)
				swap(&part[at], &part[border++]);
		swap(&part[border], last);
		if (border < most)
			from = border + 1;
		else
			to = border;
	}
	if (list->count > most)
		list->count = most;
	qsort(list->entries, list->count, sizeof(*list->entries), compare);
}

/* Two sorted lists as one, up to so many. */
static int visit_merged(const struct limits_entry *const *configured, size_t configured_count,
			const struct limits_entry *const *overrides, size_t override_count,
			size_t most,
			int (*visit)(const struct limits_entry *entry, enum limit_source source,
				     void *data),
			void *data)
{
	int result = 0;

	while ((configured_count || override_count) && most-- && !result) {
		bool is_override =
			override_count && (!configured_count || compare(overrides, configured) < 0);

		if (is_override) {
			result = visit(*overrides++, LIMIT_FROM_OVERRIDE, data);
			override_count--;
		} else {
			result = visit(*configured++, LIMIT_FROM_CONFIG, data);
			configured_count--;
		}
	}
	return result;
}

int limits_page(const struct limits *limits, int64_t wall_ms, const char *after, size_t most,
		int (*visit)(const struct limits_entry *entry, enum limit_source source,
			     void *data),
		void *data)
{
	size_t room = limit_set_count(limits->configured) + limit_set_count(limits->overrides);
	struct list configured = { limits, wall_ms, after, 0,
				   calloc(room + 1, sizeof(*configured.entries)) };
	struct list overrides = { limits, wall_ms, after, 0, NULL };
	const struct limits_entry **memory = configured.entries;
	int result = -ENOMEM;

	if (!memory)
		return result;
	(void)limit_set_each(limits->configured, list_unless_overridden, &configured);
	overrides.entries = memory + configured.count;
	(void)limit_set_each(limits->overrides, list_if_in_force, &overrides);
	sort_first(&configured, most);
	sort_first(&overrides, most);
	result = visit_merged(configured.entries, configured.count, overrides.entries,
			      overrides.count, most, visit, data);
	free(memory);
	return result;
}

int limits_each(const struct limits *limits, int64_t wall_ms,
		int (*visit)(const struct limits_entry *entry, enum limit_source source,
			     void *data),
		void *data)
{
	return limits_page(limits, wall_ms, "", SIZE_MAX, visit, data);
}
