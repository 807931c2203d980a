/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tests/vectors/gcra.h once more, on include/sluice/gcra.h as clang builds it for BPF; and the same
 * answers from both builds, field by field, for limits and instants drawn at random.
 */
#include "tests/unit/test.h"

#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "gcra_probe.h"
#include "gcra_probe.skel.h"
#include "limit/build.h"
#include "tests/vectors/gcra.h"

static int open_probe(void **state)
{
	struct gcra_probe_bpf *skeleton = gcra_probe_bpf__open_and_load();

	if (!skeleton) {
		print_error("the probe cannot be loaded; this needs root\n");
		return -1;
	}
	*state = skeleton;
	return 0;
}

static int close_probe(void **state)
{
	gcra_probe_bpf__destroy(*state);
	return 0;
}

/* Let the program answer. */
static void ask(void *state, struct gcra_probe *probe)
{
	struct gcra_probe_bpf *skeleton = state;
	LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = probe, .ctx_size_in = sizeof(*probe));
	int err = bpf_prog_test_run_opts(bpf_program__fd(skeleton->progs.gcra_probe), &options);

	assert_int_equal(err, 0);
	assert_int_equal(options.retval, 0);
}

/* The same answers from the host's build. */
static void answer(struct gcra_probe *probe)
{
	const struct gcra_limit *limit = &probe->limit;
	struct gcra_verdict verdict = gcra_take(limit, probe->tat, probe->now, probe->tokens);

	probe->verdict_tat = verdict.tat;
	probe->wait_ticks = verdict.wait_ticks;
	probe->wait_ns = gcra_wait_ns(verdict.wait_ticks, limit->tick_shift);
	probe->now_ticks = gcra_ticks(probe->now_ns, limit->tick_shift);
	probe->cost = gcra_cost(limit, probe->tokens);
	probe->debt = gcra_debt(limit, probe->tat, probe->now);
	probe->remaining = gcra_remaining(limit, probe->tat, probe->now);
	probe->admitted = verdict.admitted;
	probe->clamped = verdict.clamped;
	probe->is_beyond = gcra_is_beyond(limit, probe->tat, probe->now);
	probe->has_passed = gcra_has_passed(probe->tat, probe->now);
}

/* When every timetable begins: some time after boot. */
#define START_NS 86400000000000ULL

static void the_program_keeps_every_timetable(void **state)
{
	for (size_t i = 0; i < COUNT_OF(gcra_rows); i++) {
		const struct gcra_row *row = &gcra_rows[i];
		struct rate_limit wanted = { .rate = row->rate, .burst = row->burst };
		struct gcra_probe probe = { .tokens = 1 };
		uint64_t longest;

		assert_int_equal(limit_build(&wanted, BUCKET_WHOLE, &probe.limit, &longest), 0);
		probe.tat = gcra_ticks(START_NS, probe.limit.tick_shift);
		for (const struct gcra_step *step = row->step; step->times; step++)
			for (__u32 time = 0; time < step->times; time++) {
				__u64 milliseconds;

				probe.now_ns = START_NS + step->at_ns;
				probe.now = gcra_ticks(probe.now_ns, probe.limit.tick_shift);
				ask(*state, &probe);
				check_row_equal(row, probe.admitted, step->admitted);
				check_row_equal(row, probe.clamped, false);
				check_row_equal(row, probe.now_ticks, probe.now);
				probe.tat = probe.verdict_tat;
				if (probe.admitted)
					continue;
				milliseconds = gcra_retry_after_ms(probe.wait_ns);
				check_row_equal(row, milliseconds, step->retry_after_ms);
				check_row_equal(row, gcra_retry_after_s(milliseconds),
						step->retry_after_s);
			}
	}
}

static void the_program_answers_every_edge_case(void **state)
{
	for (size_t i = 0; i < COUNT_OF(gcra_cases); i++) {
		const struct gcra_case *row = &gcra_cases[i];
		struct gcra_probe probe = {
			.limit = row->limit, .tat = row->tat, .now = row->now, .tokens = row->tokens
		};

		ask(*state, &probe);
		check_row_equal(row, probe.admitted, row->verdict.admitted);
		check_row_equal(row, probe.verdict_tat, row->verdict.tat);
		check_row_equal(row, probe.wait_ticks, row->verdict.wait_ticks);
		check_row_equal(row, probe.clamped, row->verdict.clamped);
		check_row_equal(row, probe.remaining, row->remaining);
		check_row_equal(row, probe.wait_ns, row->wait_ns);
	}
}

static uint64_t random_state;

/* splitmix64: the same draws in every run. */
static uint64_t draw(uint64_t below)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (z ^ (z >> 31)) % below;
}

enum { DRAWS = 200000 };

static void draw_probe(struct gcra_probe *probe)
{
	static const __s8 shifts[] = { 10, 9, 3, -3, -9 };
	struct gcra_limit *limit = &probe->limit;

	memset(probe, 0, sizeof(*probe));
	limit->fraction_bits = (__u8)(draw(2) * draw(25));
	limit->tick_shift = shifts[draw(COUNT_OF(shifts))];
	limit->interval = 1 + draw(1ULL << draw(40));
	limit->burst = 1 + draw(1ULL << draw(21));
	limit->capacity = (limit->interval * limit->burst >> limit->fraction_bits) + draw(1024) + 1;
	probe->now_ns = draw(1ULL << 54);
	probe->now = draw(2) ? draw(~0ULL) : 0 - draw(limit->capacity);
	probe->tat = probe->now + (draw(4) ? draw(limit->capacity + 2) : draw(~0ULL));
	probe->tokens = draw(4) ? draw(limit->burst + 2) : draw(~0ULL);
}

static void both_builds_give_the_same_answers(void **state)
{
	random_state = 1;
	for (int i = 0; i < DRAWS; i++) {
		struct gcra_probe host, program;

		draw_probe(&host);
		program = host;
		answer(&host);
		ask(*state, &program);
		if (memcmp(&host, &program, sizeof(host)) != 0)
			fail_msg("draw %d: admitted %u and %u, tat %llu and %llu, wait %llu and "
				 "%llu",
				 i, host.admitted, program.admitted, host.verdict_tat,
				 program.verdict_tat, host.wait_ticks, program.wait_ticks);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_program_keeps_every_timetable),
		cmocka_unit_test(the_program_answers_every_edge_case),
		cmocka_unit_test(both_builds_give_the_same_answers),
	};

	return cmocka_run_group_tests_name("gcra in BPF", tests, open_probe, close_probe);
}
