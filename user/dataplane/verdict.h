/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Foresees what the programs would say of a packet now, and why, without charging it: reads what
 * they read, and takes the same steps on a copy (bpf/classify.h, police.h, shed.h, table.h,
 * node.h). A test compares the two on random packets and states. Reading needs no lock. Not thread
 * safe.
 */
#ifndef SLUICE_DATAPLANE_VERDICT_H
#define SLUICE_DATAPLANE_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/maps.h"

struct verdict_question {
	union address source;
	uint8_t protocol; /* IPPROTO_*, after extension headers, and none of those */
	uint16_t port;    /* it goes to, with TCP and UDP */
	bool opens;       /* a connection: a TCP SYN without ACK, a QUIC Initial */
	uint32_t bytes;   /* from the IP header on */
	uint64_t now_ns;
	uint64_t coarse_ns; /* the coarse clock as it stands; now_ns will do for people */
	int cpu;            /* whose slices of the node's buckets count; -1: those of any */
};

struct verdict {
	enum reason reason;
	bool is_refused; /* false also of a refusal under dry_run */
	uint32_t would;  /* bits 1 << enum reason: refusals of meters that are in a dry run */
	struct rule_found found; /* what the lists say; rule.action PREFIX_NONE: nothing */
	bool is_set_full;        /* a meter that was asked has no word and finds none: when_full */
	/* Until the bucket that refuses would admit the packet, if nobody else charges it.
	 * UINT64_MAX: never, it is more than a full bucket holds. 0: no bucket refuses. */
	uint64_t wait_ns;
	/* How many CPUs the node's limits were asked for, and how many of them admit it. If they
	 * are not of one mind, some hold enough of the node's tokens, unspent, and the reason is of
	 * one that does not. 0: the node's limits were not asked. */
	unsigned cpus;
	unsigned cpus_admitting;
};

/* -ENOENT: no configuration is in force. */
int verdict_foresee(const struct maps *maps, const struct verdict_question *question,
		    struct verdict *out);

/* Whether `protect` names the port, of TCP or UDP; `all` aside. */
bool verdict_names_port(const struct maps *maps, uint8_t protocol, uint16_t port);

#endif
