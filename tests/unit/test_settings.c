/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The configuration file: what is read from a good one, and how much of it. Runs in the root of the
 * repository, for dist/sluice.yaml. Bad ones are in test_settings_errors.c.
 */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/parse.h"
#include "limit/settings.h"

static struct settings *must_parse(const char *text)
{
	struct settings *settings = NULL;
	struct settings_error error;

	if (settings_parse(text, strlen(text), &settings, &error))
		fail_msg("%u:%u: %s: %s", error.line, error.column, error.key, error.message);
	return settings;
}

static void the_smallest_configuration_has_the_defaults(void **state)
{
	struct settings *settings = must_parse("{}"), *fresh = settings_new();

	(void)state;
	assert_memory_equal(settings, fresh, sizeof(*settings));
	assert_int_equal(settings->ipv6_prefix, 64);
	assert_int_equal(settings->when_full, WHEN_FULL_SHARE);
	assert_false(settings->dry_run);
	settings_free(settings);
	settings_free(fresh);
	settings_free(NULL);
}

static void limits_are_read_for_every_scope(void **state)
{
	struct settings *settings =
		must_parse("protect: [tcp/443]\n"
			   "rate_limits:\n"
			   "  per_ip:\n"
			   "    connections: {rate: '20', burst: \"40\"}\n"
			   "    bytes: {rate: 1.5MB, burst: 64KiB}\n"
			   "  node: {packets: {rate: 1e6, burst: 2000000}}\n"
			   "  prefixes:\n"
			   "    198.51.100.0/24: {packets: {rate: 0.5, burst: 1}}\n"
			   "    2001:db8::/32: {bytes: {rate: 1000, burst: 1500}}\n");

	(void)state;
	assert_true(settings->ip[METER_CONNECTIONS].rate == 20);
	assert_int_equal(settings->ip[METER_CONNECTIONS].burst, 40);
	assert_int_equal(settings->ip[METER_PACKETS].burst, 0);
	assert_true(settings->ip[METER_BYTES].rate == 1.5e6);
	assert_int_equal(settings->ip[METER_BYTES].burst, 65536);
	assert_true(settings->node[METER_PACKETS].rate == 1e6);
	assert_int_equal(settings->node[METER_PACKETS].burst, 2000000);
	assert_int_equal(settings->prefix_count, 2);
	assert_int_equal(settings->prefixes[0].action, PREFIX_LIMIT);
	assert_int_equal(settings->prefixes[0].bits, 120);
	assert_true(settings->prefixes[0].limit[METER_PACKETS].rate == 0.5);
	assert_int_equal(settings->prefixes[0].limit[METER_BYTES].burst, 0);
	assert_int_equal(settings->prefixes[1].bits, 32);
	assert_int_equal(settings->prefixes[1].limit[METER_BYTES].burst, 1500);
	settings_free(settings);
}

static void everything_else_is_read_too(void **state)
{
	struct settings *settings = must_parse("\xef\xbb\xbf"
					       "interfaces:\n"
					       "- {name: eth0}\n"
					       "- name: veth-0123456789\n"
					       "  mode: native\n"
					       "- {name: lo, mode: generic}\n"
					       "protect: [tcp/443, tcp/63-64, udp/65535, icmp]\r\n"
					       "exempt: [10.0.0.0/8]\n"
					       "deny: ['2001:db8::1', 192.0.2.0/24]\n"
					       "dry_run: true\n"
					       "when_full: admit\n"
					       "bpffs: /run/bpf/a\n"
					       "ipv6_prefix: 56\n");

	(void)state;
	assert_int_equal(settings->interface_count, 3);
	assert_string_equal(settings->interfaces[0].name, "eth0");
	assert_int_equal(settings->interfaces[0].mode, MODE_AUTO);
	assert_string_equal(settings->interfaces[1].name, "veth-0123456789");
	assert_int_equal(settings->interfaces[1].mode, MODE_NATIVE);
	assert_int_equal(settings->interfaces[2].mode, MODE_GENERIC);
	assert_false(settings->protect.all);
	assert_true(settings->protect.icmp);
	assert_true(settings->protect.tcp[443 / 64] == 1ULL << (443 % 64));
	assert_true(settings->protect.tcp[0] == 1ULL << 63);
	assert_true(settings->protect.tcp[1] == 1);
	assert_true(settings->protect.udp[1023] == 1ULL << 63);
	assert_int_equal(settings->prefix_count, 3);
	assert_int_equal(settings->prefixes[0].action, PREFIX_EXEMPT);
	assert_int_equal(settings->prefixes[1].action, PREFIX_DENY);
	assert_int_equal(settings->prefixes[1].bits, 128);
	assert_true(settings->dry_run);
	assert_int_equal(settings->when_full, WHEN_FULL_ADMIT);
	assert_string_equal(settings->bpffs, "/run/bpf/a");
	assert_int_equal(settings->ipv6_prefix, 56);
	settings_free(settings);
}

static const struct ports_row {
	const char *name;
	unsigned first, last;
} ports_rows[] = {
	{ "protect: [tcp/1-65535]", 1, 65535 },   { "protect: [tcp/1]", 1, 1 },
	{ "protect: [tcp/63]", 63, 63 },          { "protect: [tcp/64-127]", 64, 127 },
	{ "protect: [tcp/63-64]", 63, 64 },       { "protect: [tcp/60-200]", 60, 200 },
	{ "protect: [tcp/65535]", 65535, 65535 }, { "protect: [tcp/9-70, tcp/50-71]", 9, 71 },
};

static void ranges_of_ports_protect_all_of_them_and_no_other(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(ports_rows); i++) {
		const struct ports_row *row = &ports_rows[i];
		struct settings *settings = must_parse(row->name);

		for (unsigned port = 0; port <= 65535; port++) {
			bool wanted = port >= row->first && port <= row->last;

			check_row_equal(row, settings->protect.tcp[port / 64] >> (port % 64) & 1,
					wanted);
			check_row_equal(row, settings->protect.udp[port / 64], 0);
		}
		settings_free(settings);
	}
}

static void interfaces_are_bounded(void **state)
{
	char text[4096] = "interfaces:\n";
	struct settings *settings = NULL;
	struct settings_error error;

	(void)state;
	for (int i = 0; i < INTERFACES_MAX; i++)
		sprintf(text + strlen(text), "- {name: veth%d}\n", i);
	settings = must_parse(text);
	assert_int_equal(settings->interface_count, INTERFACES_MAX);
	settings_free(settings);
	settings = NULL;
	strcat(text, "- {name: one-more}\n");
	assert_int_equal(settings_parse(text, strlen(text), &settings, &error), -EINVAL);
	assert_string_equal(error.message, "there can be at most 64 interfaces");
	assert_int_equal(error.line, 66);
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* As a list, for count prefixes of which the last is the same as the one at twin. */
static char *write_prefixes(size_t count, size_t twin, size_t *out_length)
{
	char *text = malloc(count * 20 + 16);
	size_t length;

	assert_non_null(text);
	length = (size_t)sprintf(text, "deny:\n");
	for (size_t i = 0; i < count; i++) {
		size_t number = (i == count - 1 ? twin : i) * 2654435761U % (1U << 24);

		length += (size_t)sprintf(text + length, "- 10.%zu.%zu.%zu\n", number >> 16,
					  number >> 8 & 255, number & 255);
	}
	*out_length = length;
	return text;
}

static void a_hundred_thousand_prefixes_are_read_fast(void **state)
{
	struct settings *settings = NULL;
	struct settings_error error;
	double started = seconds_now();
	size_t length;
	char *text = write_prefixes(100000, 99999, &length);

	(void)state;
	assert_int_equal(settings_parse(text, length, &settings, &error), 0);
	assert_int_equal(settings->prefix_count, 100000);
	settings_free(settings);
	free(text);
	text = write_prefixes(100000, 5, &length);
	settings = NULL;
	assert_int_equal(settings_parse(text, length, &settings, &error), -EINVAL);
	assert_non_null(
		strstr(error.message, "is given twice; the first is on line 7, under deny"));
	assert_int_equal(error.line, 100001);
	free(text);
	/* Ten times what it takes with sanitizers; comparing each with each would take minutes. */
	assert_true(seconds_now() - started < 10);
}

static void the_example_is_accepted(void **state)
{
	struct settings *settings = NULL;
	struct settings_error error;

	(void)state;
	if (settings_load("dist/sluice.yaml", &settings, &error))
		fail_msg("%u:%u: %s: %s", error.line, error.column, error.key, error.message);
	assert_int_equal(settings->interface_count, 1);
	assert_true(settings->protect.tcp[443 / 64] != 0);
	assert_int_equal(settings->prefix_count, 4);
	settings_free(settings);
}

static void words_come_back_as_they_were_read(void **state)
{
	enum attach_mode mode = MODE_GENERIC;
	enum when_full when_full = WHEN_FULL_ADMIT;

	(void)state;
	for (int i = MODE_AUTO; i <= MODE_CLSACT; i++) {
		assert_int_equal(attach_mode_parse(attach_mode_name((enum attach_mode)i), &mode),
				 0);
		assert_int_equal(mode, i);
	}
	for (int i = WHEN_FULL_SHARE; i <= WHEN_FULL_ADMIT; i++) {
		assert_int_equal(when_full_parse(when_full_name((enum when_full)i), &when_full), 0);
		assert_int_equal(when_full, i);
	}
	assert_int_equal(attach_mode_parse("offload", &mode), -EINVAL);
	assert_int_equal(mode, MODE_CLSACT);
	assert_int_equal(when_full_parse("", &when_full), -EINVAL);
	assert_string_equal(meter_name(METER_BYTES), "bytes");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_smallest_configuration_has_the_defaults),
		cmocka_unit_test(limits_are_read_for_every_scope),
		cmocka_unit_test(everything_else_is_read_too),
		cmocka_unit_test(ranges_of_ports_protect_all_of_them_and_no_other),
		cmocka_unit_test(interfaces_are_bounded),
		cmocka_unit_test(a_hundred_thousand_prefixes_are_read_fast),
		cmocka_unit_test(the_example_is_accepted),
		cmocka_unit_test(words_come_back_as_they_were_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
