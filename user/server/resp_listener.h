/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Listening sockets of the RESP server: made or inherited, and what they accept. A Unix socket's
 * file is replaced if nobody listens on it, and taken away at the end if it is still ours.
 */
#ifndef SLUICE_SERVER_RESP_LISTENER_H
#define SLUICE_SERVER_RESP_LISTENER_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/un.h>

#include "base/trouble.h"
#include "server/resp_command.h"

struct resp_listener {
	int fd; /* -1: closed */
	bool is_unix;
	bool is_file_ours;
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path) + 1];
	dev_t file_device;
	ino_t file_inode;
	struct event accepting; /* of the server */
};

/* group: NULL is `sluice`, which need not exist; a group that is named must. */
int resp_listener_open_unix(const char *path, const char *group, struct resp_listener *out,
			    struct trouble *trouble);
int resp_listener_open_tcp(const char *address, struct resp_listener *out, struct trouble *trouble);
/* fd is the listener's from now on, except on failure. */
int resp_listener_inherit(int fd, struct resp_listener *out, struct trouble *trouble);
void resp_listener_close(struct resp_listener *listener); /* twice is fine */

/* A connection, without blocking, and who it is: a descriptor or -errno. */
int resp_listener_accept(const struct resp_listener *listener, struct resp_peer *out);

/* Of TCP; else 0. */
unsigned resp_listener_port(const struct resp_listener *listener);

#endif
