/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the engine answers, as commands of the RESP server: arguments to questions, decisions to
 * replies. docs/protocol.md has each of them. */
#ifndef SLUICE_SERVER_RESP_COMMANDS_H
#define SLUICE_SERVER_RESP_COMMANDS_H

#include <stdio.h>

#include "base/trouble.h"
#include "engine/engine.h"
#include "server/resp_command.h"
#include "server/resp_server.h"

/* The context that the server has to be given. */
struct resp_commands {
	struct engine *engine;
	struct engine_reader *readers[RESP_WORKERS_MAX];    /* of each worker */
	int (*reload)(void *data, struct trouble *trouble); /* read the configuration anew */
	void *data;
};

/* Readers for so many workers. 0 or -ENOMEM; then resp_commands_done() as well. */
int resp_commands_init(struct resp_commands *commands, struct engine *engine, unsigned workers);
void resp_commands_done(struct resp_commands *commands);

/* The table for the server's options. */
const struct resp_command *resp_commands_table(size_t *count);

/* For the server's callbacks, with the context above. */
void resp_commands_closed(void *context, uint64_t connection);
void resp_commands_info(void *context, const char *section, FILE *out);

#endif
