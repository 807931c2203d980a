/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sending half of the generator: run on live frames, it gives each a source address and the
 * checksums that go with it, and sends it out of a device. The kernel uses a frame's memory again
 * without cleaning it, so everything that differs from frame to frame is written anew, never
 * adjusted.
 */
#include <sluice/types.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "tests/bench/flood.h"

const volatile struct flood_plan plan;

__u64 made; /* frames handed to the device; one process runs this, one frame at a time */

SLUICE_INLINE __u16 fold(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (__u16)~sum;
}

/* The sum of the 16-bit words of what was drawn; the rest of the address is in the plan's sums. */
SLUICE_INLINE __u32 sum_of(__u64 drawn)
{
	return (drawn & 0xffff) + (drawn >> 16 & 0xffff) + (drawn >> 32 & 0xffff) + (drawn >> 48);
}

SLUICE_INLINE __u64 random_u64(void)
{
	return (__u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32();
}

/* Which of the addresses, in host order: IPv4 whole, of IPv6 the upper half. */
SLUICE_INLINE __u64 draw(void)
{
	switch (plan.sources) {
	case SOURCES_SOME:
		return plan.source + bpf_get_prandom_u32() % plan.source_count;
	case SOURCES_RANDOM:
		if (plan.ipv6)
			return plan.source | (random_u64() & plan.source_mask);
		return plan.source | (bpf_get_prandom_u32() & plan.source_mask);
	default:
		return plan.source;
	}
}

SLUICE_INLINE void write_transport_sum(struct xdp_md *context, __u32 sum)
{
	__u8 *at = (__u8 *)(long)context->data + (plan.transport_sum_offset & 127);
	__u16 folded = fold(plan.transport_sum + sum);

	if (at + sizeof(folded) > (__u8 *)(long)context->data_end)
		return;
	if (plan.udp && !folded)
		folded = 0xffff; /* 0 would say that there is none */
	__builtin_memcpy(at, &folded, sizeof(folded));
}

SEC("xdp")
int flood(struct xdp_md *context)
{
	__u8 *frame = (void *)(long)context->data;

	if (frame + FLOOD_FRAME_MIN > (__u8 *)(long)context->data_end)
		return XDP_ABORTED;
	if (plan.ipv6) {
		__u64 half = bpf_cpu_to_be64(draw());

		__builtin_memcpy(frame + FLOOD_IPV6_SOURCE, &half, sizeof(half));
		write_transport_sum(context, sum_of(half));
	} else {
		__u32 source = bpf_htonl((__u32)draw());
		__u16 folded = fold(plan.ip_sum + sum_of(source));

		__builtin_memcpy(frame + FLOOD_IPV4_SOURCE, &source, sizeof(source));
		__builtin_memcpy(frame + FLOOD_IPV4_SUM, &folded, sizeof(folded));
		write_transport_sum(context, sum_of(source));
	}
	made++;
	return bpf_redirect(plan.device, 0);
}

char flood_license[] SEC("license") = "Dual BSD/GPL";
