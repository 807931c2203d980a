/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Replies in the order of their questions, though some are known later. Usually nothing is awaited,
 * the queue is empty and replies go to the output at once. A deferred reply begins a queue: what
 * comes after it gathers in entries that are done, and moves to the output when those before are.
 */
#include <assert.h>
#include <stdlib.h>

#include "server/resp_connection.h"

static struct resp_reply *new_reply(struct resp_connection *connection)
{
	struct resp_reply *reply = calloc(1, sizeof(*reply));

	if (!reply)
		return NULL;
	reply->worker = connection->worker;
	reply->connection = connection;
	resp_writer_init(&reply->writer, connection->protocol,
			 connection->worker->server->options.output_hard_bytes);
	TAILQ_INSERT_TAIL(&connection->queue, reply, link);
	return reply;
}

void resp_reply_free(struct resp_reply *reply)
{
	if (reply->is_deferred)
		__atomic_sub_fetch(&reply->worker->server->replies_awaited, 1, __ATOMIC_RELAXED);
	resp_writer_done(&reply->writer);
	free(reply);
}

struct resp_writer *resp_queue_writer(struct resp_connection *connection)
{
	struct resp_reply *last = TAILQ_LAST(&connection->queue, resp_reply_list);
	struct resp_writer *writer = &connection->out;

	if (last && !last->is_done) {
		last = new_reply(connection);
		if (!last)
			return NULL;
		last->is_done = true;
	}
	if (last)
		writer = &last->writer;
	writer->protocol = connection->protocol;
	return writer;
}

void resp_queue_promote(struct resp_connection *connection)
{
	struct resp_reply *first = TAILQ_FIRST(&connection->queue);

	if (!first || !first->is_done)
		return;
	resp_lend(connection);
	while ((first = TAILQ_FIRST(&connection->queue)) && first->is_done) {
		resp_write_part(&connection->out, &first->writer);
		connection->queued_bytes -= first->writer.length;
		TAILQ_REMOVE(&connection->queue, first, link);
		resp_reply_free(first);
	}
}

void resp_queue_abandon(struct resp_connection *connection)
{
	struct resp_reply *first;

	while ((first = TAILQ_FIRST(&connection->queue))) {
		TAILQ_REMOVE(&connection->queue, first, link);
		first->connection = NULL;
		if (first->is_done)
			resp_reply_free(first);
	}
	connection->queued_bytes = 0;
	connection->awaited = 0;
}

struct resp_reply *resp_call_defer(struct resp_call *call)
{
	struct resp_connection *connection = call->connection;
	struct resp_server *server = connection->worker->server;
	size_t most = server->options.awaited_max;
	struct resp_reply *reply = NULL;

	assert(!call->deferred);
	if (resp_is_pool_empty(server) && most > RESP_FLOOR_BYTES / sizeof(*reply))
		most = RESP_FLOOR_BYTES / sizeof(*reply);
	if (connection->awaited < most)
		reply = new_reply(connection);
	if (!reply) {
		resp_write_error(call->writer, "ERR too many replies are awaited");
		return NULL;
	}
	reply->is_deferred = true;
	reply->is_muted = call->is_muted;
	reply->writer.owed = 1;
	connection->awaited++;
	__atomic_add_fetch(&server->replies_awaited, 1, __ATOMIC_RELAXED);
	call->deferred = reply;
	return reply;
}

struct resp_writer *resp_reply_writer(struct resp_reply *reply)
{
	return &reply->writer;
}

void resp_reply_settle(struct resp_reply *reply)
{
	struct resp_connection *connection = reply->connection;

	if (!connection) {
		resp_reply_free(reply);
		return;
	}
	if (!reply->writer.is_failed && reply->writer.owed != 0) {
		resp_writer_cut(&reply->writer, 0);
		resp_write_error(&reply->writer, "ERR internal error: not one whole reply");
	}
	if (reply->is_muted)
		resp_writer_cut(&reply->writer, 0);
	reply->is_done = true;
	connection->awaited--;
	connection->queued_bytes += reply->writer.length;
	/* Within its own batch it is sent at the end of that. */
	if (connection->is_executing || connection->is_dirty)
		return;
	connection->is_dirty = true;
	TAILQ_INSERT_TAIL(&connection->worker->dirty, connection, dirty_link);
}

void resp_reply_done(struct resp_reply *reply)
{
	if (resp_worker_is_current(reply->worker))
		resp_reply_settle(reply);
	else
		resp_worker_give_reply(reply->worker, reply);
}
