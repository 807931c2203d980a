/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Random configurations that are certain about a set of frames, for test_swaps.c: how one is drawn,
 * what settings it is, and what it makes of each frame, worked out from the documents and not from
 * the programs. Thread safe once the frames are built.
 */
#ifndef SLUICE_TESTS_SWAP_PLAN_H
#define SLUICE_TESTS_SWAP_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/abi.h>

#include "limit/settings.h"
#include "packets.h"

enum {
	PLAN_ADDRESSES = 8,
	PLAN_PORTS = 4,
	PLAN_KINDS = 3, /* TCP that opens, TCP that goes on, UDP */
	PLAN_FRAMES = PLAN_ADDRESSES * PLAN_PORTS * PLAN_KINDS,
	PLAN_PREFIXES_MAX = 5,
	PLAN_IPV6_PREFIX = 64,
};

/* Those of refusals that plans give: no meter but bytes is ever too narrow, and no address sheds.
 */
#define PLAN_REASONS                                                            \
	(1u << REASON_DENY | 1u << REASON_IP_BYTES | 1u << REASON_IP_SET_FULL | \
	 1u << REASON_IP_TRIES | 1u << REASON_NODE_BYTES | 1u << REASON_SHED_NODE)

struct plan {
	bool protect_all;
	bool tcp[PLAN_PORTS], udp[PLAN_PORTS];
	bool dry_run, shed;
	enum when_full when_full;
	struct rate_limit ip[METERS], node[METERS];
	unsigned dry_ip, dry_node;
	struct setting_prefix prefixes[PLAN_PREFIXES_MAX];
	size_t prefix_count;
};

/* What is certain of a frame, in bits 1 << enum reason. */
struct certain {
	uint32_t counted; /* one, or none in a dry run that lets a refusal pass */
	uint32_t would;
	bool drops;
};

/* splitmix64: the same draws in every run. */
uint64_t plan_draw(uint64_t *seed, uint64_t below);
void plan_draw_one(struct plan *plan, uint64_t *seed);
/* prefixes: memory for the settings', of PLAN_PREFIXES_MAX. */
void plan_settings(const struct plan *plan, struct settings *settings,
		   struct setting_prefix *prefixes);

void plan_build_frames(void);
const struct frame *plan_frame(unsigned number);
unsigned plan_address_of(unsigned frame);
const union address *plan_address(unsigned number);
/* Whether all words of the address's set are taken, and by others. */
bool plan_is_crowded(unsigned address);

struct certain plan_model(const struct plan *plan, unsigned frame);

#endif
