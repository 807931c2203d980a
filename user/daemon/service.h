/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The daemon's parts, started in order and stopped in the reverse order. */
#ifndef SLUICE_DAEMON_SERVICE_H
#define SLUICE_DAEMON_SERVICE_H

#include "base/trouble.h"
#include "limit/settings.h"

struct service;

/* config: the file that a reload reads; NULL: there is none. settings: what it says now, copied where
 * needed and not kept. 0, or -errno with *trouble. */
int service_start(const char *config, struct settings *settings, struct service **out,
		  struct trouble *trouble);

/* Upkeep; to be called every ENGINE_TICK_MS. */
void service_tick(struct service *service);

/* Read the configuration anew. A bad one leaves the old in force. Any thread. */
int service_reload(void *service, struct trouble *trouble);

/* Answer what was read, then end. NULL is fine. */
void service_stop(struct service *service);

#endif
