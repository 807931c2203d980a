/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Devices by rtnetlink, since /sys may be that of another network namespace. What a member of a
 * bridge or bond gets its master gets, too, and what a card gets the VLAN, macvlan or ipvlan
 * interfaces on it get; a packet that met two programs would be charged twice.
 */
#include "dataplane/devices.h"

#include <errno.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdlib.h>
#include <string.h>

#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include "dataplane/attach.h"
#include "dataplane/netlink.h"

enum {
	DEVICES_FIRST = 32, /* room to begin with */
	STACKED_MAX = 8,    /* devices on devices */
};

struct listing {
	struct device *devices;
	size_t count;
	size_t room;
};

/* Others have a lower device as well, which what they get is not taken from as it is: a veth its
 * peer, a tunnel what its packets travel in. */
static bool sorts_out(const char *kind)
{
	static const char *const kinds[] = { "vlan", "macvlan", "macvtap", "ipvlan", "ipvtap" };

	for (size_t at = 0; at < sizeof(kinds) / sizeof(kinds[0]); at++)
		if (!strcmp(kind, kinds[at]))
			return true;
	return false;
}

static int take_device(const struct nlmsghdr *message, void *data)
{
	const struct ifinfomsg *fixed = NLMSG_DATA(message);
	struct netlink_attributes all = netlink_read(message, sizeof(*fixed));
	struct listing *listing = data;
	struct device *device;
	char kind[24];

	if (message->nlmsg_len < NLMSG_LENGTH(sizeof(*fixed)))
		return -EBADMSG;
	if (listing->count == listing->room) {
		size_t room = listing->room ? 2 * listing->room : DEVICES_FIRST;
		struct device *grown = reallocarray(listing->devices, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		listing->devices = grown;
		listing->room = room;
	}
	device = &listing->devices[listing->count++];
	*device = (struct device){
		.ifindex = (uint32_t)fixed->ifi_index,
		.hardware = fixed->ifi_type,
		.master = netlink_u32(all, IFLA_MASTER, 0),
	};
	netlink_text(all, IFLA_IFNAME, device->name, sizeof(device->name));
	netlink_text(netlink_within(netlink_find(all, IFLA_LINKINFO)), IFLA_INFO_KIND, kind,
		     sizeof(kind));
	/* With a namespace given, the number is of that one. */
	if (sorts_out(kind) && !netlink_find(all, IFLA_LINK_NETNSID))
		device->lower = netlink_u32(all, IFLA_LINK, 0);
	return 0;
}

int devices_list(struct device **out, size_t *count)
{
	struct netlink_request request;
	struct listing listing = {};
	struct netlink netlink;
	int err = netlink_open(&netlink, NETLINK_ROUTE);

	if (err)
		return err;
	(void)netlink_begin(&request, RTM_GETLINK, NLM_F_DUMP, sizeof(struct ifinfomsg));
	err = netlink_ask(&netlink, &request, take_device, &listing);
	netlink_close(&netlink);
	if (err) {
		free(listing.devices);
		return err;
	}
	*out = listing.devices;
	*count = listing.count;
	return 0;
}

int interface_find(const char *name, uint32_t *ifindex, struct trouble *trouble)
{
	*ifindex = if_nametoindex(name);
	if (*ifindex)
		return 0;
	trouble_set(trouble, 0, "there is no interface %s", name);
	trouble_advise(trouble, "ip -brief link shows what there is in this network namespace");
	return -ENODEV;
}

static const struct device *find(const struct listing *all, uint32_t ifindex)
{
	for (size_t at = 0; at < all->count; at++)
		if (all->devices[at].ifindex == ifindex)
			return &all->devices[at];
	return NULL;
}

/* Whether what comes in on one comes in on the other as well, by up to so many steps. */
static bool feeds(const struct listing *all, const struct device *from, const struct device *to,
		  int steps)
{
	if (!steps)
		return false;
	for (size_t at = 0; at < all->count; at++) {
		const struct device *next = &all->devices[at];

		if (next == from || (next->ifindex != from->master && next->lower != from->ifindex))
			continue;
		if (next == to || feeds(all, next, to, steps - 1))
			return true;
	}
	return false;
}

static int check_pair(const struct listing *all, uint32_t one, uint32_t other, bool attached,
		      struct trouble *trouble)
{
	const struct device *a = find(all, one), *b = find(all, other), *swap;

	if (!a || !b || a == b)
		return 0;
	if (feeds(all, b, a, STACKED_MAX)) {
		swap = a;
		a = b;
		b = swap;
	} else if (!feeds(all, a, b, STACKED_MAX)) {
		return 0;
	}
	trouble_set(trouble, 0,
		    "what comes in on %s comes in on %s as well, and would be charged twice",
		    a->name, b->name);
	if (attached)
		trouble_advise(trouble, "sluice detach %s first", find(all, other)->name);
	else
		trouble_advise(trouble, "attach to %s, or to %s, and not to both", a->name,
			       b->name);
	return -EINVAL;
}

static int check_frames(const struct listing *all, uint32_t ifindex, struct trouble *trouble)
{
	const struct device *device = find(all, ifindex);

	if (!device || device->hardware == ARPHRD_ETHER || device->hardware == ARPHRD_LOOPBACK)
		return 0;
	trouble_set(trouble, 0,
		    "%s has no Ethernet frames (link type %u), and sluice reads no others",
		    device->name, device->hardware);
	trouble_advise(trouble, "attach to the interface that its packets travel over");
	return -EINVAL;
}

static int check_all(const struct listing *all, const struct pins *pins, const uint32_t *ifindex,
		     size_t count, struct trouble *trouble)
{
	struct link_state links[ATTACH_INTERFACES_MAX];
	size_t link_count = 0;
	int err = 0;

	if (links_list(pins, links, ATTACH_INTERFACES_MAX, &link_count))
		link_count = 0;
	for (size_t at = 0; !err && at < count; at++) {
		err = check_frames(all, ifindex[at], trouble);
		for (size_t other = 0; !err && other < at; other++)
			err = check_pair(all, ifindex[at], ifindex[other], false, trouble);
		for (size_t link = 0; !err && link < link_count; link++)
			if (links[link].attached && links[link].name[0])
				err = check_pair(all, ifindex[at], links[link].ifindex, true,
						 trouble);
	}
	return err;
}

int devices_check(const struct pins *pins, const uint32_t *ifindex, size_t count,
		  struct trouble *trouble)
{
	struct listing all = {};
	int err = devices_list(&all.devices, &all.count);

	if (err)
		return trouble_set(trouble, err, "cannot list the interfaces: %s", strerror(-err));
	err = check_all(&all, pins, ifindex, count, trouble);
	free(all.devices);
	return err;
}
