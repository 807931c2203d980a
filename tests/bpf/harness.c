/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Loading, writing the maps, running frames; what is read back stands in harness_read.c. The maps
 * are written as user/dataplane does it, with rules_slot() and rules_prefix(), so that a test sees
 * what an operator would. */
#include "harness.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "dataplane/hints.h"
#include "dataplane/maps.h"
#include "dataplane/rules.h"
#include "sluice_test.skel.h"

enum {
	HINTS_BYTES = 2 * PREFIX_HINT_WORDS * 8,
	LOOPBACK_IFINDEX = 1,
	TC_PASSES = -1,            /* TC_ACT_UNSPEC */
	TC_REFUSES = 2,            /* TC_ACT_SHOT */
	TC_FRAME_BYTES_MAX = 3500, /* with what the kernel puts around it, less than a page */
};

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

/*
 * With the program of one hook only: to have the others verified takes its time. NULL: none.
 * offenders_max: 0, or for how many addresses a map has room that pushes out none.
 */
static struct sluice_test_bpf *load(enum hook hook, uint32_t offenders_max, int *program)
{
	struct sluice_test_bpf *skeleton = sluice_test_bpf__open();
	struct bpf_program *const programs[] = {
		[HOOK_XDP] = skeleton ? skeleton->progs.sluice_xdp : NULL,
		[HOOK_FRAGS] = skeleton ? skeleton->progs.sluice_frags : NULL,
		[HOOK_TC] = skeleton ? skeleton->progs.sluice_tc : NULL,
	};

	if (!skeleton)
		return NULL;
	for (size_t other = 0; other < COUNT_OF(programs); other++)
		assert_int_equal(bpf_program__set_autoload(programs[other], other == hook), 0);
	if (offenders_max) {
		bpf_map__set_type(skeleton->maps.offenders, BPF_MAP_TYPE_HASH);
		bpf_map__set_max_entries(skeleton->maps.offenders, offenders_max);
	}
	if (sluice_test_bpf__load(skeleton)) {
		sluice_test_bpf__destroy(skeleton);
		return NULL;
	}
	*program = bpf_program__fd(programs[hook]);
	return skeleton;
}

static int open_harness(void **state, enum hook hook, uint32_t offenders_max)
{
	struct harness *harness = calloc(1, sizeof(*harness));
	struct sluice_test_bpf *skeleton =
		harness ? load(hook, offenders_max, &harness->program) : NULL;

	if (!harness || !skeleton) {
		print_error(
			"the programs cannot be loaded; this needs root and a kernel from 5.18\n");
		free(harness);
		return -1;
	}
	stay_on_one_cpu();
	harness->skeleton = skeleton;
	harness->cpus = libbpf_num_possible_cpus();
	harness->hook = hook;
	harness->sets = map_memory(skeleton->maps.ip_buckets, IP_SETS * sizeof(struct bucket_set));
	harness->node = map_memory(skeleton->maps.node_buckets, sizeof(struct node_buckets));
	harness->config = map_memory(skeleton->maps.config, sizeof(struct config));
	harness->protect =
		map_memory(skeleton->maps.protect, PROTECT_WORDS * sizeof(struct protected_ports));
	harness->hints = map_memory(skeleton->maps.prefix_hints, HINTS_BYTES);
	harness->ring = ring_buffer__new(fd_of(skeleton->maps.events), take_event, harness, NULL);
	assert_non_null(harness->ring);
	*state = harness;
	return 0;
}

int harness_open_xdp(void **state)
{
	return open_harness(state, HOOK_XDP, 0);
}

int harness_open_frags(void **state)
{
	return open_harness(state, HOOK_FRAGS, 0);
}

int harness_open_tc(void **state)
{
	return open_harness(state, HOOK_TC, 0);
}

int harness_open_crowded(void **state)
{
	return open_harness(state, HOOK_XDP, 1);
}

int harness_close(void **state)
{
	struct harness *harness = *state;

	ring_buffer__free(harness->ring);
	munmap(harness->sets, IP_SETS * sizeof(struct bucket_set));
	munmap(harness->node, sizeof(struct node_buckets));
	munmap(harness->config, sizeof(struct config));
	munmap(harness->protect, PROTECT_WORDS * sizeof(struct protected_ports));
	munmap(harness->hints, HINTS_BYTES);
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
	memset(harness->hints, 0, HINTS_BYTES);
	memset(harness->config, 0, sizeof(struct config));
	harness->config->abi_version = SLUICE_ABI_VERSION;
	harness->config->coarse_lag_ns = HARNESS_LAG_NS;
	harness->config->secret = secret;
	harness->generation = 0;
	clear_per_cpu(harness, skeleton->maps.ip_refusals, 1);
	clear_per_cpu(harness, skeleton->maps.node_slices, 1);
	clear_per_cpu(harness, skeleton->maps.report_state, 1);
	clear_per_cpu(harness, skeleton->maps.counters, REASONS);
	clear_per_cpu(harness, skeleton->maps.interface_counters, INTERFACE_COUNTERS);
	clear_per_cpu(harness, skeleton->maps.notes, NOTES);
	clear_hash(skeleton->maps.offenders);
	clear_hash(skeleton->maps.prefixes_0);
	clear_hash(skeleton->maps.prefixes_1);
	harness_events(harness, NULL, 0);
	memset(harness->seen, 0, sizeof(harness->seen));
	memset(harness->seen_interface, 0, sizeof(harness->seen_interface));
	harness->ifindex = LOOPBACK_IFINDEX;
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
	hints_clear(harness->hints + slot * PREFIX_HINT_WORDS);
	for (size_t at = 0; at < settings->prefix_count; at++) {
		const struct setting_prefix *setting = &settings->prefixes[at];
		struct prefix_key key = prefix_key_of(&setting->address, setting->bits);
		struct prefix_entry entry = { .bits = setting->bits };

		assert_int_equal(rules_prefix(setting, &entry.configured), 0);
		harness->config->slot[slot].flags |=
			hints_add(harness->hints + slot * PREFIX_HINT_WORDS, &key);
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
	harness->config->slot[slot].flags |=
		CONFIG_HAS_PREFIXES | hints_add(harness->hints + slot * PREFIX_HINT_WORDS, &key);
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

/* The program's last answer, in the words of XDP. */
static int test_run(const struct harness *harness, const void *frame, uint32_t bytes,
		    struct many many, uint32_t times)
{
	struct xdp_md xdp = { .data_end = bytes, .ingress_ifindex = harness->ifindex };
	struct __sk_buff tc = {
		.ifindex = harness->ifindex,
		.gso_size = many.payload_each,
		.gso_segs = many.segments,
	};
	bool is_tc = harness->hook == HOOK_TC;
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = bytes,
		    .ctx_in = is_tc ? (void *)&tc : (void *)&xdp,
		    .ctx_size_in = is_tc ? sizeof(tc) : sizeof(xdp), .repeat = (int)times);
	int err = bpf_prog_test_run_opts(harness->program, &options), action;

	if (err)
		fail_msg("a frame of %u bytes cannot be run: %s", bytes, strerror(-err));
	action = (int)options.retval;
	if (!is_tc)
		return action;
	assert_true(action == TC_PASSES || action == TC_REFUSES);
	return action == TC_PASSES ? XDP_PASS : XDP_DROP;
}

bool harness_can_run(const struct harness *harness, const void *frame, uint32_t bytes)
{
	const uint8_t *byte = frame;
	uint32_t least = 14;

	if (bytes < least)
		return false;
	if (harness->hook != HOOK_TC)
		return true;
	if (byte[12] == 0x08 && byte[13] == 0x00)
		least += 20;
	if (byte[12] == 0x86 && byte[13] == 0xdd)
		least += 40;
	return bytes >= least && bytes <= TC_FRAME_BYTES_MAX;
}

struct ran harness_run(struct harness *harness, const void *frame, uint32_t bytes)
{
	int action = test_run(harness, frame, bytes, (struct many){}, 1);
	struct ran ran = harness_outcome(harness, action == XDP_DROP);

	assert_int_equal(ran.packets, 1);
	ran.action = action;
	return ran;
}

struct ran harness_many(struct harness *harness, const struct frame *frame, struct many many)
{
	int action = test_run(harness, frame->byte, frame->bytes, many, 1);
	struct ran ran;

	assert_int_equal(harness->hook, HOOK_TC);
	ran = harness_outcome(harness, action == XDP_DROP);
	ran.action = action;
	return ran;
}

void harness_repeat(struct harness *harness, const struct frame *frame, uint32_t times)
{
	(void)test_run(harness, frame->byte, frame->bytes, (struct many){}, times);
	harness_forget(harness);
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
