/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs of XDP and tcx on an interface, and the filters of its queueing disciplines. */
#include "dataplane/probe_programs.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include "dataplane/tcx.h"

static bool is_pinned(const struct pins_facts *pins, uint32_t id)
{
	for (size_t version = 0; pins && version < pins->version_count; version++) {
		const struct pin_version *one = &pins->versions[version];

		for (size_t link = 0; link < one->link_count && link < PIN_LINKS_MAX; link++)
			if (one->links[link].program_id == id)
				return true;
	}
	return false;
}

/* Its name and tag, for which CAP_SYS_ADMIN is needed. */
static void describe(uint32_t id, const struct pins_facts *pins, struct program_facts *out)
{
	struct bpf_prog_info info = {};
	uint32_t length = sizeof(info);
	int fd;

	*out = (struct program_facts){ .id = id, .is_ours = id && is_pinned(pins, id) };
	fd = id ? bpf_prog_get_fd_by_id(id) : -1;
	if (fd < 0)
		return;
	if (!bpf_obj_get_info_by_fd(fd, &info, &length)) {
		(void)snprintf(out->name, sizeof(out->name), "%s", info.name);
		for (size_t at = 0; at < sizeof(info.tag); at++)
			(void)snprintf(out->tag + 2 * at, sizeof(out->tag) - 2 * at, "%02x",
				       info.tag[at]);
	}
	(void)close(fd);
}

bool programs_has_xdp(uint32_t ifindex)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);

	if (bpf_xdp_query((int)ifindex, 0, &query))
		return false;
	return query.drv_prog_id || query.skb_prog_id || query.hw_prog_id;
}

static void read_xdp(const struct pins_facts *pins, struct interface_facts *out)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);

	if (bpf_xdp_query((int)out->ifindex, 0, &query))
		return;
	describe(query.drv_prog_id, pins, &out->xdp_native);
	describe(query.skb_prog_id, pins, &out->xdp_generic);
	describe(query.hw_prog_id, pins, &out->xdp_offloaded);
}

static void read_tcx(const struct pins_facts *pins, struct interface_facts *out)
{
	uint32_t ids[PROGRAMS_MAX] = {}, count = PROGRAMS_MAX;

	/* With more programs than fit, the first of them are told, and an error. */
	(void)bpf_prog_query((int)out->ifindex, (enum bpf_attach_type)TCX_INGRESS, 0, NULL, ids,
			     &count);
	for (size_t at = 0; at < PROGRAMS_MAX && ids[at]; at++)
		describe(ids[at], pins, &out->tcx[out->tcx_count++]);
}

static int take_discipline(const struct nlmsghdr *message, void *data)
{
	const struct tcmsg *fixed = NLMSG_DATA(message);
	struct netlink_attributes all = netlink_read(message, sizeof(*fixed));
	struct interface_facts *out = data;
	char kind[16];

	netlink_text(all, TCA_KIND, kind, sizeof(kind));
	if ((uint32_t)fixed->tcm_ifindex == out->ifindex &&
	    (!strcmp(kind, "clsact") || !strcmp(kind, "ingress")))
		out->has_clsact = true;
	return 0;
}

static int take_filter(const struct nlmsghdr *message, void *data)
{
	const struct tcmsg *fixed = NLMSG_DATA(message);
	struct netlink_attributes all = netlink_read(message, sizeof(*fixed));
	struct netlink_attributes own = netlink_within(netlink_find(all, TCA_OPTIONS));
	struct interface_facts *out = data;
	struct filter_facts *filter = &out->filters[out->filter_count];

	/* For each priority there is a message without a handle: the chain's head. */
	if (message->nlmsg_type != RTM_NEWTFILTER || !fixed->tcm_handle ||
	    out->filter_count == PROGRAMS_MAX)
		return 0;
	*filter = (struct filter_facts){ .priority = fixed->tcm_info >> 16 };
	netlink_text(all, TCA_KIND, filter->kind, sizeof(filter->kind));
	if (!strcmp(filter->kind, "bpf")) {
		netlink_text(own, TCA_BPF_NAME, filter->name, sizeof(filter->name));
		filter->program_id = netlink_u32(own, TCA_BPF_ID, 0);
	}
	out->filter_count++;
	return 0;
}

static void read_filters(struct netlink *netlink, struct interface_facts *out)
{
	struct netlink_request request;
	struct tcmsg *fixed = netlink_begin(&request, RTM_GETQDISC, NLM_F_DUMP, sizeof(*fixed));

	fixed->tcm_ifindex = (int)out->ifindex;
	(void)netlink_ask(netlink, &request, take_discipline, out);
	if (!out->has_clsact)
		return;
	fixed = netlink_begin(&request, RTM_GETTFILTER, NLM_F_DUMP, sizeof(*fixed));
	fixed->tcm_ifindex = (int)out->ifindex;
	fixed->tcm_parent = TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS);
	(void)netlink_ask(netlink, &request, take_filter, out);
}

void programs_read(struct netlink *netlink, const struct pins_facts *pins,
		   struct interface_facts *out)
{
	read_xdp(pins, out);
	read_tcx(pins, out);
	read_filters(netlink, out);
}
