/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel says who holds a lock in /proc/locks only. */
#include "base/lock.h"

#include <errno.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

int lock_holder(int fd)
{
	FILE *locks = fopen("/proc/locks", "re");
	struct stat status;
	char line[256];
	int found = 0;

	if (!locks || fstat(fd, &status)) {
		if (locks)
			(void)fclose(locks);
		return 0;
	}
	/* 1: FLOCK  ADVISORY  WRITE 4711 08:01:247066 0 EOF */
	while (!found && fgets(line, sizeof(line), locks)) {
		unsigned major_number, minor_number;
		unsigned long long inode;
		int pid;

		if (sscanf(line, "%*u: FLOCK %*s %*s %d %x:%x:%llu", &pid, &major_number,
			   &minor_number, &inode) == 4 &&
		    inode == status.st_ino && major_number == major(status.st_dev) &&
		    minor_number == minor(status.st_dev) && pid > 0)
			found = pid;
	}
	(void)fclose(locks);
	return found;
}

int lock_take(int fd, char holder[LOCK_HOLDER_MAX])
{
	int err, pid;

	holder[0] = '\0';
	if (!flock(fd, LOCK_EX | LOCK_NB))
		return 0;
	err = -errno;
	pid = err == -EWOULDBLOCK ? lock_holder(fd) : 0;
	if (pid)
		(void)snprintf(holder, LOCK_HOLDER_MAX, " (process %d)", pid);
	return err;
}
