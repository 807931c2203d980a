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
 * {limits: [{scope, prefix, tenant, meter, rate, enforced_rate, burst, most_in_1s, most_in_60s,
 * longest_debt_s}], unlimited: [TENANT], table: {words, filled_by_addresses_per_s}, warnings:
 * [{key, message}]}. scope: per_ip, node, prefix, source, default, tenant; prefix and tenant are
 * null but for theirs. most_in_ takes bodies for as large as max_body_bytes allows, and for at most
 * a burst where that is not set. filled_by_addresses_per_s is null without per_ip limits. The
 * caller owns what is returned; NULL: no memory. settings are what settings_load() accepted.
 */
json_t *settings_report_json(const struct settings *settings);

/* The same as aligned text for people. */
void settings_report_print(const struct settings *settings, FILE *out);

#endif
