/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Metrics as text: byte by byte where it is short, and as Prometheus' own checker sees it. */
#include "test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire/exposition.h"

static char *finish(struct exposition *exposition)
{
	char *text = NULL;
	size_t length;

	assert_int_equal(exposition_finish(exposition, &text, &length), 0);
	assert_int_equal(strlen(text), length);
	return text;
}

static void must_be(struct exposition *exposition, const char *wanted)
{
	char *text = finish(exposition);

	assert_string_equal(text, wanted);
	free(text);
}

static void writes_counters_and_gauges(void **state)
{
	struct exposition *exposition = exposition_new();
	const struct exposition_label labels[] = { { .name = "scope", .value = "ip" },
						   { .name = "_a1", .value = "" } };

	(void)state;
	exposition_family(exposition, EXPOSITION_COUNTER, "sluice_refused_total", "Refused.");
	exposition_count(exposition, labels, 2, 18446744073709551615ULL);
	exposition_count(exposition, labels, 1, 0);
	exposition_family(exposition, EXPOSITION_GAUGE, "sluice:open", "Open.");
	exposition_value(exposition, NULL, 0, -1.5);
	must_be(exposition, "# HELP sluice_refused_total Refused.\n"
			    "# TYPE sluice_refused_total counter\n"
			    "sluice_refused_total{scope=\"ip\",_a1=\"\"} 18446744073709551615\n"
			    "sluice_refused_total{scope=\"ip\"} 0\n"
			    "# HELP sluice:open Open.\n"
			    "# TYPE sluice:open gauge\n"
			    "sluice:open -1.5\n");
}

static void adds_up_the_buckets_of_a_histogram(void **state)
{
	static const double bounds[] = { 0.001, 0.5, 1e9 };
	static const uint64_t counts[] = { 3, 0, 4, 5 };
	const struct exposition_label label = { .name = "command", .value = "hit" };
	struct exposition_buckets buckets = { bounds, 3, counts, 0.25 };
	struct exposition_buckets none = { NULL, 0, counts, 1 };
	struct exposition *exposition = exposition_new();

	(void)state;
	exposition_family(exposition, EXPOSITION_HISTOGRAM, "t_seconds", "Time.");
	exposition_histogram(exposition, &label, 1, &buckets);
	exposition_family(exposition, EXPOSITION_HISTOGRAM, "u_seconds", "Time.");
	exposition_histogram(exposition, NULL, 0, &none);
	must_be(exposition, "# HELP t_seconds Time.\n"
			    "# TYPE t_seconds histogram\n"
			    "t_seconds_bucket{command=\"hit\",le=\"0.001\"} 3\n"
			    "t_seconds_bucket{command=\"hit\",le=\"0.5\"} 3\n"
			    "t_seconds_bucket{command=\"hit\",le=\"1000000000\"} 7\n"
			    "t_seconds_bucket{command=\"hit\",le=\"+Inf\"} 12\n"
			    "t_seconds_sum{command=\"hit\"} 0.25\n"
			    "t_seconds_count{command=\"hit\"} 12\n"
			    "# HELP u_seconds Time.\n"
			    "# TYPE u_seconds histogram\n"
			    "u_seconds_bucket{le=\"+Inf\"} 3\n"
			    "u_seconds_sum 1\n"
			    "u_seconds_count 3\n");
}

/* ---- values of labels */

#define UNKNOWN "\xef\xbf\xbd"

static const struct text_row {
	const char *name;
	const char *value;
	size_t length;
	const char *wanted;
} texts[] = {
	{ "plain", "acme", 0, "acme" },
	{ "empty", "", 0, "" },
	{ "a part of it", "acme", 2, "ac" },
	{ "all that is escaped", "\\ \" \n", 0, "\\\\ \\\" \\n" },
	{ "what looks escaped", "\\n", 0, "\\\\n" },
	{ "braces, commas, equals", "{a=\"b\",}", 0, "{a=\\\"b\\\",}" },
	{ "other control characters", "\t\r\x01\x7f", 0, "\t\r\x01\x7f" },
	{ "a zero", "a\0b", 3, "a" UNKNOWN "b" },
	{ "two bytes", "\xc3\xa4\xc2\x80", 0, "\xc3\xa4\xc2\x80" },
	{ "three bytes", "\xe2\x82\xac\xe0\xa0\x80\xed\x9f\xbf\xef\xbf\xbf", 0,
	  "\xe2\x82\xac\xe0\xa0\x80\xed\x9f\xbf\xef\xbf\xbf" },
	{ "four bytes", "\xf0\x9f\x9a\xa6\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 0,
	  "\xf0\x9f\x9a\xa6\xf0\x90\x80\x80\xf4\x8f\xbf\xbf" },
	{ "no beginning", "a\x80z", 0, "a" UNKNOWN "z" },
	{ "no end", "a\xc3", 0, "a" UNKNOWN },
	{ "no end of three", "\xe2\x82", 0, UNKNOWN UNKNOWN },
	{ "no end of four", "\xf0\x9f\x9a", 0, UNKNOWN UNKNOWN UNKNOWN },
	{ "an end beyond the length", "\xc3\xa4", 1, UNKNOWN },
	{ "another beginning in the middle", "\xe2\xc3\xa4", 0, UNKNOWN "\xc3\xa4" },
	{ "a quote in the middle", "\xe2\"\n", 0, UNKNOWN "\\\"\\n" },
	{ "longer than need be", "\xc0\xaf\xe0\x80\xaf", 0,
	  UNKNOWN UNKNOWN UNKNOWN UNKNOWN UNKNOWN },
	{ "longer than need be, of four", "\xf0\x8f\xbf\xbf", 0, UNKNOWN UNKNOWN UNKNOWN UNKNOWN },
	{ "a surrogate", "\xed\xa0\x80", 0, UNKNOWN UNKNOWN UNKNOWN },
	{ "beyond the last character", "\xf4\x90\x80\x80", 0, UNKNOWN UNKNOWN UNKNOWN UNKNOWN },
	{ "never used", "\xf5\xff\xfe", 0, UNKNOWN UNKNOWN UNKNOWN },
};

static void writes_any_bytes_as_the_value_of_a_label(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		const struct text_row *row = &texts[i];
		const struct exposition_label label = { "l", row->value, row->length };
		struct exposition *exposition = exposition_new();
		char wanted[128], *text;

		exposition_family(exposition, EXPOSITION_GAUGE, "g", "");
		exposition_count(exposition, &label, 1, 1);
		text = finish(exposition);
		(void)snprintf(wanted, sizeof(wanted), "# HELP g \n# TYPE g gauge\ng{l=\"%s\"} 1\n",
			       row->wanted);
		check_row_text(row, text, wanted);
		free(text);
	}
}

static void keeps_help_on_its_line(void **state)
{
	struct exposition *exposition = exposition_new();

	(void)state;
	exposition_family(exposition, EXPOSITION_GAUGE, "g", "a \"b\" \\c\nd\xff");
	must_be(exposition, "# HELP g a \"b\" \\\\c\\nd" UNKNOWN "\n# TYPE g gauge\n");
}

/* ---- numbers */

static const struct number_row {
	const char *name; /* what is wanted */
	double value;
} numbers[] = {
	{ "0", 0 },
	{ "-0", -0.0 },
	{ "1", 1 },
	{ "0.1", 0.1 },
	{ "0.005", 0.005 },
	{ "0.30000000000000004", 0.1 + 0.2 },
	{ "1e+300", 1e300 },
	{ "4.94065645841247e-324", 4.94065645841247e-324 },
	{ "1.7976931348623157e+308", 1.7976931348623157e308 },
	{ "9007199254740993", 9007199254740993.0 },
	{ "+Inf", INFINITY },
	{ "-Inf", -INFINITY },
	{ "NaN", NAN },
};

static void must_format(const struct number_row *row, const char *wanted_number)
{
	struct exposition *exposition = exposition_new();
	char wanted[64], *text;

	exposition_family(exposition, EXPOSITION_GAUGE, "g", "");
	exposition_value(exposition, NULL, 0, row->value);
	text = finish(exposition);
	(void)snprintf(wanted, sizeof(wanted), "# HELP g \n# TYPE g gauge\ng %s\n", wanted_number);
	check_row_text(row, text, wanted);
	free(text);
}

static void writes_numbers_so_that_they_read_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(numbers); i++) {
		/* 2^53 + 1 is none; its neighbour is even. */
		const char *wanted = numbers[i].value == 9007199254740993.0 ? "9007199254740992"
									    : numbers[i].name;

		must_format(&numbers[i], wanted);
	}
}

/* ---- as a whole */

static struct exposition *write_much(void)
{
	static const double bounds[] = { 0.001, 0.01, 0.1 };
	static const uint64_t counts[] = { 1, 2, 3, 4 };
	struct exposition_buckets buckets = { bounds, 3, counts, 0.5 };
	struct exposition *exposition = exposition_new();

	assert_non_null(exposition);
	exposition_family(exposition, EXPOSITION_COUNTER, "sluice_texts_total", "Odd \\ \" \n.");
	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		const struct exposition_label labels[] = {
			{ "row", texts[i].name, 0 },
			{ "value", texts[i].value, texts[i].length },
		};

		exposition_count(exposition, labels, 2, i);
	}
	exposition_family(exposition, EXPOSITION_GAUGE, "sluice_numbers", "Odd numbers.");
	for (size_t i = 0; i < COUNT_OF(numbers); i++) {
		const struct exposition_label label = { "row", numbers[i].name, 0 };

		exposition_value(exposition, &label, 1, numbers[i].value);
	}
	exposition_family(exposition, EXPOSITION_HISTOGRAM, "sluice_wait_seconds", "Waits.");
	exposition_histogram(exposition, NULL, 0, &buckets);
	return exposition;
}

static void satisfies_promtool(void **state)
{
	char *text = finish(write_much());
	FILE *promtool;

	(void)state;
	if (system("command -v promtool > /dev/null 2>&1") != 0) {
		free(text);
		print_message("# promtool is not installed\n");
		skip();
	}
	promtool = popen("promtool check metrics >&2", "w");
	assert_non_null(promtool);
	assert_true(fputs(text, promtool) >= 0);
	assert_int_equal(pclose(promtool), 0);
	free(text);
}

/* In a child, which may then have hardly any memory. */
static int write_without_memory(void)
{
	const struct rlimit little = { 0, 0 };
	struct exposition *exposition = exposition_new();
	char *text = (char *)"untouched", *was = text;
	size_t length = 7;
	int err;

	exposition_family(exposition, EXPOSITION_GAUGE, "g", "");
	if (setrlimit(RLIMIT_AS, &little) != 0)
		return 1;
	for (int i = 0; i < 1000000; i++)
		exposition_count(exposition, NULL, 0, 1);
	err = exposition_finish(exposition, &text, &length);
	return err == -ENOMEM && text == was && length == 7 ? 0 : 2;
}

static void says_that_memory_ran_out(void **state)
{
	pid_t child;
	int status;

	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip(); /* a sanitizer needs memory of its own, and ends the process without it */
#endif
	child = fork();
	if (child == 0)
		_exit(write_without_memory());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void gives_an_empty_text_for_nothing(void **state)
{
	(void)state;
	must_be(exposition_new(), "");
	exposition_free(NULL);
	exposition_free(write_much());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_counters_and_gauges),
		cmocka_unit_test(adds_up_the_buckets_of_a_histogram),
		cmocka_unit_test(writes_any_bytes_as_the_value_of_a_label),
		cmocka_unit_test(keeps_help_on_its_line),
		cmocka_unit_test(writes_numbers_so_that_they_read_back),
		cmocka_unit_test(satisfies_promtool),
		cmocka_unit_test(says_that_memory_ran_out),
		cmocka_unit_test(gives_an_empty_text_for_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
