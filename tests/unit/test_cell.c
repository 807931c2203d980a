/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CL.THROTTLE: the vectors of redis-cell 0.4 and later, the arguments that crash or fool it, and
 * properties of any arguments: what is admitted is never too much, and waiting is always enough.
 */
#include "test.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "limit/cell.h"

typedef unsigned __int128 wide;

#define S 1000000000ULL
#define START_NS (86400 * S)
#define MOST "9223372036854775807"

static int parse_words(const char *words, struct cell_request *out, char message[CELL_MESSAGE_MAX])
{
	struct cell_argument arguments[8];
	size_t count = 0;

	while (*words) {
		size_t length = strcspn(words, " ");

		arguments[count++] = (struct cell_argument){ words, length };
		words += length + (words[length] == ' ');
	}
	return cell_parse(arguments, count, out, message);
}

static struct cell_request must_parse(const char *words)
{
	struct cell_request request;
	char message[CELL_MESSAGE_MAX];

	if (parse_words(words, &request, message))
		fail_msg("%s: %s", words, message);
	return request;
}

/* What one bucket is asked, and what it answers as CL.THROTTLE does. */
struct step {
	uint64_t at_ns; /* since the first */
	const char *words;
	const char *reply;
};

static const struct table_row {
	const char *name;
	struct step step[16];
} table_rows[] = {
	{ "five numbers of the README", { { 0, "15 30 60", "0 16 15 -1 2" } } },
	{ "refund, look, refuse, never",
	  { { 0, "5 10 60 4", "0 6 2 -1 24" },
	    { 0, "5 10 60 -2", "0 6 4 -1 12" },
	    { 0, "5 10 60 0", "0 6 4 -1 12" },
	    { 0, "5 10 60 6", "1 6 4 12 12" },
	    { 0, "5 10 60 7", "1 6 4 -1 12" },
	    { 12 * S, "5 10 60 6", "0 6 0 -1 36" } } },
	{ "never from a fresh bucket", { { 0, "5 10 60 7", "1 6 6 -1 0" } } },
	{ "below a second",
	  { { 0, "2 5 1", "0 3 2 -1 1" },
	    { 0, "2 5 1", "0 3 1 -1 1" },
	    { 0, "2 5 1", "0 3 0 -1 1" },
	    { 0, "2 5 1", "1 3 0 1 1" } } },
	{ "burst of one", { { 0, "0 10 1", "0 1 0 -1 1" }, { 0, "0 10 1", "1 1 0 1 1" } } },
	{ "remaining above a million a second",
	  { { 0, "10 2000000 1", "0 11 10 -1 1" }, { 0, "10 2000000 1", "0 11 9 -1 1" } } },
	{ "its own table",
	  { { 0, "4 1 1 6", "1 5 5 -1 0" },
	    { 0, "4 1 1", "0 5 4 -1 1" },
	    { 0, "4 1 1", "0 5 3 -1 2" },
	    { 0, "4 1 1", "0 5 2 -1 3" },
	    { 0, "4 1 1", "0 5 1 -1 4" },
	    { 0, "4 1 1", "0 5 0 -1 5" },
	    { 0, "4 1 1", "1 5 0 1 5" },
	    { 3000000000, "4 1 1", "0 5 2 -1 3" },
	    { 3100000000, "4 1 1", "0 5 1 -1 4" },
	    { 4000000000, "4 1 1", "0 5 1 -1 4" },
	    { 8000000000, "4 1 1", "0 5 4 -1 1" },
	    { 9500000000, "4 1 1", "0 5 4 -1 1" },
	    { 9500000000, "4 1 1 0", "0 5 4 -1 1" },
	    { 9500000000, "4 1 1 2", "0 5 2 -1 3" },
	    { 9500000000, "4 1 1 5", "1 5 2 3 3" } } },
	{ "the boundary admits",
	  { { 0, "0 1 1", "0 1 0 -1 1" },
	    { 999999999, "0 1 1", "1 1 0 1 1" },
	    { 1000000000, "0 1 1", "0 1 0 -1 1" } } },
	{ "a sliver is rounded up",
	  { { 0, "0 1 1", "0 1 0 -1 1" }, { 999600000, "0 1 1", "1 1 0 1 1" } } },
	{ "a refund never makes more than full",
	  { { 0, "5 10 60 -2", "0 6 6 -1 0" },
	    { 0, "5 10 60 1", "0 6 5 -1 6" },
	    { 0, "5 10 60 -" MOST, "0 6 6 -1 0" },
	    { 0, "5 10 60 -9223372036854775808", "0 6 6 -1 0" },
	    { 0, "5 10 60 6", "0 6 0 -1 36" } } },
	{ "the limit was lowered",
	  { { 0, "9 1 1 10", "0 10 0 -1 10" },
	    { 0, "1 1 1 1", "1 2 0 9 10" },
	    { 0, "1 1 1 0", "1 2 0 8 10" },
	    { 9000000000, "1 1 1 1", "0 2 0 -1 2" } } },
	/* The word counts half seconds by then, rounded up. */
	{ "a billion years, which overflow in redis-cell",
	  { { 0, "1000000000 1 31536000", "0 1000000001 1000000000 -1 31536000" },
	    { 0, "1000000000 1 31536000 1000000000", "0 1000000001 0 -1 31536000031536000" },
	    { 0, "1000000000 1 31536000", "1 1000000001 0 31536001 31536000031536001" } } },
	{ "the longest period, which aborts redis-server",
	  { { 0, "0 1 " MOST, "0 1 0 -1 " MOST },
	    { 0, "0 1 " MOST, "1 1 0 " MOST " " MOST },
	    { 0, "0 1 " MOST " 2", "1 1 0 -1 " MOST } } },
	{ "a period of a thousand years, which aborts redis-server",
	  { { 0, "4000000000 1 31536000000", "0 4000000001 4000000000 -1 31536000000" } } },
	{ "the largest burst",
	  { { 0, MOST " 1 1", "0 " MOST " " MOST " -1 1" },
	    { 0, MOST " 1 1 " MOST, "0 " MOST " 0 -1 " MOST } } },
	{ "more than can be remembered: from a full bucket only",
	  { { 0, MOST " 1 " MOST " 0", "0 " MOST " " MOST " -1 0" },
	    { 0, MOST " 1 " MOST " " MOST, "0 " MOST " 0 -1 " MOST },
	    { 0, MOST " 1 " MOST " 1", "1 " MOST " 0 " MOST " " MOST } } },
	{ "all of it the largest",
	  { { 0, MOST " " MOST " " MOST " " MOST, "0 " MOST " 1 -1 " MOST } } },
	{ "a nanosecond each", { { 0, "0 1000000000 1", "0 1 0 -1 1" } } },
};

static uint64_t ask(const char *row, const struct step *step, uint64_t tat)
{
	struct cell_request request = must_parse(step->words);
	struct cell_answer answer = cell_decide(&request, tat, START_NS + step->at_ns);
	char reply[128];

	snprintf(reply, sizeof(reply), "%d %lld %lld %lld %lld", answer.limited,
		 (long long)answer.limit, (long long)answer.remaining,
		 (long long)answer.retry_after_s, (long long)answer.reset_after_s);
	if (strcmp(reply, step->reply) != 0)
		fail_msg("row \"%s\": to %s at %llu ns the answer is\n  %s\nnot\n  %s", row,
			 step->words, (unsigned long long)step->at_ns, reply, step->reply);
	assert_false(answer.limited && answer.write);
	return answer.write ? answer.new_tat : tat;
}

static void the_answers_are_those_of_redis_cell(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(table_rows); i++) {
		const struct table_row *row = &table_rows[i];
		uint64_t tat = 0;

		for (const struct step *step = row->step; step->words; step++)
			tat = ask(row->name, step, tat);
	}
}

static const struct error_row {
	const char *name;
	const char *message;
} error_rows[] = {
#define USAGE                                                                           \
	"Cell error: Usage: cl.throttle <key> <max_burst> <count per period> <period> " \
	"[<quantity>]"
	{ "", USAGE },
	{ "1 1", USAGE },
	{ "1 1 1 1 1", USAGE },
	{ "x 1 1", "Cell error: Couldn't parse as integer: x" },
	{ "1 1 1.0", "Cell error: Couldn't parse as integer: 1.0" },
	{ "1 - 1", "Cell error: Couldn't parse as integer: -" },
	{ "1 + 1", "Cell error: Couldn't parse as integer: +" },
	{ "1 1 1 9223372036854775808",
	  "Cell error: Couldn't parse as integer: 9223372036854775808" },
	{ "1 1 1 -9223372036854775809",
	  "Cell error: Couldn't parse as integer: -9223372036854775809" },
	{ "1 1 1 99999999999999999999999999999999999999999999",
	  "Cell error: Couldn't parse as integer: 9999999999999999999999999999999999999999..." },
	{ "1\r\n+OK 1 1", "Cell error: Couldn't parse as integer: 1??+OK" },
	{ "\xff 1 1", "Cell error: Couldn't parse as integer: ?" },
	{ "1 0 60", "Cell error: Zero rates are not supported" },
	{ "0 0 60", "Cell error: Zero rates are not supported" },
	{ "1 1 0", "Cell error: Zero rates are not supported" },
	{ "1 1000000001 1", "Cell error: Zero rates are not supported" },
	{ "-1 10 60", "Cell error: max_burst must not be negative" },
	{ "1 -10 60", "Cell error: count per period must not be negative" },
	{ "1 10 -60", "Cell error: period must not be negative" },
};

static void bad_arguments_are_errors(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(error_rows); i++) {
		const struct error_row *row = &error_rows[i];
		struct cell_request request;
		char message[CELL_MESSAGE_MAX] = "";

		check_row_equal(row, parse_words(row->name, &request, message), -EINVAL);
		check_row_text(row, message, row->message);
	}
}

static void integers_are_read_as_rust_reads_them(void **state)
{
	struct cell_request request = must_parse("+5 007 60 -0");

	(void)state;
	assert_int_equal(request.burst, 6);
	assert_int_equal((uint64_t)request.interval_ns, 60 * S / 7);
	assert_int_equal(request.quantity, 0);
}

static void an_empty_argument_is_no_integer(void **state)
{
	struct cell_argument arguments[] = { { "", 0 }, { "1", 1 }, { "1", 1 } };
	struct cell_request request;
	char message[CELL_MESSAGE_MAX];

	(void)state;
	assert_int_equal(cell_parse(arguments, 3, &request, message), -EINVAL);
	assert_string_equal(message, "Cell error: Couldn't parse as integer: ");
}

static void a_look_and_a_needless_refund_write_nothing(void **state)
{
	struct cell_request look = must_parse("5 10 60 0"), take = must_parse("5 10 60 3"),
			    refund = must_parse("5 10 60 -1");
	struct cell_answer answer = cell_decide(&take, 0, START_NS);

	(void)state;
	assert_true(answer.write);
	assert_false(cell_decide(&look, answer.new_tat, START_NS).write);
	assert_false(cell_decide(&look, 0, START_NS).write);
	assert_false(cell_decide(&refund, 0, START_NS).write);
	assert_true(cell_decide(&refund, answer.new_tat, START_NS).write);
}

/* ---- properties */

static uint64_t random_state = 7;

static uint64_t draw(void)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* Of any magnitude. */
static uint64_t draw_wild(void)
{
	return draw() >> (draw() % 64);
}

static struct cell_request draw_request(void)
{
	struct cell_request request;
	char words[128], message[CELL_MESSAGE_MAX];

	do {
		snprintf(words, sizeof(words), "%llu %llu %llu %llu",
			 (unsigned long long)draw_wild() >> 1, (unsigned long long)draw_wild() >> 1,
			 (unsigned long long)draw_wild() >> 1,
			 (unsigned long long)draw_wild() >> 1);
	} while (parse_words(words, &request, message));
	return request;
}

/* Of whatever is asked of a fresh bucket, at most burst + elapsed / interval is admitted. */
static void no_arguments_admit_too_much(void **state)
{
	(void)state;
	for (int round = 0; round < 20000; round++) {
		struct cell_request request = draw_request();
		uint64_t now = START_NS, tat = 0;
		wide admitted = 0;

		for (int step = 0; step < 40; step++) {
			struct cell_answer answer;
			wide earned = (now - START_NS) / request.interval_ns;

			request.quantity = (int64_t)(draw_wild() % 2 ? draw_wild() >> 1
								     : request.burst >> draw() % 8);
			if (request.quantity < 0)
				request.quantity = INT64_MAX;
			answer = cell_decide(&request, tat, now);
			assert_true(answer.remaining >= 0 && answer.remaining <= answer.limit);
			assert_true(answer.reset_after_s >= 0 && answer.retry_after_s >= -1);
			assert_true(!answer.limited || answer.retry_after_s != 0);
			if (!answer.limited)
				admitted += (uint64_t)request.quantity;
			assert_true(admitted <= request.burst + earned);
			if (answer.write) {
				assert_true((int64_t)answer.new_tat > (int64_t)now);
				tat = answer.new_tat;
			}
			now += draw_wild() >> 12;
		}
	}
}

static void waiting_is_always_enough_and_never_too_long(void **state)
{
	unsigned refused = 0;

	(void)state;
	for (int round = 0; round < 200000; round++) {
		struct cell_request request = draw_request();
		uint64_t now = START_NS, tat = draw_wild() >> 1, wait;
		struct cell_answer answer;

		if ((uint64_t)request.quantity > request.burst)
			request.quantity = (int64_t)(draw() % request.burst >> 1);
		answer = cell_decide(&request, tat, now);
		wait = answer.retry_after_ns;
		if (!answer.limited || wait >= 1ULL << 61)
			continue;
		refused++;
		assert_false(cell_decide(&request, tat, now + wait).limited);
		assert_true(cell_decide(&request, tat, now + wait - 1).limited);
		if ((uint64_t)answer.retry_after_s < (1ULL << 61) / S)
			assert_false(
				cell_decide(&request, tat, now + (uint64_t)answer.retry_after_s * S)
					.limited);
	}
	assert_true(refused > 1000);
}

static void what_remains_is_admitted_and_one_more_is_not(void **state)
{
	(void)state;
	for (int round = 0; round < 200000; round++) {
		struct cell_request request = draw_request();
		uint64_t now = START_NS, tat = draw_wild() >> 1;
		struct cell_answer answer;

		request.quantity = 0;
		answer = cell_decide(&request, tat, now);
		request.quantity = answer.remaining;
		if (!answer.limited)
			assert_false(cell_decide(&request, tat, now).limited);
		if (answer.remaining < INT64_MAX) {
			request.quantity = answer.remaining + 1;
			assert_true(cell_decide(&request, tat, now).limited);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_answers_are_those_of_redis_cell),
		cmocka_unit_test(bad_arguments_are_errors),
		cmocka_unit_test(integers_are_read_as_rust_reads_them),
		cmocka_unit_test(an_empty_argument_is_no_integer),
		cmocka_unit_test(a_look_and_a_needless_refund_write_nothing),
		cmocka_unit_test(no_arguments_admit_too_much),
		cmocka_unit_test(waiting_is_always_enough_and_never_too_long),
		cmocka_unit_test(what_remains_is_admitted_and_one_more_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
