/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A table of client addresses in memory that the test sees, a clock that it sets, and ways to ask.
 */
#ifndef SLUICE_ADDRESS_WORLD_H
#define SLUICE_ADDRESS_WORLD_H

#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sluice/word.h>

#include "limit/address_table.h"
#include "limit/build.h"

enum { NS_IN_S = 1000000000, WHOLE_IPV6 = 64 };

/* Longer than any test's limit. */
#define CAPACITY_NS (30ULL * 86400 * NS_IN_S)

static const struct siphash_key secret = { { 1, 2 } };

/* 0: the real one. */
static uint64_t fixed_now_ns;
static __thread uint64_t last_clock_ns;

static inline uint64_t test_clock(void)
{
	struct timespec now;

	last_clock_ns = fixed_now_ns;
	if (!fixed_now_ns) {
		(void)clock_gettime(CLOCK_MONOTONIC, &now);
		last_clock_ns = (uint64_t)now.tv_sec * NS_IN_S + (uint64_t)now.tv_nsec;
	}
	return last_clock_ns;
}

struct world {
	struct address_memory memory;
	struct hooks hooks;
	uint32_t set_count;
	struct address_table *table;
};

static inline struct bucket_set *new_sets(uint32_t set_count)
{
	struct bucket_set *sets = aligned_alloc(64, set_count * sizeof(*sets));

	assert_non_null(sets);
	memset(sets, 0, set_count * sizeof(*sets));
	return sets;
}

/* now_ns: what the clock says from now on; 0: the real one. */
static inline void world_make_at(struct world *world, uint32_t set_count, uint64_t now_ns)
{
	fixed_now_ns = now_ns;
	*world = (struct world){ .set_count = set_count };
	world->memory = (struct address_memory){ new_sets(set_count), &world->hooks };
	assert_int_equal(
		address_table_new(&world->memory, set_count, &secret, test_clock(), &world->table),
		0);
	address_table_announce(world->table, 1, CAPACITY_NS);
}

static inline void world_make(struct world *world, uint32_t set_count)
{
	world_make_at(world, set_count, 1000ULL * NS_IN_S);
}

static inline void world_end(struct world *world)
{
	address_table_free(world->table);
	free(world->memory.sets);
}

static inline struct gcra_limit limit_of_kind(double rate, uint64_t burst, enum bucket_kind kind)
{
	const struct rate_limit wanted = { .rate = rate, .burst = burst };
	struct gcra_limit limit;
	uint64_t longest;

	assert_int_equal(limit_build(&wanted, kind, &limit, &longest), 0);
	return limit;
}

static inline struct gcra_limit limit_of(double rate, uint64_t burst)
{
	return limit_of_kind(rate, burst, BUCKET_WORD);
}

static inline union address address_of(uint32_t number)
{
	union address address = { .byte = { [10] = 0xff, 0xff } };

	memcpy(&address.byte[12], &number, sizeof(number));
	return address;
}

static inline bool take(struct world *world, uint32_t number, const struct gcra_limit *limit)
{
	union address address = address_of(number);
	uint64_t wait_ns = 7;
	bool admitted = address_table_take(world->table, &address, WHOLE_IPV6, limit, 1, test_clock,
					   &wait_ns);

	assert_int_equal(admitted, wait_ns == 0);
	return admitted;
}

static inline bool take_from_node(struct world *world, unsigned stripe,
				  const struct gcra_limit *limit)
{
	uint64_t wait_ns = 7;
	bool admitted = address_table_take_node(world->table, stripe, limit, test_clock, &wait_ns);

	assert_int_equal(admitted, wait_ns == 0);
	return admitted;
}

static inline unsigned admitted_of(struct world *world, uint32_t number,
				   const struct gcra_limit *limit, unsigned times)
{
	unsigned admitted = 0;

	while (times--)
		admitted += take(world, number, limit);
	return admitted;
}

static inline size_t sweep_all(struct world *world)
{
	size_t cleared = 0;

	for (unsigned step = 0; step < ADDRESS_TABLE_STEPS; step++)
		cleared += address_table_sweep(world->table, step, test_clock());
	return cleared;
}

static inline unsigned words_in_use(const struct world *world)
{
	unsigned count = 0;

	for (uint32_t at = 0; at < world->set_count; at++)
		for (uint32_t index = 0; index < SET_WORDS; index++)
			count += world->memory.sets[at].word[index] != WORD_EMPTY;
	return count;
}

#endif
