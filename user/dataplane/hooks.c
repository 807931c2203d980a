/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A set may be exchanged for another between the opening of the one map and of the other. Then one
 * is of the old set and one of the new, so the programs find no words, or no digest to judge them
 * by, and nothing is shed until the next look, which sees that a number differs and opens both
 * again.
 */
#include "dataplane/hooks.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "dataplane/maps.h"
#include "dataplane/takeover.h"

enum { SETS_BYTES = IP_SETS * sizeof(struct bucket_set) };

/* The map's number, if it is one that we can map. */
static int examine(int fd, enum map_id id, uint32_t *number)
{
	struct bpf_map_info info = { 0 };
	uint32_t length = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &length))
		return -errno;
	if (map_check(fd, id) || !(info.map_flags & BPF_F_MMAPABLE))
		return -EPROTO;
	*number = info.id;
	return 0;
}

/* Descriptors of both, -1 where there is none. */
static int open_pinned(const struct pins *pins, int *sets_fd, int *hooks_fd)
{
	char path[PATH_MAX];

	*sets_fd = bpf_obj_get(pins_path(pins->set, map_name(MAP_HOOK_BUCKETS), path));
	if (*sets_fd < 0)
		return -errno;
	*hooks_fd = bpf_obj_get(pins_path(pins->set, map_name(MAP_HOOKS), path));
	return *hooks_fd < 0 ? -errno : 0;
}

/* Of the set that an attach would take over from: then these will be our set's. */
static int open_others(const struct pins *pins, int *sets_fd, int *hooks_fd)
{
	struct takeover takeover;
	struct trouble trouble; /* an attach tells */
	int err = takeover_open(&takeover, pins, true, &trouble);

	if (!err && (takeover.fd[MAP_HOOK_BUCKETS] < 0 || takeover.fd[MAP_HOOKS] < 0))
		err = -ENOENT;
	if (!err) {
		*sets_fd = dup(takeover.fd[MAP_HOOK_BUCKETS]);
		*hooks_fd = dup(takeover.fd[MAP_HOOKS]);
		err = *sets_fd < 0 || *hooks_fd < 0 ? -errno : 0;
	}
	takeover_close(&takeover);
	return err ? -ENOENT : 0;
}

static size_t hooks_bytes(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (sizeof(struct hooks) + page - 1) / page * page;
}

static int map_both(struct hook_maps *maps, int sets_fd, int hooks_fd)
{
	void *sets = mmap(NULL, SETS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, sets_fd, 0);
	void *hooks;

	if (sets == MAP_FAILED)
		return -errno;
	hooks = mmap(NULL, hooks_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, hooks_fd, 0);
	if (hooks == MAP_FAILED) {
		int err = -errno;

		(void)munmap(sets, SETS_BYTES);
		return err;
	}
	maps->sets = sets;
	maps->hooks = hooks;
	return 0;
}

static bool is_same(const struct hook_maps *maps, const struct hook_maps *known)
{
	return known->sets && maps->sets_id == known->sets_id && maps->hooks_id == known->hooks_id;
}

static int explain(int err, const struct pins *pins, struct trouble *trouble)
{
	if (err != -ENOENT && err != -EALREADY) {
		trouble_set(trouble, 0, "cannot open %s and %s in %s: %s",
			    map_name(MAP_HOOK_BUCKETS), map_name(MAP_HOOKS), pins->set,
			    err == -EPROTO ? "they are not of this build" : strerror(-err));
		if (err == -EPROTO)
			trouble_advise(
				trouble,
				"take off what is left (sluice detach --all) and attach again");
		else
			trouble_advise(trouble,
				       "run as root, or with CAP_BPF; until then nothing is shed");
	}
	return err;
}

int hook_maps_open(struct hook_maps *out, const struct hook_maps *known, const struct pins *pins,
		   struct trouble *trouble)
{
	struct hook_maps maps = { 0 };
	int sets_fd = -1, hooks_fd = -1;
	int err = pins_exist(pins) ? open_pinned(pins, &sets_fd, &hooks_fd)
				   : open_others(pins, &sets_fd, &hooks_fd);

	if (!err)
		err = examine(sets_fd, MAP_HOOK_BUCKETS, &maps.sets_id);
	if (!err)
		err = examine(hooks_fd, MAP_HOOKS, &maps.hooks_id);
	if (!err && is_same(&maps, known))
		err = -EALREADY;
	if (!err)
		err = map_both(&maps, sets_fd, hooks_fd);
	if (sets_fd >= 0)
		(void)close(sets_fd);
	if (hooks_fd >= 0)
		(void)close(hooks_fd);
	if (err)
		return explain(err, pins, trouble);
	*out = maps;
	return 0;
}

void hook_maps_close(struct hook_maps *maps)
{
	if (maps->sets) {
		(void)munmap(maps->sets, SETS_BYTES);
		(void)munmap(maps->hooks, hooks_bytes());
	}
	*maps = (struct hook_maps){ 0 };
}
