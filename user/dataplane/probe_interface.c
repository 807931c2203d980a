/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An interface: what it is, what its driver can do, where it stands among others. Who is attached
 * to it is found in probe_programs.c.
 */
#include "dataplane/probe.h"

#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/genetlink.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>

#include "dataplane/netlink.h"
#include "dataplane/probe_programs.h"

/* Of the kernel's netdev family (Linux 6.3), which the headers of Debian 12 do not have. */
enum {
	NETDEV_GET = 1,
	NETDEV_IFINDEX = 1,
	NETDEV_XDP_FEATURES = 3,
};

/* What one message about a link says. */
struct link_message {
	char name[IF_NAMESIZE];
	char kind[24];
	uint32_t ifindex, mtu, master, lower, transmit_queues;
	bool is_up, lower_is_elsewhere, is_tap;
	uint16_t hardware;
};

static int read_link(const struct nlmsghdr *message, void *data)
{
	const struct ifinfomsg *fixed = NLMSG_DATA(message);
	struct netlink_attributes all = netlink_read(message, sizeof(*fixed));
	struct netlink_attributes about = netlink_within(netlink_find(all, IFLA_LINKINFO));
	struct netlink_attributes own = netlink_within(netlink_find(about, IFLA_INFO_DATA));
	struct link_message *out = data;
	const uint8_t *type;

	*out = (struct link_message){
		.ifindex = (uint32_t)fixed->ifi_index,
		.hardware = fixed->ifi_type,
		.is_up = fixed->ifi_flags & IFF_UP,
		.mtu = netlink_u32(all, IFLA_MTU, 0),
		.master = netlink_u32(all, IFLA_MASTER, 0),
		.lower = netlink_u32(all, IFLA_LINK, 0),
		.transmit_queues = netlink_u32(all, IFLA_NUM_TX_QUEUES, 0),
		.lower_is_elsewhere = netlink_find(all, IFLA_LINK_NETNSID),
	};
	netlink_text(all, IFLA_IFNAME, out->name, sizeof(out->name));
	netlink_text(about, IFLA_INFO_KIND, out->kind, sizeof(out->kind));
	type = strcmp(out->kind, "tun") ? NULL : netlink_value(own, IFLA_TUN_TYPE, 1);
	out->is_tap = type && *type == IFF_TAP;
	return 0;
}

/* By name, or with NULL by number. */
static int ask_link(struct netlink *netlink, const char *name, uint32_t ifindex,
		    struct link_message *out)
{
	struct netlink_request request;
	struct ifinfomsg *fixed = netlink_begin(&request, RTM_GETLINK, 0, sizeof(*fixed));

	fixed->ifi_index = (int)ifindex;
	if (name)
		netlink_add(&request, IFLA_IFNAME, name, strlen(name) + 1);
	return netlink_ask(netlink, &request, read_link, out);
}

struct members {
	uint32_t master;
	struct interface_facts *out;
};

static int take_member(const struct nlmsghdr *message, void *data)
{
	struct members *members = data;
	struct interface_facts *out = members->out;
	struct link_message link;
	size_t length = strlen(out->members);

	(void)read_link(message, &link);
	if (link.master != members->master)
		return 0;
	out->has_members = true;
	(void)snprintf(out->members + length, sizeof(out->members) - length, "%s%s",
		       length ? " " : "", link.name);
	return 0;
}

static void find_members(struct netlink *netlink, struct interface_facts *out)
{
	struct members members = { out->ifindex, out };
	struct netlink_request request;

	(void)netlink_begin(&request, RTM_GETLINK, NLM_F_DUMP, sizeof(struct ifinfomsg));
	(void)netlink_ask(netlink, &request, take_member, &members);
}

/* What stands above and below it. */
static void find_relatives(struct netlink *netlink, const struct link_message *self,
			   struct interface_facts *out)
{
	struct link_message other;

	if (self->master && !ask_link(netlink, NULL, self->master, &other)) {
		(void)snprintf(out->master, sizeof(out->master), "%s", other.name);
		(void)snprintf(out->master_kind, sizeof(out->master_kind), "%s", other.kind);
		out->master_has_xdp = programs_has_xdp(self->master);
	}
	out->lower_is_elsewhere = self->lower_is_elsewhere;
	if (self->lower && !self->lower_is_elsewhere &&
	    !ask_link(netlink, NULL, self->lower, &other)) {
		(void)snprintf(out->lower, sizeof(out->lower), "%s", other.name);
		if (!strcmp(self->kind, "veth")) {
			struct driver_facts peer;

			ethtool_read(other.name, &peer);
			out->peer_mtu = other.mtu;
			out->peer_transmit_queues = peer.channels.transmit;
		}
	}
	find_members(netlink, out);
}

static int take_family(const struct nlmsghdr *message, void *data)
{
	struct netlink_attributes all = netlink_read(message, sizeof(struct genlmsghdr));
	const uint16_t *id = netlink_value(all, CTRL_ATTR_FAMILY_ID, sizeof(*id));

	if (id)
		memcpy(data, id, sizeof(*id));
	return 0;
}

static int take_features(const struct nlmsghdr *message, void *data)
{
	struct netlink_attributes all = netlink_read(message, sizeof(struct genlmsghdr));
	const void *features = netlink_value(all, NETDEV_XDP_FEATURES, sizeof(uint64_t));
	struct interface_facts *out = data;

	if (!features)
		return 0;
	memcpy(&out->xdp_features, features, sizeof(out->xdp_features));
	out->knows_xdp = ANSWER_YES;
	return 0;
}

/* What the driver says it can do; older kernels cannot be asked. */
static void read_xdp_features(struct interface_facts *out)
{
	struct netlink_request request;
	struct genlmsghdr *fixed;
	struct netlink netlink;
	uint16_t family = 0;

	if (netlink_open(&netlink, NETLINK_GENERIC))
		return;
	fixed = netlink_begin(&request, GENL_ID_CTRL, 0, sizeof(*fixed));
	fixed->cmd = CTRL_CMD_GETFAMILY;
	netlink_add(&request, CTRL_ATTR_FAMILY_NAME, "netdev", sizeof("netdev"));
	if (!netlink_ask(&netlink, &request, take_family, &family) && family) {
		fixed = netlink_begin(&request, family, 0, sizeof(*fixed));
		fixed->cmd = NETDEV_GET;
		netlink_add(&request, NETDEV_IFINDEX, &out->ifindex, sizeof(out->ifindex));
		(void)netlink_ask(&netlink, &request, take_features, out);
	}
	netlink_close(&netlink);
}

void probe_interface(const char *name, const struct pins_facts *pins, struct interface_facts *out)
{
	struct link_message self;
	struct netlink netlink;

	*out = (struct interface_facts){};
	(void)snprintf(out->name, sizeof(out->name), "%s", name);
	if (netlink_open(&netlink, NETLINK_ROUTE))
		return;
	if (!ask_link(&netlink, name, 0, &self)) {
		out->ifindex = self.ifindex;
		out->is_up = self.is_up;
		out->hardware = self.hardware;
		out->mtu = self.mtu;
		out->is_tap = self.is_tap;
		(void)snprintf(out->kind, sizeof(out->kind), "%s",
			       self.hardware == ARPHRD_LOOPBACK ? "loopback" : self.kind);
		find_relatives(&netlink, &self, out);
		ethtool_read(name, &out->driver);
		read_xdp_features(out);
		programs_read(&netlink, pins, out);
	}
	netlink_close(&netlink);
}
