/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An address's state in words and in JSON. */
#ifndef SLUICE_CLI_IP_SHOW_H
#define SLUICE_CLI_IP_SHOW_H

#include <jansson.h>

#include "base/parse.h"
#include "dataplane/address.h"
#include "dataplane/pins.h"

const char *action_name(enum prefix_action action);

/* The prefix as it was given: the address with the bits beyond its length cleared. */
void rule_prefix_text(const union address *address, uint32_t bits, char text[PREFIX_TEXT_MAX]);

/* The line that says which rule decides. */
void address_print_rule(const union address *address, const struct address_state *state,
			uint64_t now_ns);

void address_print(const struct pins *pins, const union address *address,
		   const struct address_state *state, uint64_t now_ns);

json_t *address_json(const struct pins *pins, const union address *address,
		     const struct address_state *state, uint64_t now_ns);

#endif
