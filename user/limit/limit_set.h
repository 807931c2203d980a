/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A set of tenants' limits by their ids: immutable, counted, and cheap to have again with one entry
 * more or less. Private to limits.c.
 */
#ifndef SLUICE_LIMIT_LIMIT_SET_H
#define SLUICE_LIMIT_LIMIT_SET_H

#include "limit/limits.h"

struct limit_set;

/* Copies the entries. -EEXIST: a tenant stands there twice. -ENOMEM. One reference is the caller's.
 */
int limit_set_build(const struct limits_entry *entries, size_t count, struct limit_set **out);

struct limit_set *limit_set_hold(struct limit_set *set); /* returns it */
void limit_set_release(struct limit_set *set);           /* NULL is fine */

/* O(1). */
const struct limits_entry *limit_set_find(const struct limit_set *set, const char *tenant,
					  size_t length);
size_t limit_set_count(const struct limit_set *set);

/* Another set with this entry, in place of one of the same tenant. 0 or -ENOMEM. */
int limit_set_with(const struct limit_set *set, const struct limits_entry *entry,
		   struct limit_set **out);

/* Another set without it. 0, -ENOENT or -ENOMEM. */
int limit_set_without(const struct limit_set *set, const char *tenant, struct limit_set **out);

/* Call visit for each entry, in no order, until it returns other than 0, which is returned. */
int limit_set_each(const struct limit_set *set,
		   int (*visit)(const struct limits_entry *entry, void *data), void *data);

#endif
