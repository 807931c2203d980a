/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What watches the daemon is told: whether it is ready, and the data plane's numbers. Both look at
 * things outside the process, which may have changed since the last time: the disk, pins,
 * interfaces. Functions may be called by several threads.
 *
 * What is dear is remembered: writing to the disk, to see that it can be written, is done at most
 * each STORE_TRIED_AGAIN_S while it can be, and each second while it cannot.
 */
#ifndef SLUICE_DAEMON_PROBES_H
#define SLUICE_DAEMON_PROBES_H

#include <pthread.h>
#include <stdbool.h>

#include "base/trouble.h"
#include "dataplane/numbers.h"
#include "dataplane/pins.h"
#include "engine/engine.h"
#include "limit/settings.h"
#include "wire/exposition.h"

enum { STORE_TRIED_AGAIN_S = 5 };

struct probes {
	pthread_mutex_t lock; /* guards the rest */
	struct engine *engine;
	const struct pins *pins;          /* NULL: there is no data plane */
	struct setting_interface *wanted; /* where it has to be attached */
	size_t wanted_count;
	struct table_seen table;
	uint64_t store_tried_ns; /* 0: not yet */
	int store_err;
	struct trouble store_trouble;
	bool was_unready; /* the log knows */
};

/* pins: as long as the probes; the engine, too. */
void probes_init(struct probes *probes, struct engine *engine, const struct pins *pins);
void probes_done(struct probes *probes);

/* Other interfaces, in two steps, of which the second cannot fail: a copy, to be freed with free(),
 * and that copy in place of those before, taken over. */
int probes_copy(const struct settings *settings, struct setting_interface **out);
void probes_exchange(struct probes *probes, struct setting_interface *copy, size_t count);

bool probes_is_ready(struct probes *probes, struct trouble *why);
void probes_metrics(struct probes *probes, struct exposition *out);

#endif
