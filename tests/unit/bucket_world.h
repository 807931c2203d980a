/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A small table of buckets with two keys, A and B, that have the same home; what it may be like
 * when an operation begins; and the operations. For the tests that go step by step through each of
 * them.
 */
#ifndef SLUICE_BUCKET_WORLD_H
#define SLUICE_BUCKET_WORLD_H

#include "bucket_stress.h"

enum { SLOTS = 128, SHARD_SLOTS = SLOTS / BUCKET_SHARDS, CROWD = SHARD_SLOTS - 1 };

#define SECOND 1000000000ULL
#define START_NS (1000 * SECOND)

/* Hooks: a burst of 4, one a second. Bytes: a burst of 100, a hundred a second. */
static struct gcra_limit hooks, bytes;

struct world {
	struct bucket_slot *memory;
	struct buckets *buckets;
	uint32_t a, b;         /* keys with the same home */
	uint32_t crowd[CROWD]; /* others of their shard */
};

static struct bucket_result charge(struct world *world, uint32_t key, struct bucket_charge what)
{
	struct bucket_result result;

	what.key = &key;
	what.key_bytes = sizeof(key);
	what.hooks = &hooks;
	what.bytes = &bytes;
	buckets_charge(world->buckets, &what, stress_clock, &result);
	return result;
}

/* ---- operations */

static int charge_a(struct world *world)
{
	return charge(world, world->a, (struct bucket_charge){ .hook_tokens = 1 }).answer;
}

static int charge_a_bytes(struct world *world)
{
	return charge(world, world->a,
		      (struct bucket_charge){ .hook_tokens = 1, .byte_tokens = 30 })
		.answer;
}

static int charge_a_atomic(struct world *world)
{
	return charge(world, world->a,
		      (struct bucket_charge){ .hook_tokens = 1, .byte_tokens = 80, .atomic = true })
		.answer;
}

static int charge_a_over_burst(struct world *world)
{
	return charge(world, world->a, (struct bucket_charge){ .byte_tokens = 101 }).answer;
}

static int charge_b(struct world *world)
{
	return charge(world, world->b, (struct bucket_charge){ .hook_tokens = 1, .byte_tokens = 1 })
		.answer;
}

static int refund_a(struct world *world)
{
	struct bucket_charge what = {
		.key = &world->a,
		.key_bytes = sizeof(world->a),
		.hooks = &hooks,
		.hook_tokens = 1,
		.bytes = &bytes,
		.byte_tokens = 20,
	};

	buckets_refund(world->buckets, &what, stress_clock);
	return 0;
}

static int reset_a(struct world *world)
{
	(void)buckets_reset(world->buckets, &world->a, sizeof(world->a), stress_clock);
	return 0;
}

static int sweep(struct world *world)
{
	sweep_all(world->buckets);
	return 0;
}

static int look_at_a(struct world *world)
{
	return (int)charge(world, world->a, (struct bucket_charge){ .look_only = true })
		.hooks_remaining;
}

static const struct operation {
	const char *name;
	int (*run)(struct world *world);
} operations[] = {
	{ "charge", charge_a },
	{ "charge with bytes", charge_a_bytes },
	{ "atomic charge", charge_a_atomic },
	{ "charge over the burst", charge_a_over_burst },
	{ "charge of another", charge_b },
	{ "refund", refund_a },
	{ "reset", reset_a },
	{ "sweep", sweep },
	{ "look", look_at_a },
};

/* ---- what they begin with */

static void begin_empty(struct world *world)
{
	(void)world;
}

static void begin_passed(struct world *world)
{
	charge_a_bytes(world);
	fixed_now_ns += 100 * SECOND;
}

static void begin_in_debt(struct world *world)
{
	charge_a_bytes(world);
	fixed_now_ns++;
}

static void begin_reset(struct world *world)
{
	charge_a_bytes(world);
	reset_a(world);
	fixed_now_ns++;
}

static void begin_dropped(struct world *world)
{
	begin_passed(world);
	(void)charge(world, world->crowd[0], (struct bucket_charge){ .hook_tokens = 4 });
	sweep_all(world->buckets);
}

/* The shard is full, and only A's slot can be had. */
static void begin_crowded(struct world *world)
{
	begin_passed(world);
	for (int i = 0; i < CROWD; i++)
		(void)charge(world, world->crowd[i], (struct bucket_charge){ .hook_tokens = 4 });
}

static const struct beginning {
	const char *name;
	void (*run)(struct world *world);
} beginnings[] = {
	{ "never seen", begin_empty },
	{ "passed", begin_passed },
	{ "in debt", begin_in_debt },
	{ "reset", begin_reset },
	{ "dropped beside one", begin_dropped },
	{ "passed, shard full", begin_crowded },
};

/* ---- worlds */

/* The next key after `key` that has A's shard, and if wanted A's home. */
static uint32_t next_key(struct world *world, uint32_t key, bool same_home)
{
	struct slot_key a, other;

	slots_key(&world->buckets->slots, &world->a, sizeof(world->a), &a);
	do {
		key++;
		slots_key(&world->buckets->slots, &key, sizeof(key), &other);
	} while (other.shard != a.shard || (same_home && other.home != a.home));
	return key;
}

static struct world world_new(const struct beginning *beginning)
{
	struct world world = { .memory = memory_new(SLOTS), .a = 1 };

	fixed_now_ns = START_NS;
	world.buckets = open_buckets(world.memory, SLOTS);
	world.b = next_key(&world, world.a, true);
	for (int i = 0; i < CROWD; i++)
		world.crowd[i] = next_key(&world, i ? world.crowd[i - 1] : world.b, false);
	beginning->run(&world);
	return world;
}

static void world_free(struct world *world)
{
	buckets_free(world->buckets);
	free(world->memory);
}

enum outcome { ANSWER_FIRST, ANSWER_SECOND, HOOKS_A, BYTES_A, HOOKS_B, BYTES_B, OUTCOMES };

static const char *const outcome_names[] = { "answer of the first", "answer of the second",
					     "hooks of A",          "bytes of A",
					     "hooks of B",          "bytes of B" };

static void look_at_buckets(struct world *world, int outcome[OUTCOMES])
{
	struct bucket_charge look = { .look_only = true };
	struct bucket_result a, b;

	check_table(world->buckets);
	a = charge(world, world->a, look);
	b = charge(world, world->b, look);
	outcome[HOOKS_A] = (int)a.hooks_remaining;
	outcome[BYTES_A] = (int)a.bytes_remaining;
	outcome[HOOKS_B] = (int)b.hooks_remaining;
	outcome[BYTES_B] = (int)b.bytes_remaining;
}

static int make_limits(void **state)
{
	(void)state;
	hooks = limit_of(SECOND, 4);
	bytes = limit_of(SECOND / 100, 100);
	return 0;
}

#endif
