/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads the ring buffer through libbpf. */
#include "dataplane/events.h"

#include <errno.h>
#include <stdlib.h>

#include <bpf/libbpf.h>

struct events {
	struct ring_buffer *ring;
	void (*visit)(const struct event *event, void *data);
	void *data;
};

static int take(void *context, void *record, size_t size)
{
	struct events *events = context;

	if (size >= sizeof(struct event))
		events->visit(record, events->data);
	return 0;
}

int events_open(const struct maps *maps, void (*visit)(const struct event *event, void *data),
		void *data, struct events **out)
{
	struct events *events = calloc(1, sizeof(*events));

	if (!events)
		return -ENOMEM;
	events->visit = visit;
	events->data = data;
	events->ring = ring_buffer__new(maps->fd[MAP_EVENTS], take, events, NULL);
	if (!events->ring) {
		int err = -errno;

		events_close(events);
		return err;
	}
	*out = events;
	return 0;
}

int events_poll(struct events *events, int timeout_ms)
{
	int read = ring_buffer__poll(events->ring, timeout_ms);

	return read < 0 ? read : 0;
}

void events_close(struct events *events)
{
	if (!events)
		return;
	ring_buffer__free(events->ring);
	free(events);
}
