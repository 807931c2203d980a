/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two servers that start at once must not both take a socket file for stale, or the slower would
 * unlink the faster one's. So whoever looks whether a file is stale and puts its own in its place
 * holds a lock on the folder meanwhile, until it listens. A socket that is bound but does not yet
 * listen refuses connections: its mode and group are right before the first client can come.
 */
#include "server/resp_listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	BACKLOG = 4096,
	SOCKET_MODE = 0660,
	PORT_TEXT_MAX = 5,
};

static const char group_default[] = "sluice";

/* ---- Unix sockets */

static int set_path(const char *path, struct sockaddr_un *out)
{
	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (path[0] == '\0' || strlen(path) >= sizeof(out->sun_path))
		return -ENAMETOOLONG;
	strcpy(out->sun_path, path);
	return 0;
}

static int lock_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[sizeof(((struct sockaddr_un *)NULL)->sun_path)] = ".";
	int fd;

	if (slash)
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path + 1), path);
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX) < 0) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

/* Take away what stands at the path if it is a socket that nobody listens on. */
static int remove_stale(const struct sockaddr_un *address)
{
	struct stat status;
	int fd, err;

	if (lstat(address->sun_path, &status) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(status.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	err = connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? -errno : 0;
	close(fd);
	/* Also a full backlog is somebody's. */
	if (err == 0 || err == -EAGAIN)
		return -EADDRINUSE;
	if (err != -ECONNREFUSED)
		return err;
	return unlink(address->sun_path) < 0 ? -errno : 0;
}

static int set_group(const char *path, const char *group)
{
	struct group entry, *found = NULL;
	char memory[16384];
	int err = getgrnam_r(group ? group : group_default, &entry, memory, sizeof(memory), &found);

	if (!found)
		return group ? (err ? -err : -ENOENT) : 0;
	if (chown(path, (uid_t)-1, found->gr_gid) == 0)
		return 0;
	/* Who may not give files away keeps its own group, unless another was asked for. */
	return group ? -errno : 0;
}

static int bind_file(struct resp_listener *listener, const struct sockaddr_un *address,
		     const char *group)
{
	struct stat status;
	int err = remove_stale(address);

	if (err)
		return err;
	if (bind(listener->fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ||
	    lstat(address->sun_path, &status) < 0)
		return -errno;
	strcpy(listener->path, address->sun_path);
	listener->is_file_ours = true;
	listener->file_device = status.st_dev;
	listener->file_inode = status.st_ino;
	err = set_group(address->sun_path, group);
	if (err)
		return err;
	if (chmod(address->sun_path, SOCKET_MODE) < 0 || listen(listener->fd, BACKLOG) < 0)
		return -errno;
	return 0;
}

static void advise_unix(int err, struct trouble *trouble)
{
	if (err == -EADDRINUSE)
		trouble_advise(trouble, "another server listens there: stop it first");
	else if (err == -EEXIST)
		trouble_advise(trouble, "there is a file that is no socket: move it away");
	else if (err == -ENOENT)
		trouble_advise(trouble, "make the folder, or name a group that exists");
}

int resp_listener_open_unix(const char *path, const char *group, struct resp_listener *out,
			    struct trouble *trouble)
{
	struct resp_listener listener = { .fd = -1, .is_unix = true };
	struct sockaddr_un address;
	int folder = -1;
	int err = set_path(path, &address);

	if (err)
		goto fail;
	folder = lock_folder(path);
	if (folder < 0) {
		err = folder;
		goto fail;
	}
	listener.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	err = listener.fd < 0 ? -errno : bind_file(&listener, &address, group);
	if (err)
		goto fail;
	close(folder);
	*out = listener;
	return 0;

fail:
	resp_listener_close(&listener);
	if (folder >= 0)
		close(folder);
	trouble_set(trouble, err, "cannot listen on %s: %s", path, strerror(-err));
	advise_unix(err, trouble);
	return err;
}

/* ---- TCP */

/* `127.0.0.1:6380` or `[::1]:6380`. To be freed with freeaddrinfo(). */
static int resolve(const char *text, struct addrinfo **out)
{
	struct addrinfo hints = {
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
		.ai_socktype = SOCK_STREAM,
	};
	const char *colon = strrchr(text, ':');
	bool is_bracketed = text[0] == '[';
	char host[RESP_NAME_ROOM];
	const char *from = text + is_bracketed;
	int length;

	if (!colon || colon - from < 1 + is_bracketed || strlen(colon + 1) > PORT_TEXT_MAX ||
	    strlen(colon + 1) == 0 || strspn(colon + 1, "0123456789") != strlen(colon + 1) ||
	    (is_bracketed && colon[-1] != ']') || atoi(colon + 1) > UINT16_MAX)
		return -EINVAL;
	length = (int)(colon - from) - is_bracketed;
	if (length >= (int)sizeof(host) || (!is_bracketed && memchr(from, ':', (size_t)length)))
		return -EINVAL;
	snprintf(host, sizeof(host), "%.*s", length, from);
	return getaddrinfo(host, colon + 1, &hints, out) ? -EINVAL : 0;
}

int resp_listener_open_tcp(const char *address, struct resp_listener *out, struct trouble *trouble)
{
	struct resp_listener listener = { .fd = -1 };
	struct addrinfo *found = NULL;
	const int on = 1;
	int err = resolve(address, &found);

	if (err)
		goto fail;
	listener.fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener.fd < 0 ||
	    setsockopt(listener.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(listener.fd, found->ai_addr, found->ai_addrlen) < 0 ||
	    listen(listener.fd, BACKLOG) < 0) {
		err = -errno;
		goto fail;
	}
	freeaddrinfo(found);
	*out = listener;
	return 0;

fail:
	if (found)
		freeaddrinfo(found);
	resp_listener_close(&listener);
	trouble_set(trouble, err, "cannot listen on %s: %s", address, strerror(-err));
	if (err == -EINVAL)
		trouble_advise(trouble, "write address:port, as 127.0.0.1:6380 or [::1]:6380");
	return err;
}

unsigned resp_listener_port(const struct resp_listener *listener)
{
	struct sockaddr_storage address = { 0 };
	socklen_t length = sizeof(address);

	if (getsockname(listener->fd, (struct sockaddr *)&address, &length) < 0)
		return 0;
	if (address.ss_family == AF_INET)
		return ntohs(((struct sockaddr_in *)&address)->sin_port);
	if (address.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
	return 0;
}

/* ---- inherited sockets, accepting, closing */

int resp_listener_inherit(int fd, struct resp_listener *out, struct trouble *trouble)
{
	struct resp_listener listener = { .fd = fd };
	struct sockaddr_storage address = { 0 };
	socklen_t length = sizeof(address), size = sizeof(int);
	int is_listening = 0, flags = fcntl(fd, F_GETFL), err = 0;

	if (flags < 0 || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &length) < 0)
		err = -errno;
	else if (!is_listening)
		err = -EINVAL;
	else if (fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		err = -errno;
	if (err)
		return trouble_set(trouble, err, "the inherited descriptor %d does not listen: %s",
				   fd, strerror(-err));
	listener.is_unix = address.ss_family == AF_UNIX;
	if (listener.is_unix && length > offsetof(struct sockaddr_un, sun_path))
		snprintf(listener.path, sizeof(listener.path), "%.*s",
			 (int)(length - offsetof(struct sockaddr_un, sun_path)),
			 ((struct sockaddr_un *)&address)->sun_path);
	*out = listener;
	return 0;
}

void resp_listener_close(struct resp_listener *listener)
{
	struct stat status;

	if (listener->fd < 0)
		return;
	if (listener->is_file_ours && lstat(listener->path, &status) == 0 &&
	    status.st_dev == listener->file_device && status.st_ino == listener->file_inode)
		unlink(listener->path);
	close(listener->fd);
	listener->fd = -1;
}

static void describe_unix(const struct resp_listener *listener, int fd, struct resp_peer *peer)
{
	struct ucred credentials;
	socklen_t length = sizeof(credentials);

	peer->is_unix = true;
	snprintf(peer->address, sizeof(peer->address), "%.*s", (int)sizeof(peer->address) - 1,
		 listener->path);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) < 0)
		return;
	peer->pid = credentials.pid;
	peer->uid = credentials.uid;
	peer->gid = credentials.gid;
}

static void describe_tcp(int fd, const struct sockaddr_storage *address, struct resp_peer *peer)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
	char host[INET6_ADDRSTRLEN] = "";
	const int on = 1;

	/* Replies go out whole: waiting for more would only delay them. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	if (address->ss_family == AF_INET6) {
		inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
		snprintf(peer->address, sizeof(peer->address), "[%s]:%u", host,
			 ntohs(v6->sin6_port));
	} else {
		inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
		snprintf(peer->address, sizeof(peer->address), "%s:%u", host, ntohs(v4->sin_port));
	}
}

int resp_listener_accept(const struct resp_listener *listener, struct resp_peer *out)
{
	struct resp_peer peer = { .uid = (uid_t)-1, .gid = (gid_t)-1 };
	struct sockaddr_storage address = { 0 };
	socklen_t length = sizeof(address);
	int fd = accept4(listener->fd, (struct sockaddr *)&address, &length,
			 SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return -errno;
	if (listener->is_unix)
		describe_unix(listener, fd, &peer);
	else
		describe_tcp(fd, &address, &peer);
	*out = peer;
	return fd;
}
