/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keeps the interfaces of the configuration attached while the daemon runs:
 *
 * - one that was not there, or went and came back, is attached by its name when it is there;
 * - one whose program or filter somebody took off behind sluice's back is attached again;
 * - one that was detached by `sluice detach` is left alone until the next reload. Which of the two
 * it was is told by the pin: detaching takes it away.
 *
 * What fails is tried again, ever more seldom, and said once for each cause. The configuration in
 * force is not touched, so that one which the command line has put in force stays.
 *
 * Used under service->reloading; the counters by any thread.
 */
#ifndef SLUICE_DAEMON_WATCH_H
#define SLUICE_DAEMON_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/trouble.h"
#include "dataplane/attach.h"
#include "limit/settings.h"
#include "wire/exposition.h"

enum watched_state {
	WATCHED_HELD,
	WATCHED_ABSENT, /* there is no interface of that name */
	WATCHED_LET_GO, /* by sluice detach */
};

struct watched {
	struct setting_interface setting;
	uint32_t ifindex; /* that was seen last; 0: none */
	enum watched_state state;
	uint64_t next_try_ns;
	uint64_t pause_ns; /* before the try after that */
	char said[sizeof(
		((struct trouble *)0)->cause)]; /* the last cause, so that it is said once */
};

struct watch {
	int changes_fd; /* -1: not to be had, then looking by time must do */
	uint64_t next_look_ns;
	struct watched *entries;
	size_t count;
	uint64_t come_back; /* attached because the interface came */
	uint64_t put_back;  /* attached because the program had been taken off */
	uint64_t failed;    /* tries */
};

/* Why an interface is to be attached. */
enum watch_reason {
	WATCH_CAME,
	WATCH_TAKEN_OFF,
};

void watch_init(struct watch *watch);
void watch_done(struct watch *watch);

/* Other interfaces, just attached so far as they are there: a copy made by watch_copy(), taken
 * over. watch_copy() returns 0 or -ENOMEM; its result is to be freed with free(). */
int watch_copy(const struct settings *settings, struct watched **out);
void watch_exchange(struct watch *watch, struct watched *copy, size_t count);

/* Whether it is time to look: something has changed, or two seconds have passed. */
bool watch_is_due(struct watch *watch, uint64_t now_ns);

/*
 * Look at what is attached, and call attach for each interface that has to be and whose time to try
 * has come. attach returns 0 or -errno with *trouble; -EAGAIN: somebody else is at work, later;
 * -ENOENT: there is no configuration to attach it under. Then true is returned: one has to be put
 * in force, which attaches all.
 */
bool watch_look(struct watch *watch, const struct pins *pins, uint64_t now_ns,
		int (*attach)(const struct setting_interface *, void *data, struct trouble *),
		void *data);

void watch_metrics(const struct watch *watch, struct exposition *out);

#endif
