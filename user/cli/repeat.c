/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Waiting between repetitions, ended by a signal. */
#include "cli/repeat.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>

enum { NS_PER_S = 1000000000 };

static volatile sig_atomic_t is_over;

static void end(int number)
{
	(void)number;
	is_over = 1;
}

void repeat_until_signal(void)
{
	struct sigaction action = { .sa_handler = end };

	(void)sigaction(SIGINT, &action, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
}

bool repeat_wait(uint64_t interval_ns)
{
	const struct timespec pause = { .tv_sec = (time_t)(interval_ns / NS_PER_S),
					.tv_nsec = (long)(interval_ns % NS_PER_S) };

	if (fflush(stdout))
		return false;
	if (!is_over)
		(void)nanosleep(&pause, NULL);
	return !is_over;
}

bool repeat_is_over(void)
{
	return is_over;
}
