/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An address's state in words and in JSON. */
#ifndef SLUICE_CLI_IP_SHOW_H
#define SLUICE_CLI_IP_SHOW_H

#include <jansson.h>

#include "dataplane/address.h"
#include "dataplane/pins.h"

const char *action_name(enum prefix_action action);

void address_print(const struct pins *pins, const union address *address,
		   const struct address_state *state, uint64_t now_ns);

json_t *address_json(const struct pins *pins, const union address *address,
		     const struct address_state *state, uint64_t now_ns);

#endif
