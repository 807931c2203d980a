/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of pins that hold interfaces, and which rung does for which mode. */
#include "tests/unit/test.h"

#include <string.h>

#include "dataplane/link_names.h"
#include "dataplane/words.h"

static const struct {
	const char *name;
	bool holds;
	struct link_name read;
} names[] = {
	{ "link_3", true, { LINK_XDP, 3, 0 } },
	{ "tcx_4294967295", true, { LINK_TCX, 4294967295, 0 } },
	{ "clsact_3_4026531840", true, { LINK_CLSACT, 3, 4026531840 } },
	{ "link_", false, {} },
	{ "link_x", false, {} },
	{ "link_3_program", false, {} },
	{ "clsact_3", false, {} },
	{ "clsact_3_", false, {} },
	{ "clsact_3_1_2", false, {} },
	{ "program_3", false, {} },
	{ "program_tcx_3", false, {} },
	{ "before_3", false, {} },
	{ "before_clsact_3_4026531840", false, {} },
	{ "ip_buckets", false, {} },
	{ "", false, {} },
};

static void names_are_read_whole_or_not_at_all(void **state)
{
	(void)state;
	for (size_t at = 0; at < sizeof(names) / sizeof(names[0]); at++) {
		struct link_name read = {};

		if (link_parse(names[at].name, &read) != names[at].holds)
			fail_msg("row \"%s\"", names[at].name);
		if (memcmp(&read, &names[at].read, sizeof(read)) != 0)
			fail_msg("row \"%s\" is read as %d %u %llu", names[at].name, read.kind,
				 read.ifindex, (unsigned long long)read.netns);
	}
}

static void what_is_written_can_be_read(void **state)
{
	char path[PATH_MAX], program[PATH_MAX], before[PATH_MAX];
	struct link_name read;

	(void)state;
	for (int kind = 0; kind < LINK_KINDS; kind++) {
		(void)link_path("/a", (enum link_kind)kind, 7, path);
		(void)link_program_path("/a", (enum link_kind)kind, 7, program);
		(void)link_before_path("/a", (enum link_kind)kind, 7, before);
		assert_true(link_parse(path + strlen("/a/"), &read));
		assert_int_equal(read.kind, kind);
		assert_int_equal(read.ifindex, 7);
		assert_true(kind != LINK_CLSACT || read.netns == link_netns());
		/* A filter's pin is its program's. */
		assert_true(link_parse(program + strlen("/a/"), NULL) == (kind == LINK_CLSACT));
		assert_false(link_parse(before + strlen("/a/"), NULL));
		assert_string_not_equal(program, before);
	}
}

static void rungs_suit_modes(void **state)
{
	static const struct {
		const char *name;
		enum attach_mode wanted;
		enum attach_mode require;
		const char *rungs;
	} rows[] = {
		{ "auto", MODE_AUTO, MODE_AUTO, "native_frags native tcx clsact generic" },
		{ "auto, native required", MODE_AUTO, MODE_NATIVE, "native_frags native" },
		{ "auto, tc required", MODE_AUTO, MODE_TC, "native_frags native tcx clsact" },
		{ "native", MODE_NATIVE, MODE_AUTO, "native_frags native" },
		{ "native, tc required", MODE_NATIVE, MODE_TC, "native_frags native" },
		{ "tc", MODE_TC, MODE_AUTO, "tcx clsact" },
		{ "clsact", MODE_CLSACT, MODE_TC, "clsact" },
		{ "generic", MODE_GENERIC, MODE_AUTO, "generic" },
		{ "generic, tc required", MODE_GENERIC, MODE_TC, "" },
	};

	(void)state;
	for (size_t at = 0; at < sizeof(rows) / sizeof(rows[0]); at++) {
		char found[64] = "";

		for (enum rung rung = RUNG_NATIVE_FRAGS; rung < RUNGS; rung++)
			if (rung_suits(rung, rows[at].wanted, rows[at].require)) {
				strcat(found, found[0] ? " " : "");
				strcat(found, rung_name(rung));
			}
		if (strcmp(found, rows[at].rungs) != 0)
			fail_msg("row \"%s\": %s", rows[at].name, found);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_read_whole_or_not_at_all),
		cmocka_unit_test(what_is_written_can_be_read),
		cmocka_unit_test(rungs_suit_modes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
