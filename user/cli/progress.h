/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Says on a terminal what is under way, if it takes more than a second. Not thread safe. */
#ifndef SLUICE_CLI_PROGRESS_H
#define SLUICE_CLI_PROGRESS_H

/* `sluice: loading 100000 prefixes`, and a dot for each further second. what is copied. */
void progress_begin(const char *what);

/* Without a begin it does nothing. */
void progress_end(void);

#endif
