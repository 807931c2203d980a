/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps are written as user/dataplane does it, with rules_slot() and rules_prefix(), so that a
 * test sees what an operator would. */
#include "harness.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "dataplane/maps.h"
#include "dataplane/rules.h"
#include "sluice_test.skel.h"

enum { LOOPBACK_IFINDEX = 1, CPUS_MAX = 1024 };

static int fd_of(const struct bpf_map *map)
{
	return bpf_map__fd(map);
}

static void *map_memory(const struct bpf_map *map, size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_of(map), 0);

	assert_true(memory != MAP_FAILED);
	return memory;
}

static void stay_on_one_cpu(void)
{
	cpu_set_t set;
	int cpu = sched_getcpu();

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

static int take_event(void *context, void *data, size_t bytes)
{
	struct harness *harness = context;

	assert_int_equal(bytes, sizeof(struct event));
	if (harness->event_count < harness->events_max)
		memcpy(&harness->events[harness->event_count], data, sizeof(struct event));
	harness->event_count++;
	return 0;
}

static int open_harness(void **state, bool frags)
{
	struct harness *harness = calloc(1, sizeof(*harness));
	struct sluice_test_bpf *skeleton = sluice_test_bpf__open_and_load();

	if (!harness || !skeleton) {
		print_error(
			"the programs cannot be loaded; this needs root and a kernel from 5.18\n");
		free(harness);
		return -1;
	}
	stay_on_one_cpu();
	harness->skeleton = skeleton;
	harness->cpus = libbpf_num_possible_cpus();
	harness->program =
		bpf_program__fd(frags ? skeleton->progs.sluice_frags : skeleton->progs.sluice_xdp);
	harness->sets = map_memory(skeleton->maps.ip_buckets, IP_SETS * sizeof(struct bucket_set));
	harness->node = map_memory(skeleton->maps.node_buckets, sizeof(struct node_buckets));
	harness->config = map_memory(skeleton->maps.config, sizeof(struct config));
	harness->protect =
		map_memory(skeleton->maps.protect, PROTECT_WORDS * sizeof(struct protected_ports));
	harness->ring = ring_buffer__new(fd_of(skeleton->maps.events), take_event, harness, NULL);
	assert_non_null(harness->ring);
	*state = harness;
	return 0;
}

int harness_open_xdp(void **state)
{
	return open_harness(state, false);
}

int harness_open_frags(void **state)
{
	return open_harness(state, true);
}

int harness_close(void **state)
{
	struct harness *harness = *state;

	ring_buffer__free(harness->ring);
	munmap(harness->sets, IP_SETS * sizeof(struct bucket_set));
	munmap(harness->node, sizeof(struct node_buckets));
	munmap(harness->config, sizeof(struct config));
	munmap(harness->protect, PROTECT_WORDS * sizeof(struct protected_ports));
	sluice_test_bpf__destroy(harness->skeleton);
	free(harness);
	return 0;
}

static void clear_per_cpu(const struct harness *harness, const struct bpf_map *map, uint32_t keys)
{
	size_t bytes = (bpf_map__value_size(map) + 7) / 8 * 8 * (size_t)harness->cpus;
	void *zero = calloc(1, bytes);

	assert_non_null(zero);
	for (uint32_t key = 0; key < keys; key++)
		assert_int_equal(bpf_map_update_elem(fd_of(map), &key, zero, BPF_ANY), 0);
	free(zero);
}

static void clear_hash(const struct bpf_map *map)
{
	unsigned char key[sizeof(struct prefix_key)];

	assert_true(bpf_map__key_size(map) <= sizeof(key));
	while (bpf_map_get_next_key(fd_of(map), NULL, key) == 0)
		assert_int_equal(bpf_map_delete_elem(fd_of(map), key), 0);
}

/* Known, so that a failure can be had again, and nothing special. */
static const struct siphash_key secret = { { 0x0123456789abcdefULL, 0xfedcba9876543210ULL } };

int harness_reset(void **state)
{
	struct harness *harness = *state;
	struct sluice_test_bpf *skeleton = harness->skeleton;

	memset(harness->sets, 0, IP_SETS * sizeof(struct bucket_set));
	memset(harness->node, 0, sizeof(struct node_buckets));
	memset(harness->protect, 0, PROTECT_WORDS * sizeof(struct protected_ports));
	memset(harness->config, 0, sizeof(struct config));
	harness->config->abi_version = SLUICE_ABI_VERSION;
	harness->config->coarse_lag_ns = HARNESS_LAG_NS;
	harness->config->secret = secret;
	harness->generation = 0;
	clear_per_cpu(harness, skeleton->maps.node_slices, 1);
	clear_per_cpu(harness, skeleton->maps.report_state, 1);
	clear_per_cpu(harness, skeleton->maps.counters, REASONS);
	clear_per_cpu(harness, skeleton->maps.notes, NOTES);
	clear_hash(skeleton->maps.offenders);
	clear_hash(skeleton->maps.prefixes_0);
	clear_hash(skeleton->maps.prefixes_1);
	harness_events(harness, NULL, 0);
	memset(harness->seen, 0, sizeof(harness->seen));
	harness_clock(harness, HARNESS_START_NS, 0);
	return 0;
}

struct settings harness_settings(void)
{
	struct settings settings = { .ipv6_prefix = 64, .protect = { .all = true } };

	return settings;
}

const struct config_slot *harness_slot(const struct harness *harness)
{
	return &harness->config->slot[harness->config->active];
}

static void write_prefixes(const struct harness *harness, const struct settings *settings,
			   uint32_t slot)
{
	const struct bpf_map *map =
		slot ? harness->skeleton->maps.prefixes_1 : harness->skeleton->maps.prefixes_0;

	clear_hash(map);
	for (size_t at = 0; at < settings->prefix_count; at++) {
		const struct setting_prefix *setting = &settings->prefixes[at];
		struct prefix_key key = prefix_key_of(&setting->address, setting->bits);
		struct prefix_entry entry = { .bits = setting->bits };

		assert_int_equal(rules_prefix(setting, &entry.configured), 0);
		assert_int_equal(bpf_map_update_elem(fd_of(map), &key, &entry, BPF_ANY), 0);
	}
}

void harness_apply(struct harness *harness, const struct settings *settings)
{
	uint32_t slot = !harness->config->active;

	harness->generation++;
	assert_int_equal(rules_slot(settings, (unsigned)harness->cpus, harness->generation,
				    &harness->config->slot[slot]),
			 0);
	write_prefixes(harness, settings, slot);
	for (int word = 0; word < PROTECT_WORDS; word++) {
		harness->protect[word].tcp[slot] = settings->protect.tcp[word];
		harness->protect[word].udp[slot] = settings->protect.udp[word];
	}
	harness->config->active = slot;
}

void harness_by_hand(struct harness *harness, const struct setting_prefix *setting)
{
	harness_by_hand_until(harness, setting, 0);
}

void harness_by_hand_until(struct harness *harness, const struct setting_prefix *setting,
			   uint32_t expires_s)
{
	uint32_t slot = harness->config->active;
	const struct bpf_map *map =
		slot ? harness->skeleton->maps.prefixes_1 : harness->skeleton->maps.prefixes_0;
	struct prefix_key key = prefix_key_of(&setting->address, setting->bits);
	struct prefix_key next;
	struct prefix_entry entry = {};
	void *from = NULL;

	/* A look-up in a trie finds the longest prefix, so the same one is sought among all. */
	while (bpf_map_get_next_key(fd_of(map), from, &next) == 0) {
		if (memcmp(&next, &key, sizeof(key)) == 0)
			assert_int_equal(bpf_map_lookup_elem(fd_of(map), &key, &entry), 0);
		from = &next;
	}
	memset(&entry.by_hand, 0, sizeof(entry.by_hand));
	entry.bits = setting->bits;
	if (setting->action != PREFIX_NONE)
		assert_int_equal(rules_prefix(setting, &entry.by_hand), 0);
	entry.by_hand.expires_s = expires_s;
	assert_int_equal(bpf_map_update_elem(fd_of(map), &key, &entry, BPF_ANY), 0);
	harness->config->slot[slot].flags |= CONFIG_HAS_PREFIXES;
}

void harness_maps(const struct harness *harness, struct maps *maps)
{
	int fd[MAPS];

	for (int id = 0; id < MAPS; id++)
		fd[id] = bpf_object__find_map_fd_by_name(harness->skeleton->obj, map_name(id));
	assert_int_equal(maps_adopt(maps, fd), 0);
}

void harness_clock(struct harness *harness, uint64_t now_ns, uint64_t lag_ns)
{
	harness->skeleton->bss->fake_now_ns = now_ns;
	harness->skeleton->bss->fake_lag_ns = lag_ns;
}

uint64_t harness_now(const struct harness *harness)
{
	return harness->skeleton->bss->fake_now_ns;
}

/* Which counter has moved since the last run. */
static void find_reason(struct harness *harness, struct ran *ran)
{
	int moved = 0;

	for (int reason = 0; reason < REASONS; reason++) {
		struct counter now = harness_counter(harness, reason);
		struct counter *seen = &harness->seen[reason];
		uint64_t packets = now.packets - seen->packets;
		uint64_t would = now.would_packets - seen->would_packets;
		uint64_t bytes = now.bytes - seen->bytes + now.would_bytes - seen->would_bytes;

		*seen = now;
		if (!packets && !would && !bytes)
			continue;
		assert_int_equal(packets + would, 1);
		ran->reason = reason;
		ran->would = would;
		ran->bytes = (uint32_t)bytes;
		moved++;
	}
	assert_int_equal(moved, 1);
}

/* The program's last answer. */
static int test_run(const struct harness *harness, const void *frame, uint32_t bytes,
		    uint32_t times)
{
	struct xdp_md context = { .data_end = bytes, .ingress_ifindex = LOOPBACK_IFINDEX };
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = bytes,
		    .ctx_in = &context, .ctx_size_in = sizeof(context), .repeat = (int)times);
	int err = bpf_prog_test_run_opts(harness->program, &options);

	if (err)
		fail_msg("a frame of %u bytes cannot be run: %s", bytes, strerror(-err));
	return (int)options.retval;
}

struct ran harness_run(struct harness *harness, const void *frame, uint32_t bytes)
{
	struct ran ran = { .action = test_run(harness, frame, bytes, 1) };

	find_reason(harness, &ran);
	return ran;
}

void harness_repeat(struct harness *harness, const struct frame *frame, uint32_t times)
{
	(void)test_run(harness, frame->byte, frame->bytes, times);
	for (int reason = 0; reason < REASONS; reason++)
		harness->seen[reason] = harness_counter(harness, reason);
}

struct ran harness_frame(struct harness *harness, const struct frame *frame)
{
	return harness_run(harness, frame->byte, frame->bytes);
}

struct ran harness_tcp(struct harness *harness, const char *source, uint8_t flags, uint32_t bytes)
{
	static struct frame frame;

	frame_of_tcp(&frame, source, 443, flags, bytes);
	return harness_frame(harness, &frame);
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
