/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The pinned maps, opened and mapped: one typed function for each thing that user space reads or
 * changes. Reading needs no lock; functions that change something say so and want pins_lock().
 * All return 0 or -errno unless they say otherwise. Not thread safe.
 */
#ifndef SLUICE_DATAPLANE_MAPS_H
#define SLUICE_DATAPLANE_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sluice/abi.h>

#include "base/trouble.h"
#include "dataplane/pins.h"

enum map_id {
	MAP_IP_BUCKETS,
	MAP_IP_REFUSALS,
	MAP_NODE_BUCKETS,
	MAP_NODE_SLICES,
	MAP_COUNTERS,
	MAP_INTERFACE_COUNTERS,
	MAP_NOTES,
	MAP_REPORT_STATE,
	MAP_OFFENDERS,
	MAP_EVENTS,
	MAP_HOOK_BUCKETS,
	MAP_HOOKS,
	MAP_INTERFACES,
	MAP_CONFIG,
	MAP_PROTECT,
	MAP_PREFIX_HINTS,
	MAP_PREFIXES_0,
	MAP_PREFIXES_1,
	MAP_SWEEPER,
	MAPS,
};

struct maps {
	int fd[MAPS];
	struct bucket_set *ip_buckets; /* IP_SETS of them; mapped, as the next four */
	struct node_buckets *node_buckets;
	struct config *config;
	struct protected_ports *protect; /* PROTECT_WORDS of them */
	uint64_t *prefix_hints;          /* PREFIX_HINT_WORDS for each slot */
};

/* The name a map is pinned under. */
const char *map_name(enum map_id id);

/* Whether a map is as that of this version is. 0, -EPROTO: it is not, or another -errno. */
int map_check(int fd, enum map_id id);

/*
 * Open what is pinned in a folder and check that it is of this version. write: also for changes.
 * -ENOENT: nothing is attached. -EPERM, -EACCES: not root. -EPROTO: the maps are not ours or of
 * another build. On failure *maps is closed.
 */
int maps_open(struct maps *maps, const struct pins *pins, bool write, struct trouble *trouble);

/* The same from descriptors that a loaded object holds; they are duplicated. */
int maps_adopt(struct maps *maps, const int fd[MAPS]);

/* A maps that was never opened, or only half, is fine if it was zeroed and its fds are -1. */
void maps_close(struct maps *maps);

/* The configuration in force; NULL if there is none. */
const struct config_slot *maps_slot(const struct maps *maps);

/* How many CPUs the kernel may ever have. */
unsigned maps_cpus(void);

/* Sums over all CPUs. */
int maps_counters(const struct maps *maps, struct counter counters[REASONS]);
int maps_notes(const struct maps *maps, uint64_t notes[NOTES]);
/* Of the interface, and of any other whose number is the same modulo INTERFACE_COUNTERS. */
int maps_interface(const struct maps *maps, uint32_t ifindex, struct interface_counter *out);
int maps_unspent(const struct maps *maps, uint64_t unspent[METERS]);

struct known_offender {
	union address address;
	struct offender offender;
};

/* All offenders, most refused first; *out is the caller's, to be freed. */
int maps_offenders(const struct maps *maps, struct known_offender **out, size_t *count);

/* Words of the table by state, from one pass over the mapped table. */
struct occupancy {
	uint64_t in_debt;
	uint64_t passed; /* not yet swept */
	uint64_t empty;
	uint64_t sets_full;
};

void maps_occupancy(const struct maps *maps, uint64_t now_ns, struct occupancy *out);

struct rule_found {
	struct prefix_rule rule; /* never PREFIX_NONE */
	bool by_hand;
	uint32_t bits; /* of the prefix it was given for */
};

/* The rule that counts for an address now, found as the programs find it. -ENOENT: there is none. */
int maps_rule_find(const struct maps *maps, const union address *address, uint64_t now_ns,
		   struct rule_found *out);

/*
 * Set what is said by hand about a prefix; PREFIX_NONE takes it back (-ENOENT: nothing was said, or
 * it has ended by now_ns). Takes the same time however long the lists are. Wants the lock.
 */
int maps_prefix_set(struct maps *maps, const struct prefix_key *key,
		    const struct prefix_rule *by_hand, uint64_t now_ns);

/* Call visit for each entry of a slot's trie, until it returns other than 0. Rules that have ended
 * may still be among them. */
int maps_each_prefix(const struct maps *maps, unsigned slot,
		     int (*visit)(const struct prefix_key *key, const struct prefix_entry *entry,
				  void *data),
		     void *data);

#endif
