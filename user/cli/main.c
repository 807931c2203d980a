/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The command line: finds the command, reads its options, runs it. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sluice/abi.h>

#include "base/version.h"
#include "cli/commands.h"
#include "dataplane/object.h"
#include "limit/settings.h"

static const struct command *const commands[] = {
	&command_attach, &command_detach,  &command_status, &command_stats,
	&command_top,    &command_monitor, &command_ip,     &command_config,
	&command_tenant, &command_audit,   &command_reload, &command_doctor,
};

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static const struct option_row globals[] = {
	[GLOBAL_BPFFS] = { "bpffs", 0, "DIR", "where the pins live (" PINS_DEFAULT ")" },
	[GLOBAL_SOCKET] = { "socket", 0, "PATH", "the daemon's socket (" LISTEN_PATH_DEFAULT ")" },
	[GLOBAL_JSON] = { "json", 0, NULL, "print JSON instead of tables" },
	[GLOBAL_VERBOSE] = { "verbose", 0, NULL, "show what libbpf and the verifier say" },
	[GLOBAL_HELP] = { "help", 'h', NULL, "print this help" },
	[GLOBAL_VERSION] = { "version", 0, NULL, "print the version" },
	{},
};

static void print_help(FILE *out)
{
	fprintf(out, "usage: sluice [OPTION]… COMMAND [ARGUMENT]…\n\n"
		     "Holds client addresses and the node to their rates, in the kernel.\n\n");
	for (int at = 0; at < COMMANDS; at++)
		fprintf(out, "  %-10s %s\n", commands[at]->name, commands[at]->summary);
	fprintf(out, "\nOptions of every command:\n");
	options_print(globals, out);
	fprintf(out, "\n`sluice COMMAND --help` tells more; so does sluice(8).\n");
}

static void print_command_help(const struct command *command, FILE *out)
{
	fprintf(out, "usage: sluice %s%s%s\n\n%s\n", command->name,
		command->arguments[0] ? " " : "", command->arguments, command->summary);
	if (command->options) {
		fprintf(out, "\n");
		options_print(command->options, out);
	}
	fprintf(out, "\nOptions of every command:\n");
	options_print(globals, out);
}

int misused(const struct command *command, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "sluice %s: ", command->name);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "\nusage: sluice %s %s\n", command->name, command->arguments);
	return EXIT_USAGE;
}

static int print_version(void)
{
	printf("sluice %s (map ABI %d)\n", SLUICE_VERSION, SLUICE_ABI_VERSION);
	return EXIT_DONE;
}

static void read_globals(struct cli *cli, const char *const *values)
{
	if (values[GLOBAL_BPFFS])
		cli->bpffs = values[GLOBAL_BPFFS];
	if (values[GLOBAL_SOCKET])
		cli->socket = values[GLOBAL_SOCKET];
	if (values[GLOBAL_JSON])
		cli->json = true;
	if (values[GLOBAL_VERBOSE])
		object_set_verbose(true);
}

static int run_command(struct cli *cli, const struct command *command, int argc, char **argv)
{
	const char *values[OPTIONS_MAX] = {};
	struct option_row rows[OPTIONS_MAX + 1] = {};
	char name[40];
	int own = 0, first;

	memcpy(rows, globals, sizeof(globals));
	for (; command->options && command->options[own].name; own++)
		rows[GLOBALS + own] = command->options[own];
	(void)snprintf(name, sizeof(name), "sluice %s", command->name);
	argv[0] = name; /* for getopt's messages */
	first = options_parse(rows, argc, argv, 0, values);
	if (first < 0) {
		fprintf(stderr, "usage: sluice %s %s\n", command->name, command->arguments);
		return EXIT_USAGE;
	}
	if (values[GLOBAL_HELP]) {
		print_command_help(command, stdout);
		return EXIT_DONE;
	}
	if (values[GLOBAL_VERSION])
		return print_version();
	read_globals(cli, values);
	memcpy(cli->values, values + GLOBALS, (size_t)own * sizeof(*values));
	return command->run(cli, argc - first, argv + first);
}

/* Output that cannot be written (a full disk) is a failure, not a success that nobody saw. */
static int close_output(int code)
{
	if (fflush(stdout) == 0 || errno == EPIPE)
		return code;
	fprintf(stderr, "sluice: cannot write the output: %s\n", strerror(errno));
	return EXIT_FAILED;
}

int main(int argc, char **argv)
{
	const char *values[OPTIONS_MAX] = {};
	struct cli cli = {};
	int first;

	object_set_verbose(false);
	first = options_parse(globals, argc, argv, 1, values);
	if (first < 0) {
		fprintf(stderr, "sluice --help tells how it is used\n");
		return EXIT_USAGE;
	}
	read_globals(&cli, values);
	if (values[GLOBAL_VERSION])
		return close_output(print_version());
	if (values[GLOBAL_HELP] || first == argc) {
		print_help(values[GLOBAL_HELP] ? stdout : stderr);
		return values[GLOBAL_HELP] ? close_output(EXIT_DONE) : EXIT_USAGE;
	}
	for (int at = 0; at < COMMANDS; at++)
		if (!strcmp(argv[first], commands[at]->name))
			return close_output(
				run_command(&cli, commands[at], argc - first, argv + first));
	fprintf(stderr, "sluice: there is no command %s; sluice --help lists them\n", argv[first]);
	return EXIT_USAGE;
}
