/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The parts of `sluice ip` that are about prefixes, and what its parts have in common. */
#ifndef SLUICE_CLI_IP_RULES_H
#define SLUICE_CLI_IP_RULES_H

#include <jansson.h>

#include "base/parse.h"
#include "cli/commands.h"
#include "cli/ip_show.h"

/* The first are by enum meter. */
enum ip_option {
	RULE_TTL = METERS,
	EXPLAIN_PORT,
	EXPLAIN_PROTOCOL,
	EXPLAIN_INTERFACE,
	EXPLAIN_SIZE
};

extern const struct option_row ip_options[];

/* Each returns the exit code, after a message if it failed. */
int ip_rule(struct cli *cli, enum prefix_action action, const struct prefix_key *key);
int ip_list(struct cli *cli);
int ip_no_configuration(void);

enum { RULE_LEFT_TEXT_MAX = DURATION_TEXT_MAX + 16 };

/* How long a rule has still to go: `, ends in 25 min`, or "" if it never ends; seconds, or null. */
void rule_left_text(const struct prefix_rule *rule, uint64_t now_ns, char text[RULE_LEFT_TEXT_MAX]);
json_t *rule_left_json(const struct prefix_rule *rule, uint64_t now_ns);

#endif
