/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the service does, one function for each thing that can be asked of it, without a word of any
 * protocol. Servers call it from their threads; each thread has a reader of its own.
 *
 * A question is answered through a callback, so that an answer may come later than its question (a
 * shared store, a place in a line); those here are answered before the function returns.
 */
#ifndef SLUICE_ENGINE_ENGINE_H
#define SLUICE_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/client_address.h"
#include "base/trouble.h"
#include "limit/address_table.h"
#include "limit/cell.h"
#include "limit/limits.h"
#include "limit/settings.h"
#include "store/audit.h"

struct engine;
struct engine_reader;

/* Why a question got its answer. The words of it, as in every protocol, are decision_word()'s. */
enum decision_reason {
	DECISION_OK,
	DECISION_RATE_LIMITED,
	DECISION_BYTES_LIMITED,
	DECISION_TENANT_OVERLOAD,
	DECISION_IP,
	DECISION_NODE,
	DECISION_SOURCE,
	DECISION_TOO_LARGE,  /* a body over max_body_bytes */
	DECISION_TABLE_FULL, /* no room for a new key, and none is dropped that owes */
	DECISIONS,
};

const char *decision_word(enum decision_reason reason);

enum { RETRY_NEVER = -1, REMAINING_UNLIMITED = -1 };

struct decision {
	bool admitted;
	enum decision_reason reason;
	int64_t retry_after_ms;  /* 0 when admitted, RETRY_NEVER; rounded up, at least 1 */
	uint64_t retry_after_ns; /* the same, exact; GCRA_NEVER */
	int64_t remaining;       /* whole units that would be admitted now, REMAINING_UNLIMITED */
	uint64_t full_after_ns;  /* until the bucket that `remaining` speaks of is full */
	const struct gcra_limit *limit; /* that bucket's; NULL: none. Valid during the callback */
	uint64_t lease;                 /* of engine_queue_acquire(); 0: nothing was counted */
	union address client;           /* of engine_preread() */
};

typedef void engine_answer(void *context, const struct decision *decision);

/* What a question about a tenant names. -EINVAL from any of these: not a tenant id. */
struct tenant_name {
	const char *text;
	size_t length;
};

struct engine_options {
	const struct settings *settings;
	/* Slots and sets in memory that outlives the process, under a secret that does, too; NULL: the
	 * engine makes its own. tenant_slots: BUCKET_SLOT_BYTES each. */
	void *tenant_memory;
	size_t tenant_slots;
	struct siphash_key secret; /* of that memory; not looked at without it */
	/* The same for clients: IP_SETS sets, which programs may read to shed. */
	struct address_memory client_memory;
	const char *database; /* of overrides and audit; NULL: kept in memory only, no audit */
	void (*warn)(const char *message, void *data); /* of rows that cannot be read */
	void *data;
};

/* 0, or -errno with *trouble. */
int engine_new(const struct engine_options *options, struct engine **out, struct trouble *trouble);
void engine_free(struct engine *engine); /* when no reader is left; NULL is fine */

/* One for each thread that asks. */
int engine_reader_new(struct engine *engine, struct engine_reader **out);
void engine_reader_free(struct engine_reader *reader); /* NULL is fine */

/* ---- questions; thread: the reader's */

enum hit_flag { HIT_ATOMIC = 1, HIT_PEEK = 2 };

/* Charge a tenant one hook and so many bytes. */
int engine_hit(struct engine_reader *reader, struct tenant_name tenant, uint64_t bytes,
	       unsigned flags, engine_answer *answer, void *context);
/* Give back. */
int engine_refund(struct engine_reader *reader, struct tenant_name tenant, uint64_t hooks,
		  uint64_t bytes);
/* *bytes: the biggest body, UINT64_MAX: none is set. */
int engine_body_limit(struct engine_reader *reader, struct tenant_name tenant, uint64_t *bytes);

int engine_queue_acquire(struct engine_reader *reader, struct tenant_name tenant, uint64_t bytes,
			 uint64_t owner, uint64_t ttl_ms, engine_answer *answer, void *context);
/* 1 if it was held, 0 if not. */
int engine_queue_release(struct engine_reader *reader, uint64_t lease, uint64_t owner);
/* A connection has ended: how many leases it held. */
size_t engine_connection_closed(struct engine *engine, uint64_t owner);

struct preread {
	const union address *peer; /* NULL: there is none */
	const void *source;        /* any bytes, up to BUCKET_KEY_MAX */
	size_t source_bytes;
	bool has_bytes; /* a declared length */
	uint64_t bytes;
	const struct forwarded_for *forwarded;
	size_t forwarded_count;
};

/* -EINVAL: the client's address cannot be read. */
int engine_preread(struct engine_reader *reader, const struct preread *preread,
		   engine_answer *answer, void *context);
int engine_source_bytes(struct engine_reader *reader, const void *source, size_t source_bytes,
			uint64_t bytes, engine_answer *answer, void *context);

/* CL.THROTTLE. -ENOSPC: the table is full of debts. */
int engine_throttle(struct engine_reader *reader, const void *key, size_t key_bytes,
		    const struct cell_request *request, struct cell_answer *answer);

/* ---- limits, and changing them; any thread */

/* The limit in force, copied. *source is LIMIT_FROM_NONE: unlimited, and *out is not touched. */
int engine_effective(struct engine *engine, struct tenant_name tenant, struct limits_entry *out,
		     enum limit_source *source);

/* A reference to all limits, to be released with limits_release(). */
struct limits *engine_limits(struct engine *engine);

struct engine_change {
	struct audit_actor actor;
	uint64_t ttl_ms; /* of a set override; 0: for good */
	bool keep_debt;
};

/* Set a tenant's override: stored with its audit record, then put in force, then the tenant's debts
 * forgotten (unless keep_debt). An error has changed nothing. */
int engine_override_set(struct engine *engine, struct tenant_name tenant,
			const struct tenant_limit *limit, const struct engine_change *change,
			struct trouble *trouble);
/* -ENOENT: there is none. */
int engine_override_unset(struct engine *engine, struct tenant_name tenant,
			  const struct engine_change *change, struct trouble *trouble);

int engine_audit(struct engine *engine, const struct audit_query *query,
		 int (*visit)(const struct audit_record *record, void *data), void *data,
		 struct trouble *trouble);

/* Whether a change could be stored now; found out by writing to the disk. 0 also where nothing is
 * stored; -errno with *trouble. */
int engine_can_store(struct engine *engine, struct trouble *trouble);

/*
 * Other settings in place of the old: limits and what is before them; overrides stay. In two steps,
 * so that others can be made ready beside it before any is changed: all that can fail is done by
 * engine_prepare(), of whose result engine_commit() and engine_discard() (NULL is fine) dispose.
 */
struct engine_prepared;

int engine_prepare(const struct settings *settings, struct engine_prepared **out,
		   struct trouble *trouble);
void engine_commit(struct engine *engine, struct engine_prepared *prepared);
void engine_discard(struct engine_prepared *prepared);

/* Both at once. */
int engine_reload(struct engine *engine, const struct settings *settings, struct trouble *trouble);

/* Clients' buckets, and the node's, in other memory from now on, with every debt. The old is touched
 * no more: the caller's is the caller's again. */
void engine_move_clients(struct engine *engine, const struct address_memory *to);

/* ---- upkeep: to be called every ENGINE_TICK_MS, by one thread */

enum { ENGINE_TICK_MS = 100 };

void engine_tick(struct engine *engine);

/* ---- numbers; any thread */

enum engine_question {
	QUESTION_HIT,
	QUESTION_QUEUE,
	QUESTION_PREREAD,
	QUESTION_SOURCE_BYTES,
	QUESTION_THROTTLE,
	QUESTIONS,
};

const char *engine_question_word(enum engine_question question);

struct engine_numbers {
	uint64_t decisions[QUESTIONS][DECISIONS];
	/* By limits in a dry run, of QUESTION_PREREAD: DECISION_IP and DECISION_NODE. */
	uint64_t would_refuse[DECISIONS];
	uint64_t swept;
	size_t tenants, tenant_room;
	size_t sources, source_room;
	size_t throttle_keys, throttle_room;
	size_t leases;
	size_t overrides;
	uint64_t override_errors; /* changes that could not be stored */
	uint64_t reloads;
};

void engine_numbers(struct engine *engine, struct engine_numbers *out);

#endif
