/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * By a thread, since what takes long is a library call that knows nothing of terminals. Not by a
 * timer's signal: the kernel gives up verifying a program when one is pending. The thread holds no
 * lock but its own, and writes with nothing but write(2), so that the process may fork meanwhile.
 */
#include "cli/progress.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t over;
	bool is_running;
	bool is_over; /* under the lock, as the next */
	bool has_told;
	char text[120];
} progress = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void write_out(const char *text)
{
	ssize_t written = write(STDERR_FILENO, text, strlen(text));

	(void)written;
}

static void *tell(void *data)
{
	struct timespec next;

	(void)clock_gettime(CLOCK_MONOTONIC, &next);
	pthread_mutex_lock(&progress.lock);
	while (!progress.is_over) {
		next.tv_sec++;
		while (!progress.is_over &&
		       pthread_cond_timedwait(&progress.over, &progress.lock, &next) != ETIMEDOUT)
			;
		if (progress.is_over)
			break;
		write_out(progress.has_told ? "." : progress.text);
		progress.has_told = true;
	}
	pthread_mutex_unlock(&progress.lock);
	return data;
}

static int start(void)
{
	pthread_condattr_t clock;
	sigset_t all, before;
	int err;

	(void)pthread_condattr_init(&clock);
	(void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&progress.over, &clock);
	(void)pthread_condattr_destroy(&clock);
	/* Signals are the main thread's business. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&progress.thread, NULL, tell, NULL);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

void progress_begin(const char *what)
{
	if (progress.is_running || !isatty(STDERR_FILENO))
		return;
	(void)snprintf(progress.text, sizeof(progress.text), "sluice: %s ", what);
	progress.is_over = progress.has_told = false;
	progress.is_running = start() == 0;
}

void progress_end(void)
{
	if (!progress.is_running)
		return;
	pthread_mutex_lock(&progress.lock);
	progress.is_over = true;
	pthread_cond_signal(&progress.over);
	pthread_mutex_unlock(&progress.lock);
	(void)pthread_join(progress.thread, NULL);
	(void)pthread_cond_destroy(&progress.over);
	progress.is_running = false;
	if (progress.has_told)
		write_out("\n");
}
