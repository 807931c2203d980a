/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What this process may do and how much memory it may have: /proc and the control groups. */
#include "dataplane/probe.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* A hierarchy of control groups that accounts for memory. */
struct hierarchy {
	char mount[PATH_MAX / 2];
	char group[PATH_MAX / 2]; /* within it */
	const char *limit_file;
	const char *used_file;
};

static void read_capabilities(struct process_facts *out)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];

	if (!file)
		return;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "CapEff: %" SCNx64, &out->capabilities) == 1)
			break;
	(void)fclose(file);
}

/* The first user namespace maps all numbers to themselves. */
static bool is_contained(void)
{
	FILE *file = fopen("/proc/self/uid_map", "re");
	unsigned long inside = 1, outside = 1, count = 0;
	int read = 0;

	if (!file)
		return false;
	read = fscanf(file, "%lu %lu %lu", &inside, &outside, &count);
	(void)fclose(file);
	return read == 3 && (inside || outside || count != UINT32_MAX);
}

/* Whether a word stands in a list that is parted by commas. */
static bool is_listed(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (; list; list = strchr(list, ','), list = list ? list + 1 : NULL)
		if (!strncmp(list, word, length) && strchr(",\n ", list[length]))
			return true;
	return false;
}

/* Where the hierarchy is mounted: the second version's, or the first's with the controller. */
static bool find_mount(bool is_second, char *mount, size_t size)
{
	FILE *file = fopen("/proc/self/mounts", "re");
	char line[PATH_MAX], where[PATH_MAX / 2], type[32], options[512];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%*s %2047s %31s %511s", where, type, options) != 3)
			continue;
		if (is_second ? strcmp(type, "cgroup2") != 0
			      : strcmp(type, "cgroup") || !is_listed(options, "memory"))
			continue;
		(void)snprintf(mount, size, "%s", where);
		found = true;
	}
	if (file)
		(void)fclose(file);
	return found;
}

/* `0::/path` is of the second version, `5:memory:/path` of the first. */
static bool find_group(bool is_second, char *group, size_t size)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		char *controllers = strchr(line, ':');
		char *path = controllers ? strchr(controllers + 1, ':') : NULL;

		if (!path)
			continue;
		*path++ = '\0';
		controllers++;
		if (is_second ? *controllers : !strstr(controllers, "memory"))
			continue;
		path[strcspn(path, "\n")] = '\0';
		(void)snprintf(group, size, "%s", path);
		found = true;
	}
	if (file)
		(void)fclose(file);
	return found;
}

static bool read_number(const char *folder, const char *name, uint64_t *out)
{
	char path[PATH_MAX + 64];
	FILE *file;
	int read;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "re");
	if (!file)
		return false;
	read = fscanf(file, "%" SCNu64, out); /* `max` is none */
	(void)fclose(file);
	return read == 1;
}

/* Take over a group's figures if it leaves less room than what is known so far. */
static void weigh(const struct hierarchy *tree, const char *folder, struct process_facts *out)
{
	uint64_t limit, used, room;

	if (!read_number(folder, tree->limit_file, &limit) ||
	    !read_number(folder, tree->used_file, &used))
		return;
	/* The first version says `no limit` by a number near 2^63. */
	if (limit >= INT64_MAX / 2)
		return;
	room = limit > used ? limit - used : 0;
	if (out->memory_limit_bytes && out->memory_used_bytes < out->memory_limit_bytes &&
	    out->memory_limit_bytes - out->memory_used_bytes <= room)
		return;
	if (out->memory_limit_bytes && out->memory_used_bytes >= out->memory_limit_bytes)
		return;
	out->memory_limit_bytes = limit;
	out->memory_used_bytes = used;
	(void)snprintf(out->memory_group, sizeof(out->memory_group), "%s", folder);
}

/* The group and all that it lies in: each of them limits. */
static void weigh_all(const struct hierarchy *tree, struct process_facts *out)
{
	char folder[PATH_MAX];
	char *slash;

	(void)snprintf(folder, sizeof(folder), "%s%s", tree->mount,
		       strcmp(tree->group, "/") ? tree->group : "");
	/* A container may see a path that begins further up than what is mounted for it. */
	if (access(folder, F_OK))
		(void)snprintf(folder, sizeof(folder), "%s", tree->mount);
	while (strlen(folder) >= strlen(tree->mount)) {
		weigh(tree, folder, out);
		slash = strrchr(folder, '/');
		if (!slash)
			break;
		*slash = '\0';
	}
}

static void read_memory(struct process_facts *out)
{
	for (int second = 0; second < 2; second++) {
		struct hierarchy tree = {
			.limit_file = second ? "memory.max" : "memory.limit_in_bytes",
			.used_file = second ? "memory.current" : "memory.usage_in_bytes",
		};

		if (find_mount(second, tree.mount, sizeof(tree.mount)) &&
		    find_group(second, tree.group, sizeof(tree.group)))
			weigh_all(&tree, out);
	}
}

void probe_process(struct process_facts *out)
{
	struct rlimit limit;

	*out = (struct process_facts){ .memlock_bytes = UINT64_MAX };
	read_capabilities(out);
	out->is_contained = is_contained();
	if (!getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur != RLIM_INFINITY)
		out->memlock_bytes = limit.rlim_cur;
	read_memory(out);
}
