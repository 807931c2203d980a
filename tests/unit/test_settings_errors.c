/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bad configuration files: of each the line, the column, the key and what the message says. Runs in
 * the root of the repository, for dist/sluice.yaml.
 */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "limit/settings.h"

#define LIMITS "protect: [all]\nrate_limits:\n  per_ip:\n    "
#define NODE "protect: [all]\nrate_limits:\n  node:\n    "

static const struct bad_row {
	const char *name;
	const char *text;
	unsigned line, column;
	const char *key;
	const char *message; /* a part of it */
} bad_rows[] = {
	{ "empty", "", 0, 0, "", "is empty; write {}" },
	{ "only a comment", "# nothing\n", 0, 0, "", "is empty" },
	{ "nothing", "---\n", 2, 1, "", "must be a map of interfaces, protect" },
	{ "a list", "[1]", 1, 1, "", "got a list" },
	{ "a word", "hello", 1, 1, "", "got \"hello\"" },
	{ "two documents", "dry_run: true\n---\n{}\n", 2, 1, "", "a second document" },
	{ "after the end", "{}\n...\nx", 3, 1, "", "is not valid YAML" },

	{ "truncated map", "interfaces: [{name: eth0", 1, 25, "",
	  "did not find expected ',' or '}' (while parsing a flow mapping that begins on line 1)" },
	{ "truncated quote", "bpffs: \"/sys", 1, 13, "", "found unexpected end of stream" },
	{ "open bracket", "protect: [tcp/443\ndry_run: true\n", 1, 11, "protect[0]",
	  "on one line; look for an open bracket or quote" },
	{ "tab", "protect:\n\t- all\n", 2, 1, "", "found character that cannot start any token" },
	{ "bad indent", "dry_run: true\n  when_full: share\n", 1, 10, "dry_run",
	  "must be true or false, on one line; look for" },
	{ "bad indent of a key", "deny: []\n when_full: share\n", 2, 2, "",
	  "did not find expected key (while parsing a block mapping" },

	{ "ELF", "\177ELF\2\1\1", 1, 1, "", "holds a control character" },
	{ "escape", "dry_run: \033[31m", 1, 10, "", "holds a control character" },
	{ "Latin-1", "# caf\xe9\ndry_run: true\n", 1, 6, "", "is not UTF-8" },
	{ "overlong", "a\n# \xc0\xaf", 2, 3, "", "is not UTF-8" },
	{ "surrogate", "# \xed\xa0\x80", 1, 3, "", "is not UTF-8" },
	{ "half a character", "# \xc3", 1, 3, "", "is not UTF-8" },
	{ "column in characters", "# \xc3\xa9\xc3\xa9 \xff", 1, 6, "", "is not UTF-8" },
	{ "escaped zero", "bpffs: \"/a\\0b\"", 1, 8, "bpffs", "holds a zero byte" },
	{ "escaped escape", "when_full: \"\\e[31m\"", 1, 12, "when_full", "got \"?[31m\"" },

	{ "duplicate key", "dry_run: true\nwhen_full: share\ndry_run: true\n", 3, 1, "dry_run",
	  "is given twice; the first is on line 1" },
	{ "duplicate meter",
	  LIMITS "packets: {rate: 1, burst: 1}\n    packets: {rate: 1, burst: 1}", 5, 5,
	  "rate_limits.per_ip.packets", "is given twice; the first is on line 4" },
	{ "unknown key", "dry_run: true\nspill: true\n", 2, 1, "spill",
	  "unknown key; allowed here: interfaces, protect, exempt, deny, dry_run, when_full, "
	  "shed, bpffs, ipv6_prefix, rate_limits, routes, listen, state, dataplane, workers, "
	  "admin, "
	  "tenant_slots, ratelimit_headers" },
	{ "one letter missing", "protct: [all]", 1, 1, "protct", "did you mean \"protect\"?" },
	{ "one letter more", "exemptt: []", 1, 1, "exemptt", "did you mean \"exempt\"?" },
	{ "one letter wrong", "denz: []", 1, 1, "denz", "did you mean \"deny\"?" },
	{ "two letters swapped", "dney: []", 1, 1, "dney", "did you mean \"deny\"?" },
	{ "unknown meter", LIMITS "frames: {rate: 1, burst: 1}", 4, 5, "rate_limits.per_ip.frames",
	  "unknown key; allowed here: connections, packets, bytes, hooks, rate, burst" },
	{ "unknown part", LIMITS "bytes: {rate: 1, bursts: 1}", 4, 22,
	  "rate_limits.per_ip.bytes.bursts", "did you mean \"burst\"?" },
	{ "unknown scope", "rate_limits: {hosts: {}}", 1, 15, "rate_limits.hosts",
	  "allowed here: per_ip, node, prefixes, sources, default, tenants, scope" },
	{ "key of no letters", "? [a]\n: 1\n", 1, 3, "", "a key must be a word, got a list" },

	{ "shed is no number", "shed: 1\n", 1, 7, "shed", "must be true or false, got \"1\"" },
	{ "a meter's dry run", LIMITS "packets: {rate: 1, burst: 1, dry_run: yes}", 4, 43,
	  "rate_limits.per_ip.packets.dry_run", "must be true or false, got \"yes\"" },

	{ "list for a word", "when_full: [share]", 1, 12, "when_full",
	  "must be share, refuse or admit, got a list" },
	{ "word for a list", "deny: 10.0.0.0/8", 1, 7, "deny",
	  "must be a list such as [192.0.2.0/24], got \"10.0.0.0/8\"" },
	{ "nothing for a list", "exempt:\ndeny: []\n", 1, 8, "exempt", "got nothing" },
	{ "null for a list", "exempt: null\n", 1, 9, "exempt", "got nothing" },
	{ "map in a list", "exempt: [{a: 1}]", 1, 10, "exempt[0]", "got a map" },
	{ "list for a map", "rate_limits: []", 1, 14, "rate_limits",
	  "must be a map of per_ip, node, prefixes, sources, default, tenants, scope, got a list" },
	{ "number for a limit", LIMITS "packets: 5", 4, 14, "rate_limits.per_ip.packets",
	  "must be a map of rate, burst, dry_run, got \"5\"" },
	{ "yes for true", "dry_run: yes", 1, 10, "dry_run", "must be true or false, got \"yes\"" },
	{ "name for an interface", "interfaces: [eth0]", 1, 14, "interfaces[0]",
	  "must be a map of name, mode, require, got \"eth0\"" },

	{ "rate as a word", LIMITS "packets: {rate: fast, burst: 1}", 4, 21,
	  "rate_limits.per_ip.packets.rate", "must be a number above 0, got \"fast\"" },
	{ "rate 0", LIMITS "packets: {rate: 0, burst: 1}", 4, 21, "rate_limits.per_ip.packets.rate",
	  "must be a number above 0, got \"0\"" },
	{ "rate negative", LIMITS "packets: {rate: -1, burst: 1}", 4, 21,
	  "rate_limits.per_ip.packets.rate", "must be a number above 0, got \"-1\"" },
	{ "rate nan", LIMITS "packets: {rate: nan, burst: 1}", 4, 21,
	  "rate_limits.per_ip.packets.rate", "must be a number above 0, got \"nan\"" },
	{ "rate .nan", LIMITS "packets: {rate: .nan, burst: 1}", 4, 21,
	  "rate_limits.per_ip.packets.rate", "must be a number above 0, got \".nan\"" },
	{ "rate .inf", LIMITS "packets: {rate: .inf, burst: 1}", 4, 21,
	  "rate_limits.per_ip.packets.rate", "must be a number above 0, got \".inf\"" },
	{ "rate overflowing", LIMITS "packets: {rate: 1e999, burst: 1}", 4, 21,
	  "rate_limits.per_ip.packets.rate", "at most 100000000 per second, got \"1e999\"" },
	{ "rate too high", LIMITS "packets: {rate: 100000001, burst: 1}", 4, 21,
	  "rate_limits.per_ip.packets.rate", "at most 100000000 per second" },
	{ "rate hexadecimal", LIMITS "packets: {rate: 0x10, burst: 1}", 4, 21,
	  "rate_limits.per_ip.packets.rate", "must be a number above 0, got \"0x10\"" },
	{ "rate underscored", LIMITS "packets: {rate: 1_000, burst: 1}", 4, 21,
	  "rate_limits.per_ip.packets.rate", "must be a number above 0, got \"1_000\"" },
	{ "rate with a size", LIMITS "packets: {rate: 1MB, burst: 1}", 4, 21,
	  "rate_limits.per_ip.packets.rate", "must be a number above 0, got \"1MB\"" },
	{ "rate of bytes as bits", LIMITS "bytes: {rate: 10Mbit, burst: 1MB}", 4, 19,
	  "rate_limits.per_ip.bytes.rate", "must be bytes per second above 0" },
	{ "rate of bytes too high", LIMITS "bytes: {rate: 1TB, burst: 1MB}", 4, 19,
	  "rate_limits.per_ip.bytes.rate", "at most 110000000000 per second, got \"1TB\"" },
	{ "rate too low", LIMITS "packets: {rate: 1e-9, burst: 1}", 4, 21,
	  "rate_limits.per_ip.packets.rate", "must be at least 4.7e-07 per second" },
	{ "rate of bytes too low", LIMITS "bytes: {rate: 0.0001, burst: 1500}", 4, 19,
	  "rate_limits.per_ip.bytes.rate", "must be at least 0.0007 per second" },
	{ "burst too long", LIMITS "packets: {rate: 1, burst: 3000000}", 4, 31,
	  "rate_limits.per_ip.packets.burst",
	  "at this rate the burst can be at most 2251797, got 3000000" },
	{ "burst too long for the node", NODE "packets: {rate: 1, burst: 5000000}", 4, 31,
	  "rate_limits.node.packets.burst", "at this rate the burst can be at most 4503598" },
	{ "burst 0", LIMITS "packets: {rate: 1, burst: 0}", 4, 31,
	  "rate_limits.per_ip.packets.burst", "must be a whole number of at least 1, got \"0\"" },
	{ "burst negative", LIMITS "packets: {rate: 1, burst: -5}", 4, 31,
	  "rate_limits.per_ip.packets.burst", "must be a whole number of at least 1, got \"-5\"" },
	{ "burst broken", LIMITS "packets: {rate: 1, burst: 1.5}", 4, 31,
	  "rate_limits.per_ip.packets.burst", "must be a whole number of at least 1, got \"1.5\"" },
	{ "burst overflowing", LIMITS "packets: {rate: 1, burst: 18446744073709551616}", 4, 31,
	  "rate_limits.per_ip.packets.burst", "must be at most 4398046511104" },
	{ "burst of bytes overflowing", LIMITS "bytes: {rate: 1, burst: 5TiB}", 4, 29,
	  "rate_limits.per_ip.bytes.burst", "must be at most 4398046511104" },
	{ "burst below a packet", LIMITS "bytes: {rate: 1MB, burst: 1499}", 4, 31,
	  "rate_limits.per_ip.bytes.burst", "must be at least 1500 bytes" },
	{ "burst missing", LIMITS "packets: {rate: 1}", 4, 5, "rate_limits.per_ip.packets",
	  "burst is missing" },
	{ "rate missing", LIMITS "packets:\n      burst: 1", 4, 5, "rate_limits.per_ip.packets",
	  "rate is missing" },
	{ "nothing protected",
	  "dry_run: true\nrate_limits:\n  per_ip: {packets: {rate: 1, burst: 1}}", 2, 1,
	  "rate_limits", "add for example `protect: [tcp/443]`" },
	{ "protect empty", "protect: []\nrate_limits: {node: {packets: {rate: 1, burst: 1}}}", 2, 1,
	  "rate_limits", "nothing is protected" },

	{ "prefix with host bits", "exempt: [10.1.2.3/8]", 1, 10, "exempt[0]",
	  "did you mean 10.0.0.0/8?" },
	{ "prefix too long", "exempt: [10.0.0.0/33]", 1, 10, "exempt[0]",
	  "must be an address or a prefix" },
	{ "shorthand", "deny: [10.0.0.0/8, 10.1]", 1, 20, "deny[1]",
	  "must be an address or a prefix" },
	{ "all of IPv6", "deny: ['::/0']", 1, 8, "deny[0]", "holds all of IPv4 as well" },
	{ "prefix twice in a list", "deny:\n- 10.0.0.0/8\n- 10.0.0.0/9\n- 10.0.0.0/8\n", 4, 3,
	  "deny", "10.0.0.0/8 is given twice; the first is on line 2, under deny" },
	{ "prefix in two lists", "exempt: [192.0.2.1]\ndeny: ['::ffff:192.0.2.1']", 2, 8, "deny",
	  "192.0.2.1/32 is given twice; the first is on line 1, under exempt" },
	{ "prefix in list and map",
	  "protect: [all]\nrate_limits:\n  prefixes:\n    10.0.0.0/8: {packets: {rate: 1, burst: "
	  "1}}\nexempt: [10.0.0.0/8]\n",
	  5, 10, "exempt", "the first is on line 4, under rate_limits.prefixes" },
	{ "prefix twice in the map",
	  "protect: [all]\nrate_limits:\n  prefixes:\n    10.0.0.1: {packets: {rate: 1, burst: "
	  "1}}\n"
	  "    10.0.0.1/32: {packets: {rate: 1, burst: 1}}\n",
	  5, 5, "rate_limits.prefixes", "the first is on line 4" },
	{ "prefix without limits", "protect: [all]\nrate_limits: {prefixes: {10.0.0.0/8: {}}}", 2,
	  26, "rate_limits.prefixes.10.0.0.0/8", "sets no limit" },
	{ "limit of a prefix", "rate_limits:\n  prefixes:\n    10.0.0.0/8: {packets: {rate: x}}", 3,
	  34, "rate_limits.prefixes.10.0.0.0/8.packets.rate", "must be a number above 0" },

	{ "require unknown", "interfaces: [{name: eth0, require: generic}]", 1, 36,
	  "interfaces[0].require", "must be native or tc, got \"generic\"" },
	{ "require what cannot be", "interfaces: [{name: eth0, mode: tc, require: native}]", 1, 14,
	  "interfaces[0].require", "mode: tc is never native" },
	{ "require of generic", "interfaces: [{name: eth0, mode: generic, require: tc}]", 1, 14,
	  "interfaces[0].require", "mode: generic is never tc" },
	{ "mode unknown", "interfaces: [{name: eth0, mode: fast}]", 1, 33, "interfaces[0].mode",
	  "must be auto, native, tc, clsact or generic, got \"fast\"" },
	{ "name missing", "interfaces: [{mode: auto}]", 1, 14, "interfaces[0]", "name is missing" },
	{ "name too long", "interfaces: [{name: abcdefghijklmnop}]", 1, 21, "interfaces[0].name",
	  "must be the name of a network interface" },
	{ "name with a slash", "interfaces: [{name: ../eth0}]", 1, 21, "interfaces[0].name",
	  "must be the name of a network interface" },
	{ "name twice", "interfaces:\n- {name: eth0}\n- {name: eth0}\n", 3, 3, "interfaces[1].name",
	  "eth0 is given twice; the first is on line 2" },
	{ "port 0", "protect: [tcp/0]", 1, 11, "protect[0]", "ports go from 1 to 65535" },
	{ "ports turned round", "protect: [all, tcp/443-80]", 1, 16, "protect[1]",
	  "the lower one first" },
	{ "port without protocol", "protect: [443]", 1, 11, "protect[0]", "must be tcp/PORT" },
	{ "when_full unknown", "when_full: maybe", 1, 12, "when_full", "got \"maybe\"" },
	{ "bpffs relative", "bpffs: run/bpf", 1, 8, "bpffs", "must be an absolute path" },
	{ "bpffs empty", "bpffs: ''", 1, 8, "bpffs", "must be an absolute path" },
	{ "ipv6_prefix too short", "ipv6_prefix: 47", 1, 14, "ipv6_prefix", "from 48 to 128" },
	{ "ipv6_prefix too long", "ipv6_prefix: 129", 1, 14, "ipv6_prefix", "from 48 to 128" },

	{ "alias bomb", "a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\nd: [*c,*c]\n", 1, 1, "a",
	  "unknown key" },
	{ "anchor", "protect: &a [all]\nexempt: *a\n", 1, 10, "protect",
	  "anchors are not supported" },
	{ "alias", "protect: *a\n", 1, 10, "protect", "aliases are not supported" },
	{ "merge key", "<<: {dry_run: true}", 1, 1, "<<", "unknown key" },
	{ "tag", "dry_run: !!bool true", 1, 10, "dry_run", "tags are not supported" },
};

static int parse(const char *text, struct settings **out, struct settings_error *error)
{
	return settings_parse(text, strlen(text), out, error);
}

static void bad_input_is_refused_where_it_stands(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(bad_rows); i++) {
		const struct bad_row *row = &bad_rows[i];
		struct settings *settings = NULL;
		struct settings_error error;

		check_row_equal(row, parse(row->text, &settings, &error), -EINVAL);
		check_row(row, settings == NULL);
		if (!strstr(error.message, row->message))
			fail_msg("row \"%s\": the message is\n  %s\nwithout\n  %s", row->name,
				 error.message, row->message);
		check_row_equal(row, error.line, row->line);
		check_row_equal(row, error.column, row->column);
		check_row_text(row, error.key, row->key);
	}
}

/* An array twice as long each time would be seen as a slow test. */
static void deep_nesting_is_refused_at_once(void **state)
{
	static const char *const openers[] = { "[", "{", "- ", "? ", "{a: ", "deny: [[" };
	enum { TIMES = 200000 };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(openers); i++) {
		size_t size = strlen(openers[i]);
		char *text = malloc(size * TIMES);
		struct settings *settings = NULL;
		struct settings_error error;

		assert_non_null(text);
		for (size_t at = 0; at < TIMES; at++)
			memcpy(text + at * size, openers[i], size);
		assert_int_equal(settings_parse(text, size * TIMES, &settings, &error), -EINVAL);
		assert_null(settings);
		assert_true(error.message[0] != '\0');
		free(text);
	}
}

static void every_truncation_of_the_example_ends_well(void **state)
{
	static char text[16384];
	FILE *file = fopen("dist/sluice.yaml", "r");
	size_t length;

	(void)state;
	assert_non_null(file);
	length = fread(text, 1, sizeof(text), file);
	fclose(file);
	assert_true(length > 0 && length < sizeof(text));
	for (size_t end = 0; end <= length; end++) {
		struct settings *settings = NULL;
		struct settings_error error;
		int err = settings_parse(text, end, &settings, &error);

		assert_true(err == 0 || err == -EINVAL);
		assert_int_equal(err == 0, settings != NULL);
		settings_free(settings);
	}
}

static void a_zero_byte_is_found_on_its_line(void **state)
{
	struct settings *settings = NULL;
	struct settings_error error;

	(void)state;
	assert_int_equal(settings_parse("dry_run: true\n# \0", 17, &settings, &error), -EINVAL);
	assert_string_equal(error.message, "holds a zero byte, so it is not a text file");
	assert_int_equal(error.line, 2);
	assert_int_equal(error.column, 3);
}

static void files_that_cannot_be_read_say_why(void **state)
{
	static const struct {
		const char *name, *message;
		int err;
	} rows[] = {
		{ "/nonexistent/sluice.yaml", "does not exist; create it", -ENOENT },
		{ "/", "is a directory", -EISDIR },
		{ "/dev/null", "is empty", -EINVAL },
		{ "/dev/zero", "is larger than 16 MiB", -EFBIG },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct settings *settings = NULL;
		struct settings_error error = { .line = 7, .key = "left over" };

		check_row_equal(&rows[i], settings_load(rows[i].name, &settings, &error),
				rows[i].err);
		check_row(&rows[i], settings == NULL);
		check_row(&rows[i], strstr(error.message, rows[i].message));
		check_row_equal(&rows[i], error.line, 0);
		check_row_text(&rows[i], error.key, "");
	}
}

static void a_huge_file_is_refused_unread(void **state)
{
	char path[] = "/tmp/sluice-settings-XXXXXX";
	struct settings *settings = NULL;
	struct settings_error error;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 100 << 20), 0);
	assert_int_equal(settings_load(path, &settings, &error), -EFBIG);
	assert_non_null(strstr(error.message, "is larger than 16 MiB"));
	unlink(path);
	close(fd);
}

static void a_file_without_permission_says_so(void **state)
{
	char path[] = "/tmp/sluice-settings-XXXXXX";
	struct settings *settings = NULL;
	struct settings_error error;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(chmod(path, 0), 0);
	/* To root, which may read all, it is only empty. */
	if (geteuid() != 0) {
		assert_int_equal(settings_load(path, &settings, &error), -EACCES);
		assert_non_null(strstr(error.message, "may not be read"));
	}
	unlink(path);
}

static void an_error_is_printed_in_one_line(void **state)
{
	struct settings *settings = NULL;
	struct settings_error error;
	char text[512] = "";
	FILE *out = fmemopen(text, sizeof(text), "w");

	(void)state;
	assert_non_null(out);
	assert_int_equal(parse(LIMITS "packets: {rate: fast}", &settings, &error), -EINVAL);
	settings_error_print(&error, "sluice.yaml", out);
	assert_int_equal(parse("", &settings, &error), -EINVAL);
	settings_error_print(&error, "sluice.yaml", out);
	fclose(out);
	assert_string_equal(text,
			    "sluice.yaml:4:21: rate_limits.per_ip.packets.rate: must be a number "
			    "above 0, got \"fast\"\n"
			    "sluice.yaml: is empty; write {} for a configuration that limits "
			    "nothing\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_input_is_refused_where_it_stands),
		cmocka_unit_test(deep_nesting_is_refused_at_once),
		cmocka_unit_test(every_truncation_of_the_example_ends_well),
		cmocka_unit_test(a_zero_byte_is_found_on_its_line),
		cmocka_unit_test(files_that_cannot_be_read_say_why),
		cmocka_unit_test(a_huge_file_is_refused_unread),
		cmocka_unit_test(a_file_without_permission_says_so),
		cmocka_unit_test(an_error_is_printed_in_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
