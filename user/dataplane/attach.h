/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Attaching to interfaces and taking off again. All or nothing: whatever fails, and whenever the
 * process dies, what was there before is there again; see guard.h.
 */
#ifndef SLUICE_DATAPLANE_ATTACH_H
#define SLUICE_DATAPLANE_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sluice/abi.h>

#include "base/trouble.h"
#include "dataplane/devices.h"
#include "dataplane/link.h"
#include "dataplane/pins.h"
#include "limit/settings.h"

enum { ATTACH_INTERFACES_MAX = 64 };

/* How a program came to be on an interface, or would have. */
struct attached {
	char name[INTERFACE_NAME_MAX];
	uint32_t ifindex;
	enum attach_mode wanted;
	enum attach_mode require;
	enum attach_mode mode; /* MODE_NATIVE, MODE_TC or MODE_GENERIC */
	enum rung rung;
	bool frags;             /* takes frames in several buffers */
	bool renewed;           /* it was attached already, and got the new program in its place */
	uint32_t taken_from;    /* the version that held it, if that was another; 0 else */
	enum rung changed_from; /* it was attached otherwise; RUNG_NONE: it was not */
	char passed_over
		[PASSED_OVER_MAX]; /* why the better rungs were not to be had; "" if none was better */
};

/* What came of a set of another version. */
struct taken_over {
	uint32_t version; /* 0: there was none */
	bool keeps_debts; /* else addresses and node begin without any */
	uint32_t rules;   /* by hand, that are in force again */
	uint32_t rules_lost;
	char lost[400]; /* some of those, by name */
};

/* What a person has to know of it: `version 1: debts are kept, …`. */
enum { TAKEN_OVER_TEXT_MAX = 800 };
void taken_over_text(const struct taken_over *taken_over, char text[TAKEN_OVER_TEXT_MAX]);

struct attach_result {
	struct taken_over taken_over;
	struct attached interfaces[ATTACH_INTERFACES_MAX];
	size_t count;
};

/*
 * Load, attach to all interfaces of settings, and put settings in force, under pins that are locked.
 * confirm, if not NULL, is asked when all is in force; if it says no, or the process dies before it
 * has said yes, everything is taken back (-ECANCELED). 0 or -errno with *trouble.
 */
int attach_all(struct pins *pins, const struct settings *settings,
	       bool (*confirm)(const struct attach_result *, void *), void *data,
	       struct attach_result *result, struct trouble *trouble);

/* Put settings in force where sluice is attached already, without attaching anywhere; else the same.
 * -ENOENT: there are no maps of this version. */
int attach_configure(struct pins *pins, const struct settings *settings,
		     bool (*confirm)(const struct attach_result *, void *), void *data,
		     struct trouble *trouble);

/*
 * Attach to further interfaces, under the configuration that is in force. -ENOENT: there is none of
 * this version. Else as attach_all().
 */
int attach_more(struct pins *pins, const struct setting_interface *interfaces, size_t count,
		struct attach_result *result, struct trouble *trouble);

/*
 * Take the program off an interface, by whatever holds it there; the last one takes the maps with it.
 * -ENOENT: it is not attached there. Wants the lock, if there is a folder to lock.
 */
int detach_one(struct pins *pins, uint32_t ifindex, struct trouble *trouble);

/*
 * Take off everything, of this version and of any other, whatever state it is in, also what no pin
 * tells of any more (strays.h). *count: programs. What cannot be taken off does not keep the rest;
 * *trouble has the first of it.
 */
int detach_all(struct pins *pins, unsigned *count, struct trouble *trouble);

/* Unpin the links whose interfaces are gone: nothing can come of them any more. */
void links_forget_dead(const struct pins *pins);

/* One interface that has a pinned link. */
struct link_state {
	uint32_t ifindex; /* it was made for */
	/* That it was attached by, if it is gone; "" if that is not known, or in another namespace. */
	char name[INTERFACE_NAME_MAX];
	bool attached;         /* false: the interface is gone, or the program was taken off */
	const char *reason;    /* why packets there are not limited, or not by us to see; NULL */
	enum attach_mode mode; /* MODE_NATIVE, MODE_TC or MODE_GENERIC */
	enum rung rung;
	enum attach_mode
		wanted; /* when it was attached, as the next; MODE_AUTO if it is not known */
	char passed_over[PASSED_OVER_MAX];
	uint32_t program_id;
	char program[16];
};

int links_list(const struct pins *pins, struct link_state *links, size_t max, size_t *count);

#endif
