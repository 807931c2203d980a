/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sluice attach and sluice detach. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/config_file.h"
#include "cli/progress.h"
#include "dataplane/attach.h"
#include "dataplane/obstacles.h"

enum attach_option { ATTACH_MODE, ATTACH_REQUIRE, ATTACH_CONFIG, ATTACH_CONFIRM };

static const struct option_row attach_options[] = {
	[ATTACH_MODE] = { "mode", 0, "MODE", "auto, native, tc, clsact or generic (auto)" },
	[ATTACH_REQUIRE] = { "require", 0, "MODE",
			     "fail rather than take less than native, or than tc" },
	[ATTACH_CONFIG] = { "config", 'c', "FILE", "the configuration (" CONFIG_DEFAULT ")" },
	[ATTACH_CONFIRM] = { "confirm", 0, "DURATION",
			     "take it back unless Enter is pressed in time" },
	{},
};

enum { NS_PER_MS = 1000000, NS_PER_S = 1000000000, CONFIRM_MAX_S = 3600 };

static void print_attached(FILE *out, const struct attached *one)
{
	fprintf(out, "%s: %s, %s mode%s", one->name,
		one->taken_from ? "taken over"
		: one->renewed  ? "renewed"
				: "attached",
		attach_mode_name(one->mode),
		one->frags                 ? ", frames in several buffers"
		: one->rung == RUNG_TCX    ? ", by tcx"
		: one->rung == RUNG_CLSACT ? ", by clsact"
					   : "");
	if (one->changed_from)
		fprintf(out, ", in place of %s", rung_words(one->changed_from));
	fprintf(out, "\n");
	if (one->passed_over[0])
		fprintf(out, "  passed over %s\n", one->passed_over);
}

static void print_result(FILE *out, const struct attach_result *result)
{
	char text[TAKEN_OVER_TEXT_MAX];

	for (size_t at = 0; at < result->count; at++)
		print_attached(out, &result->interfaces[at]);
	if (!result->taken_over.version)
		return;
	taken_over_text(&result->taken_over, text);
	fprintf(out, "%s\n", text);
}

/* Wait for a line. The end of the input is no answer: then only the time can pass. */
static bool is_confirmed(const struct attach_result *result, void *data)
{
	const uint64_t *wait_ns = data;
	uint64_t end_ns = clock_monotonic_ns() + *wait_ns;
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

	progress_end();
	print_result(stderr, result);
	for (;;) {
		uint64_t now_ns = clock_monotonic_ns();
		char text[64];
		ssize_t length;

		if (now_ns >= end_ns) {
			fprintf(stderr, "\n");
			return false;
		}
		fprintf(stderr, "\rIn force. Press Enter within %3llu s to keep it. ",
			(unsigned long long)((end_ns - now_ns + NS_PER_S - 1) / NS_PER_S));
		if (poll(&input, 1, (int)((end_ns - now_ns) / NS_PER_MS % 1000 + 1)) <= 0)
			continue;
		length = read(STDIN_FILENO, text, sizeof(text));
		if (length > 0 && memchr(text, '\n', (size_t)length)) {
			fprintf(stderr, "Kept.\n");
			return true;
		}
		if (length <= 0)
			input.fd = -1;
	}
}

/* The interfaces named on the command line, in place of those of the configuration. */
static int name_interfaces(struct settings *settings, enum attach_mode mode, int argc, char **argv)
{
	struct setting_interface *named = calloc((size_t)argc, sizeof(*named));

	if (!named)
		return -ENOMEM;
	for (int at = 0; at < argc; at++) {
		if (strlen(argv[at]) >= sizeof(named[at].name)) {
			fprintf(stderr, "sluice: %s is too long for the name of an interface\n",
				argv[at]);
			free(named);
			return -EINVAL;
		}
		(void)snprintf(named[at].name, sizeof(named[at].name), "%s", argv[at]);
		named[at].mode = mode;
		for (int before = 0; before < at; before++)
			if (!strcmp(argv[before], argv[at])) {
				fprintf(stderr, "sluice: %s is named twice\n", argv[at]);
				free(named);
				return -EINVAL;
			}
	}
	free(settings->interfaces);
	settings->interfaces = named;
	settings->interface_count = (size_t)argc;
	return 0;
}

static int require_of_all(struct settings *settings, enum attach_mode require)
{
	for (size_t at = 0; at < settings->interface_count; at++) {
		struct setting_interface *one = &settings->interfaces[at];

		if (!attach_mode_can_be(one->mode, require))
			return misused(&command_attach,
				       "%s is to be attached in mode %s, which is never %s",
				       one->name, attach_mode_name(one->mode),
				       attach_mode_name(require));
		/* Of the two, native asks for more. */
		if (one->require != MODE_NATIVE)
			one->require = require;
	}
	return 0;
}

static json_t *attached_json(const struct attach_result *result)
{
	const struct taken_over *taken = &result->taken_over;
	json_t *interfaces = json_array();

	for (size_t at = 0; at < result->count; at++) {
		const struct attached *one = &result->interfaces[at];

		json_array_append_new(
			interfaces,
			json_pack("{ss sI ss ss sb sb sI ss}", "name", one->name, "ifindex",
				  (json_int_t)one->ifindex, "mode", attach_mode_name(one->mode),
				  "rung", rung_name(one->rung), "frags", one->frags, "renewed",
				  one->renewed, "taken_from", (json_int_t)one->taken_from,
				  "passed_over", one->passed_over));
	}
	if (!taken->version)
		return json_pack("{so sn}", "interfaces", interfaces, "taken_over");
	return json_pack("{so s{sI sb sI sI}}", "interfaces", interfaces, "taken_over", "version",
			 (json_int_t)taken->version, "keeps_debts", taken->keeps_debts, "rules",
			 (json_int_t)taken->rules, "rules_lost", (json_int_t)taken->rules_lost);
}

static int attach(struct cli *cli, const struct settings *settings, uint64_t confirm_ns)
{
	struct attach_result result = {};
	struct trouble trouble = {};
	char what[80];
	struct pins pins;
	int err = pins_init(&pins, cli->bpffs ? cli->bpffs : settings->bpffs, &trouble);

	if (!err)
		err = pins_lock(&pins, true, &trouble);
	if (err)
		return complain(err, &trouble);
	(void)snprintf(what, sizeof(what), "loading the programs and %zu prefixes",
		       settings->prefix_count);
	progress_begin(what);
	err = attach_all(&pins, settings, confirm_ns ? is_confirmed : NULL, &confirm_ns, &result,
			 &trouble);
	progress_end();
	if (err)
		(void)rmdir(pins.root); /* if it was made for nothing */
	pins_unlock(&pins);
	if (err)
		return complain(err, &trouble);
	if (cli->json)
		return print_json(attached_json(&result));
	if (!confirm_ns)
		print_result(stdout, &result);
	return EXIT_DONE;
}

static int run_attach(struct cli *cli, int argc, char **argv)
{
	struct settings *settings;
	enum attach_mode mode = MODE_AUTO, require = MODE_AUTO;
	uint64_t confirm_ns = 0;
	int code;

	if (cli->values[ATTACH_MODE] && attach_mode_parse(cli->values[ATTACH_MODE], &mode))
		return misused(&command_attach,
			       "--mode is auto, native, tc, clsact or generic, not %s",
			       cli->values[ATTACH_MODE]);
	if (cli->values[ATTACH_REQUIRE] &&
	    attach_require_parse(cli->values[ATTACH_REQUIRE], &require))
		return misused(&command_attach, "--require is native or tc, not %s",
			       cli->values[ATTACH_REQUIRE]);
	if (cli->values[ATTACH_MODE] && !argc)
		return misused(&command_attach, "--mode goes with interfaces named here");
	if (cli->values[ATTACH_CONFIRM] &&
	    (parse_duration(cli->values[ATTACH_CONFIRM], &confirm_ns) || !confirm_ns ||
	     confirm_ns > (uint64_t)CONFIRM_MAX_S * NS_PER_S))
		return misused(&command_attach, "--confirm takes a time up to an hour, as 30s");
	code = config_file_load(cli->values[ATTACH_CONFIG], &settings);
	if (code)
		return code;
	if (argc && name_interfaces(settings, mode, argc, argv))
		code = EXIT_USAGE;
	if (!code && require)
		code = require_of_all(settings, require);
	if (!code)
		code = attach(cli, settings, confirm_ns);
	settings_free(settings);
	return code;
}

const struct command command_attach = {
	.name = "attach",
	.arguments = "[IFACE]… [--config FILE] [--mode MODE] [--require MODE] [--confirm DURATION]",
	.summary = "limit what comes in on interfaces, all or none of them",
	.options = attach_options,
	.run = run_attach,
};

enum detach_option { DETACH_ALL };

static const struct option_row detach_options[] = {
	[DETACH_ALL] = { "all", 0, NULL, "everything, whatever version made it" },
	{},
};

static int detach_named(const struct cli *cli, struct pins *pins, int argc, char **argv)
{
	json_t *names = json_array();
	struct trouble trouble = {};

	for (int at = 0; at < argc; at++) {
		uint32_t ifindex;
		int err = interface_find(argv[at], &ifindex, &trouble);

		if (!err)
			err = detach_one(pins, ifindex, &trouble);
		if (err) {
			json_decref(names);
			return complain(err, &trouble);
		}
		json_array_append_new(names, json_string(argv[at]));
		if (!cli->json)
			printf("%s: detached\n", argv[at]);
	}
	if (cli->json)
		return print_json(json_pack("{so}", "interfaces", names));
	json_decref(names);
	return EXIT_DONE;
}

static int say_detached(const struct cli *cli, unsigned count)
{
	if (cli->json)
		return print_json(json_pack("{si}", "detached", (int)count));
	printf("detached from %u interface%s\n", count, count == 1 ? "" : "s");
	return EXIT_DONE;
}

static int run_detach(struct cli *cli, int argc, char **argv)
{
	bool all = cli->values[DETACH_ALL];
	struct trouble trouble = {};
	struct pins pins;
	unsigned count = 0;
	int err, code;

	if (all == (argc > 0))
		return misused(&command_detach, "name interfaces, or give --all");
	err = pins_init(&pins, cli->bpffs, &trouble);
	if (err)
		return complain(err, &trouble);
	/* Without a folder there is nothing to lock; an interface may be held all the same. */
	err = pins_lock(&pins, false, &trouble);
	if (err && err != -ENOENT)
		return complain(err, &trouble);
	if (all) {
		err = detach_all(&pins, &count, &trouble);
		code = err ? complain(err, &trouble) : EXIT_DONE;
		if (!err)
			code = say_detached(cli, count);
	} else {
		code = detach_named(cli, &pins, argc, argv);
	}
	pins_unlock(&pins);
	return code;
}

const struct command command_detach = {
	.name = "detach",
	.arguments = "IFACE… | --all",
	.summary = "take the program off; the last one takes the maps with it",
	.options = detach_options,
	.run = run_detach,
};
