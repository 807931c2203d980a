/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Taking over from a sluice of another map version, earlier or later, without a gap.
 *
 * The new set is loaded beside the old one, on the very maps that hold the buckets (so that no
 * address gets a second burst), and gets a configuration before the first interface is switched to
 * it. Then each pinned link gets the new program in the place of the old, and at last the old set
 * is removed. Whatever fails before that, the old program is put back on each link: see link.h,
 * guard.h.
 *
 * What is adopted, and why it stays exact while both programs run: a bucket is a word, charged by
 * compare-and-swap, and both programs do that on the same words. node_slices are not: what the old
 * program holds unspent was charged when it was taken, and is dropped with it, so that the node
 * admits less by it, never more. While the switch goes on, both may hold slices. Counted from its
 * beginning that adds nothing, since each slice was taken off the one bucket.
 *
 * Needs the lock of the pins. Functions return 0 or -errno with *trouble unless they say otherwise.
 */
#ifndef SLUICE_DATAPLANE_TAKEOVER_H
#define SLUICE_DATAPLANE_TAKEOVER_H

#include "base/trouble.h"
#include "dataplane/attach.h"
#include "dataplane/guard.h"
#include "dataplane/maps.h"
#include "dataplane/pins.h"

struct takeover {
	uint32_t versions[OTHER_VERSIONS_MAX]; /* sets that are there, but our own */
	size_t count;
	uint32_t from;             /* the latest of them; 0: there is none */
	bool fresh;                /* we have no set yet: it is made on the maps of that one */
	bool keeps_debts;          /* ours are its buckets */
	int fd[MAPS];              /* maps to load the programs on; -1: a new one */
	struct siphash_key secret; /* that ip_buckets was filled under */
	uint32_t active;           /* its configuration slot */
};

/*
 * Look for sets of other versions, and if we have none yet (fresh), for what can be adopted. A set
 * of a later version whose debts we cannot read is refused with -EPROTO. takeover_close() in any
 * case.
 */
int takeover_open(struct takeover *takeover, const struct pins *pins, bool fresh,
		  struct trouble *trouble);
void takeover_close(struct takeover *takeover);

/* Append to *result the interfaces that other sets hold and that it does not name. */
int takeover_interfaces(const struct takeover *takeover, const struct pins *pins,
			struct attach_result *result, struct trouble *trouble);

/* If our maps are new, they get what goes over: the secret and the rules by hand. Says in
 * *taken_over what comes of it. */
int takeover_fill(const struct takeover *takeover, const struct pins *pins, struct maps *maps,
		  struct taken_over *taken_over, struct trouble *trouble);

/* Move the links that were switched into our set. */
int takeover_publish(const struct undo *undo, struct trouble *trouble);

/* Move them back, to be switched back there. */
void takeover_withdraw(const struct undo *undo);

/* Remove the sets that nothing is held by any more. */
void takeover_finish(const struct undo *undo);

#endif
