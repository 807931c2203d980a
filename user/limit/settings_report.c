/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Two visitors of a configuration's figures: one writes JSON, the other a table for people. */
#include "limit/settings_report.h"

#include <string.h>

#include "base/parse.h"
#include "limit/settings_figures.h"

/* ---- as JSON */

struct json_report {
	json_t *limits;
	json_t *unlimited;
	json_t *warnings;
	bool failed; /* out of memory */
};

static void add(json_t *array, json_t *item, struct json_report *report)
{
	/* Takes the item, and a NULL one as failure. */
	if (json_array_append_new(array, item) != 0)
		report->failed = true;
}

static void add_row(const struct figures_row *row, void *data)
{
	struct json_report *report = data;
	char prefix[PREFIX_TEXT_MAX];

	if (row->unlimited) {
		/* A default of that kind is what there would be without it. */
		if (row->tenant)
			add(report->unlimited, json_string(row->tenant), report);
		return;
	}
	if (row->prefix)
		format_prefix(&row->prefix->address, row->prefix->bits, prefix);
	add(report->limits,
	    json_pack("{s:s, s:s?, s:s?, s:s, s:f, s:f, s:I, s:f, s:f, s:f}", "scope", row->scope,
		      "prefix", row->prefix ? prefix : NULL, "tenant", row->tenant, "meter",
		      row->meter, "rate", row->wanted.rate, "enforced_rate", row->enforced, "burst",
		      (json_int_t)row->wanted.burst, "most_in_1s", figures_most_in(row, 1),
		      "most_in_60s", figures_most_in(row, 60), "longest_debt_s", row->debt_s),
	    report);
}

static void add_warning(const char *key, const char *message, void *data)
{
	struct json_report *report = data;

	add(report->warnings, json_pack("{s:s, s:s}", "key", key, "message", message), report);
}

json_t *settings_report_json(const struct settings *settings)
{
	struct json_report report = { json_array(), json_array(), json_array(), false };
	struct figures_visitor visitor = { add_row, add_warning, &report };
	double addresses = figures_filling_addresses(settings);
	json_t *filled = addresses > 0 ? json_real(addresses) : json_null();

	figures_visit_limits(settings, &visitor);
	figures_visit_warnings(settings, &visitor);
	if (report.failed) {
		json_decref(report.limits);
		report.limits = NULL;
	}
	/* Takes all of them even if it fails, and fails if one is NULL. */
	return json_pack("{s:o, s:o, s:{s:i, s:o}, s:o}", "limits", report.limits, "unlimited",
			 report.unlimited, "table", "words", TABLE_WORDS,
			 "filled_by_addresses_per_s", filled, "warnings", report.warnings);
}

/* ---- for people */

enum { ROW_NAME_MAX = PREFIX_TEXT_MAX + TENANT_ID_MAX + 24 };

struct text_report {
	FILE *out;
	int width; /* of the first column */
	bool has_rows;
	bool has_warnings;
};

static void name_row(const struct figures_row *row, char *out, size_t size)
{
	char prefix[PREFIX_TEXT_MAX];

	if (row->prefix)
		format_prefix(&row->prefix->address, row->prefix->bits, prefix);
	snprintf(out, size, "%s%s%s %s", row->prefix ? prefix : row->scope, row->tenant ? " " : "",
		 row->tenant ? row->tenant : "", row->meter);
}

static void measure_row(const struct figures_row *row, void *data)
{
	struct text_report *report = data;
	char name[ROW_NAME_MAX];

	name_row(row, name, sizeof(name));
	if ((int)strlen(name) > report->width)
		report->width = (int)strlen(name);
}

static void format_amount(const struct figures_row *row, double amount, char out[SIZE_TEXT_MAX])
{
	if (row->bytes)
		format_size(amount, out);
	else
		snprintf(out, SIZE_TEXT_MAX, "%.0f", amount);
}

static void format_row_rate(const struct figures_row *row, double rate, char out[RATE_TEXT_MAX])
{
	if (row->bytes) {
		format_size(rate, out);
		strcat(out, "/s");
	} else {
		format_rate(rate, out);
	}
}

_Static_assert(RATE_TEXT_MAX >= SIZE_TEXT_MAX + 2, "a rate of bytes is a size and /s");

static void print_columns(const struct text_report *report, const char *const text[7])
{
	fprintf(report->out, "%-*s  %13s  %13s  %13s  %13s  %13s  %12s\n", report->width, text[0],
		text[1], text[2], text[3], text[4], text[5], text[6]);
}

static void print_row(const struct figures_row *row, void *data)
{
	static const char *const titles[] = { "limit",       "rate",     "enforced",    "burst",
					      "most in 1 s", "in 1 min", "longest debt" };
	struct text_report *report = data;
	char name[ROW_NAME_MAX], wanted[RATE_TEXT_MAX], enforced[RATE_TEXT_MAX];
	char burst[SIZE_TEXT_MAX], second[SIZE_TEXT_MAX], minute[SIZE_TEXT_MAX];
	char debt[DURATION_TEXT_MAX];

	if (!report->has_rows)
		print_columns(report, titles);
	report->has_rows = true;
	name_row(row, name, sizeof(name));
	if (row->unlimited) {
		print_columns(report,
			      (const char *const[]){ name, "unlimited", "-", "-", "-", "-", "-" });
		return;
	}
	format_row_rate(row, row->wanted.rate, wanted);
	format_row_rate(row, row->enforced, enforced);
	format_amount(row, (double)row->wanted.burst, burst);
	format_amount(row, figures_most_in(row, 1), second);
	format_amount(row, figures_most_in(row, 60), minute);
	format_duration((uint64_t)(row->debt_s * 1e9), debt);
	print_columns(report,
		      (const char *const[]){ name, wanted, enforced, burst, second, minute, debt });
}

static void print_warning(const char *key, const char *message, void *data)
{
	struct text_report *report = data;

	if (!report->has_warnings)
		fprintf(report->out, "\n");
	report->has_warnings = true;
	fprintf(report->out, "warning: %s: %s\n", key, message);
}

void settings_report_print(const struct settings *settings, FILE *out)
{
	struct text_report report = { .out = out, .width = (int)strlen("limit") };
	struct figures_visitor measure = { measure_row, print_warning, &report };
	struct figures_visitor print = { print_row, print_warning, &report };
	double addresses = figures_filling_addresses(settings);

	figures_visit_limits(settings, &measure);
	figures_visit_limits(settings, &print);
	if (!report.has_rows)
		fprintf(out, "no limits are set\n");
	if (addresses > 0)
		fprintf(out,
			"\nThe table has %d words; %.0f invented addresses per second, one packet "
			"each, keep all in debt.\n",
			TABLE_WORDS, addresses);
	figures_visit_warnings(settings, &print);
}
