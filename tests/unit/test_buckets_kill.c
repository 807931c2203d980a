/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * limit/buckets.c in memory that outlives its process. A child charges, resets and sweeps with
 * several threads, and is killed in the middle; then the parent opens what is left, and another
 * child goes on with it. And memory that no child of ours has left behind.
 */
#include "test.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "bucket_stress.h"

enum {
	SLOTS = 256,
	KEYS = 400, /* more than there is room for */
	THREADS = 4,
	KILLS = 150,
	CHARGES_MAX = 20000,
	BURST = 3,
	RESET_IN = 64,
};

/* One a day: what is charged stays owed as long as the test runs. */
#define LASTING_NS 86400000000000ULL
#define BRIEF_NS 2000ULL

/* Shared with the child that is killed. */
struct shared {
	struct bucket_slot memory[SLOTS];
	uint64_t charges;
	uint64_t owed[KEYS]; /* tokens that lasting keys were admitted, counted when they were */
};

static struct shared *shared;
static struct gcra_limit lasting, brief;

/* Of four keys one is held to the lasting limit, and is never reset. */
static const struct gcra_limit *limit_of_key(uint32_t key)
{
	return key % 4 ? &brief : &lasting;
}

static enum bucket_answer charge(struct buckets *buckets, uint32_t key)
{
	struct bucket_charge what = {
		.key = &key,
		.key_bytes = sizeof(key),
		.hooks = limit_of_key(key),
		.hook_tokens = 1,
		.bytes = limit_of_key(key),
		.byte_tokens = 1,
		.atomic = key % 8 < 4,
	};
	struct bucket_result result;

	buckets_charge(buckets, &what, stress_clock, &result);
	return result.answer;
}

static void *work(void *argument)
{
	struct buckets *buckets = argument;

	random_state = (uintptr_t)&buckets ^ real_clock();
	for (;;) {
		uint32_t key = (uint32_t)(draw() % KEYS);

		if (limit_of_key(key) == &brief && draw() % RESET_IN == 0)
			(void)buckets_reset(buckets, &key, sizeof(key), stress_clock);
		if (draw() % RESET_IN == 0)
			(void)buckets_sweep(buckets, (unsigned)draw(), stress_clock, 0);
		if (charge(buckets, key) == BUCKETS_ADMITTED)
			__atomic_add_fetch(&shared->owed[key], 1, __ATOMIC_SEQ_CST);
		__atomic_add_fetch(&shared->charges, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

/* In the child; it does not return. */
static void charge_until_killed(void)
{
	struct buckets *buckets;
	pthread_t thread;

	loses_cpu = true;
	if (buckets_new(shared->memory, SLOTS, &test_secret, real_clock(), &buckets))
		_exit(1);
	for (int i = 1; i < THREADS; i++)
		if (pthread_create(&thread, NULL, work, buckets))
			_exit(1);
	work(buckets);
}

static void kill_after(uint64_t charges)
{
	pid_t child;
	int status;

	shared->charges = 0;
	child = fork();
	assert_true(child >= 0);
	if (!child)
		charge_until_killed();
	while (__atomic_load_n(&shared->charges, __ATOMIC_SEQ_CST) < charges) {
		assert_int_equal(waitpid(child, &status, WNOHANG), 0);
		sched_yield();
	}
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Who was told that it is admitted still owes it; a charge that was not answered may be owed too.
 */
static void check_debts(struct buckets *buckets)
{
	for (uint32_t key = 0; key < KEYS; key += 4) {
		struct bucket_charge look = {
			.key = &key,
			.key_bytes = sizeof(key),
			.hooks = &lasting,
			.bytes = &lasting,
			.look_only = true,
		};
		struct bucket_result result;

		buckets_charge(buckets, &look, stress_clock, &result);
		assert_true(result.hooks_remaining <= BURST - shared->owed[key]);
		assert_true(result.bytes_remaining <= BURST - shared->owed[key]);
		assert_true(result.hooks_full_after_ns <= BURST * LASTING_NS);
		assert_true(result.bytes_full_after_ns <= BURST * LASTING_NS);
	}
}

static void killed_in_the_middle_it_goes_on_with_the_debts(void **state)
{
	uint64_t owed = 0;

	(void)state;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	assert_true(shared != MAP_FAILED);
	random_state = 1;
	for (int i = 0; i < KILLS; i++) {
		struct buckets *buckets;

		/* Debts last for days; every tenth round begins without any. */
		if (i % 10 == 0) {
			memset(shared, 0, sizeof(*shared));
		}
		kill_after(1 + draw() % CHARGES_MAX);
		buckets = open_buckets(shared->memory, SLOTS);
		check_table(buckets);
		check_debts(buckets);
		buckets_free(buckets);
		for (uint32_t key = 0; key < KEYS; key += 4)
			owed += shared->owed[key];
	}
	print_message("# %d kills, %llu tokens owed after them\n", KILLS, (unsigned long long)owed);
	assert_true(owed > KILLS);
	munmap(shared, sizeof(*shared));
}

static void memory_of_any_contents_is_put_in_order(void **state)
{
	struct bucket_slot *memory = memory_new(SLOTS), *whole = memory_new(SLOTS);
	struct buckets *buckets = open_buckets(whole, SLOTS);

	(void)state;
	random_state = 2;
	for (uint32_t key = 0; key < SLOTS / 2; key++)
		(void)charge(buckets, key * 4);
	buckets_free(buckets);
	for (int round = 0; round < 2000; round++) {
		uint8_t *bytes = (uint8_t *)memory;
		size_t from = draw() % SLOTS, to = draw() % SLOTS;

		memcpy(memory, whole, SLOTS * sizeof(*memory));
		for (uint64_t times = draw() % 64; times--;)
			bytes[draw() % (SLOTS * sizeof(*memory))] = (uint8_t)draw();
		memory[to] =
			memory[from]; /* a key that stands twice, or where it cannot be found */
		buckets = open_buckets(memory, SLOTS);
		check_table(buckets);
		for (uint32_t key = 0; key < 16; key++)
			(void)charge(buckets, key);
		check_table(buckets);
		buckets_free(buckets);
	}
	free(memory);
	free(whole);
}

static void key_that_stands_twice_keeps_the_greater_debts(void **state)
{
	struct bucket_slot *memory = memory_new(SLOTS);
	struct buckets *buckets = open_buckets(memory, SLOTS);
	struct bucket_slot *slot, *next;
	struct slot_key key;

	(void)state;
	for (int times = 0; times < BURST; times++)
		assert_int_equal(charge(buckets, 4), BUCKETS_ADMITTED);
	slots_key(&buckets->slots, &(uint32_t){ 4 }, sizeof(uint32_t), &key);
	slot = slots_find(&buckets->slots, &key);
	next = &key.shard->slot[after(&buckets->slots, key.home)];
	*next = *slot;
	slot->tat[0] -= lasting.interval;
	next->tat[1] -= lasting.interval;
	buckets_free(buckets);
	buckets = open_buckets(memory, SLOTS);
	check_table(buckets);
	assert_int_equal(buckets_count(buckets), 1);
	assert_int_equal(charge(buckets, 4), BUCKETS_HOOKS_REFUSED);
	assert_int_equal(next->hash, SLOT_EMPTY);
	buckets_free(buckets);
	free(memory);
}

static void memory_that_does_not_fit_is_refused(void **state)
{
	struct bucket_slot *memory = memory_new(SLOTS);
	struct buckets *buckets = NULL;

	(void)state;
	assert_int_equal(buckets_new(NULL, SLOTS, &test_secret, 0, &buckets), -EINVAL);
	assert_int_equal(buckets_new(memory, 0, &test_secret, 0, &buckets), -EINVAL);
	assert_int_equal(buckets_new(memory, SLOTS - 8, &test_secret, 0, &buckets), -EINVAL);
	assert_int_equal(buckets_new((char *)memory + 8, SLOTS, &test_secret, 0, &buckets),
			 -EINVAL);
	assert_null(buckets);
	buckets_free(NULL);
	free(memory);
}

/* A table of millions costs no memory before there are keys: a store would end the test here. */
static void memory_that_is_zero_is_not_written(void **state)
{
	enum { MANY = 1 << 16 };
	size_t bytes = MANY * sizeof(struct bucket_slot);
	struct buckets *buckets;
	void *memory = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_int_equal(buckets_new(memory, MANY, &test_secret, real_clock(), &buckets), 0);
	assert_int_equal(buckets_count(buckets), 0);
	buckets_free(buckets);
	assert_int_equal(munmap(memory, bytes), 0);
}

static int make_limits(void **state)
{
	(void)state;
	lasting = limit_of(LASTING_NS, BURST);
	brief = limit_of(BRIEF_NS, BURST);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_in_the_middle_it_goes_on_with_the_debts),
		cmocka_unit_test(memory_of_any_contents_is_put_in_order),
		cmocka_unit_test(key_that_stands_twice_keeps_the_greater_debts),
		cmocka_unit_test(memory_that_does_not_fit_is_refused),
		cmocka_unit_test(memory_that_is_zero_is_not_written),
	};

	return cmocka_run_group_tests_name("buckets, killed", tests, make_limits, NULL);
}
