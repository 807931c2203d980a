/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The commands of a RESP server by name. Immutable once made, therefore thread safe. */
#ifndef SLUICE_SERVER_RESP_TABLE_H
#define SLUICE_SERVER_RESP_TABLE_H

#include "server/resp_command.h"

struct resp_table;

/* Both lists, which must live as long. -EEXIST: one name stands twice; -ENOMEM. */
int resp_table_new(const struct resp_command *first, size_t first_count,
		   const struct resp_command *second, size_t second_count, struct resp_table **out);
void resp_table_free(struct resp_table *table); /* NULL is fine */

/* In any case; NULL: there is no such command. */
const struct resp_command *resp_table_find(const struct resp_table *table,
					   const struct resp_argument *name);

size_t resp_table_count(const struct resp_table *table);
/* In the order of the lists. */
const struct resp_command *resp_table_at(const struct resp_table *table, size_t index);

#endif
