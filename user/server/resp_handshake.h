/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inside the RESP server: the commands with which Redis clients greet, look around and take leave.
 * They answer as Redis does, word for word, because clients decide by these words. There is one
 * database, no key space and no configuration to be had here.
 */
#ifndef SLUICE_SERVER_RESP_HANDSHAKE_H
#define SLUICE_SERVER_RESP_HANDSHAKE_H

#include "server/resp_connection.h"

/* The version of Redis whose handshake this is. */
#define RESP_REDIS_VERSION "7.2.0"

extern const struct resp_command resp_handshake[];
extern const size_t resp_handshake_count;

/*
 * For commands that are families: the row whose name is argument 1. Its counts of arguments are
 * without both names. family: upper case, as in `Try CLIENT HELP`. HELP itself is made of the rows.
 */
void resp_run_subcommand(struct resp_call *call, const char *family,
			 const struct resp_command *rows, size_t count);

/* Printable and without spaces, as names of clients must be. */
bool resp_is_client_text(const struct resp_argument *text);

/* resp_client.c */
void resp_client_run(struct resp_call *call);
/* Whether it can be a name: 0, or -EINVAL and an error has been written. */
int resp_client_check_name(struct resp_call *call, const struct resp_argument *name);
/* One that can be. */
void resp_client_set_name(struct resp_call *call, const struct resp_argument *name);

/* resp_about.c */
void resp_command_run(struct resp_call *call);
void resp_config_run(struct resp_call *call);
void resp_info_run(struct resp_call *call);

#endif
