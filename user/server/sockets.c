/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sorts inherited sockets by name and kind. They stay as they are until a server takes them. */
#include "server/sockets.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

static unsigned port_of(int fd)
{
	struct sockaddr_storage address = { 0 };
	socklen_t length = sizeof(address);

	if (getsockname(fd, (struct sockaddr *)&address, &length))
		return 0;
	if (address.ss_family == AF_INET)
		return ntohs(((const struct sockaddr_in *)&address)->sin_port);
	return address.ss_family == AF_INET6
		       ? ntohs(((const struct sockaddr_in6 *)&address)->sin6_port)
		       : 0;
}

static bool is_for_resp(const struct inherited *socket, const struct setting_listen *listen)
{
	if (!strcmp(socket->name, "resp") || !strcmp(socket->name, "http"))
		return socket->name[0] == 'r';
	return socket->domain == AF_UNIX ||
	       (listen->tcp.port && port_of(socket->fd) == listen->tcp.port);
}

static int check(const struct inherited *socket, struct trouble *trouble)
{
	bool is_known = socket->domain == AF_UNIX || socket->domain == AF_INET ||
			socket->domain == AF_INET6;

	if (is_known && socket->type == SOCK_STREAM && socket->is_listening)
		return 0;
	trouble_set(trouble, 0, "the inherited descriptor %d%s%s is not a stream that listens",
		    socket->fd, socket->name[0] ? ", " : "", socket->name);
	trouble_advise(trouble, "in the socket unit use ListenStream= only, and no Accept=yes");
	return -EINVAL;
}

int sockets_sort(const struct inherited *inherited, size_t count,
		 const struct setting_listen *listen, struct sockets *out, struct trouble *trouble)
{
	struct sockets sockets = { .http = 0 };

	for (size_t at = 0; at < count; at++) {
		const struct inherited *socket = &inherited[at];
		int err = check(socket, trouble);

		if (err)
			return err;
		if (is_for_resp(socket, listen)) {
			sockets.resp[sockets.resp_count++] = socket->fd;
			sockets.has_resp_unix |= socket->domain == AF_UNIX;
			sockets.has_resp_tcp |= socket->domain != AF_UNIX;
			continue;
		}
		if (sockets.http) {
			trouble_set(trouble, 0,
				    "descriptors %d and %d are both for HTTP, which has one",
				    sockets.http, socket->fd);
			trouble_advise(trouble, "take one ListenStream= away, or call it "
						"FileDescriptorName=resp");
			return -EINVAL;
		}
		sockets.http = socket->fd;
	}
	*out = sockets;
	return 0;
}
