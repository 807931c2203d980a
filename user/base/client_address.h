/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whose request it is, when it came through proxies: the address that the last trusted proxy saw.
 * Pure functions; thread safe.
 */
#ifndef SLUICE_BASE_CLIENT_ADDRESS_H
#define SLUICE_BASE_CLIENT_ADDRESS_H

#include <stddef.h>
#include <stdint.h>

#include <sluice/key.h>

struct address_prefix {
	union address address; /* bits beyond the length are zero */
	uint32_t bits;         /* of the sixteen bytes: an IPv4 /8 has 104 */
};

/* The value of one X-Forwarded-For line: any bytes. */
struct forwarded_for {
	const char *text; /* need not end in a zero byte; may be NULL if length is 0 */
	size_t length;
};

bool address_is_within(const union address *address, const struct address_prefix *prefix);

/*
 * Find the client. peer: the socket's address, NULL if there is none (a Unix socket). values: in
 * the order received.
 *
 * A peer that is not trusted is the client, and no value is read. Else the entries are walked from
 * the last one backwards: the first that is not trusted is the client, and what stands before it,
 * which the client may have written itself, is not read. All trusted: the first entry. None: the
 * peer.
 *
 * An entry is an IPv4 address, IPv4:PORT, an IPv6 address, [IPv6] or [IPv6]:PORT, between commas
 * and blanks; nothing between commas is no entry. -EINVAL: no peer, or an entry that has to be read
 * is none of these. It is never the proxy's address instead. *out is untouched then.
 */
int client_address_resolve(const union address *peer, const struct address_prefix *trusted,
			   size_t trusted_count, const struct forwarded_for *values,
			   size_t value_count, union address *out);

#endif
