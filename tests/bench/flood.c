/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The project's packet generator: sends frames out of a veth device of the network namespace that
 * it is started in, as fast as it can or at a rate, from one source address, from some, or from a
 * new one each time. flood.bpf.c does the sending, flood_request.h reads the command line, frame.h
 * builds the frame; here are the device, the pace and the figures.
 *
 * Two numbers tell what happened: `made` frames were given to the device, and `sent` of them its
 * peer has taken in, by the device's own counters. Fewer sent than made means that the peer's
 * queue was full; none at all, that the peer has neither an XDP program nor GRO on and swallows
 * every frame.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <linux/if_link.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "tests/bench/counters.h"
#include "tests/bench/flood.h"
#include "tests/bench/flood_request.h"

#include "flood.skel.h"

enum {
	EXIT_USAGE = 2,
	LOOPBACK_IFINDEX = 1,
	BATCH = 64,           /* frames between two flushes of the device */
	CHUNK = 8192,         /* frames between two looks at the clock */
	PACE_NS = 1000000,    /* between two batches under --rate */
	SETTLE_NS = 20000000, /* for the peer to work off its queue */
};

struct figures {
	uint64_t made;
	uint64_t sent;
	double seconds;
	double cpu_seconds; /* of this process, and so of what receives on the same CPU */
};

static volatile sig_atomic_t is_stopped;

static void stop(int signal_number)
{
	(void)signal_number;
	is_stopped = 1;
}

/* ---- the device */

static int ask_device(const struct request *request, unsigned long what, struct ifreq *answer)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	strcpy(answer->ifr_name, request->device);
	err = ioctl(fd, what, answer) ? -errno : 0;
	close(fd);
	return err;
}

/* Frames of invented addresses must not reach a real network: veth only. */
static int open_device(struct request *request)
{
	struct ethtool_drvinfo driver = { .cmd = ETHTOOL_GDRVINFO };
	struct ifreq answer = { 0 };

	request->ifindex = if_nametoindex(request->device);
	if (!request->ifindex)
		return complain("no such device", request->device);
	answer.ifr_data = (void *)&driver;
	if (ask_device(request, SIOCETHTOOL, &answer) || strcmp(driver.driver, "veth"))
		return complain("not a veth, and it sends on nothing else", request->device);
	if (ask_device(request, SIOCGIFHWADDR, &answer))
		return complain("no address", request->device);
	memcpy(request->wish.source_mac, answer.ifr_hwaddr.sa_data, ETH_ALEN);
	return 0;
}

/* ---- sending */

static uint64_t host_u64(const unsigned char *bytes, int count)
{
	uint64_t value = 0;

	for (int at = 0; at < count; at++)
		value = value << 8 | bytes[at];
	return value;
}

static struct flood_plan plan_of(const struct request *request, const struct frame *frame)
{
	bool ipv6 = request->wish.ipv6;
	const union address *from =
		request->sources == SOURCES_ONE ? &request->wish.source : &request->base;
	struct flood_plan plan = {
		.source = ipv6 ? host_u64(from->byte, 8) : host_u64(from->byte + 12, 4),
		.source_mask = ~0ULL >> (ipv6 ? 0 : 32),
		.source_count = request->source_count,
		.sources = request->sources,
		.device = request->ifindex,
		.ip_sum = frame->ip_sum,
		.transport_sum = frame->transport_sum,
		.transport_sum_offset = frame->transport_sum_offset,
		.ipv6 = ipv6,
		.udp = frame_is_udp(request->wish.kind),
	};

	if (request->sources != SOURCES_ONE) {
		plan.source_mask = request->base_bits >= (ipv6 ? 64 : 32)
					   ? 0
					   : plan.source_mask >> request->base_bits;
		plan.source &= ~plan.source_mask;
	}
	return plan;
}

static uint64_t read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void wait_ns(uint64_t length_ns)
{
	nanosleep(&(struct timespec){ 0, (long)length_ns }, NULL);
}

/* How many frames are due now; 0: none yet. */
static uint64_t due(const struct request *request, uint64_t made, uint64_t elapsed_ns)
{
	uint64_t count = CHUNK;

	if (request->rate) {
		uint64_t by_now = (uint64_t)((double)request->rate * (double)elapsed_ns / 1e9) + 1;

		count = by_now <= made ? 0 : by_now - made;
	}
	if (request->packets && count > request->packets - made)
		count = request->packets - made;
	return count < CHUNK ? count : CHUNK;
}

static int send_frames(const struct request *request, const struct frame *frame,
		       struct flood_bpf *program, struct figures *figures)
{
	LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = frame->data, .data_size_in = frame->bytes,
		    .flags = BPF_F_TEST_XDP_LIVE_FRAMES);
	volatile uint64_t *made = (volatile uint64_t *)&program->bss->made;
	uint64_t start_ns = read_clock(CLOCK_MONOTONIC), elapsed_ns = 0;
	uint64_t cpu_start_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID);
	uint64_t length_ns = (uint64_t)(request->seconds * 1e9);
	int err;

	while (!is_stopped && elapsed_ns < length_ns &&
	       (!request->packets || *made < request->packets)) {
		uint64_t count = due(request, *made, elapsed_ns);

		if (count) {
			run.repeat = (int)count;
			run.batch_size = count < BATCH ? (uint32_t)count : BATCH;
			err = bpf_prog_test_run_opts(bpf_program__fd(program->progs.flood), &run);
			if (err && err != -EINTR)
				return err;
		} else {
			wait_ns(PACE_NS);
		}
		elapsed_ns = read_clock(CLOCK_MONOTONIC) - start_ns;
	}
	figures->made = *made;
	figures->seconds = (double)elapsed_ns / 1e9;
	figures->cpu_seconds = (double)(read_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu_start_ns) / 1e9;
	return 0;
}

/*
 * A test run of more than one frame enters the program into the kernel's XDP dispatcher and takes
 * it out again, which waits for all CPUs: 24 ms a call, where a call takes 8 us else. A program
 * that is attached somewhere is in the dispatcher already, so this one is attached where no packet
 * comes by, to the loopback device of a namespace that goes with this process. Without that it
 * only is slower.
 */
static int stay_in_dispatcher(int program)
{
	LIBBPF_OPTS(bpf_link_create_opts, options, .flags = XDP_FLAGS_SKB_MODE);
	int ours = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	if (ours < 0 || unshare(CLONE_NEWNET))
		return 0;
	/* These stay open until the process ends, on purpose. */
	(void)open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	(void)bpf_link_create(program, LOOPBACK_IFINDEX, BPF_XDP, &options);
	return setns(ours, CLONE_NEWNET) ? -errno : 0;
}

static int load(const struct flood_plan *plan, struct flood_bpf **out)
{
	struct flood_bpf *program = flood_bpf__open();
	int err;

	if (!program)
		return -errno;
	memcpy((void *)&program->rodata->plan, plan, sizeof(*plan));
	err = flood_bpf__load(program);
	if (!err)
		err = stay_in_dispatcher(bpf_program__fd(program->progs.flood));
	if (err) {
		flood_bpf__destroy(program);
		return err;
	}
	*out = program;
	return 0;
}

static int run(const struct request *request, const struct frame *frame, struct figures *figures)
{
	struct flood_plan plan = plan_of(request, frame);
	struct rtnl_link_stats64 before, after;
	struct flood_bpf *program = NULL;
	int counters = counters_open();
	int err = counters < 0 ? counters : load(&plan, &program);

	if (!err)
		err = counters_get(counters, request->ifindex, &before);
	if (!err)
		err = send_frames(request, frame, program, figures);
	if (!err) {
		wait_ns(SETTLE_NS);
		err = counters_get(counters, request->ifindex, &after);
	}
	if (!err)
		figures->sent = after.tx_packets - before.tx_packets;
	flood_bpf__destroy(program);
	if (counters >= 0)
		close(counters);
	return err;
}

static void print_figures(const struct request *request, const struct figures *figures)
{
	double rate = figures->seconds > 0 ? (double)figures->sent / figures->seconds : 0;

	if (request->json) {
		printf("{\"made\": %llu, \"sent\": %llu, \"seconds\": %.6f, "
		       "\"cpu_seconds\": %.6f, \"rate\": %.0f}\n",
		       (unsigned long long)figures->made, (unsigned long long)figures->sent,
		       figures->seconds, figures->cpu_seconds, rate);
		return;
	}
	printf("sent %llu of %llu frames in %.3f s: %.0f/s\n", (unsigned long long)figures->sent,
	       (unsigned long long)figures->made, figures->seconds, rate);
	if (figures->made && !figures->sent)
		printf("none arrived: the peer of %s has neither an XDP program nor GRO on\n",
		       request->device);
}

int main(int argc, char **argv)
{
	struct request request = {
		.wish = { .destination_port = 443, .destination_mac = { 2, 0, 0, 0, 0, 1 } },
	};
	struct figures figures = { 0 };
	struct frame frame;
	int err = parse_flags(argc, argv, &request);

	if (err)
		return err > 0 ? 0 : EXIT_USAGE;
	if (complete(&request) || open_device(&request))
		return EXIT_USAGE;
	if (frame_build(&request.wish, &frame)) {
		complain("--size is less than the headers take", NULL);
		return EXIT_USAGE;
	}
	sigaction(SIGINT, &(struct sigaction){ .sa_handler = stop }, NULL);
	sigaction(SIGTERM, &(struct sigaction){ .sa_handler = stop }, NULL);
	err = run(&request, &frame, &figures);
	if (err) {
		fprintf(stderr, "flood: cannot send: %s\n", strerror(-err));
		return EXIT_FAILURE;
	}
	print_figures(&request, &figures);
	return 0;
}
