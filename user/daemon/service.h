/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The daemon's parts, started in order and stopped in the reverse order. */
#ifndef SLUICE_DAEMON_SERVICE_H
#define SLUICE_DAEMON_SERVICE_H

#include <stddef.h>

#include "base/notify.h"
#include "base/trouble.h"
#include "limit/settings.h"

struct service;

struct service_options {
	const char *config;                /* the file that a reload reads; NULL: there is none */
	const struct settings *settings;   /* what it says now; copied where needed and not kept */
	const struct inherited *inherited; /* sockets opened by a supervisor, which become ours */
	size_t inherited_count;
};

/* 0, or -errno with *trouble: then the data plane is as it was. */
int service_start(const struct service_options *options, struct service **out,
		  struct trouble *trouble);

/* Upkeep; to be called every ENGINE_TICK_MS. */
void service_tick(struct service *service);

/* Read the configuration anew; in configuration.c. It comes into force whole: if anything of it
 * cannot be, the old one stays, in the kernel and here. Any thread. */
int service_reload(void *service, struct trouble *trouble);

/* Answer what was read, then end. NULL is fine. */
void service_stop(struct service *service);

#endif
