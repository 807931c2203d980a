/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every map: name, key, value; the reasons; the event record. The only definition of each.
 *
 * Fixed widths, explicit padding that is zero, no bool. Integers are in the machine's own byte
 * order unless a member says otherwise. Any change of a layout or of a meaning here raises
 * SLUICE_ABI_VERSION: maps are pinned under a folder of that name, and a program never reads maps
 * of another version. What outlives a version is said at struct config.
 */
#ifndef SLUICE_ABI_H
#define SLUICE_ABI_H

#include "gcra.h"
#include "key.h"
#include "siphash.h"
#include "types.h"

enum {
	SLUICE_ABI_VERSION = 2,
	/* Of what is in ip_buckets, node_buckets, hook_buckets and hooks. A version that takes over from
	 * one with the same format adopts the very maps, and with them every debt. */
	SLUICE_BUCKET_FORMAT = 1,
};

/* What is counted against a limit. */
enum meter {
	METER_CONNECTIONS, /* a TCP SYN without ACK; a QUIC Initial */
	METER_PACKETS,
	METER_BYTES, /* from the IP header on, all fragments of the frame */
	METERS,
	/* A request: charged by the daemon; the kernel looks at it, to shed. */
	METER_HOOKS = METERS,
};

/*
 * Why a packet got its verdict. The order is part of the ABI: `counters` is indexed by it.
 * From REASON_FIRST_REFUSAL to REASON_LAST_REFUSAL the packet is refused, else it passes.
 */
enum reason {
	REASON_NO_CONFIG,   /* no configuration, or one of an unknown generation */
	REASON_NOT_IP,      /* ARP, LLDP, MPLS, 802.3 … */
	REASON_UNPARSED,    /* truncated, or lengths that lie: the kernel's stack judges it */
	REASON_CONTROL,     /* neighbour discovery, DHCP: never charged */
	REASON_UNPROTECTED, /* to a port that `protect` does not name */
	REASON_EXEMPT,      /* from an `exempt` prefix */
	REASON_ADMITTED,    /* charged, and within every limit */

	REASON_DENY, /* from a `deny` prefix */
	REASON_IP_CONNECTIONS,
	REASON_IP_PACKETS,
	REASON_IP_BYTES,
	REASON_IP_SET_FULL, /* all words of the set in debt, and when_full is refuse */
	REASON_IP_TRIES,    /* lost too many races for the address's word */
	REASON_SHED_IP,     /* a connection of an address whose next request would be refused */
	REASON_NODE_CONNECTIONS,
	REASON_NODE_PACKETS,
	REASON_NODE_BYTES,
	REASON_SHED_NODE, /* a connection, and the node's next request would be refused */
	REASONS,

	REASON_FIRST_REFUSAL = REASON_DENY,
	REASON_LAST_REFUSAL = REASON_SHED_NODE,
};

/* Things that happened on the way to a verdict; `notes` is indexed by it. */
enum note {
	NOTE_SET_FULL_SHARED,   /* another's word taken over with its debt: when_full is share */
	NOTE_SET_FULL_ADMITTED, /* not charged at all: when_full is admit */
	NOTE_NODE_TRIES,        /* lost too many races for the node's word: passed uncharged */
	NOTE_SPENT_IN_VAIN,     /* one meter was charged, then another refused in a race */
	NOTE_CLAMPED,           /* a TAT beyond the capacity was brought back */
	NOTE_EVENT_LOST,        /* the ring buffer was full */
	NOTE_EVENT_SAMPLED_OUT, /* more refusals than events are written for; kept in report_state */
	NOTE_OFFENDER_LOST,     /* the offender could not be noted */
	NOTE_SWEPT,             /* passed words cleared */
	NOTE_SWEEPS,            /* whole passes over the table */
	NOTES,
};

/* ip_buckets: array, mmapable. Key: set number. One cache line a set; see word.h for a word. */
enum { SET_WORDS = 8, IP_SETS = 1 << 17 };

struct bucket_set {
	__u64 word[SET_WORDS];
};

/*
 * ip_refusals: per-CPU array of one. Words that refused lately, by tag. A word that has not changed
 * since would refuse again within the same tick of the coarse clock and under the same configuration:
 * see bpf/table.h.
 */
enum { REFUSALS_KEPT = 64 };

struct refusal_seen {
	__u64 word;
	__u64 at_ns; /* coarse clock */
	__u32 tokens;
	__u32 generation; /* of the configuration, its low bits */
};

struct ip_refusals {
	struct refusal_seen of[REFUSALS_KEPT];
};

/* node_buckets: array of one, mmapable. A TAT in ticks of GCRA_TICK_SHIFT; 0: never charged. */
struct node_buckets {
	__u64 tat[METERS];
};

/*
 * hook_buckets: as ip_buckets, but only the daemon writes it (user/limit/address_table.h). hooks:
 * array of one, mmapable, what there is to know of it. Programs only look.
 */
struct hooks {
	struct siphash_key secret; /* of hook_buckets; the daemon's own; 0: never in use */
	/* Of the limits that the daemon holds requests to; 0: none. Unless config_slot.hooks_digest is
	 * the same, the words mean something else than the program would read from them. */
	__u64 limits_digest;
	/* No address's bucket would refuse later than this (CLOCK_MONOTONIC): until then a look is
	 * worth its price. Raised before the answer that it follows from. */
	__u64 refusing_until_ns;
	__u64 node_tat; /* in ticks of GCRA_TICK_SHIFT; 0: never charged */
	__u64 swept_ns; /* when the daemon last was there to keep the words from wrapping */
};

/* node_slices: per-CPU array of one. What a CPU holds and knows of the node's buckets. */
struct node_share {
	__u64 unspent;       /* tokens taken and not yet spent */
	__u64 refused_at_ns; /* coarse clock at which the bucket refused refused_tokens */
	__u64 refused_tokens;
};

struct node_slices {
	__u64 generation; /* of the configuration they were taken under */
	struct node_share meter[METERS];
};

/* counters: per-CPU array by enum reason. would_*: the same under dry_run, when the packet passed. */
struct counter {
	__u64 packets;
	__u64 bytes;
	__u64 would_packets;
	__u64 would_bytes;
};

/* interface_counters: per-CPU array. Index: ifindex % INTERFACE_COUNTERS, so that two may share one. */
enum { INTERFACE_COUNTERS = 64 };

struct interface_counter {
	__u64 passed_packets;
	__u64 passed_bytes;
	__u64 refused_packets;
	__u64 refused_bytes;
};

/* How an interface is held; from one rung to the next the price goes up. */
enum rung {
	RUNG_NONE,
	RUNG_NATIVE_FRAGS, /* XDP in the driver, frames in several buffers too */
	RUNG_NATIVE,
	RUNG_TCX,
	RUNG_CLSACT,
	RUNG_GENERIC,
	RUNGS,
};

/* interfaces: hash by ifindex. Written by userspace when it attaches; no program looks at it. */
enum { INTERFACES_ATTACHED_MAX = 64, PASSED_OVER_MAX = 400 };

struct interface_record {
	char name[16];
	__u32 mode;                        /* that was asked for: enum attach_mode */
	__u32 rung;                        /* that was got: enum rung */
	char passed_over[PASSED_OVER_MAX]; /* why not the rungs above it */
};

/* offenders: LRU hash. Key: union address, as the bucket's key. Written on refusal only. */
struct offender {
	__u64 packets; /* refused; estimated by sampling above OFFENDERS_EXACT_PER_S on a CPU */
	__u64 bytes;
	__u64 first_seen_ns; /* CLOCK_MONOTONIC */
	__u64 last_seen_ns;
	__u32 last_reason; /* enum reason */
	__u32 reserved;
};

enum { OFFENDERS_MAX = 16384, OFFENDERS_EXACT_PER_S = 2048, OFFENDERS_SAMPLE = 64 };

/* protect: array of 1024, mmapable. Key: port / 64. Bit port % 64, one mask per configuration slot. */
struct protected_ports {
	__u64 tcp[2];
	__u64 udp[2];
};

enum { PROTECT_WORDS = 1024 };

/* prefixes_0, prefixes_1: LPM tries, one per configuration slot. */
struct prefix_key {
	__u32 bits; /* of the sixteen bytes: an IPv4 /24 has 120 */
	__u8 byte
		[16]; /* not union address: its padding would count as the beginning of the prefix */
};

enum prefix_action {
	PREFIX_NONE,
	PREFIX_EXEMPT,
	PREFIX_DENY,
	PREFIX_LIMIT,
};

struct prefix_rule {
	__u16 action;                    /* enum prefix_action */
	__u16 dry;                       /* bits 1 << enum meter, as in struct config_slot */
	__u32 expires_s;                 /* of CLOCK_MONOTONIC; 0: never */
	struct gcra_limit limit[METERS]; /* with PREFIX_LIMIT: instead of per_ip, whole */
};

/* A rule given by hand wins over the configuration's for the same prefix, and is kept apart so that
 * taking it back restores the other. */
struct prefix_entry {
	struct prefix_rule by_hand; /* only this one ever ends */
	struct prefix_rule configured;
	__u32 bits; /* of its own key: a look-up only answers with the longest there is */
	__u32 reserved;
};

enum { PREFIXES_MAX = 1 << 20 };

/*
 * prefix_hints: array, mmapable. One bit for each hint that an address may have, for each of the two
 * configuration slots; key: 64-bit word of it. Where the bit is clear, no prefix lies around the
 * address, and the trie, which is slow, need not be asked. An IPv4 address's hint is its first 22
 * bits; an IPv6 address's is drawn from its first 48. Prefixes shorter than that: IPv4 sets all of
 * their hints, IPv6 sets CONFIG_SHORT_PREFIXES, and then all of IPv6 asks.
 */
enum {
	PREFIX_HINT_BITS = 22,
	PREFIX_HINT_V6_BITS = 48,
	PREFIX_HINT_WORDS = 1 << (PREFIX_HINT_BITS - 6), /* of one slot */
};

/* What to do when all words of an address's set are in debt to others. */
enum when_full {
	WHEN_FULL_SHARE,
	WHEN_FULL_REFUSE,
	WHEN_FULL_ADMIT,
};

enum config_flag {
	CONFIG_DRY_RUN = 1 << 0,
	CONFIG_PROTECT_ALL = 1 << 1,
	CONFIG_PROTECT_ICMP = 1 << 2,
	CONFIG_PROTECT_TCP = 1 << 3, /* some TCP port is protected */
	CONFIG_PROTECT_UDP = 1 << 4,
	CONFIG_HAS_PREFIXES = 1 << 5, /* else the tries need not be asked */
	CONFIG_LIMITS_IP = 1 << 6,    /* some per_ip limit is set */
	CONFIG_LIMITS_NODE = 1 << 7,
	CONFIG_SHED = 1 << 8,
	CONFIG_SHORT_PREFIXES = 1 << 9, /* some IPv6 prefix is too short for prefix_hints */
};

struct node_limit {
	struct gcra_limit limit; /* what the slices of all CPUs may hold is already taken off */
	__u64 slice;             /* tokens a CPU takes at once; 0: charge directly */
};

/* One configuration, read as a whole. */
struct config_slot {
	__u64 generation;  /* 0: none */
	__u32 flags;       /* enum config_flag */
	__u32 when_full;   /* enum when_full */
	__u32 ipv6_prefix; /* bits of an IPv6 address that make a client, 48 to 128 */
	__u16 dry_ip;      /* bits 1 << enum meter: count what they would refuse, and pass it */
	__u16 dry_node;
	struct gcra_limit ip[METERS];
	struct node_limit node[METERS];
	struct gcra_limit ip_hooks; /* what the daemon holds requests to; capacity 0: to nothing */
	struct gcra_limit node_hooks;
	__u64 hooks_digest; /* of these two, and of what else must be the same: limit/hook_limits.h */
};

/*
 * config: array of one, mmapable. Userspace writes the slot that is not active, then turns `active`
 * over, then waits for every program that may still read the old one.
 *
 * The members before bucket_format stand at the same place in every version, so that a later one can
 * take over from an earlier one; version 1 had no bucket_format, and its format was 1.
 */
struct config {
	__u32 abi_version;
	__u32 active;              /* 0 or 1 */
	__u64 coarse_lag_ns;       /* how far the coarse clock may lie behind the fine one */
	struct siphash_key secret; /* drawn when the maps are made, so that addresses cannot aim */
	__u32 bucket_format;
	__u32 reserved;
	struct config_slot slot[2];
};

/* events: ring buffer of struct event, sampled. */
enum { EVENT_HEADER_BYTES = 64, EVENTS_BYTES = 256 * 1024, EVENTS_PER_S = 64 };

struct event {
	__u64 time_ns; /* CLOCK_MONOTONIC */
	union address source;
	union address destination;
	__u32 ifindex;
	__u32 reason;      /* enum reason */
	__u32 bytes;       /* of the packet, from the IP header on */
	__u16 source_port; /* host order; 0 if the packet has none */
	__u16 destination_port;
	__u8 protocol;      /* IPPROTO_*, after extension headers */
	__u8 dry_run;       /* 1: it was passed all the same */
	__u16 header_bytes; /* how many of header[] are the packet's */
	__u32 reserved;
	__u8 header[EVENT_HEADER_BYTES]; /* from the IP header on */
};

/* report_state: per-CPU array of one. How much has been written lately, to limit it. */
struct report_state {
	__u64 second; /* of the monotonic clock, in 2^30 ns */
	__u32 events; /* written in it */
	__u32 offenders;
	__u64 sampled_out; /* refusals without an event, since ever; shown as NOTE_EVENT_SAMPLED_OUT */
	__u32 gap;         /* refusals to pass over until the next offender is noted */
	__u32 reserved;
};

/* sweeper: array of one; struct sweeper in bpf/maps.h, since only programs can read a timer. */
enum { SWEEP_PERIOD_NS = 31250000, SWEEP_SETS = IP_SETS / 128 };

_Static_assert(sizeof(struct bucket_set) == 64, "a set is a cache line");
_Static_assert(sizeof(struct node_slices) == 8 + 24 * METERS, "ABI");
_Static_assert(sizeof(struct counter) == 32, "ABI");
_Static_assert(sizeof(struct offender) == 40, "ABI");
_Static_assert(sizeof(struct protected_ports) == 32, "ABI");
_Static_assert(sizeof(union address) == 16, "ABI");
_Static_assert(sizeof(struct prefix_key) == 20, "no padding within a trie's key");
_Static_assert(sizeof(struct prefix_entry) == 216, "ABI");
_Static_assert(sizeof(struct config_slot) == 24 + 32 * METERS + 40 * METERS + 2 * 32 + 8, "ABI");
_Static_assert(sizeof(struct config) == 40 + 2 * 312, "ABI");
_Static_assert(sizeof(struct hooks) == 48, "ABI");
_Static_assert(sizeof(struct interface_counter) == 32, "ABI");
_Static_assert(sizeof(struct interface_record) == 24 + PASSED_OVER_MAX, "ABI");
_Static_assert(sizeof(struct event) == 128, "ABI");

SLUICE_INLINE struct prefix_key prefix_key_of(const union address *address, __u32 bits)
{
	struct prefix_key key = { .bits = bits };

	__builtin_memcpy(key.byte, address->byte, sizeof(key.byte));
	return key;
}

SLUICE_INLINE union address prefix_key_address(const struct prefix_key *key)
{
	union address address;

	__builtin_memcpy(address.byte, key->byte, sizeof(address.byte));
	return address;
}

SLUICE_INLINE __u32 prefix_hint_of(const union address *address)
{
	__u64 half = address->half[0] & address_mask(PREFIX_HINT_V6_BITS);

	if (address_is_v4(address))
		return (__u32)address->byte[12] << 14 | (__u32)address->byte[13] << 6 |
		       (__u32)address->byte[14] >> 2;
	return (__u32)(half * 0x9e3779b97f4a7c15ULL >> (64 - PREFIX_HINT_BITS));
}

/* A rule that has ended is as if it had never been given. Judged by the coarse clock, it ends late by
 * a tick, never early. */
SLUICE_INLINE bool prefix_rule_has_ended(const struct prefix_rule *rule, __u64 now_ns)
{
	return rule->expires_s && now_ns >= rule->expires_s * 1000000000ULL;
}

SLUICE_INLINE bool reason_is_refusal(__u32 reason)
{
	return reason >= REASON_FIRST_REFUSAL && reason <= REASON_LAST_REFUSAL;
}

#endif
