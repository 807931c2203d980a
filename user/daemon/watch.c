/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Compares what is attached with what ought to be; see watch.h. */
#include "daemon/watch.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/log.h"
#include "dataplane/changes.h"

#define NS_PER_S 1000000000ULL

enum {
	LOOK_S = 2,
	PAUSE_FIRST_S = 2,
	PAUSE_MAX_S = 64,
};

void watch_init(struct watch *watch)
{
	*watch = (struct watch){ .changes_fd = changes_open() };
	if (watch->changes_fd < 0)
		log_line(LOG_LEVEL_WARNING,
			 "the kernel does not tell of interfaces that come and go: "
			 "%s; they are looked for each %d s",
			 strerror(-watch->changes_fd), LOOK_S);
}

void watch_done(struct watch *watch)
{
	if (watch->changes_fd >= 0)
		(void)close(watch->changes_fd);
	free(watch->entries);
	*watch = (struct watch){ .changes_fd = -1 };
}

int watch_copy(const struct settings *settings, struct watched **out)
{
	struct watched *copy = calloc(settings->interface_count + 1, sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	for (size_t at = 0; at < settings->interface_count; at++)
		copy[at].setting = settings->interfaces[at];
	*out = copy;
	return 0;
}

void watch_exchange(struct watch *watch, struct watched *copy, size_t count)
{
	for (size_t at = 0; at < count; at++) {
		copy[at].ifindex = if_nametoindex(copy[at].setting.name);
		copy[at].state = copy[at].ifindex ? WATCHED_HELD : WATCHED_ABSENT;
		copy[at].pause_ns = PAUSE_FIRST_S * NS_PER_S;
	}
	free(watch->entries);
	watch->entries = copy;
	watch->count = count;
}

bool watch_is_due(struct watch *watch, uint64_t now_ns)
{
	bool changed = watch->changes_fd >= 0 && changes_seen(watch->changes_fd);

	if (!changed && now_ns < watch->next_look_ns)
		return false;
	watch->next_look_ns = now_ns + LOOK_S * NS_PER_S;
	return watch->count > 0;
}

/* ---- one interface */

struct links {
	struct link_state of[ATTACH_INTERFACES_MAX];
	size_t count;
};

static const struct link_state *find_link(const struct links *links, uint32_t ifindex)
{
	for (size_t at = 0; ifindex && at < links->count; at++)
		if (links->of[at].ifindex == ifindex)
			return &links->of[at];
	return NULL;
}

static void note_absent(struct watched *one, const struct links *links)
{
	const struct link_state *link = find_link(links, one->ifindex);

	if (link && link->attached && link->name[0])
		log_line(
			LOG_LEVEL_WARNING,
			"%s is called %s now, and stays limited; another that is called %s will be "
			"attached as well",
			one->setting.name, link->name, one->setting.name);
	else
		log_line(LOG_LEVEL_WARNING, "%s is gone; it is attached again when it comes back",
			 one->setting.name);
	one->state = WATCHED_ABSENT;
	one->ifindex = 0;
}

static void note_let_go(struct watched *one)
{
	log_line(LOG_LEVEL_WARNING, "%s was detached, and is left alone until a reload",
		 one->setting.name);
	one->state = WATCHED_LET_GO;
}

static void note_held(struct watched *one, uint32_t ifindex, uint64_t now_ns)
{
	one->state = WATCHED_HELD;
	one->ifindex = ifindex;
	one->said[0] = '\0';
	/* Who takes it off again and again gets it back ever more seldom. */
	if (now_ns > one->next_try_ns + PAUSE_MAX_S * NS_PER_S)
		one->pause_ns = PAUSE_FIRST_S * NS_PER_S;
}

/* Whether to attach it, and why. */
static bool is_wanted(struct watched *one, const struct links *links, uint64_t now_ns,
		      enum watch_reason *reason)
{
	uint32_t ifindex = if_nametoindex(one->setting.name);
	const struct link_state *link = find_link(links, ifindex);

	/* Another number under the same name: it went and came between two looks. */
	if (one->state == WATCHED_HELD && one->ifindex != ifindex)
		note_absent(one, links);
	if (!ifindex)
		return false;
	if (link && link->attached) {
		note_held(one, ifindex, now_ns);
		return false;
	}
	*reason = link && ifindex == one->ifindex ? WATCH_TAKEN_OFF : WATCH_CAME;
	if (one->state == WATCHED_LET_GO)
		return false;
	if (!link && one->ifindex == ifindex && one->state == WATCHED_HELD) {
		note_let_go(one);
		return false;
	}
	return now_ns >= one->next_try_ns;
}

static void tell(struct watched *one, enum watch_reason reason, int err,
		 const struct trouble *trouble)
{
	const char *name = one->setting.name;

	if (!err && reason == WATCH_CAME) {
		log_line(LOG_LEVEL_INFO, "%s has come, and is attached", name);
	} else if (!err) {
		log_line(LOG_LEVEL_WARNING, "somebody else took the program off %s; it is put back",
			 name);
	} else if (strcmp(one->said, trouble->cause)) {
		(void)snprintf(one->said, sizeof(one->said), "%s", trouble->cause);
		log_line(LOG_LEVEL_ERROR, "%s is there and cannot be attached: %s%s%s", name,
			 trouble->cause, trouble->remedy[0] ? " -> " : "", trouble->remedy);
	}
}

static void count_up(uint64_t *counter)
{
	(void)__atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

/* What came of a try, and when the next may be. */
static void settle(struct watch *watch, struct watched *one, enum watch_reason reason,
		   uint64_t now_ns, int err, const struct trouble *trouble)
{
	one->next_try_ns = now_ns + one->pause_ns;
	if (one->pause_ns < PAUSE_MAX_S * NS_PER_S)
		one->pause_ns *= 2;
	if (err == -ENOENT)
		return;
	count_up(err                    ? &watch->failed
		 : reason == WATCH_CAME ? &watch->come_back
					: &watch->put_back);
	tell(one, reason, err, trouble);
	if (err)
		return;
	one->ifindex = if_nametoindex(one->setting.name);
	one->state = WATCHED_HELD;
}

bool watch_look(struct watch *watch, const struct pins *pins, uint64_t now_ns,
		int (*attach)(const struct setting_interface *, void *data, struct trouble *),
		void *data)
{
	struct links links = {};
	int err = links_list(pins, links.of, ATTACH_INTERFACES_MAX, &links.count);

	for (size_t at = 0; !err && at < watch->count; at++) {
		struct watched *one = &watch->entries[at];
		struct trouble trouble = {};
		enum watch_reason reason;
		int result;

		if (!is_wanted(one, &links, now_ns, &reason))
			continue;
		result = attach(&one->setting, data, &trouble);
		if (result == -EAGAIN)
			continue;
		settle(watch, one, reason, now_ns, result, &trouble);
		if (result == -ENOENT)
			return true;
	}
	return false;
}

void watch_metrics(const struct watch *watch, struct exposition *out)
{
	exposition_family(
		out, EXPOSITION_COUNTER, "sluice_attached_again_total",
		"Interfaces of the configuration that the daemon has attached again, by why");
	for (int reason = WATCH_CAME; reason <= WATCH_TAKEN_OFF; reason++) {
		const struct exposition_label label = {
			.name = "reason",
			.value = reason == WATCH_CAME ? "came" : "taken_off",
		};

		exposition_count(
			out, &label, 1,
			__atomic_load_n(reason == WATCH_CAME ? &watch->come_back : &watch->put_back,
					__ATOMIC_RELAXED));
	}
	exposition_family(out, EXPOSITION_COUNTER, "sluice_attach_failures_total",
			  "Tries to attach an interface again that failed");
	exposition_count(out, NULL, 0, __atomic_load_n(&watch->failed, __ATOMIC_RELAXED));
}
