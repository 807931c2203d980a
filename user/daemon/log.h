/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One line an event on standard error, with the priority that journald reads. Thread safe. */
#ifndef SLUICE_DAEMON_LOG_H
#define SLUICE_DAEMON_LOG_H

enum log_level { LOG_LEVEL_ERROR = 3, LOG_LEVEL_WARNING = 4, LOG_LEVEL_INFO = 6 };

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
