/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Our filter under an interface's clsact. It has no link, and anybody may change or delete it; so
 * it has one place that never changes, and whoever touches it looks first whose program is there.
 * The queueing discipline itself is shared: it is made if it is not there, and never taken away.
 *
 * Functions return 0 or -errno.
 */
#ifndef SLUICE_DATAPLANE_CLSACT_H
#define SLUICE_DATAPLANE_CLSACT_H

#include <stdbool.h>
#include <stdint.h>

/* `tc filter show dev eth0 ingress` says pref and handle. */
enum { CLSACT_PRIORITY = 79, CLSACT_HANDLE = 0x511ce };

/* The number of the program in our place. -ENOENT: there is none. */
int clsact_query(uint32_t ifindex, uint32_t *program_id);

/* Put a program in our place. -EEXIST: it is taken, unless replace. */
int clsact_attach(uint32_t ifindex, int program, bool replace);

/* Take away what runs that program; whatever else is in our place stays. Absent is fine. */
int clsact_remove(uint32_t ifindex, uint32_t program_id);

#endif
