/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The commands that show limits and change them, for the table in resp_commands.c. */
#ifndef SLUICE_SERVER_RESP_ADMIN_H
#define SLUICE_SERVER_RESP_ADMIN_H

#include "engine/engine.h"
#include "server/resp_command.h"

void resp_tenant_effective(struct resp_call *call);
void resp_tenant_list(struct resp_call *call);
void resp_override_set(struct resp_call *call);
void resp_override_get(struct resp_call *call);
void resp_override_del(struct resp_call *call);
void resp_override_list(struct resp_call *call);
void resp_audit_list(struct resp_call *call);
void resp_reload(struct resp_call *call);

/* Of resp_commands.c: reading arguments. The last one writes the error itself. */
struct engine_reader *resp_reader(struct resp_call *call);
struct tenant_name resp_tenant(struct resp_call *call); /* argument 1 */
void resp_refuse_syntax(struct resp_call *call, const char *what);
void resp_refuse_tenant(struct resp_call *call);
bool resp_integer_in(struct resp_call *call, size_t index, int64_t least, int64_t most,
		     int64_t *out);

#endif
