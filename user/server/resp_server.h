/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The RESP server: listens on a Unix socket, TCP or sockets it has inherited, spreads connections
 * over worker threads, reads requests, runs the commands of a table and sends their replies in
 * order. What the commands mean is not its matter. Beside the caller's commands it knows those that
 * Redis clients greet with (resp_handshake.h).
 *
 * Every client is bounded. It sends at most what resp_bounds say; while more than output_soft_bytes
 * wait to be taken, its commands are not read, and beyond output_hard_bytes (one huge reply) or
 * after stall_timeout_ms without taking anything it is closed. What connections hold beyond 16 KiB
 * each comes out of one pool of pool_bytes; when the pool is empty, replies that wait are bounded
 * by 16 KiB a client, and a client that cannot do without more is closed.
 */
#ifndef SLUICE_SERVER_RESP_SERVER_H
#define SLUICE_SERVER_RESP_SERVER_H

#include <stdio.h>

#include "base/trouble.h"
#include "server/resp_command.h"

struct resp_server;

enum { RESP_WORKERS_MAX = 64 };

/* Zero or NULL is a usable value of every member. */
struct resp_server_options {
	const struct resp_command *commands; /* as long as the server lives */
	size_t command_count;
	void *context; /* for the callbacks and the commands */

	/* Called on worker threads, therefore at the same time for several connections; each may be
	 * NULL. */
	void (*closed)(void *context, uint64_t connection);
	/* Add to INFO what belongs to this section (lower case; "": all), lines ending in CR LF. */
	void (*info)(void *context, const char *section, FILE *out);
	/* Is it so? NULL: there are no passwords. user is "default" if the client named none. */
	bool (*authenticate)(void *context, const struct resp_argument *user,
			     const struct resp_argument *password, struct resp_identity *out);
	/* Something the operator should know; not more often than once a second. */
	void (*notice)(void *context, const char *text);

	const char *unix_path;  /* created with mode 0660 */
	const char *unix_group; /* NULL: sluice; if there is no such group, that of the process */
	const char *tcp;        /* `127.0.0.1:6380`, `[::1]:6380`; port 0: any */
	const int *inherited;   /* listening sockets, which become the server's */
	size_t inherited_count;
	bool is_auth_required; /* on TCP, before anything but the handshake */

	unsigned workers;          /* 0: 1 */
	unsigned connections_max;  /* 0: 16384 */
	unsigned awaited_max;      /* deferred replies a connection; 0: 16384 */
	struct resp_bounds bounds; /* each 0: 64 arguments, 1 MiB, 64 KiB, 2 MiB */
	size_t output_soft_bytes;  /* 0: 8 MiB */
	size_t output_hard_bytes;  /* 0: 64 MiB */
	size_t pool_bytes;         /* 0: 512 MiB */
	uint64_t idle_timeout_ms;  /* 0: never; a client that awaits a reply is not idle */
	uint64_t stall_timeout_ms; /* 0: 60 s */
	const char *version;       /* NULL: 0.0.0 */
};

struct resp_server_stats {
	uint64_t connections; /* now */
	uint64_t accepted;
	uint64_t refused; /* beyond connections_max */
	uint64_t commands;
	uint64_t malformed;      /* protocol errors */
	uint64_t closed_idle;    /* by idle_timeout_ms */
	uint64_t closed_stalled; /* by stall_timeout_ms */
	uint64_t closed_full;    /* a reply beyond output_hard_bytes, or the pool was empty */
	uint64_t input_bytes;
	uint64_t output_bytes;
	uint64_t pool_bytes; /* in use now */
};

/*
 * Bind, listen and begin to serve. A socket file that nobody listens on is replaced. -EADDRINUSE:
 * somebody does; -EEXIST: two commands of one name; other -errno of the system. Signals stay
 * blocked in the server's threads.
 */
int resp_server_start(const struct resp_server_options *options, struct resp_server **out,
		      struct trouble *trouble);

/*
 * Stop accepting, read what has arrived, answer what was read, close; what has not been answered or
 * taken after grace_ms is given up. Returns when all connections are closed and reported. Not to be
 * called by a worker thread. A second call does nothing.
 */
void resp_server_stop(struct resp_server *server, uint64_t grace_ms);

/* Stops, if it has not been; by then every deferred reply must be done. NULL is fine. */
void resp_server_free(struct resp_server *server);

/* The port on TCP, of the last if there are several; 0: none. */
unsigned resp_server_port(const struct resp_server *server);

/* Thread safe; each figure by itself. */
void resp_server_stats(const struct resp_server *server, struct resp_server_stats *out);

#endif
