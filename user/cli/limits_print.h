/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Limits as the kernel holds them, in words and in JSON. */
#ifndef SLUICE_CLI_LIMITS_PRINT_H
#define SLUICE_CLI_LIMITS_PRINT_H

#include <stdint.h>

#include <jansson.h>

#include <sluice/abi.h>

enum { LIMIT_TEXT_MAX = 80 };

/* `5000/s, burst 10000`, or `none`. */
void limit_text(const struct gcra_limit *limit, enum meter meter, uint64_t held_back,
		char text[LIMIT_TEXT_MAX]);

/* {rate, burst} as enforced, or null. held_back: what the slices took off the burst. */
json_t *limit_json(const struct gcra_limit *limit, uint64_t held_back);

#endif
