/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Writes configurations; see apply.h for the order of things and why. */
#include "dataplane/apply.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include <linux/membarrier.h>

#include "base/clock.h"
#include "dataplane/prefixes.h"
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
	uint32_t prefix_flags = 0;

	if (!err)
		err = rules_slot(settings, (unsigned)cpus, generation, &built);
	if (err)
		return trouble_set(trouble, err, "the limits cannot be built: %s", strerror(-err));
	write_protect(maps, &settings->protect, !active);
	err = prefixes_load(maps, settings, clock_monotonic_ns(), &prefix_flags);
	if (err)
		return trouble_set(trouble, err, "the prefix lists cannot be loaded: %s",
				   strerror(-err));
	built.flags |= prefix_flags;
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
