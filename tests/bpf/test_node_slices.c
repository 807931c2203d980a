/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The node's limit under slices (bpf/node.h, driven by node_probe.bpf.c through police_node()): all
 * CPUs charge at once, and every admission is replayed through the reference, held to the whole of
 * the burst that the operator wrote. And what slices are allowed to cost: how much may lie unspent,
 * that it is never admitted on top, and that a new configuration does not inherit it.
 */
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "dataplane/rules.h"
#include "tests/bpf/probe_run.h"
#include "tests/bpf/replay.h"

#include "node_probe.skel.h"

enum {
	REPEAT = 1000000, /* of each thread, in each scenario; see test_repeat() */
	COARSE_LAG_NS = 11000000,
	/* An admission is somewhere between two looks at the clock. One that took longer than this
	 * is left out of the replay, which can only hide an excess, never make one. */
	DATE_SLACK_NS = 20000,
};

/* One packet in so long: nothing drips in while a test counts. */
enum { PERIOD_STILL_S = 100 };

/* Of this machine: rates are so much lower. */
static unsigned slowness = 1;

struct scenario {
	const char *name;
	struct rate_limit packets; /* rates that divide 10^9, so that the reference is exact */
	struct rate_limit bytes;
	uint32_t bytes_max;
	uint32_t sweeps_of_256;
	unsigned changes; /* of generation, under way */
	bool has_slices;
};

static const struct scenario scenarios[] = {
	{ "packets", { 2.5e6, 1000 }, { 0, 0 }, 1, 0, 0, true },
	{ "packets, long debts", { 2.5e6, 100000 }, { 0, 0 }, 1, 0, 0, true },
	{ "packets, burst too small for slices", { 2.5e6, 3 }, { 0, 0 }, 1, 0, 0, false },
	{ "packets, burst of one", { 2e6, 1 }, { 0, 0 }, 1, 0, 0, false },
	{ "packets, burst too small for slices, swept", { 2e6, 3 }, { 0, 0 }, 1, 4, 0, false },
	{ "bytes", { 0, 0 }, { 1e9, 2000000 }, 1500, 0, 0, true },
	{ "bytes, more than a slice in each", { 0, 0 }, { 1e9, 2000000 }, 200000, 0, 0, true },
	{ "packets and bytes", { 2e6, 1000 }, { 1e9, 1000000 }, 1500, 0, 0, true },
	{ "configurations change", { 2.5e6, 1000 }, { 1e9, 1000000 }, 800, 4, 50, true },
};

static unsigned possible_cpus(void)
{
	int cpus = libbpf_num_possible_cpus();

	assert_true(cpus > 0);
	return (unsigned)cpus;
}

/* Where nothing is to drip in, nothing does on a slow machine either, and the time to fill the
 * bucket must not grow beyond what a limit may take. */
static struct rate_limit slowed(struct rate_limit limit)
{
	if (limit.rate >= 1)
		limit.rate /= slowness;
	return limit;
}

static void make_plan(const struct scenario *row, struct node_plan *plan)
{
	struct settings settings = {
		.ipv6_prefix = 64,
		.node = { [METER_PACKETS] = slowed(row->packets),
			  [METER_BYTES] = slowed(row->bytes) },
	};

	*plan = (struct node_plan){
		.bytes_max = row->bytes_max,
		.sweeps_of_256 = row->sweeps_of_256,
		.coarse_lag_ns = COARSE_LAG_NS,
	};
	for (int slot = 0; slot < 2; slot++)
		check_row_equal(row,
				rules_slot(&settings, possible_cpus(), slot + 1, &plan->slot[slot]),
				0);
	check_row_equal(row, plan->slot[0].node[METER_PACKETS].slice > 0,
			row->has_slices && row->packets.burst);
	check_row_equal(row, plan->slot[0].node[METER_BYTES].slice > 0,
			row->has_slices && row->bytes.burst);
}

/* The buckets full, no slices held, nothing counted. */
static void start_anew(struct node_probe_bpf *probe)
{
	struct node_slices *slices = calloc(possible_cpus(), sizeof(*slices));
	struct node_buckets buckets = {};
	__u32 only = 0;

	assert_non_null(slices);
	assert_int_equal(
		bpf_map_update_elem(bpf_map__fd(probe->maps.node_slices), &only, slices, BPF_ANY),
		0);
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(probe->maps.node_buckets), &only, &buckets,
					     BPF_ANY),
			 0);
	memset(probe->bss->tally, 0, sizeof(probe->bss->tally));
	free(slices);
}

/* Copies of the logs in which the tokens are one meter's, without what took too long. */
struct meter_logs {
	struct admission *copies[PROBE_PARTS];
	struct admission_log logs[PROBE_PARTS];
	size_t left_out;
};

static void copy_logs(struct node_probe_bpf *probe, const struct admission *log, enum meter meter,
		      struct meter_logs *out)
{
	out->left_out = 0;
	for (unsigned part = 0; part < PROBE_PARTS; part++) {
		const struct admission *from = log + (size_t)part * PROBE_PART_ADMISSIONS;
		size_t logged = probe->bss->tally[part].logged, count = 0;
		struct admission *to = malloc((logged + 1) * sizeof(*to));

		assert_non_null(to);
		for (size_t i = 0; i < logged; i++) {
			if (from[i].key > DATE_SLACK_NS)
				continue;
			to[count++] = (struct admission){
				.now_ns = from[i].now_ns,
				.tokens = meter == METER_BYTES ? from[i].tokens : 1,
			};
		}
		out->left_out += logged - count;
		out->copies[part] = to;
		out->logs[part] = (struct admission_log){ to, count };
	}
}

static struct replayed replay_meter(struct node_probe_bpf *probe, const struct admission *log,
				    enum meter meter, struct reference reference, size_t *left_out)
{
	struct meter_logs logs;
	struct replayed result;

	copy_logs(probe, log, meter, &logs);
	reference.slack_ns = DATE_SLACK_NS;
	result = replay(logs.logs, PROBE_PARTS, &reference);
	*left_out = logs.left_out;
	for (unsigned part = 0; part < PROBE_PARTS; part++)
		free(logs.copies[part]);
	return result;
}

static void check_meter(struct node_probe_bpf *probe, const struct admission *log,
			const struct scenario *row, enum meter meter)
{
	const struct rate_limit *wanted = meter == METER_BYTES ? &row->bytes : &row->packets;
	struct reference reference = {
		.tokens = (uint64_t)wanted->rate,
		.period_ns = 1000000000ULL * slowness,
		.burst = wanted->burst,
	};
	struct replayed result;
	size_t left_out;

	if (!wanted->burst)
		return;
	result = replay_meter(probe, log, meter, reference, &left_out);
	print_message("# %s, by %s: %llu replayed, %zu left out, %llu excess\n", row->name,
		      meter == METER_BYTES ? "bytes" : "packets",
		      (unsigned long long)result.admissions, left_out,
		      (unsigned long long)result.excess);
	check_row_equal(row, result.backwards, 0);
	check_row_equal(row, result.excess, 0);
	check_row(row, left_out <= result.admissions);
}

static struct probe_tally sum_of(const struct node_probe_bpf *probe)
{
	struct probe_tally sum = {};

	for (unsigned part = 0; part < PROBE_PARTS; part++) {
		const struct probe_tally *tally = &probe->bss->tally[part];

		sum.asked += tally->asked;
		sum.logged += tally->logged;
		sum.refused += tally->refused;
		sum.tries += tally->tries;
		sum.spent_in_vain += tally->spent_in_vain;
	}
	return sum;
}

struct change_watch {
	const struct scenario *row;
	struct node_probe_bpf *probe;
};

static void change_generation(void *context)
{
	struct change_watch *watch = context;

	for (unsigned change = 1; change <= watch->row->changes; change++) {
		volatile __u64 *asked = &watch->probe->bss->tally[0].asked;

		while (*asked < (uint64_t)change * test_repeat(REPEAT) / (watch->row->changes + 1))
			usleep(100);
		*(volatile __u32 *)&watch->probe->bss->plan.active = change & 1;
	}
}

static void check_scenario(struct node_probe_bpf *probe, const struct admission *log,
			   const struct scenario *row)
{
	struct change_watch watch = { row, probe };
	struct probe_tally sum;

	start_anew(probe);
	make_plan(row, &probe->bss->plan);
	check_row_equal(row,
			probe_run(bpf_program__fd(probe->progs.node_probe), probe_threads(),
				  test_repeat(REPEAT), change_generation, &watch),
			0);
	sum = sum_of(probe);
	print_message("# %s: %llu asked, %llu admitted, %llu refused, %llu tries, %llu in vain\n",
		      row->name, sum.asked, sum.logged, sum.refused, sum.tries, sum.spent_in_vain);
	check_meter(probe, log, row, METER_PACKETS);
	check_meter(probe, log, row, METER_BYTES);
	check_row(row, sum.logged * 100 >= sum.asked);
	check_row(row, sum.refused > 0);
}

static void node_is_not_admitted_more_than_its_whole_burst_allows(void **state)
{
	struct node_probe_bpf *probe = *state;
	const struct admission *log = probe_log_open(bpf_map__fd(probe->maps.admissions));

	assert_non_null(log);
	for (size_t i = 0; i < COUNT_OF(scenarios); i++)
		check_scenario(probe, log, &scenarios[i]);
	probe_log_close(log);
}

static uint64_t unspent(struct node_probe_bpf *probe, uint64_t *most)
{
	struct node_slices *slices = calloc(possible_cpus(), sizeof(*slices));
	uint64_t sum = 0;
	__u32 only = 0;

	assert_non_null(slices);
	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(probe->maps.node_slices), &only, slices),
			 0);
	*most = 0;
	for (unsigned cpu = 0; cpu < possible_cpus(); cpu++) {
		sum += slices[cpu].meter[METER_PACKETS].unspent;
		if (slices[cpu].meter[METER_PACKETS].unspent > *most)
			*most = slices[cpu].meter[METER_PACKETS].unspent;
	}
	free(slices);
	return sum;
}

static const struct scenario still_with_slices = {
	"slices, and nothing drips in", { 1.0 / PERIOD_STILL_S, 20000 }, { 0, 0 }, 1, 0, 0, true,
};

static void ask_once_on_each_cpu(struct node_probe_bpf *probe)
{
	for (unsigned number = 0; number < probe_threads(); number++)
		assert_int_equal(probe_run_on(bpf_program__fd(probe->progs.node_probe), number, 1),
				 0);
}

/* The bucket as it is when nothing was taken for long. */
static void fill_bucket(struct node_probe_bpf *probe)
{
	struct node_buckets buckets = {};
	__u32 only = 0;

	assert_int_equal(bpf_map_update_elem(bpf_map__fd(probe->maps.node_buckets), &only, &buckets,
					     BPF_ANY),
			 0);
}

struct at_once {
	uint64_t held; /* unspent on all CPUs, when asking begins */
	uint64_t admitted;
	uint64_t excess;
};

/* All CPUs hold slices, the bucket is full again, and then all ask for more than there is. */
static struct at_once ask_all_at_once(struct node_probe_bpf *probe)
{
	const struct admission *log = probe_log_open(bpf_map__fd(probe->maps.admissions));
	struct reference reference = {
		.tokens = 1,
		.period_ns = PERIOD_STILL_S * 1000000000ULL,
		.burst = still_with_slices.packets.burst,
	};
	struct at_once result = {};
	uint64_t most;
	size_t left_out;

	assert_non_null(log);
	ask_once_on_each_cpu(probe);
	result.held = unspent(probe, &most);
	assert_int_equal(most, probe->bss->plan.slot[0].node[METER_PACKETS].slice - 1);
	fill_bucket(probe);
	memset(probe->bss->tally, 0, sizeof(probe->bss->tally));
	assert_int_equal(probe_run(bpf_program__fd(probe->progs.node_probe), probe_threads(),
				   (unsigned)reference.burst * 2, NULL, NULL),
			 0);
	assert_int_equal(unspent(probe, &most), 0);
	result.admitted = sum_of(probe).logged;
	result.excess = replay_meter(probe, log, METER_PACKETS, reference, &left_out).excess;
	print_message("# %llu held, %llu admitted at once, burst %llu, %llu excess\n",
		      (unsigned long long)result.held, (unsigned long long)result.admitted,
		      (unsigned long long)reference.burst, (unsigned long long)result.excess);
	probe_log_close(log);
	return result;
}

static void at_once_a_full_bucket_and_full_slices_admit_the_burst_and_no_more(void **state)
{
	const struct scenario *row = &still_with_slices;
	struct node_probe_bpf *probe = *state;
	uint64_t all_slices;
	struct at_once result;

	start_anew(probe);
	make_plan(row, &probe->bss->plan);
	all_slices = probe->bss->plan.slot[0].node[METER_PACKETS].slice * possible_cpus();
	result = ask_all_at_once(probe);
	assert_true(result.held <= all_slices && all_slices <= row->packets.burst / 8);
	assert_int_equal(result.excess, 0);
	/* What is missing of the burst is what other CPUs might hold, and what was spent before. */
	assert_int_equal(result.admitted, row->packets.burst - all_slices + result.held);
}

/* The tests above must be able to fail. */
static void finds_the_fault_when_slices_are_not_taken_off_the_burst(void **state)
{
	const struct scenario *row = &still_with_slices;
	struct node_probe_bpf *probe = *state;
	struct node_limit *node = &probe->bss->plan.slot[0].node[METER_PACKETS];
	struct at_once result;

	start_anew(probe);
	make_plan(row, &probe->bss->plan);
	node->limit.burst = row->packets.burst;
	node->limit.capacity = node->limit.interval * row->packets.burst;
	result = ask_all_at_once(probe);
	assert_int_equal(result.admitted, row->packets.burst + result.held);
	assert_true(result.excess > 0);
}

static void burst_too_small_for_slices_is_admitted_whole_and_nothing_is_held(void **state)
{
	struct node_probe_bpf *probe = *state;
	struct scenario row = {
		"no slices", { 1.0 / PERIOD_STILL_S, 0 }, { 0, 0 }, 1, 0, 0, false
	};
	uint64_t most;

	row.packets.burst = 16 * possible_cpus() - 1;
	start_anew(probe);
	make_plan(&row, &probe->bss->plan);
	ask_once_on_each_cpu(probe);
	assert_int_equal(unspent(probe, &most), 0);
	assert_int_equal(probe_run(bpf_program__fd(probe->progs.node_probe), probe_threads(),
				   (unsigned)row.packets.burst, NULL, NULL),
			 0);
	assert_int_equal(sum_of(probe).logged, row.packets.burst);
	assert_int_equal(unspent(probe, &most), 0);
}

static void new_configuration_drops_what_was_taken_under_the_old(void **state)
{
	struct node_probe_bpf *probe = *state;
	unsigned threads = probe_threads();
	uint64_t slice, most;

	start_anew(probe);
	make_plan(&still_with_slices, &probe->bss->plan);
	slice = probe->bss->plan.slot[0].node[METER_PACKETS].slice;
	ask_once_on_each_cpu(probe);
	/* Another slice each, of a limit whose slices are smaller. */
	probe->bss->plan.slot[1].node[METER_PACKETS].slice = slice / 4;
	probe->bss->plan.active = 1;
	ask_once_on_each_cpu(probe);
	assert_int_equal(unspent(probe, &most), (slice / 4 - 1) * threads);
	assert_int_equal(most, slice / 4 - 1);
}

static void slices_hold_an_eighth_of_the_burst_at_most(void **state)
{
	(void)state;
	for (uint64_t burst = 1; burst < 1ULL << 40; burst += 1 + burst / 7) {
		for (unsigned cpus = 1; cpus <= 1024; cpus += 1 + cpus / 3) {
			struct settings settings = {
				.node = { [METER_PACKETS] = { 1e6, burst },
					  [METER_BYTES] = { 1e9, burst } },
			};
			struct config_slot slot;

			assert_int_equal(rules_slot(&settings, cpus, 1, &slot), 0);
			for (int meter = METER_PACKETS; meter <= METER_BYTES; meter++) {
				const struct node_limit *node = &slot.node[meter];

				assert_true(node->slice * cpus <= burst / 8);
				assert_int_equal(node->limit.burst + node->slice * cpus, burst);
			}
		}
	}
}

static int open_probe(void **state)
{
	struct node_probe_bpf *probe = node_probe_bpf__open_and_load();

	if (!probe)
		return -1;
	make_plan(&scenarios[0], &probe->bss->plan);
	slowness = probe_slowness(bpf_program__fd(probe->progs.node_probe));
	*state = probe;
	return 0;
}

static int close_probe(void **state)
{
	node_probe_bpf__destroy(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(node_is_not_admitted_more_than_its_whole_burst_allows),
		cmocka_unit_test(at_once_a_full_bucket_and_full_slices_admit_the_burst_and_no_more),
		cmocka_unit_test(finds_the_fault_when_slices_are_not_taken_off_the_burst),
		cmocka_unit_test(burst_too_small_for_slices_is_admitted_whole_and_nothing_is_held),
		cmocka_unit_test(new_configuration_drops_what_was_taken_under_the_old),
		cmocka_unit_test(slices_hold_an_eighth_of_the_burst_at_most),
	};

	return cmocka_run_group_tests(tests, open_probe, close_probe);
}
