/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a service tells its supervisor, and what it is handed by it: systemd's protocol (one
 * datagram a message, sd_notify(3); sockets from descriptor 3 on, sd_listen_fds(3)), without its
 * library. Without a supervisor all of it does nothing and succeeds.
 */
#ifndef SLUICE_BASE_NOTIFY_H
#define SLUICE_BASE_NOTIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

enum {
	INHERITED_MAX = 16,
	INHERITED_NAME_MAX = 256, /* with its final zero; systemd allows 255 */
	NOTIFY_STATUS_MAX = 512,
};

struct notify {
	int fd; /* -1: there is no supervisor */
	struct sockaddr_un address;
	socklen_t address_length;
	uint64_t watchdog_ns; /* 0: none. Within each such time notify_watchdog() must be called */
};

/*
 * Read NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, and remove them from the environment: call it
 * before there are threads. -EINVAL: one of them makes no sense. -EPROTONOSUPPORT: a socket of a
 * kind that is not known here. On failure it is as without a supervisor.
 */
int notify_open(struct notify *notify);
void notify_close(struct notify *notify);

/*
 * Each returns 0, or -errno if the message was not taken, and is thread safe. These may wait for
 * the supervisor to make room:
 */
int notify_ready(const struct notify *notify);                            /* started, or reloaded */
int notify_reloading(const struct notify *notify, uint64_t monotonic_ns); /* …ready() ends it */
int notify_stopping(const struct notify *notify);

/* These do not wait (-EAGAIN). A status is one line; what comes after a line's end is cut off. */
int notify_watchdog(const struct notify *notify);
int notify_status(const struct notify *notify, const char *status);

/* A socket that was opened for us. */
struct inherited {
	int fd;
	int domain; /* AF_UNIX, AF_INET, AF_INET6, … */
	int type;   /* SOCK_STREAM, … */
	bool is_listening;
	char name[INHERITED_NAME_MAX]; /* FileDescriptorName=; "" if none was given */
};

/*
 * Take over the sockets that LISTEN_FDS, LISTEN_PID and LISTEN_FDNAMES name, and remove these from
 * the environment: call it before there are threads. *count of them are set; 0 if they are not
 * meant for this process. They will not be inherited further. -EINVAL: the variables make no sense.
 * -E2BIG: more than INHERITED_MAX. -EBADF, -ENOTSOCK: what was promised is not there; then nothing
 * is closed.
 */
int notify_inherited(struct inherited out[INHERITED_MAX], size_t *count);

#endif
