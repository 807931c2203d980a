/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Looks at this host and writes down what is so; what it means is said by diagnose.h. Nothing here
 * changes anything: programs and maps that are made to try something go with the process, what has
 * to be attached to try it is attached in a network namespace that a child makes and takes along,
 * and nothing is pinned. What may not be looked at is left unknown. Not thread safe.
 */
#ifndef SLUICE_DATAPLANE_PROBE_H
#define SLUICE_DATAPLANE_PROBE_H

#include "dataplane/facts.h"
#include "dataplane/pins.h"

/* Tries each feature. has_room: whether the maps of all programs may be made, too. */
void probe_kernel(bool has_room, struct kernel_facts *out);

/* What the maps will need, as far as it is known beforehand. */
uint64_t probe_map_bytes(void);

void probe_process(struct process_facts *out);

void probe_pins(const struct pins *pins, struct pins_facts *out);

/* An interface of this network namespace. pins tells what is ours. */
void probe_interface(const char *name, const struct pins_facts *pins, struct interface_facts *out);

void probe_network(struct network_facts *out);

/* The session that this process is in, from $SSH_CONNECTION's text; NULL is fine. */
void probe_session(const char *ssh_connection, struct session_facts *out);

#endif
