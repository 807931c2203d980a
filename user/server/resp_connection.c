/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The life of a connection: reading, sending, and when it ends. Requests are read into the worker's
 * buffer and executed there; only what is left over (half a request, or what must wait because the
 * client does not take its replies) is kept with the connection, so that an idle one holds nothing.
 * Each turn reads once: who sends a million commands takes turns with the others.
 *
 * A connection is freed in resp_connection_close() only. Whatever may end there says so, by what it
 * returns or as the last thing it does: after it the pointer is dead.
 */
#include "server/resp_connection.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

enum {
	READ_BYTES =
		RESP_SCRATCH_BYTES / 2, /* at once; before it there is room for what was left */
	DRAIN_READS_MAX = 16,
	LINGER_S = 1,
};

#define LINGER_NS (LINGER_S * UINT64_C(1000000000))

struct resp_connection *resp_connection_new(struct resp_server *server, int fd,
					    const struct resp_peer *peer)
{
	struct resp_connection *connection = calloc(1, sizeof(*connection));

	if (!connection)
		return NULL;
	connection->fd = fd;
	connection->id = __atomic_add_fetch(&server->connection_ids, 1, __ATOMIC_RELAXED);
	connection->opened_ns = clock_monotonic_ns();
	connection->protocol = 2;
	connection->peer = *peer;
	connection->peer.is_admitted = peer->is_unix || !server->options.is_auth_required;
	TAILQ_INIT(&connection->queue);
	resp_writer_init(&connection->out, 2, 0);
	return connection;
}

void resp_connection_discard(struct resp_connection *connection)
{
	close(connection->fd);
	free(connection);
}

void resp_connection_close(struct resp_connection *connection)
{
	struct resp_worker *worker = connection->worker;
	struct resp_server *server = worker->server;
	uint64_t id = connection->id;

	event_del(&connection->reading);
	event_del(&connection->writing);
	event_del(&connection->hangup);
	close(connection->fd);
	if (connection->is_dirty)
		TAILQ_REMOVE(&worker->dirty, connection, dirty_link);
	pthread_mutex_lock(&worker->lock);
	TAILQ_REMOVE(&worker->connections, connection, link);
	pthread_mutex_unlock(&worker->lock);
	resp_queue_abandon(connection);
	free(connection->in);
	connection->in_room = 0;
	resp_writer_done(&connection->out);
	resp_account(connection);
	free(connection);
	__atomic_sub_fetch(&worker->connection_count, 1, __ATOMIC_RELAXED);
	__atomic_sub_fetch(&server->connections, 1, __ATOMIC_RELAXED);
	/* Now nothing of it is left that this could meet. */
	if (server->options.closed)
		server->options.closed(server->options.context, id);
	resp_worker_lost(worker);
}

/* ---- sending */

/* Wait for an event, or no longer. False: the system has no room for it. */
static bool set_awaited(struct event *event, bool *is_awaited, bool is_wanted,
			const struct timeval *timeout)
{
	bool was_awaited = *is_awaited;

	*is_awaited = is_wanted;
	if (is_wanted && !was_awaited)
		return event_add(event, timeout) == 0;
	if (!is_wanted && was_awaited)
		event_del(event);
	return true;
}

/* Wait for what can be gone on with; close it if that cannot be. */
static void await(struct resp_connection *connection)
{
	struct resp_worker *worker = connection->worker;
	bool must_write = connection->out.length > connection->sent;
	bool may_read =
		!resp_is_full(connection) && !connection->is_ending && !connection->is_closing;
	bool must_watch = !must_write && !may_read;

	/* An event on edges cannot be waited for together with those on levels: it goes first. */
	if (!must_watch)
		set_awaited(&connection->hangup, &connection->is_watched, false, NULL);
	if (!set_awaited(&connection->writing, &connection->is_writing, must_write,
			 worker->stall_timeout) ||
	    !set_awaited(&connection->reading, &connection->is_reading, may_read,
			 worker->idle_timeout) ||
	    !set_awaited(&connection->hangup, &connection->is_watched, must_watch, NULL))
		resp_connection_close(connection);
}

/*
 * The client has sent what is no request, and may be sending still: closing now would reset the
 * connection, and with it perhaps what we have said about it. So it is told that nothing more will
 * come, and has a moment to go. False: it cannot be waited for.
 */
static bool linger(struct resp_connection *connection)
{
	static const struct timeval moment = { .tv_sec = LINGER_S };

	event_del(&connection->reading);
	event_del(&connection->writing);
	event_del(&connection->hangup);
	shutdown(connection->fd, SHUT_WR);
	connection->is_lingering = true;
	connection->linger_until_ns = clock_monotonic_ns() + LINGER_NS;
	return event_add(&connection->reading, &moment) == 0;
}

/* -EAGAIN: the client does not take more now. */
static int send_bytes(struct resp_connection *connection)
{
	struct resp_writer *out = &connection->out;

	while (out->length > connection->sent) {
		ssize_t sent = send(connection->fd, out->data + connection->sent,
				    out->length - connection->sent, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return errno == EWOULDBLOCK ? -EAGAIN : -errno;
		connection->sent += (size_t)sent;
		resp_counter_add(&connection->worker->counters.output_bytes, (uint64_t)sent);
	}
	return 0;
}

static bool has_ended(const struct resp_connection *connection)
{
	bool is_last = connection->is_closing || (connection->is_ending && !connection->has_more);

	return is_last && connection->out.length == 0 && TAILQ_EMPTY(&connection->queue);
}

/* Send what is in order, end what has ended. False: it has been closed. */
static bool send_ready(struct resp_connection *connection)
{
	struct resp_writer *out = &connection->out;
	int err;

	resp_queue_promote(connection);
	if (out->is_failed || connection->is_broken) {
		resp_counter_add(&connection->worker->counters.closed_full, 1);
		goto close;
	}
	err = send_bytes(connection);
	if (err && err != -EAGAIN)
		goto close;
	if (out->length == connection->sent || connection->sent > out->room / 2) {
		resp_writer_drop(out, connection->sent);
		connection->sent = 0;
	}
	resp_give_back(connection);
	resp_account(connection);
	if (!has_ended(connection))
		return true;
	if (connection->is_malformed && linger(connection))
		return true;

close:
	resp_connection_close(connection);
	return false;
}

/* Execute, send, and again, as long as the client takes what it gets. False: it has been closed. */
static bool work(struct resp_connection *connection, uint8_t *data, size_t length)
{
	for (;;) {
		resp_execute(connection, data, length);
		if (!send_ready(connection))
			return false;
		if (!connection->has_more || connection->is_lingering || resp_is_full(connection))
			return true;
		data = connection->in;
		length = connection->in_length;
	}
}

void resp_connection_continue(struct resp_connection *connection)
{
	if (!send_ready(connection) || connection->is_lingering)
		return;
	if (connection->has_more && !work(connection, connection->in, connection->in_length))
		return;
	if (!connection->is_lingering)
		await(connection);
}

/* ---- reading */

/* The client has said its last. False: it has been closed. */
static bool end(struct resp_connection *connection)
{
	/* It may have shut down only its own side, and want its replies; but who waits for
	 * something yet to come must stay. */
	if (connection->awaited == 0) {
		connection->is_ending = true;
		return send_ready(connection);
	}
	resp_connection_close(connection);
	return false;
}

/* What is left from before and what comes now, in one piece: in the worker's buffer if it fits. */
static uint8_t *read_place(struct resp_connection *connection)
{
	uint8_t *scratch = connection->worker->scratch;
	size_t needed = connection->in_length + READ_BYTES;
	uint8_t *in;

	if (needed <= RESP_SCRATCH_BYTES) {
		if (connection->in_length)
			memcpy(scratch, connection->in, connection->in_length);
		return scratch;
	}
	if (needed <= connection->in_room)
		return connection->in;
	if (resp_is_pool_empty(connection->worker->server))
		return NULL;
	in = realloc(connection->in, 2 * needed);
	if (!in)
		return NULL;
	connection->in = in;
	connection->in_room = 2 * needed;
	return in;
}

/* Read once and execute. 1: go on. 0: there is nothing to read. -ECONNRESET: it has been closed. */
static int take_in(struct resp_connection *connection)
{
	uint8_t *place = read_place(connection);
	ssize_t got;

	if (!place) {
		resp_counter_add(&connection->worker->counters.closed_full, 1);
		resp_connection_close(connection);
		return -ECONNRESET;
	}
	got = recv(connection->fd, place + connection->in_length, READ_BYTES, 0);
	if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
		return 0;
	if (got < 0) {
		resp_connection_close(connection);
		return -ECONNRESET;
	}
	if (got == 0)
		return end(connection) ? 0 : -ECONNRESET;
	resp_counter_add(&connection->worker->counters.input_bytes, (uint64_t)got);
	return work(connection, place, connection->in_length + (size_t)got) ? 1 : -ECONNRESET;
}

void resp_connection_drain(struct resp_connection *connection)
{
	int reads;

	if (connection->is_lingering || connection->is_closing || connection->is_ending)
		return;
	for (reads = 0; reads < DRAIN_READS_MAX && !connection->is_full; reads++) {
		int more = take_in(connection);

		if (more < 0)
			return;
		if (more == 0 || connection->is_closing)
			break;
	}
	if (connection->is_lingering)
		return;
	connection->is_ending = true;
	resp_connection_continue(connection);
}

/* ---- what the event loop calls */

static void pass_over(struct resp_connection *connection)
{
	struct resp_worker *worker = connection->worker;
	ssize_t got = recv(connection->fd, worker->scratch, RESP_SCRATCH_BYTES, 0);
	bool is_gone = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);

	if (is_gone || clock_monotonic_ns() >= connection->linger_until_ns)
		resp_connection_close(connection);
}

static void time_out(struct resp_connection *connection)
{
	if (!connection->is_lingering) {
		/* Who awaits a reply, or has not yet taken one, is not idle. */
		if (connection->awaited || connection->out.length)
			return;
		resp_counter_add(&connection->worker->counters.closed_idle, 1);
	}
	resp_connection_close(connection);
}

static void on_readable(evutil_socket_t fd, short what, void *data)
{
	struct resp_connection *connection = data;
	struct resp_worker *worker = connection->worker;

	(void)fd;
	if (what & EV_TIMEOUT)
		time_out(connection);
	else if (connection->is_lingering)
		pass_over(connection);
	else if (take_in(connection) >= 0 && !connection->is_lingering)
		await(connection);
	resp_worker_flush(worker);
}

static void on_writable(evutil_socket_t fd, short what, void *data)
{
	struct resp_connection *connection = data;
	struct resp_worker *worker = connection->worker;

	(void)fd;
	if (what & EV_TIMEOUT) {
		resp_counter_add(&worker->counters.closed_stalled, 1);
		resp_connection_close(connection);
	} else {
		resp_connection_continue(connection);
	}
	resp_worker_flush(worker);
}

/*
 * Something happened while nothing was waited for but the client's end. libevent reports an error
 * of the socket as readable, not as closed: so that is waited for too, on edges, or the next bytes
 * of a client that is well would keep the loop spinning.
 */
static void on_hangup(evutil_socket_t fd, short what, void *data)
{
	struct resp_connection *connection = data;
	struct resp_worker *worker = connection->worker;
	struct pollfd state = { .fd = fd, .events = POLLRDHUP };

	(void)what;
	if (poll(&state, 1, 0) > 0 && state.revents & (POLLERR | POLLHUP | POLLRDHUP))
		resp_connection_close(connection);
	resp_worker_flush(worker);
}

void resp_connection_attach(struct resp_connection *connection, struct resp_worker *worker)
{
	connection->worker = worker;
	event_assign(&connection->reading, worker->base, connection->fd, EV_READ | EV_PERSIST,
		     on_readable, connection);
	event_assign(&connection->writing, worker->base, connection->fd, EV_WRITE | EV_PERSIST,
		     on_writable, connection);
	event_assign(&connection->hangup, worker->base, connection->fd,
		     EV_READ | EV_CLOSED | EV_ET | EV_PERSIST, on_hangup, connection);
	pthread_mutex_lock(&worker->lock);
	TAILQ_INSERT_TAIL(&worker->connections, connection, link);
	pthread_mutex_unlock(&worker->lock);
	resp_counter_add(&worker->counters.accepted, 1);
	await(connection);
}
