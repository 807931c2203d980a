/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What doctor makes of a host, by made-up facts: kernel, rights, memory, clock, pins. */
#include "test.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/findings_check.h"

enum {
	CAPS_NEEDED_LOW = 1 << CAPABILITY_NET_ADMIN,
};
#define CAPS_NEEDED (CAPS_NEEDED_LOW | 1ULL << CAPABILITY_BPF | 1ULL << CAPABILITY_PERFMON)
#define CAPS_ALL (CAPS_NEEDED | 1ULL << CAPABILITY_SYS_ADMIN)

/* ---- the kernel */

static const struct kernel_row {
	const char *name;
	enum feature feature;
	struct trial trial;
	struct wanted wanted;
} kernel_rows[] = {
	{ "all there",
	  FEATURE_LOAD,
	  { ANSWER_YES, 0 },
	  { FINDING_LEVELS, "kernel", "", NULL, false } },
	{ "no programs at all",
	  FEATURE_LOAD,
	  { ANSWER_NO, -ENOSYS },
	  { FINDING_FAILURE, "kernel", "not load even an empty", "CONFIG_BPF_SYSCALL", false } },
	{ "no timers",
	  FEATURE_TIMER,
	  { ANSWER_NO, 0 },
	  { FINDING_FAILURE, "kernel", "timers", "5.15", false } },
	{ "no compare and swap",
	  FEATURE_COMPARE_AND_SWAP,
	  { ANSWER_NO, -EINVAL },
	  { FINDING_FAILURE, "kernel", "compare and swap", "5.15", false } },
	{ "no ring buffer",
	  FEATURE_RING_BUFFER,
	  { ANSWER_NO, 0 },
	  { FINDING_FAILURE, "kernel", "ring buffers", "5.15", false } },
	{ "no tries",
	  FEATURE_PREFIX_TRIE,
	  { ANSWER_NO, 0 },
	  { FINDING_FAILURE, "kernel", "tries", NULL, false } },
	{ "arrays that cannot be mapped",
	  FEATURE_MAPPED_ARRAY,
	  { ANSWER_NO, 0 },
	  { FINDING_FAILURE, "kernel", "mapped", "5.15", false } },
	{ "no coarse clock",
	  FEATURE_COARSE_CLOCK,
	  { ANSWER_NO, 0 },
	  { FINDING_FAILURE, "kernel", "coarse clock", "5.15", false } },
	{ "no test runs",
	  FEATURE_TEST_RUN,
	  { ANSWER_NO, 0 },
	  { FINDING_FAILURE, "kernel", "run for a test", "5.15", false } },
	{ "no links",
	  FEATURE_LINK,
	  { ANSWER_NO, -EINVAL },
	  { FINDING_FAILURE, "kernel", "by a link", "5.15", false } },
	{ "links not tried",
	  FEATURE_LINK,
	  { ANSWER_UNKNOWN, -EPERM },
	  { FINDING_NOTE, "kernel", "not tried", "root", false } },
	{ "no fragments",
	  FEATURE_FRAGS,
	  { ANSWER_NO, -EINVAL },
	  { FINDING_NOTE, "kernel", "several buffers", NULL, false } },
	{ "no tcx",
	  FEATURE_TCX,
	  { ANSWER_NO, -EINVAL },
	  { FINDING_NOTE, "kernel", "tcx", NULL, false } },
	{ "no clsact",
	  FEATURE_CLSACT,
	  { ANSWER_NO, -ENOENT },
	  { FINDING_NOTE, "kernel", "clsact", "modprobe sch_ingress", false } },
	{ "the whole is refused",
	  FEATURE_OBJECT,
	  { ANSWER_NO, -E2BIG },
	  { FINDING_FAILURE, "kernel", "Linux 6.1.0: the verifier", "--verbose", false } },
	{ "the whole is forbidden",
	  FEATURE_OBJECT,
	  { ANSWER_NO, -EPERM },
	  { FINDING_FAILURE, "kernel", "Linux 6.1.0", "--verbose", true } },
	{ "the whole was not tried",
	  FEATURE_OBJECT,
	  { ANSWER_UNKNOWN, 0 },
	  { FINDING_NOTE, "kernel", "not tried", NULL, false } },
};

static void what_the_kernel_lacks_is_told(void **state)
{
	(void)state;
	for (size_t at = 0; at < COUNT_OF(kernel_rows); at++) {
		struct kernel_facts kernel = able_kernel();
		struct findings findings = {};

		kernel.features[kernel_rows[at].feature] = kernel_rows[at].trial;
		trouble_set(&kernel.object_trouble, 0, "the verifier says no");
		trouble_advise(&kernel.object_trouble, "--verbose");
		diagnose_kernel(&kernel, &findings);
		check_wanted(kernel_rows[at].name, &findings, &kernel_rows[at].wanted);
		findings_done(&findings);
	}
}

static void an_interpreter_and_a_lockdown_are_told(void **state)
{
	struct kernel_facts kernel = able_kernel();
	struct findings findings = {};

	(void)state;
	kernel.is_compiled = ANSWER_NO;
	(void)strcpy(kernel.lockdown, "confidentiality");
	diagnose_kernel(&kernel, &findings);
	check_wanted("JIT", &findings,
		     &(struct wanted){ FINDING_WARNING, "kernel", "JIT compiler is off",
				       "sysctl -w net.core.bpf_jit_enable=1", false });
	check_wanted("lockdown", &findings,
		     &(struct wanted){ FINDING_NOTE, "kernel", "locked down", NULL, false });
	assert_false(findings_has_failure(&findings));
	findings_done(&findings);
}

/* ---- rights */

static const struct process_row {
	const char *name;
	struct process_facts process;
	enum answer loads;
	struct wanted wanted;
} process_rows[] = {
	{ "root",
	  { .capabilities = CAPS_ALL },
	  ANSWER_YES,
	  { FINDING_LEVELS, "privileges", "", NULL, false } },
	{ "the three",
	  { .capabilities = CAPS_NEEDED },
	  ANSWER_YES,
	  { FINDING_NOTE, "privileges", "known by number only", NULL, false } },
	{ "nothing",
	  { .capabilities = 0 },
	  ANSWER_UNKNOWN,
	  { FINDING_FAILURE, "privileges", "lacks CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON", "root",
	    true } },
	{ "all but one",
	  { .capabilities = CAPS_NEEDED & ~(1ULL << CAPABILITY_PERFMON) },
	  ANSWER_YES,
	  { FINDING_FAILURE, "privileges", "lacks CAP_PERFMON", "CAP_PERFMON", true } },
	{ "CAP_SYS_ADMIN is not CAP_NET_ADMIN",
	  { .capabilities = 1ULL << CAPABILITY_SYS_ADMIN },
	  ANSWER_YES,
	  { FINDING_FAILURE, "privileges", "lacks CAP_NET_ADMIN", "root", true } },
	{ "root of a container",
	  { .capabilities = CAPS_ALL, .is_contained = true },
	  ANSWER_UNKNOWN,
	  { FINDING_FAILURE, "privileges", "in a user namespace", "on the host", true } },
	{ "root behind a filter",
	  { .capabilities = CAPS_ALL },
	  ANSWER_UNKNOWN,
	  { FINDING_FAILURE, "privileges", "though it has the capabilities", "SystemCallFilter",
	    true } },
};

static void rights_are_held_against_what_is_needed(void **state)
{
	(void)state;
	for (size_t at = 0; at < COUNT_OF(process_rows); at++) {
		struct kernel_facts kernel = able_kernel();
		struct findings findings = {};

		kernel.features[FEATURE_LOAD].answer = process_rows[at].loads;
		diagnose_process(&process_rows[at].process, &kernel, &findings);
		check_wanted(process_rows[at].name, &findings, &process_rows[at].wanted);
		assert_false(findings_has_failure(&findings));
		assert_int_equal(findings_lacks_permission(&findings),
				 process_rows[at].wanted.is_permission);
		findings_done(&findings);
	}
}

/* ---- memory */

static const struct memory_row {
	const char *name;
	struct process_facts process;
	enum answer has_coarse_clock;
	uint64_t needed;
	struct wanted wanted;
} memory_rows[] = {
	{ "no limit",
	  { .memlock_bytes = 65536 },
	  ANSWER_YES,
	  20000000,
	  { FINDING_OK, "memory", "no control group limits", NULL, false } },
	{ "room to the byte",
	  { .memory_limit_bytes = 30000000, .memory_used_bytes = 10000000 },
	  ANSWER_YES,
	  20000000,
	  { FINDING_OK, "memory", "leaves 20 MB", NULL, false } },
	{ "a byte too few",
	  { .memory_limit_bytes = 30000000,
	    .memory_used_bytes = 10000001,
	    .memory_group = "/sys/g" },
	  ANSWER_YES,
	  20000000,
	  { FINDING_FAILURE, "memory", "(/sys/g)", "MemoryMax=", false } },
	{ "beyond the limit already",
	  { .memory_limit_bytes = 30000000, .memory_used_bytes = 40000000 },
	  ANSWER_YES,
	  20000000,
	  { FINDING_FAILURE, "memory", "leaves 0 B", "MemoryMax=", false } },
	{ "locked memory, where the kernel counts it",
	  { .memlock_bytes = 65536 },
	  ANSWER_NO,
	  20000000,
	  { FINDING_FAILURE, "memory", "locked memory", "LimitMEMLOCK=infinity", false } },
	{ "who may raise it is not told",
	  { .memlock_bytes = 65536, .capabilities = 1ULL << CAPABILITY_SYS_RESOURCE },
	  ANSWER_NO,
	  20000000,
	  { FINDING_LEVELS, "memory", "", NULL, false } },
};

static void memory_is_held_against_what_the_maps_need(void **state)
{
	(void)state;
	for (size_t at = 0; at < COUNT_OF(memory_rows); at++) {
		const struct memory_row *row = &memory_rows[at];
		struct kernel_facts kernel = able_kernel();
		struct findings findings = {};

		kernel.features[FEATURE_COARSE_CLOCK].answer = row->has_coarse_clock;
		diagnose_memory(&row->process, &kernel, row->needed, &findings);
		check_wanted(row->name, &findings, &row->wanted);
		findings_done(&findings);
	}
}

/* ---- the clock */

static const struct clock_row {
	const char *name;
	const char *source;
	double fine_ns;
	struct wanted wanted;
} clock_rows[] = {
	{ "tsc", "tsc", 40, { FINDING_OK, "clock", "costs a program 40 ns", NULL, false } },
	{ "hpet", "hpet", 700, { FINDING_WARNING, "clock", "hpet", "echo tsc >", false } },
	{ "hpet, not measured",
	  "hpet",
	  0,
	  { FINDING_WARNING, "clock", "is hpet", "echo tsc >", false } },
	{ "ACPI", "acpi_pm", 900, { FINDING_WARNING, "clock", "900 ns", "echo tsc >", false } },
	{ "jiffies",
	  "refined-jiffies",
	  20,
	  { FINDING_WARNING, "clock", "refined-jiffies", NULL, false } },
	{ "a dear one of a good name",
	  "xen",
	  800,
	  { FINDING_WARNING, "clock", "800 ns", NULL, false } },
	{ "not known, and cheap", "", 40, { FINDING_OK, "clock", "not known", NULL, false } },
	{ "not known", "", 0, { FINDING_LEVELS, "clock", "", NULL, false } },
};

static void a_dear_clock_is_told(void **state)
{
	(void)state;
	for (size_t at = 0; at < COUNT_OF(clock_rows); at++) {
		struct kernel_facts kernel = able_kernel();
		struct findings findings = {};

		(void)strcpy(kernel.clock_source, clock_rows[at].source);
		kernel.fine_clock_ns = clock_rows[at].fine_ns;
		diagnose_clock(&kernel, &findings);
		check_wanted(clock_rows[at].name, &findings, &clock_rows[at].wanted);
		findings_done(&findings);
	}
}

/* ---- pins */

#define FOLDER .root = "/b/sluice", .checked = "/b/sluice", .is_bpf = true, .can_write = true
#define VERSION(number, ...)                                                       \
	{                                                                          \
		.version = (number), .link_count = 1, .links = { { __VA_ARGS__ } } \
	}

static const struct pins_row {
	const char *name;
	struct pins_facts pins;
	struct wanted wanted;
} pins_rows[] = {
	{ "nothing yet",
	  { FOLDER, .list_error = -ENOENT },
	  { FINDING_OK, "bpffs", "nothing is attached", NULL, false } },
	{ "no folder",
	  { .checked = "/b", .error = -ENOENT },
	  { FINDING_FAILURE, "bpffs", "/b: No such file", "mount -t bpf bpf /sys/fs/bpf", false } },
	{ "a folder that may not be looked into",
	  { .checked = "/b", .error = -EACCES },
	  { FINDING_FAILURE, "bpffs", "/b: Permission", "root", true } },
	{ "a plain folder",
	  { .checked = "/b", .can_write = true },
	  { FINDING_FAILURE, "bpffs", "not on a BPF file system", "nsenter", false } },
	{ "read-only",
	  { .checked = "/b", .is_bpf = true, .is_read_only = true },
	  { FINDING_FAILURE, "bpffs", "read-only", "ReadWritePaths=/sys/fs/bpf", false } },
	{ "of others",
	  { .checked = "/b", .is_bpf = true, .list_error = -ENOENT },
	  { FINDING_FAILURE, "bpffs", "may not write", "--bpffs", true } },
	{ "that cannot be listed",
	  { FOLDER, .list_error = -EACCES },
	  { FINDING_FAILURE, "pins", "cannot look into", "root", true } },
	{ "attached",
	  { FOLDER, .version_count = 1,
	    .versions = { VERSION(SLUICE_ABI_VERSION, "link_3", 7, PIN_LINK_ATTACHED) } },
	  { FINDING_OK, "bpffs", "attached to 1 interface", NULL, false } },
	{ "an interface that is gone",
	  { FOLDER, .version_count = 1,
	    .versions = { VERSION(SLUICE_ABI_VERSION, "link_3", 7, PIN_LINK_DEAD) } },
	  { FINDING_NOTE, "pins", "link_3 is of an interface that is gone", "rm /b/sluice/v",
	    false } },
	{ "another network namespace",
	  { FOLDER, .version_count = 1,
	    .versions = { VERSION(SLUICE_ABI_VERSION, "link_3", 7, PIN_LINK_ELSEWHERE) } },
	  { FINDING_WARNING, "pins", "another network namespace", "--bpffs", false } },
	{ "an older version at work",
	  { FOLDER, .version_count = 1,
	    .versions = { VERSION(SLUICE_ABI_VERSION - 1, "link_3", 7, PIN_LINK_ATTACHED) } },
	  { FINDING_NOTE, "pins", "an older version of sluice, on 1 interface", "sluice attach",
	    false } },
	{ "a newer version at work",
	  { FOLDER, .version_count = 1,
	    .versions = { VERSION(SLUICE_ABI_VERSION + 1, "link_3", 7, PIN_LINK_ATTACHED) } },
	  { FINDING_WARNING, "pins", "a newer version", "newer binary", false } },
	{ "left of an older version",
	  { FOLDER, .version_count = 1,
	    .versions = { VERSION(SLUICE_ABI_VERSION - 1, "link_3", 7, PIN_LINK_DEAD) } },
	  { FINDING_WARNING, "pins", "attached nowhere", "rm -r /b/sluice/v", false } },
	{ "at work",
	  { FOLDER, .lock_pid = 12, .lock_name = "sluice" },
	  { FINDING_NOTE, "pins", "sluice (process 12)", NULL, false } },
	{ "left of an attach",
	  { FOLDER, .has_staging = true },
	  { FINDING_NOTE, "pins", "staging is left", NULL, false } },
	{ "an attach at work",
	  { FOLDER, .has_staging = true, .lock_pid = 12 },
	  { FINDING_NOTE, "pins", "another process (process 12)", NULL, false } },
};

static void the_folder_of_pins_is_judged(void **state)
{
	(void)state;
	for (size_t at = 0; at < COUNT_OF(pins_rows); at++) {
		struct findings findings = {};

		diagnose_pins(&pins_rows[at].pins, &findings);
		check_wanted(pins_rows[at].name, &findings, &pins_rows[at].wanted);
		findings_done(&findings);
	}
}

/* ---- the list itself */

static void many_findings_are_kept_in_order(void **state)
{
	struct findings findings = {};

	(void)state;
	for (int at = 0; at < 200; at++)
		finding_advise(findings_add(&findings, FINDING_NOTE, "many", "number %d", at),
			       "do %d", at);
	assert_int_equal(findings.count, 200);
	assert_string_equal(findings.list[0].what, "number 0");
	assert_string_equal(findings.list[199].remedy, "do 199");
	assert_int_equal(findings_count(&findings, FINDING_NOTE), 200);
	assert_false(findings_has_failure(&findings));
	findings_add(&findings, FINDING_FAILURE, "one", "bad")->is_permission = true;
	assert_false(findings_has_failure(&findings));
	assert_true(findings_lacks_permission(&findings));
	(void)findings_add(&findings, FINDING_FAILURE, "one", "worse");
	assert_true(findings_has_failure(&findings));
	findings_done(&findings);
	assert_int_equal(findings.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_kernel_lacks_is_told),
		cmocka_unit_test(an_interpreter_and_a_lockdown_are_told),
		cmocka_unit_test(rights_are_held_against_what_is_needed),
		cmocka_unit_test(memory_is_held_against_what_the_maps_need),
		cmocka_unit_test(a_dear_clock_is_told),
		cmocka_unit_test(the_folder_of_pins_is_judged),
		cmocka_unit_test(many_findings_are_kept_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
