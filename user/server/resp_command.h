/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a command of the RESP server is, for those who write commands: a row of a table, whose run()
 * reads its arguments from the call and either writes one reply or takes the reply's place in the
 * queue, to write it later. run() is called on the thread of the client's connection and must not
 * block.
 */
#ifndef SLUICE_SERVER_RESP_COMMAND_H
#define SLUICE_SERVER_RESP_COMMAND_H

#include <sys/types.h>

#include "wire/resp.h"

struct resp_call;
struct resp_reply;

enum resp_command_flag {
	RESP_COMMAND_READ = 1 << 0, /* changes nothing */
	RESP_COMMAND_WRITE = 1 << 1,
	RESP_COMMAND_ADMIN =
		1 << 2,            /* only as COMMAND shows it: the command itself asks the peer */
	RESP_COMMAND_KEY = 1 << 3, /* its first argument is the key */
	RESP_COMMAND_BLOCKING = 1 << 4,
	RESP_COMMAND_NO_AUTH = 1 << 5, /* may be called before AUTH */
};

struct resp_command {
	const char *name; /* upper case; called in any case */
	int min_args;     /* without the name */
	int max_args;     /* -1: any number */
	unsigned flags;
	void (*run)(struct resp_call *call);
	const char *syntax;  /* arguments, for people: `tenant [bytes] [ATOMIC]`; may be NULL */
	const char *summary; /* may be NULL */
};

enum { RESP_NAME_ROOM = 64 + 1 };

/* Who AUTH has found a client to be. */
struct resp_identity {
	char name[RESP_NAME_ROOM];
	uint64_t scopes; /* what the bits mean is a matter of the caller */
};

/* Who is at the other end. */
struct resp_peer {
	bool is_unix;
	pid_t pid; /* of a Unix socket: of who connected; else 0 */
	uid_t uid; /* of a Unix socket; else (uid_t)-1 */
	gid_t gid;
	char address[RESP_NAME_ROOM]; /* `127.0.0.1:50000`, `[::1]:50000`, or the socket's path */
	bool is_admitted;             /* may call commands that need AUTH where it is required */
	bool is_authenticated;        /* by AUTH: identity holds */
	struct resp_identity identity;
};

/* The command's name is argument 0. Arguments are gone when run() has returned. */
size_t resp_call_count(const struct resp_call *call);
const struct resp_argument *resp_call_argument(const struct resp_call *call, size_t index);

/* The context of the server's options. */
void *resp_call_context(const struct resp_call *call);
/* 0 to workers - 1: calls of one worker never run at the same time. */
unsigned resp_call_worker(const struct resp_call *call);
/* Never 0, and never used again in this process: owner of what ends with the connection. */
uint64_t resp_call_connection(const struct resp_call *call);
unsigned resp_call_protocol(const struct resp_call *call); /* 2 or 3 */
const struct resp_peer *resp_call_peer(const struct resp_call *call);

/* Where run() writes its reply: exactly one value, unless it defers. */
struct resp_writer *resp_call_writer(struct resp_call *call);

/*
 * Answer later. Replies of the connection's later commands wait until this one is done. NULL: too
 * many are awaited on this connection, or no memory: an error has been written, just return.
 * Whoever holds the reply owes one resp_reply_done(), also when the client is gone (then the reply
 * is dropped): the `closed` callback is the place to cancel what a connection waits for.
 */
struct resp_reply *resp_call_defer(struct resp_call *call);

/* Where to write a deferred reply: one value, by one thread at a time, before resp_reply_done(). */
struct resp_writer *resp_reply_writer(struct resp_reply *reply);

/* The reply is whole: send it as soon as those before it are sent. Any thread; never blocks. The
 * reply is no longer the caller's. */
void resp_reply_done(struct resp_reply *reply);

#endif
