/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What lists of prefixes cost: to bring them from the text of a configuration into force, on new
 * maps and over a list of the same length with rules by hand in it; to change one rule by hand; and
 * a verdict about an address that no list names.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "dataplane/apply.h"
#include "dataplane/object.h"
#include "tests/bench/frame.h"
#include "tests/bench/lib/report.h"
#include "tests/bench/lib/subject.h"

#include "bench_table.skel.h"

enum {
	LINE_BYTES = 24,
	BY_HAND = 1000,
	CHANGES = 1000,
	VERDICTS = 500000,
	LOAD_MARK_MS = 2000,
	ODD_STEP = 0x9e3779b1, /* draws every address once in 2^32 */
};

#define BEGINNING              \
	"protect: [tcp/443]\n" \
	"rate_limits: {per_ip: {packets: {rate: 10000000, burst: 10000000}}}\n"

static const struct size {
	unsigned prefixes;
	const char *load, *reload, *change, *verdict;
} sizes[] = {
	{ 1000, "prefixes: load 1000", "prefixes: reload 1000, 1000 by hand",
	  "prefixes: a rule by hand, among 1000", "verdict: new address, 1000 prefixes" },
	{ 10000, "prefixes: load 10000", "prefixes: reload 10000, 1000 by hand",
	  "prefixes: a rule by hand, among 10000", "verdict: new address, 10000 prefixes" },
	{ 100000, "prefixes: load 100000", "prefixes: reload 100000, 1000 by hand",
	  "prefixes: a rule by hand, among 100000", "verdict: new address, 100000 prefixes" },
};

struct bench {
	struct bench_table_bpf *skeleton;
	struct subject subject;
	char *text;
};

/* Addresses all over IPv4, but not those of the verdicts. */
static uint32_t address_of(unsigned number)
{
	return number * 2654435761u % 0xc0000000u;
}

static char *write_text(unsigned prefixes)
{
	char *text = malloc(sizeof(BEGINNING) + 16 + (size_t)prefixes * LINE_BYTES);
	size_t length;

	if (!text)
		return NULL;
	length = (size_t)sprintf(text, BEGINNING "%s", prefixes ? "deny:\n" : "");
	for (unsigned at = 1; at <= prefixes; at++) {
		uint32_t address = address_of(at);

		length += (size_t)sprintf(text + length, "  - %u.%u.%u.%u\n", address >> 24,
					  address >> 16 & 255, address >> 8 & 255, address & 255);
	}
	return text;
}

static int open_bench(struct bench *bench, unsigned prefixes)
{
	*bench = (struct bench){ .text = write_text(prefixes) };
	bench->skeleton = bench->text ? bench_table_bpf__open_and_load() : NULL;
	if (!bench->skeleton)
		return -errno;
	return subject_open(&bench->subject, bench->skeleton->obj, BEGINNING);
}

static void close_bench(struct bench *bench)
{
	subject_close(&bench->subject);
	bench_table_bpf__destroy(bench->skeleton);
	free(bench->text);
}

/* From the text until it is in force. */
static int load(struct bench *bench, double *ms)
{
	uint64_t begun_ns = clock_monotonic_ns();
	struct settings_error error;
	struct trouble trouble;
	struct settings *settings;
	int err = settings_parse(bench->text, strlen(bench->text), &settings, &error);

	if (err)
		return err;
	err = apply_prepare(&bench->subject.maps, settings, &trouble);
	if (!err)
		apply_turn_over(&bench->subject.maps);
	settings_free(settings);
	*ms = (double)(clock_monotonic_ns() - begun_ns) / 1e6;
	return err;
}

/* Deny addresses, or take that back. */
static int change(struct bench *bench, unsigned count, enum prefix_action action, double *us_each)
{
	const struct prefix_rule rule = { .action = (uint16_t)action };
	uint64_t begun_ns = clock_monotonic_ns();
	int err = 0;

	for (unsigned at = 0; !err && at < count; at++) {
		union address address = { .byte = { [10] = 0xff, [11] = 0xff, [12] = 224 } };
		struct prefix_key key;

		address.byte[14] = (uint8_t)(at >> 8);
		address.byte[15] = (uint8_t)at;
		key = prefix_key_of(&address, 128);
		err = maps_prefix_set(&bench->subject.maps, &key, &rule, begun_ns);
	}
	*us_each = (double)(clock_monotonic_ns() - begun_ns) / 1e3 / count;
	return err;
}

static int measure_load(const struct size *size)
{
	struct runs first = { 0 }, again = { 0 }, changes = { 0 };
	double ms = 0, us = 0;
	int err = 0;

	for (int run = 0; !err && run < REPORT_RUNS; run++) {
		struct bench bench;

		err = open_bench(&bench, size->prefixes);
		if (!err)
			err = load(&bench, &ms);
		runs_add(&first, ms);
		if (!err)
			err = change(&bench, CHANGES, PREFIX_DENY, &us);
		runs_add(&changes, us);
		/* The second one empties a trie that holds what this one wrote. */
		for (int times = 0; !err && times < 2; times++)
			err = load(&bench, &ms);
		runs_add(&again, ms);
		close_bench(&bench);
	}
	if (err)
		return err;
	report_print(&(struct report){ .name = size->load,
				       .unit = "ms",
				       .figure = runs_median(&first),
				       .kind = MARK_AT_MOST,
				       .mark = LOAD_MARK_MS });
	report_print(&(struct report){ .name = size->reload,
				       .unit = "ms",
				       .figure = runs_median(&again),
				       .kind = MARK_AT_MOST,
				       .mark = LOAD_MARK_MS });
	report_print(&(struct report){
		.name = size->change, .unit = "us", .figure = runs_median(&changes) });
	return 0;
}

static int run_verdicts(struct bench *bench, const struct frame *frame, struct runs *runs)
{
	double ns;
	int err = subject_clear(&bench->subject);

	bench->skeleton->bss->fresh_step = ODD_STEP;
	if (!err)
		err = subject_run(subject_program(&bench->subject, "sluice_fresh"), frame->data,
				  frame->bytes, VERDICTS, &ns);
	if (!err)
		runs_add(runs, ns);
	return err;
}

static int measure_verdict(const struct size *size, const struct frame *frame)
{
	struct bench with, without;
	struct runs runs[2] = { 0 };
	double ms;
	int err = open_bench(&with, size->prefixes), other = open_bench(&without, 0);

	if (!err)
		err = other ? other : load(&with, &ms);
	for (int run = 0; !err && run < REPORT_RUNS; run++) {
		err = run_verdicts(&with, frame, &runs[0]);
		if (!err)
			err = run_verdicts(&without, frame, &runs[1]);
	}
	if (!err)
		report_print(&(struct report){ .name = size->verdict,
					       .unit = "ns",
					       .figure = runs_median(&runs[0]),
					       .peer = "the same without prefixes",
					       .peer_figure = runs_median(&runs[1]) });
	close_bench(&with);
	close_bench(&without);
	return err;
}

int main(void)
{
	struct frame_wish wish = frame_wish_syn();
	struct frame frame;
	int err = frame_build(&wish, &frame);

	object_set_verbose(false);
	for (size_t at = 0; !err && at < sizeof(sizes) / sizeof(sizes[0]); at++) {
		report_progress("%u prefixes", sizes[at].prefixes);
		err = measure_load(&sizes[at]);
		if (!err)
			err = measure_verdict(&sizes[at], &frame);
	}
	if (err)
		report_progress("prefixes: could not run: %s", strerror(-err));
	return err ? 1 : 0;
}
