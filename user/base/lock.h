/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A lock on a file or folder that one process holds for as long as it has it open: flock(2), so it
 * goes with the process however that ends, and a stale one is not to be had. */
#ifndef SLUICE_BASE_LOCK_H
#define SLUICE_BASE_LOCK_H

enum { LOCK_HOLDER_MAX = 40 };

/*
 * Take the lock without waiting: 0 or -errno. -EWOULDBLOCK: another has it, and holder says who, as
 * ` (process 4711)`, to be put behind a text; "" if that cannot be seen, as from another PID
 * namespace.
 */
int lock_take(int fd, char holder[LOCK_HOLDER_MAX]);

/* Who holds the lock on an open file or folder, without trying to take it; 0: nobody that we can see. */
int lock_holder(int fd);

#endif
