/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Addresses that this host cannot do without: its own, those of the gateways of its default routes,
 * and those of its resolvers; and the session of who asks.
 */
#include "dataplane/probe.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/if_addr.h>
#include <linux/rtnetlink.h>

#include "base/parse.h"
#include "dataplane/netlink.h"

static void add(struct network_facts *out, enum neighbour_role role, const union address *address)
{
	static const union address loopback = { .byte = { [15] = 1 } };

	/* Of this host alone, and never on a wire: 127.0.0.0/8, ::1. */
	if (address_is_v4(address) ? address->byte[12] == 127
				   : !memcmp(address, &loopback, sizeof(loopback)))
		return;
	for (size_t at = 0; at < out->count; at++)
		if (out->list[at].role == role &&
		    !memcmp(&out->list[at].address, address, sizeof(*address)))
			return;
	if (out->count < NEIGHBOURS_MAX)
		out->list[out->count++] = (struct neighbour){ role, *address };
}

/* The address in an attribute, of four bytes or sixteen. */
static bool read_address(struct netlink_attributes within, uint16_t type, int family,
			 union address *out)
{
	const void *value = netlink_value(within, type, family == AF_INET ? 4 : 16);

	if (!value)
		return false;
	if (family == AF_INET) {
		*out = (union address){ .byte = { [10] = 0xff, [11] = 0xff } };
		memcpy(out->byte + 12, value, 4);
	} else {
		memcpy(out->byte, value, 16);
	}
	return true;
}

static int visit_address(const struct nlmsghdr *message, void *data)
{
	const struct ifaddrmsg *fixed = NLMSG_DATA(message);
	struct netlink_attributes all = netlink_read(message, sizeof(*fixed));
	union address address;

	if (message->nlmsg_type != RTM_NEWADDR)
		return 0;
	/* With a peer, IFA_ADDRESS is the peer's. */
	if (read_address(all, IFA_LOCAL, fixed->ifa_family, &address) ||
	    read_address(all, IFA_ADDRESS, fixed->ifa_family, &address))
		add(data, ROLE_OWN, &address);
	return 0;
}

/* Several gateways of one route. */
static void visit_nexthops(struct netlink_attributes hops, int family, struct network_facts *out)
{
	const char *at = hops.first;
	size_t left = hops.bytes;
	union address address;

	while (left >= sizeof(struct rtnexthop)) {
		const struct rtnexthop *hop = (const struct rtnexthop *)(const void *)at;
		struct netlink_attributes within;
		size_t length = hop->rtnh_len;

		if (length < sizeof(*hop) || length > left)
			return;
		within = (struct netlink_attributes){ at + sizeof(*hop), length - sizeof(*hop) };
		if (read_address(within, RTA_GATEWAY, family, &address))
			add(out, ROLE_GATEWAY, &address);
		length = RTNH_ALIGN(length);
		if (length > left)
			return;
		at += length;
		left -= length;
	}
}

static int visit_route(const struct nlmsghdr *message, void *data)
{
	const struct rtmsg *fixed = NLMSG_DATA(message);
	struct netlink_attributes all = netlink_read(message, sizeof(*fixed));
	struct network_facts *out = data;
	char name[IF_NAMESIZE] = "";
	union address address;

	if (message->nlmsg_type != RTM_NEWROUTE || fixed->rtm_dst_len ||
	    fixed->rtm_type != RTN_UNICAST)
		return 0;
	if (read_address(all, RTA_GATEWAY, fixed->rtm_family, &address))
		add(out, ROLE_GATEWAY, &address);
	visit_nexthops(netlink_within(netlink_find(all, RTA_MULTIPATH)), fixed->rtm_family, out);
	if (!out->default_interface[0] && if_indextoname(netlink_u32(all, RTA_OIF, 0), name))
		(void)snprintf(out->default_interface, sizeof(out->default_interface), "%s", name);
	return 0;
}

static void read_network(struct network_facts *out)
{
	struct netlink_request request;
	struct netlink netlink;

	if (netlink_open(&netlink, NETLINK_ROUTE))
		return;
	(void)netlink_begin(&request, RTM_GETADDR, NLM_F_DUMP, sizeof(struct ifaddrmsg));
	(void)netlink_ask(&netlink, &request, visit_address, out);
	(void)netlink_begin(&request, RTM_GETROUTE, NLM_F_DUMP, sizeof(struct rtmsg));
	(void)netlink_ask(&netlink, &request, visit_route, out);
	netlink_close(&netlink);
}

static void read_resolvers(const char *path, struct network_facts *out)
{
	FILE *file = fopen(path, "re");
	char line[256], text[64];
	union address address;

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, " nameserver %63s", text) != 1)
			continue;
		text[strcspn(text, "%")] = '\0'; /* the zone of a link-local address */
		if (!parse_address(text, &address))
			add(out, ROLE_RESOLVER, &address);
	}
	if (file)
		(void)fclose(file);
}

void probe_network(struct network_facts *out)
{
	*out = (struct network_facts){};
	read_network(out);
	read_resolvers("/etc/resolv.conf", out);
	/* Where systemd-resolved stands between, its own file has those that it asks. */
	read_resolvers("/run/systemd/resolve/resolv.conf", out);
}

void probe_session(const char *ssh_connection, struct session_facts *out)
{
	char peer[64], own[64];
	unsigned peer_port, port;

	*out = (struct session_facts){};
	if (!ssh_connection ||
	    sscanf(ssh_connection, "%63s %u %63s %u", peer, &peer_port, own, &port) != 4)
		return;
	peer[strcspn(peer, "%")] = '\0';
	if (parse_address(peer, &out->peer) || port > UINT16_MAX)
		return;
	out->port = (uint16_t)port;
	out->is_known = true;
}
