/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One client address as the kernel sees it: the rule that decides, and the state of its buckets. */
#ifndef SLUICE_DATAPLANE_ADDRESS_H
#define SLUICE_DATAPLANE_ADDRESS_H

#include "dataplane/maps.h"

struct address_meter {
	struct gcra_limit limit; /* capacity 0: none */
	bool is_dry;             /* it only counts what it would refuse */
	bool has_word;           /* else its bucket is full, and takes no place */
	bool is_claimed;         /* a CPU is just taking the word */
	uint32_t index;          /* of the word in the set */
	uint64_t word;
	double debt;            /* tokens */
	uint64_t remaining;     /* tokens that would be admitted now in one packet */
	uint64_t full_after_ns; /* until the debt is repaid */
};

struct address_state {
	union address key; /* the address its buckets are kept under */
	struct place place;
	struct rule_found found; /* what the lists say; rule.action PREFIX_NONE: nothing */
	bool set_is_full;        /* all eight words in debt to others */
	struct address_meter meters[METERS];
};

/* Needs a configuration in force: -ENOENT. */
int address_look(const struct maps *maps, const union address *address, uint64_t now_ns,
		 struct address_state *out);

/* Forget its debts. *words: how many there were. Wants the lock. */
int address_reset(struct maps *maps, const union address *address, unsigned *words);

#endif
