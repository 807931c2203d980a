/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The programs under measurement, with a configuration in force: sluice as it is, or a variant of
 * it that has the same maps. Configured by the functions of the data plane itself, so that nothing
 * is measured that an operator could not have. All functions return 0 or -errno and complain on
 * standard error themselves.
 */
#ifndef TESTS_BENCH_LIB_SUBJECT_H
#define TESTS_BENCH_LIB_SUBJECT_H

#include <stdint.h>

#include <bpf/libbpf.h>

#include "dataplane/maps.h"

struct subject {
	struct bpf_object *object; /* belongs to its skeleton */
	struct maps maps;
};

/* Adopt the maps of a loaded object, put a configuration file's text in force, arm the sweep. */
int subject_open(struct subject *subject, struct bpf_object *object, const char *configuration);

/* Leaves the object alone. A subject that is zero and was never opened is fine. */
void subject_close(struct subject *subject);

/* A program of it, -1 if it has none of that name. */
int subject_program(const struct subject *subject, const char *name);

/* Forget every bucket and what is left of the slices. */
int subject_clear(struct subject *subject);

/* Packets counted since the last call, passed and refused. */
struct tally {
	uint64_t passed;
	uint64_t refused;
};

int subject_tally(struct subject *subject, struct tally *out);

/* Run a program that many times on one frame in memory; *ns: on the average. */
int subject_run(int program, const void *frame, unsigned bytes, unsigned times, double *ns);

#endif
