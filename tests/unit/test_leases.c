/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * limit/leases.h: shares of a queue by tables of what is asked one after the other, against a model
 * that keeps all leases in a list, and under threads, which together never hold more than a cap.
 */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "limit/leases.h"

#if defined(__SANITIZE_THREAD__)
enum { OPERATIONS = 50000 };
#else
enum { OPERATIONS = 300000 };
#endif

static const struct siphash_key secret = { { 1, 2 } };

static struct leases *leases_of(size_t most)
{
	struct leases *leases = NULL;

	assert_int_equal(leases_new(most, &secret, &leases), 0);
	return leases;
}

static uint64_t random_state;

static uint64_t draw(uint64_t below)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (z ^ (z >> 31)) % below;
}

static void check_held(const struct leases *leases, const char *tenant, uint64_t hooks,
		       uint64_t bytes)
{
	uint64_t held_hooks, held_bytes;

	leases_held(leases, tenant, strlen(tenant), &held_hooks, &held_bytes);
	assert_int_equal(held_hooks, hooks);
	assert_int_equal(held_bytes, bytes);
}

/* What is asked of one tenant, one after the other. A release is of the lease taken by a step. */
struct step {
	uint64_t bytes;
	int answer;
	int release; /* the step whose lease to give back first, from 1; 0: none */
};

static const struct share {
	const char *name;
	uint64_t max_queue, max_queue_bytes;
	size_t steps;
	struct step step[6];
} shares[] = {
	{ "two hooks", 2, 0, 4, { { 0, 0, 0 }, { 0, 0, 0 }, { 0, -EAGAIN, 0 }, { 0, 0, 1 } } },
	{ "a hundred bytes", 0, 100, 3, { { 60, 0, 0 }, { 60, -EAGAIN, 0 }, { 40, 0, 0 } } },
	{ "more than all bytes, alone",
	  0,
	  100,
	  4,
	  { { 500, 0, 0 }, { 1, -EAGAIN, 0 }, { 0, -EAGAIN, 0 }, { 1, 0, 1 } } },
	{ "more than all bytes, beside another", 0, 100, 2, { { 1, 0, 0 }, { 500, -EAGAIN, 0 } } },
	{ "more than all bytes, beside one of none",
	  0,
	  100,
	  2,
	  { { 0, 0, 0 }, { 101, -EAGAIN, 0 } } },
	{ "both caps, hooks first", 1, 100, 2, { { 10, 0, 0 }, { 10, -EAGAIN, 0 } } },
	{ "both caps, bytes first", 9, 100, 3, { { 90, 0, 0 }, { 11, -EAGAIN, 0 }, { 10, 0, 0 } } },
	{ "no caps", 0, 0, 3, { { 1ULL << 62, 0, 0 }, { 1ULL << 62, 0, 0 }, { 0, 0, 0 } } },
	{ "more bytes than can be counted",
	  0,
	  0,
	  3,
	  { { UINT64_MAX, 0, 0 }, { 1, -EAGAIN, 0 }, { 1, 0, 1 } } },
	{ "a cap of all there is",
	  UINT64_MAX,
	  UINT64_MAX,
	  2,
	  { { UINT64_MAX, 0, 0 }, { 1, -EAGAIN, 0 } } },
};

static void shares_are_kept_and_a_refusal_counts_nothing(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(shares); i++) {
		const struct share *row = &shares[i];
		struct leases *leases = leases_of(8);
		uint64_t lease[COUNT_OF(row->step)];
		size_t count = 0;

		for (size_t at = 0; at < row->steps; at++) {
			const struct step *step = &row->step[at];

			lease[at] = 4711;
			if (step->release) {
				check_row_equal(row,
						leases_release(leases, lease[step->release - 1], 7),
						1);
				count--;
			}
			check_row_equal(row,
					leases_acquire(leases, "acme", 4, step->bytes,
						       row->max_queue, row->max_queue_bytes, 7, 0,
						       &lease[at]),
					step->answer);
			count += !step->answer;
			check_row_equal(row, lease[at] == 4711, step->answer != 0);
			check_row(row, lease[at] != LEASE_NONE);
			check_row_equal(row, leases_count(leases), count);
		}
		check_row_equal(row, leases_release_owner(leases, 7), count);
		check_held(leases, "acme", 0, 0);
		leases_free(leases);
	}
}

static uint64_t take(struct leases *leases, const char *tenant, uint64_t owner, uint64_t expires_ns)
{
	uint64_t lease = LEASE_NONE;

	assert_int_equal(
		leases_acquire(leases, tenant, strlen(tenant), 10, 0, 0, owner, expires_ns, &lease),
		0);
	assert_int_not_equal(lease, LEASE_NONE);
	return lease;
}

static void second_and_foreign_releases_are_harmless(void **state)
{
	struct leases *leases = leases_of(4);
	uint64_t first = take(leases, "acme", 1, 0), nobodys = take(leases, "acme", 0, 0), next;

	(void)state;
	assert_int_equal(leases_release(leases, first, 2), 0);
	assert_int_equal(leases_release(leases, nobodys, 2), 0);
	assert_int_equal(leases_release(leases, LEASE_NONE, 0), 0);
	assert_int_equal(leases_release(leases, UINT64_MAX, 0), 0);
	assert_int_equal(leases_release(leases, nobodys + 1, 0), 0);
	check_held(leases, "acme", 2, 20);
	assert_int_equal(leases_release(leases, first, 1), 1);
	/* Its place is given out again, its number is not. */
	next = take(leases, "acme", 1, 0);
	assert_int_not_equal(next, first);
	assert_int_equal(leases_release(leases, first, 1), 0);
	assert_int_equal(leases_release(leases, first, 0), 0);
	check_held(leases, "acme", 2, 20);
	assert_int_equal(leases_release(leases, nobodys, 0), 1);
	assert_int_equal(leases_release(leases, next, 0), 1);
	check_held(leases, "acme", 0, 0);
	assert_int_equal(leases_count(leases), 0);
	leases_free(leases);
}

static void leases_go_with_their_owner(void **state)
{
	struct leases *leases = leases_of(2000);

	(void)state;
	for (int i = 0; i < 600; i++) {
		take(leases, "acme", 1, 0);
		take(leases, i % 2 ? "acme" : "globex", 2, 0);
		take(leases, "globex", 0, 0);
	}
	assert_int_equal(leases_release_owner(leases, 3), 0);
	assert_int_equal(leases_release_owner(leases, 0), 0);
	assert_int_equal(leases_release_owner(leases, 1), 600);
	assert_int_equal(leases_release_owner(leases, 1), 0);
	check_held(leases, "acme", 300, 3000);
	check_held(leases, "globex", 900, 9000);
	assert_int_equal(leases_release_owner(leases, 2), 600);
	check_held(leases, "acme", 0, 0);
	assert_int_equal(leases_count(leases), 600);
	leases_free(leases);
}

static void leases_expire_when_their_time_is_over(void **state)
{
	struct leases *leases = leases_of(8);
	uint64_t late = take(leases, "acme", 1, 300), early = take(leases, "acme", 1, 100);

	(void)state;
	take(leases, "acme", 1, 0);
	take(leases, "globex", 2, 200);
	assert_int_equal(leases_next_expiry(leases), 100);
	assert_int_equal(leases_expire(leases, 99), 0);
	assert_int_equal(leases_expire(leases, 100), 1);
	assert_int_equal(leases_release(leases, early, 1), 0);
	check_held(leases, "acme", 2, 20);
	assert_int_equal(leases_next_expiry(leases), 200);
	assert_int_equal(leases_release(leases, late, 1), 1);
	assert_int_equal(leases_expire(leases, UINT64_MAX), 1);
	assert_int_equal(leases_next_expiry(leases), 0);
	check_held(leases, "acme", 1, 10);
	check_held(leases, "globex", 0, 0);
	leases_free(leases);
}

static void no_more_leases_than_were_agreed(void **state)
{
	struct leases *leases = leases_of(2);
	char tenant[LEASE_TENANT_MAX + 1];
	uint64_t lease = 4711, first;

	(void)state;
	memset(tenant, 'a', sizeof(tenant));
	assert_int_equal(leases_acquire(leases, tenant, sizeof(tenant), 1, 0, 0, 1, 0, &lease),
			 -EINVAL);
	first = take(leases, "acme", 1, 0);
	take(leases, "globex", 2, 0);
	assert_int_equal(leases_acquire(leases, "new", 3, 1, 0, 0, 1, 0, &lease), -ENOSPC);
	assert_int_equal(leases_acquire(leases, "acme", 4, 1, 1, 0, 1, 0, &lease), -EAGAIN);
	assert_int_equal(lease, 4711);
	check_held(leases, "new", 0, 0);
	leases_release(leases, first, 1);
	assert_int_equal(leases_acquire(leases, tenant, LEASE_TENANT_MAX, 1, 0, 0, 3, 0, &lease),
			 0);
	leases_free(leases);
	leases = NULL;
	assert_int_equal(leases_new(0, &secret, &leases), -EINVAL);
	assert_int_equal(leases_new((size_t)LEASES_MAX + 1, &secret, &leases), -EINVAL);
	assert_null(leases);
	leases_free(NULL);
}

/* ---- against a model */

enum { MODEL_MOST = 40, MODEL_TENANTS = 3, MODEL_OWNERS = 5, MODEL_TIME = 1000 };

struct model_lease {
	uint64_t id; /* 0: the place is free */
	uint64_t bytes, owner, expires_ns;
	unsigned tenant;
};

static const char *const tenants[MODEL_TENANTS] = { "a", "b", "c" };

static void model_held(const struct model_lease *model, unsigned tenant, uint64_t *hooks,
		       uint64_t *bytes)
{
	*hooks = *bytes = 0;
	for (int i = 0; i < MODEL_MOST; i++) {
		if (!model[i].id || model[i].tenant != tenant)
			continue;
		++*hooks;
		*bytes += model[i].bytes;
	}
}

static void acquire_in_both(struct leases *leases, struct model_lease *model)
{
	struct model_lease wanted = { .bytes = draw(60),
				      .owner = draw(MODEL_OWNERS),
				      .expires_ns = draw(2) ? 1 + draw(MODEL_TIME) : 0,
				      .tenant = (unsigned)draw(MODEL_TENANTS) };
	uint64_t max_queue = draw(16), max_queue_bytes = draw(300), hooks, bytes;
	int wanted_answer = -ENOSPC, answer, place = 0;

	while (place < MODEL_MOST && model[place].id)
		place++;
	model_held(model, wanted.tenant, &hooks, &bytes);
	if (place < MODEL_MOST)
		wanted_answer = 0;
	if ((max_queue && hooks + 1 > max_queue) ||
	    (max_queue_bytes && hooks && bytes + wanted.bytes > max_queue_bytes))
		wanted_answer = -EAGAIN;
	answer = leases_acquire(leases, tenants[wanted.tenant], 1, wanted.bytes, max_queue,
				max_queue_bytes, wanted.owner, wanted.expires_ns, &wanted.id);
	assert_int_equal(answer, wanted_answer);
	if (!answer)
		model[place] = wanted;
}

static void release_in_both(struct leases *leases, struct model_lease *model)
{
	struct model_lease *one = &model[draw(MODEL_MOST)];
	uint64_t owner = draw(MODEL_OWNERS);
	bool held = one->id && (!owner || owner == one->owner);

	assert_int_equal(leases_release(leases, one->id, owner), held);
	if (held)
		one->id = 0;
}

static void drop_in_both(struct leases *leases, struct model_lease *model, bool by_time)
{
	uint64_t owner = draw(MODEL_OWNERS), now_ns = draw(MODEL_TIME), next_ns = 0;
	size_t count = 0;

	for (int i = 0; i < MODEL_MOST; i++) {
		struct model_lease *one = &model[i];

		if (!one->id)
			continue;
		if (by_time ? one->expires_ns && one->expires_ns <= now_ns
			    : owner && one->owner == owner) {
			one->id = 0;
			count++;
		} else if (one->expires_ns && (!next_ns || one->expires_ns < next_ns)) {
			next_ns = one->expires_ns;
		}
	}
	assert_int_equal(by_time ? leases_expire(leases, now_ns)
				 : leases_release_owner(leases, owner),
			 count);
	assert_int_equal(leases_next_expiry(leases), next_ns);
}

static void whatever_is_asked_the_answers_are_those_of_a_simple_model(void **state)
{
	struct leases *leases = leases_of(MODEL_MOST);
	struct model_lease model[MODEL_MOST] = { 0 };

	(void)state;
	random_state = 1;
	for (int i = 0; i < OPERATIONS; i++) {
		uint64_t drawn = draw(100);

		if (drawn < 60)
			acquire_in_both(leases, model);
		else if (drawn < 98)
			release_in_both(leases, model);
		else
			drop_in_both(leases, model, drawn == 98);
		for (unsigned tenant = 0; tenant < MODEL_TENANTS; tenant++) {
			uint64_t hooks, bytes;

			model_held(model, tenant, &hooks, &bytes);
			check_held(leases, tenants[tenant], hooks, bytes);
		}
	}
	leases_free(leases);
}

static void a_hundred_thousand_are_out_at_once(void **state)
{
	enum { MANY = 100000 };

	struct leases *leases = leases_of(MANY);
	uint64_t *lease = calloc(MANY, sizeof(*lease));
	char tenant[16];
	size_t expired = 0;

	(void)state;
	assert_non_null(lease);
	random_state = 2;
	for (uint32_t i = 0; i < MANY; i++) {
		(void)snprintf(tenant, sizeof(tenant), "tenant-%u", i % 1000);
		lease[i] = take(leases, tenant, 1 + i % 100, i % 2 ? 1 + draw(1000) : 0);
	}
	assert_int_equal(leases_count(leases), MANY);
	check_held(leases, "tenant-7", MANY / 1000, MANY / 100);
	for (uint64_t now_ns = 0; now_ns <= 1000; now_ns += 10)
		expired += leases_expire(leases, now_ns);
	assert_int_equal(expired, MANY / 2);
	for (uint32_t i = 0; i < MANY; i += 4)
		assert_int_equal(leases_release(leases, lease[i], 1 + i % 100), 1);
	for (uint64_t owner = 1; owner <= 100; owner++)
		expired += leases_release_owner(leases, owner);
	assert_int_equal(expired, MANY / 4 * 3);
	assert_int_equal(leases_count(leases), 0);
	free(lease);
	leases_free(leases);
}

/* ---- threads */

enum { THREADS = 4, CAP = 5, CAP_BYTES = 100, OWN_MAX = 8 };

struct shared {
	struct leases *leases;
	uint64_t hooks, bytes; /* of those who know that they hold them */
	bool went_over;
	bool was_wrong; /* what a release said */
};

struct worker {
	struct shared *shared;
	pthread_t thread;
	uint64_t number;
	uint64_t admitted, refused;
};

/* Counted after it was taken, and no more before it is given back: so never more than is held. */
static void count(struct shared *shared, uint64_t hooks, uint64_t bytes)
{
	if (__atomic_add_fetch(&shared->hooks, hooks, __ATOMIC_SEQ_CST) > CAP ||
	    __atomic_add_fetch(&shared->bytes, bytes, __ATOMIC_SEQ_CST) > CAP_BYTES)
		__atomic_store_n(&shared->went_over, true, __ATOMIC_RELAXED);
}

static void uncount(struct shared *shared, uint64_t hooks, uint64_t bytes)
{
	__atomic_sub_fetch(&shared->hooks, hooks, __ATOMIC_SEQ_CST);
	__atomic_sub_fetch(&shared->bytes, bytes, __ATOMIC_SEQ_CST);
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	struct shared *shared = worker->shared;
	uint64_t state = worker->number, lease[OWN_MAX], bytes[OWN_MAX], held_bytes = 0;
	size_t own = 0;
	bool was_wrong = false;

	for (int i = 0; i < OPERATIONS; i++) {
		state = state * 6364136223846793005ULL + 1442695040888963407ULL;
		if (own < OWN_MAX && state >> 63) {
			bytes[own] = (state >> 40) % 50;
			if (leases_acquire(shared->leases, "acme", 4, bytes[own], CAP, CAP_BYTES,
					   worker->number, 0, &lease[own])) {
				worker->refused++;
				continue;
			}
			count(shared, 1, bytes[own]);
			held_bytes += bytes[own++];
			worker->admitted++;
		} else if ((state >> 50) % 16 == 0) {
			uncount(shared, own, held_bytes);
			was_wrong |= leases_release_owner(shared->leases, worker->number) != own;
			own = held_bytes = 0;
		} else if (own) {
			own--;
			held_bytes -= bytes[own];
			uncount(shared, 1, bytes[own]);
			/* Another's attempt before, and one more after. */
			was_wrong |= leases_release(shared->leases, lease[own], worker->number + 1);
			was_wrong |= !leases_release(shared->leases, lease[own], worker->number);
			was_wrong |= leases_release(shared->leases, lease[own], worker->number);
			sched_yield();
		}
	}
	uncount(shared, own, held_bytes);
	was_wrong |= leases_release_owner(shared->leases, worker->number) != own;
	if (was_wrong)
		__atomic_store_n(&shared->was_wrong, true, __ATOMIC_RELAXED);
	return NULL;
}

static void threads_together_never_hold_more_than_a_cap(void **state)
{
	struct shared shared = { .leases = leases_of(THREADS * OWN_MAX) };
	struct worker workers[THREADS];
	uint64_t admitted = 0, refused = 0;

	(void)state;
	for (uint64_t i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .shared = &shared, .number = i + 1 };
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		admitted += workers[i].admitted;
		refused += workers[i].refused;
	}
	print_message("# %llu acquired, %llu refused\n", (unsigned long long)admitted,
		      (unsigned long long)refused);
	assert_false(shared.went_over);
	assert_false(shared.was_wrong);
	assert_true(admitted > 0 && refused > 0);
	assert_int_equal(leases_count(shared.leases), 0);
	check_held(shared.leases, "acme", 0, 0);
	leases_free(shared.leases);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares_are_kept_and_a_refusal_counts_nothing),
		cmocka_unit_test(second_and_foreign_releases_are_harmless),
		cmocka_unit_test(leases_go_with_their_owner),
		cmocka_unit_test(leases_expire_when_their_time_is_over),
		cmocka_unit_test(no_more_leases_than_were_agreed),
		cmocka_unit_test(whatever_is_asked_the_answers_are_those_of_a_simple_model),
		cmocka_unit_test(a_hundred_thousand_are_out_at_once),
		cmocka_unit_test(threads_together_never_hold_more_than_a_cap),
	};

	return cmocka_run_group_tests_name("leases", tests, NULL, NULL);
}
