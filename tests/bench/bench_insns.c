/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How much work each program is for the kernel's verifier, which gives up at a million
 * instructions: how near to that the programs are, and whether a change has brought them nearer.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <bpf/bpf.h>

#include <sluice/abi.h>

#include "dataplane/object.h"
#include "tests/bench/lib/report.h"

#include "sluice.skel.h"

#define VERIFIER_MAX 1000000.0

static int measure(const struct bpf_program *program)
{
	struct bpf_prog_info info = { 0 };
	__u32 length = sizeof(info);
	char name[64];

	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &length))
		return -errno;
	snprintf(name, sizeof(name), "verified: %s", bpf_program__name(program));
	report_print(&(struct report){
		.name = name,
		.unit = "instructions",
		.figure = info.verified_insns,
		.peer = "the verifier's limit",
		.peer_figure = VERIFIER_MAX,
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
		bpf_object__for_each_program(program, sluice->obj) {
			err = measure(program);
			if (err)
				break;
		}
	if (err)
		report_progress("verifier: could not run: %s", strerror(-err));
	sluice_bpf__destroy(sluice);
	return err ? 1 : 0;
}
