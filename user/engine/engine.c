/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Making the engine and its readers, upkeep, and the words and shapes of decisions. */
#include "engine/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"

enum {
	NS_PER_MS = 1000000,
	SHARD_TICKS = 37,          /* a shard each 3.7 s, all sixteen within a minute */
	SWEEP_BUDGET_NS = 2000000, /* of ours, in each tick */
	CLIENT_BYTES = IP_SETS * sizeof(struct bucket_set),
};

static const char *const words[DECISIONS] = {
	[DECISION_OK] = "ok",
	[DECISION_RATE_LIMITED] = "rate_limited",
	[DECISION_BYTES_LIMITED] = "bytes_limited",
	[DECISION_TENANT_OVERLOAD] = "tenant_overload",
	[DECISION_IP] = "ip",
	[DECISION_NODE] = "node",
	[DECISION_SOURCE] = "source",
	[DECISION_TOO_LARGE] = "too_large",
	[DECISION_TABLE_FULL] = "table_full",
};

static const char *const questions[QUESTIONS] = {
	[QUESTION_HIT] = "tenant_hit",       [QUESTION_QUEUE] = "queue_acquire",
	[QUESTION_PREREAD] = "edge_preread", [QUESTION_SOURCE_BYTES] = "edge_sourcebytes",
	[QUESTION_THROTTLE] = "cl_throttle",
};

const char *decision_word(enum decision_reason reason)
{
	return reason < DECISIONS ? words[reason] : "unknown";
}

const char *engine_question_word(enum engine_question question)
{
	return question < QUESTIONS ? questions[question] : "unknown";
}

static int64_t read_ms(clockid_t clock)
{
	struct timespec now;

	(void)clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / NS_PER_MS;
}

int64_t wall_clock_ms(void)
{
	return read_ms(CLOCK_REALTIME);
}

int64_t wall_clock_coarse_ms(void)
{
	return read_ms(CLOCK_REALTIME_COARSE);
}

void decision_refuse(struct decision *decision, enum decision_reason reason, uint64_t wait_ns)
{
	decision->admitted = false;
	decision->reason = reason;
	decision->retry_after_ns = wait_ns;
	decision->retry_after_ms = RETRY_NEVER;
	if (wait_ns == GCRA_NEVER)
		return;
	decision->retry_after_ms = (int64_t)(wait_ns / NS_PER_MS + (wait_ns % NS_PER_MS != 0));
	if (decision->retry_after_ms < 1)
		decision->retry_after_ms = 1;
}

int64_t decision_remaining(uint64_t remaining)
{
	if (remaining == UINT64_MAX)
		return REMAINING_UNLIMITED;
	return remaining > INT64_MAX ? INT64_MAX : (int64_t)remaining;
}

void reader_count(_Atomic uint64_t *count)
{
	atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

void reader_answer(struct engine_reader *reader, enum engine_question question,
		   const struct decision *decision, engine_answer *answer, void *context)
{
	reader_count(&reader->decisions[question][decision->reason]);
	answer(context, decision);
}

const struct limits *reader_limits(struct engine_reader *reader)
{
	(void)limits_slot_refresh(&reader->engine->limits, &reader->limits);
	return reader->limits;
}

const struct edge *reader_edge(struct engine_reader *reader)
{
	struct edge *current = atomic_load_explicit(&reader->engine->edge, memory_order_relaxed);

	/* The reader's own reference keeps its address from being used again. */
	if (current != reader->edge) {
		edge_release(reader->edge);
		reader->edge = edge_hold(reader->engine);
	}
	return reader->edge;
}

static void *map_zeroed(size_t bytes)
{
	void *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* The tables, in the caller's memory or our own. */
static int make_tables(struct engine *engine, const struct engine_options *options)
{
	struct address_memory clients = options->client_memory;
	struct siphash_key secret;
	void *memory = options->tenant_memory;
	int err;

	if (getrandom(&secret, sizeof(secret), 0) != sizeof(secret))
		return -errno;
	engine->tenant_room = memory ? options->tenant_slots : options->settings->tenant_slots;
	if (!memory) {
		engine->tenant_memory = map_zeroed(engine->tenant_room * BUCKET_SLOT_BYTES);
		memory = engine->tenant_memory;
	}
	engine->source_memory = map_zeroed((size_t)ENGINE_SOURCES * BUCKET_SLOT_BYTES);
	if (!clients.sets) {
		engine->client_memory = map_zeroed(CLIENT_BYTES);
		clients = (struct address_memory){ engine->client_memory, &engine->own_hooks };
	}
	if (!memory || !engine->source_memory || !clients.sets)
		return -ENOMEM;
	err = buckets_new(memory, engine->tenant_room,
			  options->tenant_memory ? &options->secret : &secret, clock_monotonic_ns(),
			  &engine->tenants);
	if (!err)
		err = buckets_new(engine->source_memory, ENGINE_SOURCES, &secret,
				  clock_monotonic_ns(), &engine->sources);
	if (!err)
		err = address_table_new(&clients, IP_SETS, &secret, clock_monotonic_ns(),
					&engine->clients);
	if (!err)
		err = cell_table_new(ENGINE_CELLS, ENGINE_CELL_BYTES, &secret, &engine->cells);
	return err ? err : leases_new(ENGINE_LEASES, &secret, &engine->leases);
}

static int open_store(struct engine *engine, const char *database, struct trouble *trouble)
{
	struct override_store_options options = { .path = database };

	return database ? override_store_open(&options, &engine->store, trouble) : 0;
}

int engine_new(const struct engine_options *options, struct engine **out, struct trouble *trouble)
{
	struct engine *engine = calloc(1, sizeof(*engine));
	struct limits *limits = NULL;
	struct edge *edge = NULL;
	int err;

	if (!engine)
		return trouble_set(trouble, -ENOMEM, "out of memory");
	(void)pthread_mutex_init(&engine->change, NULL);
	(void)pthread_mutex_init(&engine->edge_lock, NULL);
	(void)pthread_mutex_init(&engine->readers_lock, NULL);
	limits_slot_init(&engine->limits, NULL);
	engine->warn = options->warn;
	engine->warn_data = options->data;
	err = make_tables(engine, options);
	if (err) {
		trouble_set(trouble, 0, "the tables cannot be made: %s", strerror(-err));
		trouble_advise(trouble, "a smaller tenant_slots needs less memory");
		goto fail;
	}
	err = open_store(engine, options->database, trouble);
	if (!err)
		err = overrides_load(engine, options->settings, &limits, trouble);
	if (err)
		goto fail;
	limits_slot_set(&engine->limits, limits);
	err = edge_new(options->settings, &edge, trouble);
	if (err)
		goto fail;
	edge_set(engine, edge);
	overrides_expire(engine);
	*out = engine;
	return 0;

fail:
	engine_free(engine);
	return err;
}

static void unmap(void *memory, size_t bytes)
{
	if (memory)
		(void)munmap(memory, bytes);
}

void clients_unmap(struct engine *engine)
{
	unmap(engine->client_memory, CLIENT_BYTES);
	engine->client_memory = NULL;
}

void engine_free(struct engine *engine)
{
	if (!engine)
		return;
	leases_free(engine->leases);
	cell_table_free(engine->cells);
	address_table_free(engine->clients);
	buckets_free(engine->sources);
	buckets_free(engine->tenants);
	override_store_close(engine->store);
	limits_slot_done(&engine->limits);
	edge_release(engine->edge);
	unmap(engine->tenant_memory, engine->tenant_room * BUCKET_SLOT_BYTES);
	unmap(engine->source_memory, (size_t)ENGINE_SOURCES * BUCKET_SLOT_BYTES);
	clients_unmap(engine);
	(void)pthread_mutex_destroy(&engine->readers_lock);
	(void)pthread_mutex_destroy(&engine->edge_lock);
	(void)pthread_mutex_destroy(&engine->change);
	free(engine);
}

int engine_reader_new(struct engine *engine, struct engine_reader **out)
{
	struct engine_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return -ENOMEM;
	reader->engine = engine;
	(void)pthread_mutex_lock(&engine->readers_lock);
	reader->stripe = engine->next_stripe++;
	reader->next = engine->readers;
	engine->readers = reader;
	(void)pthread_mutex_unlock(&engine->readers_lock);
	*out = reader;
	return 0;
}

static void add_counts(const struct engine_reader *reader, uint64_t decisions[QUESTIONS][DECISIONS],
		       uint64_t would_refuse[DECISIONS])
{
	for (int question = 0; question < QUESTIONS; question++)
		for (int reason = 0; reason < DECISIONS; reason++)
			decisions[question][reason] += atomic_load_explicit(
				&reader->decisions[question][reason], memory_order_relaxed);
	for (int reason = 0; reason < DECISIONS; reason++)
		would_refuse[reason] +=
			atomic_load_explicit(&reader->would_refuse[reason], memory_order_relaxed);
}

void engine_reader_free(struct engine_reader *reader)
{
	struct engine *engine;
	struct engine_reader **link;

	if (!reader)
		return;
	engine = reader->engine;
	(void)pthread_mutex_lock(&engine->readers_lock);
	for (link = &engine->readers; *link != reader;)
		link = &(*link)->next;
	*link = reader->next;
	add_counts(reader, engine->gone, engine->gone_would_refuse);
	(void)pthread_mutex_unlock(&engine->readers_lock);
	limits_release(reader->limits);
	edge_release(reader->edge);
	free(reader);
}

/* A step of everything that is swept, so that each table is gone through within its time. */
void engine_tick(struct engine *engine)
{
	unsigned tick = engine->tick++, shard = tick / SHARD_TICKS % BUCKET_SHARDS;
	uint64_t now_ns = clock_monotonic_ns(), swept = 0;

	(void)leases_expire(engine->leases, now_ns);
	swept += address_table_sweep(engine->clients, tick % ADDRESS_TABLE_STEPS, now_ns);
	if (tick % SHARD_TICKS == 0) {
		swept += buckets_sweep(engine->tenants, shard, clock_monotonic_ns, SWEEP_BUDGET_NS);
		swept += buckets_sweep(engine->sources, shard, clock_monotonic_ns, SWEEP_BUDGET_NS);
		swept += cell_table_sweep(engine->cells, shard, now_ns);
	}
	atomic_fetch_add(&engine->swept, swept);
	overrides_expire(engine);
}

void engine_numbers(struct engine *engine, struct engine_numbers *out)
{
	struct limits *limits = limits_slot_hold(&engine->limits);

	*out = (struct engine_numbers){
		.swept = engine->swept,
		.tenants = buckets_count(engine->tenants),
		.tenant_room = buckets_room(engine->tenants),
		.sources = buckets_count(engine->sources),
		.source_room = buckets_room(engine->sources),
		.throttle_keys = cell_table_count(engine->cells),
		.throttle_room = cell_table_room(engine->cells),
		.leases = leases_count(engine->leases),
		.overrides = limits_override_count(limits),
		.override_errors = engine->override_errors,
		.reloads = engine->reloads,
	};
	limits_release(limits);
	(void)pthread_mutex_lock(&engine->readers_lock);
	memcpy(out->decisions, engine->gone, sizeof(out->decisions));
	memcpy(out->would_refuse, engine->gone_would_refuse, sizeof(out->would_refuse));
	for (const struct engine_reader *reader = engine->readers; reader; reader = reader->next)
		add_counts(reader, out->decisions, out->would_refuse);
	(void)pthread_mutex_unlock(&engine->readers_lock);
}
