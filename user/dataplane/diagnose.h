/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the facts mean: findings, each with why it matters and what to do. A failure is said only of
 * what would keep packets from being limited, or would cut off who asks. Pure; thread safe as far
 * as the lists are the caller's own.
 */
#ifndef SLUICE_DATAPLANE_DIAGNOSE_H
#define SLUICE_DATAPLANE_DIAGNOSE_H

#include "base/findings.h"
#include "dataplane/facts.h"
#include "limit/settings.h"

/* The kernel, the rights of this process, memory for so many bytes of maps, the clock. */
void diagnose_kernel(const struct kernel_facts *kernel, struct findings *findings);
void diagnose_process(const struct process_facts *process, const struct kernel_facts *kernel,
		      struct findings *findings);
void diagnose_memory(const struct process_facts *process, const struct kernel_facts *kernel,
		     uint64_t needed_bytes, struct findings *findings);
void diagnose_clock(const struct kernel_facts *kernel, struct findings *findings);

/* Whether the memory group leaves room for so many bytes. */
bool diagnose_has_room(const struct process_facts *process, uint64_t needed_bytes);

/* Whether pins can be made, and what lies there. */
void diagnose_pins(const struct pins_facts *pins, struct findings *findings);

/* How an interface is to be attached; see struct setting_interface. */
struct wanted_mode {
	enum attach_mode mode;
	enum attach_mode require;
};

/*
 * An interface, on a machine of so many CPUs: which rung it would get in this mode, and what else
 * to know of it. Returns the rung, RUNG_NONE if there is none.
 */
enum rung diagnose_interface(const struct interface_facts *facts, const struct kernel_facts *kernel,
			     const struct wanted_mode *wanted, unsigned cpus,
			     struct findings *findings);

/* The part of it that is about programs of others, and offloads and queues. */
void diagnose_programs(const struct interface_facts *facts, struct findings *findings);
void diagnose_driver(const struct interface_facts *facts, enum rung rung, unsigned cpus,
		     struct findings *findings);

/* Whom a configuration would refuse or limit that must not be, and how many addresses it holds. */
void diagnose_settings(const struct settings *settings, const struct network_facts *network,
		       const struct session_facts *session, struct findings *findings);

#endif
