/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs the real programs on frames in memory: loads the build whose clock is a variable, puts
 * settings into its maps as the data plane would, runs one frame at a time (BPF_PROG_TEST_RUN) and
 * reads back what was counted and written. Nothing is attached or pinned. The process stays on one
 * CPU, so that the slices of the node's buckets are the same from run to run.
 *
 * Whatever should not happen fails the test at once; so nothing here returns an error.
 */
#ifndef SLUICE_TESTS_HARNESS_H
#define SLUICE_TESTS_HARNESS_H

#include "tests/unit/test.h"

#include <sluice/abi.h>

#include "limit/settings.h"
#include "packets.h"

struct sluice_test_bpf;

/* Where a program is attached. */
enum hook {
	HOOK_XDP,
	HOOK_FRAGS,
	HOOK_TC,
};

struct harness {
	struct sluice_test_bpf *skeleton;
	enum hook hook;
	int program;             /* the one that frames are given to */
	uint32_t ifindex;        /* where they come in; harness_reset() sets that of loopback */
	int cpus;                /* that the kernel may ever have */
	struct bucket_set *sets; /* of ip_buckets, IP_SETS of them; writable, as are the others */
	struct node_buckets *node;
	struct config *config;
	struct protected_ports *protect;
	uint64_t *hints; /* of both slots */
	struct ring_buffer *ring;
	uint64_t generation;
	struct counter seen[REASONS]; /* the counters as they stood after the last run */
	struct interface_counter seen_interface[INTERFACE_COUNTERS];
	struct event *events; /* of a harness_events() that is under way */
	size_t events_max;
	size_t event_count;
};

/* What became of one frame. */
struct ran {
	/* XDP_PASS or XDP_DROP, also for what TC calls TC_ACT_UNSPEC and TC_ACT_SHOT. */
	int action;
	enum reason reason;     /* counted; if none was, the last of would_reasons */
	bool would;             /* no reason was counted but as what would have been */
	uint32_t would_reasons; /* bits 1 << enum reason: counted as what would have been */
	uint32_t packets;       /* that were counted */
	uint32_t bytes;
};

/* What TC is told of a frame that stands for many: 0, 0 for one that does not. */
struct many {
	uint32_t payload_each; /* gso_size */
	uint32_t segments;     /* gso_segs; 0: unknown */
};

/* How far the coarse clock may lie behind, as every configuration here says. */
#define HARNESS_LAG_NS 4000000ULL

/* The clock after harness_reset(): some time after boot. */
#define HARNESS_START_NS 1000000000000ULL

#define SECOND_NS 1000000000ULL
#define MILLISECOND_NS 1000000ULL

#define RATE_LIMIT(per_second, at_once) \
	((struct rate_limit){ .rate = (per_second), .burst = (at_once) })

/* Group setup and teardown of cmocka: *state is a struct harness. */
int harness_open_xdp(void **state);
int harness_open_frags(void **state);
int harness_open_tc(void **state);
/* XDP, and the map of offenders has room for one, whom nobody pushes out. */
int harness_open_crowded(void **state);
int harness_close(void **state);

/* Test setup: empty maps, no configuration, the clock at HARNESS_START_NS. */
int harness_reset(void **state);

/* The configuration in force. */
const struct config_slot *harness_slot(const struct harness *harness);

/* Settings that protect everything and limit nothing. */
struct settings harness_settings(void);

/* Put a configuration in force, leaving the buckets as they are. */
void harness_apply(struct harness *harness, const struct settings *settings);

/* A rule given by hand, in the configuration that is in force. */
void harness_by_hand(struct harness *harness, const struct setting_prefix *setting);
/* One that ends, at a second of the programs' clock. */
void harness_by_hand_until(struct harness *harness, const struct setting_prefix *setting,
			   uint32_t expires_s);

/* The same maps as user space opens them; to be closed by maps_close(). */
struct maps;
void harness_maps(const struct harness *harness, struct maps *maps);

/* The programs' clock, and how far their coarse clock lies behind it. */
void harness_clock(struct harness *harness, uint64_t now_ns, uint64_t lag_ns);
uint64_t harness_now(const struct harness *harness);

/*
 * Run one frame. Fails unless what was counted is whole: under one reason, by one packet, and by as
 * much for its interface, as refused if that is what became of it; or, in a dry run, under one or
 * more reasons as what would have been; and for a meter in a dry run beside it under others.
 */
struct ran harness_run(struct harness *harness, const void *frame, uint32_t bytes);
struct ran harness_frame(struct harness *harness, const struct frame *frame);
/* TC only: the same for a frame that stands for many, of which there may be more packets. */
struct ran harness_many(struct harness *harness, const struct frame *frame, struct many many);
/* What was counted since the last run, of one frame that the harness did not run itself. */
struct ran harness_outcome(struct harness *harness, bool refused);
/* Take what was counted until now as seen. */
void harness_forget(struct harness *harness);
/* Whether the kernel runs such a frame at all; by TC it does none that is cut in its IP header, and
 * none that does not fit a page. */
bool harness_can_run(const struct harness *harness, const void *frame, uint32_t bytes);
/* A TCP packet from an address to port 443; bytes as frame_of_tcp(). */
struct ran harness_tcp(struct harness *harness, const char *source, uint8_t flags, uint32_t bytes);

/* Run the same frame many times at one go, whatever becomes of it. */
void harness_repeat(struct harness *harness, const struct frame *frame, uint32_t times);

/* Sums over all CPUs. */
struct counter harness_counter(const struct harness *harness, enum reason reason);
uint64_t harness_note(const struct harness *harness, enum note note);
struct interface_counter harness_interface(const struct harness *harness, uint32_t ifindex);

/* What this CPU holds of the node's bucket. */
uint64_t harness_unspent(const struct harness *harness, enum meter meter);

/* Take all events out of the ring; at most max are kept. Returns how many there were. */
size_t harness_events(struct harness *harness, struct event *events, size_t max);

/* Whether the address (a bucket's key) was noted; then *out is what. */
bool harness_offender(const struct harness *harness, const union address *key,
		      struct offender *out);

/* Where the buckets of an address are. */
struct place harness_place(const struct harness *harness, const char *address);
struct bucket_set *harness_set(const struct harness *harness, const char *address);

#endif
