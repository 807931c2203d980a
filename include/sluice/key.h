/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From an address to the key of its bucket, and from the key to its place in the table.
 *
 * Every address is sixteen bytes in network order, IPv4 in its mapped form (::ffff:a.b.c.d). An
 * IPv6 client owns at least a /64, so that is what counts as one client; a link-local address
 * counts whole, since all hosts of a link share fe80::/64; an IPv4-mapped one counts as IPv4.
 */
#ifndef SLUICE_KEY_H
#define SLUICE_KEY_H

#include "siphash.h"
#include "word.h"

union address {
	__u8 byte[16]; /* network order */
	__u32 word[4];
	__u64 half[2];
};

/* The length of an IPv4 address in front of its bits, in a sixteen-byte prefix. */
enum { ADDRESS_V4_OFFSET = 96 };

SLUICE_INLINE bool address_is_v4(const union address *address)
{
	return address->half[0] == 0 && address->byte[8] == 0 && address->byte[9] == 0 &&
	       address->byte[10] == 0xff && address->byte[11] == 0xff;
}

SLUICE_INLINE bool address_is_link_local(const union address *address)
{
	return address->byte[0] == 0xfe && (address->byte[1] & 0xc0) == 0x80;
}

/* A half with its first bits set and the rest clear, in network order. bits: 0 to 64. */
SLUICE_INLINE __u64 address_mask(__u32 bits)
{
	__u64 mask = bits >= 64 ? ~0ULL : bits == 0 ? 0 : ~(~0ULL >> bits);

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	mask = __builtin_bswap64(mask);
#endif
	return mask;
}

/* The address a bucket is kept under. ipv6_prefix: 48 to 128 bits. */
SLUICE_INLINE union address address_key(const union address *address, __u32 ipv6_prefix)
{
	union address key = *address;

	if (address_is_v4(address) || address_is_link_local(address))
		return key;
	if (ipv6_prefix < 64) {
		key.half[0] &= address_mask(ipv6_prefix);
		key.half[1] = 0;
	} else {
		key.half[1] &= address_mask(ipv6_prefix - 64);
	}
	return key;
}

/* What a table knows of a key: which set, which word of it is charged when all are in debt, tag. */
struct place {
	__u32 set;
	__u32 way;
	__u32 tag; /* of meter 0; see place_tag() */
};

SLUICE_INLINE struct place key_place(const struct siphash_key *secret, const union address *key,
				     __u32 set_mask)
{
	__u64 hash = siphash_16(secret, key->half[0], key->half[1]);
	struct place place = {
		.set = (__u32)hash & set_mask,
		.way = (__u32)(hash >> 32) & 7,
		.tag = (__u32)(hash >> 46),
	};

	return place;
}

/*
 * The tag of one meter of an address. Meters of one address differ in the tag and share the set;
 * tag 0 is left out, because it would make an empty word look owned.
 */
SLUICE_INLINE __u32 place_tag(const struct place *place, __u32 meter)
{
	__u32 tag = (place->tag + meter * 0x15555u) & (__u32)WORD_TAG_MASK;

	return tag ? tag : 1;
}

#endif
