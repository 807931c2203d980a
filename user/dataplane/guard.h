/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keeps an attach all or nothing even if its process is killed.
 *
 * A child waits at the end of a pipe. If the pipe closes before the parent has said that all is well,
 * the parent is dead, and the child takes back what it had done so far; it reads that in memory that
 * both share. (From a certain point on it finishes instead.) It holds the lock, too, so that nobody comes between. The parent takes back its own
 * failures by the same function.
 */
#ifndef SLUICE_DATAPLANE_GUARD_H
#define SLUICE_DATAPLANE_GUARD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "dataplane/attach.h"
#include "dataplane/pins.h"

/* What has been done so far. Each member is set before the thing it names is done. */
struct undo {
	struct pins pins;
	bool fresh; /* there was no set before: take all of it away */
	bool turned_over;
	uint32_t active_before; /* configuration slot, if turned over */
	uint32_t links[ATTACH_INTERFACES_MAX]; /* interfaces that got a link of their own */
	uint32_t link_count;
	/* Links that run another program than before: where they stood, and whose. See switch.h. */
	struct undo_switch {
		uint32_t ifindex;
		uint32_t version; /* of the set they belonged to: it stands in v<version> */
	} switches[ATTACH_INTERFACES_MAX];
	uint32_t switch_count;
	uint32_t others[OTHER_VERSIONS_MAX]; /* sets that are taken over, by version */
	uint32_t other_count;
	bool is_final; /* all is in force and stays: finish, do not take back */
};

struct guard {
	struct undo *undo; /* shared with the child */
	pid_t child;
	int pipe_fd;
};

/* Start to guard. 0 or -errno. */
int guard_start(struct guard *guard, const struct pins *pins);

/* All is well: nothing is to be taken back. */
void guard_commit(struct guard *guard);

/* Take back all that *guard->undo names, and end the guard. */
void guard_roll_back(struct guard *guard);

#endif
