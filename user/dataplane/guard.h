/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keeps an attach all or nothing even if its process is killed.
 *
 * A child waits at the end of a pipe. If the pipe closes before the parent has said that all is well,
 * the parent is dead, and the child takes back what it had done so far; it reads that in memory that
 * both share. (From a certain point on it finishes instead.) It holds the lock, too, so that nobody
 * comes between. The parent takes back its own failures by the same function.
 */
#ifndef SLUICE_DATAPLANE_GUARD_H
#define SLUICE_DATAPLANE_GUARD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "dataplane/attach.h"
#include "dataplane/link.h"
#include "dataplane/pins.h"

enum undo_what {
	UNDO_MADE,    /* a link or filter of our own: to be removed */
	UNDO_RENEWED, /* what was there runs another program: to run the old one again */
	UNDO_PARKED,  /* the same; but if all is well, it is of no use any more */
};

struct undo_step {
	enum undo_what what;
	enum link_kind kind;
	uint32_t ifindex;
	uint32_t version; /* of the set that a renewed link belongs to: it stands in v<version> */
};

/* On each interface something is made at most once, and what was there is renewed or parked. */
enum { LINKS_OF_ONE_MAX = 8, UNDO_STEPS_MAX = ATTACH_INTERFACES_MAX * (1 + LINKS_OF_ONE_MAX) };

/* What has been done so far. Each member is set before the thing it names is done. */
struct undo {
	struct pins pins;
	bool fresh; /* there was no set before: take all of it away */
	bool turned_over;
	uint32_t active_before; /* configuration slot, if turned over */
	struct undo_step steps[UNDO_STEPS_MAX];
	uint32_t step_count;
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
