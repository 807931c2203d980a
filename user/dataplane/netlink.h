/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Asking the kernel over netlink: build a request, have each message of the answer visited, find
 * attributes in it. Only what reads is used here. Functions return 0 or -errno. Not thread safe.
 */
#ifndef SLUICE_DATAPLANE_NETLINK_H
#define SLUICE_DATAPLANE_NETLINK_H

#include <stddef.h>
#include <stdint.h>

#include <linux/netlink.h>

enum { NETLINK_BODY_MAX = 256 };

struct netlink {
	int fd; /* -1: not open */
	uint32_t sequence;
};

struct netlink_request {
	struct nlmsghdr header;
	uint8_t body[NETLINK_BODY_MAX];
};

/* The attributes of a message, or those within one of them. */
struct netlink_attributes {
	const void *first;
	size_t bytes;
};

/* protocol: NETLINK_ROUTE, NETLINK_GENERIC. */
int netlink_open(struct netlink *netlink, int protocol);
void netlink_close(struct netlink *netlink);

/* Begin a request with a fixed part of so many bytes, which is returned, zeroed. */
void *netlink_begin(struct netlink_request *request, uint16_t type, uint16_t flags, size_t fixed);

/* Add an attribute; what does not fit is left out, and the kernel will say so. */
void netlink_add(struct netlink_request *request, uint16_t type, const void *value, size_t bytes);

/*
 * Send it and visit each message of the answer, until visit returns other than 0, which is then
 * returned. What the kernel says against it is returned, too.
 */
int netlink_ask(struct netlink *netlink, struct netlink_request *request,
		int (*visit)(const struct nlmsghdr *message, void *data), void *data);

/* The attributes behind a message's fixed part. */
struct netlink_attributes netlink_read(const struct nlmsghdr *message, size_t fixed);

/* One of them, NULL if it is not there; what is within it; its value, or what it is if absent. */
const struct nlattr *netlink_find(struct netlink_attributes within, uint16_t type);
struct netlink_attributes netlink_within(const struct nlattr *attribute);
uint32_t netlink_u32(struct netlink_attributes within, uint16_t type, uint32_t absent);
/* "" if it is absent. */
void netlink_text(struct netlink_attributes within, uint16_t type, char *out, size_t size);
/* The value of an attribute of at least so many bytes, else NULL. */
const void *netlink_value(struct netlink_attributes within, uint16_t type, size_t bytes);

/* For walking: the next attribute, NULL at the end. Begin with NULL. */
const struct nlattr *netlink_next(struct netlink_attributes within, const struct nlattr *attribute);

#endif
