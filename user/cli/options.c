/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Builds getopt_long's tables from option rows, and the help text. */
#include "cli/options.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

enum { FIRST_VALUE = 256 }; /* beyond any letter */

int options_parse(const struct option_row *rows, int argc, char **argv, int stop_early,
		  const char **values)
{
	struct option longs[OPTIONS_MAX + 1] = {};
	char letters[2 * OPTIONS_MAX + 2] = "";
	size_t used = 0;
	int count, chosen;

	if (stop_early)
		letters[used++] = '+';
	for (count = 0; rows[count].name && count < OPTIONS_MAX; count++) {
		longs[count].name = rows[count].name;
		longs[count].has_arg = rows[count].argument ? required_argument : no_argument;
		longs[count].val = FIRST_VALUE + count;
		if (!rows[count].letter)
			continue;
		letters[used++] = rows[count].letter;
		if (rows[count].argument)
			letters[used++] = ':';
	}
	optind = 0;
	while ((chosen = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		int row = chosen - FIRST_VALUE;

		if (chosen == '?')
			return -EINVAL;
		for (int at = 0; row < 0 && at < count; at++)
			if (rows[at].letter == chosen)
				values[at] = optarg ? optarg : "";
		if (row >= 0)
			values[row] = optarg ? optarg : "";
	}
	return optind;
}

void options_print(const struct option_row *rows, FILE *out)
{
	for (; rows->name; rows++) {
		char left[40];

		(void)snprintf(left, sizeof(left), "--%s%s%s", rows->name,
			       rows->argument ? " " : "", rows->argument ? rows->argument : "");
		if (rows->letter)
			fprintf(out, "  -%c, %-26s %s\n", rows->letter, left, rows->help);
		else
			fprintf(out, "      %-26s %s\n", left, rows->help);
	}
}
