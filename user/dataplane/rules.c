/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Turns settings into configuration slots: the flags that save a program its look-ups, the limits in
 * ticks, and the node's slices.
 */
#include "dataplane/rules.h"

#include <string.h>

#include "limit/hook_limits.h"

enum {
	SLICE_SHARE = 8, /* all slices together hold at most this part of the burst */
	SLICE_PACKETS_MAX = 64,
	SLICE_BYTES_MAX = 256 * 1024,
	SLICE_PACKETS_MIN = 2, /* below it, charging directly is as good */
	SLICE_BYTES_MIN = 8 * 1024,
};

static enum bucket_kind kind_of(enum meter meter, bool whole)
{
	if (meter == METER_BYTES)
		return whole ? BUCKET_WHOLE_BYTES : BUCKET_WORD_BYTES;
	return whole ? BUCKET_WHOLE : BUCKET_WORD;
}

static int build_limits(const struct rate_limit *wanted, struct gcra_limit *limits)
{
	uint64_t longest;
	int err;

	for (int meter = 0; meter < METERS; meter++) {
		if (!wanted[meter].burst)
			continue;
		err = limit_build(&wanted[meter], kind_of(meter, false), &limits[meter], &longest);
		if (err)
			return err;
	}
	return 0;
}

static uint64_t slice_tokens(enum meter meter, uint64_t burst, unsigned cpus)
{
	uint64_t most = meter == METER_BYTES ? SLICE_BYTES_MAX : SLICE_PACKETS_MAX;
	uint64_t least = meter == METER_BYTES ? SLICE_BYTES_MIN : SLICE_PACKETS_MIN;
	uint64_t tokens = burst / SLICE_SHARE / cpus;

	if (tokens > most)
		tokens = most;
	return tokens < least ? 0 : tokens;
}

/* See bpf/node.h (2): what all CPUs may hold is taken off the bucket's own burst. */
static int build_node(const struct rate_limit *wanted, enum meter meter, unsigned cpus,
		      struct node_limit *node)
{
	struct rate_limit shared = *wanted;
	uint64_t longest;

	if (!wanted->burst)
		return 0;
	node->slice = slice_tokens(meter, wanted->burst, cpus);
	shared.burst -= node->slice * cpus;
	return limit_build(&shared, kind_of(meter, true), &node->limit, &longest);
}

static bool has_limits(const struct rate_limit *wanted)
{
	for (int meter = 0; meter < METERS; meter++)
		if (wanted[meter].burst)
			return true;
	return false;
}

static bool has_ports(const uint64_t *words)
{
	for (int word = 0; word < PROTECT_WORDS; word++)
		if (words[word])
			return true;
	return false;
}

static uint32_t flags_of(const struct settings *settings)
{
	uint32_t flags = 0;

	if (settings->dry_run)
		flags |= CONFIG_DRY_RUN;
	if (settings->protect.all)
		flags |= CONFIG_PROTECT_ALL;
	if (settings->protect.icmp)
		flags |= CONFIG_PROTECT_ICMP;
	if (has_ports(settings->protect.tcp))
		flags |= CONFIG_PROTECT_TCP;
	if (has_ports(settings->protect.udp))
		flags |= CONFIG_PROTECT_UDP;
	if (settings->prefix_count)
		flags |= CONFIG_HAS_PREFIXES;
	if (has_limits(settings->ip))
		flags |= CONFIG_LIMITS_IP;
	if (has_limits(settings->node))
		flags |= CONFIG_LIMITS_NODE;
	if (settings->shed && (settings->ip_hooks.burst || settings->node_hooks.burst))
		flags |= CONFIG_SHED;
	return flags;
}

int rules_prefix(const struct setting_prefix *setting, struct prefix_rule *rule)
{
	struct prefix_rule built = {
		.action = setting->action,
		.dry = (uint16_t)setting->dry,
	};
	int err = setting->action == PREFIX_LIMIT ? build_limits(setting->limit, built.limit) : 0;

	if (err)
		return err;
	*rule = built;
	return 0;
}

int rules_slot(const struct settings *settings, unsigned cpus, uint64_t generation,
	       struct config_slot *slot)
{
	struct config_slot built = {
		.generation = generation,
		.flags = flags_of(settings),
		.when_full = settings->when_full,
		.ipv6_prefix = settings->ipv6_prefix,
		.dry_ip = (uint16_t)settings->dry_ip,
		.dry_node = (uint16_t)settings->dry_node,
	};
	uint64_t longest;
	int err = build_limits(settings->ip, built.ip);

	for (int meter = 0; !err && meter < METERS; meter++)
		err = build_node(&settings->node[meter], meter, cpus, &built.node[meter]);
	if (!err && settings->ip_hooks.burst)
		err = limit_build(&settings->ip_hooks, BUCKET_WORD, &built.ip_hooks, &longest);
	if (!err && settings->node_hooks.burst)
		err = limit_build(&settings->node_hooks, BUCKET_WHOLE, &built.node_hooks, &longest);
	if (err)
		return err;
	built.hooks_digest = hook_limits_digest(&built.ip_hooks, &built.node_hooks, settings);
	*slot = built;
	return 0;
}
