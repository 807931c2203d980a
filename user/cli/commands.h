/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The subcommands, one file each, and what they share. */
#ifndef SLUICE_CLI_COMMANDS_H
#define SLUICE_CLI_COMMANDS_H

#include <stdbool.h>

#include <jansson.h>

#include "base/trouble.h"
#include "cli/options.h"
#include "dataplane/maps.h"
#include "dataplane/pins.h"
#include "dataplane/words.h"

#define CONFIG_DEFAULT "/etc/sluice/sluice.yaml"

/* Exit codes, as in sysexits.h where it has one. */
enum exit_code {
	EXIT_DONE = 0,
	EXIT_FAILED = 1, /* it could not be done; standard error says why */
	EXIT_USAGE = 2,
	EXIT_UNAVAILABLE = 69, /* nothing is attached, or somebody else is at work */
	EXIT_PERMISSION = 77,
	EXIT_CONFIG = 78,
};

/* The options that every command takes; their values come before the command's own. */
enum global_option {
	GLOBAL_BPFFS,
	GLOBAL_SOCKET,
	GLOBAL_JSON,
	GLOBAL_VERBOSE,
	GLOBAL_HELP,
	GLOBAL_VERSION,
	GLOBALS
};

struct cli {
	const char *bpffs;  /* NULL: the default */
	const char *socket; /* NULL: the default */
	bool json;
	const char *values[OPTIONS_MAX]; /* of the command's own options, by row */
};

struct command {
	const char *name;
	const char *arguments; /* for the usage line */
	const char *summary;
	const struct option_row *options;                   /* NULL: none of its own */
	int (*run)(struct cli *cli, int argc, char **argv); /* the words after the command */
};

extern const struct command command_attach, command_detach, command_status, command_stats,
	command_top, command_monitor, command_ip, command_config, command_tenant, command_audit,
	command_reload, command_doctor;

/* Say what is wrong and what helps, and return the exit code for err. */
int complain(int err, const struct trouble *trouble);

/* Say how the command is used, and return EXIT_USAGE. */
int misused(const struct command *command, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Open the pins and the maps in them; write also locks. On failure it has been said, and the exit
 * code is returned; 0 else. */
int open_maps(const struct cli *cli, bool write, struct pins *pins, struct maps *maps);
void close_maps(struct pins *pins, struct maps *maps);

/* Print and free. Returns EXIT_DONE. */
int print_json(json_t *value);

/* The same on one line, for streams. */
void print_json_line(json_t *value);

/* The whole set of counters as the contract in docs/operations.md has it. */
json_t *counters_json(const struct counter counters[REASONS]);
json_t *notes_json(const uint64_t notes[NOTES]);

#endif
