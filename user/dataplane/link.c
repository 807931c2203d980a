/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Making, renewing and removing what holds an interface. A link is detached before it is unpinned:
 * that takes the program off at once, where unpinning leaves it to a work queue.
 */
#include "dataplane/link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <linux/if_link.h>

#include "dataplane/clsact.h"
#include "dataplane/link_names.h"
#include "dataplane/tcx.h"

static int program_info(int fd, struct bpf_prog_info *info)
{
	uint32_t length = sizeof(*info);

	*info = (struct bpf_prog_info){};
	return bpf_obj_get_info_by_fd(fd, info, &length) ? -errno : 0;
}

static int pin_anew(int fd, const char *path)
{
	(void)unlink(path);
	return bpf_obj_pin(fd, path) ? -errno : 0;
}

static int create(enum rung rung, int program, uint32_t ifindex)
{
	enum bpf_attach_type type = rung == RUNG_TCX ? (enum bpf_attach_type)TCX_INGRESS : BPF_XDP;
	uint32_t flags = rung == RUNG_TCX       ? TCX_FIRST
			 : rung == RUNG_GENERIC ? XDP_FLAGS_SKB_MODE
						: XDP_FLAGS_DRV_MODE;
	LIBBPF_OPTS(bpf_link_create_opts, options, .flags = flags);
	int fd = bpf_link_create(program, (int)ifindex, type, &options);

	return fd < 0 ? -errno : fd;
}

int link_make(enum rung rung, int program, uint32_t ifindex, const char *folder, bool replace,
	      bool *is_pinning)
{
	enum link_kind kind = rung_kind(rung);
	char path[PATH_MAX], of_program[PATH_MAX];
	int err, fd = -1;

	*is_pinning = true;
	err = pin_anew(program, link_program_path(folder, kind, ifindex, of_program));
	if (err)
		return err;
	*is_pinning = false;
	if (kind == LINK_CLSACT) {
		err = clsact_attach(ifindex, program, replace);
	} else {
		fd = create(rung, program, ifindex);
		err = fd < 0 ? fd : pin_anew(fd, link_path(folder, kind, ifindex, path));
		*is_pinning = err && fd >= 0;
	}
	if (fd >= 0)
		(void)close(fd);
	if (err)
		(void)unlink(of_program);
	return err;
}

/* The program in the place of what the link or filter pinned in set runs. */
static int update(enum link_kind kind, uint32_t ifindex, const char *set, int program)
{
	LIBBPF_OPTS(bpf_link_update_opts, options);
	char path[PATH_MAX];
	int link, err = 0;

	if (kind == LINK_CLSACT)
		return clsact_attach(ifindex, program, true);
	link = bpf_obj_get(link_path(set, kind, ifindex, path));
	if (link < 0)
		return -errno;
	if (bpf_link_update(link, program, &options))
		err = -errno;
	(void)close(link);
	return err;
}

/* A pinned program, if it is the one of that number; -1 else. */
static int open_if(const char *path, uint32_t program_id)
{
	struct bpf_prog_info info;
	int fd = bpf_obj_get(path);

	if (fd >= 0 && !program_info(fd, &info) && info.id == program_id)
		return fd;
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

int link_keep(const struct link_facts *facts, const char *folder)
{
	char before[PATH_MAX], of_program[PATH_MAX];
	int err, fd;

	(void)link_before_path(folder, facts->kind, facts->ifindex, before);
	(void)link_program_path(folder, facts->kind, facts->ifindex, of_program);
	/* It is kept already by an attach that was killed together with its guard. */
	fd = open_if(before, facts->program_id);
	if (fd >= 0) {
		(void)close(fd);
		return 0;
	}
	fd = open_if(of_program, facts->program_id);
	if (fd < 0)
		fd = bpf_prog_get_fd_by_id(facts->program_id);
	if (fd < 0)
		return -errno;
	err = pin_anew(fd, before);
	(void)close(fd);
	return err;
}

/* A filter is known by the program that is pinned for it, so that comes first, and back if it
 * fails. */
static int renew_filter(const struct link_facts *facts, const char *folder, int program)
{
	char path[PATH_MAX];
	int err = pin_anew(program, link_path(folder, LINK_CLSACT, facts->ifindex, path));

	if (!err)
		err = update(LINK_CLSACT, facts->ifindex, folder, program);
	if (err)
		link_put_back(folder, LINK_CLSACT, facts->ifindex);
	return err;
}

int link_renew(const struct link_facts *facts, const char *folder, int program, const char *note)
{
	char path[PATH_MAX];
	int err;

	if (facts->kind == LINK_CLSACT)
		return renew_filter(facts, folder, program);
	err = update(facts->kind, facts->ifindex, folder, program);
	if (!err)
		err = pin_anew(program, link_program_path(note, facts->kind, facts->ifindex, path));
	return err;
}

/* Two instructions: return the verdict. */
static int load_parked(enum link_kind kind, bool frags)
{
	const struct bpf_insn instructions[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K,
		  .dst_reg = 0,
		  .imm = kind == LINK_XDP ? XDP_PASS : -1 /* TC_ACT_UNSPEC */ },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, options,
		    .expected_attach_type = kind == LINK_XDP ? BPF_XDP : 0,
		    .prog_flags = frags ? BPF_F_XDP_HAS_FRAGS : 0);

	return bpf_prog_load(kind == LINK_XDP ? BPF_PROG_TYPE_XDP : BPF_PROG_TYPE_SCHED_CLS,
			     LINK_PARKED, "GPL", instructions,
			     sizeof(instructions) / sizeof(instructions[0]), &options);
}

static int park(const struct link_facts *facts, const char *folder, bool frags)
{
	int program = load_parked(facts->kind, frags);
	int err;

	if (program < 0)
		return -errno;
	err = link_renew(facts, folder, program, folder);
	(void)close(program);
	return err;
}

int link_park(const struct link_facts *facts, const char *folder)
{
	int err = facts->rung == RUNG_NATIVE_FRAGS ? park(facts, folder, true) : -EINVAL;

	return err ? park(facts, folder, false) : 0;
}

void link_put_back(const char *folder, enum link_kind kind, uint32_t ifindex)
{
	char before[PATH_MAX], path[PATH_MAX];
	int program = bpf_obj_get(link_before_path(folder, kind, ifindex, before));

	if (program < 0)
		return;
	if (!update(kind, ifindex, folder, program))
		(void)rename(before, link_program_path(folder, kind, ifindex, path));
	(void)close(program);
}

void link_let_go(const char *folder, enum link_kind kind, uint32_t ifindex)
{
	char path[PATH_MAX];

	(void)unlink(link_before_path(folder, kind, ifindex, path));
}

static int remove_filter(const struct link_name *name, const char *path)
{
	struct bpf_prog_info info;
	int fd, err;

	if (name->netns != link_netns())
		return -EXDEV;
	fd = bpf_obj_get(path);
	if (fd < 0)
		return -errno;
	err = program_info(fd, &info);
	(void)close(fd);
	/* What is not a program is only unpinned. */
	return err ? 0 : clsact_remove(name->ifindex, info.id);
}

static void detach_link(const char *path)
{
	int fd = bpf_obj_get(path);

	/* Whatever is no link, or has no interface any more, is only unpinned. */
	if (fd < 0)
		return;
	(void)bpf_link_detach(fd);
	(void)close(fd);
}

int link_remove(const char *path)
{
	const char *last = strrchr(path, '/');
	char folder[PATH_MAX], beside[PATH_MAX];
	struct link_name name;
	int err = 0;

	if (!last || !link_parse(last + 1, &name))
		return -EINVAL;
	if (access(path, F_OK))
		return errno == ENOENT ? 0 : -errno;
	if (name.kind == LINK_CLSACT)
		err = remove_filter(&name, path);
	else
		detach_link(path);
	if (err)
		return err;
	if (unlink(path))
		return -errno;
	(void)snprintf(folder, sizeof(folder), "%.*s", (int)(last - path), path);
	(void)unlink(link_program_path(folder, name.kind, name.ifindex, beside));
	(void)unlink(link_before_path(folder, name.kind, name.ifindex, beside));
	return 0;
}

static int move(const char *from, const char *to)
{
	return rename(from, to) && errno != ENOENT ? -errno : 0;
}

int link_move(const char *from, const char *to, enum link_kind kind, uint32_t ifindex)
{
	char source[PATH_MAX], target[PATH_MAX];
	int err = 0;

	if (kind != LINK_CLSACT)
		err = move(link_program_path(from, kind, ifindex, source),
			   link_program_path(to, kind, ifindex, target));
	if (!err &&
	    rename(link_path(from, kind, ifindex, source), link_path(to, kind, ifindex, target)))
		err = -errno;
	return err;
}
