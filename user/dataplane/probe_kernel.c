/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the kernel can do, found by trying it: versions lie, since distributions port features back
 * and leave others out. Programs are a few instructions written out here, so that one that is
 * refused tells about one thing only.
 */
#include "dataplane/probe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/clock.h"
#include "dataplane/object.h"
#include "dataplane/probe_attach.h"

enum {
	CLOCK_READS = 64, /* in one program */
	CLOCK_ROUNDS = 200,
	FRAME_BYTES = 64,
	NS_PER_MS = 1000000,
};

/* Instructions, as the kernel's own macros have them. */
#define MOVE(register, value)                                                              \
	{                                                                                  \
		.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = (register), .imm = (value) \
	}
#define STORE(offset, value)                                                                      \
	{                                                                                         \
		.code = BPF_ST | BPF_MEM | BPF_DW, .dst_reg = 10, .off = (offset), .imm = (value) \
	}
#define COMPARE_AND_SWAP(offset, source)                                                   \
	{                                                                                  \
		.code = BPF_STX | BPF_ATOMIC | BPF_DW, .dst_reg = 10, .src_reg = (source), \
		.off = (offset), .imm = BPF_CMPXCHG                                        \
	}
#define CALL(helper)                                        \
	{                                                   \
		.code = BPF_JMP | BPF_CALL, .imm = (helper) \
	}
#define EXIT()                             \
	{                                  \
		.code = BPF_JMP | BPF_EXIT \
	}

/* Make a trial of a descriptor, which is closed, or of an -errno. */
static struct trial settle(int fd)
{
	if (fd < 0)
		return (struct trial){ fd == -EPERM ? ANSWER_UNKNOWN : ANSWER_NO, fd };
	(void)close(fd);
	return (struct trial){ ANSWER_YES, 0 };
}

static int load(const struct bpf_insn *instructions, size_t count, uint32_t flags)
{
	LIBBPF_OPTS(bpf_prog_load_opts, options, .prog_flags = flags);
	int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "sluice_probe", "GPL", instructions, count,
			       &options);

	return fd < 0 ? -errno : fd;
}

static int load_pass(uint32_t flags)
{
	const struct bpf_insn pass[] = { MOVE(0, 2), EXIT() }; /* XDP_PASS */

	return load(pass, sizeof(pass) / sizeof(pass[0]), flags);
}

static struct trial try_compare_and_swap(void)
{
	const struct bpf_insn swap[] = {
		STORE(-8, 0), MOVE(0, 0), MOVE(1, 1), COMPARE_AND_SWAP(-8, 1), MOVE(0, 2), EXIT(),
	};

	return settle(load(swap, sizeof(swap) / sizeof(swap[0]), 0));
}

static struct trial try_mapped_array(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "sluice_probe", 4, 8, 1, &options);
	struct trial trial = { ANSWER_YES, 0 };
	void *memory;

	if (fd < 0)
		return settle(-errno);
	memory = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		trial = (struct trial){ ANSWER_NO, -errno };
	else
		(void)munmap(memory, page);
	(void)close(fd);
	return trial;
}

/* libbpf's way of asking: 1, 0, or -errno. */
static struct trial said(int answer)
{
	if (answer < 0)
		return (struct trial){ ANSWER_UNKNOWN, answer };
	return (struct trial){ answer ? ANSWER_YES : ANSWER_NO, 0 };
}

/* The mean time of a run, in ns; negative: it cannot be run. */
static double run(int program)
{
	static char frame[FRAME_BYTES];
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = sizeof(frame),
		    .repeat = CLOCK_ROUNDS);

	return bpf_prog_test_run_opts(program, &options) ? -1 : (double)options.duration;
}

/* What one call of a helper costs, over that of a program which does nothing. */
static double time_helper(int helper, double nothing_ns)
{
	struct bpf_insn calls[CLOCK_READS + 2] = {};
	double ns;
	int fd;

	for (int at = 0; at < CLOCK_READS; at++)
		calls[at] = (struct bpf_insn)CALL(helper);
	calls[CLOCK_READS] = (struct bpf_insn)MOVE(0, 2);
	calls[CLOCK_READS + 1] = (struct bpf_insn)EXIT();
	fd = load(calls, CLOCK_READS + 2, 0);
	if (fd < 0)
		return 0;
	ns = run(fd);
	(void)close(fd);
	return ns > nothing_ns ? (ns - nothing_ns) / CLOCK_READS : 0;
}

static void time_clocks(int program, struct kernel_facts *out)
{
	double nothing_ns = run(program);

	out->features[FEATURE_TEST_RUN] = nothing_ns < 0 ? (struct trial){ ANSWER_NO, -errno }
							 : (struct trial){ ANSWER_YES, 0 };
	if (nothing_ns < 0)
		return;
	out->fine_clock_ns = time_helper(BPF_FUNC_ktime_get_ns, nothing_ns);
	if (out->features[FEATURE_COARSE_CLOCK].answer == ANSWER_YES)
		out->coarse_clock_ns = time_helper(BPF_FUNC_ktime_get_coarse_ns, nothing_ns);
}

static enum answer is_compiled(int program)
{
	struct bpf_prog_info info = {};
	uint32_t length = sizeof(info);

	if (bpf_obj_get_info_by_fd(program, &info, &length))
		return ANSWER_UNKNOWN;
	return info.jited_prog_len ? ANSWER_YES : ANSWER_NO;
}

/* The kernel tells in /proc how much of the memory of its account a map has. */
static uint64_t bytes_of_map(int fd)
{
	unsigned long long bytes = 0;
	char path[48], line[128];
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "memlock: %llu", &bytes) == 1)
			break;
	(void)fclose(file);
	return bytes;
}

static void try_object(struct kernel_facts *out)
{
	struct trial *trial = &out->features[FEATURE_OBJECT];
	uint64_t begin_ns = clock_monotonic_ns();
	struct object *object;
	struct maps maps;
	int err = object_load(NULL, &object, &out->object_trouble);

	out->load_ms = (double)(clock_monotonic_ns() - begin_ns) / NS_PER_MS;
	*trial = (struct trial){ err ? ANSWER_NO : ANSWER_YES, err };
	if (err)
		return;
	if (!object_maps(object, &maps)) {
		/* The tries take memory as they are filled; before Linux 6.4 they are told as if
		 * full. */
		for (int id = 0; id < MAPS; id++)
			if (id != MAP_PREFIXES_0 && id != MAP_PREFIXES_1)
				out->map_bytes += bytes_of_map(maps.fd[id]);
		maps_close(&maps);
	}
	object_free(object);
}

/* One line of a file, without its end; "" if it cannot be read. */
static void read_line(const char *path, char *out, size_t size)
{
	FILE *file = fopen(path, "re");

	out[0] = '\0';
	if (!file)
		return;
	if (!fgets(out, (int)size, file))
		out[0] = '\0';
	(void)fclose(file);
	out[strcspn(out, "\n")] = '\0';
}

static void read_lockdown(struct kernel_facts *out)
{
	char line[64], *from;

	read_line("/sys/kernel/security/lockdown", line, sizeof(line));
	from = strchr(line, '[');
	if (!from)
		return;
	from[1 + strcspn(from + 1, "]")] = '\0';
	(void)snprintf(out->lockdown, sizeof(out->lockdown), "%s", from + 1);
}

/* All that needs a program of ours; without one nothing can be said. */
static void try_features(struct kernel_facts *out)
{
	struct trial *features = out->features;
	int program = load_pass(0);

	if (program < 0) {
		features[FEATURE_LOAD] = settle(program);
		for (int feature = FEATURE_LOAD + 1; feature < FEATURES; feature++)
			features[feature] = (struct trial){ ANSWER_UNKNOWN, program };
		return;
	}
	features[FEATURE_LOAD] = (struct trial){ ANSWER_YES, 0 };
	features[FEATURE_COMPARE_AND_SWAP] = try_compare_and_swap();
	features[FEATURE_COARSE_CLOCK] = said(
		libbpf_probe_bpf_helper(BPF_PROG_TYPE_XDP, BPF_FUNC_ktime_get_coarse_ns, NULL));
	features[FEATURE_TIMER] =
		said(libbpf_probe_bpf_helper(BPF_PROG_TYPE_XDP, BPF_FUNC_timer_init, NULL));
	features[FEATURE_RING_BUFFER] = said(libbpf_probe_bpf_map_type(BPF_MAP_TYPE_RINGBUF, NULL));
	features[FEATURE_PREFIX_TRIE] =
		said(libbpf_probe_bpf_map_type(BPF_MAP_TYPE_LPM_TRIE, NULL));
	features[FEATURE_MAPPED_ARRAY] = try_mapped_array();
	features[FEATURE_FRAGS] = settle(load_pass(BPF_F_XDP_HAS_FRAGS));
	time_clocks(program, out);
	out->is_compiled = is_compiled(program);
	(void)close(program);
	probe_attach(features);
}

uint64_t probe_map_bytes(void)
{
	const uint64_t overhead = 64; /* of an entry of a hash */
	uint64_t per_cpu = sizeof(struct ip_refusals) + sizeof(struct node_slices) +
			   REASONS * sizeof(struct counter) + NOTES * sizeof(uint64_t) +
			   sizeof(struct report_state) +
			   INTERFACE_COUNTERS * sizeof(struct interface_counter);

	return 2 * (uint64_t)IP_SETS * sizeof(struct bucket_set) +
	       OFFENDERS_MAX * (sizeof(struct offender) + sizeof(union address) + overhead) +
	       EVENTS_BYTES + sizeof(struct config) +
	       PROTECT_WORDS * sizeof(struct protected_ports) +
	       2 * PREFIX_HINT_WORDS * sizeof(uint64_t) + per_cpu * maps_cpus();
}

void probe_kernel(bool has_room, struct kernel_facts *out)
{
	struct utsname name;

	*out = (struct kernel_facts){};
	if (!uname(&name))
		(void)snprintf(out->release, sizeof(out->release), "%s", name.release);
	read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource",
		  out->clock_source, sizeof(out->clock_source));
	read_lockdown(out);
	try_features(out);
	if (has_room && out->features[FEATURE_LOAD].answer == ANSWER_YES)
		try_object(out);
}
