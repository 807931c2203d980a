/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opens the embedded object, puts it on pinned maps if there are any, loads it, arms the sweep. */
#include "dataplane/object.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <sluice/abi.h>

#include "sluice.skel.h"

#include "dataplane/explain.h"

struct object {
	struct sluice_bpf *skeleton;
	bool has_frags;
};

static bool is_verbose;

static int print_if_verbose(enum libbpf_print_level level, const char *format, va_list arguments)
{
	(void)level;
	return is_verbose ? vfprintf(stderr, format, arguments) : 0;
}

void object_set_verbose(bool verbose)
{
	is_verbose = verbose;
	(void)libbpf_set_print(print_if_verbose);
}

static struct bpf_map *find_map(const struct object *object, enum map_id id)
{
	return bpf_object__find_map_by_name(object->skeleton->obj, map_name(id));
}

static int reuse_maps(struct object *object, const int adopted[MAPS])
{
	int err = 0;

	for (int id = 0; adopted && !err && id < MAPS; id++)
		if (adopted[id] >= 0)
			err = bpf_map__reuse_fd(find_map(object, id), adopted[id]);
	return err;
}

/* One try at loading, with or without the program for frames in several buffers. */
static int try_load(struct object *object, const int adopted[MAPS], bool frags)
{
	int err;

	sluice_bpf__destroy(object->skeleton);
	object->skeleton = sluice_bpf__open();
	if (!object->skeleton)
		return -errno;
	(void)bpf_program__set_autoload(object->skeleton->progs.sluice_frags, frags);
	/* The daemon's, see tenants.c. */
	(void)bpf_map__set_autocreate(object->skeleton->maps.tenants, false);
	(void)bpf_map__set_autocreate(object->skeleton->maps.tenants_secret, false);
	object->has_frags = frags;
	err = reuse_maps(object, adopted);
	return err ? err : sluice_bpf__load(object->skeleton);
}

static int arm_sweep(const struct object *object)
{
	LIBBPF_OPTS(bpf_test_run_opts, run);
	int err = bpf_prog_test_run_opts(bpf_program__fd(object->skeleton->progs.sluice_arm), &run);

	if (err)
		return err;
	return (int)run.retval;
}

int object_load(const int adopted[MAPS], struct object **out, struct trouble *trouble)
{
	struct object *object = calloc(1, sizeof(*object));
	int err;

	if (!object)
		return trouble_set(trouble, -ENOMEM, "out of memory");
	object_set_verbose(is_verbose);
	err = try_load(object, adopted, true);
	if (err && err != -EPERM && err != -EACCES)
		err = try_load(object, adopted, false);
	if (err) {
		explain_load(err, trouble);
		goto fail;
	}
	err = arm_sweep(object);
	if (err) {
		trouble_set(trouble, 0, "the sweep's timer cannot be armed: %s", strerror(-err));
		goto fail;
	}
	*out = object;
	return 0;
fail:
	object_free(object);
	return err;
}

void object_free(struct object *object)
{
	if (!object)
		return;
	sluice_bpf__destroy(object->skeleton);
	free(object);
}

int object_single_fd(const struct object *object)
{
	return bpf_program__fd(object->skeleton->progs.sluice_xdp);
}

int object_tc_fd(const struct object *object)
{
	return bpf_program__fd(object->skeleton->progs.sluice_tc);
}

int object_frags_fd(const struct object *object)
{
	return object->has_frags ? bpf_program__fd(object->skeleton->progs.sluice_frags) : -1;
}

int object_maps(const struct object *object, struct maps *maps)
{
	int fd[MAPS];

	for (int id = 0; id < MAPS; id++)
		fd[id] = bpf_map__fd(find_map(object, id));
	return maps_adopt(maps, fd);
}

int object_pin_maps(const struct object *object, const char *folder, struct trouble *trouble)
{
	char path[PATH_MAX];

	for (int id = 0; id < MAPS; id++) {
		if (!bpf_obj_pin(bpf_map__fd(find_map(object, id)),
				 pins_path(folder, map_name(id), path)))
			continue;
		return trouble_set(trouble, -errno, "cannot pin %s: %s", path, strerror(errno));
	}
	return 0;
}
