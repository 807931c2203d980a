/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What stands in the way of a program on an interface, by the facts about it: the one table of
 * causes and remedies, for doctor, which asks before, and for attach, which asks after the kernel
 * has said no. Pure; thread safe.
 */
#ifndef SLUICE_DATAPLANE_OBSTACLES_H
#define SLUICE_DATAPLANE_OBSTACLES_H

#include "base/trouble.h"
#include "dataplane/facts.h"

enum outlook {
	OUTLOOK_WORKS,
	OUTLOOK_DOUBTFUL, /* nobody but the driver knows; *trouble says what it may not like */
	OUTLOOK_FAILS,
};

/* The largest frame of the interface's MTU that fits one buffer, at a driver that is not known. */
enum { SINGLE_BUFFER_MTU = 3498 };

/*
 * Whether a rung would hold. err 0: before it is tried, then the cause is what would be expected;
 * -errno: what the kernel said, then a cause is named in any case, and the answer is
 * OUTLOOK_FAILS. *trouble is filled unless it works.
 */
enum outlook obstacle_find(const struct interface_facts *facts, enum rung rung, int err,
			   struct trouble *trouble);

/* The XDP program that holds the interface and is not ours; NULL if there is none. *mode_word: what
 * `ip link` calls its mode. */
const struct program_facts *obstacle_program(const struct interface_facts *facts,
					     const char **mode_word);

/* "the XDP program NAME (id 7, tag …, native mode)". */
void obstacle_describe(const struct program_facts *program, const char *mode_word, char *out,
		       size_t size);

/* Whether its frames begin with an Ethernet header, without which no packet is understood. */
bool obstacle_is_ethernet(const struct interface_facts *facts);

const char *rung_words(enum rung rung);

#endif
