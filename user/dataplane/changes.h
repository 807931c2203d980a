/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's word that something about interfaces has changed in this network namespace: one
 * came, went, was renamed, or lost a filter. What has changed is not said, since messages get lost
 * when many come; whoever hears of it looks for himself.
 */
#ifndef SLUICE_DATAPLANE_CHANGES_H
#define SLUICE_DATAPLANE_CHANGES_H

#include <stdbool.h>

/* A descriptor to be closed, or -errno. */
int changes_open(void);

/* Whether there was a change since the last time. Does not wait. */
bool changes_seen(int fd);

#endif
