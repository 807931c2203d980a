/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The programs as loaded into the kernel by this process. The only user of the skeleton. */
#ifndef SLUICE_DATAPLANE_OBJECT_H
#define SLUICE_DATAPLANE_OBJECT_H

#include <stdbool.h>

#include "base/trouble.h"
#include "dataplane/maps.h"

struct object;

/* Let libbpf say what it does on standard error. Not thread safe. */
void object_set_verbose(bool verbose);

/*
 * Load the programs on the maps given, by their descriptors; -1: on a new one; NULL: all new. The
 * timer that sweeps the table is armed. 0 or -errno with *trouble; *out is the caller's.
 */
int object_load(const int adopted[MAPS], struct object **out, struct trouble *trouble);

/* NULL is fine. Programs that are attached by a link stay. */
void object_free(struct object *object);

/* The descriptor of a program; -1 if this kernel has no such kind. They stay the object's. */
int object_single_fd(const struct object *object);
int object_frags_fd(const struct object *object);
int object_tc_fd(const struct object *object);

/* Open the object's maps for user space. */
int object_maps(const struct object *object, struct maps *maps);

/* Pin all maps in a folder that exists. */
int object_pin_maps(const struct object *object, const char *folder, struct trouble *trouble);

#endif
