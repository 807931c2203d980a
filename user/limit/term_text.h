/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * JSON values as the admin API's messages show them, which is Elixir's notation, because that is
 * what clients of the first edition match against: "fast", nil, 0, 1.5, 1.0e3, [1, 2], %{"a" => 1}.
 * Pure functions; thread safe.
 */
#ifndef SLUICE_LIMIT_TERM_TEXT_H
#define SLUICE_LIMIT_TERM_TEXT_H

#include <jansson.h>

enum { TERM_TEXT_MAX = 96 };

/*
 * What was sent, fit to be shown: control characters are escaped, and what is longer than out ends
 * in
 * "...", at a whole character. value NULL is nil.
 */
void term_format(const json_t *value, char out[TERM_TEXT_MAX]);

/* The same for a name: "per". */
void term_format_string(const char *text, size_t length, char out[TERM_TEXT_MAX]);

#endif
