/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bpf/table.h, compiled for the host, and threads that charge one set of it at once. A thread can
 * lose the CPU anywhere: before and after each compare-and-swap and after each look at the clock it
 * may yield or sleep, which a program in softirq cannot. Two things can be put wrong by hand.
 *
 * Included by one program, test_table.c, since table.h defines functions.
 */
#ifndef SLUICE_TABLE_STRESS_H
#define SLUICE_TABLE_STRESS_H

#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/bpf/replay.h"

static __u64 swap_held_up(__u64 *word, __u64 from, __u64 to);
static int second_look(const struct bucket_set *set, __u32 tag, __u32 index);
int table_has_other_1(const struct bucket_set *set, __u32 tag, __u32 index);

/* table.h names table_has_other() three times: it declares it (0), defines it (1), calls it (2). */
#define NAME_AGAIN(name, number) name##number
#define NAME(name, number) NAME_AGAIN(name, number)
#define table_has_other NAME(table_has_other_, __COUNTER__)
#define table_has_other_2 second_look
#define __sync_val_compare_and_swap swap_held_up
#include "bpf/table.h"
#undef table_has_other
#undef __sync_val_compare_and_swap

#if defined(__SANITIZE_THREAD__)
enum { OPERATIONS = 100000 };
#else
enum { OPERATIONS = 500000 };
#endif

enum { THREADS = 4, KEYS_MAX = 16, COARSE_LAG_NS = 11000000 };

/* What is put wrong by hand. */
static bool skips_second_look, reads_clock_first;
/* Not 0: all clocks say this, and nobody is held up. */
static uint64_t fixed_now_ns;

static __thread uint64_t random_state;
static __thread uint64_t first_clock_ns;

static uint64_t draw(void)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static void hold_up(void)
{
	uint64_t drawn;

	if (fixed_now_ns)
		return;
	drawn = draw();
	if (drawn % 65536 == 0)
		usleep(50);
	else if (drawn % 32 == 0)
		sched_yield();
}

static uint64_t read_clock(clockid_t clock)
{
	struct timespec now;

	if (fixed_now_ns)
		return fixed_now_ns;
	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

__u64 clock_now_ns(void)
{
	uint64_t now_ns = reads_clock_first ? first_clock_ns : read_clock(CLOCK_MONOTONIC);

	hold_up();
	return now_ns;
}

__u64 clock_coarse_ns(void)
{
	return read_clock(CLOCK_MONOTONIC_COARSE);
}

static __u64 swap_held_up(__u64 *word, __u64 from, __u64 to)
{
	hold_up();
	__atomic_compare_exchange_n(word, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	hold_up();
	return from;
}

static int second_look(const struct bucket_set *set, __u32 tag, __u32 index)
{
	return skips_second_look ? 0 : table_has_other_1(set, tag, index);
}

/* One scenario, and what all its threads share. */
struct stress {
	const char *name;
	uint32_t keys;
	uint32_t classes;     /* of words, among which the keys' limits are spread */
	uint64_t interval_ns; /* times slowness */
	uint64_t burst;
	enum when_full when_full;
	bool fine_coarse; /* judge by a fine clock, so that words pass between ticks too */
	bool sweeps;
	unsigned least_percent; /* of what was asked, admitted: else the test would show little */
};

struct shared {
	const struct stress *stress;
	struct bucket_set set __attribute__((aligned(64)));
	struct gcra_limit limits[KEYS_MAX];
	bool stop;
};

struct worker {
	struct shared *shared;
	struct refusal_seen seen[KEYS_MAX]; /* as a CPU keeps them */
	pthread_t thread;
	unsigned number;
	struct admission *log;
	size_t logged;
	uint64_t answers[5];
};

/* A limit whose interval is whole in its class's ticks, so that the replay needs no slack for it.
 */
static struct gcra_limit limit_of(uint32_t class, uint64_t interval_ns, uint64_t burst)
{
	struct gcra_limit limit = {
		.burst = burst,
		.word_class = (__u8) class,
		.tick_shift = word_tick_shift(class),
	};

	limit.interval = gcra_ticks(interval_ns, limit.tick_shift);
	limit.capacity = limit.interval * burst;
	return limit;
}

static struct table_request request_of(const struct shared *shared, uint32_t key)
{
	struct table_request request = {
		.tokens = 1,
		.coarse_ns = shared->stress->fine_coarse ? read_clock(CLOCK_MONOTONIC)
							 : clock_coarse_ns(),
		.coarse_lag_ns = COARSE_LAG_NS,
		.tag = key + 1,
		/* All begin at the same word, so that they are in one another's way. */
		.way = 0,
		.when_full = shared->stress->when_full,
	};

	return request;
}

static void log_admission(struct worker *worker, uint32_t key, const struct table_outcome *outcome)
{
	worker->log[worker->logged++] = (struct admission){ outcome->now_ns, key, 1 };
}

static enum taken ask(struct worker *worker, uint32_t key)
{
	struct shared *shared = worker->shared;
	struct table_request request = request_of(shared, key);
	struct table_outcome outcome = {};
	enum taken taken;

	first_clock_ns = reads_clock_first ? read_clock(CLOCK_MONOTONIC) : 0;
	taken = table_take(&shared->set, &shared->limits[key], &request, &outcome,
			   &worker->seen[key]);
	worker->answers[taken]++;
	if (taken == TAKEN_ADMITTED && !(outcome.notes & 1u << NOTE_SET_FULL_ADMITTED))
		log_admission(worker, key, &outcome);
	return taken;
}

static void *work(void *argument)
{
	struct worker *worker = argument;

	random_state = worker->number * 0x1234567ULL;
	for (int i = 0; i < OPERATIONS; i++)
		ask(worker, (uint32_t)(draw() % worker->shared->stress->keys));
	return NULL;
}

/* What bpf/sweep.h does to a set. */
static void *sweep(void *argument)
{
	struct shared *shared = argument;

	random_state = 99;
	while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED)) {
		uint64_t now_ns = clock_now_ns();

		for (uint32_t index = 0; index < SET_WORDS; index++) {
			uint64_t word = table_read(&shared->set, index);

			if (word != WORD_EMPTY && word_has_passed(word, now_ns))
				table_swap(&shared->set, index, word, WORD_EMPTY);
		}
		sched_yield();
	}
	return NULL;
}

static void run_threads(struct shared *shared, struct worker *workers)
{
	pthread_t sweeper;

	if (shared->stress->sweeps)
		assert_int_equal(pthread_create(&sweeper, NULL, sweep, shared), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .shared = shared, .number = i + 1 };
		workers[i].log = malloc(OPERATIONS * sizeof(*workers[i].log));
		assert_non_null(workers[i].log);
	}
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	__atomic_store_n(&shared->stop, true, __ATOMIC_RELAXED);
	if (shared->stress->sweeps)
		pthread_join(sweeper, NULL);
}

static void set_limits(struct shared *shared, struct reference *references, unsigned factor)
{
	const struct stress *stress = shared->stress;

	uint64_t interval_ns = stress->interval_ns * factor;

	for (uint32_t key = 0; key < stress->keys; key++) {
		uint32_t class = key % stress->classes;

		shared->limits[key] = limit_of(class, interval_ns, stress->burst);
		references[key] = (struct reference){
			.tokens = 1,
			.period_ns = interval_ns,
			.burst = stress->burst,
			/* A tick longer than a nanosecond cuts off so much of each date. */
			.slack_ns = class >= 2 ? (1u << -word_tick_shift(class)) - 1 : 0,
		};
	}
}

#endif
