/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One number for what requests are held to. The daemon charges its buckets, the kernel's programs
 * read them, and each has its limits from a file of its own accord: only if both numbers are the
 * same do they mean the same buckets.
 */
#ifndef SLUICE_LIMIT_HOOK_LIMITS_H
#define SLUICE_LIMIT_HOOK_LIMITS_H

#include <stdint.h>

#include <sluice/gcra.h>

#include "limit/settings.h"

/*
 * client (a BUCKET_WORD) and node (a BUCKET_WHOLE): as built from the settings; a capacity of 0:
 * none. From the settings are taken how much of an IPv6 address makes a client, and which of the
 * two only count. Never 0. Pure.
 */
uint64_t hook_limits_digest(const struct gcra_limit *client, const struct gcra_limit *node,
			    const struct settings *settings);

#endif
