/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whom a configuration would cut off: the one who sits at the terminal, gateways, resolvers. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "tests/unit/findings_check.h"

#define LIMITED "rate_limits: {per_ip: {packets: {rate: 100, burst: 100}}}\n"

static struct settings *must_parse(const char *text)
{
	struct settings *settings = NULL;
	struct settings_error error;

	if (settings_parse(text, strlen(text), &settings, &error))
		fail_msg("%u:%u: %s: %s", error.line, error.column, error.key, error.message);
	return settings;
}

static union address must_parse_address(const char *text)
{
	union address address;

	assert_int_equal(parse_address(text, &address), 0);
	return address;
}

static const struct session_row {
	const char *name;
	const char *config;
	const char *peer;
	uint16_t port;
	struct wanted wanted;
} session_rows[] = {
	{ "a web port does not touch SSH",
	  "protect: [tcp/443]\n" LIMITED,
	  "192.0.2.1",
	  22,
	  { FINDING_OK, "ssh", "from 192.0.2.1 to port 22, is not limited", NULL, false } },
	{ "SSH on the protected port",
	  "protect: [tcp/443]\n" LIMITED,
	  "192.0.2.1",
	  443,
	  { FINDING_WARNING, "ssh", "`protect` covers port 443", "take tcp/443 out", false } },
	{ "everything is protected",
	  "protect: [all]\n" LIMITED,
	  "2001:db8::1",
	  22,
	  { FINDING_WARNING, "ssh", "`protect: [all]` covers port 22", "exempt: [2001:db8::1]",
	    false } },
	{ "everything is protected, and nothing is limited",
	  "protect: [all]\n",
	  "192.0.2.1",
	  22,
	  { FINDING_OK, "ssh", "not limited", NULL, false } },
	{ "a limit of the node is one",
	  "protect: [all]\nrate_limits: {node: {packets: {rate: 9, burst: 9}}}\n",
	  "192.0.2.1",
	  22,
	  { FINDING_WARNING, "ssh", "would be limited", NULL, false } },
	{ "exempt",
	  "protect: [all]\nexempt: [192.0.2.0/24]\n" LIMITED,
	  "192.0.2.1",
	  22,
	  { FINDING_OK, "ssh", "not limited", NULL, false } },
	{ "denied, whatever the port",
	  "protect: [tcp/443]\ndeny: [192.0.2.0/24]\n" LIMITED,
	  "192.0.2.1",
	  22,
	  { FINDING_FAILURE, "ssh", "192.0.2.0/24 is under `deny`", "exempt: [192.0.2.1]",
	    false } },
	{ "denied in a dry run",
	  "deny: [192.0.2.0/24]\ndry_run: true\n",
	  "192.0.2.1",
	  22,
	  { FINDING_WARNING, "ssh", "would be refused", NULL, false } },
	{ "just beside",
	  "deny: [192.0.2.0/25]\n",
	  "192.0.2.128",
	  22,
	  { FINDING_OK, "ssh", "not limited", NULL, false } },
	{ "the longest prefix counts",
	  "deny: [192.0.0.0/16]\nexempt: [192.0.2.0/24]\n",
	  "192.0.2.1",
	  22,
	  { FINDING_OK, "ssh", "not limited", NULL, false } },
	{ "also if the shorter one is kinder",
	  "exempt: [192.0.0.0/16]\ndeny: [192.0.2.1]\n",
	  "192.0.2.1",
	  22,
	  { FINDING_FAILURE, "ssh", "192.0.2.1/32 is under", NULL, false } },
	{ "IPv6",
	  "deny: ['2001:db8::/32']\n",
	  "2001:db8:ffff::1",
	  22,
	  { FINDING_FAILURE, "ssh", "2001:db8::/32 is under", NULL, false } },
	{ "IPv6 beyond the first half",
	  "deny: ['2001:db8::4/126']\n",
	  "2001:db8::7",
	  22,
	  { FINDING_FAILURE, "ssh", "2001:db8::4/126 is under", NULL, false } },
	{ "limits of its own",
	  "protect: [all]\nrate_limits: {prefixes: {192.0.2.0/24: {packets: {rate: 9, burst: "
	  "9}}}}\n",
	  "192.0.2.1",
	  22,
	  { FINDING_WARNING, "ssh", "would be limited", NULL, false } },
};

static void ones_own_connection_is_looked_after(void **state)
{
	(void)state;
	for (size_t at = 0; at < COUNT_OF(session_rows); at++) {
		const struct session_row *row = &session_rows[at];
		struct settings *settings = must_parse(row->config);
		const struct network_facts nobody = {};
		const struct session_facts session = { true, must_parse_address(row->peer),
						       row->port };
		struct findings findings = {};

		diagnose_settings(settings, &nobody, &session, &findings);
		check_wanted(row->name, &findings, &row->wanted);
		findings_done(&findings);
		settings_free(settings);
	}
}

static const struct network_row {
	const char *name;
	const char *config;
	struct wanted wanted;
} network_rows[] = {
	{ "nobody is touched",
	  "protect: [tcp/443]\n" LIMITED,
	  { FINDING_LEVELS, "network", "", NULL, false } },
	{ "the gateway denied",
	  "deny: [10.0.0.0/24]\n",
	  { FINDING_WARNING, "network", "the gateway 10.0.0.1 would be refused",
	    "exempt: [10.0.0.1]", false } },
	{ "the resolvers denied",
	  "deny: [10.0.9.0/24]\n",
	  { FINDING_WARNING, "network", "the resolvers 10.0.9.53, 10.0.9.54 would be refused",
	    "exempt: [10.0.9.53, 10.0.9.54]", false } },
	{ "our own address denied",
	  "deny: ['2001:db8::/64']\n",
	  { FINDING_WARNING, "network", "own address 2001:db8::7 would be refused",
	    "exempt: ", false } },
	{ "all is limited: resolvers",
	  "protect: [all]\n" LIMITED,
	  { FINDING_WARNING, "network", "the resolvers 10.0.9.53, 10.0.9.54 would be limited",
	    "exempt: [10.0.9.53, 10.0.9.54]", false } },
	{ "all is limited: the gateway",
	  "protect: [all]\n" LIMITED,
	  { FINDING_WARNING, "network", "the gateway 10.0.0.1 would be limited",
	    "exempt: [10.0.0.1]", false } },
	{ "the ports that answers come to",
	  "protect: [udp/40000-40010]\n" LIMITED,
	  { FINDING_WARNING, "network", "the resolvers 10.0.9.53, 10.0.9.54 would be limited", NULL,
	    false } },
	{ "other ports",
	  "protect: [udp/443, udp/53]\n" LIMITED,
	  { FINDING_LEVELS, "network", "", NULL, false } },
	{ "exempted",
	  "protect: [all]\nexempt: [10.0.0.0/8]\n" LIMITED,
	  { FINDING_LEVELS, "network", "", NULL, false } },
};

static void gateways_and_resolvers_are_looked_after(void **state)
{
	struct network_facts network = {
		.count = 4,
		.list = { { ROLE_GATEWAY, must_parse_address("10.0.0.1") },
			  { ROLE_RESOLVER, must_parse_address("10.0.9.53") },
			  { ROLE_RESOLVER, must_parse_address("10.0.9.54") },
			  { ROLE_OWN, must_parse_address("2001:db8::7") } },
	};

	(void)state;
	for (size_t at = 0; at < COUNT_OF(network_rows); at++) {
		struct settings *settings = must_parse(network_rows[at].config);
		const struct session_facts nobody = {};
		struct findings findings = {};

		diagnose_settings(settings, &network, &nobody, &findings);
		check_wanted(network_rows[at].name, &findings, &network_rows[at].wanted);
		findings_done(&findings);
		settings_free(settings);
	}
}

static const struct network_row capacity_rows[] = {
	{ "no limit per address",
	  "protect: [all]\n",
	  { FINDING_LEVELS, "capacity", "", NULL, false } },
	/* 2^20 words, each in debt for a second. */
	{ "one a second",
	  "protect: [all]\nrate_limits: {per_ip: {connections: {rate: 1, burst: 1}}}\n",
	  { FINDING_OK, "capacity", "131072 invented", NULL, false } },
	{ "one in ten seconds",
	  "protect: [all]\nrate_limits: {per_ip: {connections: {rate: 0.1, burst: 1}}}\n",
	  { FINDING_WARNING, "capacity", "104858 keep all 1048576 words", "higher rate", false } },
	{ "two meters take two words",
	  "protect: [all]\nrate_limits: {per_ip: {connections: {rate: 1, burst: 1}, packets: "
	  "{rate: 1, burst: "
	  "1}}}\n",
	  { FINDING_WARNING, "capacity", "524288 keep all", NULL, false } },
	{ "nothing is protected",
	  "{}\n",
	  { FINDING_WARNING, "configuration", "names nothing", "protect:", false } },
	{ "a dry run",
	  "protect: [all]\ndry_run: true\n",
	  { FINDING_NOTE, "configuration", "dry run", NULL, false } },
};

static void capacity_is_told(void **state)
{
	(void)state;
	for (size_t at = 0; at < COUNT_OF(capacity_rows); at++) {
		struct settings *settings = must_parse(capacity_rows[at].config);
		const struct network_facts network = {};
		const struct session_facts session = {};
		struct findings findings = {};

		diagnose_settings(settings, &network, &session, &findings);
		check_wanted(capacity_rows[at].name, &findings, &capacity_rows[at].wanted);
		findings_done(&findings);
		settings_free(settings);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ones_own_connection_is_looked_after),
		cmocka_unit_test(gateways_and_resolvers_are_looked_after),
		cmocka_unit_test(capacity_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
