/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is attached, and taking it off. Works on pins alone: no configuration, no object. */
#include "dataplane/attach.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <linux/if_link.h>

#include "dataplane/others.h"
#include "dataplane/switch.h"

struct listing {
	struct link_state *links;
	size_t max;
	size_t count;
};

static void describe_program(uint32_t id, struct link_state *state)
{
	struct bpf_prog_info info = {};
	uint32_t length = sizeof(info);
	int fd = bpf_prog_get_fd_by_id(id);

	if (fd < 0)
		return;
	if (!bpf_obj_get_info_by_fd(fd, &info, &length))
		(void)snprintf(state->program, sizeof(state->program), "%s", info.name);
	(void)close(fd);
}

int link_examine(const char *path, uint32_t ifindex, enum attach_mode *mode, uint32_t *program_id)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	struct bpf_link_info info = {};
	uint32_t length = sizeof(info);
	int fd = bpf_obj_get(path);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (bpf_obj_get_info_by_fd(fd, &info, &length))
		err = -errno;
	(void)close(fd);
	if (err)
		return err;
	*program_id = info.prog_id;
	if (info.xdp.ifindex != ifindex)
		return -ENODEV;
	if (bpf_xdp_query((int)ifindex, 0, &query))
		return -EXDEV;
	*mode = query.skb_prog_id == info.prog_id ? MODE_GENERIC : MODE_NATIVE;
	if (query.skb_prog_id != info.prog_id && query.drv_prog_id != info.prog_id)
		return -EXDEV;
	return 0;
}

static int list_link(uint32_t ifindex, const char *path, void *data)
{
	struct listing *listing = data;
	struct link_state *state;
	int err;

	if (listing->count == listing->max)
		return 0;
	state = &listing->links[listing->count++];
	*state = (struct link_state){ .ifindex = ifindex, .mode = MODE_NATIVE };
	err = link_examine(path, ifindex, &state->mode, &state->program_id);
	state->attached = !err || err == -EXDEV;
	if (!err)
		(void)if_indextoname(ifindex, state->name);
	if (state->attached)
		describe_program(state->program_id, state);
	return 0;
}

int links_list(const struct pins *pins, struct link_state *links, size_t max, size_t *count)
{
	struct listing listing = { .links = links, .max = max };
	int err = pins_each_link(pins->set, list_link, &listing);

	*count = listing.count;
	return err;
}

static int count_link(uint32_t ifindex, const char *path, void *data)
{
	unsigned *count = data;

	(void)ifindex;
	(void)path;
	(*count)++;
	return 0;
}

/* A link whose interface is gone holds nothing but its pin. */
static int remove_dead(uint32_t ifindex, const char *path, void *data)
{
	const struct pins *pins = data;
	enum attach_mode mode;
	uint32_t program_id;

	if (link_examine(path, ifindex, &mode, &program_id) == -ENODEV) {
		(void)unlink(path);
		switch_forget(pins->set, ifindex);
	}
	return 0;
}

void links_forget_dead(const struct pins *pins)
{
	(void)pins_each_link(pins->set, remove_dead, (void *)pins);
}

int detach_one(struct pins *pins, uint32_t ifindex, struct trouble *trouble)
{
	enum attach_mode mode;
	uint32_t program_id;
	char path[PATH_MAX];
	unsigned left = 0;
	int err = link_examine(pins_link_path(pins->set, ifindex, path), ifindex, &mode, &program_id);

	if (err == -EXDEV) {
		trouble_set(trouble, 0, "%s is a link of another network namespace", path);
		trouble_advise(trouble, "enter that one, or name this one's pins with --bpffs");
		return err;
	}
	err = unlink(path) ? -errno : 0;
	if (err == -ENOENT && !others_detach(pins, ifindex))
		return 0;
	if (err) {
		trouble_set(trouble, 0, err == -ENOENT ? "sluice is not attached there" :
							 "cannot remove %s: %s",
			    path, strerror(-err));
		trouble_advise(trouble, err == -ENOENT ? "sluice status shows where it is" :
							 "run as root");
		return err;
	}
	switch_forget(pins->set, ifindex);
	links_forget_dead(pins);
	err = pins_each_link(pins->set, count_link, &left);
	if (err || left)
		return err;
	err = pins_remove(pins->set);
	if (err)
		return trouble_set(trouble, err, "cannot remove %s: %s", pins->set, strerror(-err));
	(void)rmdir(pins->root);
	return 0;
}

/* v1, v2 …, staging, and what the daemon has left. */
static bool is_ours(const char *name)
{
	if (!strcmp(name, "staging") || !strcmp(name, "daemon"))
		return true;
	return name[0] == 'v' && isdigit((unsigned char)name[1]);
}

int detach_all(struct pins *pins, unsigned *count, struct trouble *trouble)
{
	DIR *directory = opendir(pins->root);
	struct dirent *entry;
	char folder[PATH_MAX];
	int err = 0;

	*count = 0;
	if (!directory)
		return errno == ENOENT ? 0 : trouble_set(trouble, -errno, "cannot open %s: %s",
							 pins->root, strerror(errno));
	while (!err && (entry = readdir(directory))) {
		if (!is_ours(entry->d_name))
			continue;
		(void)pins_each_link(pins_path(pins->root, entry->d_name, folder), count_link, count);
		err = pins_remove(folder);
	}
	(void)closedir(directory);
	if (err)
		return trouble_set(trouble, err, "cannot remove %s: %s", folder, strerror(-err));
	(void)rmdir(pins->root);
	return 0;
}
