/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program that gives the frame another IPv4 source each time and then does what sluice_xdp does,
 * so that test runs, which repeat one frame, can be of as many addresses as a flood. Included
 * after bpf/sluice.bpf.c by each variant of it that is measured.
 */
#ifndef TESTS_BENCH_FRESH_H
#define TESTS_BENCH_FRESH_H

#include <bpf/bpf_endian.h>

#include "tests/bench/flood.h"

__u32 fresh_source; /* the last one, in host order */
__u32 fresh_step;   /* odd: no address comes twice in 2^32; 0: always the same */

SEC("xdp")
int sluice_fresh(struct xdp_md *context)
{
	__u8 *frame = (void *)(long)context->data;
	__u32 source;

	if (frame + FLOOD_FRAME_MIN > (__u8 *)(long)context->data_end)
		return XDP_ABORTED;
	fresh_source += fresh_step;
	source = bpf_htonl(fresh_source);
	__builtin_memcpy(frame + FLOOD_IPV4_SOURCE, &source, sizeof(source));
	return handle(context, context->data_end - context->data);
}

#endif
