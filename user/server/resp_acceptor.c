/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Accepting, on worker 0: each connection goes to the worker that has the fewest. When there are no
 * descriptors left, it waits a moment rather than spin: clients stay in the backlog meanwhile.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/resp_connection.h"

enum {
	ACCEPTED_AT_ONCE_MAX = 64, /* then those who are connected have their turn */
};

static const struct timeval pause_length = { .tv_sec = 1 };

static void refuse(struct resp_server *server, int fd)
{
	static const char text[] = "-ERR max number of clients reached\r\n";

	resp_counter_add(&server->workers[0].counters.refused, 1);
	(void)!send(fd, text, sizeof(text) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

static struct resp_worker *choose(struct resp_server *server)
{
	struct resp_worker *least = &server->workers[0];
	unsigned i;

	for (i = 1; i < server->options.workers; i++)
		if (__atomic_load_n(&server->workers[i].connection_count, __ATOMIC_RELAXED) <
		    __atomic_load_n(&least->connection_count, __ATOMIC_RELAXED))
			least = &server->workers[i];
	return least;
}

static void welcome(struct resp_server *server, int fd, const struct resp_peer *peer)
{
	uint64_t most = server->options.connections_max;
	struct resp_worker *worker = choose(server);
	struct resp_connection *connection;

	if (__atomic_load_n(&server->connections, __ATOMIC_RELAXED) >= most) {
		refuse(server, fd);
		return;
	}
	connection = resp_connection_new(server, fd, peer);
	if (!connection) {
		refuse(server, fd);
		return;
	}
	__atomic_add_fetch(&server->connections, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&worker->connection_count, 1, __ATOMIC_RELAXED);
	if (resp_worker_is_current(worker))
		resp_connection_attach(connection, worker);
	else
		resp_worker_give_connection(worker, connection);
}

static void on_accept_again(evutil_socket_t fd, short what, void *data)
{
	struct resp_server *server = data;
	unsigned i;

	(void)fd;
	(void)what;
	for (i = 0; i < server->listener_count; i++)
		(void)event_add(&server->listeners[i].accepting, NULL); /* it has been there */
}

static void wait_a_moment(struct resp_server *server, int err)
{
	char text[128];
	unsigned i;

	for (i = 0; i < server->listener_count; i++)
		event_del(&server->listeners[i].accepting);
	if (evtimer_add(&server->accept_again, &pause_length))
		on_accept_again(-1, EV_TIMEOUT, server);
	if (!server->options.notice)
		return;
	snprintf(text, sizeof(text), "cannot accept connections: %s", strerror(-err));
	server->options.notice(server->options.context, text);
}

static void on_acceptable(evutil_socket_t listening, short what, void *data)
{
	struct resp_server *server = data;
	struct resp_listener *listener = server->listeners;
	struct resp_peer peer;
	int i, fd;

	(void)what;
	while (listener->fd != listening)
		listener++;
	for (i = 0; i < ACCEPTED_AT_ONCE_MAX; i++) {
		fd = resp_listener_accept(listener, &peer);
		if (fd == -EMFILE || fd == -ENFILE || fd == -ENOBUFS || fd == -ENOMEM) {
			wait_a_moment(server, fd);
			return;
		}
		/* Other errors are those of a client that has gone already. */
		if (fd == -EAGAIN)
			return;
		if (fd >= 0)
			welcome(server, fd, &peer);
	}
}

int resp_acceptor_start(struct resp_server *server)
{
	struct event_base *base = server->workers[0].base;
	unsigned i;

	evtimer_assign(&server->accept_again, base, on_accept_again, server);
	for (i = 0; i < server->listener_count; i++) {
		struct resp_listener *listener = &server->listeners[i];

		event_assign(&listener->accepting, base, listener->fd, EV_READ | EV_PERSIST,
			     on_acceptable, server);
		if (event_add(&listener->accepting, NULL))
			return -ENOMEM;
	}
	return 0;
}

void resp_acceptor_stop(struct resp_server *server)
{
	unsigned i;

	evtimer_del(&server->accept_again);
	for (i = 0; i < server->listener_count; i++) {
		event_del(&server->listeners[i].accepting);
		resp_listener_close(&server->listeners[i]);
	}
}
