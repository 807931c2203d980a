/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From settings to what the programs read. Pure functions of their arguments; thread safe. */
#ifndef SLUICE_DATAPLANE_RULES_H
#define SLUICE_DATAPLANE_RULES_H

#include <sluice/abi.h>

#include "limit/settings.h"

/*
 * Fill *slot from settings that settings_load() has accepted. cpus: how many CPUs the kernel may
 * ever have (libbpf_num_possible_cpus()), of which each may hold a slice of the node's burst.
 * -ERANGE, -EOVERFLOW as limit_build(); then *slot is untouched.
 */
int rules_slot(const struct settings *settings, unsigned cpus, uint64_t generation,
	       struct config_slot *slot);

/* The rule for one prefix. Errors as above. */
int rules_prefix(const struct setting_prefix *setting, struct prefix_rule *rule);

#endif
