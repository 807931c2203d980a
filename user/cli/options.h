/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Option tables: what getopt_long reads and what --help prints come from the same rows. */
#ifndef SLUICE_CLI_OPTIONS_H
#define SLUICE_CLI_OPTIONS_H

#include <stdio.h>

enum { OPTIONS_MAX = 24 };

struct option_row {
	const char *name;
	char letter;          /* 0: none */
	const char *argument; /* NULL: takes none */
	const char *help;
};

/*
 * Read options until the first that is none. values[i] becomes the argument of rows[i], or "" if it
 * takes none; what is not given stays as it is. stop_early: at the first word, as before a command;
 * else words and options may be mixed. Returns the index of the first word in argv, which is
 * reordered, or -EINVAL after a message on standard error.
 */
int options_parse(const struct option_row *rows, int argc, char **argv, int stop_early,
		  const char **values);

void options_print(const struct option_row *rows, FILE *out);

#endif
