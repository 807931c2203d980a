/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The daemon as its files share it. */
#ifndef SLUICE_DAEMON_INTERNAL_H
#define SLUICE_DAEMON_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>

#include "daemon/probes.h"
#include "daemon/watch.h"
#include "dataplane/attach.h"
#include "dataplane/hooks.h"
#include "dataplane/pins.h"
#include "dataplane/tenants.h"
#include "engine/engine.h"
#include "server/http_server.h"
#include "server/resp_commands.h"
#include "server/resp_server.h"
#include "server/sockets.h"
#include "server/tokens.h"

struct service {
	char *config;
	pthread_mutex_t reloading; /* one configuration at a time, whole, comes into force */
	int state_fd; /* the folder of what outlives the daemon, locked while this one runs; or -1
		       */
	/* What was so at the start stays so: a reload changes none of it. */
	bool has_dataplane;
	struct pins pins;
	struct {
		struct setting_listen listen;
		char state[PATH_MAX];
		unsigned workers;
		uint32_t tenant_slots;
	} started;
	struct sockets sockets;
	struct tenant_map tenants; /* zero: memory of the engine's own */
	struct hook_maps hooks;    /* zero: the same */
	int hooks_failed;          /* of the last look for them: -errno or 0 */
	unsigned hooks_ticks;      /* since the start */
	struct engine *engine;
	struct probes probes;
	bool has_probes;
	struct watch watch;
	struct resp_commands commands;
	struct resp_server *resp;
	struct tokens tokens; /* for AUTH */
	struct http_server *http;
};

/* configuration.c: service_reload() for who holds service->reloading. */
int service_reload_locked(struct service *service, struct trouble *trouble);

/* plane.c: the data plane, with the rights and the locks it needs. 0, or -errno with *trouble. */

/* Where the pins are, and the map that debts outlive us in. */
int plane_open(struct service *service, const struct settings *settings, struct trouble *trouble);

/*
 * Put the data plane's part of settings in force on the interfaces that they name, and the rest
 * with it: the_rest() is called when all that is the kernel's is in force and can still be taken
 * back; if it fails, or the process dies in it, that is done. Without a data plane, or without
 * interfaces, it is called all the same.
 */
int plane_apply(struct service *service, const struct settings *settings,
		int (*the_rest)(void *data, struct trouble *trouble), void *data,
		struct trouble *trouble);

/* At each tick: attach again what has to be attached. */
void plane_follow(struct service *service);

/* shedding.c: the memory of clients' buckets, which the kernel's programs look at. */

/* Before the engine is made: what an earlier daemon has left. */
void shedding_begin(struct service *service);
/* At each tick: into other maps, if others are pinned. */
void shedding_follow(struct service *service);
/* When the engine is no more. */
void shedding_end(struct service *service);

#endif
