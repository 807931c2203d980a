/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a pin holds, asked of the pin and of the interface: each may be gone without the other. */
#include "dataplane/link.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "dataplane/clsact.h"
#include "dataplane/link_names.h"
#include "dataplane/tcx.h"

enum { TCX_PROGRAMS_MAX = 64 }; /* the kernel's own bound */

static bool is_here(uint32_t ifindex)
{
	char name[IF_NAMESIZE];

	return if_indextoname(ifindex, name);
}

static void name_program(struct link_facts *facts, const char *path)
{
	struct bpf_prog_info info = {};
	uint32_t length = sizeof(info);
	char folder[PATH_MAX], of_program[PATH_MAX];
	int fd = bpf_prog_get_fd_by_id(facts->program_id);

	(void)snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
	if (fd < 0)
		fd = bpf_obj_get(
			link_program_path(folder, facts->kind, facts->ifindex, of_program));
	if (fd < 0)
		return;
	if (!bpf_obj_get_info_by_fd(fd, &info, &length) && info.id == facts->program_id)
		(void)snprintf(facts->program, sizeof(facts->program), "%s", info.name);
	(void)close(fd);
}

/* The link's program and interface; 0 for that if it is gone. */
static int read_link(const char *path, struct bpf_link_info *info)
{
	uint32_t length = sizeof(*info);
	int fd = bpf_obj_get(path);
	int err = 0;

	*info = (struct bpf_link_info){};
	if (fd < 0)
		return -errno;
	if (bpf_obj_get_info_by_fd(fd, info, &length))
		err = -errno;
	(void)close(fd);
	return err;
}

static bool tcx_has(uint32_t ifindex, uint32_t program_id)
{
	uint32_t ids[TCX_PROGRAMS_MAX], count = TCX_PROGRAMS_MAX;

	if (bpf_prog_query((int)ifindex, (enum bpf_attach_type)TCX_INGRESS, 0, NULL, ids, &count))
		return false;
	for (uint32_t at = 0; at < count; at++)
		if (ids[at] == program_id)
			return true;
	return false;
}

/* Whether the program is on the interface of that number in this namespace, and on which rung. */
static bool is_on(struct link_facts *facts)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);

	if (facts->kind == LINK_TCX) {
		facts->rung = RUNG_TCX;
		return tcx_has(facts->ifindex, facts->program_id);
	}
	if (bpf_xdp_query((int)facts->ifindex, 0, &query))
		return false;
	if (query.skb_prog_id == facts->program_id) {
		facts->rung = RUNG_GENERIC;
		return true;
	}
	return query.drv_prog_id == facts->program_id;
}

static int look_at_link(const char *path, struct link_facts *facts)
{
	struct bpf_link_info info;
	int err = read_link(path, &info);

	if (err)
		return err;
	facts->program_id = info.prog_id;
	name_program(facts, path);
	facts->rung = strcmp(facts->program, "sluice_frags") ? RUNG_NATIVE : RUNG_NATIVE_FRAGS;
	/* Both kinds of link tell the interface in the same place. */
	if (info.xdp.ifindex != facts->ifindex)
		return is_here(facts->ifindex) ? -ENOLINK : -ENODEV;
	return is_on(facts) ? 0 : -EXDEV;
}

static int look_at_filter(const char *path, uint64_t netns, struct link_facts *facts)
{
	struct bpf_prog_info info = {};
	uint32_t length = sizeof(info), there;
	int fd = bpf_obj_get(path);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (bpf_obj_get_info_by_fd(fd, &info, &length))
		err = -errno;
	(void)close(fd);
	if (err)
		return err;
	facts->rung = RUNG_CLSACT;
	facts->program_id = info.id;
	(void)snprintf(facts->program, sizeof(facts->program), "%s", info.name);
	if (netns != link_netns())
		return -EXDEV;
	if (!is_here(facts->ifindex))
		return -ENODEV;
	return !clsact_query(facts->ifindex, &there) && there == info.id ? 0 : -ENOLINK;
}

int link_look(const char *path, struct link_facts *facts)
{
	const char *last = strrchr(path, '/');
	struct link_name name;

	if (!last || !link_parse(last + 1, &name))
		return -EINVAL;
	*facts = (struct link_facts){ .kind = name.kind, .ifindex = name.ifindex };
	if (name.kind == LINK_CLSACT)
		return look_at_filter(path, name.netns, facts);
	return look_at_link(path, facts);
}

int link_examine(const char *path, uint32_t ifindex, enum attach_mode *mode, uint32_t *program_id)
{
	struct link_facts facts;
	int err = link_look(path, &facts);

	if (!err && facts.ifindex != ifindex)
		return -ENODEV;
	if (err && err != -EXDEV)
		return err == -ENOLINK ? -ENODEV : err;
	*program_id = facts.program_id;
	*mode = rung_mode(facts.rung);
	return err;
}
