/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What one verdict costs, without a device: test runs of the whole program on a frame in memory,
 * and of the same program with an LRU hash in place of its table, or without its stream of events and
 * its list of offenders. Caches are warm and there is no driver, so only the ratios mean anything.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dataplane/object.h"
#include "tests/bench/frame.h"
#include "tests/bench/lib/report.h"
#include "tests/bench/lib/subject.h"

#include "bench_table.skel.h"
#include "lru.skel.h"
#include "quiet.skel.h"

enum {
	RUNS_OF_ONE = 1000000,
	RUNS_OF_NEW = 500000,
	ODD_STEP = 0x9e3779b1, /* draws every address once in 2^32 */
};

#define FLOODED                                        \
	"protect: [tcp/443]\n"                         \
	"rate_limits:\n"                               \
	"  per_ip: {packets: {rate: 20, burst: 40}}\n" \
	"  node: {packets: {rate: 20000, burst: 40000}}\n"

#define ADMITTED                                                   \
	"protect: [tcp/443]\n"                                     \
	"rate_limits:\n"                                           \
	"  per_ip: {packets: {rate: 10000000, burst: 10000000}}\n" \
	"  node: {packets: {rate: 100000000, burst: 100000000}}\n"

#define THREE_METERS                                           \
	"protect: [tcp/443]\n"                                 \
	"rate_limits:\n"                                       \
	"  per_ip:\n"                                          \
	"    connections: {rate: 10000000, burst: 10000000}\n" \
	"    packets: {rate: 10000000, burst: 10000000}\n"     \
	"    bytes: {rate: 10000000000, burst: 10000000000}\n" \
	"  node: {packets: {rate: 100000000, burst: 100000000}}\n"

static const struct test {
	const char *name;
	const char *configuration;
	bool new_address; /* in every frame, else always the same */
	enum mark_kind kind;
	double mark;
	bool quiet; /* compared with the programs that tell of nothing */
} tests[] = {
	{ "verdict: one address, refused", FLOODED, false, MARK_AT_MOST, 1.0, false },
	{ "verdict: one address, admitted", ADMITTED, false, MARK_AT_MOST, 1.0, false },
	{ "verdict: one address, three meters, admitted", THREE_METERS, false, MARK_NONE, 0,
	  false },
	{ "verdict: each packet a new address, node refuses", FLOODED, true, MARK_AT_MOST, 0.3,
	  false },
	{ "verdict: each packet a new address, admitted", ADMITTED, true, MARK_AT_MOST, 0.3,
	  false },
	{ "verdict: one address, refused and told of", FLOODED, false, MARK_NONE, 0, true },
	{ "verdict: each packet a new address, refused and told of", FLOODED, true, MARK_NONE, 0,
	  true },
};

/* One side of a comparison. */
struct side {
	struct subject subject;
	uint32_t *step; /* of sluice_fresh, in the object's memory */
	struct runs runs;
};

static int run_once(struct side *side, const struct test *test, const struct frame *frame)
{
	const char *name = test->new_address ? "sluice_fresh" : "sluice_xdp";
	int program = subject_program(&side->subject, name);
	double ns;
	int err;

	*side->step = ODD_STEP;
	err = subject_run(program, frame->data, frame->bytes,
			  test->new_address ? RUNS_OF_NEW : RUNS_OF_ONE, &ns);
	if (!err)
		runs_add(&side->runs, ns);
	return err;
}

static int compare(struct side *table, struct side *peer, const struct test *test,
		   const struct frame *frame)
{
	int err = subject_open(&table->subject, table->subject.object, test->configuration);

	if (!err)
		err = subject_open(&peer->subject, peer->subject.object, test->configuration);
	for (int run = 0; !err && run < REPORT_RUNS; run++) {
		err = run_once(table, test, frame);
		if (!err)
			err = run_once(peer, test, frame);
	}
	if (!err)
		report_print(&(struct report){
			.name = test->name,
			.unit = "ns",
			.figure = runs_median(&table->runs),
			.peer = test->quiet ? "the same, without events"
					    : "the same on an LRU hash",
			.peer_figure = runs_median(&peer->runs),
			.kind = test->kind,
			.mark = test->mark,
		});
	subject_close(&table->subject);
	subject_close(&peer->subject);
	return err;
}

/* Each test has programs and maps of its own: no bucket is left from the one before. */
static int run_test(const struct test *test, const struct frame *frame)
{
	struct bench_table_bpf *table = bench_table_bpf__open_and_load();
	struct lru_bpf *lru = test->quiet ? NULL : lru_bpf__open_and_load();
	struct quiet_bpf *quiet = test->quiet ? quiet_bpf__open_and_load() : NULL;
	struct side sides[2] = { 0 };
	int err = table && (lru || quiet) ? 0 : -errno;

	report_progress("%s", test->name);
	if (!err) {
		sides[0].subject.object = table->obj;
		sides[0].step = &table->bss->fresh_step;
		sides[1].subject.object = quiet ? quiet->obj : lru->obj;
		sides[1].step = quiet ? &quiet->bss->fresh_step : &lru->bss->fresh_step;
		err = compare(&sides[0], &sides[1], test, frame);
	}
	if (err)
		report_progress("%s: could not run: %s", test->name, strerror(-err));
	bench_table_bpf__destroy(table);
	lru_bpf__destroy(lru);
	quiet_bpf__destroy(quiet);
	return err;
}

int main(void)
{
	struct frame_wish wish = frame_wish_syn();
	struct frame frame;
	int err = frame_build(&wish, &frame);

	object_set_verbose(false);
	for (size_t at = 0; !err && at < sizeof(tests) / sizeof(tests[0]); at++)
		err = run_test(&tests[at], &frame);
	return err ? 1 : 0;
}
