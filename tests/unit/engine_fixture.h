/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The engine, compiled in with clocks that the test sets, so that an override's end and a wait of
 * years take no time; and short ways to ask it. A real clock notes what it has said last, which is
 * the date of what was admitted by it.
 *
 * Included by one program each.
 */
#ifndef SLUICE_ENGINE_FIXTURE_H
#define SLUICE_ENGINE_FIXTURE_H

#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"

enum { NS_IN_S = 1000000000, NS_IN_MS = 1000000 };

/* What the monotonic clock says; 0: the real one is asked. */
static uint64_t fixed_now_ns;
/* What is added to the wall clock. */
static _Atomic int64_t wall_ahead_ms;
/* What this thread was told last. */
static __thread uint64_t last_clock_ns;

static inline uint64_t engine_clock(void)
{
	last_clock_ns = fixed_now_ns ? fixed_now_ns : clock_monotonic_ns();
	return last_clock_ns;
}

static inline int engine_wall_clock(clockid_t clock, struct timespec *out)
{
	int err = clock_gettime(clock, out);

	out->tv_sec += wall_ahead_ms / 1000;
	out->tv_nsec += wall_ahead_ms % 1000 * NS_IN_MS;
	out->tv_sec += out->tv_nsec / NS_IN_S;
	out->tv_nsec %= NS_IN_S;
	return err;
}

#define clock_monotonic_ns engine_clock
#define clock_gettime engine_wall_clock
#include "engine/edge.c"
#include "engine/engine.c"
#include "engine/overrides.c"
#include "engine/tenant.c"
#undef clock_monotonic_ns
#undef clock_gettime

struct world {
	struct settings *settings;
	struct engine *engine;
	struct engine_reader *reader;
	/* Outlive the engine, as a pinned map and a disk do. */
	void *memory;
	char directory[64];
	char database[96];
	char warning[256];
	int warnings;
};

enum { WORLD_SLOTS = 1024 };

static inline void keep_warning(const char *message, void *data)
{
	struct world *world = data;

	world->warnings++;
	(void)snprintf(world->warning, sizeof(world->warning), "%s", message);
}

static inline struct settings *settings_of(const char *yaml)
{
	struct settings_error error = { 0 };
	struct settings *settings = NULL;

	if (settings_parse(yaml, strlen(yaml), &settings, &error))
		fail_msg("%u:%u: %s: %s", error.line, error.column, error.key, error.message);
	return settings;
}

static inline int world_try_start(struct world *world, struct trouble *trouble)
{
	const struct engine_options options = {
		.settings = world->settings,
		.tenant_memory = world->memory,
		.tenant_slots = WORLD_SLOTS,
		.secret = { { 1, 2 } },
		.database = world->database[0] ? world->database : NULL,
		.warn = keep_warning,
		.data = world,
	};
	int err = engine_new(&options, &world->engine, trouble);

	if (!err)
		assert_int_equal(engine_reader_new(world->engine, &world->reader), 0);
	return err;
}

static inline void world_start(struct world *world)
{
	struct trouble trouble = { 0 };

	if (world_try_start(world, &trouble))
		fail_msg("%s", trouble.cause);
}

static inline void world_stop(struct world *world)
{
	engine_reader_free(world->reader);
	engine_free(world->engine);
	world->reader = NULL;
	world->engine = NULL;
}

/* In memory of its own, without a disk. */
static inline void world_make(struct world *world, const char *yaml)
{
	*world = (struct world){ .settings = settings_of(yaml) };
	fixed_now_ns = 1000ULL * NS_IN_S;
	wall_ahead_ms = 0;
	world_start(world);
}

/* In memory and on a disk that a restart finds again. */
static inline void world_make_lasting(struct world *world, const char *yaml)
{
	*world = (struct world){ .settings = settings_of(yaml) };
	fixed_now_ns = 1000ULL * NS_IN_S;
	wall_ahead_ms = 0;
	world->memory = aligned_alloc(64, (size_t)WORLD_SLOTS * BUCKET_SLOT_BYTES);
	assert_non_null(world->memory);
	memset(world->memory, 0, (size_t)WORLD_SLOTS * BUCKET_SLOT_BYTES);
	(void)snprintf(world->directory, sizeof(world->directory), "/tmp/sluice-test-XXXXXX");
	assert_non_null(mkdtemp(world->directory));
	(void)snprintf(world->database, sizeof(world->database), "%s/sluice.db", world->directory);
	world_start(world);
}

static inline void world_restart(struct world *world)
{
	world_stop(world);
	world_start(world);
}

static inline void world_end(struct world *world)
{
	char command[96];

	world_stop(world);
	settings_free(world->settings);
	free(world->memory);
	if (!world->directory[0])
		return;
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", world->directory);
	assert_int_equal(system(command), 0);
}

static inline int reload_with(struct world *world, const char *yaml)
{
	struct trouble trouble = { 0 };

	settings_free(world->settings);
	world->settings = settings_of(yaml);
	return engine_reload(world->engine, world->settings, &trouble);
}

static inline void pass_ns(uint64_t ns)
{
	fixed_now_ns += ns;
}

/* ---- asking */

static inline void keep_decision(void *context, const struct decision *decision)
{
	*(struct decision *)context = *decision;
}

static inline struct tenant_name name_of(const char *tenant)
{
	return (struct tenant_name){ tenant, strlen(tenant) };
}

static inline struct decision ask_hit(struct world *world, const char *tenant, uint64_t bytes,
				      unsigned flags)
{
	struct decision decision = { .remaining = -2 };

	assert_int_equal(
		engine_hit(world->reader, name_of(tenant), bytes, flags, keep_decision, &decision),
		0);
	assert_int_not_equal(decision.remaining, -2);
	return decision;
}

static inline struct decision hit(struct world *world, const char *tenant)
{
	return ask_hit(world, tenant, 0, 0);
}

/* How many of so many hits are admitted. */
static inline unsigned admitted_of(struct world *world, const char *tenant, unsigned hits)
{
	unsigned admitted = 0;

	while (hits--)
		admitted += hit(world, tenant).admitted;
	return admitted;
}

static inline struct tenant_limit limit_from(const char *json)
{
	char message[LIMIT_MESSAGE_MAX];
	struct tenant_limit limit;

	if (tenant_limit_parse(json, strlen(json), &limit, message))
		fail_msg("%s: %s", json, message);
	return limit;
}

static inline int set_override(struct world *world, const char *tenant, const char *json,
			       uint64_t ttl_ms, bool keep_debt)
{
	struct engine_change change = {
		.actor = { .kind = ACTOR_PEER, .uid = 1000, .pid = 42 },
		.ttl_ms = ttl_ms,
		.keep_debt = keep_debt,
	};
	struct tenant_limit limit = limit_from(json);
	struct trouble trouble = { 0 };

	return engine_override_set(world->engine, name_of(tenant), &limit, &change, &trouble);
}

static inline int unset_override(struct world *world, const char *tenant, bool keep_debt)
{
	struct engine_change change = {
		.actor = { .kind = ACTOR_TOKEN, .token = "ops" },
		.keep_debt = keep_debt,
	};
	struct trouble trouble = { 0 };

	return engine_override_unset(world->engine, name_of(tenant), &change, &trouble);
}

static inline enum limit_source source_of(struct world *world, const char *tenant,
					  struct limits_entry *entry)
{
	enum limit_source source = LIMIT_FROM_NONE;

	assert_int_equal(engine_effective(world->engine, name_of(tenant), entry, &source), 0);
	return source;
}

#endif
