/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The socket that the HTTP server listens on. libmicrohttpd could open one, but not say what is wrong. */
#include "server/http_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/parse.h"

enum { BACKLOG = 1024, LOOPBACK_NET = 127 };

union socket_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_storage room;
};

static socklen_t to_socket_address(const struct setting_endpoint *endpoint,
				   union socket_address *out)
{
	*out = (union socket_address){ .room = { 0 } };
	if (address_is_v4(&endpoint->address)) {
		out->v4.sin_family = AF_INET;
		out->v4.sin_port = htons(endpoint->port);
		memcpy(&out->v4.sin_addr, &endpoint->address.word[3], sizeof(out->v4.sin_addr));
		return sizeof(out->v4);
	}
	out->v6.sin6_family = AF_INET6;
	out->v6.sin6_port = htons(endpoint->port);
	memcpy(&out->v6.sin6_addr, &endpoint->address, sizeof(out->v6.sin6_addr));
	return sizeof(out->v6);
}

static void advise(int err, struct trouble *trouble)
{
	if (err == -EADDRINUSE)
		trouble_advise(trouble,
			       "another server listens there: stop it, or set listen.http to "
			       "another port");
	else if (err == -EADDRNOTAVAIL)
		trouble_advise(trouble, "listen.http must be an address of this host");
	else if (err == -EACCES)
		trouble_advise(trouble, "ports below 1024 need CAP_NET_BIND_SERVICE");
}

int http_listen(const struct setting_endpoint *endpoint, int *out, struct trouble *trouble)
{
	union socket_address address;
	socklen_t length = to_socket_address(endpoint, &address);
	char host[ADDRESS_TEXT_MAX];
	const int on = 1;
	int err;
	int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
	    bind(fd, &address.any, length) == 0 && listen(fd, BACKLOG) == 0) {
		*out = fd;
		return 0;
	}
	err = -errno;
	if (fd >= 0)
		close(fd);
	format_address(&endpoint->address, host);
	trouble_set(trouble, err, "cannot listen for HTTP on %s port %u: %s", host, endpoint->port,
		    strerror(-err));
	advise(err, trouble);
	return err;
}

int http_adopt(int fd, struct trouble *trouble)
{
	socklen_t size = sizeof(int);
	int is_listening = 0, flags = fcntl(fd, F_GETFL), err = 0;

	if (flags < 0 || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) < 0)
		err = -errno;
	else if (!is_listening)
		err = -EINVAL;
	else if (fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		err = -errno;
	return err ? trouble_set(trouble, err, "the inherited descriptor %d does not listen: %s",
				 fd, strerror(-err))
		   : 0;
}

static bool find_own_address(int fd, union socket_address *out)
{
	socklen_t length = sizeof(*out);

	*out = (union socket_address){ .room = { 0 } };
	return getsockname(fd, &out->any, &length) == 0;
}

bool http_is_local(int fd)
{
	union socket_address address;

	if (!find_own_address(fd, &address))
		return false;
	switch (address.any.sa_family) {
	case AF_UNIX:
		return true;
	case AF_INET:
		return ntohl(address.v4.sin_addr.s_addr) >> 24 == LOOPBACK_NET;
	case AF_INET6:
		if (IN6_IS_ADDR_V4MAPPED(&address.v6.sin6_addr))
			return address.v6.sin6_addr.s6_addr[12] == LOOPBACK_NET;
		return IN6_IS_ADDR_LOOPBACK(&address.v6.sin6_addr);
	default:
		return false;
	}
}

unsigned http_port(int fd)
{
	union socket_address address;

	if (!find_own_address(fd, &address))
		return 0;
	if (address.any.sa_family == AF_INET)
		return ntohs(address.v4.sin_port);
	return address.any.sa_family == AF_INET6 ? ntohs(address.v6.sin6_port) : 0;
}
