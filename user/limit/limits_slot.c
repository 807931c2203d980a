/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where the limits in force are kept. The argument why a reader never gets a snapshot that is being
 * freed stands at the top of limits.c.
 */
#include <stdatomic.h>

#include "limit/limits.h"

void limits_slot_init(struct limits_slot *slot, struct limits *limits)
{
	(void)pthread_mutex_init(&slot->lock, NULL);
	atomic_init(&slot->current, limits);
}

void limits_slot_done(struct limits_slot *slot)
{
	limits_release(atomic_load(&slot->current));
	(void)pthread_mutex_destroy(&slot->lock);
}

void limits_slot_set(struct limits_slot *slot, struct limits *limits)
{
	struct limits *old;

	(void)pthread_mutex_lock(&slot->lock);
	old = atomic_exchange_explicit(&slot->current, limits, memory_order_acq_rel);
	(void)pthread_mutex_unlock(&slot->lock);
	/* Freeing a hundred thousand entries need not keep readers waiting. */
	limits_release(old);
}

struct limits *limits_slot_hold(struct limits_slot *slot)
{
	struct limits *held;

	(void)pthread_mutex_lock(&slot->lock);
	held = limits_hold(atomic_load_explicit(&slot->current, memory_order_acquire));
	(void)pthread_mutex_unlock(&slot->lock);
	return held;
}

bool limits_slot_refresh(struct limits_slot *slot, struct limits **mine)
{
	struct limits *old = *mine;

	if (atomic_load_explicit(&slot->current, memory_order_acquire) == old)
		return false;
	*mine = limits_slot_hold(slot);
	limits_release(old);
	return *mine != old;
}
