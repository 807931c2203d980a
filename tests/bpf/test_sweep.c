/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The timer that clears passed words: after a whole pass over the table, words that had passed are
 * empty and all others are as they were. The timer runs on the kernel's own clock, so these tests
 * wait for the passes that it counts; the deadline is there to end them if it never runs.
 */
#include "harness.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "sluice_test.skel.h"

enum { PASS_DEADLINE_S = 120, POLL_US = 20000 };

static void arm(struct harness *harness)
{
	LIBBPF_OPTS(bpf_test_run_opts, options);
	int fd = bpf_program__fd(harness->skeleton->progs.sluice_arm);

	assert_int_equal(bpf_prog_test_run_opts(fd, &options), 0);
	assert_int_equal(options.retval, 0);
}

/* Until a pass that has begun after this call has ended. */
static void wait_for_a_whole_pass(const struct harness *harness)
{
	uint64_t wanted = harness_note(harness, NOTE_SWEEPS) + 2;
	time_t deadline = time(NULL) + PASS_DEADLINE_S;

	while (harness_note(harness, NOTE_SWEEPS) < wanted) {
		assert_true(time(NULL) < deadline);
		usleep(POLL_US);
	}
}

/* What is put into a set, and what is there after a pass. Instants are relative to the clock. */
static const struct sweep_row {
	const char *name;
	bool is_claim;
	uint32_t word_class;
	int64_t ahead_ns;
	bool cleared;
} sweep_rows[] = {
	{ "class 0, passed now", false, 0, 0, true },
	{ "class 0, passed long ago", false, 0, -16 * (int64_t)SECOND_NS, true },
	{ "class 0, a nanosecond to go", false, 0, 1, false },
	{ "class 0, eight seconds to go", false, 0, 8 * (int64_t)SECOND_NS, false },
	{ "class 1, passed", false, 1, -(int64_t)SECOND_NS, true },
	{ "class 1, nine minutes to go", false, 1, 540 * (int64_t)SECOND_NS, false },
	{ "class 2, passed", false, 2, -(int64_t)SECOND_NS, true },
	{ "class 2, nine hours to go", false, 2, 32400 * (int64_t)SECOND_NS, false },
	{ "class 3, passed", false, 3, -(int64_t)SECOND_NS, true },
	{ "class 3, 25 days to go", false, 3, 25 * 86400 * (int64_t)SECOND_NS, false },
	{ "a claim", true, 0, 0, false },
};

/* Sets at both ends of the table and at the borders of the timer's shares. */
static const uint32_t set_numbers[] = {
	0, 1, SWEEP_SETS - 1, SWEEP_SETS, 70001, IP_SETS - SWEEP_SETS, IP_SETS - 1,
};

static uint64_t word_of(const struct harness *harness, const struct sweep_row *row)
{
	uint32_t tag = 0x2abcd;

	if (row->is_claim)
		return word_claim(tag);
	return word_pack(
		tag, row->word_class,
		word_ticks(harness_now(harness) + (uint64_t)row->ahead_ns, row->word_class));
}

/* Every row stands in every one of the sets, at another place in each. */
static struct bucket_set *find_row(const struct harness *harness, size_t set, size_t row,
				   uint32_t *at)
{
	*at = (uint32_t)(row + set) % SET_WORDS;
	return &harness->sets[(set_numbers[set] + row / SET_WORDS * 5) % IP_SETS];
}

static void passed_words_are_cleared_and_no_others(void **state)
{
	struct harness *harness = *state;
	uint64_t passed = 0, now;
	uint32_t at;

	for (size_t set = 0; set < COUNT_OF(set_numbers); set++)
		for (size_t row = 0; row < COUNT_OF(sweep_rows); row++) {
			find_row(harness, set, row, &at)->word[at] =
				word_of(harness, &sweep_rows[row]);
			passed += sweep_rows[row].cleared;
		}
	now = gcra_ticks(harness_now(harness), GCRA_TICK_SHIFT);
	harness->node->tat[METER_CONNECTIONS] = now - 1000;
	harness->node->tat[METER_PACKETS] = now + 1;
	arm(harness);
	wait_for_a_whole_pass(harness);

	for (size_t set = 0; set < COUNT_OF(set_numbers); set++)
		for (size_t row = 0; row < COUNT_OF(sweep_rows); row++) {
			uint64_t word = find_row(harness, set, row, &at)->word[at];

			check_row(&sweep_rows[row],
				  word == (sweep_rows[row].cleared
						   ? WORD_EMPTY
						   : word_of(harness, &sweep_rows[row])));
		}
	assert_int_equal(harness_note(harness, NOTE_SWEPT), passed);
	/* The node's are not emptied but brought up to now, which is the same: see sweep_node(). */
	assert_int_equal(harness->node->tat[METER_CONNECTIONS], now);
	assert_int_equal(harness->node->tat[METER_PACKETS], now + 1);
	assert_int_equal(harness->node->tat[METER_BYTES], 0);
}

/* The first test's timer is running; to arm it again must be harmless, as each new program does it.
 */
static void a_word_that_passes_later_is_cleared_by_a_later_pass(void **state)
{
	struct harness *harness = *state;
	struct bucket_set *set = &harness->sets[4711];

	set->word[3] = word_pack(7, 1, word_ticks(harness_now(harness) + 5 * SECOND_NS, 1));
	arm(harness);
	arm(harness);
	harness_clock(harness, harness_now(harness) + 5 * SECOND_NS, 0);
	wait_for_a_whole_pass(harness);
	assert_int_equal(set->word[3], WORD_EMPTY);
	assert_int_equal(harness_note(harness, NOTE_SWEPT), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(passed_words_are_cleared_and_no_others, harness_reset),
		cmocka_unit_test_setup(a_word_that_passes_later_is_cleared_by_a_later_pass,
				       harness_reset),
	};

	return cmocka_run_group_tests_name("sweep", tests, harness_open_xdp, harness_close);
}
