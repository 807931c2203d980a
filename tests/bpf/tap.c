/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The namespace, the interface, the two filters at it, and writing to it. */
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include <linux/if.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>

#include "arrival_probe.skel.h"
#include "sluice_test.skel.h"

enum { PRIORITY_OURS = 1, PRIORITY_PROBE = 2 };

static void set_up(struct ifreq request)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, SIOCGIFFLAGS, &request), 0);
	request.ifr_flags |= IFF_UP;
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &request), 0);
	close(fd);
}

static void put_filter(uint32_t ifindex, int program, uint32_t priority)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex, .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, options, .prog_fd = program, .handle = 1, .priority = priority);

	assert_int_equal(bpf_tc_attach(&hook, &options), 0);
}

bool tap_is_known(void)
{
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

void tap_own_namespace(void)
{
	assert_int_equal(unshare(CLONE_NEWNET), 0);
}

int tap_make(uint32_t ifindex)
{
	struct ifreq request = { .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR };
	unsigned int wanted = ifindex;
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	snprintf(request.ifr_name, sizeof(request.ifr_name), "tap%u", ifindex);
	assert_int_equal(ioctl(fd, TUNSETIFINDEX, &wanted), 0);
	assert_int_equal(ioctl(fd, TUNSETIFF, &request), 0);
	set_up(request);
	return fd;
}

void tap_open(struct tap *tap, const struct harness *harness, uint32_t ifindex)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex, .attach_point = BPF_TC_INGRESS);

	tap_own_namespace();
	tap->fd = tap_make(ifindex);
	tap->ifindex = ifindex;
	tap->arrived = 0;
	tap->probe = arrival_probe_bpf__open_and_load();
	assert_non_null(tap->probe);
	assert_int_equal(bpf_tc_hook_create(&hook), 0);
	put_filter(ifindex, bpf_program__fd(harness->skeleton->progs.sluice_tc), PRIORITY_OURS);
	put_filter(ifindex, bpf_program__fd(tap->probe->progs.arrival_probe), PRIORITY_PROBE);
}

void tap_close(struct tap *tap)
{
	arrival_probe_bpf__destroy(tap->probe);
	close(tap->fd);
}

struct ran tap_send(struct tap *tap, struct harness *harness, const struct tap_frame *frame)
{
	struct virtio_net_hdr header = { .hdr_len = (uint16_t)frame->linear_bytes };
	struct iovec parts[] = {
		{ .iov_base = &header, .iov_len = sizeof(header) },
		{ .iov_base = (void *)frame->byte, .iov_len = frame->bytes },
	};
	uint64_t arrived;

	if (frame->payload_each) {
		header.gso_type =
			frame->is_v6 ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4;
		header.gso_size = frame->payload_each;
	}
	harness->ifindex = tap->ifindex;
	if (writev(tap->fd, parts, 2) != (ssize_t)(sizeof(header) + frame->bytes))
		fail_msg("a frame of %u bytes cannot be sent: %s", frame->bytes, strerror(errno));
	arrived = __atomic_load_n(&tap->probe->bss->arrived, __ATOMIC_RELAXED) - tap->arrived;
	tap->arrived += arrived;
	assert_in_range(arrived, 0, 1);
	return harness_outcome(harness, !arrived);
}
