/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inside the RESP server: a client's connection, the replies it awaits, and the call of a command.
 * Functions are for the thread of the connection's worker, unless they say otherwise; resp_worker.h
 * has the argument.
 */
#ifndef SLUICE_SERVER_RESP_CONNECTION_H
#define SLUICE_SERVER_RESP_CONNECTION_H

#include "server/resp_worker.h"

enum resp_mute { RESP_MUTE_NONE, RESP_MUTE_ALL, RESP_MUTE_ONE }; /* CLIENT REPLY */

/*
 * A place in the queue of replies. Those that are done hold bytes that wait for the one before: a
 * deferred reply that was completed early, or the replies of commands that were not deferred.
 */
struct resp_reply {
	TAILQ_ENTRY(resp_reply) link;      /* of the connection's queue */
	TAILQ_ENTRY(resp_reply) done_link; /* of the worker's mailbox */
	struct resp_worker *worker;
	struct resp_connection *connection; /* NULL: it has gone */
	struct resp_writer writer;
	bool is_deferred; /* somebody owes, or owed, a resp_reply_done() */
	bool is_done;
	bool is_muted;
};

struct resp_connection {
	TAILQ_ENTRY(resp_connection) link;       /* of the worker's connections or arrivals */
	TAILQ_ENTRY(resp_connection) dirty_link; /* with is_dirty */
	struct resp_worker *worker;
	int fd;
	uint64_t id;
	uint64_t opened_ns;
	struct event reading;
	struct event writing;
	struct event hangup; /* while neither of the two is waited for */

	uint8_t *in; /* what was read and not yet executed */
	size_t in_length;
	size_t in_room;
	struct resp_writer out;
	size_t sent;                  /* of out */
	struct resp_reply_list queue; /* empty: replies go to out at once */
	size_t queued_bytes;          /* of those in the queue that are done */
	size_t awaited;               /* of those in the queue that are not */
	size_t drawn_bytes;           /* from the pool */

	bool is_reading, is_writing, is_watched; /* which events are waited for */
	bool is_dirty;
	bool is_executing; /* its commands run: sending waits until they have */
	bool has_more;     /* `in` may begin with a whole request */
	bool is_full;      /* too much waits to be taken: nothing is executed */
	bool is_ending;    /* nothing more is read; what was read is answered */
	bool is_closing;   /* nothing more is executed; close when all is sent */
	bool is_malformed; /* then say so, and let the client read it */
	bool is_lingering;
	bool is_broken; /* out of memory or bounds */
	uint64_t linger_until_ns;

	enum resp_mute mute;
	/* Changed under the worker's lock. */
	unsigned protocol;
	struct resp_peer peer;
	char name[RESP_NAME_ROOM];
	char library_name[RESP_NAME_ROOM];
	char library_version[RESP_NAME_ROOM];
};

struct resp_call {
	struct resp_connection *connection;
	const struct resp_request *request;
	struct resp_writer *writer;
	struct resp_reply *deferred;
	bool is_muted;   /* the reply, should it be deferred */
	bool must_close; /* when the reply is sent */
};

/* Any thread. NULL: no memory, and fd is still the caller's. */
struct resp_connection *resp_connection_new(struct resp_server *server, int fd,
					    const struct resp_peer *peer);
/* Of one that was never attached. */
void resp_connection_discard(struct resp_connection *connection);
/* Begin to serve. */
void resp_connection_attach(struct resp_connection *connection, struct resp_worker *worker);
/* Read what has arrived, execute it, then end when all is answered. May free it. */
void resp_connection_drain(struct resp_connection *connection);
/* Send what is ready and go on as far as can be. May free it. */
void resp_connection_continue(struct resp_connection *connection);
/* At once; what has not been sent is lost. Frees it. */
void resp_connection_close(struct resp_connection *connection);

/* resp_execute.c: execute what is whole in data, and keep the rest in `in` (which data may be). */
void resp_execute(struct resp_connection *connection, uint8_t *data, size_t length);
/* Bytes that wait to be taken by the client. */
size_t resp_pending_bytes(const struct resp_connection *connection);
/* Whether too much waits to be taken; updates is_full. */
bool resp_is_full(struct resp_connection *connection);
/* Draw on the pool, or give back, as much as the connection holds beyond the floor. */
void resp_account(struct resp_connection *connection);
/* Before out is written to: give it a buffer and its bound. */
void resp_lend(struct resp_connection *connection);
/* All is sent: leave the output buffer to who comes next. */
void resp_give_back(struct resp_connection *connection);
bool resp_is_pool_empty(const struct resp_server *server);

/* resp_reply.c. Where the next reply goes; NULL: no memory. */
struct resp_writer *resp_queue_writer(struct resp_connection *connection);
/* Into out what is done and has nothing undone before it. */
void resp_queue_promote(struct resp_connection *connection);
/* The client is gone: what is not done is left to those who owe it. */
void resp_queue_abandon(struct resp_connection *connection);
/* A reply that its owner has completed. */
void resp_reply_settle(struct resp_reply *reply);
void resp_reply_free(struct resp_reply *reply);

#endif
