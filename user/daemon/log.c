/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Each line is one write, so that lines of several threads do not mix. */
#include "daemon/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 1024 };

void log_line(enum log_level level, const char *format, ...)
{
	char line[LINE_MAX_BYTES];
	va_list arguments;
	int length = 0;

	/* Only journald knows what a number in front means. */
	if (getenv("JOURNAL_STREAM"))
		length = snprintf(line, sizeof(line), "<%d>", level);
	length += snprintf(line + length, sizeof(line) - (size_t)length, "sluiced: ");
	va_start(arguments, format);
	length += vsnprintf(line + length, sizeof(line) - (size_t)length, format, arguments);
	va_end(arguments);
	if (length >= LINE_MAX_BYTES - 1)
		length = LINE_MAX_BYTES - 2;
	for (int at = 0; at < length; at++)
		if (line[at] == '\n')
			line[at] = ' ';
	line[length++] = '\n';
	(void)!write(STDERR_FILENO, line, (size_t)length);
}
