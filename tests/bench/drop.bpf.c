/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A peer that nothing can be faster than: it drops every frame and looks at none. */
#include <sluice/types.h>

#include <bpf/bpf_helpers.h>

SEC("xdp")
int drop(struct xdp_md *context)
{
	(void)context;
	return XDP_DROP;
}

char drop_license[] SEC("license") = "Dual BSD/GPL";
