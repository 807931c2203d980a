/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads back what the programs have counted and written, and checks that it is whole. */
#include "harness.h"

#include <sched.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>

#include "sluice_test.skel.h"

enum { CPUS_MAX = 1024 };

static int fd_of(const struct bpf_map *map)
{
	return bpf_map__fd(map);
}

struct counter harness_counter(const struct harness *harness, enum reason reason)
{
	struct counter of_cpu[CPUS_MAX], sum = {};
	uint32_t key = reason;

	assert_true(harness->cpus <= CPUS_MAX);
	assert_int_equal(bpf_map_lookup_elem(fd_of(harness->skeleton->maps.counters), &key, of_cpu),
			 0);
	for (int cpu = 0; cpu < harness->cpus; cpu++) {
		sum.packets += of_cpu[cpu].packets;
		sum.bytes += of_cpu[cpu].bytes;
		sum.would_packets += of_cpu[cpu].would_packets;
		sum.would_bytes += of_cpu[cpu].would_bytes;
	}
	return sum;
}

struct interface_counter harness_interface(const struct harness *harness, uint32_t ifindex)
{
	struct interface_counter of_cpu[CPUS_MAX], sum = {};
	uint32_t key = ifindex % INTERFACE_COUNTERS;
	int fd = fd_of(harness->skeleton->maps.interface_counters);

	assert_true(harness->cpus <= CPUS_MAX);
	assert_int_equal(bpf_map_lookup_elem(fd, &key, of_cpu), 0);
	for (int cpu = 0; cpu < harness->cpus; cpu++) {
		sum.passed_packets += of_cpu[cpu].passed_packets;
		sum.passed_bytes += of_cpu[cpu].passed_bytes;
		sum.refused_packets += of_cpu[cpu].refused_packets;
		sum.refused_bytes += of_cpu[cpu].refused_bytes;
	}
	return sum;
}

void harness_forget(struct harness *harness)
{
	for (int reason = 0; reason < REASONS; reason++)
		harness->seen[reason] = harness_counter(harness, reason);
	for (uint32_t ifindex = 0; ifindex < INTERFACE_COUNTERS; ifindex++)
		harness->seen_interface[ifindex] = harness_interface(harness, ifindex);
}

/* By how much a counter has moved since it was seen; then that is seen. */
static struct counter moved(struct counter *seen, struct counter now)
{
	struct counter by = {
		.packets = now.packets - seen->packets,
		.bytes = now.bytes - seen->bytes,
		.would_packets = now.would_packets - seen->would_packets,
		.would_bytes = now.would_bytes - seen->would_bytes,
	};

	*seen = now;
	return by;
}

/* That this frame was counted for its interface, and as what became of it. */
static void check_interface(struct harness *harness, const struct ran *ran, bool refused)
{
	uint32_t index = harness->ifindex % INTERFACE_COUNTERS;
	struct interface_counter *seen = &harness->seen_interface[index];
	struct interface_counter now = harness_interface(harness, index);

	assert_int_equal(now.passed_packets - seen->passed_packets, refused ? 0 : ran->packets);
	assert_int_equal(now.passed_bytes - seen->passed_bytes, refused ? 0 : ran->bytes);
	assert_int_equal(now.refused_packets - seen->refused_packets, refused ? ran->packets : 0);
	assert_int_equal(now.refused_bytes - seen->refused_bytes, refused ? ran->bytes : 0);
	*seen = now;
}

struct ran harness_outcome(struct harness *harness, bool refused)
{
	struct ran ran = { .would = true };
	struct counter by[REASONS];

	for (int reason = 0; reason < REASONS; reason++) {
		by[reason] = moved(&harness->seen[reason], harness_counter(harness, reason));
		if (by[reason].would_packets) {
			assert_true(reason_is_refusal((uint32_t)reason));
			ran.would_reasons |= 1u << reason;
			if (ran.would) {
				ran.reason = reason;
				ran.packets = (uint32_t)by[reason].would_packets;
				ran.bytes = (uint32_t)by[reason].would_bytes;
			}
		}
		if (by[reason].packets) {
			assert_true(ran.would); /* else this is the second */
			ran.would = false;
			ran.reason = reason;
			ran.packets = (uint32_t)by[reason].packets;
			ran.bytes = (uint32_t)by[reason].bytes;
		}
	}
	for (int reason = 0; reason < REASONS; reason++) {
		bool would = ran.would_reasons & 1u << reason;
		bool counted = !ran.would && (int)ran.reason == reason;

		assert_int_equal(by[reason].packets, counted ? ran.packets : 0);
		assert_int_equal(by[reason].bytes, counted ? ran.bytes : 0);
		assert_int_equal(by[reason].would_packets, would ? ran.packets : 0);
		assert_int_equal(by[reason].would_bytes, would ? ran.bytes : 0);
	}
	/* Counted at all, and refused if and only if that is what it was counted as. */
	assert_true(ran.packets > 0);
	assert_int_equal(refused, !ran.would && reason_is_refusal(ran.reason));
	check_interface(harness, &ran, refused);
	ran.action = refused ? XDP_DROP : XDP_PASS;
	return ran;
}

/* This one is counted where the account of events is kept. */
static uint64_t sampled_out(const struct harness *harness)
{
	struct report_state of_cpu[CPUS_MAX];
	uint64_t sum = 0;
	uint32_t key = 0;

	assert_int_equal(
		bpf_map_lookup_elem(fd_of(harness->skeleton->maps.report_state), &key, of_cpu), 0);
	for (int cpu = 0; cpu < harness->cpus; cpu++)
		sum += of_cpu[cpu].sampled_out;
	return sum;
}

uint64_t harness_note(const struct harness *harness, enum note note)
{
	uint64_t of_cpu[CPUS_MAX], sum = 0;
	uint32_t key = note;

	assert_true(harness->cpus <= CPUS_MAX);
	assert_int_equal(bpf_map_lookup_elem(fd_of(harness->skeleton->maps.notes), &key, of_cpu),
			 0);
	for (int cpu = 0; cpu < harness->cpus; cpu++)
		sum += of_cpu[cpu];
	return note == NOTE_EVENT_SAMPLED_OUT ? sum + sampled_out(harness) : sum;
}

uint64_t harness_unspent(const struct harness *harness, enum meter meter)
{
	struct node_slices of_cpu[CPUS_MAX];
	uint32_t only = 0;

	assert_true(harness->cpus <= CPUS_MAX);
	assert_int_equal(
		bpf_map_lookup_elem(fd_of(harness->skeleton->maps.node_slices), &only, of_cpu), 0);
	return of_cpu[sched_getcpu()].meter[meter].unspent;
}

size_t harness_events(struct harness *harness, struct event *events, size_t max)
{
	harness->events = events;
	harness->events_max = max;
	harness->event_count = 0;
	assert_true(ring_buffer__consume(harness->ring) >= 0);
	return harness->event_count;
}

bool harness_offender(const struct harness *harness, const union address *key, struct offender *out)
{
	return bpf_map_lookup_elem(fd_of(harness->skeleton->maps.offenders), key, out) == 0;
}

struct place harness_place(const struct harness *harness, const char *address)
{
	union address source = address_of(address);
	union address key = address_key(&source, harness_slot(harness)->ipv6_prefix);

	return key_place(&harness->config->secret, &key, IP_SETS - 1);
}

struct bucket_set *harness_set(const struct harness *harness, const char *address)
{
	return &harness->sets[harness_place(harness, address).set];
}
