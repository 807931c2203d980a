/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The data plane's part of the daemon. The pins are locked while something is changed, not longer:
 * the command line works beside us, and attaches and detaches as it likes.
 */
#include "daemon/internal.h"

#include <errno.h>

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
			 result->interfaces[at].taken_from ? "taken over" :
			 result->interfaces[at].renewed	   ? "renewed" :
							     "attached",
			 attach_mode_name(result->interfaces[at].mode),
			 result->interfaces[at].passed_over[0] ? ", passed over " : "",
			 result->interfaces[at].passed_over);
	if (!taken_over->version)
		return;
	taken_over_text(taken_over, text);
	log_line(taken_over->keeps_debts && !taken_over->rules_lost ? LOG_LEVEL_INFO :
								      LOG_LEVEL_WARNING,
		 "%s", text);
}

int plane_apply(struct service *service, const struct settings *settings,
		int (*the_rest)(void *data, struct trouble *trouble), void *data,
		struct trouble *trouble)
{
	struct rest rest = { .put_in_force = the_rest, .data = data };
	struct attach_result result = { 0 };
	struct pins pins = service->pins; /* a lock of its own */
	int err;

	if (!service->has_dataplane || !settings->interface_count)
		return the_rest(data, trouble);
	err = pins_lock(&pins, true, trouble);
	if (err)
		return advise_without(err, trouble);
	err = attach_all(&pins, settings, confirm, &rest, &result, trouble);
	pins_unlock(&pins);
	if (!err)
		report(&result);
	if (!rest.err)
		return advise_without(err, trouble);
	/* Rather than that it was taken back, say why. */
	*trouble = rest.trouble;
	return rest.err;
}
