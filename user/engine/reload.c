/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Other settings while questions are answered. What is made ready is not bound to the overrides of
 * that time: it takes those that are in force when it comes into force itself, under `change`, so
 * an override that is set in between is neither held up nor lost.
 */
#include "engine/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct engine_prepared {
	struct limits *limits; /* under no overrides yet */
	struct edge *edge;
};

int engine_prepare(const struct settings *settings, struct engine_prepared **out,
		   struct trouble *trouble)
{
	struct engine_prepared *prepared = calloc(1, sizeof(*prepared));
	int err;

	if (!prepared)
		return trouble_set(trouble, -ENOMEM, "out of memory");
	err = edge_new(settings, &prepared->edge, trouble);
	if (err)
		goto fail;
	err = limits_new(settings->has_fallback ? &settings->fallback : NULL, settings->tenants,
			 settings->tenant_count, NULL, 0, &prepared->limits);
	if (err) {
		trouble_set(trouble, 0, "the limits cannot be made: %s", strerror(-err));
		goto fail;
	}
	*out = prepared;
	return 0;

fail:
	engine_discard(prepared);
	return err;
}

void engine_commit(struct engine *engine, struct engine_prepared *prepared)
{
	struct limits *current;

	(void)pthread_mutex_lock(&engine->change);
	current = limits_slot_hold(&engine->limits);
	limits_take_overrides(prepared->limits, current);
	limits_release(current);
	limits_slot_set(&engine->limits, prepared->limits);
	edge_set(engine, prepared->edge);
	atomic_fetch_add(&engine->reloads, 1);
	(void)pthread_mutex_unlock(&engine->change);
	free(prepared);
}

void engine_discard(struct engine_prepared *prepared)
{
	if (!prepared)
		return;
	edge_release(prepared->edge);
	limits_release(prepared->limits);
	free(prepared);
}

int engine_reload(struct engine *engine, const struct settings *settings, struct trouble *trouble)
{
	struct engine_prepared *prepared;
	int err = engine_prepare(settings, &prepared, trouble);

	if (!err)
		engine_commit(engine, prepared);
	return err;
}
