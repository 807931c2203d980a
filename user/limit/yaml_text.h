/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The characters of a configuration file, before anyone looks for YAML in them: whether they are
 * text at all, and on which line and column one stands.
 */
#ifndef SLUICE_LIMIT_YAML_TEXT_H
#define SLUICE_LIMIT_YAML_TEXT_H

#include <stddef.h>

/* Counted from 1, columns in characters. 0: no place. */
struct yaml_place {
	unsigned line;
	unsigned column;
};

/* What is wrong with the first character that text may not contain, and where; NULL if none is. */
const char *yaml_text_problem(const char *text, size_t length, size_t *out_offset);

/* The place of a byte. offset may be the length. */
struct yaml_place yaml_text_place(const char *text, size_t offset);

#endif
