/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Questions about tenants: hooks and bytes, shares of the queue, CL.THROTTLE. */
#include "engine/internal.h"

#include <errno.h>

#include "base/clock.h"

enum { MS_IN_NS = 1000000 };

static const struct tenant_limit *find_limit(struct engine_reader *reader,
					     struct tenant_name tenant)
{
	enum limit_source source;
	const struct tenant_limit *limit = limits_find(
		reader_limits(reader), tenant.text, tenant.length, wall_clock_coarse_ms(), &source);

	return limit && !limit->unlimited ? limit : NULL;
}

/* What the buckets say, as a decision. What remains is said in hooks, unless bytes refused. */
static void judge_buckets(const struct tenant_limit *limit, const struct bucket_result *result,
			  struct decision *decision)
{
	decision->limit = &limit->hook_bucket;
	decision->remaining = decision_remaining(result->hooks_remaining);
	decision->full_after_ns = result->hooks_full_after_ns;
	switch (result->answer) {
	case BUCKETS_ADMITTED:
		return;
	case BUCKETS_HOOKS_REFUSED:
		decision_refuse(decision, DECISION_RATE_LIMITED, result->wait_ns);
		return;
	case BUCKETS_BYTES_REFUSED:
		decision_refuse(decision, DECISION_BYTES_LIMITED, result->wait_ns);
		decision->limit = &limit->byte_bucket;
		decision->remaining = decision_remaining(result->bytes_remaining);
		decision->full_after_ns = result->bytes_full_after_ns;
		return;
	case BUCKETS_FULL:
		decision_refuse(decision, DECISION_TABLE_FULL, (uint64_t)FULL_RETRY_MS * MS_IN_NS);
		return;
	}
}

int engine_hit(struct engine_reader *reader, struct tenant_name tenant, uint64_t bytes,
	       unsigned flags, engine_answer *answer, void *context)
{
	struct decision decision = { .admitted = true, .remaining = REMAINING_UNLIMITED };
	const struct tenant_limit *limit;
	struct bucket_result result;

	if (!tenant_id_is_valid(tenant.text, tenant.length))
		return -EINVAL;
	limit = find_limit(reader, tenant);
	if (limit && limit->max_body_bytes && bytes > limit->max_body_bytes) {
		decision_refuse(&decision, DECISION_TOO_LARGE, GCRA_NEVER);
	} else if (limit) {
		buckets_charge(reader->engine->tenants,
			       &(struct bucket_charge){
				       .key = tenant.text,
				       .key_bytes = tenant.length,
				       .hooks = &limit->hook_bucket,
				       .hook_tokens = 1,
				       .bytes = &limit->byte_bucket,
				       .byte_tokens = bytes,
				       .atomic = flags & HIT_ATOMIC,
				       .look_only = flags & HIT_PEEK,
			       },
			       clock_monotonic_ns, &result);
		judge_buckets(limit, &result, &decision);
	}
	reader_answer(reader, QUESTION_HIT, &decision, answer, context);
	return 0;
}

int engine_refund(struct engine_reader *reader, struct tenant_name tenant, uint64_t hooks,
		  uint64_t bytes)
{
	const struct tenant_limit *limit;

	if (!tenant_id_is_valid(tenant.text, tenant.length))
		return -EINVAL;
	limit = find_limit(reader, tenant);
	if (limit)
		buckets_refund(reader->engine->tenants,
			       &(struct bucket_charge){
				       .key = tenant.text,
				       .key_bytes = tenant.length,
				       .hooks = &limit->hook_bucket,
				       .hook_tokens = hooks,
				       .bytes = &limit->byte_bucket,
				       .byte_tokens = bytes,
			       },
			       clock_monotonic_ns);
	return 0;
}

int engine_body_limit(struct engine_reader *reader, struct tenant_name tenant, uint64_t *bytes)
{
	const struct tenant_limit *limit;

	if (!tenant_id_is_valid(tenant.text, tenant.length))
		return -EINVAL;
	limit = find_limit(reader, tenant);
	*bytes = limit && limit->max_body_bytes ? limit->max_body_bytes : UINT64_MAX;
	return 0;
}

int engine_queue_acquire(struct engine_reader *reader, struct tenant_name tenant, uint64_t bytes,
			 uint64_t owner, uint64_t ttl_ms, engine_answer *answer, void *context)
{
	struct decision decision = { .admitted = true, .remaining = REMAINING_UNLIMITED };
	const struct tenant_limit *limit;
	uint64_t expires_ns = 0, hooks, held_bytes;
	int err = 0;

	if (!tenant_id_is_valid(tenant.text, tenant.length) || ttl_ms > INT64_MAX / MS_IN_NS)
		return -EINVAL;
	if (ttl_ms)
		expires_ns = clock_monotonic_ns() + ttl_ms * MS_IN_NS;
	limit = find_limit(reader, tenant);
	if (limit && (limit->max_queue || limit->max_queue_bytes))
		err = leases_acquire(reader->engine->leases, tenant.text, tenant.length, bytes,
				     limit->max_queue, limit->max_queue_bytes, owner, expires_ns,
				     &decision.lease);
	if (err == -EAGAIN)
		decision_refuse(&decision, DECISION_TENANT_OVERLOAD,
				(uint64_t)QUEUE_RETRY_MS * MS_IN_NS);
	else if (err)
		decision_refuse(&decision, DECISION_TABLE_FULL, (uint64_t)FULL_RETRY_MS * MS_IN_NS);
	if (limit && limit->max_queue) {
		leases_held(reader->engine->leases, tenant.text, tenant.length, &hooks,
			    &held_bytes);
		decision.remaining =
			hooks < limit->max_queue ? (int64_t)(limit->max_queue - hooks) : 0;
	}
	reader_answer(reader, QUESTION_QUEUE, &decision, answer, context);
	return 0;
}

int engine_queue_release(struct engine_reader *reader, uint64_t lease, uint64_t owner)
{
	return leases_release(reader->engine->leases, lease, owner);
}

size_t engine_connection_closed(struct engine *engine, uint64_t owner)
{
	return leases_release_owner(engine->leases, owner);
}

int engine_throttle(struct engine_reader *reader, const void *key, size_t key_bytes,
		    const struct cell_request *request, struct cell_answer *answer)
{
	int err = cell_table_decide(reader->engine->cells, key, key_bytes, request,
				    clock_monotonic_ns, answer);
	enum decision_reason reason = DECISION_TABLE_FULL;
	_Atomic uint64_t *count;

	if (!err)
		reason = answer->limited ? DECISION_RATE_LIMITED : DECISION_OK;
	count = &reader->decisions[QUESTION_THROTTLE][reason];
	atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	return err;
}
