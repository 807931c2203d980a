/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Writes configurations; see apply.h for the order of things and why. */
#include "dataplane/apply.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <linux/membarrier.h>

#include "base/clock.h"
#include "dataplane/rules.h"

enum {
	LAG_TICKS = 2, /* one for the coarse clock, one for the time from reading it to using it */
	GRACE_NS = 200000000,
};

int apply_found(struct maps *maps)
{
	struct siphash_key secret;

	if (getrandom(&secret, sizeof(secret), 0) != sizeof(secret))
		return -errno;
	maps->config->secret = secret;
	maps->config->bucket_format = SLUICE_BUCKET_FORMAT;
	maps->config->coarse_lag_ns = LAG_TICKS * clock_tick_ns();
	__atomic_store_n(&maps->config->abi_version, SLUICE_ABI_VERSION, __ATOMIC_RELEASE);
	return 0;
}

static int empty_trie(int fd)
{
	struct prefix_key key;

	while (!bpf_map_get_next_key(fd, NULL, &key))
		if (bpf_map_delete_elem(fd, &key))
			return -errno;
	return errno == ENOENT ? 0 : -errno;
}

static int add_configured(int fd, const struct settings *settings)
{
	for (size_t at = 0; at < settings->prefix_count; at++) {
		const struct setting_prefix *setting = &settings->prefixes[at];
		struct prefix_key key = prefix_key_of(&setting->address, setting->bits);
		struct prefix_entry entry = {};
		int err = rules_prefix(setting, &entry.configured);

		if (err)
			return err;
		if (bpf_map_update_elem(fd, &key, &entry, BPF_ANY))
			return -errno;
	}
	return 0;
}

struct carry {
	int fd;
	const struct settings *settings;
	struct config_slot *slot;
};

static const struct setting_prefix *find_setting(const struct settings *settings,
						 const struct prefix_key *key)
{
	for (size_t at = 0; at < settings->prefix_count; at++)
		if (settings->prefixes[at].bits == key->bits &&
		    !memcmp(&settings->prefixes[at].address, key->byte, sizeof(key->byte)))
			return &settings->prefixes[at];
	return NULL;
}

/* What was said by hand stands beside what the configuration says about the same prefix. */
static int carry_over(const struct prefix_key *key, const struct prefix_entry *old, void *data)
{
	struct carry *carry = data;
	struct prefix_entry entry = { .by_hand = old->by_hand };
	const struct setting_prefix *setting;

	if (old->by_hand.action == PREFIX_NONE)
		return 0;
	setting = find_setting(carry->settings, key);
	if (setting && rules_prefix(setting, &entry.configured))
		return -EINVAL;
	if (bpf_map_update_elem(carry->fd, key, &entry, BPF_ANY))
		return -errno;
	carry->slot->flags |= CONFIG_HAS_PREFIXES;
	return 0;
}

/* Only the idle slot's masks change; programs read the other one's meanwhile. */
static void write_protect(struct maps *maps, const struct setting_protect *protect, unsigned slot)
{
	for (int word = 0; word < PROTECT_WORDS; word++) {
		__atomic_store_n(&maps->protect[word].tcp[slot], protect->tcp[word],
				 __ATOMIC_RELAXED);
		__atomic_store_n(&maps->protect[word].udp[slot], protect->udp[word],
				 __ATOMIC_RELAXED);
	}
}

static int write_prefixes(struct maps *maps, const struct settings *settings, unsigned slot,
			  struct config_slot *built)
{
	int fd = maps->fd[slot ? MAP_PREFIXES_1 : MAP_PREFIXES_0];
	struct carry carry = { .fd = fd, .settings = settings, .slot = built };
	int err = empty_trie(fd);

	if (!err)
		err = add_configured(fd, settings);
	if (!err)
		err = maps_each_prefix(maps, !slot, carry_over, &carry);
	return err;
}

/* One that neither slot has: slices taken under a configuration that was withdrawn must not count. */
static uint64_t next_generation(const struct config *config)
{
	uint64_t one = config->slot[0].generation, other = config->slot[1].generation;

	return (one > other ? one : other) + 1;
}

int apply_prepare(struct maps *maps, const struct settings *settings, struct trouble *trouble)
{
	unsigned active = maps->config->active & 1;
	uint64_t generation = next_generation(maps->config);
	struct config_slot built;
	int cpus = libbpf_num_possible_cpus();
	int err = cpus < 0 ? cpus : 0;

	if (!err)
		err = rules_slot(settings, (unsigned)cpus, generation, &built);
	if (err)
		return trouble_set(trouble, err, "the limits cannot be built: %s", strerror(-err));
	write_protect(maps, &settings->protect, !active);
	err = write_prefixes(maps, settings, !active, &built);
	if (err)
		return trouble_set(trouble, err, "the prefix lists cannot be loaded: %s",
				   strerror(-err));
	maps->config->slot[!active] = built;
	return 0;
}

/*
 * Programs run within an RCU read-side section, and MEMBARRIER_CMD_GLOBAL waits for all that are
 * under way. Where it is not to be had (nohz_full), a packet's time many times over must do.
 */
static void wait_for_programs(void)
{
	const struct timespec grace = { .tv_nsec = GRACE_NS };

	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		(void)nanosleep(&grace, NULL);
}

void apply_turn_over(struct maps *maps)
{
	__atomic_store_n(&maps->config->active, !(maps->config->active & 1), __ATOMIC_SEQ_CST);
	wait_for_programs();
}
