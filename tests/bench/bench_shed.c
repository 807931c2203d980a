/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What shedding adds to the verdict about a SYN, beside the same configuration without it: while no
 * address is at its limit, which saves the look; while one is, so that each SYN is looked up among
 * 8 MiB of words; and for the one that is.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "dataplane/object.h"
#include "limit/address_table.h"
#include "tests/bench/frame.h"
#include "tests/bench/lib/report.h"
#include "tests/bench/lib/subject.h"

#include "bench_table.skel.h"

enum {
	RUNS_OF_ONE = 1000000,
	RUNS_OF_NEW = 500000,
	ODD_STEP = 0x9e3779b1, /* draws every address once in 2^32 */
	SETS_BYTES = IP_SETS * sizeof(struct bucket_set),
};

#define LIMITS                                             \
	"protect: [tcp/443]\n"                             \
	"rate_limits:\n"                                   \
	"  per_ip:\n"                                      \
	"    packets: {rate: 10000000, burst: 10000000}\n" \
	"    hooks: {rate: 0.0001, burst: 1}\n"            \
	"  node: {packets: {rate: 100000000, burst: 100000000}}\n"

static const struct test {
	const char *name;
	bool new_address; /* in every frame, else always the same */
	bool is_open;     /* some address is at its limit */
	bool is_shed;     /* the one that sends */
} tests[] = {
	{ "shed: one address, nobody at the limit", false, false, false },
	{ "shed: one address, another at the limit", false, true, false },
	{ "shed: one address, itself at the limit", false, true, true },
	{ "shed: each SYN a new address, nobody at the limit", true, false, false },
	{ "shed: each SYN a new address, another at the limit", true, true, false },
};

struct side {
	struct bench_table_bpf *skeleton;
	struct subject subject;
	struct address_memory memory; /* as the daemon maps it */
	struct runs runs;
};

static void close_side(struct side *side)
{
	if (side->memory.sets)
		(void)munmap(side->memory.sets, SETS_BYTES);
	if (side->memory.hooks)
		(void)munmap(side->memory.hooks, (size_t)sysconf(_SC_PAGESIZE));
	subject_close(&side->subject);
	bench_table_bpf__destroy(side->skeleton);
}

static void *map_memory(int fd, size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static int open_side(struct side *side, bool sheds)
{
	int err;

	side->skeleton = bench_table_bpf__open_and_load();
	if (!side->skeleton)
		return -errno;
	err = subject_open(&side->subject, side->skeleton->obj,
			   sheds ? LIMITS "shed: true\n" : LIMITS "shed: false\n");
	if (err)
		return err;
	side->memory.sets = map_memory(side->subject.maps.fd[MAP_HOOK_BUCKETS], SETS_BYTES);
	side->memory.hooks = map_memory(side->subject.maps.fd[MAP_HOOKS], sizeof(struct hooks));
	return side->memory.sets && side->memory.hooks ? 0 : -errno;
}

/* The only request of somebody, who is at his limit then. */
static int request(struct side *side, const union address *client)
{
	static const struct siphash_key secret = { { 1, 2 } };
	const struct config_slot *slot = maps_slot(&side->subject.maps);
	struct address_table *table;
	uint64_t wait_ns;
	int err = address_table_new(&side->memory, IP_SETS, &secret, clock_monotonic_ns(), &table);

	if (err)
		return err;
	address_table_announce(table, slot->hooks_digest, 0);
	if (client)
		(void)address_table_take(table, client, slot->ipv6_prefix, &slot->ip_hooks, 1,
					 clock_monotonic_ns, &wait_ns);
	address_table_free(table);
	return 0;
}

static int run_once(struct side *side, const struct test *test, const struct frame *frame)
{
	const char *name = test->new_address ? "sluice_fresh" : "sluice_xdp";
	double ns;
	int err;

	side->skeleton->bss->fresh_step = ODD_STEP;
	err = subject_run(subject_program(&side->subject, name), frame->data, frame->bytes,
			  test->new_address ? RUNS_OF_NEW : RUNS_OF_ONE, &ns);
	if (!err)
		runs_add(&side->runs, ns);
	return err;
}

static int run_test(const struct test *test, const struct frame_wish *wish,
		    const struct frame *frame)
{
	const union address other = { .byte = { [10] = 0xff, [11] = 0xff, [12] = 203 } };
	struct side with = { 0 }, without = { 0 };
	int err = open_side(&with, true), failed = open_side(&without, false);

	report_progress("%s", test->name);
	if (!err)
		err = failed;
	if (!err)
		err = request(&with, !test->is_open  ? NULL
				     : test->is_shed ? &wish->source
						     : &other);
	for (int run = 0; !err && run < REPORT_RUNS; run++) {
		err = run_once(&with, test, frame);
		if (!err)
			err = run_once(&without, test, frame);
	}
	if (!err)
		report_print(&(struct report){ .name = test->name,
					       .unit = "ns",
					       .figure = runs_median(&with.runs),
					       .peer = "the same with shed: false",
					       .peer_figure = runs_median(&without.runs) });
	else
		report_progress("%s: could not run: %s", test->name, strerror(-err));
	close_side(&with);
	close_side(&without);
	return err;
}

int main(void)
{
	struct frame_wish wish = frame_wish_syn();
	struct frame frame;
	int err = frame_build(&wish, &frame);

	object_set_verbose(false);
	for (size_t at = 0; !err && at < sizeof(tests) / sizeof(tests[0]); at++)
		err = run_test(&tests[at], &wish, &frame);
	return err ? 1 : 0;
}
