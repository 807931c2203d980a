/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Environment variables in, datagrams out. */
#include "base/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"

enum { FIRST_INHERITED = 3, NS_PER_US = 1000 };

/* A number in the environment: 1 if it is there, 0 if not, -EINVAL. */
static int read_number(const char *name, uint64_t *out)
{
	const char *text = getenv(name);

	if (!text)
		return 0;
	return parse_uint(text, 0, UINT64_MAX, out) ? -EINVAL : 1;
}

/* Whether the variable names this process: 1 also if it is not there at all. */
static int is_meant(const char *pid_name, bool must_be_there)
{
	uint64_t pid;
	int found = read_number(pid_name, &pid);

	if (found < 0)
		return found;
	if (!found)
		return !must_be_there;
	return pid == (uint64_t)getpid();
}

/* ---- messages */

static int set_address(struct notify *notify, const char *path)
{
	size_t length = strlen(path);

	if (*path != '/' && *path != '@')
		return -EPROTONOSUPPORT;
	if (length < 2 || length >= sizeof(notify->address.sun_path))
		return -EINVAL;
	notify->address.sun_family = AF_UNIX;
	memcpy(notify->address.sun_path, path, length + 1);
	notify->address_length =
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (*path == '/'));
	/* An abstract name begins with a zero byte and ends with its length. */
	if (*path == '@')
		notify->address.sun_path[0] = '\0';
	return 0;
}

static int read_watchdog(struct notify *notify)
{
	uint64_t interval_us;
	int found = read_number("WATCHDOG_USEC", &interval_us);
	int meant = is_meant("WATCHDOG_PID", false);

	if (found < 0 || meant < 0)
		return -EINVAL;
	if (!found || !meant)
		return 0;
	if (interval_us == 0 || interval_us > UINT64_MAX / NS_PER_US)
		return -EINVAL;
	notify->watchdog_ns = interval_us * NS_PER_US;
	return 0;
}

static int open_from_environment(struct notify *notify)
{
	const char *path = getenv("NOTIFY_SOCKET");
	int err;

	if (!path)
		return 0;
	err = set_address(notify, path);
	if (!err)
		err = read_watchdog(notify);
	if (err)
		return err;
	notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return notify->fd < 0 ? -errno : 0;
}

int notify_open(struct notify *notify)
{
	int err;

	memset(notify, 0, sizeof(*notify));
	notify->fd = -1;
	err = open_from_environment(notify);
	if (err) {
		memset(notify, 0, sizeof(*notify));
		notify->fd = -1;
	}
	(void)unsetenv("NOTIFY_SOCKET");
	(void)unsetenv("WATCHDOG_USEC");
	(void)unsetenv("WATCHDOG_PID");
	return err;
}

void notify_close(struct notify *notify)
{
	if (notify->fd >= 0)
		(void)close(notify->fd);
	notify->fd = -1;
}

/* The address is looked up anew each time: a supervisor that restarts has a new socket there. */
static int send_message(const struct notify *notify, const char *message, int flags)
{
	ssize_t sent;

	if (notify->fd < 0)
		return 0;
	do {
		sent = sendto(notify->fd, message, strlen(message), flags | MSG_NOSIGNAL,
			      (const struct sockaddr *)&notify->address, notify->address_length);
	} while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

int notify_ready(const struct notify *notify)
{
	return send_message(notify, "READY=1", 0);
}

int notify_reloading(const struct notify *notify, uint64_t monotonic_ns)
{
	char message[64];

	(void)snprintf(message, sizeof(message), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
		       monotonic_ns / NS_PER_US);
	return send_message(notify, message, 0);
}

int notify_stopping(const struct notify *notify)
{
	return send_message(notify, "STOPPING=1", 0);
}

int notify_watchdog(const struct notify *notify)
{
	return send_message(notify, "WATCHDOG=1", MSG_DONTWAIT);
}

int notify_status(const struct notify *notify, const char *status)
{
	char message[NOTIFY_STATUS_MAX];

	/* A second line would be a message of its own. */
	(void)snprintf(message, sizeof(message), "STATUS=%.*s", (int)strcspn(status, "\r\n"),
		       status);
	return send_message(notify, message, MSG_DONTWAIT);
}

/* ---- sockets */

static int read_option(int fd, int option, int *out)
{
	socklen_t length = sizeof(*out);

	return getsockopt(fd, SOL_SOCKET, option, out, &length) != 0 ? -errno : 0;
}

static int inspect(struct inherited *socket)
{
	int is_listening = 0;
	int err = read_option(socket->fd, SO_DOMAIN, &socket->domain);

	if (!err)
		err = read_option(socket->fd, SO_TYPE, &socket->type);
	if (!err)
		err = read_option(socket->fd, SO_ACCEPTCONN, &is_listening);
	if (!err && fcntl(socket->fd, F_SETFD, FD_CLOEXEC) != 0)
		err = -errno;
	socket->is_listening = is_listening != 0;
	return err;
}

/* The names of all sockets, with colons between them. */
static int set_names(struct inherited *sockets, size_t count, const char *names)
{
	for (size_t i = 0; i < count; i++) {
		size_t length = strcspn(names, ":");

		if (length >= INHERITED_NAME_MAX)
			return -EINVAL;
		memcpy(sockets[i].name, names, length);
		names += length;
		if ((*names == ':') != (i + 1 < count))
			return -EINVAL;
		names++;
	}
	return 0;
}

static int inherit_from_environment(struct inherited out[INHERITED_MAX], size_t *count)
{
	const char *names = getenv("LISTEN_FDNAMES");
	uint64_t number;
	int found = read_number("LISTEN_FDS", &number);
	int meant = is_meant("LISTEN_PID", true);
	int err;

	if (found < 0 || meant < 0)
		return -EINVAL;
	if (!found || !meant)
		return 0;
	if (number > INHERITED_MAX)
		return -E2BIG;
	memset(out, 0, sizeof(*out) * INHERITED_MAX);
	for (size_t i = 0; i < number; i++) {
		out[i].fd = FIRST_INHERITED + (int)i;
		err = inspect(&out[i]);
		if (err)
			return err;
	}
	err = names && number ? set_names(out, number, names) : 0;
	if (!err)
		*count = number;
	return err;
}

int notify_inherited(struct inherited out[INHERITED_MAX], size_t *count)
{
	int err;

	*count = 0;
	err = inherit_from_environment(out, count);
	(void)unsetenv("LISTEN_FDS");
	(void)unsetenv("LISTEN_PID");
	(void)unsetenv("LISTEN_FDNAMES");
	return err;
}
