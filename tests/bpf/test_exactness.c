/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The first promise, held against bpf/table.h as the kernel runs it: several CPUs charge the same
 * sets at once (table_probe.bpf.c), and every admission is replayed, in the order of the clock that
 * dates it, through a reference that serves one caller at a time. None may be too many. Nor may
 * that be bought by refusing everything: each scenario says what part of the requests must be
 * admitted.
 *
 * Each key is one meter of one address, and is replayed on its own: whatever addresses share when
 * their set is full, none of them may get more than its limit.
 */
#include "tests/unit/test.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "limit/build.h"
#include "tests/bpf/probe_run.h"
#include "tests/bpf/replay.h"

#include "table_probe.skel.h"

enum {
	REPEAT = 1000000, /* of each thread, in each scenario; see test_repeat() */
	COARSE_LAG_NS = 11000000,
	BYTES_MAX = 1500,
};

/* Of this machine: rates are so much lower. */
static unsigned slowness = 1;

enum change { CHANGE_NONE, CHANGE_RAISE, CHANGE_LOWER };

struct scenario {
	const char *name;
	uint32_t keys;
	uint32_t sets;
	uint32_t meters;      /* 2: every other key is the bytes of the one before */
	uint32_t classes;     /* of words, among which the keys' limits are spread */
	uint64_t interval_ns; /* times slowness */
	uint64_t burst;
	enum when_full when_full;
	bool fine_coarse; /* judge by a fine clock, so that words pass between ticks too */
	uint32_t sweeps_of_256;
	enum change change; /* ten times the burst, or a tenth, half way */
	unsigned least_percent;
};

static const struct scenario scenarios[] = {
	{ "one address", 1, 1, 1, 1, 400, 3, WHEN_FULL_SHARE, false, 0, CHANGE_NONE, 2 },
	{ "one address, burst of one, swept", 1, 1, 1, 1, 500, 1, WHEN_FULL_SHARE, true, 32,
	  CHANGE_NONE, 2 },
	{ "one address, debts longer than the coarse clock's tick", 1, 1, 1, 1, 500, 40000,
	  WHEN_FULL_SHARE, false, 0, CHANGE_NONE, 2 },
	{ "six addresses on eight words, swept", 6, 1, 1, 1, 2000, 3, WHEN_FULL_SHARE, true, 32,
	  CHANGE_NONE, 2 },
	{ "six addresses, burst of one, swept", 6, 1, 1, 1, 2000, 1, WHEN_FULL_SHARE, true, 64,
	  CHANGE_NONE, 2 },
	{ "words expire and are taken over", 20, 1, 1, 1, 4000, 1, WHEN_FULL_REFUSE, true, 0,
	  CHANGE_NONE, 2 },
	{ "more addresses than words, share", 12, 1, 1, 1, 4000, 3, WHEN_FULL_SHARE, true, 0,
	  CHANGE_NONE, 2 },
	{ "the same by the tick, swept", 12, 1, 1, 1, 4000, 3, WHEN_FULL_SHARE, false, 8,
	  CHANGE_NONE, 2 },
	{ "more addresses than words, refuse", 12, 1, 1, 1, 4000, 3, WHEN_FULL_REFUSE, true, 8,
	  CHANGE_NONE, 2 },
	{ "more addresses than words, admit", 12, 1, 1, 1, 4000, 3, WHEN_FULL_ADMIT, true, 8,
	  CHANGE_NONE, 2 },
	{ "packets and bytes of three addresses", 6, 1, 2, 1, 2000, 4, WHEN_FULL_SHARE, true, 16,
	  CHANGE_NONE, 1 },
	{ "packets and bytes of eight addresses", 16, 1, 2, 1, 4000, 4, WHEN_FULL_SHARE, true, 16,
	  CHANGE_NONE, 1 },
	{ "words of four classes in one set", 8, 1, 1, 4, 2048, 3, WHEN_FULL_SHARE, true, 16,
	  CHANGE_NONE, 2 },
	{ "words of four classes in a full set", 14, 1, 1, 4, 4096, 3, WHEN_FULL_SHARE, true, 16,
	  CHANGE_NONE, 2 },
	{ "sixty addresses in four sets", 60, 4, 1, 1, 20000, 3, WHEN_FULL_SHARE, true, 16,
	  CHANGE_NONE, 2 },
	{ "limit raised under way", 6, 1, 1, 1, 2000, 3, WHEN_FULL_SHARE, true, 16, CHANGE_RAISE,
	  2 },
	{ "limit lowered under way", 6, 1, 1, 1, 2000, 30, WHEN_FULL_SHARE, true, 16, CHANGE_LOWER,
	  2 },
};

static bool counts_bytes(const struct scenario *row, uint32_t key)
{
	return row->meters == 2 && key % 2;
}

static uint64_t burst_of(const struct scenario *row, uint32_t key, bool changed)
{
	uint64_t burst = row->burst;

	if (changed && row->change == CHANGE_RAISE)
		burst *= 10;
	if (changed && row->change == CHANGE_LOWER)
		burst /= 10;
	/* About as many packets, of half the length on average. */
	return counts_bytes(row, key) ? burst * BYTES_MAX : burst;
}

/* A byte costs what its share of the longest packet does, in whole nanoseconds. */
static uint64_t interval_of(const struct scenario *row, uint32_t key)
{
	return counts_bytes(row, key) ? (row->interval_ns + BYTES_MAX - 1) / BYTES_MAX * slowness
				      : row->interval_ns * slowness;
}

/* Limits as limit_build() makes them; of a class that it would not choose for so short a debt, by
 * hand. */
static struct gcra_limit limit_of(const struct scenario *row, uint32_t key, bool changed)
{
	struct rate_limit wanted = {
		.rate = 1e9 / (double)interval_of(row, key),
		.burst = burst_of(row, key, changed),
	};
	uint32_t class = key % row->classes;
	struct gcra_limit limit;
	uint64_t longest;

	assert_int_equal(limit_build(&wanted,
				     counts_bytes(row, key) ? BUCKET_WORD_BYTES : BUCKET_WORD,
				     &limit, &longest),
			 0);
	assert_int_equal(limit.word_class, 0);
	if (!class)
		return limit;
	limit.word_class = (__u8) class;
	limit.tick_shift = word_tick_shift(class);
	limit.interval = gcra_ticks(interval_of(row, key), limit.tick_shift);
	limit.capacity = limit.interval * limit.burst;
	return limit;
}

static struct reference reference_of(const struct scenario *row, uint32_t key)
{
	uint32_t class = key % row->classes;
	uint64_t before = burst_of(row, key, false), after = burst_of(row, key, true);
	struct reference reference = {
		.tokens = 1,
		.period_ns = interval_of(row, key),
		.burst = before > after ? before : after,
		/* A tick longer than a nanosecond cuts off so much of each date. */
		.slack_ns = class >= 2 ? (1u << -word_tick_shift(class)) - 1 : 0,
	};

	return reference;
}

/* Keys lie spread over their sets, and begin to look at different words. */
static void make_plan(const struct scenario *row, struct table_plan *plan)
{
	*plan = (struct table_plan){
		.keys = row->keys,
		.when_full = row->when_full,
		.sweeps_of_256 = row->sweeps_of_256,
		.fine_coarse = row->fine_coarse,
		.coarse_lag_ns = COARSE_LAG_NS,
	};
	for (uint32_t key = 0; key < row->keys; key++) {
		uint32_t address = key / row->meters;
		struct place place = { .tag = address + 1 };

		plan->key[key] = (struct probe_key){
			.set = address % row->sets,
			.tag = place_tag(&place, key % row->meters),
			.way = address * 3 & (SET_WORDS - 1),
			.tokens_max = counts_bytes(row, key) ? BYTES_MAX : 1,
		};
		for (int slot = 0; slot < 2; slot++)
			plan->limit[slot][key] = limit_of(row, key, slot);
	}
}

struct change_watch {
	const struct scenario *row;
	struct table_probe_bpf *probe;
};

static void change_half_way(void *context)
{
	struct change_watch *watch = context;

	if (watch->row->change == CHANGE_NONE)
		return;
	while (*(volatile __u64 *)&watch->probe->bss->tally[0].asked < test_repeat(REPEAT) / 2)
		usleep(100);
	*(volatile __u32 *)&watch->probe->bss->plan.active = 1;
}

static void check_each_key_was_admitted(const struct scenario *row,
					const struct admission_log *logs, unsigned threads)
{
	uint64_t counts[PROBE_KEYS] = {};

	for (unsigned i = 0; i < threads; i++)
		for (size_t at = 0; at < logs[i].count; at++)
			counts[logs[i].admissions[at].key]++;
	for (uint32_t key = 0; key < row->keys; key++)
		check_row(row, counts[key] > 0);
}

static struct probe_tally sum_of(const struct probe_tally *tallies, unsigned threads)
{
	struct probe_tally sum = {};

	for (unsigned i = 0; i < threads; i++) {
		sum.asked += tallies[i].asked;
		sum.logged += tallies[i].logged;
		sum.uncharged += tallies[i].uncharged;
		sum.refused += tallies[i].refused;
		sum.set_full += tallies[i].set_full;
		sum.tries += tallies[i].tries;
		sum.swept += tallies[i].swept;
	}
	return sum;
}

static struct replayed replay_logs(const struct scenario *row, const struct probe_tally *tallies,
				   const struct admission *log, unsigned threads)
{
	struct reference references[PROBE_KEYS];
	struct admission_log logs[PROBE_PARTS];

	for (uint32_t key = 0; key < row->keys; key++)
		references[key] = reference_of(row, key);
	for (unsigned i = 0; i < threads; i++)
		logs[i] = (struct admission_log){ log + (size_t)i * PROBE_PART_ADMISSIONS,
						  tallies[i].logged };
	check_each_key_was_admitted(row, logs, threads);
	return replay(logs, threads, references);
}

/* Returns how many words were swept meanwhile: where addresses share, there may be none. */
static uint64_t check_scenario(struct table_probe_bpf *probe, const struct admission *log,
			       const struct scenario *row)
{
	unsigned threads = probe_threads();
	struct change_watch watch = { row, probe };
	struct bucket_set empty = {};
	struct probe_tally sum;
	struct replayed result;

	for (uint32_t set = 0; set < row->sets; set++)
		assert_int_equal(bpf_map__update_elem(probe->maps.ip_buckets, &set, sizeof(set),
						      &empty, sizeof(empty), 0),
				 0);
	make_plan(row, &probe->bss->plan);
	memset(probe->bss->tally, 0, sizeof(probe->bss->tally));
	check_row_equal(row,
			probe_run(bpf_program__fd(probe->progs.table_probe), threads,
				  test_repeat(REPEAT), change_half_way, &watch),
			0);
	sum = sum_of(probe->bss->tally, threads);
	result = replay_logs(row, probe->bss->tally, log, threads);
	print_message("# %s: %llu asked, %llu replayed, %llu excess; %llu refused, %llu set full, "
		      "%llu tries, %llu uncharged, %llu swept\n",
		      row->name, sum.asked, (unsigned long long)result.admissions,
		      (unsigned long long)result.excess, sum.refused, sum.set_full, sum.tries,
		      sum.uncharged, sum.swept);
	check_row_equal(row, result.admissions, sum.logged);
	check_row_equal(row, result.backwards, 0);
	/* A run that is under way with the greater limit may find that one with the lesser has just
	 * brought the debt back to it: one admission for each of the other CPUs. */
	if (row->change == CHANGE_LOWER)
		check_row(row, result.excess <= threads - 1);
	else
		check_row_equal(row, result.excess, 0);
	check_row(row, result.admissions * 100 >= sum.asked * row->least_percent);
	check_row(row, sum.refused + sum.set_full + sum.uncharged > 0);
	return sum.swept;
}

static void no_address_is_admitted_more_than_its_limit(void **state)
{
	struct table_probe_bpf *probe = *state;
	const struct admission *log = probe_log_open(bpf_map__fd(probe->maps.admissions));

	uint64_t swept = 0;

	assert_non_null(log);
	for (size_t i = 0; i < COUNT_OF(scenarios); i++)
		swept += check_scenario(probe, log, &scenarios[i]);
	probe_log_close(log);
	assert_true(swept > 0);
}

static int open_probe(void **state)
{
	struct table_probe_bpf *probe = table_probe_bpf__open_and_load();

	if (!probe)
		return -1;
	make_plan(&scenarios[0], &probe->bss->plan);
	slowness = probe_slowness(bpf_program__fd(probe->progs.table_probe));
	*state = probe;
	return 0;
}

static int close_probe(void **state)
{
	table_probe_bpf__destroy(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_address_is_admitted_more_than_its_limit),
	};

	return cmocka_run_group_tests(tests, open_probe, close_probe);
}
