/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory of buckets of any contents, as a pinned map may have after whatever: it is put in order,
 * and then is as good as any other. Each key has one bucket, which admits its burst once and no
 * more.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/slot.h>

#include "limit/buckets.h"
#include "limit/build.h"

enum { SLOTS = 128, KEYS = 64 };

#define DAY_NS 86400000000000ULL

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct siphash_key secret = { { 1, 2 } };
static uint64_t now_ns;

static uint64_t clock_of_fuzzer(void)
{
	return now_ns;
}

static void must(bool condition)
{
	if (!condition)
		abort();
}

static enum bucket_answer charge(struct buckets *buckets, const struct gcra_limit *limit,
				 uint32_t key)
{
	struct bucket_charge what = {
		.key = &key, .key_bytes = sizeof(key), .hooks = limit, .hook_tokens = 1
	};
	struct bucket_result result;

	buckets_charge(buckets, &what, clock_of_fuzzer, &result);
	return result.answer;
}

static struct buckets *open_buckets(struct bucket_slot *memory)
{
	struct buckets *buckets = NULL;

	must(!buckets_new(memory, SLOTS, &secret, now_ns, &buckets));
	return buckets;
}

/* What of the keys can be charged, then cannot again: whether they stood there before or not. */
static void use(struct buckets *buckets, const struct gcra_limit *limit)
{
	for (uint32_t key = 0; key < KEYS; key++) {
		enum bucket_answer answer = charge(buckets, limit, key);

		must(answer != BUCKETS_BYTES_REFUSED);
		if (answer != BUCKETS_FULL)
			must(charge(buckets, limit, key) == BUCKETS_HOOKS_REFUSED);
	}
	must(buckets_count(buckets) <= SLOTS);
}

static void sweep(struct buckets *buckets)
{
	for (unsigned shard = 0; shard < BUCKET_SHARDS; shard++)
		(void)buckets_sweep(buckets, shard, clock_of_fuzzer, DAY_NS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct bucket_slot memory[SLOTS] __attribute__((aligned(64)));
	struct rate_limit wanted = { .rate = 1, .burst = 1 };
	struct gcra_limit limit;
	struct buckets *buckets;
	uint64_t longest;
	size_t count;

	now_ns = 100 * DAY_NS;
	must(!limit_build(&wanted, BUCKET_WHOLE, &limit, &longest));
	memset(memory, 0, sizeof(memory));
	memcpy(memory, data, size < sizeof(memory) ? size : sizeof(memory));

	buckets = open_buckets(memory);
	use(buckets, &limit);
	sweep(buckets);
	count = buckets_count(buckets);
	buckets_free(buckets);

	/* What has been put in order needs it no more. */
	buckets = open_buckets(memory);
	must(buckets_count(buckets) == count);
	now_ns += 2 * DAY_NS;
	sweep(buckets);
	use(buckets, &limit);
	buckets_free(buckets);
	return 0;
}
