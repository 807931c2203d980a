/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A route netlink socket in the groups for links and for traffic control. */
#include "dataplane/changes.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

int changes_open(void)
{
	const struct sockaddr_nl address = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_TC,
	};
	int err, fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd < 0)
		return -errno;
	if (!bind(fd, (const struct sockaddr *)&address, sizeof(address)))
		return fd;
	err = -errno;
	(void)close(fd);
	return err;
}

bool changes_seen(int fd)
{
	char message[8192];
	bool seen = false;

	/* ENOBUFS: there were more than the socket could hold, so there was one. */
	while (recv(fd, message, sizeof(message), 0) > 0 || errno == ENOBUFS || errno == EINTR)
		seen = true;
	return seen;
}
