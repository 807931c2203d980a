/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ten thousand random configurations, put in force by the product's own code (dataplane/apply.h)
 * while frames are run through the programs without pause: what becomes of each frame is what the
 * old or the new configuration says, and never what a mixture of the two would.
 *
 * The check is exact because every configuration here is certain about every frame, whatever was
 * charged before: limits are either wider than all frames of the test or narrower than one frame,
 * lists, ports and dry runs do not depend on state, some addresses find their set taken for good,
 * and the daemon's bucket of the node is in debt all the time. model() says what is certain.
 *
 * Threads. Each world has programs and maps of its own, one swapper, and a reader for each of at
 * most two CPUs, so that the per-CPU counters of a world on a CPU move for its reader only. A
 * reader runs one frame a few hundred times in one go, and looks how far the swapper had come:
 * `finished` before, `started` after. The swapper raises `started` before it turns over and
 * `finished` after, so the configurations from `finished` to `started` are all that may have
 * decided. A plan is written before its number is in `started`, and never again.
 *
 * Worlds are many because a swap waits for an RCU grace period, and they can wait together.
 */
#include "harness.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>

#include "dataplane/apply.h"
#include "sluice_test.skel.h"
#include "swap_plan.h"

enum {
	SWAPS = 10000,
	WORLDS = 8,
	READERS_MAX = 2,
	REPEAT_MAX = 400,
	CPUS_MAX = 1024,
	TC_PASSES = -1,
	TC_REFUSES = 2,
};

struct world {
	struct sluice_test_bpf *skeleton;
	struct maps maps;
	struct hooks *hooks;
	struct plan *plans;
	unsigned number, swaps;
	uint64_t seed;
	atomic_uint started, finished;
	atomic_bool done;
	/* The first thing that went wrong; whoever gets to write it has made `failed` true. */
	atomic_bool failed;
	char failure[256];
	atomic_ullong frames, between; /* run, and of these between two configurations */
};

struct reader {
	struct world *world;
	unsigned number, count; /* of the readers of this world */
	int cpu;
	uint64_t seed;
	pthread_t thread;
};

static void fail_world(struct world *world, const char *what, unsigned plan, unsigned frame)
{
	if (atomic_exchange(&world->failed, true))
		return;
	snprintf(world->failure, sizeof(world->failure), "world %u, configuration %u, frame %u: %s",
		 world->number, plan, frame, what);
}

/* ---- a reader */

/* The counters of this CPU. */
static bool read_counters(const struct reader *reader, struct counter counters[REASONS])
{
	static _Thread_local struct counter of_cpu[REASONS * CPUS_MAX];
	static _Thread_local uint32_t keys[REASONS];
	uint32_t next = 0, count = REASONS;
	int cpus = libbpf_num_possible_cpus();
	int err = bpf_map_lookup_batch(reader->world->maps.fd[MAP_COUNTERS], NULL, &next, keys,
				       of_cpu, &count, NULL);

	if ((err && err != -ENOENT) || count != REASONS || cpus > CPUS_MAX)
		return false;
	for (uint32_t at = 0; at < REASONS; at++)
		counters[keys[at]] = of_cpu[at * (uint32_t)cpus + (uint32_t)reader->cpu];
	return true;
}

/* The last verdict; negative: it could not be run, or is none. */
static int run_frame(const struct world *world, const struct frame *frame, bool tc, int repeat)
{
	struct xdp_md xdp = { .data_end = frame->bytes, .ingress_ifindex = 1 };
	struct __sk_buff skb = { .ifindex = 1 };
	const struct bpf_program *program =
		tc ? world->skeleton->progs.sluice_tc : world->skeleton->progs.sluice_frags;
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame->byte,
		    .data_size_in = frame->bytes, .repeat = repeat);
	int err, verdict;

	options.ctx_in = tc ? (void *)&skb : (void *)&xdp;
	options.ctx_size_in = tc ? sizeof(skb) : sizeof(xdp);
	err = bpf_prog_test_run_opts(bpf_program__fd(program), &options);
	verdict = (int)options.retval;
	if (err)
		return err < 0 ? err : -EINVAL;
	if (verdict == (tc ? TC_PASSES : XDP_PASS))
		return XDP_PASS;
	return verdict == (tc ? TC_REFUSES : XDP_DROP) ? XDP_DROP : -EINVAL;
}

/* By how much the counters have moved, by reason. */
struct movement {
	uint64_t packets[REASONS];
	uint64_t would[REASONS];
};

static struct movement moved(const struct counter *before, const struct counter *after)
{
	struct movement by;

	for (int reason = 0; reason < REASONS; reason++) {
		by.packets[reason] = after[reason].packets - before[reason].packets;
		by.would[reason] = after[reason].would_packets - before[reason].would_packets;
	}
	return by;
}

/* Whether it is what one configuration makes of some of the frames and another of the others. */
static bool is_share(const struct movement *by, const struct certain *one, uint64_t of_one,
		     const struct certain *other, uint64_t of_other)
{
	for (int reason = 0; reason < REASONS; reason++) {
		uint32_t bit = 1u << reason;

		if (by->packets[reason] != (one->counted & bit ? of_one : 0) +
						   (other->counted & bit ? of_other : 0) ||
		    by->would[reason] !=
			    (one->would & bit ? of_one : 0) + (other->would & bit ? of_other : 0))
			return false;
	}
	return true;
}

/* With two configurations all counters have to add up. More only come between when a reader is kept
 * from running; then each reason has to be one that some of them gives. */
static bool is_certain(const struct world *world, unsigned first, unsigned last, unsigned frame,
		       const struct movement *by, uint64_t repeat)
{
	struct certain one = plan_model(&world->plans[first], frame);
	struct certain other = plan_model(&world->plans[last], frame);

	if (last - first <= 1) {
		for (uint64_t of_one = 0; of_one <= repeat; of_one++)
			if (is_share(by, &one, of_one, &other, repeat - of_one))
				return true;
		return false;
	}
	for (unsigned at = first; at <= last; at++) {
		other = plan_model(&world->plans[at], frame);
		one.counted |= other.counted;
		one.would |= other.would;
	}
	for (int reason = 0; reason < REASONS; reason++)
		if ((by->packets[reason] && !(one.counted & 1u << reason)) ||
		    (by->would[reason] && !(one.would & 1u << reason)))
			return false;
	return true;
}

/* Reason=packets/packets in a dry run, and what each of two configurations would have made of it.
 */
static const char *describe(const struct world *world, unsigned first, unsigned last,
			    unsigned frame, const struct movement *by)
{
	static _Thread_local char text[200];
	struct certain one = plan_model(&world->plans[first], frame);
	struct certain other = plan_model(&world->plans[last], frame);
	int at = snprintf(text, sizeof(text), "from %u (%#x/%#x) to %u (%#x/%#x) counted", first,
			  one.counted, one.would, last, other.counted, other.would);

	for (int reason = 0; reason < REASONS && at < (int)sizeof(text); reason++)
		if (by->packets[reason] || by->would[reason])
			at += snprintf(text + at, sizeof(text) - (size_t)at, " %d=%llu/%llu",
				       reason, (unsigned long long)by->packets[reason],
				       (unsigned long long)by->would[reason]);
	return text;
}

static bool is_certain_verdict(const struct world *world, unsigned first, unsigned last,
			       unsigned frame, int verdict)
{
	for (unsigned at = first; at <= last; at++)
		if (plan_model(&world->plans[at], frame).drops == (verdict == XDP_DROP))
			return true;
	return false;
}

static void read_once(struct reader *reader, unsigned frame, bool tc, int repeat)
{
	struct world *world = reader->world;
	struct counter before[REASONS], after[REASONS];
	unsigned finished, started;
	struct movement by;
	int verdict;

	if (!read_counters(reader, before))
		return fail_world(world, "the counters cannot be read", 0, frame);
	finished = atomic_load(&world->finished);
	verdict = run_frame(world, plan_frame(frame), tc, repeat);
	started = atomic_load(&world->started);
	if (verdict < 0 || !read_counters(reader, after))
		return fail_world(world, "it cannot be run", started, frame);
	by = moved(before, after);
	if (!is_certain_verdict(world, finished, started, frame, verdict))
		fail_world(world, "a verdict of none of the configurations", started, frame);
	if (!is_certain(world, finished, started, frame, &by, (uint64_t)repeat))
		fail_world(world, describe(world, finished, started, frame, &by), started, frame);
	atomic_fetch_add(&world->frames, (unsigned)repeat);
	if (started - finished == 1)
		atomic_fetch_add(&world->between, (unsigned)repeat);
}

static void *read_on(void *argument)
{
	struct reader *reader = argument;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(reader->cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set)) {
		fail_world(reader->world, "a reader cannot be put on its CPU", 0, 0);
		return NULL;
	}
	while (!atomic_load(&reader->world->done) && !atomic_load(&reader->world->failed)) {
		unsigned frame = (unsigned)plan_draw(&reader->seed, PLAN_FRAMES);
		bool tc = plan_draw(&reader->seed, 2);

		if (plan_address_of(frame) % reader->count != reader->number)
			continue;
		read_once(reader, frame, tc, 1 + (int)plan_draw(&reader->seed, REPEAT_MAX));
	}
	return NULL;
}

/* ---- the swapper */

static int prepare(struct world *world, const struct plan *plan)
{
	struct setting_prefix prefixes[PLAN_PREFIXES_MAX];
	struct trouble trouble = {};
	struct settings settings;

	plan_settings(plan, &settings, prefixes);
	return apply_prepare(&world->maps, &settings, &trouble);
}

static void *swap(void *argument)
{
	struct world *world = argument;

	for (unsigned at = 1; at <= world->swaps && !atomic_load(&world->failed); at++) {
		if (prepare(world, &world->plans[at])) {
			fail_world(world, "a configuration cannot be prepared", at, 0);
			break;
		}
		/* Time goes on, so that no wide limit is ever used up. */
		world->skeleton->bss->fake_now_ns += SECOND_NS;
		atomic_store(&world->started, at);
		apply_turn_over(&world->maps);
		atomic_store(&world->finished, at);
	}
	atomic_store(&world->done, true);
	return NULL;
}

/* ---- a world */

static void load(struct world *world)
{
	struct sluice_test_bpf *skeleton = sluice_test_bpf__open();
	int fd[MAPS];

	assert_non_null(skeleton);
	bpf_program__set_autoload(skeleton->progs.sluice_xdp, false);
	bpf_program__set_autoload(skeleton->progs.sluice_arm, false);
	assert_int_equal(sluice_test_bpf__load(skeleton), 0);
	for (int id = 0; id < MAPS; id++)
		fd[id] = bpf_map__fd(
			bpf_object__find_map_by_name(skeleton->obj, map_name((enum map_id)id)));
	assert_int_equal(maps_adopt(&world->maps, fd), 0);
	assert_int_equal(apply_found(&world->maps), 0);
	skeleton->bss->fake_now_ns = HARNESS_START_NS;
	world->skeleton = skeleton;
}

/* Fill a set with claims of tags that are not the address's. */
static void take_set(struct bucket_set *set, const struct place *place)
{
	uint32_t taken = 0;

	for (uint32_t tag = 1; taken < SET_WORDS; tag++) {
		bool is_own = false;

		for (uint32_t meter = 0; meter < METERS; meter++)
			is_own |= tag == place_tag(place, meter);
		if (!is_own)
			set->word[taken++] = word_claim(tag);
	}
}

/* The sets of some addresses are taken for good. With this secret no two addresses share a set. */
static void take_sets(struct world *world)
{
	uint32_t sets[PLAN_ADDRESSES];

	world->maps.config->secret = (struct siphash_key){ { 1, world->number } };
	for (unsigned number = 0; number < PLAN_ADDRESSES; number++) {
		union address key = address_key(plan_address(number), PLAN_IPV6_PREFIX);
		struct place place = key_place(&world->maps.config->secret, &key, IP_SETS - 1);

		sets[number] = place.set;
		for (unsigned other = 0; other < number; other++)
			assert_true(sets[other] != place.set);
		if (plan_is_crowded(number))
			take_set(&world->maps.ip_buckets[place.set], &place);
	}
}

/* The daemon's bucket of the node, in debt for longer than the test lasts, by the limit that every
 * plan has. */
static void put_daemon_in_debt(struct world *world)
{
	const struct config_slot *slot = maps_slot(&world->maps);
	struct hooks hooks = { .limits_digest = slot->hooks_digest };
	uint32_t only = 0;

	hooks.node_tat = gcra_ticks(HARNESS_START_NS, GCRA_TICK_SHIFT) + slot->node_hooks.capacity;
	assert_int_equal(bpf_map_update_elem(world->maps.fd[MAP_HOOKS], &only, &hooks, BPF_ANY), 0);
}

static void open_world(struct world *world, unsigned number, unsigned swaps)
{
	*world = (struct world){ .number = number, .swaps = swaps, .seed = 1000 + number };
	load(world);
	take_sets(world);
	world->plans = calloc(swaps + 1, sizeof(*world->plans));
	assert_non_null(world->plans);
	for (unsigned at = 0; at <= swaps; at++)
		plan_draw_one(&world->plans[at], &world->seed);
	assert_int_equal(prepare(world, &world->plans[0]), 0);
	apply_turn_over(&world->maps);
	put_daemon_in_debt(world);
}

static void close_world(struct world *world)
{
	maps_close(&world->maps);
	sluice_test_bpf__destroy(world->skeleton);
	free(world->plans);
}

static int online_cpus(int cpus[READERS_MAX])
{
	cpu_set_t set;
	int count = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE && count < READERS_MAX; cpu++)
		if (CPU_ISSET(cpu, &set))
			cpus[count++] = cpu;
	return count;
}

static void no_frame_meets_a_mixture_of_two_configurations(void **state)
{
	static struct world worlds[WORLDS];
	static struct reader readers[WORLDS][READERS_MAX];
	unsigned swaps = test_repeat(SWAPS) / WORLDS;
	pthread_t swappers[WORLDS];
	unsigned long long frames = 0, between = 0;
	int cpus[READERS_MAX], count = online_cpus(cpus);

	(void)state;
	plan_build_frames();
	for (unsigned at = 0; at < WORLDS; at++)
		open_world(&worlds[at], at, swaps);
	for (unsigned at = 0; at < WORLDS; at++) {
		for (int reader = 0; reader < count; reader++) {
			readers[at][reader] = (struct reader){
				.world = &worlds[at],
				.number = (unsigned)reader,
				.count = (unsigned)count,
				.cpu = cpus[reader],
				.seed = at * 100 + (unsigned)reader,
			};
			assert_int_equal(pthread_create(&readers[at][reader].thread, NULL, read_on,
							&readers[at][reader]),
					 0);
		}
		assert_int_equal(pthread_create(&swappers[at], NULL, swap, &worlds[at]), 0);
	}
	for (unsigned at = 0; at < WORLDS; at++) {
		pthread_join(swappers[at], NULL);
		for (int reader = 0; reader < count; reader++)
			pthread_join(readers[at][reader].thread, NULL);
		frames += atomic_load(&worlds[at].frames);
		between += atomic_load(&worlds[at].between);
	}
	print_message("# %u swaps under %llu frames, %llu of them between two configurations\n",
		      swaps * WORLDS, frames, between);
	for (unsigned at = 0; at < WORLDS; at++) {
		if (atomic_load(&worlds[at].failed))
			fail_msg("%s", worlds[at].failure);
		close_world(&worlds[at]);
	}
	assert_true(between > 0);
}

/* What the model says is worth checking: each reason is certain for some plan and frame. */
static void the_plans_give_every_reason(void **state)
{
	uint32_t counted = 0, would = 0;
	uint64_t seed = 1;
	struct plan plan;

	(void)state;
	plan_build_frames();
	for (int drawn = 0; drawn < 1000; drawn++) {
		plan_draw_one(&plan, &seed);
		for (unsigned frame = 0; frame < PLAN_FRAMES; frame++) {
			struct certain certain = plan_model(&plan, frame);

			counted |= certain.counted;
			would |= certain.would;
		}
	}
	assert_int_equal(counted, PLAN_REASONS | 1u << REASON_UNPROTECTED | 1u << REASON_EXEMPT |
					  1u << REASON_ADMITTED);
	assert_int_equal(would, PLAN_REASONS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_plans_give_every_reason),
		cmocka_unit_test(no_frame_meets_a_mixture_of_two_configurations),
	};

	return cmocka_run_group_tests_name("swaps", tests, NULL, NULL);
}
