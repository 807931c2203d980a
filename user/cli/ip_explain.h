/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SLUICE_CLI_IP_EXPLAIN_H
#define SLUICE_CLI_IP_EXPLAIN_H

#include "cli/commands.h"

/* sluice ip explain ADDRESS. Returns the exit code. */
int ip_explain(struct cli *cli, const char *text);

#endif
