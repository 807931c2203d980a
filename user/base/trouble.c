/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fills struct trouble; what does not fit is cut off, since this is for reading. */
#include "base/trouble.h"

#include <stdarg.h>
#include <stdio.h>

int trouble_set(struct trouble *trouble, int err, const char *cause, ...)
{
	va_list arguments;

	va_start(arguments, cause);
	(void)vsnprintf(trouble->cause, sizeof(trouble->cause), cause, arguments);
	va_end(arguments);
	trouble->remedy[0] = '\0';
	return err;
}

void trouble_advise(struct trouble *trouble, const char *remedy, ...)
{
	va_list arguments;

	va_start(arguments, remedy);
	(void)vsnprintf(trouble->remedy, sizeof(trouble->remedy), remedy, arguments);
	va_end(arguments);
}
