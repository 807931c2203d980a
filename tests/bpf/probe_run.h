/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Runs a probe on all CPUs at once, each thread with a part of the log of its own. */
#ifndef SLUICE_PROBE_RUN_H
#define SLUICE_PROBE_RUN_H

#include "tests/bpf/probe.h"

/* How many threads probe_run() starts: one for each CPU this process may run on, PROBE_PARTS at
 * most. */
unsigned probe_threads(void);

/* Run the program `repeat` times in each thread, and meanwhile() (or NULL) in the caller's. 0 or
 * what the first thread that failed has met, as -errno. */
int probe_run(int program, unsigned threads, unsigned repeat, void (*meanwhile)(void *context),
	      void *context);

/* Run it so often on the number-th of these CPUs alone, as part 0. */
int probe_run_on(int program, unsigned number, unsigned repeat);

/*
 * How many times slower than usual a run of the program is here, 1 at least. Tests make their rates
 * so much lower, so that there is as much to refuse on a slow machine as on a fast one.
 */
unsigned probe_slowness(int program);

/* Map the log of a probe, PROBE_PARTS times PROBE_PART_ADMISSIONS. NULL: errno says why. */
const struct admission *probe_log_open(int map);
void probe_log_close(const struct admission *log);

#endif
