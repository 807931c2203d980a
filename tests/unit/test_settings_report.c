/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a configuration is said to amount to, as JSON and as text, and what is warned of. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "limit/settings_report.h"

#define LIMITS "protect: [all]\nrate_limits:\n  per_ip:\n    "

static struct settings *must_parse(const char *text)
{
	struct settings *settings = NULL;
	struct settings_error error;

	if (settings_parse(text, strlen(text), &settings, &error))
		fail_msg("%u:%u: %s: %s", error.line, error.column, error.key, error.message);
	return settings;
}

static void the_report_tells_what_is_enforced(void **state)
{
	struct settings *settings = must_parse(LIMITS "connections: {rate: 3, burst: 6}");
	json_t *report = settings_report_json(settings), *row;

	(void)state;
	assert_non_null(report);
	assert_int_equal(json_array_size(json_object_get(report, "limits")), 1);
	row = json_array_get(json_object_get(report, "limits"), 0);
	assert_string_equal(json_string_value(json_object_get(row, "scope")), "per_ip");
	assert_true(json_is_null(json_object_get(row, "prefix")));
	assert_true(json_real_value(json_object_get(row, "rate")) == 3);
	assert_true(json_real_value(json_object_get(row, "enforced_rate")) <= 3);
	assert_true(json_real_value(json_object_get(row, "enforced_rate")) > 2.999);
	assert_int_equal(json_integer_value(json_object_get(row, "burst")), 6);
	assert_true(json_real_value(json_object_get(row, "most_in_1s")) > 8.99);
	assert_true(json_real_value(json_object_get(row, "most_in_60s")) <= 186);
	assert_true(json_real_value(json_object_get(row, "longest_debt_s")) >= 2);
	assert_true(json_real_value(json_object_get(row, "longest_debt_s")) < 2.001);
	row = json_object_get(report, "table");
	assert_int_equal(json_integer_value(json_object_get(row, "words")), 1 << 20);
	assert_true(json_real_value(json_object_get(row, "filled_by_addresses_per_s")) == 3 << 20);
	assert_int_equal(json_array_size(json_object_get(report, "warnings")), 0);
	json_decref(report);
	settings_free(settings);
}

static const struct warning_row {
	const char *name;
	const char *text;
	const char *key; /* of the only warning */
	const char *message;
} warning_rows[] = {
	{ "dry run", "dry_run: true", "dry_run", "nothing is refused" },
	{ "small burst", LIMITS "bytes: {rate: 1MB, burst: 65534}",
	  "rate_limits.per_ip.bytes.burst", "larger than 65534 bytes can never pass" },
	{ "small burst of a prefix",
	  "protect: [all]\nrate_limits: {prefixes: {10.0.0.0/8: {bytes: {rate: 1MB, burst: "
	  "1500}}}}",
	  "rate_limits.prefixes.10.0.0.0/8.bytes.burst", "larger than 1500 bytes" },
	{ "slow rate", LIMITS "connections: {rate: 0.1, burst: 5}", "rate_limits.per_ip",
	  "a flood of 104858 invented addresses per second" },
	{ "one takes all",
	  "protect: [all]\nrate_limits:\n  per_ip: {packets: {rate: 9, burst: 9}}\n"
	  "  node: {packets: {rate: 9, burst: 9}}",
	  "rate_limits.per_ip.packets.rate", "one address may use up all" },
	{ "one takes all hooks",
	  "rate_limits: {per_ip: {rate: 9, burst: 9}, node: {rate: 9, burst: 90}}",
	  "rate_limits.per_ip.hooks.rate", "one address may use up all" },
	{ "bodies of any size",
	  "rate_limits: {tenants: {a: {rate: 1, burst: 1}, b: {rate: 1, burst: 1, "
	  "bytes_per_second: 5}, c: {rate: 1, burst: 1, bytes_per_second: 5}}}",
	  "rate_limits.tenants.b", "one body of any size, which empties it (2 such limits)" },
	{ "bodies of any size by default",
	  "rate_limits: {default: {rate: 1, burst: 1, bytes_per_second: 5}}", "rate_limits.default",
	  "one body of any size, which empties it (1 such limit)" },
};

static void the_report_warns_of_what_nobody_means(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(warning_rows); i++) {
		const struct warning_row *row = &warning_rows[i];
		struct settings *settings = must_parse(row->text);
		json_t *report = settings_report_json(settings), *warning, *warnings;

		check_row(row, report);
		warnings = json_object_get(report, "warnings");
		check_row_equal(row, json_array_size(warnings), 1);
		warning = json_array_get(warnings, 0);
		check_row_text(row, json_string_value(json_object_get(warning, "key")), row->key);
		check_row(row, strstr(json_string_value(json_object_get(warning, "message")),
				      row->message));
		json_decref(report);
		settings_free(settings);
	}
}

static void the_printed_report_is_aligned(void **state)
{
	struct settings *settings = must_parse(
		"protect: [all]\nrate_limits:\n"
		"  per_ip: {connections: {rate: 20, burst: 40}, bytes: {rate: 10MB, burst: 20MB}}\n"
		"  prefixes: {2001:db8::/32: {packets: {rate: 0.5, burst: 1}}}\n");
	char text[4096] = "", *line, *rest = text;
	FILE *out = fmemopen(text, sizeof(text), "w");
	size_t width = 0;

	(void)state;
	assert_non_null(out);
	settings_report_print(settings, out);
	fclose(out);
	assert_non_null(strstr(text, "per_ip bytes "));
	assert_non_null(strstr(text, " 620 MB "));
	assert_non_null(strstr(text, " 0.5/s "));
	for (int i = 0; i < 4; i++) {
		line = strsep(&rest, "\n");
		if (i == 0)
			width = strlen(line);
		assert_int_equal(strlen(line), width);
	}
	settings_free(settings);
}

static const json_t *find_limit(const json_t *report, const char *scope, const char *meter)
{
	const json_t *limits = json_object_get(report, "limits");

	for (size_t i = 0; i < json_array_size(limits); i++) {
		const json_t *row = json_array_get(limits, i);

		if (strcmp(json_string_value(json_object_get(row, "scope")), scope) == 0 &&
		    strcmp(json_string_value(json_object_get(row, "meter")), meter) == 0)
			return row;
	}
	fail_msg("no %s of %s", meter, scope);
	return NULL;
}

static double number_of(const json_t *row, const char *key)
{
	return json_number_value(json_object_get(row, key));
}

#define TENANTS                                                                           \
	"rate_limits:\n"                                                                  \
	"  per_ip: {rate: 50, burst: 100}\n"                                              \
	"  sources: {default: {bytes_per_second: 1MB}}\n"                                 \
	"  default: {rate: 100, burst: 200}\n"                                            \
	"  tenants:\n"                                                                    \
	"    acme: {rate: 0.5, burst: 2, bytes_per_second: 1000, max_body_bytes: 3000}\n" \
	"    vip: {unlimited: true}\n"

static void tenants_and_hooks_are_reported_at_their_worst(void **state)
{
	struct settings *settings = must_parse(TENANTS);
	json_t *report = settings_report_json(settings);
	const json_t *row;

	(void)state;
	assert_non_null(report);
	assert_int_equal(json_array_size(json_object_get(report, "limits")), 5);
	row = find_limit(report, "per_ip", "hooks");
	assert_true(number_of(row, "most_in_1s") > 149.9 && number_of(row, "most_in_1s") <= 150);
	assert_true(json_is_null(json_object_get(row, "tenant")));
	row = find_limit(report, "source", "bytes");
	assert_true(number_of(row, "burst") == 1000000);
	row = find_limit(report, "default", "hooks");
	assert_true(number_of(row, "burst") == 200);
	row = find_limit(report, "tenant", "hooks");
	assert_string_equal(json_string_value(json_object_get(row, "tenant")), "acme");
	assert_true(number_of(row, "most_in_60s") > 31.9 && number_of(row, "most_in_60s") <= 32);
	/* A body of three bursts costs one. */
	row = find_limit(report, "tenant", "bytes");
	assert_true(number_of(row, "most_in_1s") > 5999 && number_of(row, "most_in_1s") < 6001);
	row = json_object_get(report, "unlimited");
	assert_int_equal(json_array_size(row), 1);
	assert_string_equal(json_string_value(json_array_get(row, 0)), "vip");
	assert_int_equal(json_array_size(json_object_get(report, "warnings")), 0);
	json_decref(report);
	settings_free(settings);
}

static void tenants_are_printed_by_name(void **state)
{
	struct settings *settings = must_parse(TENANTS);
	char text[4096] = "";
	FILE *out = fmemopen(text, sizeof(text), "w");

	(void)state;
	assert_non_null(out);
	settings_report_print(settings, out);
	fclose(out);
	assert_non_null(strstr(text, "\ntenant acme hooks  "));
	assert_non_null(strstr(text, "\ntenant acme bytes  "));
	assert_non_null(strstr(text, "\ntenant vip hooks  "));
	assert_non_null(strstr(text, "    unlimited  "));
	assert_non_null(strstr(text, "\ndefault hooks  "));
	assert_non_null(strstr(text, "\nper_ip hooks  "));
	settings_free(settings);
}

static void slots_that_are_a_tight_fit_are_warned_of(void **state)
{
	static char text[64 * 1024];
	json_t *report, *warning;
	struct settings *settings;
	size_t length = (size_t)sprintf(text, "tenant_slots: 1024\nrate_limits:\n  tenants:\n");

	(void)state;
	for (int i = 0; i < 769; i++)
		length += (size_t)sprintf(text + length, "    t%d: {rate: 1, burst: 1}\n", i);
	settings = must_parse(text);
	report = settings_report_json(settings);
	warning = json_array_get(json_object_get(report, "warnings"), 0);
	assert_string_equal(json_string_value(json_object_get(warning, "key")), "tenant_slots");
	json_decref(report);
	settings_free(settings);
}

static void bursts_that_joined_packets_never_fit_are_warned_of(void **state)
{
	static const struct {
		const char *name;
		const char *mode;
		unsigned burst;
		size_t warnings;
	} rows[] = {
		{ "native", "native", 44, 0 },
		{ "tc", "tc", 44, 2 },
		{ "clsact", "clsact", 44, 2 },
		{ "tc, enough", "tc", 45, 0 },
	};

	(void)state;
	for (size_t at = 0; at < sizeof(rows) / sizeof(rows[0]); at++) {
		char text[256];
		struct settings *settings;
		json_t *report;

		(void)snprintf(text, sizeof(text),
			       "interfaces: [{name: eth0, mode: %s}]\nprotect: [all]\n"
			       "rate_limits:\n"
			       "  node: {packets: {rate: 90000, burst: %u}}\n"
			       "  prefixes: {192.0.2.0/24: {packets: {rate: 9000, burst: %u}}}\n",
			       rows[at].mode, rows[at].burst, rows[at].burst);
		settings = must_parse(text);
		report = settings_report_json(settings);
		check_row_equal(&rows[at], json_array_size(json_object_get(report, "warnings")),
				rows[at].warnings);
		json_decref(report);
		settings_free(settings);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_report_tells_what_is_enforced),
		cmocka_unit_test(the_report_warns_of_what_nobody_means),
		cmocka_unit_test(the_printed_report_is_aligned),
		cmocka_unit_test(tenants_and_hooks_are_reported_at_their_worst),
		cmocka_unit_test(tenants_are_printed_by_name),
		cmocka_unit_test(slots_that_are_a_tight_fit_are_warned_of),
		cmocka_unit_test(bursts_that_joined_packets_never_fit_are_warned_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
