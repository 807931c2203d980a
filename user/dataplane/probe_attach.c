/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A link of XDP, of tcx, and a filter under clsact, each on the loopback of a network namespace
 * that a child has made for it. The namespace and all that is in it go with the child, and no
 * interface of anybody sees a program. Making a namespace takes CAP_SYS_ADMIN; without it only the
 * kernel's answer to a query tells, and of tcx only.
 */
#include "dataplane/probe_attach.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <linux/if_link.h>

#include "dataplane/tcx.h"

enum { LOOPBACK = 1 }; /* its index in every namespace */

/* In the order in which the child writes them. */
enum { TRIED_LINK, TRIED_TCX, TRIED_CLSACT, TRIED };

static int load(enum bpf_prog_type type, int verdict)
{
	const struct bpf_insn instructions[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = verdict },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd = bpf_prog_load(type, "sluice_probe", "GPL", instructions,
			       sizeof(instructions) / sizeof(instructions[0]), NULL);

	return fd < 0 ? -errno : fd;
}

static int link_up(int program, enum bpf_attach_type type, uint32_t flags)
{
	LIBBPF_OPTS(bpf_link_create_opts, options, .flags = flags);
	int fd;

	if (program < 0)
		return program;
	fd = bpf_link_create(program, LOOPBACK, type, &options);
	if (fd < 0)
		return -errno;
	(void)close(fd);
	return 0;
}

static int filter(int program)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = LOOPBACK, .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, options, .prog_fd = program);
	int err;

	if (program < 0)
		return program;
	err = bpf_tc_hook_create(&hook);
	return err ? err : bpf_tc_attach(&hook, &options);
}

/* In the child. -errno of making the namespace, or 0. */
static int try_all(int errors[TRIED])
{
	int xdp, tc;

	if (unshare(CLONE_NEWNET))
		return -errno;
	xdp = load(BPF_PROG_TYPE_XDP, 2 /* XDP_PASS */);
	tc = load(BPF_PROG_TYPE_SCHED_CLS, -1 /* TC_ACT_UNSPEC */);
	errors[TRIED_LINK] = link_up(xdp, BPF_XDP, XDP_FLAGS_SKB_MODE);
	errors[TRIED_TCX] = link_up(tc, (enum bpf_attach_type)TCX_INGRESS, 0);
	errors[TRIED_CLSACT] = filter(tc);
	return 0;
}

/* -errno of the child or of its namespace; else 0, and what each try came to. */
static int ask_child(int errors[TRIED])
{
	int told[TRIED + 1] = { [TRIED] = -EIO };
	int pipe_fd[2], err = -EIO;
	pid_t child;

	if (pipe(pipe_fd))
		return -errno;
	child = fork();
	if (child < 0)
		err = -errno;
	if (child == 0) {
		told[TRIED] = try_all(told);
		_exit(write(pipe_fd[1], told, sizeof(told)) != sizeof(told));
	}
	(void)close(pipe_fd[1]);
	if (child > 0 && read(pipe_fd[0], told, sizeof(told)) == sizeof(told)) {
		memcpy(errors, told, TRIED * sizeof(*errors));
		err = told[TRIED];
	}
	(void)close(pipe_fd[0]);
	if (child > 0)
		(void)waitpid(child, NULL, 0);
	return err;
}

static struct trial settle(int err)
{
	if (!err)
		return (struct trial){ ANSWER_YES, 0 };
	return (struct trial){ err == -EPERM ? ANSWER_UNKNOWN : ANSWER_NO, err };
}

/* Asking who is there is refused with -EINVAL by a kernel that has never heard of it. */
static struct trial query_tcx(void)
{
	uint32_t count = 0;
	int err = bpf_prog_query(LOOPBACK, (enum bpf_attach_type)TCX_INGRESS, 0, NULL, NULL, &count)
			  ? -errno
			  : 0;

	return settle(err);
}

void probe_attach(struct trial features[FEATURES])
{
	int errors[TRIED] = {};
	int err = ask_child(errors);

	if (err) {
		features[FEATURE_LINK] = (struct trial){ ANSWER_UNKNOWN, err };
		features[FEATURE_CLSACT] = (struct trial){ ANSWER_UNKNOWN, err };
		features[FEATURE_TCX] = query_tcx();
		return;
	}
	features[FEATURE_LINK] = settle(errors[TRIED_LINK]);
	features[FEATURE_TCX] = settle(errors[TRIED_TCX]);
	features[FEATURE_CLSACT] = settle(errors[TRIED_CLSACT]);
}
