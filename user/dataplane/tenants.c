/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes the two maps from the embedded object, of which it loads nothing else, so that they carry the
 * types bpftool shows. They are pinned in a folder that is renamed into place when it is whole.
 */
#include "dataplane/tenants.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <sluice/abi.h>

#include "sluice.skel.h"

#include "base/lock.h"
#include "dataplane/explain.h"

static int refuse(const char *what, const char *path, int err, struct trouble *trouble)
{
	trouble_set(trouble, 0, "cannot %s %s: %s", what, path, strerror(-err));
	trouble_advise(trouble, "run as root, or set `dataplane: off` to keep debts in memory");
	return err;
}

/* Only the two maps: no program, no other map. */
static int load_maps(struct sluice_bpf *object, size_t slots)
{
	struct bpf_program *program;
	struct bpf_map *map;

	bpf_object__for_each_program(program, object->obj)(void)
		bpf_program__set_autoload(program, false);
	bpf_object__for_each_map(map, object->obj)(void) bpf_map__set_autocreate(
		map, map == object->maps.tenants || map == object->maps.tenants_secret);
	(void)bpf_map__set_max_entries(object->maps.tenants, (uint32_t)slots);
	return sluice_bpf__load(object);
}

static int pin_new(const struct sluice_bpf *object, const struct pins *pins)
{
	char path[PATH_MAX];
	struct siphash_key secret;
	uint32_t only = 0;

	if (getrandom(&secret, sizeof(secret), 0) != sizeof(secret) ||
	    bpf_map_update_elem(bpf_map__fd(object->maps.tenants_secret), &only, &secret,
				BPF_ANY) ||
	    mkdir(pins->staging, 0700) ||
	    bpf_obj_pin(bpf_map__fd(object->maps.tenants),
			pins_path(pins->staging, "tenants", path)) ||
	    bpf_obj_pin(bpf_map__fd(object->maps.tenants_secret),
			pins_path(pins->staging, "tenants_secret", path)) ||
	    rename(pins->staging, pins->daemon))
		return -errno;
	return 0;
}

static int make(const struct pins *pins, size_t slots, struct trouble *trouble)
{
	struct sluice_bpf *object = sluice_bpf__open();
	int err = object ? load_maps(object, slots) : -errno;

	if (err) {
		explain_load(err, trouble);
	} else {
		(void)pins_remove(pins->staging);
		err = pin_new(object, pins);
		if (err)
			refuse("pin", pins->daemon, err, trouble);
	}
	sluice_bpf__destroy(object);
	return err;
}

static int map_slots(struct tenant_map *map, int fd)
{
	struct bpf_map_info info = {};
	uint32_t length = sizeof(info);
	void *memory;

	if (bpf_obj_get_info_by_fd(fd, &info, &length))
		return -errno;
	if (info.type != BPF_MAP_TYPE_ARRAY || info.value_size != sizeof(struct bucket_slot))
		return -EPROTO;
	memory = mmap(NULL, (size_t)info.max_entries * sizeof(struct bucket_slot),
		      PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	map->slots = memory;
	map->count = info.max_entries;
	return 0;
}

static int open_pinned(struct tenant_map *map, const struct pins *pins, struct trouble *trouble)
{
	char path[PATH_MAX];
	uint32_t only = 0;
	int err = 0, fd = bpf_obj_get(pins_path(pins->daemon, "tenants_secret", path));

	if (fd < 0 || bpf_map_lookup_elem(fd, &only, &map->secret))
		err = -errno;
	if (fd >= 0)
		(void)close(fd);
	if (err)
		return refuse("read", path, err, trouble);
	fd = bpf_obj_get(pins_path(pins->daemon, "tenants", path));
	err = fd < 0 ? -errno : map_slots(map, fd);
	if (fd >= 0)
		(void)close(fd);
	return err ? refuse("map", path, err, trouble) : 0;
}

/* One daemon at a time has the map: the lock is on its folder, and goes with the process. */
static int lock(struct tenant_map *map, const struct pins *pins, struct trouble *trouble)
{
	char holder[LOCK_HOLDER_MAX];
	int err;

	map->lock_fd = open(pins->daemon, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (map->lock_fd < 0)
		return refuse("open", pins->daemon, -errno, trouble);
	err = lock_take(map->lock_fd, holder);
	if (!err)
		return 0;
	(void)close(map->lock_fd);
	if (err != -EWOULDBLOCK)
		return refuse("lock", pins->daemon, err, trouble);
	trouble_set(trouble, 0, "%s is in use by another sluiced%s", pins->daemon, holder);
	trouble_advise(trouble, "stop that one, or name another folder with `bpffs`");
	return err;
}

int tenant_map_open(struct tenant_map *map, const struct pins *pins, size_t slots,
		    struct trouble *trouble)
{
	int err = 0;

	*map = (struct tenant_map){ .adopted = !access(pins->daemon, F_OK) };
	if (!map->adopted)
		err = make(pins, slots, trouble);
	if (!err)
		err = lock(map, pins, trouble);
	if (err)
		return err;
	err = open_pinned(map, pins, trouble);
	if (err)
		(void)close(map->lock_fd);
	return err;
}

void tenant_map_close(struct tenant_map *map)
{
	if (map->slots) {
		(void)munmap(map->slots, map->count * sizeof(*map->slots));
		(void)close(map->lock_fd);
	}
	*map = (struct tenant_map){};
}
