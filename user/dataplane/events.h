/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The stream of sampled refusals. */
#ifndef SLUICE_DATAPLANE_EVENTS_H
#define SLUICE_DATAPLANE_EVENTS_H

#include "dataplane/maps.h"

struct events;

/* One reader at a time gets an event. 0 or -errno; *out is the caller's. */
int events_open(const struct maps *maps, void (*visit)(const struct event *event, void *data),
		void *data, struct events **out);

/* Call visit for what is there, waiting up to timeout_ms. 0, -EINTR or another -errno. */
int events_poll(struct events *events, int timeout_ms);

/* NULL is fine. */
void events_close(struct events *events);

#endif
