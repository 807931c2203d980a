/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Paths, the lock, and walking and removing folders of pins. */
#include "dataplane/pins.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <linux/magic.h>

#include <sluice/abi.h>

#include "dataplane/link.h"

enum {
	LOCK_TRIES = 50,
	LOCK_PAUSE_NS = 100000000,
};

int pins_init(struct pins *pins, const char *root, struct trouble *trouble)
{
	pins->lock_fd = -1;
	if (!root)
		root = PINS_DEFAULT;
	if (root[0] != '/' || strlen(root) >= sizeof(pins->root)) {
		trouble_set(trouble, 0, "%s is not a folder for pins", root);
		trouble_advise(trouble,
			       "give an absolute path on a BPF file system, as " PINS_DEFAULT);
		return -EINVAL;
	}
	(void)snprintf(pins->root, sizeof(pins->root), "%s", root);
	(void)snprintf(pins->set, sizeof(pins->set), "%s/v%d", root, SLUICE_ABI_VERSION);
	(void)snprintf(pins->staging, sizeof(pins->staging), "%s/staging", root);
	(void)snprintf(pins->daemon, sizeof(pins->daemon), "%s/daemon", root);
	return 0;
}

/* The folder that root stands in, or will stand in. */
static void parent_of(const char *root, char parent[PATH_MAX])
{
	char *slash;

	(void)snprintf(parent, PATH_MAX, "%s", root);
	slash = strrchr(parent, '/');
	if (slash && slash != parent)
		*slash = '\0';
}

static int check_file_system(const char *root, struct trouble *trouble)
{
	char parent[PATH_MAX];
	struct statfs where;

	parent_of(root, parent);
	if (statfs(root, &where) && statfs(parent, &where)) {
		trouble_set(trouble, 0, "%s: %s", parent, strerror(errno));
		trouble_advise(trouble, "mount a BPF file system: mount -t bpf bpf /sys/fs/bpf");
		return -ENODEV;
	}
	if (where.f_type != BPF_FS_MAGIC) {
		trouble_set(trouble, 0,
			    "%s is not on a BPF file system, so nothing can be pinned there", root);
		trouble_advise(trouble,
			       "mount one (mount -t bpf bpf /sys/fs/bpf) or name one with --bpffs");
		return -ENODEV;
	}
	return 0;
}

/* Whether what we locked is still what stands at root: its last user may have removed it. */
static bool is_current(const struct pins *pins)
{
	struct stat locked, there;

	return !fstat(pins->lock_fd, &locked) && !stat(pins->root, &there) &&
	       locked.st_ino == there.st_ino && locked.st_dev == there.st_dev;
}

/* One try. -EAGAIN: somebody else has it, or it has just gone. */
static int try_lock(struct pins *pins, bool make, struct trouble *trouble)
{
	int err;

	if (make && mkdir(pins->root, 0700) && errno != EEXIST) {
		err = -errno;
		trouble_set(trouble, 0, "cannot make %s: %s", pins->root, strerror(-err));
		trouble_advise(trouble, "run as root");
		return err;
	}
	pins->lock_fd = open(pins->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (pins->lock_fd < 0) {
		err = -errno;
		if (err == -ENOENT && make)
			return -EAGAIN;
		trouble_set(trouble, 0,
			    err == -ENOENT ? "nothing is attached: there is no %s"
					   : "cannot open %s: %s",
			    pins->root, strerror(-err));
		trouble_advise(trouble, err == -ENOENT
						? "attach first: sluice attach IFACE --config FILE"
						: "run as root");
		return err;
	}
	if (!flock(pins->lock_fd, LOCK_EX | LOCK_NB) && is_current(pins))
		return 0;
	pins_unlock(pins);
	return -EAGAIN;
}

int pins_lock(struct pins *pins, bool make, struct trouble *trouble)
{
	const struct timespec pause = { .tv_nsec = LOCK_PAUSE_NS };
	int err = make ? check_file_system(pins->root, trouble) : 0;

	if (err)
		return err;
	for (int tries = 0; tries < LOCK_TRIES; tries++) {
		err = try_lock(pins, make, trouble);
		if (err != -EAGAIN)
			return err;
		(void)nanosleep(&pause, NULL);
	}
	trouble_set(trouble, 0, "another sluice is at work in %s", pins->root);
	trouble_advise(trouble,
		       "an `attach --confirm` may be waiting to be confirmed; try again then");
	return -EBUSY;
}

int pins_lock_now(struct pins *pins, struct trouble *trouble)
{
	return try_lock(pins, false, trouble);
}

void pins_unlock(struct pins *pins)
{
	if (pins->lock_fd >= 0)
		(void)close(pins->lock_fd);
	pins->lock_fd = -1;
}

bool pins_exist(const struct pins *pins)
{
	return !access(pins->set, F_OK);
}

const char *pins_version_path(const struct pins *pins, uint32_t version, char buffer[PATH_MAX])
{
	(void)snprintf(buffer, PATH_MAX, "%s/v%u", pins->root, version);
	return buffer;
}

const char *pins_path(const char *folder, const char *name, char buffer[PATH_MAX])
{
	(void)snprintf(buffer, PATH_MAX, "%s/%s", folder, name);
	return buffer;
}

int pins_each_version(const struct pins *pins, int (*visit)(uint32_t version, void *data),
		      void *data)
{
	DIR *directory = opendir(pins->root);
	struct dirent *entry;
	int result = 0;

	if (!directory)
		return errno == ENOENT ? 0 : -errno;
	while (!result && (entry = readdir(directory))) {
		char *end;
		unsigned long version;

		if (entry->d_name[0] != 'v' || !isdigit((unsigned char)entry->d_name[1]))
			continue;
		version = strtoul(entry->d_name + 1, &end, 10);
		if (!*end && version <= UINT32_MAX && version != SLUICE_ABI_VERSION)
			result = visit((uint32_t)version, data);
	}
	(void)closedir(directory);
	return result;
}

int pins_each_link(const char *folder, int (*visit)(uint32_t ifindex, const char *path, void *data),
		   void *data)
{
	DIR *directory = opendir(folder);
	struct dirent *entry;
	struct link_name name;
	char path[PATH_MAX];
	int result = 0;

	if (!directory)
		return errno == ENOENT ? 0 : -errno;
	while (!result && (entry = readdir(directory))) {
		if (link_parse(entry->d_name, &name))
			result = visit(name.ifindex, pins_path(folder, entry->d_name, path), data);
	}
	(void)closedir(directory);
	return result;
}

int pins_remove(const char *folder)
{
	DIR *directory = opendir(folder);
	struct dirent *entry;
	char path[PATH_MAX];
	int err = 0;

	if (!directory)
		return errno == ENOENT ? 0 : -errno;
	while ((entry = readdir(directory))) {
		if (entry->d_name[0] == '.')
			continue;
		if (unlink(pins_path(folder, entry->d_name, path)) && !err)
			err = -errno;
	}
	(void)closedir(directory);
	if (!err && rmdir(folder) && errno != ENOENT)
		err = -errno;
	return err;
}
