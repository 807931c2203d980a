/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One program in the place of another on a pinned link, so that the other can be put back, also by
 * a process that comes later. Three pins of an interface take part, beside each other in one
 * folder:
 *
 *     link_3       what holds the program to the interface
 *     program_3    the program that the link runs
 *     before_3     while an attach is under way: the program it ran before
 *
 * Programs are pinned because a program cannot be had back from its link, and by its number only
 * with CAP_SYS_ADMIN, which the daemon has not.
 */
#ifndef SLUICE_DATAPLANE_SWITCH_H
#define SLUICE_DATAPLANE_SWITCH_H

#include <stdint.h>

#include "base/trouble.h"

/* Pin what the interface runs now, by its number, as before_*. 0 or -errno with *trouble. */
int switch_keep(const char *folder, uint32_t ifindex, uint32_t program_id, struct trouble *trouble);

/* Pin what it runs from now on as program_*. 0 or -errno with *trouble. */
int switch_note(const char *folder, uint32_t ifindex, int program_fd, struct trouble *trouble);

/* The kept program, for putting it back; -errno: none was kept. The caller closes it. */
int switch_kept(const char *folder, uint32_t ifindex);

/* Put the kept program back on the pinned link. If none was kept, nothing is done. */
void switch_back(const char *folder, uint32_t ifindex);

/* It is put back, however: it is what the interface runs. */
void switch_restored(const char *folder, uint32_t ifindex);

/* The switch is final: the kept program is let go. */
void switch_done(const char *folder, uint32_t ifindex);

/* The interface is let go: none of its program's pins is needed. */
void switch_forget(const char *folder, uint32_t ifindex);

#endif
