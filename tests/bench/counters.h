/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a device has counted, asked over route netlink: a socket goes on speaking of the network
 * namespace that it was opened in, where /sys would speak of the mount's.
 */
#ifndef TESTS_BENCH_COUNTERS_H
#define TESTS_BENCH_COUNTERS_H

#include <errno.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A socket to ask with, or -errno. */
static inline int counters_open(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	return fd < 0 ? -errno : fd;
}

/* Fill *counters with those of the device ifindex. */
static inline int counters_get(int fd, unsigned ifindex, struct rtnl_link_stats64 *counters)
{
	struct {
		struct nlmsghdr header;
		struct if_stats_msg body;
	} request = {
		.header = { .nlmsg_len = sizeof(request),
			    .nlmsg_type = RTM_GETSTATS,
			    .nlmsg_flags = NLM_F_REQUEST },
		.body = { .ifindex = ifindex,
			  .filter_mask = IFLA_STATS_FILTER_BIT(IFLA_STATS_LINK_64) },
	};
	struct {
		struct nlmsghdr header;
		struct if_stats_msg body;
		struct nlattr attribute;
		struct rtnl_link_stats64 counters;
		char more[256]; /* a newer kernel counts more */
	} answer;
	ssize_t got;

	if (send(fd, &request, sizeof(request), 0) < 0)
		return -errno;
	got = recv(fd, &answer, sizeof(answer), 0);
	if (got < 0)
		return -errno;
	if (answer.header.nlmsg_type == NLMSG_ERROR)
		return ((struct nlmsgerr *)NLMSG_DATA(&answer.header))->error;
	if (got < (ssize_t)offsetof(typeof(answer), counters))
		return -EPROTO;
	got = answer.attribute.nla_len - NLA_HDRLEN;
	memset(counters, 0, sizeof(*counters));
	memcpy(counters, &answer.counters,
	       (size_t)got < sizeof(*counters) ? (size_t)got : sizeof(*counters));
	return 0;
}

#endif
