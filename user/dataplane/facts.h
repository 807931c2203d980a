/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is so on this host, as far as it decides whether packets can be limited and how well. Filled
 * by probe_*.c, judged by diagnose_*.c and obstacles.c, which see nothing but this: so a card with
 * too few queues can be judged where there is none. All zero: nothing is known.
 */
#ifndef SLUICE_DATAPLANE_FACTS_H
#define SLUICE_DATAPLANE_FACTS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sluice/key.h>

#include "base/trouble.h"
#include "dataplane/ethtool.h"
#include "limit/settings.h"

/* ---- the kernel */

enum answer { ANSWER_UNKNOWN, ANSWER_YES, ANSWER_NO };

/* error: -errno that came with it; with ANSWER_UNKNOWN -EPERM: we were not allowed to try. */
struct trial {
	enum answer answer;
	int error;
};

enum feature {
	FEATURE_LOAD, /* any XDP program at all */
	FEATURE_COMPARE_AND_SWAP,
	FEATURE_COARSE_CLOCK,
	FEATURE_TIMER,
	FEATURE_RING_BUFFER,
	FEATURE_PREFIX_TRIE,
	FEATURE_MAPPED_ARRAY,
	FEATURE_TEST_RUN,
	FEATURE_LINK, /* XDP by a link, which can be pinned and renewed */
	FEATURE_FRAGS,
	FEATURE_TCX,
	FEATURE_CLSACT,
	FEATURE_OBJECT, /* all programs and maps of sluice together */
	FEATURES,
};

struct kernel_facts {
	char release[65];
	struct trial features[FEATURES];
	struct trouble object_trouble; /* why FEATURE_OBJECT is ANSWER_NO */
	enum answer is_compiled;       /* by the JIT, not interpreted */
	uint64_t map_bytes;            /* that the maps took; 0: not measured */
	double load_ms;
	double fine_clock_ns; /* what a program pays for reading it; 0: not measured */
	double coarse_clock_ns;
	char clock_source[32];
	char lockdown[24]; /* none, integrity, confidentiality; "" if the kernel has no such thing
			    */
};

/* ---- what this process may do */

enum {
	CAPABILITY_NET_ADMIN = 12,
	CAPABILITY_SYS_ADMIN = 21,
	CAPABILITY_SYS_RESOURCE = 24,
	CAPABILITY_PERFMON = 38,
	CAPABILITY_BPF = 39,
};

struct process_facts {
	uint64_t capabilities;  /* in effect, as bits */
	bool is_contained;      /* in a user namespace: capabilities count for nothing outside it */
	uint64_t memlock_bytes; /* RLIMIT_MEMLOCK; UINT64_MAX: none */
	/* The memory control group that leaves least room. limit_bytes 0: none limits. */
	char memory_group[PATH_MAX];
	uint64_t memory_limit_bytes;
	uint64_t memory_used_bytes;
};

/* ---- the folder of pins */

enum { PIN_VERSIONS_MAX = 8, PIN_LINKS_MAX = 64 };

enum pin_link_state {
	PIN_LINK_ATTACHED,
	PIN_LINK_DEAD,      /* its interface is gone */
	PIN_LINK_TAKEN_OFF, /* somebody has taken the program off */
	PIN_LINK_ELSEWHERE, /* in another network namespace */
	PIN_LINK_UNREADABLE,
};

struct pin_link {
	char name[48]; /* link_3, tcx_3, clsact_3_4026531840 */
	uint32_t program_id;
	enum pin_link_state state;
};

struct pin_version {
	unsigned version;
	size_t link_count; /* also those that there is no room for */
	struct pin_link links[PIN_LINKS_MAX];
};

struct pins_facts {
	char root[PATH_MAX];
	char checked[PATH_MAX]; /* root, or the folder that it would be made in */
	int error;              /* of looking at it */
	bool is_bpf;
	bool is_read_only;
	bool can_write;
	int list_error; /* of reading root; -ENOENT: there is none yet */
	bool has_staging;
	bool has_daemon; /* debts of tenants, left for the daemon */
	int lock_pid;    /* who works on it; 0: nobody */
	char lock_name[32];
	size_t version_count;
	struct pin_version versions[PIN_VERSIONS_MAX];
};

/* ---- an interface */

enum { PROGRAMS_MAX = 16, MEMBERS_MAX = 16 };

struct program_facts {
	uint32_t id;
	char name[32]; /* "" if we may not know */
	char tag[20];  /* in hexadecimal */
	bool is_ours;  /* pinned in the folder that we were told of */
};

/* A filter at the ingress of a classic queueing discipline. */
struct filter_facts {
	char kind[16]; /* bpf, u32, flower … */
	char name[48]; /* of a program */
	uint32_t priority;
	uint32_t program_id;
};

enum { XDP_CAN_BASIC = 1, XDP_CAN_FRAGS = 32 }; /* bits of the kernel's netdev family */

struct interface_facts {
	char name[INTERFACE_NAME_MAX];
	uint32_t ifindex; /* 0: there is none of this name */
	bool is_up;
	uint16_t hardware; /* ARPHRD_* */
	uint32_t mtu;
	char kind[24]; /* veth, bridge, vlan, tun …; "" for a card */
	bool is_tap;   /* of kind tun: it has Ethernet frames */
	struct driver_facts driver;
	enum answer knows_xdp; /* whether xdp_features is what the driver says */
	uint64_t xdp_features;

	char master[INTERFACE_NAME_MAX]; /* that it is a member of; "" */
	char master_kind[24];
	char lower[INTERFACE_NAME_MAX]; /* that it stands on, or a veth's other end; "" */
	bool lower_is_elsewhere;        /* in another network namespace */
	uint32_t peer_mtu;              /* of a veth's other end; 0: not known */
	uint32_t peer_transmit_queues;
	bool has_members;
	char members[MEMBERS_MAX * INTERFACE_NAME_MAX]; /* of a bond or bridge: their names */

	/* Who is attached. id 0: nobody. */
	struct program_facts xdp_native, xdp_generic, xdp_offloaded;
	bool master_has_xdp;
	size_t tcx_count;
	struct program_facts tcx[PROGRAMS_MAX];
	bool has_clsact; /* or the older ingress discipline */
	size_t filter_count;
	struct filter_facts filters[PROGRAMS_MAX];
};

/* ---- addresses that must not be cut off */

enum { NEIGHBOURS_MAX = 64 };

enum neighbour_role { ROLE_OWN, ROLE_GATEWAY, ROLE_RESOLVER, ROLES };

struct neighbour {
	enum neighbour_role role;
	union address address;
};

struct network_facts {
	size_t count; /* at most NEIGHBOURS_MAX; more are left out */
	struct neighbour list[NEIGHBOURS_MAX];
	char default_interface[INTERFACE_NAME_MAX]; /* that the default route uses; "" */
};

/* A connection that the examiner sits on. */
struct session_facts {
	bool is_known;
	union address peer;
	uint16_t port; /* ours */
};

#endif
