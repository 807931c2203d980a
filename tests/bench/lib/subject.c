/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See subject.h. */
#include "tests/bench/lib/subject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "dataplane/apply.h"
#include "tests/bench/lib/report.h"

static int adopt_maps(struct subject *subject)
{
	int fd[MAPS];

	for (int id = 0; id < MAPS; id++) {
		fd[id] = bpf_object__find_map_fd_by_name(subject->object, map_name(id));
		if (fd[id] < 0)
			return fd[id];
	}
	return maps_adopt(&subject->maps, fd);
}

static int apply(struct subject *subject, const char *configuration)
{
	struct settings_error error;
	struct settings *settings;
	struct trouble trouble;
	int err = settings_parse(configuration, strlen(configuration), &settings, &error);

	if (err) {
		report_progress("configuration, line %u: %s", error.line, error.message);
		return err;
	}
	err = apply_found(&subject->maps);
	if (!err)
		err = apply_prepare(&subject->maps, settings, &trouble);
	if (!err)
		apply_turn_over(&subject->maps);
	settings_free(settings);
	return err;
}

static int arm_sweep(const struct subject *subject)
{
	LIBBPF_OPTS(bpf_test_run_opts, run);
	int err = bpf_prog_test_run_opts(subject_program(subject, "sluice_arm"), &run);

	return err ? err : (int)run.retval;
}

int subject_open(struct subject *subject, struct bpf_object *object, const char *configuration)
{
	int err;

	subject->object = object;
	err = adopt_maps(subject);
	if (!err)
		err = apply(subject, configuration);
	if (!err)
		err = arm_sweep(subject);
	if (!err)
		return 0;
	report_progress("the programs cannot be made ready: %s", strerror(-err));
	subject_close(subject);
	return err;
}

void subject_close(struct subject *subject)
{
	if (subject->maps.config)
		maps_close(&subject->maps);
	subject->object = NULL;
}

int subject_program(const struct subject *subject, const char *name)
{
	const struct bpf_program *program = bpf_object__find_program_by_name(subject->object, name);

	return program ? bpf_program__fd(program) : -1;
}

static int clear_slices(int fd)
{
	int cpus = libbpf_num_possible_cpus();
	struct node_slices *none = calloc((size_t)cpus, sizeof(*none));
	uint32_t only = 0;
	int err = none ? 0 : -ENOMEM;

	if (!err && bpf_map_update_elem(fd, &only, none, BPF_ANY))
		err = -errno;
	free(none);
	return err;
}

int subject_clear(struct subject *subject)
{
	memset(subject->maps.ip_buckets, 0, sizeof(struct bucket_set) * IP_SETS);
	memset(subject->maps.node_buckets, 0, sizeof(struct node_buckets));
	return clear_slices(subject->maps.fd[MAP_NODE_SLICES]);
}

static int clear_counters(int fd)
{
	int cpus = libbpf_num_possible_cpus();
	struct counter *none = calloc((size_t)cpus, sizeof(*none));
	int err = none ? 0 : -ENOMEM;

	for (uint32_t reason = 0; !err && reason < REASONS; reason++)
		if (bpf_map_update_elem(fd, &reason, none, BPF_ANY))
			err = -errno;
	free(none);
	return err;
}

int subject_tally(struct subject *subject, struct tally *out)
{
	struct counter counters[REASONS];
	int err = maps_counters(&subject->maps, counters);

	if (err)
		return err;
	*out = (struct tally){ 0 };
	for (uint32_t reason = 0; reason < REASONS; reason++)
		if (reason_is_refusal(reason))
			out->refused += counters[reason].packets;
		else
			out->passed += counters[reason].packets;
	return clear_counters(subject->maps.fd[MAP_COUNTERS]);
}

int subject_run(int program, const void *frame, unsigned bytes, unsigned times, double *ns)
{
	LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = frame, .data_size_in = bytes,
		    .repeat = (int)times);
	int err = bpf_prog_test_run_opts(program, &run);

	*ns = run.duration;
	return err;
}
