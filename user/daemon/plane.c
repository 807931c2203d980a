/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The data plane's part of the daemon. The pins are locked while something is changed, not longer:
 * the command line works beside us, and attaches and detaches as it likes.
 */
#include "daemon/internal.h"

#include <errno.h>
#include <net/if.h>
#include <stdlib.h>

#include "base/clock.h"
#include "daemon/log.h"
#include "dataplane/object.h"

/* For who has not the permission there is another way than to get it. */
static int advise_without(int err, struct trouble *trouble)
{
	if (err == -EPERM || err == -EACCES)
		trouble_advise(trouble,
			       "run as root, with CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON; or set "
			       "`dataplane: off` to hold tenants alone, with debts in memory");
	return err;
}

int plane_open(struct service *service, const struct settings *settings, struct trouble *trouble)
{
	int err;

	service->pins.lock_fd = -1;
	service->has_dataplane = !settings->no_dataplane;
	if (!service->has_dataplane)
		return 0;
	object_set_verbose(false);
	err = pins_init(&service->pins, settings->bpffs, trouble);
	if (!err)
		err = pins_lock(&service->pins, true, trouble);
	if (err)
		return advise_without(err, trouble);
	err = tenant_map_open(&service->tenants, &service->pins, settings->tenant_slots, trouble);
	pins_unlock(&service->pins);
	if (!err && service->tenants.adopted)
		log_line(LOG_LEVEL_INFO, "debts of tenants in %s are kept", service->pins.daemon);
	if (!err && service->tenants.count != settings->tenant_slots)
		log_line(LOG_LEVEL_WARNING,
			 "%s keeps its %zu slots; to have tenant_slots: %u, stop and remove that "
			 "folder",
			 service->pins.daemon, service->tenants.count, settings->tenant_slots);
	return advise_without(err, trouble);
}

struct rest {
	int (*put_in_force)(void *data, struct trouble *trouble);
	void *data;
	int err;
	struct trouble trouble;
};

/* Asked by attach_all(); whether all is well. */
static bool confirm(const struct attach_result *result, void *data)
{
	struct rest *rest = data;

	(void)result;
	rest->err = rest->put_in_force(rest->data, &rest->trouble);
	return !rest->err;
}

static void report(const struct attach_result *result)
{
	const struct taken_over *taken_over = &result->taken_over;
	char text[TAKEN_OVER_TEXT_MAX];

	for (size_t at = 0; at < result->count; at++)
		log_line(LOG_LEVEL_INFO, "%s: %s in %s mode%s%s", result->interfaces[at].name,
			 result->interfaces[at].taken_from ? "taken over"
			 : result->interfaces[at].renewed  ? "renewed"
							   : "attached",
			 attach_mode_name(result->interfaces[at].mode),
			 result->interfaces[at].passed_over[0] ? ", passed over " : "",
			 result->interfaces[at].passed_over);
	if (!taken_over->version)
		return;
	taken_over_text(taken_over, text);
	log_line(taken_over->keeps_debts && !taken_over->rules_lost ? LOG_LEVEL_INFO
								    : LOG_LEVEL_WARNING,
		 "%s", text);
}

/* The same settings with those interfaces that are there. The command line refuses what is not; we
 * wait for it, since at boot, or with a tunnel, it may come later. To be freed with free(). */
static struct setting_interface *only_present(const struct settings *settings,
					      struct settings *present)
{
	*present = *settings;
	present->interface_count = 0;
	present->interfaces = calloc(settings->interface_count + 1, sizeof(*present->interfaces));
	for (size_t at = 0; present->interfaces && at < settings->interface_count; at++) {
		const struct setting_interface *one = &settings->interfaces[at];

		if (if_nametoindex(one->name))
			present->interfaces[present->interface_count++] = *one;
		else
			log_line(LOG_LEVEL_WARNING,
				 "there is no interface %s; it is attached when it comes",
				 one->name);
	}
	return present->interfaces;
}

static int apply(struct service *service, const struct settings *settings, struct rest *rest,
		 struct trouble *trouble)
{
	struct attach_result result = { 0 };
	struct pins pins = service->pins; /* a lock of its own */
	int err = pins_lock(&pins, true, trouble);

	if (err)
		return advise_without(err, trouble);
	if (settings->interface_count)
		err = attach_all(&pins, settings, confirm, rest, &result, trouble);
	else
		err = attach_configure(&pins, settings, confirm, rest, trouble);
	pins_unlock(&pins);
	if (!err)
		report(&result);
	return advise_without(err, trouble);
}

int plane_apply(struct service *service, const struct settings *settings,
		int (*the_rest)(void *data, struct trouble *trouble), void *data,
		struct trouble *trouble)
{
	struct rest rest = { .put_in_force = the_rest, .data = data };
	struct setting_interface *interfaces;
	struct settings present;
	int err;

	if (!service->has_dataplane || !settings->interface_count)
		return the_rest(data, trouble);
	interfaces = only_present(settings, &present);
	if (!interfaces)
		return trouble_set(trouble, -ENOMEM, "out of memory");
	if (present.interface_count || pins_exist(&service->pins))
		err = apply(service, &present, &rest, trouble);
	else
		err = the_rest(data, trouble);
	free(interfaces);
	if (!rest.err)
		return err;
	/* Rather than that it was taken back, say why. */
	*trouble = rest.trouble;
	return rest.err;
}

/* For watch_look(). */
static int attach_again(const struct setting_interface *one, void *data, struct trouble *trouble)
{
	struct service *service = data;
	struct attach_result result = { 0 };
	struct pins pins = service->pins;
	int err;

	if (!pins_exist(&pins))
		return -ENOENT;
	err = pins_lock_now(&pins, trouble);
	if (err)
		return err;
	err = attach_more(&pins, one, 1, &result, trouble);
	pins_unlock(&pins);
	if (!err)
		report(&result);
	return err;
}

void plane_follow(struct service *service)
{
	uint64_t now_ns = clock_monotonic_ns();
	struct trouble trouble; /* is logged */

	if (!service->has_dataplane || !watch_is_due(&service->watch, now_ns))
		return;
	/* Whoever reloads attaches, too. */
	if (pthread_mutex_trylock(&service->reloading))
		return;
	/* Settings are not kept in memory, with their lists of prefixes: the file is read anew. */
	if (watch_look(&service->watch, &service->pins, now_ns, attach_again, service))
		(void)service_reload_locked(service, &trouble);
	(void)pthread_mutex_unlock(&service->reloading);
}
