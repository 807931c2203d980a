/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Strays, from the interfaces' side: ask each who is there, then who keeps it.
 *
 * A program belongs to the set whose map `config` it reads. If that map is pinned in another folder
 * of any BPF file system mounted here, the program is that one's.
 */
#include "dataplane/strays.h"

#include <errno.h>
#include <fts.h>
#include <mntent.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "dataplane/clsact.h"
#include "dataplane/devices.h"
#include "dataplane/link.h"
#include "dataplane/maps.h"
#include "dataplane/tcx.h"

enum {
	PROGRAMS_MAX = 64,     /* on one interface at one place */
	PROGRAM_MAPS_MAX = 64, /* of one program */
	FOLDER_DEPTH_MAX = 6,  /* that sets are looked for in, below a mount */
};

struct stray {
	enum link_kind kind;
	uint32_t ifindex;
	uint32_t program_id;
};

struct search {
	const struct pins *pins;
	bool for_one; /* interface, which was named */
	unsigned count;
	int err; /* of what could not be taken off */
	struct trouble *trouble;
};

static bool is_our_name(enum link_kind kind, const char *name)
{
	if (kind == LINK_XDP)
		return !strcmp(name, "sluice_xdp") || !strcmp(name, "sluice_frags");
	/* A parked link goes with who parked it. */
	return !strcmp(name, "sluice_tc") || (kind == LINK_CLSACT && !strcmp(name, LINK_PARKED));
}

/* Whether the program is of a kind with ours, and the maps it uses. */
static bool read_program(const struct stray *stray, uint32_t maps[PROGRAM_MAPS_MAX],
			 uint32_t *count)
{
	struct bpf_prog_info info = {
		.nr_map_ids = PROGRAM_MAPS_MAX,
		.map_ids = (uint64_t)(uintptr_t)maps,
	};
	uint32_t length = sizeof(info);
	int fd = bpf_prog_get_fd_by_id(stray->program_id);
	int err;

	if (fd < 0)
		return false;
	err = bpf_obj_get_info_by_fd(fd, &info, &length);
	(void)close(fd);
	*count = info.nr_map_ids < PROGRAM_MAPS_MAX ? info.nr_map_ids : PROGRAM_MAPS_MAX;
	return !err && is_our_name(stray->kind, info.name);
}

static uint32_t map_id(const char *path)
{
	struct bpf_map_info info = {};
	uint32_t length = sizeof(info);
	int fd = bpf_obj_get(path);
	int err;

	if (fd < 0)
		return 0;
	err = bpf_obj_get_info_by_fd(fd, &info, &length);
	(void)close(fd);
	return err ? 0 : info.id;
}

/* Whether a set outside of our folder, below a mount, has one of the maps; and where. */
static bool is_kept_below(const char *mount, const struct pins *pins, const uint32_t *maps,
			  uint32_t count, char keeper[PATH_MAX])
{
	char *const roots[] = { (char *)(uintptr_t)mount, NULL };
	FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	bool kept = false;
	FTSENT *entry;

	if (!tree)
		return false;
	while (!kept && (entry = fts_read(tree))) {
		uint32_t id;

		if (entry->fts_info == FTS_D &&
		    (entry->fts_level > FOLDER_DEPTH_MAX || !strcmp(entry->fts_path, pins->root)))
			(void)fts_set(tree, entry, FTS_SKIP);
		if (entry->fts_info == FTS_D || strcmp(entry->fts_name, map_name(MAP_CONFIG)))
			continue;
		id = map_id(entry->fts_path);
		for (uint32_t at = 0; id && at < count; at++)
			kept |= maps[at] == id;
		if (kept)
			(void)snprintf(keeper, PATH_MAX, "%.*s",
				       (int)(entry->fts_pathlen - entry->fts_namelen - 1),
				       entry->fts_path);
	}
	(void)fts_close(tree);
	return kept;
}

static bool is_kept(const struct pins *pins, const uint32_t *maps, uint32_t count,
		    char keeper[PATH_MAX])
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent *mount;
	bool kept = false;

	if (!mounts)
		return false;
	while (!kept && (mount = getmntent(mounts)))
		kept = !strcmp(mount->mnt_type, "bpf") &&
		       is_kept_below(mount->mnt_dir, pins, maps, count, keeper);
	(void)endmntent(mounts);
	return kept;
}

/* Whether our own set tells of it. */
static bool is_pinned(const struct pins *pins, const struct stray *stray)
{
	struct link_facts facts;
	char path[PATH_MAX];

	return !link_look(link_path(pins->set, stray->kind, stray->ifindex, path), &facts) &&
	       facts.program_id == stray->program_id;
}

/* 0: it is astray. -ENOENT: not ours, or where it belongs. -EBUSY: kept by others, see *keeper. */
static int judge(const struct pins *pins, const struct stray *stray, char keeper[PATH_MAX])
{
	uint32_t maps[PROGRAM_MAPS_MAX], count;

	if (!read_program(stray, maps, &count) || is_pinned(pins, stray))
		return -ENOENT;
	return is_kept(pins, maps, count, keeper) ? -EBUSY : 0;
}

/* Who is there. Returns how many. */
static uint32_t ask(enum link_kind kind, uint32_t ifindex, uint32_t ids[PROGRAMS_MAX])
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	uint32_t count = PROGRAMS_MAX;

	switch (kind) {
	case LINK_TCX:
		return bpf_prog_query((int)ifindex, (enum bpf_attach_type)TCX_INGRESS, 0, NULL, ids,
				      &count)
			       ? 0
			       : count;
	case LINK_CLSACT:
		return !clsact_query(ifindex, &ids[0]);
	default:
		if (bpf_xdp_query((int)ifindex, 0, &query))
			return 0;
		ids[0] = query.drv_prog_id ? query.drv_prog_id : query.skb_prog_id;
		return ids[0] != 0;
	}
}

/* Detach the link by which the program stands there. */
static int detach_link(const struct stray *stray)
{
	uint32_t type = stray->kind == LINK_TCX ? (uint32_t)TCX_LINK_TYPE : BPF_LINK_TYPE_XDP;
	uint32_t id = 0;
	int result = -ENOENT;

	while (result == -ENOENT && !bpf_link_get_next_id(id, &id)) {
		struct bpf_link_info info = {};
		uint32_t length = sizeof(info);
		int fd = bpf_link_get_fd_by_id(id);

		if (fd < 0)
			continue;
		if (!bpf_obj_get_info_by_fd(fd, &info, &length) && info.type == type &&
		    info.prog_id == stray->program_id && info.xdp.ifindex == stray->ifindex)
			result = bpf_link_detach(fd) ? -errno : 0;
		(void)close(fd);
	}
	return result;
}

static void take_off(struct search *search, const struct stray *stray)
{
	char keeper[PATH_MAX], name[IF_NAMESIZE] = "?";
	int err = judge(search->pins, stray, keeper);

	if (err == -ENOENT || (err == -EBUSY && !search->for_one))
		return;
	(void)if_indextoname(stray->ifindex, name);
	if (err == -EBUSY) {
		search->err = trouble_set(search->trouble, err, "%s is held by the pins in %s",
					  name, keeper);
		trouble_advise(search->trouble,
			       "name the folder that it lies in with --bpffs, or remove the pins");
		return;
	}
	err = stray->kind == LINK_CLSACT ? clsact_remove(stray->ifindex, stray->program_id)
					 : detach_link(stray);
	if (!err) {
		search->count++;
		return;
	}
	search->err = trouble_set(search->trouble, err, "%s: program %u cannot be taken off: %s",
				  name, stray->program_id, strerror(-err));
	trouble_advise(search->trouble,
		       "see bpftool net show dev %s, tc filter show dev %s ingress", name, name);
}

static void search_interface(struct search *search, uint32_t ifindex)
{
	for (int kind = 0; kind < LINK_KINDS; kind++) {
		struct stray stray = { .kind = (enum link_kind)kind, .ifindex = ifindex };
		uint32_t ids[PROGRAMS_MAX];
		uint32_t count = ask(stray.kind, ifindex, ids);

		for (uint32_t at = 0; at < count; at++) {
			stray.program_id = ids[at];
			take_off(search, &stray);
		}
	}
}

int strays_remove(const struct pins *pins, uint32_t ifindex, unsigned *count,
		  struct trouble *trouble)
{
	struct search search = { .pins = pins, .for_one = ifindex, .trouble = trouble };
	struct device *devices = NULL;
	size_t device_count = 0;
	int err = 0;

	if (ifindex)
		search_interface(&search, ifindex);
	else
		err = devices_list(&devices, &device_count);
	if (err)
		return trouble_set(trouble, err, "cannot list the interfaces: %s", strerror(-err));
	for (size_t at = 0; at < device_count; at++)
		search_interface(&search, devices[at].ifindex);
	free(devices);
	*count += search.count;
	return search.err;
}

bool strays_has_filter(const struct pins *pins, uint32_t ifindex)
{
	struct stray stray = { .kind = LINK_CLSACT, .ifindex = ifindex };
	char keeper[PATH_MAX];

	return !clsact_query(ifindex, &stray.program_id) && !judge(pins, &stray, keeper);
}
