/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where clients' buckets of requests lie: in the maps of the set, so that programs shed by them and
 * debts outlive us; in the engine's own memory until there is a set. A set that has gone leaves its
 * maps to us until another comes; then all debts go there.
 */
#include "daemon/internal.h"

#include <errno.h>

#include "daemon/log.h"

enum { TICKS_BETWEEN = 1000 / ENGINE_TICK_MS };

/* 0: other maps than those in use. What cannot be opened is said once, not each second. */
static int look(struct service *service, struct hook_maps *found)
{
	struct trouble trouble = { 0 };
	int err = hook_maps_open(found, &service->hooks, &service->pins, &trouble);

	if (err && trouble.cause[0] && err != service->hooks_failed)
		log_line(LOG_LEVEL_WARNING, "%s -> %s", trouble.cause, trouble.remedy);
	service->hooks_failed = err;
	return err;
}

void shedding_begin(struct service *service)
{
	if (service->has_dataplane && !look(service, &service->hooks))
		log_line(LOG_LEVEL_INFO, "debts of addresses in %s are kept", service->pins.set);
}

void shedding_follow(struct service *service)
{
	struct hook_maps found;

	if (!service->has_dataplane || service->hooks_ticks++ % TICKS_BETWEEN)
		return;
	if (look(service, &found))
		return;
	engine_move_clients(service->engine, &(struct address_memory){ found.sets, found.hooks });
	hook_maps_close(&service->hooks);
	service->hooks = found;
	log_line(LOG_LEVEL_INFO, "debts of addresses are kept in %s from now on",
		 service->pins.set);
}

void shedding_end(struct service *service)
{
	hook_maps_close(&service->hooks);
}
