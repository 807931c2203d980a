/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the table of addresses costs and what it is good for: its memory against an LRU hash of as
 * many buckets, and how many innocent addresses it refuses while a hundred thousand others are in
 * debt, against the plain way of one bucket for each value of a hash.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/key.h>

#include "dataplane/object.h"
#include "tests/bench/frame.h"
#include "tests/bench/lib/report.h"
#include "tests/bench/lib/subject.h"

#include "bench_table.skel.h"
#include "lru.skel.h"

enum {
	IN_DEBT = 100000,
	INNOCENT = 5000000,
	FIRST_IN_DEBT = 10 << 24, /* 10.0.0.0 */
	FIRST_INNOCENT = 11 << 24,
};

#define MEBIBYTE (1024.0 * 1024)

/* Who is innocent is in debt for as long as a packet takes, the others for as long as this runs. */
static const char configuration[] = "protect: [tcp/443]\n"
				    "rate_limits:\n"
				    "  per_ip: {packets: {rate: 10000000, burst: 1}}\n"
				    "  prefixes:\n"
				    "    10.0.0.0/8: {packets: {rate: 0.01, burst: 1}}\n";

/* What the kernel says that a map takes, in bytes; 0: it does not say. */
static double map_bytes(int fd)
{
	char path[64], line[128];
	unsigned long long bytes = 0;
	FILE *info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = fopen(path, "re");
	if (!info)
		return 0;
	while (fgets(line, sizeof(line), info))
		if (sscanf(line, "memlock: %llu", &bytes) == 1)
			break;
	fclose(info);
	return (double)bytes;
}

static int measure_memory(const struct bench_table_bpf *table, const struct lru_bpf *lru)
{
	double table_bytes = map_bytes(bpf_map__fd(table->maps.ip_buckets));
	double lru_bytes = map_bytes(bpf_map__fd(lru->maps.lru_buckets));

	if (table_bytes <= 0 || lru_bytes <= 0)
		return -ENODATA;
	/* A page more than its words: the kernel's own head of the map. */
	report_print(&(struct report){
		.name = "table memory, 2^20 words",
		.unit = "MiB",
		.figure = table_bytes / MEBIBYTE,
		.kind = MARK_AT_MOST,
		.mark = 8.01,
	});
	report_print(&(struct report){
		.name = "table memory, 2^20 words",
		.unit = "MiB",
		.figure = table_bytes / MEBIBYTE,
		.peer = "LRU hash of 2^20",
		.peer_figure = lru_bytes / MEBIBYTE,
	});
	return 0;
}

/* Send one packet from each of count addresses; how many were refused. */
static int run_addresses(struct bench_table_bpf *table, struct subject *subject, uint32_t first,
			 unsigned count, uint64_t *refused)
{
	struct frame_wish wish = { .kind = FRAME_SYN, .destination_port = 443 };
	struct tally tally;
	struct frame frame;
	double ns;
	int err = frame_build(&wish, &frame);

	table->bss->fresh_source = first;
	table->bss->fresh_step = 1;
	if (!err)
		err = subject_run(subject_program(subject, "sluice_fresh"), frame.data, frame.bytes,
				  count, &ns);
	if (!err)
		err = subject_tally(subject, &tally);
	if (!err)
		*refused = tally.refused;
	return err;
}

static uint32_t bucket_of(const struct siphash_key *secret, uint32_t host_order)
{
	union address address = { .byte = { [10] = 0xff, [11] = 0xff } };

	address.word[3] = htonl(host_order);
	return (uint32_t)siphash_16(secret, address.half[0], address.half[1]) %
	       (IP_SETS * SET_WORDS);
}

/* The peer: an address is refused if anybody with the same hash is in debt. */
static int refused_by_hash(const struct siphash_key *secret, uint64_t *refused)
{
	unsigned char *in_debt = calloc(IP_SETS * SET_WORDS, 1);

	if (!in_debt)
		return -ENOMEM;
	for (uint32_t at = 1; at <= IN_DEBT; at++)
		in_debt[bucket_of(secret, FIRST_IN_DEBT + at)] = 1;
	*refused = 0;
	for (uint32_t at = 1; at <= INNOCENT; at++)
		*refused += in_debt[bucket_of(secret, FIRST_INNOCENT + at)];
	free(in_debt);
	return 0;
}

static int measure_innocent(struct bench_table_bpf *table, struct subject *subject)
{
	uint64_t early = 0, refused = 0, refused_peer = 0;
	int err = run_addresses(table, subject, FIRST_IN_DEBT, IN_DEBT, &early);

	if (!err)
		err = run_addresses(table, subject, FIRST_INNOCENT, INNOCENT, &refused);
	if (!err)
		err = refused_by_hash(&subject->maps.config->secret, &refused_peer);
	if (err)
		return err;
	if (early > IN_DEBT / 1000)
		report_progress("only %" PRIu64 " addresses are in debt", IN_DEBT - early);
	report_print(&(struct report){
		.name = "innocent addresses refused, 100 000 others in debt",
		.unit = "%",
		.figure = 100.0 * (double)refused / INNOCENT,
		.kind = MARK_AT_MOST,
		.mark = 0.001,
	});
	report_print(&(struct report){
		.name = "innocent addresses refused, against the plain way",
		.unit = "%",
		.figure = 100.0 * (double)refused / INNOCENT,
		.peer = "one bucket per hash value",
		.peer_figure = 100.0 * (double)refused_peer / INNOCENT,
	});
	return 0;
}

int main(void)
{
	struct bench_table_bpf *table;
	struct subject subject = { 0 };
	struct lru_bpf *lru;
	int err;

	object_set_verbose(false);
	report_progress("table");
	table = bench_table_bpf__open_and_load();
	lru = lru_bpf__open_and_load();
	err = table && lru ? 0 : -errno;
	if (!err)
		err = measure_memory(table, lru);
	if (!err)
		err = subject_open(&subject, table->obj, configuration);
	if (!err)
		err = measure_innocent(table, &subject);
	if (err)
		report_progress("table: could not run: %s", strerror(-err));
	subject_close(&subject);
	bench_table_bpf__destroy(table);
	lru_bpf__destroy(lru);
	return err ? 1 : 0;
}
