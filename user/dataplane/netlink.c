/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Netlink by hand: a few requests that read do not ask for a library. Lengths that the kernel gives
 * are checked against the room there is, as those of anybody else.
 */
#include "dataplane/netlink.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum {
	ANSWER_BYTES = 64 * 1024, /* the kernel's own messages are shorter than 32 KiB */
	PATIENCE_S = 5,
};

int netlink_open(struct netlink *netlink, int protocol)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };

	netlink->sequence = 0;
	netlink->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	if (netlink->fd < 0)
		return -errno;
	(void)setsockopt(netlink->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return 0;
}

void netlink_close(struct netlink *netlink)
{
	if (netlink->fd >= 0)
		(void)close(netlink->fd);
	netlink->fd = -1;
}

void *netlink_begin(struct netlink_request *request, uint16_t type, uint16_t flags, size_t fixed)
{
	*request = (struct netlink_request){
		.header = { .nlmsg_len = (uint32_t)NLMSG_LENGTH(fixed),
			    .nlmsg_type = type,
			    .nlmsg_flags = NLM_F_REQUEST | flags },
	};
	return request->body;
}

void netlink_add(struct netlink_request *request, uint16_t type, const void *value, size_t bytes)
{
	size_t at = NLMSG_ALIGN(request->header.nlmsg_len) - sizeof(request->header);
	struct nlattr attribute = { .nla_len = (uint16_t)(NLA_HDRLEN + bytes), .nla_type = type };

	if (at + NLA_HDRLEN + bytes > sizeof(request->body))
		return;
	memcpy(request->body + at, &attribute, sizeof(attribute));
	memcpy(request->body + at + NLA_HDRLEN, value, bytes);
	request->header.nlmsg_len =
		(uint32_t)(sizeof(request->header) + at + NLA_ALIGN(attribute.nla_len));
}

/* One datagram. 1: there is more to come. */
static int take_answer(const void *datagram, size_t bytes, uint32_t sequence, bool is_dump,
		       int (*visit)(const struct nlmsghdr *message, void *data), void *data)
{
	const struct nlmsghdr *message = datagram;
	int left = (int)bytes, result;

	for (; NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
		if (message->nlmsg_seq != sequence)
			continue;
		if (message->nlmsg_type == NLMSG_DONE)
			return 0;
		if (message->nlmsg_type == NLMSG_ERROR) {
			const struct nlmsgerr *error = NLMSG_DATA(message);

			return message->nlmsg_len < NLMSG_LENGTH(sizeof(*error)) ? -EBADMSG
										 : error->error;
		}
		result = visit(message, data);
		if (result || !is_dump)
			return result;
	}
	return 1;
}

int netlink_ask(struct netlink *netlink, struct netlink_request *request,
		int (*visit)(const struct nlmsghdr *message, void *data), void *data)
{
	bool is_dump = (request->header.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
	static union {
		struct nlmsghdr first; /* for its alignment */
		char bytes[ANSWER_BYTES];
	} answer;
	int result = 1;

	request->header.nlmsg_seq = ++netlink->sequence;
	if (send(netlink->fd, request, request->header.nlmsg_len, 0) < 0)
		return -errno;
	while (result == 1) {
		ssize_t length = recv(netlink->fd, &answer, sizeof(answer), MSG_TRUNC);

		if (length < 0)
			return -errno;
		if ((size_t)length > sizeof(answer))
			return -EMSGSIZE;
		result = take_answer(&answer, (size_t)length, netlink->sequence, is_dump, visit,
				     data);
	}
	return result;
}

struct netlink_attributes netlink_read(const struct nlmsghdr *message, size_t fixed)
{
	size_t before = NLMSG_LENGTH(NLMSG_ALIGN(fixed));

	if (message->nlmsg_len < before)
		return (struct netlink_attributes){};
	return (struct netlink_attributes){ (const char *)message + before,
					    message->nlmsg_len - before };
}

const struct nlattr *netlink_next(struct netlink_attributes within, const struct nlattr *attribute)
{
	const char *end = (const char *)within.first + within.bytes;
	const char *at = within.first;

	if (attribute)
		at = (const char *)attribute + NLA_ALIGN(attribute->nla_len);
	if (!within.first || at + NLA_HDRLEN > end)
		return NULL;
	attribute = (const struct nlattr *)(const void *)at;
	if (attribute->nla_len < NLA_HDRLEN || attribute->nla_len > end - at)
		return NULL;
	return attribute;
}

const struct nlattr *netlink_find(struct netlink_attributes within, uint16_t type)
{
	const struct nlattr *attribute = NULL;

	while ((attribute = netlink_next(within, attribute)))
		if ((attribute->nla_type & NLA_TYPE_MASK) == type)
			return attribute;
	return NULL;
}

struct netlink_attributes netlink_within(const struct nlattr *attribute)
{
	if (!attribute)
		return (struct netlink_attributes){};
	return (struct netlink_attributes){ (const char *)attribute + NLA_HDRLEN,
					    attribute->nla_len - (size_t)NLA_HDRLEN };
}

const void *netlink_value(struct netlink_attributes within, uint16_t type, size_t bytes)
{
	const struct nlattr *attribute = netlink_find(within, type);

	if (!attribute || attribute->nla_len < NLA_HDRLEN + bytes)
		return NULL;
	return (const char *)attribute + NLA_HDRLEN;
}

uint32_t netlink_u32(struct netlink_attributes within, uint16_t type, uint32_t absent)
{
	const void *value = netlink_value(within, type, sizeof(absent));

	if (value)
		memcpy(&absent, value, sizeof(absent));
	return absent;
}

void netlink_text(struct netlink_attributes within, uint16_t type, char *out, size_t size)
{
	const struct nlattr *attribute = netlink_find(within, type);
	struct netlink_attributes value = netlink_within(attribute);

	out[0] = '\0';
	if (attribute)
		(void)snprintf(out, size, "%.*s", (int)value.bytes, (const char *)value.first);
}
