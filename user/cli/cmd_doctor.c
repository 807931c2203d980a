/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sluice doctor: looks at this host, says what it finds, and by its exit code whether attaching
 * would work. The looking is done by dataplane/probe.h, the judging by dataplane/diagnose.h; here
 * they are put together, and what comes of it is printed. It changes nothing.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "cli/commands.h"
#include "dataplane/attach.h"
#include "dataplane/devices.h"
#include "dataplane/diagnose.h"
#include "dataplane/probe.h"

enum doctor_option { DOCTOR_CONFIG, DOCTOR_MODE, DOCTOR_REQUIRE, DOCTOR_SSH };

static const struct option_row doctor_options[] = {
	[DOCTOR_CONFIG] = { "config", 'c', "FILE",
			    "the configuration to look at (" CONFIG_DEFAULT ")" },
	[DOCTOR_MODE] = { "mode", 0, "MODE",
			  "auto, native, tc, clsact or generic (as configured)" },
	[DOCTOR_REQUIRE] = { "require", 0, "MODE", "the least that will do: native or tc" },
	[DOCTOR_SSH] = { "ssh", 0, "ADDRESS", "where you sit ($SSH_CONNECTION)" },
	{},
};

enum {
	BYTES_PER_PREFIX = 2 * 248, /* in both tries, as after a reload */
	SSH_PORT = 22,
	WRAP = 92,
};

/* All that was seen and what it came to. */
struct visit {
	struct findings findings;
	struct kernel_facts kernel;
	struct process_facts process;
	struct pins pins;
	struct pins_facts pins_found;
	struct network_facts network;
	struct session_facts session;
	struct settings *settings; /* NULL: none could be read */
	unsigned cpus;
	uint32_t interfaces[ATTACH_INTERFACES_MAX]; /* that could be attached to */
	size_t interface_count;
};

/* The configuration, if there is one; that it is wrong is a finding like others. */
static void read_settings(const char *path, struct visit *visit)
{
	const char *name = path ? path : CONFIG_DEFAULT;
	struct settings_error error = {};
	int err = settings_load(name, &visit->settings, &error);
	struct finding *finding;
	char place[48] = "";

	if (!err) {
		(void)findings_add(&visit->findings, FINDING_OK, "configuration",
				   "%s can be put in force", name);
		return;
	}
	if (!path && err == -ENOENT) {
		finding = findings_add(&visit->findings, FINDING_NOTE, "configuration",
				       "there is no %s yet", name);
		finding_explain(finding, "whom it would limit was not looked at");
		finding_advise(finding, "name one with --config; an example is dist/sluice.yaml");
		return;
	}
	if (error.line)
		(void)snprintf(place, sizeof(place), ":%u:%u", error.line, error.column);
	finding = findings_add(&visit->findings, FINDING_FAILURE, "configuration", "%s%s: %s%s%s",
			       name, place, error.key, error.key[0] ? ": " : "", error.message);
	finding->is_permission = err == -EACCES || err == -EPERM;
	if (finding->is_permission)
		finding_advise(finding, "run it as root");
	else
		finding_advise(finding, "correct it; sluice config check %s", name);
}

static int read_session(const char *address, struct visit *visit)
{
	if (!address) {
		probe_session(getenv("SSH_CONNECTION"), &visit->session);
		return 0;
	}
	visit->session = (struct session_facts){ .is_known = true, .port = SSH_PORT };
	return parse_address(address, &visit->session.peer);
}

static int examine_host(const struct cli *cli, struct visit *visit)
{
	uint64_t needed_bytes = probe_map_bytes(), prefix_bytes = 0;
	struct trouble trouble = {};
	const char *folder = cli->bpffs;
	int err;

	if (!folder && visit->settings)
		folder = visit->settings->bpffs;
	err = pins_init(&visit->pins, folder, &trouble);
	if (err)
		return complain(err, &trouble);
	if (visit->settings)
		prefix_bytes = visit->settings->prefix_count * BYTES_PER_PREFIX;
	probe_process(&visit->process);
	probe_kernel(diagnose_has_room(&visit->process, needed_bytes + prefix_bytes),
		     &visit->kernel);
	probe_pins(&visit->pins, &visit->pins_found);
	probe_network(&visit->network);
	if (visit->kernel.map_bytes)
		needed_bytes = visit->kernel.map_bytes;
	diagnose_process(&visit->process, &visit->kernel, &visit->findings);
	diagnose_kernel(&visit->kernel, &visit->findings);
	diagnose_memory(&visit->process, &visit->kernel, needed_bytes + prefix_bytes,
			&visit->findings);
	diagnose_clock(&visit->kernel, &visit->findings);
	diagnose_pins(&visit->pins_found, &visit->findings);
	return 0;
}

/* How it is to be attached: as it is asked for here, else as it is configured. */
static struct wanted_mode mode_of(const struct cli *cli, const char *name,
				  const struct visit *visit)
{
	struct wanted_mode wanted = { MODE_AUTO, MODE_AUTO };

	for (size_t at = 0; visit->settings && at < visit->settings->interface_count; at++) {
		const struct setting_interface *one = &visit->settings->interfaces[at];

		if (!strcmp(one->name, name))
			wanted = (struct wanted_mode){ one->mode, one->require };
	}
	if (cli->values[DOCTOR_MODE])
		(void)attach_mode_parse(cli->values[DOCTOR_MODE], &wanted.mode);
	if (cli->values[DOCTOR_REQUIRE])
		(void)attach_require_parse(cli->values[DOCTOR_REQUIRE], &wanted.require);
	return wanted;
}

static void examine_interface(const struct cli *cli, const char *name, struct visit *visit)
{
	struct wanted_mode wanted = mode_of(cli, name, visit);
	struct interface_facts facts;
	enum rung rung;

	probe_interface(name, &visit->pins_found, &facts);
	rung = diagnose_interface(&facts, &visit->kernel, &wanted, visit->cpus, &visit->findings);
	if (rung != RUNG_NONE && visit->interface_count < ATTACH_INTERFACES_MAX)
		visit->interfaces[visit->interface_count++] = facts.ifindex;
}

/* Those that are named; else those of the configuration; else the one of the default route. */
static void examine_interfaces(const struct cli *cli, int argc, char **argv, struct visit *visit)
{
	const struct settings *settings = visit->settings;
	struct trouble trouble = {};
	struct finding *finding;

	for (int at = 0; at < argc; at++)
		examine_interface(cli, argv[at], visit);
	for (size_t at = 0; !argc && settings && at < settings->interface_count; at++)
		examine_interface(cli, settings->interfaces[at].name, visit);
	if (!argc && !(settings && settings->interface_count)) {
		if (visit->network.default_interface[0]) {
			examine_interface(cli, visit->network.default_interface, visit);
		} else {
			finding =
				findings_add(&visit->findings, FINDING_NOTE, "interfaces",
					     "no interface was looked at: none is named, and there "
					     "is no default route");
			finding_advise(finding, "sluice doctor IFACE");
		}
	}
	if (!devices_check(&visit->pins, visit->interfaces, visit->interface_count, &trouble))
		return;
	finding =
		findings_add(&visit->findings, FINDING_FAILURE, "interfaces", "%s", trouble.cause);
	finding_advise(finding, "%s", trouble.remedy);
}

/* ---- printing */

/* Words after a hanging indent, none cut. */
static void print_wrapped(const char *lead, const char *text)
{
	int column = (int)strlen(lead);
	int indent = column;

	printf("%s", lead);
	while (*text) {
		int length = (int)strcspn(text, " ");

		if (column > indent && column + 1 + length > WRAP) {
			printf("\n%*s", indent, "");
			column = indent;
		} else if (column > indent) {
			printf(" ");
			column++;
		}
		printf("%.*s", length, text);
		column += length;
		text += length;
		text += strspn(text, " ");
	}
	printf("\n");
}

static void print_finding(const struct finding *finding)
{
	char lead[32];

	(void)snprintf(lead, sizeof(lead), "  %-9s", finding_level_name(finding->level));
	print_wrapped(lead, finding->what);
	if (finding->why[0])
		print_wrapped("           ", finding->why);
	if (finding->remedy[0])
		print_wrapped("        -> ", finding->remedy);
}

static bool is_first_of_subject(const struct findings *findings, size_t at)
{
	for (size_t before = 0; before < at; before++)
		if (!strcmp(findings->list[before].subject, findings->list[at].subject))
			return false;
	return true;
}

/* Grouped by what they are about, in the order in which that came up. */
static void print_findings(const struct findings *findings)
{
	for (size_t at = 0; at < findings->count; at++) {
		if (!is_first_of_subject(findings, at))
			continue;
		printf("%s\n", findings->list[at].subject);
		for (size_t same = at; same < findings->count; same++)
			if (!strcmp(findings->list[same].subject, findings->list[at].subject))
				print_finding(&findings->list[same]);
	}
}

static void print_summary(const struct findings *findings, int code)
{
	const char *verdict = code == EXIT_DONE ? "attaching would work"
			      : code == EXIT_PERMISSION
				      ? "it cannot be told with these rights whether "
					"attaching would work"
				      : "attaching would not work";

	printf("\n%zu failure%s, %zu warning%s, %zu note%s, %zu ok: %s\n",
	       findings_count(findings, FINDING_FAILURE),
	       findings_count(findings, FINDING_FAILURE) == 1 ? "" : "s",
	       findings_count(findings, FINDING_WARNING),
	       findings_count(findings, FINDING_WARNING) == 1 ? "" : "s",
	       findings_count(findings, FINDING_NOTE),
	       findings_count(findings, FINDING_NOTE) == 1 ? "" : "s",
	       findings_count(findings, FINDING_OK), verdict);
}

static json_t *findings_json(const struct findings *findings, bool works)
{
	json_t *array = json_array();

	for (size_t at = 0; at < findings->count; at++) {
		const struct finding *one = &findings->list[at];

		json_array_append_new(array, json_pack("{ss ss ss ss ss}", "level",
						       finding_level_name(one->level), "subject",
						       one->subject, "what", one->what, "why",
						       one->why, "remedy", one->remedy));
	}
	return json_pack("{so sb}", "findings", array, "works", works);
}

static int conclude(const struct cli *cli, const struct findings *findings)
{
	int code = findings_has_failure(findings)        ? EXIT_FAILED
		   : findings_lacks_permission(findings) ? EXIT_PERMISSION
							 : EXIT_DONE;

	if (findings->failed) {
		fprintf(stderr, "sluice: out of memory\n");
		return EXIT_FAILED;
	}
	if (cli->json) {
		(void)print_json(findings_json(findings, code == EXIT_DONE));
		return code;
	}
	print_findings(findings);
	print_summary(findings, code);
	return code;
}

static int run_doctor(struct cli *cli, int argc, char **argv)
{
	struct visit visit = { .cpus = maps_cpus() };
	enum attach_mode mode;
	int code;

	if (cli->values[DOCTOR_MODE] && attach_mode_parse(cli->values[DOCTOR_MODE], &mode))
		return misused(&command_doctor,
			       "--mode is auto, native, tc, clsact or generic, not %s",
			       cli->values[DOCTOR_MODE]);
	if (cli->values[DOCTOR_REQUIRE] && attach_require_parse(cli->values[DOCTOR_REQUIRE], &mode))
		return misused(&command_doctor, "--require is native or tc, not %s",
			       cli->values[DOCTOR_REQUIRE]);
	if (read_session(cli->values[DOCTOR_SSH], &visit))
		return misused(&command_doctor, "--ssh takes an address, not %s",
			       cli->values[DOCTOR_SSH]);
	for (int at = 0; at < argc; at++)
		if (strlen(argv[at]) >= INTERFACE_NAME_MAX)
			return misused(&command_doctor,
				       "%s is too long for the name of an interface", argv[at]);
	read_settings(cli->values[DOCTOR_CONFIG], &visit);
	code = examine_host(cli, &visit);
	if (!code) {
		examine_interfaces(cli, argc, argv, &visit);
		if (visit.settings)
			diagnose_settings(visit.settings, &visit.network, &visit.session,
					  &visit.findings);
		code = conclude(cli, &visit.findings);
	}
	findings_done(&visit.findings);
	settings_free(visit.settings);
	return code;
}

const struct command command_doctor = {
	.name = "doctor",
	.arguments = "[IFACE]… [--config FILE] [--mode MODE] [--require MODE] [--ssh ADDRESS]",
	.summary = "examine this host: would attaching work, and what would help",
	.options = doctor_options,
	.run = run_doctor,
};
