/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The filter, by libbpf's netlink. */
#include "dataplane/clsact.h"

#include <errno.h>

#include <bpf/libbpf.h>

int clsact_query(uint32_t ifindex, uint32_t *program_id)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex, .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, options, .handle = CLSACT_HANDLE, .priority = CLSACT_PRIORITY);
	int err = bpf_tc_query(&hook, &options);

	/* Without a clsact, or with a filter of another kind there, the kernel says something else.
	 */
	if (err == -EINVAL)
		return -ENOENT;
	if (err)
		return err;
	*program_id = options.prog_id;
	return 0;
}

int clsact_attach(uint32_t ifindex, int program, bool replace)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex, .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, options, .prog_fd = program, .handle = CLSACT_HANDLE,
		    .priority = CLSACT_PRIORITY, .flags = replace ? BPF_TC_F_REPLACE : 0);
	int err = bpf_tc_hook_create(&hook);

	if (err && err != -EEXIST)
		return err;
	return bpf_tc_attach(&hook, &options);
}

int clsact_remove(uint32_t ifindex, uint32_t program_id)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex, .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, options, .handle = CLSACT_HANDLE, .priority = CLSACT_PRIORITY);
	uint32_t there;
	int err = clsact_query(ifindex, &there);

	if (err == -ENOENT || err == -ENODEV || (!err && there != program_id))
		return 0;
	return err ? err : bpf_tc_detach(&hook, &options);
}
