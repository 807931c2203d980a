/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading the configuration for a command, with the complaint that a bad one deserves. */
#ifndef SLUICE_CLI_CONFIG_FILE_H
#define SLUICE_CLI_CONFIG_FILE_H

#include "limit/settings.h"

/* path NULL: the default. 0, or the exit code after a message that names file, line and column. */
int config_file_load(const char *path, struct settings **out);

#endif
