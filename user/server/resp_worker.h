/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inside the RESP server: the server and its worker threads. A worker is an event loop with the
 * connections that were given to it; what others want of it goes through its mailbox.
 *
 * Concurrency. A connection belongs to one worker and is touched by that worker's thread only, with
 * two exceptions. (1) CLIENT LIST reads connections of all workers: so a worker's list, and of a
 * connection the names, the protocol and the identity, are changed under the worker's lock, by its
 * own thread, which therefore may read them without. (2) A deferred reply belongs to whoever
 * completes it, up to resp_reply_done(): that hands it over through the mailbox, whose lock orders
 * the writes before it and the reads after it. The connection it belongs to is looked up by the
 * worker only, which clears it when the client has gone first: nobody else ever follows that
 * pointer. A reply holds no lock and takes none but the mailbox's, for as long as it takes to link
 * it in. The server itself is constant once the threads run, but for its atomic counters. Where
 * locks nest: never.
 */
#ifndef SLUICE_SERVER_RESP_WORKER_H
#define SLUICE_SERVER_RESP_WORKER_H

#include <pthread.h>
#include <sys/queue.h>

#include "server/resp_listener.h"
#include "server/resp_server.h"
#include "server/resp_table.h"

struct resp_connection;

enum {
	RESP_SCRATCH_BYTES = 128 * 1024, /* where requests are read and taken apart */
	RESP_FLOOR_BYTES = 16 * 1024, /* what a connection may hold without drawing on the pool */
	RESP_LISTENERS_MAX = 16,
};

/* Written by the worker's thread only, read by any. */
struct resp_counters {
	uint64_t accepted, refused, commands, malformed;
	uint64_t closed_idle, closed_stalled, closed_full;
	uint64_t input_bytes, output_bytes;
};

TAILQ_HEAD(resp_connection_list, resp_connection);
TAILQ_HEAD(resp_reply_list, resp_reply);

struct resp_worker {
	struct resp_server *server;
	unsigned index;
	pthread_t thread;
	bool has_thread;
	struct event_base *base;
	const struct timeval *idle_timeout; /* NULL: none */
	const struct timeval *stall_timeout;
	struct resp_counters counters;
	uint64_t connection_count; /* atomic; counted by who hands a connection over */

	/* Of the thread. */
	struct resp_request request;
	uint8_t *scratch;
	struct resp_writer spare; /* an output buffer for who needs one */
	struct resp_connection_list
		dirty; /* whose replies were completed from outside of their turn */
	bool is_ending;
	struct event grace;

	pthread_mutex_t lock; /* of the list and the mailbox */
	struct resp_connection_list connections;
	struct resp_connection_list arrivals;
	struct resp_reply_list done;
	bool must_end;
	bool is_woken;
	int wake_fd;
	struct event wake;
};

struct resp_server {
	struct resp_server_options options; /* every member set */
	struct resp_table *table;
	struct resp_worker *workers;                        /* options.workers of them */
	struct resp_listener listeners[RESP_LISTENERS_MAX]; /* accepted by worker 0 */
	unsigned listener_count;
	struct event accept_again;
	unsigned tcp_port;
	uint64_t started_ns;
	struct timeval grace;
	bool is_stopped;

	/* Atomic. */
	uint64_t connection_ids;
	uint64_t connections;
	uint64_t pool_used;
	uint64_t replies_awaited;
};

/* Add to a counter that only this thread writes. */
static inline void resp_counter_add(uint64_t *counter, uint64_t amount)
{
	__atomic_store_n(counter, *counter + amount, __ATOMIC_RELAXED);
}

/* Everything but the thread. On failure what there is is undone by done. */
int resp_worker_init(struct resp_worker *worker, struct resp_server *server, unsigned index);
void resp_worker_done(struct resp_worker *worker);
int resp_worker_start(struct resp_worker *worker); /* the thread; -errno */

/* Whether the caller is the worker's thread. */
bool resp_worker_is_current(const struct resp_worker *worker);

/* Any thread: into the mailbox. */
void resp_worker_give_connection(struct resp_worker *worker, struct resp_connection *connection);
void resp_worker_give_reply(struct resp_worker *worker, struct resp_reply *reply);
void resp_worker_end(struct resp_worker *worker); /* answer what was read, and end */

/* The worker's thread: at the end of whatever the event loop calls, send what became ready. */
void resp_worker_flush(struct resp_worker *worker);
/* The worker's thread: a connection has gone. */
void resp_worker_lost(struct resp_worker *worker);

/* Worker 0's thread, or before it runs. Begin to accept; end it. */
int resp_acceptor_start(struct resp_server *server);
void resp_acceptor_stop(struct resp_server *server);

#endif
