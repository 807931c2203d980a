/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Runs a probe on all CPUs at once, and maps what it logs. */
#include "tests/bpf/probe_run.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <bpf/bpf.h>

static const size_t log_bytes =
	(size_t)PROBE_PARTS * PROBE_PART_ADMISSIONS * sizeof(struct admission);

enum { USUAL_NS = 200, SLOWNESS_ROUNDS = 5, SLOWNESS_REPEAT = 10000 };

struct runner {
	pthread_t thread;
	pthread_barrier_t *together; /* NULL: go at once */
	int program;
	unsigned cpu; /* the number-th of those that this process may use */
	unsigned part;
	unsigned repeat;
	unsigned took_ns; /* one run, on average */
	int err;
};

static int pin_to(unsigned number)
{
	cpu_set_t all, one;

	if (sched_getaffinity(0, sizeof(all), &all))
		return -errno;
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		if (number-- == 0) {
			CPU_SET(cpu, &one);
			break;
		}
	}
	return sched_setaffinity(0, sizeof(one), &one) ? -errno : 0;
}

static void *run(void *argument)
{
	struct runner *runner = argument;
	unsigned char packet[64] = { (unsigned char)runner->part };
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = packet, .data_size_in = sizeof(packet),
		    .repeat = (int)runner->repeat);

	runner->err = pin_to(runner->cpu);
	if (runner->together)
		pthread_barrier_wait(runner->together);
	if (!runner->err)
		runner->err = bpf_prog_test_run_opts(runner->program, &options);
	runner->took_ns = options.duration;
	return NULL;
}

unsigned probe_threads(void)
{
	cpu_set_t all;
	int count;

	if (sched_getaffinity(0, sizeof(all), &all))
		return 1;
	count = CPU_COUNT(&all);
	return count < PROBE_PARTS ? (unsigned)count : PROBE_PARTS;
}

/* *took_ns: what one run has taken, on average over the threads. */
static int run_together(int program, unsigned threads, unsigned repeat,
			void (*meanwhile)(void *context), void *context, unsigned *took_ns)
{
	struct runner runners[PROBE_PARTS];
	pthread_barrier_t together;
	uint64_t sum_ns = 0;
	unsigned started;
	int err = 0;

	pthread_barrier_init(&together, NULL, threads);
	for (started = 0; started < threads; started++) {
		runners[started] = (struct runner){
			.together = &together,
			.program = program,
			.cpu = started,
			.part = started,
			.repeat = repeat,
		};
		/* Those that wait already would wait for ever. */
		if (pthread_create(&runners[started].thread, NULL, run, &runners[started]))
			abort();
	}
	if (meanwhile)
		meanwhile(context);
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(runners[i].thread, NULL);
		err = err ? err : runners[i].err;
		sum_ns += runners[i].took_ns;
	}
	pthread_barrier_destroy(&together);
	*took_ns = (unsigned)(sum_ns / threads);
	return err;
}

int probe_run(int program, unsigned threads, unsigned repeat, void (*meanwhile)(void *context),
	      void *context)
{
	unsigned took_ns;

	return run_together(program, threads, repeat, meanwhile, context, &took_ns);
}

int probe_run_on(int program, unsigned number, unsigned repeat)
{
	struct runner runner = { .program = program, .cpu = number, .repeat = repeat };
	int err = pthread_create(&runner.thread, NULL, run, &runner);

	if (err)
		return -err;
	pthread_join(runner.thread, NULL);
	return runner.err;
}

/* The best of some rounds: what else the CPUs were busy with is not the machine's speed. All at
 * once, as in the tests: how dear it is that CPUs meet differs more than how fast each is. */
unsigned probe_slowness(int program)
{
	unsigned least_ns = UINT_MAX, took_ns;

	for (int round = 0; round < SLOWNESS_ROUNDS; round++)
		if (!run_together(program, probe_threads(), SLOWNESS_REPEAT, NULL, NULL,
				  &took_ns) &&
		    took_ns < least_ns)
			least_ns = took_ns;
	return least_ns == UINT_MAX ? 1 : 1 + least_ns / USUAL_NS;
}

const struct admission *probe_log_open(int map)
{
	void *log = mmap(NULL, log_bytes, PROT_READ, MAP_SHARED, map, 0);

	return log == MAP_FAILED ? NULL : log;
}

void probe_log_close(const struct admission *log)
{
	munmap((void *)log, log_bytes);
}
