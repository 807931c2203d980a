/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The daemon's own table of clients in the programs' own maps, with a clock that the test sets,
 * beside the harness that runs frames. Included by one program each.
 */
#ifndef SLUICE_TESTS_SHED_FIXTURE_H
#define SLUICE_TESTS_SHED_FIXTURE_H

#include "harness.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <sluice/key.h>

#include "limit/address_table.h"
#include "limit/build.h"
#include "limit/hook_limits.h"
#include "sluice_test.skel.h"

#define CLIENT "198.51.100.7"
#define OTHER "198.51.100.8"
#define CLIENT_6 "2001:db8:7::1"

/* What stands for the daemon. */
static struct daemon {
	struct address_memory memory; /* the programs' maps */
	struct address_table *table;
	struct settings settings;
	struct gcra_limit client, node;
} sluiced;

static uint64_t daemon_now_ns;

static inline uint64_t daemon_clock(void)
{
	return daemon_now_ns;
}

static inline void *map_memory(const struct bpf_map *map, size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	assert_true(memory != MAP_FAILED);
	return memory;
}

static inline void build(const struct rate_limit *wanted, enum bucket_kind kind,
			 struct gcra_limit *out)
{
	uint64_t longest;

	*out = (struct gcra_limit){ 0 };
	if (wanted->burst)
		assert_int_equal(limit_build(wanted, kind, out, &longest), 0);
}

/* The daemon begins to hold requests to such limits. */
static inline void hold_to(const struct settings *settings)
{
	uint64_t capacity_ns;

	build(&settings->ip_hooks, BUCKET_WORD, &sluiced.client);
	build(&settings->node_hooks, BUCKET_WHOLE, &sluiced.node);
	capacity_ns = gcra_wait_ns(sluiced.client.capacity, sluiced.client.tick_shift);
	address_table_announce(sluiced.table,
			       hook_limits_digest(&sluiced.client, &sluiced.node, settings),
			       capacity_ns);
}

static inline struct settings shedding(double rate, uint64_t burst)
{
	struct settings settings = harness_settings();

	settings.shed = true;
	if (burst)
		settings.ip_hooks = RATE_LIMIT(rate, burst);
	return settings;
}

/* The daemon and the programs both. */
static inline void configure(struct harness *harness, const struct settings *settings)
{
	harness_apply(harness, settings);
	hold_to(settings);
}

static inline bool request(const char *client)
{
	union address address = address_of(client);
	uint64_t wait_ns;

	return address_table_take(sluiced.table, &address, 64, &sluiced.client, 1, daemon_clock,
				  &wait_ns);
}

static inline bool request_of_node(void)
{
	uint64_t wait_ns;

	return address_table_take_node(sluiced.table, 0, &sluiced.node, daemon_clock, &wait_ns);
}

/* Until nothing is left, though nobody was refused yet. */
static inline void exhaust(const char *client)
{
	for (uint64_t i = 0; i < sluiced.client.burst; i++)
		assert_true(request(client));
}

static inline void clocks(struct harness *harness, uint64_t now_ns, uint64_t lag_ns)
{
	daemon_now_ns = now_ns;
	harness_clock(harness, now_ns, lag_ns);
}

static inline struct ran syn(struct harness *harness, const char *source)
{
	return harness_tcp(harness, source, TCP_SYN, 0);
}

static inline struct ran quic_initial(struct harness *harness, const char *source)
{
	static const uint8_t initial[] = { 0xc3, 0, 0, 0, 1, 8 };
	static struct frame frame;

	frame_of_udp(&frame, source, 443, 100);
	memcpy(&frame.byte[frame.udp_at + 8], initial, sizeof(initial));
	return harness_frame(harness, &frame);
}

static inline struct bucket_set *set_of(const char *client, struct place *place)
{
	union address key = address_of(client);

	key = address_key(&key, 64);
	*place = key_place(&sluiced.memory.hooks->secret, &key, IP_SETS - 1);
	return &sluiced.memory.sets[place->set];
}

/* The client's word, which is there. */
static inline __u64 *word_of(const char *client)
{
	struct place place;
	struct bucket_set *set = set_of(client, &place);

	for (int at = 0; at < SET_WORDS; at++)
		if (word_tag(set->word[at]) == place_tag(&place, METER_HOOKS))
			return &set->word[at];
	fail_msg("%s has no word", client);
	return NULL;
}

static inline int begin(void **state)
{
	static const struct siphash_key secret = { { 5, 6 } };
	struct harness *harness = *state;

	harness_reset(state);
	sluiced.memory.sets = map_memory(harness->skeleton->maps.hook_buckets,
					 IP_SETS * sizeof(struct bucket_set));
	sluiced.memory.hooks = map_memory(harness->skeleton->maps.hooks, sizeof(struct hooks));
	memset(sluiced.memory.sets, 0, IP_SETS * sizeof(struct bucket_set));
	memset(sluiced.memory.hooks, 0, sizeof(struct hooks));
	clocks(harness, HARNESS_START_NS, 0);
	return address_table_new(&sluiced.memory, IP_SETS, &secret, HARNESS_START_NS,
				 &sluiced.table);
}

static inline int end(void **state)
{
	(void)state;
	address_table_free(sluiced.table);
	munmap(sluiced.memory.sets, IP_SETS * sizeof(struct bucket_set));
	munmap(sluiced.memory.hooks, sizeof(struct hooks));
	return 0;
}

static inline void check(const struct ran *ran, enum reason reason)
{
	assert_int_equal(ran->reason, reason);
	assert_int_equal(ran->action, reason_is_refusal(reason) ? XDP_DROP : XDP_PASS);
	assert_false(ran->would);
}

#define expect_reason(ran_, reason)      \
	do {                             \
		struct ran ran = (ran_); \
		check(&ran, (reason));   \
	} while (0)

#endif
