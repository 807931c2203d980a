/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All tenants' limits at one time: an immutable snapshot. The first that is found applies whole, no
 * key is merged: override, then the configuration's entry, then the default; none: unlimited.
 *
 * A changed set is a new snapshot, which shares with the old one all that is the same. Readers hold
 * a reference while they look; what they find lives as long as that. A worker that looks for every
 * command does not count references for every command: it keeps one snapshot of its own and calls
 * limits_slot_refresh() once a batch, which reads one shared word and writes none while nothing has
 * changed.
 */
#ifndef SLUICE_LIMIT_LIMITS_H
#define SLUICE_LIMIT_LIMITS_H

#include <pthread.h>

#include "limit/tenant_limit.h"

struct limits;

enum limit_source { LIMIT_FROM_NONE, LIMIT_FROM_DEFAULT, LIMIT_FROM_CONFIG, LIMIT_FROM_OVERRIDE };

/* "none", "default", "config", "override": the words of the admin API. */
const char *limit_source_name(enum limit_source source);

struct limits_entry {
	char tenant[TENANT_ID_MAX + 1]; /* a valid id */
	struct tenant_limit limit;      /* built */
	int64_t expires_at_ms;          /* wall clock, of an override with a ttl; 0: never */
};

/*
 * A snapshot of these (copied). The default may be NULL. Entries need not be sorted; no tenant may
 * stand twice in one list (-EEXIST). 0 or -ENOMEM. One reference is the caller's.
 */
int limits_new(const struct tenant_limit *fallback, const struct limits_entry *configured,
	       size_t configured_count, const struct limits_entry *overrides, size_t override_count,
	       struct limits **out);

/*
 * The same with one change; the old one stays as it is. What is configured is shared by reference;
 * of the overrides a table of pointers is copied (16 bytes an override, at most). 0, -ENOMEM, or
 * -ENOENT if there is no such override to take away.
 */
int limits_with_override(const struct limits *limits, const struct limits_entry *entry,
			 struct limits **out);
int limits_without_override(const struct limits *limits, const char *tenant, struct limits **out);

/* Without all overrides whose time is over, at once. -ENOENT: none is. */
int limits_without_expired(const struct limits *limits, int64_t wall_ms, struct limits **out);

/*
 * Give a snapshot that nobody else has yet the overrides of another, by reference, in place of its
 * own. It cannot fail: so whoever has made a configuration ready may put it in force later, under the
 * overrides of that time.
 */
void limits_take_overrides(struct limits *unpublished, const struct limits *from);

/* Thread safe. hold() returns what it is given; the caller must have a reference already. */
struct limits *limits_hold(struct limits *limits);
void limits_release(struct limits *limits); /* NULL is fine */

/*
 * The limit in force for a tenant, within the snapshot; NULL: unlimited (source none). A limit that
 * says `unlimited` is returned as what it is. An override whose time is over does not count. O(1).
 */
const struct tenant_limit *limits_find(const struct limits *limits, const char *tenant,
				       size_t length, int64_t wall_ms, enum limit_source *source);

/* The override of a tenant, with its end; NULL: none in force. */
const struct limits_entry *limits_override(const struct limits *limits, const char *tenant,
					   size_t length, int64_t wall_ms);

/* NULL: none. */
const struct tenant_limit *limits_default(const struct limits *limits);

/* Call visit for configured tenants and overrides (override wins), sorted by id, until not 0, which
 * is returned. 0 or -ENOMEM. O(n log n). */
int limits_each(const struct limits *limits, int64_t wall_ms,
		int (*visit)(const struct limits_entry *entry, enum limit_source source,
			     void *data),
		void *data);

/* The same for at most so many of those whose ids come after one ("": all), of which there need be no
 * tenant. O(n) and the sorting of what is visited. */
int limits_page(const struct limits *limits, int64_t wall_ms, const char *after, size_t most,
		int (*visit)(const struct limits_entry *entry, enum limit_source source,
			     void *data),
		void *data);

enum { LIMITS_PAGE_MAX = 10000 }; /* what servers give at once, if asked for pages */

/* The earliest expires_at_ms after wall_ms among overrides; 0: none. O(n). */
int64_t limits_next_expiry(const struct limits *limits, int64_t wall_ms);

size_t limits_override_count(const struct limits *limits); /* in force or not */

/*
 * Where the snapshot in force is kept, for one writer at a time and any number of readers. Every
 * function is thread safe.
 */
struct limits_slot {
	pthread_mutex_t lock; /* guards taking a reference to current against its release */
	struct limits *_Atomic current;
};

/* Takes over the caller's reference. */
void limits_slot_init(struct limits_slot *slot, struct limits *limits);
void limits_slot_done(struct limits_slot *slot);

/* Put another in force; takes over the caller's reference, and releases that of the old one. */
void limits_slot_set(struct limits_slot *slot, struct limits *limits);

/* A reference to the one in force, which the caller releases. */
struct limits *limits_slot_hold(struct limits_slot *slot);

/*
 * Exchange *mine, a reference that the caller has (or NULL), for one to the snapshot in force.
 * Returns whether it is another one than before. Without a change: one load.
 */
bool limits_slot_refresh(struct limits_slot *slot, struct limits **mine);

#endif
