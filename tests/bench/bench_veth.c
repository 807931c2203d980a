/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How many packets a second are refused on a veth device: by sluice in native XDP or in TC, and on the
 * same pair by a program that only drops, by sluice's programs on an LRU hash, and by nftables with a
 * dynamic set. The receiver works in the generator's own time, on its CPU, so what is compared is
 * the sum of both; the program that only drops tells how much of it is the generator's. A second
 * is one of CPU time, so that other work on the machine counts for less.
 *
 * What one address may have is far less than it sends, and what all may have far less than they
 * send: else it would be the stack behind that is measured.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <jansson.h>
#include <linux/if_link.h>

#include "dataplane/object.h"
#include "dataplane/tcx.h"
#include "tests/bench/lib/report.h"
#include "tests/bench/lib/subject.h"
#include "tests/bench/lib/veth.h"

#include "bench_table.skel.h"
#include "drop.skel.h"
#include "lru.skel.h"

#define FLOOD_SECONDS 0.6

enum { TRIES = 3 };

static const char configuration[] = "protect: [tcp/443]\n"
				    "rate_limits:\n"
				    "  per_ip: {packets: {rate: 20, burst: 40}}\n"
				    "  node: {packets: {rate: 2000, burst: 4000}}\n";

static const char ruleset[] =
	"table netdev bench {\n"
	"	counter refused { }\n"
	"	set addresses {\n"
	"		type ipv4_addr; size 1048576; flags dynamic,timeout; timeout 60s;\n"
	"	}\n"
	"	chain ingress {\n"
	"		type filter hook ingress device " VETH_RECEIVER " priority 0;\n"
	"		tcp dport != 443 accept\n"
	"		add @addresses { ip saddr limit rate over 20/second burst 40 packets } "
	"counter name refused drop\n"
	"		limit rate over 2000/second burst 4000 packets counter name refused drop\n"
	"	}\n"
	"}\n";

enum peer_id { PEER_SLUICE, PEER_TC, PEER_DROP, PEER_LRU, PEER_NFT, PEERS };

static const char *const peer_names[PEERS] = {
	[PEER_SLUICE] = "sluice",
	[PEER_TC] = "sluice in TC",
	[PEER_DROP] = "a program that only drops",
	[PEER_LRU] = "the same on an LRU hash",
	[PEER_NFT] = "nftables, dynamic set",
};

struct bench {
	struct veth veth;
	struct drop_bpf *drop;
	struct bench_table_bpf *table;
	struct lru_bpf *lru;
	struct subject sluice;
	struct subject twin;
	int link; /* of the program that is attached, -1: none */
};

static const struct test {
	const char *name;
	const char *sources;
	const char *tc_name;
	double mark[PEERS]; /* at least so many times the peer; 0: no mark */
} tests[] = {
	{ "refused on a veth: one address",
	  "one",
	  "refused on a veth in TC: one address",
	  { [PEER_DROP] = 0.5, [PEER_NFT] = 2.5 } },
	{ "refused on a veth: each packet a new address",
	  "random",
	  "refused on a veth in TC: each packet a new address",
	  { [PEER_DROP] = 0.25, [PEER_NFT] = 2.4 } },
};

/* ---- nftables */

static int nft_start(const struct bench *bench)
{
	FILE *input = popen("nft -f -", "w");
	int err = veth_set_gro(&bench->veth, true);

	if (!input)
		return -errno;
	fputs(ruleset, input);
	return pclose(input) ? -EIO : err;
}

static void nft_stop(const struct bench *bench)
{
	(void)system("nft delete table netdev bench");
	(void)veth_set_gro(&bench->veth, false);
}

/* nft reads all sets before it lists anything: seconds, with half a million addresses in one. */
static int nft_refused(uint64_t *refused)
{
	int flushed = system("nft flush set netdev bench addresses");
	FILE *output = popen("nft -j list counters table netdev bench", "r");
	json_int_t packets;
	json_t *root, *counter;
	int err;

	if (flushed || !output)
		return -EIO;
	root = json_loadf(output, 0, NULL);
	/* After the entry that says which version wrote it. */
	counter = json_array_get(json_object_get(root, "nftables"), 1);
	err = json_unpack(counter, "{s:{s:I}}", "counter", "packets", &packets) ? -EPROTO : 0;
	if (!err)
		*refused = (uint64_t)packets;
	json_decref(root);
	return pclose(output) ? -EIO : err;
}

/* ---- programs */

static int attach(struct bench *bench, int program)
{
	LIBBPF_OPTS(bpf_link_create_opts, options, .flags = XDP_FLAGS_DRV_MODE);

	bench->link = bpf_link_create(program, (int)bench->veth.receiver, BPF_XDP, &options);
	return bench->link < 0 ? bench->link : 0;
}

static int prepare(struct subject *subject)
{
	struct tally before;
	int err = subject_clear(subject);

	return err ? err : subject_tally(subject, &before);
}

static int attach_subject(struct bench *bench, struct subject *subject)
{
	int err = prepare(subject);

	return err ? err : attach(bench, subject_program(subject, "sluice_xdp"));
}

static int attach_tc(struct bench *bench)
{
	int err = prepare(&bench->sluice);

	if (!err)
		err = veth_set_gro(&bench->veth, true);
	if (err)
		return err;
	bench->link =
		bpf_link_create(subject_program(&bench->sluice, "sluice_tc"),
				(int)bench->veth.receiver, (enum bpf_attach_type)TCX_INGRESS, NULL);
	return bench->link < 0 ? bench->link : 0;
}

static int start(struct bench *bench, enum peer_id peer)
{
	switch (peer) {
	case PEER_SLUICE:
		return attach_subject(bench, &bench->sluice);
	case PEER_TC:
		return attach_tc(bench);
	case PEER_LRU:
		return attach_subject(bench, &bench->twin);
	case PEER_DROP:
		return attach(bench, bpf_program__fd(bench->drop->progs.drop));
	default:
		return nft_start(bench);
	}
}

static void stop(struct bench *bench, enum peer_id peer)
{
	if (peer == PEER_NFT)
		nft_stop(bench);
	else if (bench->link >= 0)
		close(bench->link);
	if (peer == PEER_TC)
		(void)veth_set_gro(&bench->veth, false);
	bench->link = -1;
}

static int refused_by(struct bench *bench, enum peer_id peer, uint64_t arrived, uint64_t *refused)
{
	struct tally tally = { .refused = arrived };
	int err = 0;

	if (peer == PEER_NFT)
		return nft_refused(refused);
	if (peer == PEER_SLUICE || peer == PEER_TC)
		err = subject_tally(&bench->sluice, &tally);
	if (peer == PEER_LRU)
		err = subject_tally(&bench->twin, &tally);
	*refused = tally.refused;
	return err;
}

/* ---- the benchmark */

static int flood_once(struct bench *bench, enum peer_id peer, const char *sources,
		      struct veth_flood *flood, uint64_t *refused)
{
	int err = start(bench, peer);

	if (!err)
		err = veth_flood(&bench->veth, sources, FLOOD_SECONDS, flood);
	if (!err)
		err = refused_by(bench, peer, flood->arrived, refused);
	stop(bench, peer);
	return err;
}

/*
 * Frames that got lost, or were let through to the stack, would make it a figure of something else.
 * They get lost when other work on the machine keeps the receiver waiting; then it is tried again.
 */
static int run_once(struct bench *bench, enum peer_id peer, const char *sources, struct runs *runs)
{
	struct veth_flood flood = { 0 };
	uint64_t refused = 0;
	int err = 0;

	for (int tries = 0; tries < TRIES; tries++) {
		err = flood_once(bench, peer, sources, &flood, &refused);
		if (err || flood.arrived >= flood.made / 100 * 99)
			break;
	}
	if (err) {
		report_progress("%s: could not run: %s", peer_names[peer], strerror(-err));
		return err;
	}
	if (flood.arrived < flood.made / 100 * 99)
		report_progress("%s: only %" PRIu64 " of %" PRIu64 " frames arrived",
				peer_names[peer], flood.arrived, flood.made);
	if (refused < flood.arrived / 100 * 95)
		report_progress("%s: only %" PRIu64 " of %" PRIu64 " frames were refused",
				peer_names[peer], refused, flood.arrived);
	runs_add(runs, flood.rate);
	return 0;
}

static int run_test(struct bench *bench, const struct test *test)
{
	struct runs runs[PEERS] = { 0 };
	int err = 0;

	report_progress("%s", test->name);
	for (int run = 0; !err && run < REPORT_RUNS; run++)
		for (int peer = 0; !err && peer < PEERS; peer++)
			err = run_once(bench, peer, test->sources, &runs[peer]);
	if (err)
		return err;
	for (int peer = PEER_DROP; peer < PEERS; peer++)
		report_print(&(struct report){
			.name = test->name,
			.unit = "packets/CPU s",
			.figure = runs_median(&runs[PEER_SLUICE]),
			.peer = peer_names[peer],
			.peer_figure = runs_median(&runs[peer]),
			.kind = test->mark[peer] > 0 ? MARK_AT_LEAST : MARK_NONE,
			.mark = test->mark[peer],
		});
	report_print(&(struct report){
		.name = test->tc_name,
		.unit = "packets/CPU s",
		.figure = runs_median(&runs[PEER_TC]),
		.peer = peer_names[PEER_NFT],
		.peer_figure = runs_median(&runs[PEER_NFT]),
	});
	return 0;
}

static int open_all(struct bench *bench)
{
	int err = veth_open(&bench->veth);

	if (err)
		return err;
	bench->drop = drop_bpf__open_and_load();
	bench->table = bench_table_bpf__open_and_load();
	bench->lru = lru_bpf__open_and_load();
	if (!bench->drop || !bench->table || !bench->lru)
		return -errno;
	err = subject_open(&bench->sluice, bench->table->obj, configuration);
	return err ? err : subject_open(&bench->twin, bench->lru->obj, configuration);
}

static void close_all(struct bench *bench)
{
	subject_close(&bench->sluice);
	subject_close(&bench->twin);
	drop_bpf__destroy(bench->drop);
	bench_table_bpf__destroy(bench->table);
	lru_bpf__destroy(bench->lru);
	veth_close(&bench->veth);
}

int main(void)
{
	struct bench bench = { .link = -1 };
	int err;

	object_set_verbose(false);
	err = open_all(&bench);
	if (err)
		report_progress("veth: could not run: %s", strerror(-err));
	for (size_t at = 0; !err && at < sizeof(tests) / sizeof(tests[0]); at++)
		err = run_test(&bench, &tests[at]);
	close_all(&bench);
	return err ? 1 : 0;
}
