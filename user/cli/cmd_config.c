/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sluice config check, and reading a configuration for other commands. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/config_file.h"
#include "limit/settings_report.h"

int config_file_load(const char *path, struct settings **out)
{
	const char *name = path ? path : CONFIG_DEFAULT;
	struct settings_error error = {};
	int err = settings_load(name, out, &error);

	if (!err)
		return 0;
	fprintf(stderr, "%s:", name);
	if (error.line)
		fprintf(stderr, "%u:%u:", error.line, error.column);
	fprintf(stderr, " %s%s%s\n", error.key, error.key[0] ? ": " : "", error.message);
	if (!path && err == -ENOENT)
		fprintf(stderr, "  -> name one with --config; an example is in dist/sluice.yaml\n");
	return err == -EACCES || err == -EPERM ? EXIT_PERMISSION : EXIT_CONFIG;
}

static int run_config(struct cli *cli, int argc, char **argv)
{
	struct settings *settings;
	int code;

	if (argc < 1 || strcmp(argv[0], "check"))
		return misused(&command_config, "say what to do: check");
	if (argc != 2)
		return misused(&command_config, "name one file");
	code = config_file_load(argv[1], &settings);
	if (code)
		return code == EXIT_PERMISSION ? code : EXIT_CONFIG;
	if (cli->json)
		code = print_json(settings_report_json(settings));
	else
		settings_report_print(settings, stdout);
	settings_free(settings);
	return code;
}

const struct command command_config = {
	.name = "config",
	.arguments = "check FILE",
	.summary = "check a configuration, and show what each limit lets through at worst",
	.run = run_config,
};
