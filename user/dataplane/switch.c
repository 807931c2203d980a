/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Pins of programs beside their links. */
#include "dataplane/switch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

static const char *pin_path(const char *folder, const char *what, uint32_t ifindex,
			    char buffer[PATH_MAX])
{
	(void)snprintf(buffer, PATH_MAX, "%s/%s_%u", folder, what, ifindex);
	return buffer;
}

static uint32_t id_of(int fd)
{
	struct bpf_prog_info info = {};
	uint32_t length = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &length) ? 0 : info.id;
}

/* A pin, if it is of the program with that number; -1 else. */
static int open_if(const char *path, uint32_t program_id)
{
	int fd = bpf_obj_get(path);

	if (fd >= 0 && id_of(fd) == program_id)
		return fd;
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

static int pin(int fd, const char *path, struct trouble *trouble)
{
	(void)unlink(path); /* of an attach that was killed together with its guard */
	if (bpf_obj_pin(fd, path))
		return trouble_set(trouble, -errno, "cannot pin %s: %s", path, strerror(errno));
	return 0;
}

int switch_keep(const char *folder, uint32_t ifindex, uint32_t program_id, struct trouble *trouble)
{
	char path[PATH_MAX];
	int err, fd = open_if(pin_path(folder, "before", ifindex, path), program_id);

	if (fd >= 0) {
		(void)close(fd);
		return 0;
	}
	fd = open_if(pin_path(folder, "program", ifindex, path), program_id);
	if (fd < 0)
		fd = bpf_prog_get_fd_by_id(program_id);
	if (fd < 0) {
		err = -errno;
		trouble_set(trouble, 0,
			    "the program that is in place (id %u) cannot be kept, to be put "
			    "back if this fails: %s",
			    program_id, strerror(-err));
		trouble_advise(trouble, "run sluice attach once as root with all capabilities");
		return err;
	}
	err = pin(fd, pin_path(folder, "before", ifindex, path), trouble);
	(void)close(fd);
	return err;
}

int switch_note(const char *folder, uint32_t ifindex, int program_fd, struct trouble *trouble)
{
	char path[PATH_MAX];

	return pin(program_fd, pin_path(folder, "program", ifindex, path), trouble);
}

int switch_kept(const char *folder, uint32_t ifindex)
{
	char path[PATH_MAX];
	int fd = bpf_obj_get(pin_path(folder, "before", ifindex, path));

	return fd < 0 ? -errno : fd;
}

void switch_back(const char *folder, uint32_t ifindex)
{
	LIBBPF_OPTS(bpf_link_update_opts, options);
	int program = switch_kept(folder, ifindex);
	char path[PATH_MAX];
	int link;

	if (program < 0)
		return;
	link = bpf_obj_get(pin_path(folder, "link", ifindex, path));
	if (link >= 0 && !bpf_link_update(link, program, &options))
		switch_restored(folder, ifindex);
	if (link >= 0)
		(void)close(link);
	(void)close(program);
}

void switch_restored(const char *folder, uint32_t ifindex)
{
	char from[PATH_MAX], to[PATH_MAX];

	(void)rename(pin_path(folder, "before", ifindex, from),
		     pin_path(folder, "program", ifindex, to));
}

void switch_done(const char *folder, uint32_t ifindex)
{
	char path[PATH_MAX];

	(void)unlink(pin_path(folder, "before", ifindex, path));
}

void switch_forget(const char *folder, uint32_t ifindex)
{
	char path[PATH_MAX];

	(void)unlink(pin_path(folder, "before", ifindex, path));
	(void)unlink(pin_path(folder, "program", ifindex, path));
}
