/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One interface held by one program, whatever holds it: an XDP link, a tcx link, or a clsact
 * filter. Pins of an interface, in one folder (a set, or staging):
 *
 *     link_3                an XDP link
 *     tcx_3                 a tcx link
 *     clsact_3_4026531840   a filter's program, and its network namespace: unlike a link a filter
 *                           does not know where it is, and numbers of interfaces repeat
 *     program_3             the program that link_3 runs (program_tcx_3 that of tcx_3)
 *     before_3              while an attach is under way: the program that it ran before
 *                           (before_tcx_3, before_clsact_3_…)
 *
 * Programs are pinned because a program cannot be had back from its link, and by its number only
 * with CAP_SYS_ADMIN, which the daemon has not.
 *
 * Functions return 0 or -errno. Not thread safe.
 */
#ifndef SLUICE_DATAPLANE_LINK_H
#define SLUICE_DATAPLANE_LINK_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include <sluice/abi.h>

#include "limit/settings.h"

enum link_kind { LINK_XDP, LINK_TCX, LINK_CLSACT, LINK_KINDS };

/* What stands on the interface is the pass-through program of a change of mode. */
#define LINK_PARKED "sluice_parked"

struct link_name {
	enum link_kind kind;
	uint32_t ifindex;
	uint64_t netns; /* inode; with LINK_CLSACT only */
};

struct link_facts {
	enum link_kind kind;
	enum rung rung;
	uint32_t ifindex;
	uint32_t program_id;
	char program[16]; /* "" if we may not know */
};

/* Whether a pin of that name holds an interface. out may be NULL. */
bool link_parse(const char *name, struct link_name *out);

/* Its path, for this network namespace; and those of the programs beside it. */
const char *link_path(const char *folder, enum link_kind kind, uint32_t ifindex,
		      char buffer[PATH_MAX]);
const char *link_program_path(const char *folder, enum link_kind kind, uint32_t ifindex,
			      char buffer[PATH_MAX]);
const char *link_before_path(const char *folder, enum link_kind kind, uint32_t ifindex,
			     char buffer[PATH_MAX]);

/*
 * What a pin holds. -ENOENT: there is no such pin. -ENODEV: its interface is gone. -ENOLINK: the
 * interface is here, and somebody has taken the program off. -EXDEV: it is of another network
 * namespace. *facts has kind, ifindex and, if it can be known, the program also after these.
 */
int link_look(const char *path, struct link_facts *facts);

/*
 * The same by the number of the interface; 0 or as above. Numbers of interfaces are given out in
 * each network namespace anew, so the number alone does not tell.
 */
int link_examine(const char *path, uint32_t ifindex, enum attach_mode *mode, uint32_t *program_id);

/*
 * Put a program on an interface and pin both, in such an order that a death at any moment leaves
 * something that link_remove() finds, or nothing. replace: a filter in our place may be replaced.
 * *is_pinning: it failed for the sake of a pin, not of the rung.
 */
int link_make(enum rung rung, int program, uint32_t ifindex, const char *folder, bool replace,
	      bool *is_pinning);

/* Keep what a link in a folder runs now as before_*. -EPERM: we cannot get at it. */
int link_keep(const struct link_facts *facts, const char *folder);

/* Have a link in a folder run another program; that is pinned in the folder `note`, often the same.
 */
int link_renew(const struct link_facts *facts, const char *folder, int program, const char *note);

/* Have it run a program that lets every packet pass, until it is renewed or removed. */
int link_park(const struct link_facts *facts, const char *folder);

/* Have it run what was kept; if nothing was, nothing is done. */
void link_put_back(const char *folder, enum link_kind kind, uint32_t ifindex);

/* The new program is there to stay: what was kept is let go. */
void link_let_go(const char *folder, enum link_kind kind, uint32_t ifindex);

/* Take the program off, and unpin all. Absent is fine. -EXDEV: a filter of another network
 * namespace stays, with its pin. */
int link_remove(const char *path);

/* Move all pins of a link from one folder to another. */
int link_move(const char *from, const char *to, enum link_kind kind, uint32_t ifindex);

#endif
