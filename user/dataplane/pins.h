/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where things are pinned, and who may work on them.
 *
 *     <bpffs>/              /sys/fs/bpf/sluice; locked while something is changed
 *       v2/                 SLUICE_ABI_VERSION
 *         ip_buckets …      the maps
 *         link_3            one for each interface, by ifindex, or tcx_3, clsact_3_…: link.h
 *       staging/            what an attach has made and not yet put in force
 *       daemon/             the daemon's debts: tenants, tenants_secret
 *
 * Functions return 0 or -errno and fill *trouble on failure. Not thread safe.
 */
#ifndef SLUICE_DATAPLANE_PINS_H
#define SLUICE_DATAPLANE_PINS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/trouble.h"

#define PINS_DEFAULT "/sys/fs/bpf/sluice"

enum { OTHER_VERSIONS_MAX = 8 };

struct pins {
	char root[PATH_MAX - 64];
	char set[PATH_MAX - 48];     /* root/v2 */
	char staging[PATH_MAX - 48]; /* root/staging */
	char daemon[PATH_MAX - 48];  /* root/daemon */
	int lock_fd;                 /* -1: not locked */
};

/* root: NULL for the default. Touches nothing. */
int pins_init(struct pins *pins, const char *root, struct trouble *trouble);

/*
 * Make sure that root is on a BPF file system, make the folder, and lock it against others. Waits up
 * to five seconds for another sluice. -EBUSY: still locked. With make false, -ENOENT if it is not
 * there. pins_unlock() undoes it.
 */
int pins_lock(struct pins *pins, bool make, struct trouble *trouble);
void pins_unlock(struct pins *pins);

/* The same without waiting and making. -EAGAIN: somebody else has it. */
int pins_lock_now(struct pins *pins, struct trouble *trouble);

/* Whether there is a set of our version. */
bool pins_exist(const struct pins *pins);

/* The folder of a set of any version. */
const char *pins_version_path(const struct pins *pins, uint32_t version, char buffer[PATH_MAX]);

/* Call visit for each set that is there but our own, until it returns other than 0. */
int pins_each_version(const struct pins *pins, int (*visit)(uint32_t version, void *data),
		      void *data);

/* The path of a pin in a folder (set or staging); the result lies in buffer. */
const char *pins_path(const char *folder, const char *name, char buffer[PATH_MAX]);

/* Call visit for each pin that holds an interface (link.h), until it returns other than 0. */
int pins_each_link(const char *folder, int (*visit)(uint32_t ifindex, const char *path, void *data),
		   void *data);

/* Unpin all that is in a folder, and remove it. Absent is fine. */
int pins_remove(const char *folder);

#endif
