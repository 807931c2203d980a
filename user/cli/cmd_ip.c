/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sluice ip: what it can do, and one address's state. Rules are in ip_rules.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/ip_explain.h"
#include "cli/ip_rules.h"
#include "cli/ip_show.h"

const struct option_row ip_options[] = {
	[METER_CONNECTIONS] = { "connections", 0, "RATE:BURST",
				"with limit: connections a second" },
	[METER_PACKETS] = { "packets", 0, "RATE:BURST", "with limit: packets a second" },
	[METER_BYTES] = { "bytes", 0, "RATE:BURST", "with limit: bytes a second, as 10MB:20MB" },
	[RULE_TTL] = { "ttl", 0, "DURATION",
		       "with exempt, deny, limit: how long it lasts, as 10m" },
	[EXPLAIN_PORT] = { "port", 0, "PORT", "with explain: the port it comes to" },
	[EXPLAIN_PROTOCOL] = { "proto", 0, "PROTOCOL", "with explain: tcp, udp or icmp (tcp)" },
	[EXPLAIN_INTERFACE] = { "iface", 0, "IFACE", "with explain: the interface it comes in on" },
	[EXPLAIN_SIZE] = { "size", 0, "SIZE",
			   "with explain: bytes of the packet, from the IP header on" },
	{},
};

int ip_no_configuration(void)
{
	struct trouble trouble;

	trouble_set(&trouble, 0, "no configuration is in force");
	trouble_advise(&trouble, "attach with one: sluice attach IFACE --config FILE");
	return complain(-ENOENT, &trouble);
}

static int ip_show(struct cli *cli, const union address *address)
{
	uint64_t now_ns = clock_monotonic_ns();
	struct address_state state;
	struct maps maps;
	struct pins pins;
	int code = open_maps(cli, false, &pins, &maps);

	if (code)
		return code;
	if (address_look(&maps, address, now_ns, &state))
		code = ip_no_configuration();
	else if (cli->json)
		code = print_json(address_json(&pins, address, &state, now_ns));
	else
		address_print(&pins, address, &state, now_ns);
	close_maps(&pins, &maps);
	return code;
}

static int ip_reset(struct cli *cli, const union address *address)
{
	char text[ADDRESS_TEXT_MAX];
	unsigned words;
	struct maps maps;
	struct pins pins;
	int code = open_maps(cli, true, &pins, &maps);

	if (code)
		return code;
	format_address(address, text);
	if (address_reset(&maps, address, &words))
		code = ip_no_configuration();
	else if (cli->json)
		code = print_json(
			json_pack("{ss si}", "address", text, "words_cleared", (int)words));
	else
		printf("%s: %u debt%s forgotten\n", text, words, words == 1 ? "" : "s");
	close_maps(&pins, &maps);
	return code;
}

static int run_on_address(struct cli *cli, const char *what, const char *text)
{
	union address address;

	if (parse_address(text, &address))
		return misused(&command_ip, "%s is not an IPv4 or IPv6 address", text);
	return strcmp(what, "show") ? ip_reset(cli, &address) : ip_show(cli, &address);
}

static int run_on_prefix(struct cli *cli, enum prefix_action action, const char *text)
{
	char meant[PREFIX_TEXT_MAX];
	union address address;
	struct prefix_key key;
	uint32_t bits;
	int err = parse_prefix(text, &address, &bits);

	if (err == -EDOM && !parse_prefix_loose(text, &address, &bits)) {
		format_prefix(&address, bits, meant);
		return misused(&command_ip, "%s has bits set beyond its length; did you mean %s?",
			       text, meant);
	}
	if (err)
		return misused(&command_ip, "%s is not a prefix, as 192.0.2.0/24 or 2001:db8::/32",
			       text);
	key = prefix_key_of(&address, bits);
	return ip_rule(cli, action, &key);
}

static int run_ip(struct cli *cli, int argc, char **argv)
{
	static const struct {
		const char *word;
		enum prefix_action action;
	} rules[] = {
		{ "exempt", PREFIX_EXEMPT },
		{ "deny", PREFIX_DENY },
		{ "limit", PREFIX_LIMIT },
		{ "clear", PREFIX_NONE },
	};

	if (argc == 1 && !strcmp(argv[0], "list"))
		return ip_list(cli);
	if (argc != 2)
		return misused(&command_ip, "say what to do, and with which address or prefix");
	if (!strcmp(argv[0], "explain"))
		return ip_explain(cli, argv[1]);
	if (!strcmp(argv[0], "show") || !strcmp(argv[0], "reset"))
		return run_on_address(cli, argv[0], argv[1]);
	for (size_t at = 0; at < sizeof(rules) / sizeof(rules[0]); at++)
		if (!strcmp(argv[0], rules[at].word))
			return run_on_prefix(cli, rules[at].action, argv[1]);
	return misused(&command_ip, "it cannot %s", argv[0]);
}

const struct command command_ip = {
	.name = "ip",
	.arguments = "show|explain|reset ADDRESS | exempt|deny|limit|clear PREFIX | list",
	.summary = "one address's buckets; rules for prefixes, given by hand",
	.options = ip_options,
	.run = run_ip,
};
