/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What charging a tenant's bucket costs in process, without any server around it, and how many
 * bytes a tenant takes: one tenant, whose bucket all threads fight for, and a million, whose
 * buckets lie in memory and not in a cache. Times are CPU time of the charging thread, so that the
 * machine's other work shows in them only as far as it wears out the caches.
 *
 * The peer does what cannot be saved, and nothing else: it reads the clock, and swaps a word that
 * lies as far away.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <sluice/slot.h>

#include "base/clock.h"
#include "limit/buckets.h"
#include "limit/build.h"
#include "tests/bench/lib/report.h"

enum {
	TENANTS = 1000000,
	SLOTS = 1 << 21,
	SLOTS_TIGHT = 1 << 20, /* 95 % full of a million */
	CHARGES = 500000,      /* of a thread, in a run; a multiple of BATCH */
	THREADS_MAX = 2,
	KEY_BYTES = 13,
	BATCH = 16, /* as many commands as redis-benchmark -P 16 sends at once */
};

/* Never refused: a refusal costs less. */
static const struct rate_limit plenty = { .rate = 1e8, .burst = 100000000 };
/* In debt for as long as this runs: no tenant makes room for another. */
static const struct rate_limit slow = { .rate = 0.001, .burst = 1000 };
static const struct siphash_key secret = { { 0x0706050403020100, 0x0f0e0d0c0b0a0908 } };

/* In the order in which they are charged, which has nothing to do with where their slots are. */
static char (*keys)[KEY_BYTES + 1];

struct world {
	struct bucket_slot *memory;
	size_t slots;
	size_t tenants;
	struct buckets *buckets;
	struct gcra_limit limit;
};

/* What one thread does. */
struct load {
	struct world *world;
	pthread_barrier_t *start;
	void (*run)(struct load *load);
	unsigned number; /* of the thread, from 0 */
	size_t first;    /* key */
	uint64_t refused;
	double ns; /* of CPU time, a charge */
};

static _Thread_local uint64_t cached_ns;

static uint64_t cached_clock(void)
{
	return cached_ns;
}

static double cpu_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void charge(struct load *load, size_t at, uint64_t (*clock)(void))
{
	const struct bucket_charge charge = {
		.key = keys[(load->first + at) % load->world->tenants],
		.key_bytes = KEY_BYTES,
		.hooks = &load->world->limit,
		.hook_tokens = 1,
	};
	struct bucket_result result;

	buckets_charge(load->world->buckets, &charge, clock, &result);
	load->refused += result.answer != BUCKETS_ADMITTED;
}

static void run_charges(struct load *load)
{
	for (size_t at = 0; at < CHARGES; at++)
		charge(load, at, clock_monotonic_ns);
}

static void prefetch(struct load *load, size_t first)
{
	struct world *world = load->world;

	for (size_t at = first; at < first + BATCH; at++)
		buckets_prefetch(world->buckets, keys[(load->first + at) % world->tenants],
				 KEY_BYTES);
}

/* As many at once as a pipeline brings. */
static void run_batches(struct load *load)
{
	for (size_t at = 0; at < CHARGES; at++) {
		if (at % BATCH == 0)
			prefetch(load, at);
		charge(load, at, clock_monotonic_ns);
	}
}

/* The clock once for all of them, as is right for one thread alone: how much of it is the clock. */
static void run_timeless(struct load *load)
{
	for (size_t at = 0; at < CHARGES; at++) {
		if (at % BATCH == 0) {
			prefetch(load, at);
			cached_ns = clock_monotonic_ns();
		}
		charge(load, at, cached_clock);
	}
}

static void run_peer(struct load *load)
{
	struct world *world = load->world;
	uint64_t state = load->first + 1;

	for (size_t at = 0; at < CHARGES; at++) {
		__u64 *word, before;

		state = state * 6364136223846793005 + 1442695040888963407;
		word = &world->memory[world->tenants == 1 ? 0 : (state >> 33) % world->slots]
				.tat[0];
		before = __atomic_load_n(word, __ATOMIC_ACQUIRE);
		load->refused +=
			!__atomic_compare_exchange_n(word, &before, clock_monotonic_ns(), false,
						     __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE);
	}
}

/* Each on a CPU of its own, where there are as many: on one they would only take turns. */
static void settle(unsigned number)
{
	cpu_set_t all, one;

	if (sched_getaffinity(0, sizeof(all), &all))
		return;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all) || number--)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		(void)sched_setaffinity(0, sizeof(one), &one);
		return;
	}
}

static void *run_thread(void *data)
{
	struct load *load = data;
	double start_ns;

	settle(load->number);
	(void)pthread_barrier_wait(load->start);
	start_ns = cpu_ns();
	load->run(load);
	load->ns = (cpu_ns() - start_ns) / CHARGES;
	return NULL;
}

/* All threads at once; what a charge took on the average. */
static int run_threads(struct world *world, void (*run)(struct load *), unsigned threads,
		       struct runs *runs)
{
	struct load loads[THREADS_MAX] = { 0 };
	pthread_t ids[THREADS_MAX];
	pthread_barrier_t start;
	double ns = 0;
	int err = pthread_barrier_init(&start, NULL, threads);

	if (err)
		return -err;
	for (unsigned i = 0; i < threads; i++) {
		loads[i] = (struct load){
			.world = world,
			.start = &start,
			.run = run,
			.number = i,
			.first = (size_t)i * CHARGES,
		};
		err = pthread_create(&ids[i], NULL, run_thread, &loads[i]);
		if (err) {
			report_progress("buckets: no thread: %s", strerror(err));
			exit(1); /* the others wait at the barrier */
		}
	}
	for (unsigned i = 0; i < threads; i++) {
		(void)pthread_join(ids[i], NULL);
		ns += loads[i].ns / threads;
		if (loads[i].refused && run != run_peer)
			report_progress("buckets: %" PRIu64 " charges were refused",
					loads[i].refused);
	}
	(void)pthread_barrier_destroy(&start);
	runs_add(runs, ns);
	return 0;
}

static void *map_slots(size_t slots)
{
	void *memory = mmap(NULL, slots * BUCKET_SLOT_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static void world_close(struct world *world)
{
	buckets_free(world->buckets);
	if (world->memory)
		(void)munmap(world->memory, world->slots * BUCKET_SLOT_BYTES);
	*world = (struct world){ 0 };
}

/* Buckets with a slot for each tenant, or for as many as there is room for. */
static int world_open(struct world *world, size_t slots, size_t tenants,
		      const struct rate_limit *wanted)
{
	struct load load = { .world = world };
	uint64_t longest;
	int err;

	*world = (struct world){ .slots = slots, .tenants = tenants, .memory = map_slots(slots) };
	if (!world->memory)
		return -ENOMEM;
	err = limit_build(wanted, BUCKET_WHOLE, &world->limit, &longest);
	if (!err)
		err = buckets_new(world->memory, slots, &secret, clock_monotonic_ns(),
				  &world->buckets);
	if (err) {
		world_close(world);
		return err;
	}
	for (size_t at = 0; at < tenants; at++)
		charge(&load, at, clock_monotonic_ns);
	return 0;
}

static void report_charge(const char *how, unsigned threads, size_t tenants,
			  const struct runs *runs, const struct runs *peer)
{
	char name[80];

	snprintf(name, sizeof(name), "charge, %s, %s%s", tenants == 1 ? "1 tenant" : "1 M tenants",
		 threads == 1 ? "1 thread" : "2 threads", how);
	report_print(&(struct report){
		.name = name,
		.unit = "ns",
		.figure = runs_median(runs),
		.peer = peer ? "clock, and a swap" : NULL,
		.peer_figure = peer ? runs_median(peer) : 0,
		.kind = peer || tenants == 1 ? MARK_NONE : MARK_AT_MOST,
		.mark = 100,
	});
}

static int measure_charges(struct world *world, struct world *scratch, unsigned threads)
{
	static void (*const how[])(struct load *) = { run_charges, run_batches, run_timeless };
	static const char *const names[] = { "", ", 16 at once", ", 16, one clock" };
	struct runs runs[sizeof(how) / sizeof(*how)] = { 0 }, peer = { 0 };
	/* There is nothing to fetch beforehand for one tenant. */
	size_t ways = world->tenants == 1 ? 1 : sizeof(how) / sizeof(*how);
	int err = 0;

	for (int round = 0; !err && round < REPORT_RUNS; round++) {
		for (size_t way = 0; !err && way < ways; way++)
			err = run_threads(world, how[way], threads, &runs[way]);
		if (!err)
			err = run_threads(scratch, run_peer, threads, &peer);
	}
	if (err)
		return err;
	for (size_t way = 0; way < ways; way++)
		report_charge(names[way], threads, world->tenants, &runs[way], NULL);
	report_charge(names[0], threads, world->tenants, &runs[0], &peer);
	return 0;
}

static int measure(size_t tenants)
{
	struct world world = { 0 }, scratch = { 0 };
	int err = world_open(&world, SLOTS, tenants, &plenty);

	if (!err)
		err = world_open(&scratch, SLOTS, tenants, &plenty);
	for (unsigned threads = 1; !err && threads <= THREADS_MAX; threads++)
		err = measure_charges(&world, &scratch, threads);
	world_close(&world);
	world_close(&scratch);
	return err;
}

/* Of the memory that is shared with BPF; what the process keeps beside it, bench_daemon counts. */
static int measure_memory(size_t slots, const char *name)
{
	struct world world;
	int err = world_open(&world, slots, TENANTS, &slow);
	size_t held;

	if (err)
		return err;
	held = buckets_count(world.buckets);
	report_progress("%zu of %d tenants have one of %zu slots", held, TENANTS, slots);
	report_print(&(struct report){
		.name = name,
		.unit = "B",
		.figure = (double)slots * BUCKET_SLOT_BYTES / (double)held,
		.kind = MARK_AT_MOST,
		.mark = 64 + KEY_BYTES,
	});
	world_close(&world);
	return 0;
}

/* Ids of KEY_BYTES each, shuffled. */
static int make_keys(void)
{
	uint64_t state = 1;

	keys = calloc(TENANTS, sizeof(*keys));
	if (!keys)
		return -ENOMEM;
	for (size_t at = 0; at < TENANTS; at++) {
		size_t other;

		state = state * 6364136223846793005 + 1442695040888963407;
		other = (state >> 33) % (at + 1);
		memcpy(keys[at], keys[other], sizeof(*keys));
		snprintf(keys[other], sizeof(*keys), "t%012zu", at);
	}
	return 0;
}

int main(void)
{
	int err = make_keys();

	report_progress("buckets");
	if (!err)
		err = measure(1);
	if (!err)
		err = measure(TENANTS);
	if (!err)
		err = measure_memory(SLOTS_TIGHT, "map bytes a tenant, a million for 2^20 slots");
	if (!err)
		err = measure_memory(SLOTS, "map bytes a tenant, a million in 2^21 slots");
	if (err)
		report_progress("buckets: could not run: %s", strerror(-err));
	free(keys);
	return err ? 1 : 0;
}
