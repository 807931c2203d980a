/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Asking the daemon, over its socket, for a command that then ends. */
#ifndef SLUICE_CLI_DAEMON_CLIENT_H
#define SLUICE_CLI_DAEMON_CLIENT_H

#include <stddef.h>

#include <jansson.h>

#include "cli/commands.h"

/*
 * Ask one thing. The reply as JSON: integers, strings, arrays, null; a simple string as a string.
 * NULL after a message on standard error, and then *code is what to exit with.
 */
json_t *daemon_ask(const struct cli *cli, const char *const *words, size_t count, int *code);

/* The same for a reply that is a text of JSON, read. */
json_t *daemon_ask_json(const struct cli *cli, const char *const *words, size_t count, int *code);

/* What the daemon counts, {name: number}, or NULL without a word if it cannot be reached. */
json_t *daemon_numbers(const struct cli *cli);

#endif
