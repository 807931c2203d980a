/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a configuration amounts to: for each limit what is really enforced and the most it can let
 * through, how large a flood the table of buckets bears, and what an operator may not have meant.
 */
#ifndef SLUICE_LIMIT_SETTINGS_REPORT_H
#define SLUICE_LIMIT_SETTINGS_REPORT_H

#include <jansson.h>

#include "limit/settings.h"

/*
 * {limits: [{scope, prefix, meter, rate, enforced_rate, burst, most_in_1s, most_in_60s,
 * longest_debt_s}], table: {words, filled_by_addresses_per_s}, warnings: [{key, message}]}.
 * prefix is null but for scope "prefix"; filled_by_addresses_per_s is null without per_ip limits.
 * The caller owns what is returned; NULL: no memory. settings are what settings_load() accepted.
 */
json_t *settings_report_json(const struct settings *settings);

/* The same as aligned text for people. */
void settings_report_print(const struct settings *settings, FILE *out);

#endif
