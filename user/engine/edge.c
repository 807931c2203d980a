/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is asked before a body is read: the client's address, the node, the source's bytes, in this
 * order; the first to refuse answers, and what comes after it is not touched. One that is in a dry run
 * counts what it would refuse, for which it is not charged, and lets the next one answer.
 */
#include "engine/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "limit/build.h"
#include "limit/hook_limits.h"

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
	edge->is_dry[DECISION_IP] = settings->dry_ip >> METER_HOOKS & 1;
	edge->is_dry[DECISION_NODE] = settings->dry_node >> METER_HOOKS & 1;
	edge->hooks_digest = hook_limits_digest(&edge->client, &edge->node, settings);
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

/* Meanwhile programs judge nothing, since words are charged by the old limits and by the new. */
void edge_set(struct engine *engine, struct edge *edge)
{
	uint64_t capacity_ns = gcra_wait_ns(edge->client.capacity, edge->client.tick_shift);
	struct edge *old;

	address_table_announce(engine->clients, 0, 0);
	(void)pthread_mutex_lock(&engine->edge_lock);
	old = engine->edge;
	engine->edge = edge;
	(void)pthread_mutex_unlock(&engine->edge_lock);
	address_table_announce(engine->clients, edge->hooks_digest, capacity_ns);
	edge_release(old);
}

void engine_move_clients(struct engine *engine, const struct address_memory *to)
{
	address_table_move(engine->clients, to);
	clients_unmap(engine);
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

/* Then the refusal is only counted. */
static bool is_dry(struct engine_reader *reader, const struct edge *edge,
		   enum decision_reason reason)
{
	if (edge->is_dry[reason])
		reader_count(&reader->would_refuse[reason]);
	return edge->is_dry[reason];
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
				&edge->client, 1, clock_monotonic_ns, &wait_ns) &&
	    !is_dry(reader, edge, DECISION_IP)) {
		decision_refuse(&decision, DECISION_IP, wait_ns);
		decision.limit = &edge->client;
		decision.remaining = 0;
	} else if (edge->node.capacity &&
		   !address_table_take_node(reader->engine->clients, reader->stripe, &edge->node,
					    clock_monotonic_ns, &wait_ns) &&
		   !is_dry(reader, edge, DECISION_NODE)) {
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
