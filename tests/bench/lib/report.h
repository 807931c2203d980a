/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Figures of repeated runs, and the line of JSON that each case prints. Runs of what is compared
 * take turns, and the middle one of each counts: the machine has other work, and it comes and
 * goes.
 */
#ifndef TESTS_BENCH_LIB_REPORT_H
#define TESTS_BENCH_LIB_REPORT_H

enum { REPORT_RUNS = 5 };

struct runs {
	double value[REPORT_RUNS];
	int count;
};

/* What a ratio is held to; see docs/architecture.md. */
enum mark_kind {
	MARK_NONE,
	MARK_AT_MOST,
	MARK_AT_LEAST,
};

struct report {
	const char *name; /* of the case */
	const char *unit;
	double figure;
	const char *peer; /* what it is compared with; NULL: nothing */
	double peer_figure;
	enum mark_kind kind;
	double mark; /* of figure / peer_figure, or of figure where there is no peer */
};

void runs_add(struct runs *runs, double value);

/* The middle one; 0 of none. */
double runs_median(const struct runs *runs);

/* Print the line, to standard output. */
void report_print(const struct report *report);

/* Say on standard error what is being done, or what could not be. */
void report_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
