/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Judges the kernel, the rights and the memory of this process, and the clock. */
#include "dataplane/diagnose.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"

enum {
	DEAR_CLOCK_NS = 300, /* beyond it the clock is most of what a packet costs */
};

/* What sluice wants of the kernel. */
static const struct {
	enum feature feature;
	enum finding_level missing;
	const char *what;
	const char *why;
	const char *remedy;
} wants[] = {
	{ FEATURE_COMPARE_AND_SWAP, FINDING_FAILURE,
	  "programs cannot compare and swap (Linux 5.12)", "a charge is one swap of a word",
	  "a kernel of 5.15 or newer" },
	{ FEATURE_COARSE_CLOCK, FINDING_FAILURE,
	  "programs cannot read the coarse clock (Linux 5.11)", "refusals are dated by it",
	  "a kernel of 5.15 or newer" },
	{ FEATURE_TIMER, FINDING_FAILURE, "programs cannot have timers (Linux 5.15)",
	  "one sweeps the table of addresses", "a kernel of 5.15 or newer" },
	{ FEATURE_RING_BUFFER, FINDING_FAILURE, "there are no ring buffers (Linux 5.8)",
	  "`sluice monitor` reads refusals from one", "a kernel of 5.15 or newer" },
	{ FEATURE_PREFIX_TRIE, FINDING_FAILURE, "there are no prefix tries",
	  "exempt, deny and limits of prefixes are kept in them",
	  "a kernel with CONFIG_BPF_SYSCALL" },
	{ FEATURE_MAPPED_ARRAY, FINDING_FAILURE, "arrays cannot be mapped (Linux 5.5)",
	  "a configuration is put in force by one store into such an array",
	  "a kernel of 5.15 or newer" },
	{ FEATURE_TEST_RUN, FINDING_FAILURE, "programs cannot be run for a test",
	  "the sweep's timer is armed that way", "a kernel of 5.15 or newer" },
	{ FEATURE_LINK, FINDING_FAILURE, "XDP programs cannot be attached by a link (Linux 5.9)",
	  "a pinned link is what stays when sluice has ended", "a kernel of 5.15 or newer" },
	{ FEATURE_FRAGS, FINDING_NOTE, "XDP takes no frames in several buffers (Linux 5.18)",
	  "with an MTU over 3500 native XDP cannot be had", "" },
	{ FEATURE_TCX, FINDING_NOTE, "there is no tcx (Linux 6.6)",
	  "in TC mode, clsact serves instead; its filter can be deleted by anybody with rights",
	  "" },
	{ FEATURE_CLSACT, FINDING_NOTE, "there is no clsact, or it takes no programs",
	  "TC mode needs it, or tcx", "modprobe sch_ingress; modprobe cls_bpf" },
};

/* One that was not tried for want of rights. */
static void say_untried(const struct kernel_facts *kernel, struct findings *findings)
{
	struct finding *finding;

	if (kernel->features[FEATURE_LINK].answer != ANSWER_UNKNOWN)
		return;
	finding = findings_add(findings, FINDING_NOTE, "kernel",
			       "attaching by a link and by clsact was not tried");
	finding_explain(
		finding,
		"it is tried in a network namespace made for it, and that takes CAP_SYS_ADMIN");
	finding_advise(finding, "run it as root to have that tried, too");
}

static void judge_object(const struct kernel_facts *kernel, struct findings *findings)
{
	const struct trial *object = &kernel->features[FEATURE_OBJECT];
	bool is_forbidden = object->error == -EPERM || object->error == -EACCES;
	struct finding *finding;

	if (object->answer == ANSWER_YES) {
		(void)findings_add(findings, FINDING_OK, "kernel",
				   "Linux %s loads all programs of sluice (in %.0f ms)",
				   kernel->release, kernel->load_ms);
		return;
	}
	if (object->answer == ANSWER_UNKNOWN) {
		(void)findings_add(findings, FINDING_NOTE, "kernel",
				   "whether Linux %s loads all programs of sluice was not tried",
				   kernel->release);
		return;
	}
	finding = findings_add(findings, FINDING_FAILURE, "kernel", "Linux %s: %s", kernel->release,
			       kernel->object_trouble.cause);
	finding->is_permission = is_forbidden;
	finding_advise(finding, "%s", kernel->object_trouble.remedy);
}

void diagnose_kernel(const struct kernel_facts *kernel, struct findings *findings)
{
	const struct trial *load = &kernel->features[FEATURE_LOAD];
	struct finding *finding;

	if (load->answer == ANSWER_NO) {
		finding = findings_add(findings, FINDING_FAILURE, "kernel",
				       "Linux %s does not load even an empty XDP program: %s",
				       kernel->release, strerror(-load->error));
		finding_advise(finding, "a kernel of 5.15 or newer with CONFIG_BPF_SYSCALL and "
					"CONFIG_NET");
		return;
	}
	if (load->answer == ANSWER_UNKNOWN)
		return; /* for want of rights, and that is said with them */
	judge_object(kernel, findings);
	for (size_t at = 0; at < sizeof(wants) / sizeof(wants[0]); at++) {
		if (kernel->features[wants[at].feature].answer != ANSWER_NO)
			continue;
		finding = findings_add(findings, wants[at].missing, "kernel", "%s", wants[at].what);
		finding_explain(finding, "%s", wants[at].why);
		finding_advise(finding, "%s", wants[at].remedy);
	}
	say_untried(kernel, findings);
	if (kernel->is_compiled == ANSWER_NO) {
		finding = findings_add(findings, FINDING_WARNING, "kernel",
				       "programs are interpreted: the JIT compiler is off");
		finding_explain(finding, "each packet then costs several times as much");
		finding_advise(finding, "sysctl -w net.core.bpf_jit_enable=1");
	}
	if (!strcmp(kernel->lockdown, "confidentiality"))
		(void)findings_add(
			findings, FINDING_NOTE, "kernel",
			"the kernel is locked down (confidentiality): programs cannot read "
			"its memory, which those of sluice do not do");
}

/* ---- rights */

static bool holds(const struct process_facts *process, unsigned capability)
{
	return process->capabilities >> capability & 1;
}

/* The names of those that are missing, with what is lost for each. */
static bool list_missing(const struct process_facts *process, char *names, size_t size)
{
	const struct {
		unsigned capability;
		bool admin_serves; /* CAP_SYS_ADMIN contains it */
		const char *name;
	} needed[] = {
		{ CAPABILITY_BPF, true, "CAP_BPF" },
		{ CAPABILITY_NET_ADMIN, false, "CAP_NET_ADMIN" },
		{ CAPABILITY_PERFMON, true, "CAP_PERFMON" },
	};
	size_t length = 0;

	names[0] = '\0';
	for (size_t at = 0; at < sizeof(needed) / sizeof(needed[0]); at++) {
		if (holds(process, needed[at].capability) ||
		    (needed[at].admin_serves && holds(process, CAPABILITY_SYS_ADMIN)))
			continue;
		length += (size_t)snprintf(names + length, size - length, "%s%s",
					   length ? ", " : "", needed[at].name);
	}
	return length;
}

static void say_forbidden(const struct process_facts *process, struct findings *findings)
{
	struct finding *finding;

	if (process->is_contained) {
		finding =
			findings_add(findings, FINDING_FAILURE, "privileges",
				     "this process is in a user namespace, and the kernel does not "
				     "let it load a program");
		finding_explain(finding, "capabilities held in it count for nothing outside");
		finding_advise(finding,
			       "run sluice on the host, or in a container that shares its "
			       "user namespace and has CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON");
	} else {
		finding = findings_add(
			findings, FINDING_FAILURE, "privileges",
			"the kernel does not let this process load a program, though it "
			"has the capabilities");
		finding_explain(finding,
				"a filter of system calls (seccomp, as containers have it) or "
				"a security module says no");
		finding_advise(finding,
			       "allow the system call bpf: in a systemd unit "
			       "SystemCallFilter=bpf, with Docker --security-opt seccomp=…");
	}
	finding->is_permission = true;
}

void diagnose_process(const struct process_facts *process, const struct kernel_facts *kernel,
		      struct findings *findings)
{
	const struct trial *load = &kernel->features[FEATURE_LOAD];
	struct finding *finding;
	char missing[96];

	if (list_missing(process, missing, sizeof(missing))) {
		finding = findings_add(findings, FINDING_FAILURE, "privileges",
				       "this process lacks %s", missing);
		finding->is_permission = true;
		finding_explain(
			finding, "%s",
			load->answer == ANSWER_YES
				? "attaching takes all three of CAP_BPF, CAP_NET_ADMIN and "
				  "CAP_PERFMON"
				: "attaching takes them, and what the kernel can do could not be "
				  "tried without");
		finding_advise(finding, "run it as root, or with CAP_BPF, CAP_NET_ADMIN and "
					"CAP_PERFMON");
		return;
	}
	if (load->answer == ANSWER_UNKNOWN) {
		say_forbidden(process, findings);
		return;
	}
	(void)findings_add(findings, FINDING_OK, "privileges",
			   "this process has the capabilities that attaching takes");
	if (holds(process, CAPABILITY_SYS_ADMIN))
		return;
	finding = findings_add(findings, FINDING_NOTE, "privileges",
			       "without CAP_SYS_ADMIN programs of others are known by number only");
	finding_explain(finding, "the kernel tells their names to nobody else");
}

/* ---- memory */

bool diagnose_has_room(const struct process_facts *process, uint64_t needed_bytes)
{
	if (!process->memory_limit_bytes)
		return true;
	return process->memory_used_bytes < process->memory_limit_bytes &&
	       process->memory_limit_bytes - process->memory_used_bytes >= needed_bytes;
}

static void judge_memlock(const struct process_facts *process, const struct kernel_facts *kernel,
			  uint64_t needed_bytes, struct findings *findings)
{
	char needed[SIZE_TEXT_MAX], allowed[SIZE_TEXT_MAX];
	struct finding *finding;

	/* The limit counts up to Linux 5.10; 5.11, which brought the coarse clock, counts by
	 * groups. */
	if (kernel->features[FEATURE_COARSE_CLOCK].answer != ANSWER_NO ||
	    process->memlock_bytes >= needed_bytes || holds(process, CAPABILITY_SYS_RESOURCE))
		return;
	format_size((double)needed_bytes, needed);
	format_size((double)process->memlock_bytes, allowed);
	finding = findings_add(findings, FINDING_FAILURE, "memory",
			       "the maps need %s of locked memory, and %s are allowed", needed,
			       allowed);
	finding_explain(finding, "this kernel counts maps as locked memory (RLIMIT_MEMLOCK)");
	finding_advise(finding, "ulimit -l unlimited; in a systemd unit LimitMEMLOCK=infinity");
}

void diagnose_memory(const struct process_facts *process, const struct kernel_facts *kernel,
		     uint64_t needed_bytes, struct findings *findings)
{
	uint64_t room_bytes = process->memory_limit_bytes > process->memory_used_bytes
				      ? process->memory_limit_bytes - process->memory_used_bytes
				      : 0;
	char needed[SIZE_TEXT_MAX], room[SIZE_TEXT_MAX];
	struct finding *finding;

	format_size((double)needed_bytes, needed);
	format_size((double)room_bytes, room);
	judge_memlock(process, kernel, needed_bytes, findings);
	if (!process->memory_limit_bytes) {
		(void)findings_add(findings, FINDING_OK, "memory",
				   "the maps take %s, and no control group limits it", needed);
		return;
	}
	if (diagnose_has_room(process, needed_bytes)) {
		(void)findings_add(findings, FINDING_OK, "memory",
				   "the maps take %s, and the control group leaves %s", needed,
				   room);
		return;
	}
	finding = findings_add(findings, FINDING_FAILURE, "memory",
			       "the maps need %s, and the control group leaves %s (%s)", needed,
			       room, process->memory_group);
	finding_explain(finding,
			"the kernel charges maps to the group of who makes them, and gives "
			"none beyond its limit");
	finding_advise(finding,
		       "raise the limit by %s or more: in a systemd unit MemoryMax=; with "
		       "Docker --memory",
		       needed);
}

/* ---- the clock */

void diagnose_clock(const struct kernel_facts *kernel, struct findings *findings)
{
	static const char *const slow[] = { "hpet", "acpi_pm", "refined-jiffies", "jiffies",
					    "pit" };
	bool is_slow = kernel->fine_clock_ns > DEAR_CLOCK_NS;
	struct finding *finding;

	for (size_t at = 0; at < sizeof(slow) / sizeof(slow[0]); at++)
		is_slow |= !strcmp(kernel->clock_source, slow[at]);
	if (!kernel->clock_source[0] && kernel->fine_clock_ns == 0)
		return;
	finding = findings_add(findings, is_slow ? FINDING_WARNING : FINDING_OK, "clock",
			       "the clock source is %s",
			       kernel->clock_source[0] ? kernel->clock_source : "not known");
	if (kernel->fine_clock_ns > 0)
		(void)snprintf(finding->what + strlen(finding->what),
			       sizeof(finding->what) - strlen(finding->what),
			       "; reading it costs a program %.0f ns, and the coarse clock %.0f ns",
			       kernel->fine_clock_ns, kernel->coarse_clock_ns);
	if (!is_slow)
		return;
	finding_explain(finding,
			"each packet that is admitted is dated by it: it is the dearest part "
			"of a verdict, and reads of this one wait for each other on several CPUs");
	finding_advise(
		finding,
		"see what there is (cat /sys/devices/system/clocksource/clocksource0/"
		"available_clocksource) and choose tsc, kvm-clock or arch_sys_counter: echo tsc > "
		"/sys/devices/system/clocksource/clocksource0/current_clocksource");
}
