/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the files of the engine share.
 *
 * Who may change what: `limits` and `edge` are snapshots, exchanged whole under `change` and read
 * through each reader's own reference. The buckets, the table of clients (with the node's bucket),
 * leases and cells guard themselves. `change` is held from looking at what is in
 * force to having put another in force, so that two changes never work from the same "before"; it is
 * taken before any lock of the parts, never the other way round.
 */
#ifndef SLUICE_ENGINE_INTERNAL_H
#define SLUICE_ENGINE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/engine.h"
#include "limit/address_table.h"
#include "limit/buckets.h"
#include "limit/cell_table.h"
#include "limit/leases.h"
#include "store/overrides.h"

enum {
	ENGINE_SOURCES = 16384, /* slots */
	ENGINE_CELLS = 1 << 20,
	ENGINE_CELL_BYTES = 256 << 20,
	ENGINE_LEASES = 1 << 18,
	QUEUE_RETRY_MS = 1000,
	FULL_RETRY_MS = 1000,
	EXPIRE_AGAIN_MS = 1000,
};

/* What is asked of before a tenant is known. */
struct edge {
	_Atomic unsigned references;
	struct gcra_limit client; /* BUCKET_WORD; capacity 0: none */
	struct gcra_limit node;   /* BUCKET_WHOLE */
	struct gcra_limit source; /* BUCKET_WHOLE_BYTES */
	uint32_t ipv6_prefix;
	bool is_dry[DECISIONS]; /* of DECISION_IP and DECISION_NODE */
	uint64_t hooks_digest;  /* of client and node: limit/hook_limits.h */
	size_t trusted_count;
	struct address_prefix trusted[];
};

struct engine {
	pthread_mutex_t change;
	struct limits_slot limits;
	pthread_mutex_t edge_lock; /* guards taking a reference to edge */
	struct edge *_Atomic edge;
	struct buckets *tenants;
	struct buckets *sources;
	struct address_table *clients;
	struct cell_table *cells;
	struct leases *leases;
	struct override_store *store; /* NULL: none */
	void *tenant_memory;          /* NULL: the caller's */
	void *source_memory;
	struct bucket_set *client_memory; /* NULL: the caller's, as tenant_memory */
	struct hooks own_hooks;           /* beside client_memory */
	size_t tenant_room;
	void (*warn)(const char *message, void *data);
	void *warn_data;

	pthread_mutex_t readers_lock;
	struct engine_reader *readers;
	uint64_t gone[QUESTIONS][DECISIONS]; /* counted by readers that were freed */
	uint64_t gone_would_refuse[DECISIONS];
	unsigned next_stripe;

	unsigned tick;
	/* Under change. */
	int64_t next_expiry_ms;  /* of an override; it may be over already; 0: none has an end */
	int64_t expire_again_ms; /* after the store has failed to */
	_Atomic uint64_t swept, override_errors, reloads;
};

struct engine_reader {
	struct engine *engine;
	struct engine_reader *next;
	struct limits *limits;
	struct edge *edge;
	unsigned stripe; /* of the table of clients */
	/* Written by its thread only. */
	_Atomic uint64_t decisions[QUESTIONS][DECISIONS], would_refuse[DECISIONS];
};

/* The reader's references, brought up to date. */
const struct limits *reader_limits(struct engine_reader *reader);
const struct edge *reader_edge(struct engine_reader *reader);

/* One more. By the reader's thread, so it need not be one indivisible addition. */
void reader_count(_Atomic uint64_t *count);

/* Count a decision and give it. */
void reader_answer(struct engine_reader *reader, enum engine_question question,
		   const struct decision *decision, engine_answer *answer, void *context);

/* A refusal with its wait, in all the ways a decision says it. */
void decision_refuse(struct decision *decision, enum decision_reason reason, uint64_t wait_ns);

/* remaining: UINT64_MAX is unlimited. */
int64_t decision_remaining(uint64_t remaining);

int64_t wall_clock_ms(void);
/* A tick late at most and five times as fast: enough to see that an override has ended. */
int64_t wall_clock_coarse_ms(void);

/* Give back the memory of the engine's own that clients lay in. */
void clients_unmap(struct engine *engine);

/* edge.c */
int edge_new(const struct settings *settings, struct edge **out, struct trouble *trouble);
struct edge *edge_hold(struct engine *engine);
void edge_release(struct edge *edge); /* NULL is fine */
void edge_set(struct engine *engine, struct edge *edge);

/* overrides.c: the limits to begin with, from settings and the store. */
int overrides_load(struct engine *engine, const struct settings *settings, struct limits **out,
		   struct trouble *trouble);
void overrides_expire(struct engine *engine);

#endif
