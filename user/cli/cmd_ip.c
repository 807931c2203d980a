/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sluice ip: one address's state, and what is said by hand about prefixes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/ip_show.h"
#include "cli/limits_print.h"
#include "dataplane/rules.h"

static const struct option_row ip_options[] = {
	[METER_CONNECTIONS] = { "connections", 0, "RATE:BURST", "with limit: connections a second" },
	[METER_PACKETS] = { "packets", 0, "RATE:BURST", "with limit: packets a second" },
	[METER_BYTES] = { "bytes", 0, "RATE:BURST", "with limit: bytes a second, as 10MB:20MB" },
	{},
};

static int fail(const char *what, int err)
{
	struct trouble trouble;

	trouble_set(&trouble, 0, "%s: %s", what, strerror(-err));
	return complain(err, &trouble);
}

static void format_key(const struct prefix_key *key, char text[PREFIX_TEXT_MAX])
{
	union address address = prefix_key_address(key);

	format_prefix(&address, key->bits, text);
}

static int no_configuration(void)
{
	struct trouble trouble;

	trouble_set(&trouble, 0, "no configuration is in force");
	trouble_advise(&trouble, "attach with one: sluice attach IFACE --config FILE");
	return complain(-ENOENT, &trouble);
}

static int ip_show(struct cli *cli, const union address *address)
{
	struct address_state state;
	struct maps maps;
	struct pins pins;
	int code = open_maps(cli, false, &pins, &maps);

	if (code)
		return code;
	if (address_look(&maps, address, clock_monotonic_ns(), &state))
		code = no_configuration();
	else if (cli->json)
		code = print_json(address_json(&pins, address, &state));
	else
		address_print(&pins, address, &state);
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
		code = no_configuration();
	else if (cli->json)
		code = print_json(json_pack("{ss si}", "address", text, "words_cleared", (int)words));
	else
		printf("%s: %u debt%s forgotten\n", text, words, words == 1 ? "" : "s");
	close_maps(&pins, &maps);
	return code;
}

/* RATE:BURST, for bytes with units. */
static int parse_limit(const char *text, enum meter meter, struct rate_limit *out)
{
	const char *colon = strchr(text, ':');
	char rate[40];
	int err;

	if (!colon || (size_t)(colon - text) >= sizeof(rate))
		return -EINVAL;
	(void)snprintf(rate, sizeof(rate), "%.*s", (int)(colon - text), text);
	if (meter == METER_BYTES) {
		err = parse_size(rate, &out->rate);
		return err ? err : parse_size_whole(colon + 1, &out->burst);
	}
	err = parse_decimal(rate, &out->rate);
	return err ? err : parse_uint(colon + 1, 1, UINT64_MAX, &out->burst);
}

/* The rule that the options describe; the exit code after a message if they do not. */
static int read_limits(const struct cli *cli, struct prefix_rule *rule)
{
	struct setting_prefix setting = { .action = PREFIX_LIMIT };
	bool any = false;

	for (int meter = 0; meter < METERS; meter++) {
		const char *text = cli->values[meter];
		struct gcra_limit built;
		uint64_t longest;
		int err;

		if (!text)
			continue;
		any = true;
		err = parse_limit(text, meter, &setting.limit[meter]);
		if (err || !setting.limit[meter].burst)
			return misused(&command_ip, "--%s takes RATE:BURST, not %s",
				       ip_options[meter].name, text);
		if (meter == METER_BYTES && setting.limit[meter].burst < BURST_BYTES_MIN)
			return misused(&command_ip, "--bytes: the burst must be at least %d, or a "
				       "full-sized packet could never pass", BURST_BYTES_MIN);
		err = limit_build(&setting.limit[meter],
				  meter == METER_BYTES ? BUCKET_WORD_BYTES : BUCKET_WORD, &built,
				  &longest);
		if (err == -EOVERFLOW && !longest)
			return misused(&command_ip, "--%s: the rate is too low: a bucket can be in debt "
				       "for 26 days at most", ip_options[meter].name);
		if (err == -EOVERFLOW)
			return misused(&command_ip, "--%s: at this rate the burst can be at most %llu",
				       ip_options[meter].name, (unsigned long long)longest);
		if (err)
			return misused(&command_ip, "--%s: %s cannot be enforced exactly enough",
				       ip_options[meter].name, text);
	}
	if (!any)
		return misused(&command_ip, "limit wants --connections, --packets or --bytes");
	return rules_prefix(&setting, rule) ? EXIT_FAILED : 0;
}

static int ip_rule(struct cli *cli, enum prefix_action action, const struct prefix_key *key)
{
	struct prefix_rule rule = { .action = action };
	char prefix[PREFIX_TEXT_MAX];
	struct maps maps;
	struct pins pins;
	int err, code = action == PREFIX_LIMIT ? read_limits(cli, &rule) : 0;

	if (!code)
		code = open_maps(cli, true, &pins, &maps);
	if (code)
		return code;
	format_key(key, prefix);
	err = maps_slot(&maps) ? maps_prefix_set(&maps, key, &rule) : -ENODATA;
	if (err == -ENODATA) {
		code = no_configuration();
	} else if (err == -ENOENT) {
		fprintf(stderr, "sluice: nothing was said by hand about %s\n"
				"  -> sluice ip list shows what was; the configuration's rules are "
				"changed there\n", prefix);
		code = EXIT_FAILED;
	} else if (err) {
		code = fail("the list cannot be changed", err);
	} else if (cli->json) {
		code = print_json(json_pack("{ss ss}", "prefix", prefix, "rule", action_name(action)));
	} else {
		printf("%s: %s\n", prefix, action == PREFIX_NONE ? "cleared" : action_name(action));
	}
	close_maps(&pins, &maps);
	return code;
}

static void list_rule(json_t *array, const struct prefix_key *key, const struct prefix_rule *rule,
		      bool by_hand, bool in_force)
{
	char prefix[PREFIX_TEXT_MAX];
	json_t *one;

	format_key(key, prefix);
	one = json_pack("{ss ss sb sb}", "prefix", prefix, "rule", action_name(rule->action), "by_hand",
			by_hand, "in_force", in_force);
	for (int meter = 0; rule->action == PREFIX_LIMIT && meter < METERS; meter++)
		json_object_set_new(one, meter_name(meter), limit_json(&rule->limit[meter], 0));
	json_array_append_new(array, one);
}

static int list_entry(const struct prefix_key *key, const struct prefix_entry *entry, void *data)
{
	if (entry->by_hand.action != PREFIX_NONE)
		list_rule(data, key, &entry->by_hand, true, true);
	if (entry->configured.action != PREFIX_NONE)
		list_rule(data, key, &entry->configured, false,
			  entry->by_hand.action == PREFIX_NONE);
	return 0;
}

static void print_list(const json_t *rules)
{
	size_t at;
	json_t *rule;

	printf("%-44s %-8s %-14s %s\n", "prefix", "rule", "from", "limits");
	json_array_foreach(rules, at, rule) {
		const char *from = "configuration";

		if (json_is_true(json_object_get(rule, "by_hand")))
			from = "by hand";
		else if (!json_is_true(json_object_get(rule, "in_force")))
			from = "overridden";
		printf("%-44s %-8s %s", json_string_value(json_object_get(rule, "prefix")),
		       json_string_value(json_object_get(rule, "rule")), from);
		for (int meter = 0; meter < METERS; meter++) {
			const json_t *limit = json_object_get(rule, meter_name(meter));

			char rate[RATE_TEXT_MAX];

			if (!json_is_object(limit))
				continue;
			if (meter == METER_BYTES)
				format_size(json_number_value(json_object_get(limit, "rate")), rate);
			else
				format_rate(json_number_value(json_object_get(limit, "rate")), rate);
			printf(" %s %s%s burst %lld", meter_name(meter), rate,
			       meter == METER_BYTES ? "/s" : "",
			       (long long)json_integer_value(json_object_get(limit, "burst")));
		}
		printf("\n");
	}
}

static int ip_list(struct cli *cli)
{
	json_t *rules = json_array();
	struct maps maps;
	struct pins pins;
	int err, code = open_maps(cli, false, &pins, &maps);

	if (code) {
		json_decref(rules);
		return code;
	}
	err = maps_each_prefix(&maps, maps.config->active & 1, list_entry, rules);
	if (err)
		code = fail("the list cannot be read", err);
	else if (!cli->json)
		print_list(rules);
	if (!err && cli->json)
		code = print_json(json_pack("{so}", "rules", rules));
	else
		json_decref(rules);
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
		return misused(&command_ip, "%s has bits set beyond its length; did you mean %s?", text,
			       meant);
	}
	if (err)
		return misused(&command_ip, "%s is not a prefix, as 192.0.2.0/24 or 2001:db8::/32", text);
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
	if (!strcmp(argv[0], "show") || !strcmp(argv[0], "reset"))
		return run_on_address(cli, argv[0], argv[1]);
	for (size_t at = 0; at < sizeof(rules) / sizeof(rules[0]); at++)
		if (!strcmp(argv[0], rules[at].word))
			return run_on_prefix(cli, rules[at].action, argv[1]);
	return misused(&command_ip, "it cannot %s", argv[0]);
}

const struct command command_ip = {
	.name = "ip",
	.arguments = "show|reset ADDRESS | exempt|deny|limit|clear PREFIX | list",
	.summary = "one address's buckets; rules for prefixes, given by hand",
	.options = ip_options,
	.run = run_ip,
};
