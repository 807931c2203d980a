/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The folder of pins: whether it can be used, and what lies in it, of this version and of others.
 */
#include "dataplane/probe.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "base/lock.h"
#include "dataplane/link.h"

static void check_folder(struct pins_facts *out)
{
	struct statfs where;
	struct statvfs flags;
	char *slash;

	(void)snprintf(out->checked, sizeof(out->checked), "%s", out->root);
	if (access(out->checked, F_OK) && errno == ENOENT) {
		slash = strrchr(out->checked, '/');
		if (slash)
			slash[slash == out->checked] = '\0';
	}
	if (statfs(out->checked, &where) || statvfs(out->checked, &flags)) {
		out->error = -errno;
		return;
	}
	out->is_bpf = where.f_type == BPF_FS_MAGIC;
	out->is_read_only = flags.f_flag & ST_RDONLY;
	out->can_write = !access(out->checked, W_OK | X_OK);
}

static enum pin_link_state state_of(int err)
{
	switch (-err) {
	case 0:
		return PIN_LINK_ATTACHED;
	case ENODEV:
		return PIN_LINK_DEAD;
	case ENOLINK:
		return PIN_LINK_TAKEN_OFF;
	case EXDEV:
		return PIN_LINK_ELSEWHERE;
	default:
		return PIN_LINK_UNREADABLE;
	}
}

static int take_link(uint32_t ifindex, const char *path, void *data)
{
	struct pin_version *version = data;
	struct pin_link *link = &version->links[version->link_count];
	struct link_facts facts = {};

	(void)ifindex;
	if (version->link_count++ >= PIN_LINKS_MAX)
		return 0;
	(void)snprintf(link->name, sizeof(link->name), "%s", strrchr(path, '/') + 1);
	link->state = state_of(link_look(path, &facts));
	link->program_id = facts.program_id;
	return 0;
}

static void take_version(const char *name, struct pins_facts *out)
{
	struct pin_version *version;
	char path[PATH_MAX + 64];
	char *end;

	if (out->version_count == PIN_VERSIONS_MAX)
		return;
	version = &out->versions[out->version_count];
	version->version = (unsigned)strtoul(name + 1, &end, 10);
	if (*end)
		return;
	out->version_count++;
	(void)snprintf(path, sizeof(path), "%s/%s", out->root, name);
	(void)pins_each_link(path, take_link, version);
}

static void list_root(struct pins_facts *out)
{
	DIR *directory = opendir(out->root);
	struct dirent *entry;

	if (!directory) {
		out->list_error = -errno;
		return;
	}
	while ((entry = readdir(directory))) {
		if (!strcmp(entry->d_name, "staging"))
			out->has_staging = true;
		else if (!strcmp(entry->d_name, "daemon"))
			out->has_daemon = true;
		else if (entry->d_name[0] == 'v' && isdigit((unsigned char)entry->d_name[1]))
			take_version(entry->d_name, out);
	}
	(void)closedir(directory);
}

static void name_process(int pid, char *out, size_t size)
{
	char path[48];
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	file = fopen(path, "re");
	if (!file)
		return;
	if (!fgets(out, (int)size, file))
		out[0] = '\0';
	out[strcspn(out, "\n")] = '\0';
	(void)fclose(file);
}

/* To try to take the lock would be in the way of who just wants it. */
static void find_lock(struct pins_facts *out)
{
	int fd = open(out->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	out->lock_pid = lock_holder(fd);
	if (out->lock_pid)
		name_process(out->lock_pid, out->lock_name, sizeof(out->lock_name));
	(void)close(fd);
}

void probe_pins(const struct pins *pins, struct pins_facts *out)
{
	*out = (struct pins_facts){};
	(void)snprintf(out->root, sizeof(out->root), "%s", pins->root);
	check_folder(out);
	if (out->error || !out->is_bpf)
		return;
	list_root(out);
	if (!out->list_error)
		find_lock(out);
}
