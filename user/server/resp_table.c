/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A hash of the names, open addressing, at most a quarter full: a lookup is on the path of every
 * command. The hash needs no key, because clients can only look, not insert.
 */
#include "server/resp_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct resp_table {
	const struct resp_command **slots;
	size_t slot_mask;
	const struct resp_command **commands;
	size_t count;
};

static size_t hash(const char *name, size_t length)
{
	uint32_t value = 2166136261u;
	size_t i;

	/* The bit that tells the cases apart is set, whatever else it does to other characters. */
	for (i = 0; i < length; i++)
		value = (value ^ ((uint8_t)name[i] | 0x20u)) * 16777619u;
	return value ^ value >> 15;
}

static const struct resp_command **slot_of(const struct resp_table *table,
					   const struct resp_argument *name)
{
	size_t at = hash(name->data, name->length) & table->slot_mask;

	while (table->slots[at] && !resp_argument_is(name, table->slots[at]->name))
		at = (at + 1) & table->slot_mask;
	return &table->slots[at];
}

static int add(struct resp_table *table, const struct resp_command *commands, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		struct resp_argument name = { commands[i].name, strlen(commands[i].name) };
		const struct resp_command **slot = slot_of(table, &name);

		if (*slot)
			return -EEXIST;
		*slot = &commands[i];
		table->commands[table->count++] = &commands[i];
	}
	return 0;
}

int resp_table_new(const struct resp_command *first, size_t first_count,
		   const struct resp_command *second, size_t second_count, struct resp_table **out)
{
	size_t count = first_count + second_count, slots = 16;
	struct resp_table *table = calloc(1, sizeof(*table));
	int err = -ENOMEM;

	if (!table)
		return -ENOMEM;
	while (slots < 4 * count)
		slots *= 2;
	table->slots = calloc(slots, sizeof(*table->slots));
	table->slot_mask = slots - 1;
	table->commands = calloc(count + 1, sizeof(*table->commands));
	if (!table->slots || !table->commands)
		goto fail;
	err = add(table, first, first_count);
	if (!err)
		err = add(table, second, second_count);
	if (err)
		goto fail;
	*out = table;
	return 0;

fail:
	resp_table_free(table);
	return err;
}

void resp_table_free(struct resp_table *table)
{
	if (!table)
		return;
	free(table->slots);
	free(table->commands);
	free(table);
}

const struct resp_command *resp_table_find(const struct resp_table *table,
					   const struct resp_argument *name)
{
	return *slot_of(table, name);
}

size_t resp_table_count(const struct resp_table *table)
{
	return table->count;
}

const struct resp_command *resp_table_at(const struct resp_table *table, size_t index)
{
	return table->commands[index];
}
