/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For commands that print again and again until Ctrl-C. */
#ifndef SLUICE_CLI_REPEAT_H
#define SLUICE_CLI_REPEAT_H

#include <stdbool.h>
#include <stdint.h>

/* End at the next repeat_wait() when SIGINT or SIGTERM comes. */
void repeat_until_signal(void);

/* Whether to go on. Flushes standard output, then waits. */
bool repeat_wait(uint64_t interval_ns);

/* Whether a signal has come. */
bool repeat_is_over(void);

#endif
