/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See report.h. No name or unit holds anything that JSON would want escaped. */
#include "tests/bench/lib/report.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void runs_add(struct runs *runs, double value)
{
	assert(runs->count < REPORT_RUNS);
	runs->value[runs->count++] = value;
}

static int compare(const void *left, const void *right)
{
	double one = *(const double *)left, other = *(const double *)right;

	return (one > other) - (one < other);
}

double runs_median(const struct runs *runs)
{
	double sorted[REPORT_RUNS];

	if (!runs->count)
		return 0;
	memcpy(sorted, runs->value, sizeof(sorted));
	qsort(sorted, (size_t)runs->count, sizeof(sorted[0]), compare);
	return sorted[runs->count / 2];
}

static bool is_reached(const struct report *report, double value)
{
	return report->kind == MARK_AT_MOST ? value <= report->mark : value >= report->mark;
}

void report_print(const struct report *report)
{
	double value = report->figure;

	printf("{\"case\": \"%s\", \"figure\": %.6g, \"unit\": \"%s\"", report->name,
	       report->figure, report->unit);
	if (report->peer) {
		value = report->peer_figure > 0 ? report->figure / report->peer_figure : 0;
		printf(", \"peer\": \"%s\", \"peer_figure\": %.6g, \"ratio\": %.3g", report->peer,
		       report->peer_figure, value);
	}
	if (report->kind != MARK_NONE)
		printf(", \"mark\": \"%s %g\", \"reached\": %s",
		       report->kind == MARK_AT_MOST ? "<=" : ">=", report->mark,
		       is_reached(report, value) ? "true" : "false");
	puts("}");
	fflush(stdout);
}

void report_progress(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
}
