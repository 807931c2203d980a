/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How much work each program is for the kernel's verifier, which gives up at a million
 * instructions: how near to that the programs are, and whether a change has brought them nearer
 * than insns.txt has it. Kernels differ by half; tests/kernel tells it of Debian's.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include <bpf/bpf.h>

#include <sluice/abi.h>

#include "dataplane/object.h"
#include "tests/bench/lib/report.h"

#include "sluice.skel.h"

#define VERIFIER_MAX 1000000.0

static const char record_path[] = "tests/bench/insns.txt";

/* What is recorded of a program on kernels as this one is ("6.18"); 0: nothing. */
static double recorded(const char *program)
{
	unsigned major = 0, minor = 0, of_major, of_minor;
	FILE *record = fopen(record_path, "re");
	struct utsname kernel;
	char line[128], name[64];
	double figure, found = 0;

	if (!record)
		return 0;
	if (uname(&kernel) == 0)
		sscanf(kernel.release, "%u.%u", &major, &minor);
	while (!found && fgets(line, sizeof(line), record))
		if (sscanf(line, "%63s %u.%u %lf", name, &of_major, &of_minor, &figure) == 4 &&
		    of_major == major && of_minor == minor && !strcmp(name, program))
			found = figure;
	fclose(record);
	return found;
}

static int measure(const struct bpf_program *program)
{
	const char *name = bpf_program__name(program);
	struct bpf_prog_info info = { 0 };
	__u32 length = sizeof(info);
	char title[64];
	double before;

	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &length))
		return -errno;
	snprintf(title, sizeof(title), "verified: %s", name);
	report_print(&(struct report){
		.name = title,
		.unit = "instructions",
		.figure = info.verified_insns,
		.peer = "the verifier's limit",
		.peer_figure = VERIFIER_MAX,
	});
	before = recorded(name);
	if (!before)
		return 0;
	snprintf(title, sizeof(title), "growth: %s", name);
	report_print(&(struct report){
		.name = title,
		.unit = "instructions",
		.figure = info.verified_insns,
		.peer = "tests/bench/insns.txt",
		.peer_figure = before,
	});
	return 0;
}

int main(void)
{
	struct bpf_program *program;
	struct sluice_bpf *sluice;
	int err;

	object_set_verbose(false);
	report_progress("verifier");
	sluice = sluice_bpf__open_and_load();
	err = sluice ? 0 : -errno;
	if (!err)
		bpf_object__for_each_program(program, sluice->obj)
		{
			err = measure(program);
			if (err)
				break;
		}
	if (err)
		report_progress("verifier: could not run: %s", strerror(-err));
	sluice_bpf__destroy(sluice);
	return err ? 1 : 0;
}
