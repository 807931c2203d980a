/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* All maps. What is in them is said in sluice/abi.h; who may write each stands here. */
#ifndef SLUICE_MAPS_H
#define SLUICE_MAPS_H

#include <sluice/abi.h>
#include <sluice/slot.h>

#include <bpf/bpf_helpers.h>

/* Written by bpf/table.h (charges) and bpf/sweep.h (clears passed words); userspace clears words. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, IP_SETS);
	__type(key, __u32);
	__type(value, struct bucket_set);
} ip_buckets SEC(".maps");

/* Written by bpf/table.h, each CPU its own. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ip_refusals);
} ip_refusals SEC(".maps");

/* Written by bpf/police.h and bpf/sweep.h. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct node_buckets);
} node_buckets SEC(".maps");

/* Written by bpf/police.h, each CPU its own. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct node_slices);
} node_slices SEC(".maps");

/* Written by bpf/report.h, each CPU its own. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, REASONS);
	/* enum reason: the kernel takes BTF for an array only if its key is an integer */
	__type(key, __u32);
	__type(value, struct counter);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, INTERFACE_COUNTERS);
	__type(key, __u32);
	__type(value, struct interface_counter);
} interface_counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, NOTES);
	__type(key, __u32); /* enum note */
	__type(value, __u64);
} notes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct report_state);
} report_state SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, OFFENDERS_MAX);
	__type(key, union address);
	__type(value, struct offender);
} offenders SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, EVENTS_BYTES);
} events SEC(".maps");

/* Written by the daemon only; bpf/shed.h looks at them. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, IP_SETS);
	__type(key, __u32);
	__type(value, struct bucket_set);
} hook_buckets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct hooks);
} hooks SEC(".maps");

/* Written by userspace only, from here on down. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, INTERFACES_ATTACHED_MAX);
	__type(key, __u32); /* ifindex */
	__type(value, struct interface_record);
} interfaces SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct config);
} config SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, PROTECT_WORDS);
	__type(key, __u32);
	__type(value, struct protected_ports);
} protect SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 2 * PREFIX_HINT_WORDS);
	__type(key, __u32);
	__type(value, __u64);
} prefix_hints SEC(".maps");

struct prefix_trie {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, PREFIXES_MAX);
	__type(key, struct prefix_key);
	__type(value, struct prefix_entry);
};

struct prefix_trie prefixes_0 SEC(".maps");
struct prefix_trie prefixes_1 SEC(".maps");

/*
 * Written by the daemon, whose debts outlive it here; no program looks at it. Made by the daemon
 * alone, with as many slots as are configured, and pinned in a folder of its own.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bucket_slot);
} tenants SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct siphash_key);
} tenants_secret SEC(".maps");

/* Written by bpf/sweep.h only. */
struct sweeper {
	struct bpf_timer timer;
	__u64 next_set;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sweeper);
} sweeper SEC(".maps");

#endif
