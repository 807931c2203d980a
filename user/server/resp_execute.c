/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From bytes to commands to replies: every whole request of what was read is executed, until the
 * client owes us too much reading. Nothing is sent here, so that all replies leave together.
 */
#include <stdlib.h>
#include <string.h>

#include "server/resp_connection.h"

enum {
	KEEP_BYTES_MIN = 256,
	QUOTED_MAX = 128,              /* of a client's words in an error, as Redis has it */
	SPARE_BYTES_MAX = 1024 * 1024, /* a bigger output buffer is not kept for others */
};

size_t resp_call_count(const struct resp_call *call)
{
	return call->request->count;
}

const struct resp_argument *resp_call_argument(const struct resp_call *call, size_t index)
{
	return &call->request->arguments[index];
}

void *resp_call_context(const struct resp_call *call)
{
	return call->connection->worker->server->options.context;
}

unsigned resp_call_worker(const struct resp_call *call)
{
	return call->connection->worker->index;
}

uint64_t resp_call_connection(const struct resp_call *call)
{
	return call->connection->id;
}

unsigned resp_call_protocol(const struct resp_call *call)
{
	return call->connection->protocol;
}

const struct resp_peer *resp_call_peer(const struct resp_call *call)
{
	return &call->connection->peer;
}

struct resp_writer *resp_call_writer(struct resp_call *call)
{
	return call->writer;
}

/* ---- one command */

static void write_unknown(struct resp_call *call)
{
	const struct resp_request *request = call->request;
	const struct resp_argument *name = &request->arguments[0];
	char words[2 * QUOTED_MAX] = "";
	size_t length = 0, i;

	/* Redis has it so, with a space after each, and cuts the last one short. */
	for (i = 1; i < request->count && length < QUOTED_MAX; i++)
		length += (size_t)snprintf(words + length, sizeof(words) - length, "'%.*s' ",
					   QUOTED_MAX - (int)length, request->arguments[i].data);
	resp_write_error(call->writer, "ERR unknown command '%.*s', with args beginning with: %s",
			 QUOTED_MAX, name->data, words);
}

static void write_wrong_count(struct resp_call *call, const struct resp_command *command)
{
	char name[RESP_NAME_ROOM];
	size_t i;

	for (i = 0; command->name[i] && i < sizeof(name) - 1; i++)
		name[i] = command->name[i] >= 'A' && command->name[i] <= 'Z'
				  ? (char)(command->name[i] | 0x20)
				  : command->name[i];
	name[i] = '\0';
	resp_write_error(call->writer, "ERR wrong number of arguments for '%s' command", name);
}

static void dispatch(struct resp_call *call)
{
	const struct resp_table *table = call->connection->worker->server->table;
	const struct resp_command *command = resp_table_find(table, &call->request->arguments[0]);
	size_t arguments = call->request->count - 1;

	if (!command)
		write_unknown(call);
	else if (arguments < (size_t)command->min_args ||
		 (command->max_args >= 0 && arguments > (size_t)command->max_args))
		write_wrong_count(call, command);
	else if (!call->connection->peer.is_admitted && !(command->flags & RESP_COMMAND_NO_AUTH))
		resp_write_error(call->writer, "NOAUTH Authentication required.");
	else
		command->run(call);
}

/* Whether CLIENT REPLY silences this command; before: what it said when the command began. */
static bool is_muted(const struct resp_connection *connection, enum resp_mute before)
{
	return before == RESP_MUTE_ONE || connection->mute != RESP_MUTE_NONE;
}

static void run(struct resp_connection *connection, const struct resp_request *request)
{
	struct resp_writer *writer = resp_queue_writer(connection);
	enum resp_mute before = connection->mute;
	struct resp_call call = {
		.connection = connection,
		.request = request,
		.writer = writer,
		.is_muted = before != RESP_MUTE_NONE,
	};
	size_t mark;

	if (!writer) {
		connection->is_broken = true;
		return;
	}
	mark = writer->length;
	writer->owed = 1;
	if (before == RESP_MUTE_ONE)
		connection->mute = RESP_MUTE_NONE;
	dispatch(&call);
	if (call.deferred || is_muted(connection, before)) {
		resp_writer_cut(writer, mark);
	} else if (writer->owed != 0 && !writer->is_failed) {
		resp_writer_cut(writer, mark);
		resp_write_error(writer, "ERR internal error: not one whole reply");
	}
	if (writer != &connection->out)
		connection->queued_bytes += writer->length - mark;
	connection->is_broken = connection->is_broken || writer->is_failed;
	connection->is_closing = connection->is_closing || call.must_close;
}

/* ---- all that was read */

size_t resp_pending_bytes(const struct resp_connection *connection)
{
	return connection->out.length - connection->sent + connection->queued_bytes;
}

bool resp_is_pool_empty(const struct resp_server *server)
{
	return __atomic_load_n(&server->pool_used, __ATOMIC_RELAXED) >= server->options.pool_bytes;
}

void resp_account(struct resp_connection *connection)
{
	struct resp_server *server = connection->worker->server;
	size_t held = connection->in_room + connection->out.room + connection->queued_bytes +
		      connection->awaited * sizeof(struct resp_reply);
	size_t beyond = held > RESP_FLOOR_BYTES ? held - RESP_FLOOR_BYTES : 0;

	if (beyond == connection->drawn_bytes)
		return;
	__atomic_add_fetch(&server->pool_used, (uint64_t)beyond - connection->drawn_bytes,
			   __ATOMIC_RELAXED);
	connection->drawn_bytes = beyond;
}

/* If the worker has a buffer to spare, that: who has sent everything keeps none. */
void resp_lend(struct resp_connection *connection)
{
	struct resp_worker *worker = connection->worker;
	struct resp_server *server = worker->server;
	struct resp_writer *out = &connection->out;

	if (!out->data && worker->spare.data) {
		out->data = worker->spare.data;
		out->room = worker->spare.room;
		worker->spare = (struct resp_writer){ 0 };
	}
	out->most = server->options.output_hard_bytes;
	if (resp_is_pool_empty(server) && out->most > RESP_FLOOR_BYTES)
		out->most = RESP_FLOOR_BYTES;
}

bool resp_is_full(struct resp_connection *connection)
{
	const struct resp_server *server = connection->worker->server;
	size_t most = server->options.output_soft_bytes;

	if (resp_is_pool_empty(server) && most > RESP_FLOOR_BYTES / 2)
		most = RESP_FLOOR_BYTES / 2;
	/* Once full, half of it must have been taken: not a command for each byte. */
	if (connection->is_full)
		most /= 2;
	connection->is_full = resp_pending_bytes(connection) > most;
	return connection->is_full;
}

static int next(struct resp_connection *connection, uint8_t *data, size_t length, size_t *consumed)
{
	struct resp_worker *worker = connection->worker;
	struct resp_bounds bounds = worker->server->options.bounds;

	if (!connection->peer.is_admitted) {
		/* What a stranger may make us hold, as Redis has it. */
		bounds.is_unauthenticated = true;
		if (bounds.arguments_max > 10)
			bounds.arguments_max = 10;
		if (bounds.argument_bytes_max > 16384)
			bounds.argument_bytes_max = 16384;
	}
	return resp_decode(data, length, &bounds, &worker->request, consumed);
}

static void refuse(struct resp_connection *connection)
{
	struct resp_writer *writer = resp_queue_writer(connection);
	size_t mark;

	connection->is_closing = connection->is_malformed = true;
	resp_counter_add(&connection->worker->counters.malformed, 1);
	if (!writer)
		return;
	mark = writer->length;
	resp_write_error(writer, "ERR %s", connection->worker->request.error);
	if (writer != &connection->out)
		connection->queued_bytes += writer->length - mark;
}

/* A place for what is kept: the one there is, unless it is too small or much too big. */
static uint8_t *keeper(const struct resp_connection *connection, size_t length, size_t *room)
{
	bool is_wasteful =
		connection->in_room > RESP_FLOOR_BYTES && length < connection->in_room / 8;

	*room = connection->in_room;
	if (length <= connection->in_room && !is_wasteful)
		return connection->in;
	for (*room = KEEP_BYTES_MIN; *room < length;)
		*room *= 2;
	if (*room > RESP_FLOOR_BYTES && resp_is_pool_empty(connection->worker->server))
		return NULL;
	return malloc(*room);
}

/* Keep what has not been executed; data may lie in `in` already. */
static void keep(struct resp_connection *connection, const uint8_t *data, size_t length)
{
	uint8_t *in = NULL;
	size_t room = 0;

	if (length && !connection->is_closing && !connection->is_broken) {
		in = keeper(connection, length, &room);
		connection->is_broken = !in;
	}
	if (in && in != data)
		memmove(in, data, length);
	if (in != connection->in)
		free(connection->in);
	connection->in = in;
	connection->in_room = in ? room : 0;
	connection->in_length = in ? length : 0;
}

void resp_give_back(struct resp_connection *connection)
{
	struct resp_worker *worker = connection->worker;
	struct resp_writer *out = &connection->out;

	if (out->length || !out->data)
		return;
	if (!worker->spare.data && out->room <= SPARE_BYTES_MAX) {
		worker->spare.data = out->data;
		worker->spare.room = out->room;
		out->data = NULL;
		out->room = 0;
		return;
	}
	resp_writer_done(out);
	resp_writer_init(out, connection->protocol, 0);
}

void resp_execute(struct resp_connection *connection, uint8_t *data, size_t length)
{
	struct resp_worker *worker = connection->worker;
	size_t done = 0, consumed, commands = 0;
	bool may_go_on;
	int whole = 1;

	resp_lend(connection);
	connection->is_executing = true;
	for (;;) {
		may_go_on = !resp_is_full(connection) && !connection->is_closing &&
			    !connection->is_broken;
		if (!may_go_on)
			break;
		whole = next(connection, data + done, length - done, &consumed);
		if (whole <= 0)
			break;
		done += consumed;
		if (worker->request.count == 0)
			continue;
		run(connection, &worker->request);
		commands++;
	}
	if (whole < 0)
		refuse(connection);
	connection->is_executing = false;
	connection->has_more = !may_go_on && done < length;
	keep(connection, data + done, length - done);
	resp_counter_add(&worker->counters.commands, commands);
}
