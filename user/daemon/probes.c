/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Looking at the store and at the data plane. */
#include "daemon/probes.h"

#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/log.h"
#include "dataplane/attach.h"

#define NS_PER_S 1000000000ULL

void probes_init(struct probes *probes, struct engine *engine, const struct pins *pins)
{
	*probes = (struct probes){ .engine = engine, .pins = pins };
	(void)pthread_mutex_init(&probes->lock, NULL);
}

void probes_done(struct probes *probes)
{
	free(probes->wanted);
	probes->wanted = NULL;
	(void)pthread_mutex_destroy(&probes->lock);
}

int probes_copy(const struct settings *settings, struct setting_interface **out)
{
	struct setting_interface *copy = NULL;

	if (settings->interface_count) {
		copy = reallocarray(NULL, settings->interface_count, sizeof(*copy));
		if (!copy)
			return -ENOMEM;
		memcpy(copy, settings->interfaces, settings->interface_count * sizeof(*copy));
	}
	*out = copy;
	return 0;
}

void probes_exchange(struct probes *probes, struct setting_interface *copy, size_t count)
{
	struct setting_interface *old;

	(void)pthread_mutex_lock(&probes->lock);
	old = probes->wanted;
	probes->wanted = copy;
	probes->wanted_count = count;
	(void)pthread_mutex_unlock(&probes->lock);
	free(old);
}

/* ---- ready */

static bool can_store(struct probes *probes, struct trouble *why)
{
	uint64_t now_ns = clock_monotonic_ns();
	uint64_t good_for_ns = (probes->store_err ? 1 : STORE_TRIED_AGAIN_S) * NS_PER_S;

	if (!probes->store_tried_ns || now_ns - probes->store_tried_ns >= good_for_ns) {
		probes->store_err = engine_can_store(probes->engine, &probes->store_trouble);
		probes->store_tried_ns = now_ns;
	}
	if (!probes->store_err)
		return true;
	trouble_set(why, 0, "overrides cannot be stored: %s", probes->store_trouble.cause);
	trouble_advise(why, "%s", probes->store_trouble.remedy);
	return false;
}

/* The link of that name, rather one that is attached. NULL: there is none. */
static const struct link_state *find_link(const struct link_state *links, size_t count,
					  const char *name)
{
	const struct link_state *found = NULL;

	for (size_t at = 0; at < count; at++)
		if (!strcmp(links[at].name, name) && (!found || links[at].attached))
			found = &links[at];
	return found;
}

static bool has_dataplane(const struct probes *probes, struct trouble *why)
{
	struct link_state links[ATTACH_INTERFACES_MAX];
	size_t count = 0;
	int err;

	if (!probes->pins || !probes->wanted_count)
		return true;
	err = links_list(probes->pins, links, ATTACH_INTERFACES_MAX, &count);
	if (err) {
		trouble_set(why, 0, "cannot see what is attached, in %s: %s", probes->pins->set,
			    strerror(-err));
		return false;
	}
	for (size_t at = 0; at < probes->wanted_count; at++) {
		const char *name = probes->wanted[at].name;
		const struct link_state *link = find_link(links, count, name);

		if (link && link->attached)
			continue;
		if (if_nametoindex(name))
			trouble_set(why, 0, "%s is not attached%s%s: its packets are not limited",
				    name, link ? ", " : "", link ? link->reason : "");
		else
			trouble_set(why, 0, "the interface %s is gone", name);
		trouble_advise(why, if_nametoindex(name)
					    ? "the log says why; sluice reload attaches it"
					    : "it is attached when it is there");
		return false;
	}
	return true;
}

static void tell_log(struct probes *probes, bool is_ready, const struct trouble *why)
{
	if (!is_ready && !probes->was_unready)
		log_line(LOG_LEVEL_WARNING, "not ready: %s%s%s", why->cause,
			 why->remedy[0] ? " -> " : "", why->remedy);
	if (is_ready && probes->was_unready)
		log_line(LOG_LEVEL_INFO, "ready again");
	probes->was_unready = !is_ready;
}

bool probes_is_ready(struct probes *probes, struct trouble *why)
{
	bool is_ready;

	(void)pthread_mutex_lock(&probes->lock);
	is_ready = has_dataplane(probes, why) && can_store(probes, why);
	tell_log(probes, is_ready, why);
	(void)pthread_mutex_unlock(&probes->lock);
	return is_ready;
}

/* ---- numbers */

void probes_metrics(struct probes *probes, struct exposition *out)
{
	struct trouble trouble; /* what cannot be read is said by sluice_dataplane_up */

	if (!probes->pins)
		return;
	(void)pthread_mutex_lock(&probes->lock);
	(void)numbers_write(probes->pins, probes->wanted, probes->wanted_count, &probes->table, out,
			    &trouble);
	(void)pthread_mutex_unlock(&probes->lock);
}
