/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The engine's numbers as Prometheus reads them. How many series there are is fixed: no tenant, no
 * source and nothing else that a client sends is ever a label.
 */
#ifndef SLUICE_SERVER_METRICS_H
#define SLUICE_SERVER_METRICS_H

#include "engine/engine.h"
#include "wire/exposition.h"

/* started_at_ms: Unix time at which the process began. */
void metrics_write(struct engine *engine, const char *version, int64_t started_at_ms,
		   struct exposition *out);

#endif
