/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waiting exactly as long as a refusal says is enough, and a nanosecond less is not (a tick less,
 * where those are longer): for a thousand limits drawn over the whole range, in each table that
 * says how long to wait.
 */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "limit/address_table.h"
#include "limit/buckets.h"
#include "limit/build.h"
#include "limit/cell_table.h"

enum { LIMITS = 1000, SLOTS = 128, SETS = 64, NS_IN_S = 1000000000 };

static const struct siphash_key secret = { { 1, 2 } };

static uint64_t now_ns, random_state;

static uint64_t test_clock(void)
{
	return now_ns;
}

/* splitmix64: the same draws in every run. */
static uint64_t draw(void)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* Every order of magnitude is as likely as any other. */
static double draw_between(double low, double high)
{
	return low * pow(high / low, (double)(draw() >> 11) / (double)(1ULL << 53));
}

/* A limit that the kind of bucket can hold. */
static struct gcra_limit draw_limit(enum bucket_kind kind, double rate_max, double burst_max)
{
	struct gcra_limit limit;
	uint64_t longest;

	for (;;) {
		struct rate_limit wanted = {
			.rate = draw_between(1.0 / 86400, rate_max),
			.burst = (uint64_t)draw_between(1, burst_max),
		};

		if (!limit_build(&wanted, kind, &limit, &longest))
			return limit;
	}
}

/* A table for each limit, of which tokens are taken: true, or false with the wait. */
struct table {
	const char *name;
	void (*make)(void);
	void (*free)(void);
	bool (*take)(uint32_t key, const struct gcra_limit *limit, uint64_t tokens,
		     uint64_t *wait_ns);
	enum bucket_kind kind;
	double rate_max, burst_max;
};

/* ---- tenants and sources */

static void *memory;
static struct buckets *buckets;

static void make_buckets(void)
{
	memory = aligned_alloc(64, SLOTS * BUCKET_SLOT_BYTES);
	assert_non_null(memory);
	memset(memory, 0, SLOTS * BUCKET_SLOT_BYTES);
	assert_int_equal(buckets_new(memory, SLOTS, &secret, now_ns, &buckets), 0);
}

static void free_buckets(void)
{
	buckets_free(buckets);
	free(memory);
}

static bool charge(struct bucket_charge *charge, uint32_t key, uint64_t *wait_ns)
{
	struct bucket_result result;

	charge->key = &key;
	charge->key_bytes = sizeof(key);
	buckets_charge(buckets, charge, test_clock, &result);
	assert_int_not_equal(result.answer, BUCKETS_FULL);
	*wait_ns = result.wait_ns;
	return result.answer == BUCKETS_ADMITTED;
}

static bool take_hooks(uint32_t key, const struct gcra_limit *limit, uint64_t tokens,
		       uint64_t *wait_ns)
{
	return charge(&(struct bucket_charge){ .hooks = limit, .hook_tokens = tokens }, key,
		      wait_ns);
}

static bool take_bytes(uint32_t key, const struct gcra_limit *limit, uint64_t tokens,
		       uint64_t *wait_ns)
{
	return charge(&(struct bucket_charge){ .bytes = limit, .byte_tokens = tokens }, key,
		      wait_ns);
}

/* Both at once: the wait is that of the slower, here of the bytes. */
static bool take_both(uint32_t key, const struct gcra_limit *limit, uint64_t tokens,
		      uint64_t *wait_ns)
{
	static const struct gcra_limit hooks = {
		.interval = 1 << GCRA_TICK_SHIFT,
		.capacity = 8 << GCRA_TICK_SHIFT,
		.burst = 8,
		.tick_shift = GCRA_TICK_SHIFT,
	};

	return charge(&(struct bucket_charge){ .hooks = &hooks,
					       .hook_tokens = 1,
					       .bytes = limit,
					       .byte_tokens = tokens,
					       .atomic = true },
		      key, wait_ns);
}

/* ---- addresses */

static struct bucket_set *sets;
static struct hooks address_hooks;
static struct address_table *addresses;

static void make_addresses(void)
{
	sets = aligned_alloc(64, SETS * sizeof(*sets));
	assert_non_null(sets);
	memset(sets, 0, SETS * sizeof(*sets));
	memset(&address_hooks, 0, sizeof(address_hooks));
	assert_int_equal(address_table_new(&(struct address_memory){ sets, &address_hooks }, SETS,
					   &secret, test_clock(), &addresses),
			 0);
}

static void free_addresses(void)
{
	address_table_free(addresses);
	free(sets);
}

static bool take_address(uint32_t key, const struct gcra_limit *limit, uint64_t tokens,
			 uint64_t *wait_ns)
{
	union address address = { .byte = { [10] = 0xff, 0xff } };

	memcpy(&address.byte[12], &key, sizeof(key));
	return address_table_take(addresses, &address, 64, limit, tokens, test_clock, wait_ns);
}

/* ---- CL.THROTTLE */

static struct cell_table *cells;

static void make_cells(void)
{
	assert_int_equal(cell_table_new(SLOTS, 1 << 16, &secret, &cells), 0);
}

static void free_cells(void)
{
	cell_table_free(cells);
}

/* The limit's interval in whole nanoseconds. */
static bool take_cell(uint32_t key, const struct gcra_limit *limit, uint64_t tokens,
		      uint64_t *wait_ns)
{
	struct cell_request request = {
		.burst = limit->burst,
		.interval_ns = 1 + (limit->interval >> limit->fraction_bits >> GCRA_TICK_SHIFT),
		.quantity = (int64_t)tokens,
	};
	struct cell_answer answer;

	assert_int_equal(cell_table_decide(cells, &key, sizeof(key), &request, test_clock, &answer),
			 0);
	*wait_ns = answer.retry_after_ns;
	return !answer.limited;
}

static const struct table tables[] = {
	{ "hooks", make_buckets, free_buckets, take_hooks, BUCKET_WHOLE, 1e8, 1e6 },
	{ "bytes", make_buckets, free_buckets, take_bytes, BUCKET_WHOLE_BYTES, 1e11, 1e12 },
	{ "hooks and bytes", make_buckets, free_buckets, take_both, BUCKET_WHOLE_BYTES, 1e11,
	  1e12 },
	{ "addresses", make_addresses, free_addresses, take_address, BUCKET_WORD, 1e7, 1e6 },
	{ "CL.THROTTLE", make_cells, free_cells, take_cell, BUCKET_WHOLE, 1e8, 1e6 },
};

/* Spend until it refuses, by up to half of what it holds; then wait, a tick less at first. */
static void wait_out(const struct table *table, uint32_t key)
{
	struct gcra_limit limit = draw_limit(table->kind, table->rate_max, table->burst_max);
	/* A word of a long limit counts in ticks of more than a nanosecond. */
	uint64_t tick_ns = limit.tick_shift < 0 ? 1ULL << -limit.tick_shift : 1;
	uint64_t tokens, wait_ns = 0, longer_ns = 0;

	now_ns += draw() % NS_IN_S;
	do {
		tokens = 1 + draw() % (limit.burst / 2 + 1);
		if (tokens > limit.burst)
			tokens = limit.burst;
	} while (table->take(key, &limit, tokens, &wait_ns));
	if (wait_ns == GCRA_NEVER || wait_ns == 0)
		fail_msg("%s, limit %u: refused for %llu ns", table->name, key,
			 (unsigned long long)wait_ns);
	now_ns += wait_ns - tick_ns;
	if (table->take(key, &limit, tokens, &longer_ns) || longer_ns != tick_ns)
		fail_msg("%s, limit %u: %llu ns less than %llu are enough", table->name, key,
			 (unsigned long long)tick_ns, (unsigned long long)wait_ns);
	now_ns += tick_ns;
	if (!table->take(key, &limit, tokens, &longer_ns))
		fail_msg("%s, limit %u: after %llu ns still %llu", table->name, key,
			 (unsigned long long)wait_ns, (unsigned long long)longer_ns);
}

static void waiting_as_long_as_said_is_enough_and_no_less(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(tables); i++) {
		random_state = i;
		now_ns = 1000ULL * NS_IN_S;
		for (uint32_t key = 0; key < LIMITS; key++) {
			tables[i].make();
			wait_out(&tables[i], key);
			tables[i].free();
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waiting_as_long_as_said_is_enough_and_no_less),
	};

	return cmocka_run_group_tests_name("waits", tests, NULL, NULL);
}
