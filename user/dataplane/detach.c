/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Taking off. Works on pins alone, and on interfaces where pins are missing: no configuration, no
 * object, no maps. What is left afterwards is looked for, and said.
 */
#include "dataplane/attach.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "dataplane/maps.h"
#include "dataplane/others.h"
#include "dataplane/strays.h"

struct removal {
	uint32_t ifindex; /* 0: all */
	unsigned count;
	int err; /* the first, with *trouble */
	struct trouble *trouble;
};

static void fail_once(struct removal *removal, int err, const char *path)
{
	if (removal->err)
		return;
	removal->err = err;
	if (err == -EXDEV) {
		trouble_set(removal->trouble, 0, "%s is of another network namespace", path);
		trouble_advise(removal->trouble,
			       "detach in that one (nsenter --net=…), or name this one's pins with "
			       "--bpffs; if that one is gone, remove the pin");
		return;
	}
	trouble_set(removal->trouble, 0, "cannot remove %s: %s", path, strerror(-err));
	trouble_advise(removal->trouble, "run as root");
}

static int remove_link(uint32_t ifindex, const char *path, void *data)
{
	struct removal *removal = data;
	struct link_facts facts;
	int err = 0;

	if (removal->ifindex && ifindex != removal->ifindex)
		return 0;
	/* Who asks for one interface means the one of this namespace. */
	if (removal->ifindex && link_look(path, &facts) == -EXDEV)
		err = -EXDEV;
	if (!err)
		err = link_remove(path);
	if (err)
		fail_once(removal, err, path);
	else
		removal->count++;
	return 0;
}

static int count_link(uint32_t ifindex, const char *path, void *data)
{
	unsigned *count = data;

	(void)ifindex;
	(void)path;
	(*count)++;
	return 0;
}

static void forget_record(const struct pins *pins, uint32_t ifindex)
{
	char path[PATH_MAX];
	int fd = bpf_obj_get(pins_path(pins->set, map_name(MAP_INTERFACES), path));

	if (fd < 0)
		return;
	(void)bpf_map_delete_elem(fd, &ifindex);
	(void)close(fd);
}

/* The last one takes the maps with it. */
static int remove_if_empty(const struct pins *pins, struct trouble *trouble)
{
	unsigned left = 0;
	int err;

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

int detach_one(struct pins *pins, uint32_t ifindex, struct trouble *trouble)
{
	struct removal removal = { .ifindex = ifindex, .trouble = trouble };
	int err = pins_each_link(pins->set, remove_link, &removal);

	if (err)
		return trouble_set(trouble, err, "cannot open %s: %s", pins->set, strerror(-err));
	if (removal.err)
		return removal.err;
	err = others_detach(pins, ifindex);
	if (!err)
		removal.count++;
	else if (err != -ENOENT)
		return trouble_set(trouble, err,
				   "cannot take it off what another version holds: %s",
				   strerror(-err));
	err = strays_remove(pins, ifindex, &removal.count, trouble);
	if (err)
		return err;
	if (!removal.count) {
		trouble_set(trouble, 0, "sluice is not attached there");
		trouble_advise(trouble, "sluice status shows where it is");
		return -ENOENT;
	}
	forget_record(pins, ifindex);
	return remove_if_empty(pins, trouble);
}

/* v1, v2 …, staging, and what the daemon has left. */
static bool is_ours(const char *name)
{
	if (!strcmp(name, "staging") || !strcmp(name, "daemon"))
		return true;
	return name[0] == 'v' && isdigit((unsigned char)name[1]);
}

/* A folder that still has a pin which tells of a program stays, so that the pin can be used. */
static void remove_folder(const char *folder, struct removal *removal)
{
	unsigned left = 0;
	int err = pins_each_link(folder, remove_link, removal);

	if (!err)
		err = pins_each_link(folder, count_link, &left);
	if (!err && !left)
		err = pins_remove(folder);
	if (err)
		fail_once(removal, err, folder);
}

int detach_all(struct pins *pins, unsigned *count, struct trouble *trouble)
{
	struct removal removal = { .trouble = trouble };
	DIR *directory = opendir(pins->root);
	struct dirent *entry;
	char folder[PATH_MAX];
	int err;

	if (!directory && errno != ENOENT)
		fail_once(&removal, -errno, pins->root);
	while (directory && (entry = readdir(directory)))
		if (is_ours(entry->d_name))
			remove_folder(pins_path(pins->root, entry->d_name, folder), &removal);
	if (directory)
		(void)closedir(directory);
	*count = removal.count;
	if (removal.err) {
		struct trouble second;

		(void)strays_remove(pins, 0, count, &second);
		return removal.err;
	}
	err = strays_remove(pins, 0, count, trouble);
	(void)rmdir(pins->root);
	return err;
}
