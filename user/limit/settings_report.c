/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Works the figures out once, as rows and warnings that are handed to a visitor; the text and the
 * JSON are two visitors. Rows are not collected: a file may hold a million of them.
 */
#include "limit/settings_report.h"

#include <stdarg.h>
#include <string.h>

#include "base/parse.h"

enum {
	WORDS = IP_SETS * SET_WORDS,
	SYN_BYTES = 60,            /* what one packet of a flood of new addresses costs at least */
	SUPER_FRAME_BYTES = 65535, /* the largest packet that generic XDP or a veth may show */
	FLOOD_PER_S = 1000000,     /* what one cheap machine can send */
	MESSAGE_MAX = 256,
};

struct row {
	const char *scope;                   /* per_ip, node or prefix */
	const struct setting_prefix *prefix; /* NULL but for scope prefix */
	enum meter meter;
	struct rate_limit wanted;
	double enforced; /* per second */
	double debt_s;   /* of a burst spent at once */
};

struct visitor {
	void (*row)(const struct row *row, void *data);
	void (*warning)(const char *key, const char *message, void *data);
	void *data;
};

/* The most that can be admitted in any stretch of so many seconds. */
static double most_in(const struct row *row, double seconds)
{
	return (double)row->wanted.burst + row->enforced * seconds;
}

static enum bucket_kind kind_of(enum meter meter, bool whole)
{
	if (meter == METER_BYTES)
		return whole ? BUCKET_WHOLE_BYTES : BUCKET_WORD_BYTES;
	return whole ? BUCKET_WHOLE : BUCKET_WORD;
}

static void visit_limits(const struct rate_limit *limits, const char *scope,
			 const struct setting_prefix *prefix, const struct visitor *visitor)
{
	int meter;

	for (meter = 0; meter < METERS; meter++) {
		struct row row = { scope, prefix, (enum meter)meter, limits[meter], 0, 0 };
		struct gcra_limit built;
		uint64_t longest;

		if (!row.wanted.burst ||
		    limit_build(&row.wanted, kind_of(row.meter, scope[0] == 'n'), &built, &longest))
			continue;
		row.enforced = limit_enforced_rate(&built);
		row.debt_s = (double)gcra_wait_ns(built.capacity, built.tick_shift) / 1e9;
		visitor->row(&row, visitor->data);
	}
}

static void visit_all_limits(const struct settings *settings, const struct visitor *visitor)
{
	size_t i;

	visit_limits(settings->ip, "per_ip", NULL, visitor);
	visit_limits(settings->node, "node", NULL, visitor);
	for (i = 0; i < settings->prefix_count; i++)
		if (settings->prefixes[i].action == PREFIX_LIMIT)
			visit_limits(settings->prefixes[i].limit, "prefix", &settings->prefixes[i],
				     visitor);
}

/*
 * How many invented addresses a second, each sending one packet, keep every word of the table in
 * debt; 0: none can. One packet takes a word of each meter for as long as it costs, cost / rate.
 */
static double filling_addresses(const struct settings *settings)
{
	double word_seconds = 0;
	int meter;

	for (meter = 0; meter < METERS; meter++)
		if (settings->ip[meter].burst)
			word_seconds +=
				(meter == METER_BYTES ? SYN_BYTES : 1) / settings->ip[meter].rate;
	return word_seconds > 0 ? WORDS / word_seconds : 0;
}

static void warn(const struct visitor *visitor, const char *key, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void warn(const struct visitor *visitor, const char *key, const char *format, ...)
{
	char message[MESSAGE_MAX];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	visitor->warning(key, message, visitor->data);
}

static void warn_of_burst(const struct rate_limit *limits, const char *scope,
			  const struct visitor *visitor)
{
	char key[PREFIX_TEXT_MAX + 48];

	if (!limits[METER_BYTES].burst || limits[METER_BYTES].burst >= SUPER_FRAME_BYTES)
		return;
	snprintf(key, sizeof(key), "rate_limits.%s.bytes.burst", scope);
	warn(visitor, key,
	     "a packet larger than %llu bytes can never pass; where the card or a veth joins "
	     "packets, they reach %d bytes: give at least 64KiB",
	     (unsigned long long)limits[METER_BYTES].burst, SUPER_FRAME_BYTES);
}

static void warn_of_prefixes(const struct settings *settings, const struct visitor *visitor)
{
	size_t i;

	for (i = 0; i < settings->prefix_count; i++) {
		char scope[PREFIX_TEXT_MAX + 16] = "prefixes.";

		format_prefix(&settings->prefixes[i].address, settings->prefixes[i].bits,
			      scope + strlen(scope));
		if (settings->prefixes[i].action == PREFIX_LIMIT)
			warn_of_burst(settings->prefixes[i].limit, scope, visitor);
	}
}

static void warn_of_one_taking_all(const struct settings *settings, const struct visitor *visitor)
{
	int meter;

	for (meter = 0; meter < METERS; meter++) {
		char key[64];

		if (!settings->ip[meter].burst || !settings->node[meter].burst ||
		    settings->ip[meter].rate < settings->node[meter].rate)
			continue;
		snprintf(key, sizeof(key), "rate_limits.per_ip.%s.rate",
			 meter_name((enum meter)meter));
		warn(visitor, key,
		     "one address may use up all that the node admits: give a lower rate than the "
		     "node's");
	}
}

static void warn_of_table(const struct settings *settings, const struct visitor *visitor)
{
	double addresses = filling_addresses(settings);

	if (addresses == 0 || addresses >= FLOOD_PER_S)
		return;
	warn(visitor, "rate_limits.per_ip",
	     "a flood of %.0f invented addresses per second keeps all %d words of the table in "
	     "debt; "
	     "then when_full (%s) decides about new addresses: higher rates make debts shorter",
	     addresses, WORDS, when_full_name(settings->when_full));
}

static void visit_warnings(const struct settings *settings, const struct visitor *visitor)
{
	if (settings->dry_run)
		warn(visitor, "dry_run", "nothing is refused, only counted");
	warn_of_burst(settings->ip, "per_ip", visitor);
	warn_of_burst(settings->node, "node", visitor);
	warn_of_prefixes(settings, visitor);
	warn_of_one_taking_all(settings, visitor);
	warn_of_table(settings, visitor);
}

/* ---- as JSON */

struct json_report {
	json_t *limits;
	json_t *warnings;
	bool failed; /* out of memory */
};

static void add(json_t *array, json_t *item, struct json_report *report)
{
	/* Takes the item, and a NULL one as failure. */
	if (json_array_append_new(array, item) != 0)
		report->failed = true;
}

static void add_row(const struct row *row, void *data)
{
	struct json_report *report = data;
	char prefix[PREFIX_TEXT_MAX];

	if (row->prefix)
		format_prefix(&row->prefix->address, row->prefix->bits, prefix);
	add(report->limits,
	    json_pack("{s:s, s:s?, s:s, s:f, s:f, s:I, s:f, s:f, s:f}", "scope", row->scope,
		      "prefix", row->prefix ? prefix : NULL, "meter", meter_name(row->meter),
		      "rate", row->wanted.rate, "enforced_rate", row->enforced, "burst",
		      (json_int_t)row->wanted.burst, "most_in_1s", most_in(row, 1), "most_in_60s",
		      most_in(row, 60), "longest_debt_s", row->debt_s),
	    report);
}

static void add_warning(const char *key, const char *message, void *data)
{
	struct json_report *report = data;

	add(report->warnings, json_pack("{s:s, s:s}", "key", key, "message", message), report);
}

json_t *settings_report_json(const struct settings *settings)
{
	struct json_report report = { json_array(), json_array(), false };
	struct visitor visitor = { add_row, add_warning, &report };
	double addresses = filling_addresses(settings);
	json_t *filled = addresses > 0 ? json_real(addresses) : json_null();

	visit_all_limits(settings, &visitor);
	visit_warnings(settings, &visitor);
	if (report.failed) {
		json_decref(report.limits);
		report.limits = NULL;
	}
	/* Takes all three even if it fails, and fails if one is NULL. */
	return json_pack("{s:o, s:{s:i, s:o}, s:o}", "limits", report.limits, "table", "words",
			 WORDS, "filled_by_addresses_per_s", filled, "warnings", report.warnings);
}

/* ---- for people */

struct text_report {
	FILE *out;
	int width; /* of the first column */
	bool has_rows;
	bool has_warnings;
};

static void name_row(const struct row *row, char *out, size_t size)
{
	char prefix[PREFIX_TEXT_MAX];

	if (row->prefix)
		format_prefix(&row->prefix->address, row->prefix->bits, prefix);
	snprintf(out, size, "%s %s", row->prefix ? prefix : row->scope, meter_name(row->meter));
}

static void measure_row(const struct row *row, void *data)
{
	struct text_report *report = data;
	char name[PREFIX_TEXT_MAX + 16];

	name_row(row, name, sizeof(name));
	if ((int)strlen(name) > report->width)
		report->width = (int)strlen(name);
}

static void format_amount(const struct row *row, double amount, char out[SIZE_TEXT_MAX])
{
	if (row->meter == METER_BYTES)
		format_size(amount, out);
	else
		snprintf(out, SIZE_TEXT_MAX, "%.0f", amount);
}

static void format_row_rate(const struct row *row, double rate, char out[RATE_TEXT_MAX])
{
	if (row->meter == METER_BYTES) {
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

static void print_row(const struct row *row, void *data)
{
	static const char *const titles[] = { "limit",       "rate",     "enforced",    "burst",
					      "most in 1 s", "in 1 min", "longest debt" };
	struct text_report *report = data;
	char name[PREFIX_TEXT_MAX + 16], wanted[RATE_TEXT_MAX], enforced[RATE_TEXT_MAX];
	char burst[SIZE_TEXT_MAX], second[SIZE_TEXT_MAX], minute[SIZE_TEXT_MAX];
	char debt[DURATION_TEXT_MAX];

	if (!report->has_rows)
		print_columns(report, titles);
	report->has_rows = true;
	name_row(row, name, sizeof(name));
	format_row_rate(row, row->wanted.rate, wanted);
	format_row_rate(row, row->enforced, enforced);
	format_amount(row, (double)row->wanted.burst, burst);
	format_amount(row, most_in(row, 1), second);
	format_amount(row, most_in(row, 60), minute);
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
	struct visitor measure = { measure_row, print_warning, &report };
	struct visitor print = { print_row, print_warning, &report };
	double addresses = filling_addresses(settings);

	visit_all_limits(settings, &measure);
	visit_all_limits(settings, &print);
	if (!report.has_rows)
		fprintf(out, "no limits are set\n");
	if (addresses > 0)
		fprintf(out,
			"\nThe table has %d words; %.0f invented addresses per second, one packet "
			"each, keep all in debt.\n",
			WORDS, addresses);
	visit_warnings(settings, &print);
}
