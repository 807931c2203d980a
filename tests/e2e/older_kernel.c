/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * To be preloaded: bpf(2) as a kernel would answer that lacks what the variable LACKS names: `tcx`
 * (before 6.6), `frags` (before 5.18). What it refuses is refused as there, with EINVAL; all else
 * is left to the kernel that runs.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include <linux/bpf.h>

enum { TCX_INGRESS = 46, HAS_FRAGS = 1 << 5 };

static int lacks(const char *what)
{
	const char *list = getenv("LACKS");

	return list && strstr(list, what);
}

static int is_unknown(int command, const union bpf_attr *attr)
{
	switch (command) {
	case BPF_LINK_CREATE:
		return lacks("tcx") && attr->link_create.attach_type == TCX_INGRESS;
	case BPF_PROG_QUERY:
		return lacks("tcx") && attr->query.attach_type == TCX_INGRESS;
	case BPF_PROG_LOAD:
		return lacks("frags") && attr->prog_flags & HAS_FRAGS;
	default:
		return 0;
	}
}

long syscall(long number, ...)
{
	long (*next)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	va_list list;
	long of[6];

	va_start(list, number);
	for (int at = 0; at < 6; at++)
		of[at] = va_arg(list, long);
	va_end(list);
	if (number == SYS_bpf && is_unknown((int)of[0], (const union bpf_attr *)of[1])) {
		errno = EINVAL;
		return -1;
	}
	return next(number, of[0], of[1], of[2], of[3], of[4], of[5]);
}
