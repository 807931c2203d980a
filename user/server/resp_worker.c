/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A worker: its thread, its mailbox, and how it ends. The loop's memory is the thread's alone, so
 * libevent's locks stay off; whoever else wants something puts it into the mailbox and wakes the
 * loop through an eventfd, once until the mailbox is emptied.
 */
#include "server/resp_worker.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "server/resp_connection.h"

static _Thread_local const struct resp_worker *current;

bool resp_worker_is_current(const struct resp_worker *worker)
{
	return current == worker;
}

/* Links into the mailbox are made by the caller, which holds the lock and gives it up here. */
static void wake_and_unlock(struct resp_worker *worker)
{
	const uint64_t one = 1;
	bool must_wake = !worker->is_woken;

	worker->is_woken = true;
	pthread_mutex_unlock(&worker->lock);
	/* Cannot fail: the counter is far from its end. */
	if (must_wake)
		(void)!write(worker->wake_fd, &one, sizeof(one));
}

void resp_worker_give_connection(struct resp_worker *worker, struct resp_connection *connection)
{
	pthread_mutex_lock(&worker->lock);
	TAILQ_INSERT_TAIL(&worker->arrivals, connection, link);
	wake_and_unlock(worker);
}

void resp_worker_give_reply(struct resp_worker *worker, struct resp_reply *reply)
{
	pthread_mutex_lock(&worker->lock);
	TAILQ_INSERT_TAIL(&worker->done, reply, done_link);
	wake_and_unlock(worker);
}

void resp_worker_end(struct resp_worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	worker->must_end = true;
	wake_and_unlock(worker);
}

void resp_worker_flush(struct resp_worker *worker)
{
	struct resp_connection *connection;

	/* What one of them executes may complete the replies of another. */
	while ((connection = TAILQ_FIRST(&worker->dirty))) {
		TAILQ_REMOVE(&worker->dirty, connection, dirty_link);
		connection->is_dirty = false;
		resp_connection_continue(connection);
	}
}

void resp_worker_lost(struct resp_worker *worker)
{
	if (worker->is_ending && TAILQ_EMPTY(&worker->connections))
		event_base_loopbreak(worker->base);
}

static void on_grace_over(evutil_socket_t fd, short what, void *data)
{
	struct resp_worker *worker = data;
	struct resp_connection *connection;

	(void)fd;
	(void)what;
	while ((connection = TAILQ_FIRST(&worker->connections)))
		resp_connection_close(connection);
}

static void end(struct resp_worker *worker)
{
	struct resp_server *server = worker->server;
	struct resp_connection *connection, *next;
	unsigned i;

	if (worker->is_ending)
		return;
	worker->is_ending = true;
	/* The acceptor's worker ends the others, when it has given them the last connection. */
	if (worker->index == 0) {
		resp_acceptor_stop(server);
		for (i = 1; i < server->options.workers; i++)
			resp_worker_end(&server->workers[i]);
	}
	for (connection = TAILQ_FIRST(&worker->connections); connection; connection = next) {
		next = TAILQ_NEXT(connection, link);
		resp_connection_drain(connection);
	}
	if (evtimer_add(&worker->grace, &server->grace))
		on_grace_over(-1, EV_TIMEOUT, worker);
	resp_worker_lost(worker);
}

static void on_wake(evutil_socket_t fd, short what, void *data)
{
	struct resp_worker *worker = data;
	struct resp_connection_list arrivals = TAILQ_HEAD_INITIALIZER(arrivals);
	struct resp_reply_list done = TAILQ_HEAD_INITIALIZER(done);
	struct resp_connection *connection;
	struct resp_reply *reply;
	uint64_t count;
	bool must_end;

	(void)what;
	(void)!read(fd, &count, sizeof(count));
	pthread_mutex_lock(&worker->lock);
	worker->is_woken = false;
	must_end = worker->must_end;
	TAILQ_CONCAT(&arrivals, &worker->arrivals, link);
	TAILQ_CONCAT(&done, &worker->done, done_link);
	pthread_mutex_unlock(&worker->lock);

	while ((connection = TAILQ_FIRST(&arrivals))) {
		TAILQ_REMOVE(&arrivals, connection, link);
		resp_connection_attach(connection, worker);
	}
	while ((reply = TAILQ_FIRST(&done))) {
		TAILQ_REMOVE(&done, reply, done_link);
		resp_reply_settle(reply);
	}
	if (must_end)
		end(worker);
	resp_worker_flush(worker);
}

static void *serve(void *data)
{
	struct resp_worker *worker = data;

	current = worker;
	event_base_loop(worker->base, EVLOOP_NO_EXIT_ON_EMPTY);
	current = NULL;
	return NULL;
}

static struct event_base *new_base(void)
{
	struct event_config *config = event_config_new();
	struct event_base *base = NULL;

	if (config && event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK) == 0)
		base = event_base_new_with_config(config);
	if (config)
		event_config_free(config);
	return base;
}

/* One queue for all timeouts of this length. NULL: none is wanted. */
static const struct timeval *timeout(struct event_base *base, uint64_t milliseconds)
{
	struct timeval length = {
		.tv_sec = (time_t)(milliseconds / 1000),
		.tv_usec = (suseconds_t)(milliseconds % 1000 * 1000),
	};

	return milliseconds ? event_base_init_common_timeout(base, &length) : NULL;
}

int resp_worker_init(struct resp_worker *worker, struct resp_server *server, unsigned index)
{
	worker->server = server;
	worker->index = index;
	worker->wake_fd = -1;
	pthread_mutex_init(&worker->lock, NULL);
	TAILQ_INIT(&worker->dirty);
	TAILQ_INIT(&worker->connections);
	TAILQ_INIT(&worker->arrivals);
	TAILQ_INIT(&worker->done);
	worker->base = new_base();
	worker->scratch = malloc(RESP_SCRATCH_BYTES);
	if (!worker->base || !worker->scratch)
		return -ENOMEM;
	worker->idle_timeout = timeout(worker->base, server->options.idle_timeout_ms);
	worker->stall_timeout = timeout(worker->base, server->options.stall_timeout_ms);
	worker->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (worker->wake_fd < 0)
		return -errno;
	event_assign(&worker->wake, worker->base, worker->wake_fd, EV_READ | EV_PERSIST, on_wake,
		     worker);
	evtimer_assign(&worker->grace, worker->base, on_grace_over, worker);
	return event_add(&worker->wake, NULL) ? -ENOMEM : 0;
}

int resp_worker_start(struct resp_worker *worker)
{
	char name[16];
	sigset_t all, before;
	int err;

	/* Signals are for the threads of who started us. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&worker->thread, NULL, serve, worker);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		return -err;
	worker->has_thread = true;
	snprintf(name, sizeof(name), "resp-%u", worker->index);
	(void)pthread_setname_np(worker->thread, name);
	return 0;
}

void resp_worker_done(struct resp_worker *worker)
{
	struct resp_connection *connection;
	struct resp_reply *reply;

	/* Replies that were completed after the end, to clients that are gone. */
	while ((reply = TAILQ_FIRST(&worker->done))) {
		TAILQ_REMOVE(&worker->done, reply, done_link);
		resp_reply_settle(reply);
	}
	while ((connection = TAILQ_FIRST(&worker->arrivals))) {
		TAILQ_REMOVE(&worker->arrivals, connection, link);
		resp_connection_discard(connection);
	}
	if (worker->base) {
		if (worker->wake_fd >= 0) {
			event_del(&worker->wake);
			event_del(&worker->grace);
		}
		event_base_free(worker->base);
	}
	if (worker->wake_fd >= 0)
		close(worker->wake_fd);
	free(worker->scratch);
	resp_writer_done(&worker->spare);
	pthread_mutex_destroy(&worker->lock);
}
