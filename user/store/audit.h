/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who changed a tenant's limit, when, what it was before and what after. Records are written in the
 * transaction of the change itself (store/overrides.h), so there is no change without its record
 * and no record without its change. The newest audit_max of them are kept.
 */
#ifndef SLUICE_STORE_AUDIT_H
#define SLUICE_STORE_AUDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/trouble.h"

struct database;

enum {
	AUDIT_MAX_DEFAULT = 1000000,
	AUDIT_PAGE_MAX = 1000, /* records one query gives at most */
	AUDIT_ACTOR_MAX = 128, /* bytes of the actor's text with its final zero; longer is cut */
	AUDIT_PRUNED_AT_ONCE = 256,
};

enum audit_actor_kind {
	ACTOR_TOKEN,  /* the token that was presented; shown as its name */
	ACTOR_PEER,   /* the process at the other end of the Unix socket: "uid:pid" */
	ACTOR_TTL,    /* nobody: its time was over; "" */
	ACTOR_CONFIG, /* the configuration file; "" */
};

struct audit_actor {
	enum audit_actor_kind kind;
	const char *token; /* with ACTOR_TOKEN */
	uint32_t uid;      /* with ACTOR_PEER */
	int32_t pid;
};

/* Texts belong to the store and are valid until the visitor returns. Never NULL but where said.
 * They are what was written, unless somebody has edited the file by hand. */
struct audit_record {
	int64_t id;             /* counts up, never used twice */
	int64_t at_ms;          /* Unix time */
	const char *actor_kind; /* "token", "peer", "ttl", "config" */
	const char *actor;
	const char *tenant;
	const char *action; /* "set", "unset", "expire" */
	bool keep_debt;     /* the tenant's buckets were left as they were */
	const char *before; /* JSON as the caller gave it; NULL: none */
	const char *after;
};

struct audit_query {
	const char *tenant; /* NULL: all */
	int64_t before_id;  /* only older records than this one; 0: from the newest on */
	size_t limit;       /* 1 to AUDIT_PAGE_MAX; more is cut to it, 0 is AUDIT_PAGE_MAX */
};

/* ---- for store/overrides.c, which holds its lock around each of these */

struct audit;

/* max 0: AUDIT_MAX_DEFAULT. */
int audit_new(struct database *database, uint64_t max, struct audit **out, struct trouble *trouble);
void audit_free(struct audit *audit); /* NULL is fine */

/*
 * Within a transaction: add a record (its id, actor_kind and actor are not looked at) and take away
 * the oldest if there are more than max. At most AUDIT_PRUNED_AT_ONCE go at a time, so that no
 * change waits for a deletion of hundreds of thousands after max was lowered.
 */
int audit_add(struct audit *audit, const struct audit_record *record,
	      const struct audit_actor *actor, struct trouble *trouble);

/* Newest first, until visit returns other than 0, which is then returned. */
int audit_each(struct audit *audit, const struct audit_query *query,
	       int (*visit)(const struct audit_record *record, void *data), void *data,
	       struct trouble *trouble);

#endif
