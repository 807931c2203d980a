/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is asked before a body is read: the client's address, the node, the source's bytes, in this
 * order; the first to refuse answers, and what comes after it is not touched.
 */
#include "engine/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "limit/build.h"

enum { FULL_RETRY_NS = FULL_RETRY_MS * 1000000 };

static int build(const struct rate_limit *wanted, enum bucket_kind kind, const char *what,
		 struct gcra_limit *out, struct trouble *trouble)
{
	uint64_t longest;
	int err = wanted->burst ? limit_build(wanted, kind, out, &longest) : 0;

	if (err)
		trouble_set(trouble, 0, "%s cannot be enforced: %s", what, strerror(-err));
	return err;
}

int edge_new(const struct settings *settings, struct edge **out, struct trouble *trouble)
{
	size_t count = settings->trusted_proxy_count;
	struct edge *edge = calloc(1, sizeof(*edge) + count * sizeof(edge->trusted[0]));
	int err;

	if (!edge)
		return trouble_set(trouble, -ENOMEM, "out of memory");
	edge->references = 1;
	edge->ipv6_prefix = settings->ipv6_prefix;
	edge->trusted_count = count;
	if (count)
		memcpy(edge->trusted, settings->trusted_proxies, count * sizeof(edge->trusted[0]));
	err = build(&settings->ip_hooks, BUCKET_WORD, "rate_limits.per_ip.hooks", &edge->client,
		    trouble);
	if (!err)
		err = build(&settings->node_hooks, BUCKET_WHOLE, "rate_limits.node.hooks",
			    &edge->node, trouble);
	if (!err)
		err = build(&settings->source_bytes, BUCKET_WHOLE_BYTES, "rate_limits.sources",
			    &edge->source, trouble);
	if (err) {
		edge_release(edge);
		return err;
	}
	*out = edge;
	return 0;
}

struct edge *edge_hold(struct engine *engine)
{
	struct edge *edge;

	(void)pthread_mutex_lock(&engine->edge_lock);
	edge = engine->edge;
	atomic_fetch_add(&edge->references, 1);
	(void)pthread_mutex_unlock(&engine->edge_lock);
	return edge;
}

void edge_release(struct edge *edge)
{
	if (edge && atomic_fetch_sub(&edge->references, 1) == 1)
		free(edge);
}

void edge_set(struct engine *engine, struct edge *edge)
{
	struct edge *old;

	(void)pthread_mutex_lock(&engine->edge_lock);
	old = engine->edge;
	engine->edge = edge;
	(void)pthread_mutex_unlock(&engine->edge_lock);
	edge_release(old);
}

/* The word is read before the clock, as everywhere: see bpf/table.h (1). */
static bool take_from_node(struct engine *engine, const struct gcra_limit *limit, uint64_t *wait_ns)
{
	uint64_t seen = atomic_load(&engine->node_tat);

	for (;;) {
		uint64_t now = gcra_ticks(clock_monotonic_ns(), GCRA_TICK_SHIFT);
		struct gcra_verdict verdict = gcra_take(limit, seen ? seen : now, now, 1);

		*wait_ns = gcra_wait_ns(verdict.wait_ticks, GCRA_TICK_SHIFT);
		if (!verdict.admitted && !verdict.clamped)
			return false;
		/* 0 says that it was never charged. */
		if (atomic_compare_exchange_strong(&engine->node_tat, &seen,
						   verdict.tat + !verdict.tat))
			return verdict.admitted;
	}
}

static void charge_source(struct engine_reader *reader, const struct edge *edge, const void *source,
			  size_t source_bytes, uint64_t bytes, struct decision *decision)
{
	struct bucket_result result;

	buckets_charge(reader->engine->sources,
		       &(struct bucket_charge){
			       .key = source,
			       .key_bytes = source_bytes,
			       .bytes = &edge->source,
			       .byte_tokens = bytes,
		       },
		       clock_monotonic_ns, &result);
	if (result.answer == BUCKETS_FULL) {
		decision_refuse(decision, DECISION_TABLE_FULL, FULL_RETRY_NS);
		return;
	}
	decision->limit = &edge->source;
	decision->remaining = decision_remaining(result.bytes_remaining);
	decision->full_after_ns = result.bytes_full_after_ns;
	if (result.answer != BUCKETS_ADMITTED)
		decision_refuse(decision, DECISION_SOURCE, result.wait_ns);
}

int engine_preread(struct engine_reader *reader, const struct preread *preread,
		   engine_answer *answer, void *context)
{
	struct decision decision = { .admitted = true, .remaining = REMAINING_UNLIMITED };
	const struct edge *edge = reader_edge(reader);
	uint64_t wait_ns;

	if (preread->source_bytes > BUCKET_KEY_MAX ||
	    client_address_resolve(preread->peer, edge->trusted, edge->trusted_count,
				   preread->forwarded, preread->forwarded_count, &decision.client))
		return -EINVAL;
	if (edge->client.capacity &&
	    !address_table_take(reader->engine->clients, &decision.client, edge->ipv6_prefix,
				&edge->client, 1, clock_monotonic_ns, &wait_ns)) {
		decision_refuse(&decision, DECISION_IP, wait_ns);
		decision.limit = &edge->client;
		decision.remaining = 0;
	} else if (edge->node.capacity &&
		   !take_from_node(reader->engine, &edge->node, &wait_ns)) {
		decision_refuse(&decision, DECISION_NODE, wait_ns);
		decision.limit = &edge->node;
		decision.remaining = 0;
	} else if (preread->has_bytes && edge->source.capacity) {
		charge_source(reader, edge, preread->source, preread->source_bytes, preread->bytes,
			      &decision);
	}
	reader_answer(reader, QUESTION_PREREAD, &decision, answer, context);
	return 0;
}

int engine_source_bytes(struct engine_reader *reader, const void *source, size_t source_bytes,
			uint64_t bytes, engine_answer *answer, void *context)
{
	struct decision decision = { .admitted = true, .remaining = REMAINING_UNLIMITED };
	const struct edge *edge = reader_edge(reader);

	if (source_bytes > BUCKET_KEY_MAX)
		return -EINVAL;
	if (edge->source.capacity)
		charge_source(reader, edge, source, source_bytes, bytes, &decision);
	reader_answer(reader, QUESTION_SOURCE_BYTES, &decision, answer, context);
	return 0;
}
