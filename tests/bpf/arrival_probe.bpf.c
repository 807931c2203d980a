/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Stands behind the program for TC at an interface, and counts what that lets through to it. */
#include <sluice/types.h>

#include <bpf/bpf_helpers.h>

__u64 arrived;

SEC("tc")
int arrival_probe(void *context)
{
	(void)context;
	arrived++;
	return -1; /* TC_ACT_UNSPEC: whatever comes after it may judge */
}

char arrival_probe_license[] SEC("license") = "Dual BSD/GPL";
