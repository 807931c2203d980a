/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CLOCK_MONOTONIC for comparison with what BPF programs stored. They read the host's clock; in a time
 * namespace (some containers) ours is shifted, by what /proc/self/timens_offsets says.
 */
#include "base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { NS_PER_S = 1000000000 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int64_t namespace_offset_ns;

static void read_namespace_offset(void)
{
	FILE *file = fopen("/proc/self/timens_offsets", "re");
	char name[32];
	long long seconds, nanoseconds;

	if (!file)
		return;
	while (fscanf(file, "%31s %lld %lld", name, &seconds, &nanoseconds) == 3)
		if (!strcmp(name, "monotonic"))
			namespace_offset_ns = seconds * NS_PER_S + nanoseconds;
	(void)fclose(file);
}

uint64_t clock_monotonic_ns(void)
{
	struct timespec now;

	(void)pthread_once(&once, read_namespace_offset);
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec -
	       (uint64_t)namespace_offset_ns;
}

uint64_t clock_tick_ns(void)
{
	struct timespec tick;

	if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick))
		return 10000000; /* HZ=100, the longest there is */
	return (uint64_t)tick.tv_sec * NS_PER_S + (uint64_t)tick.tv_nsec;
}
