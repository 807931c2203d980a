/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sluice ip exempt, deny, limit, clear and list: what is said by hand about prefixes. */
#include "cli/ip_rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "cli/limits_print.h"
#include "dataplane/rules.h"

enum { NS_PER_S = 1000000000 };

static void format_key(const struct prefix_key *key, char text[PREFIX_TEXT_MAX])
{
	union address address = prefix_key_address(key);

	format_prefix(&address, key->bits, text);
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
			return misused(&command_ip,
				       "--bytes: the burst must be at least %d, or a "
				       "full-sized packet could never pass",
				       BURST_BYTES_MIN);
		err = limit_build(&setting.limit[meter],
				  meter == METER_BYTES ? BUCKET_WORD_BYTES : BUCKET_WORD, &built,
				  &longest);
		if (err == -EOVERFLOW && !longest)
			return misused(&command_ip,
				       "--%s: the rate is too low: a bucket can be in debt "
				       "for 26 days at most",
				       ip_options[meter].name);
		if (err == -EOVERFLOW)
			return misused(&command_ip,
				       "--%s: at this rate the burst can be at most %llu",
				       ip_options[meter].name, (unsigned long long)longest);
		if (err)
			return misused(&command_ip, "--%s: %s cannot be enforced exactly enough",
				       ip_options[meter].name, text);
	}
	if (!any)
		return misused(&command_ip, "limit wants --connections, --packets or --bytes");
	return rules_prefix(&setting, rule) ? EXIT_FAILED : 0;
}

/* When a rule ends that is to last so long: whole seconds, so it lasts up to one longer. */
static int read_ttl(const char *text, uint64_t now_ns, struct prefix_rule *rule)
{
	uint64_t ttl_ns, end_s;

	if (parse_duration(text, &ttl_ns) || !ttl_ns)
		return misused(&command_ip,
			       "--ttl takes how long the rule is to last, as 10m or 1h");
	end_s = (now_ns + ttl_ns + NS_PER_S - 1) / NS_PER_S;
	if (end_s > UINT32_MAX)
		return misused(&command_ip, "--ttl can be 100 years at most; without it the rule "
					    "stays until it is cleared");
	rule->expires_s = (uint32_t)end_s;
	return 0;
}

/* How long a rule has still to go; 0: it never ends. */
static uint64_t left_ns(const struct prefix_rule *rule, uint64_t now_ns)
{
	uint64_t end_ns = (uint64_t)rule->expires_s * NS_PER_S;

	return rule->expires_s && end_ns > now_ns ? end_ns - now_ns : 0;
}

json_t *rule_left_json(const struct prefix_rule *rule, uint64_t now_ns)
{
	return rule->expires_s ? json_real((double)left_ns(rule, now_ns) / NS_PER_S) : json_null();
}

void rule_left_text(const struct prefix_rule *rule, uint64_t now_ns, char text[RULE_LEFT_TEXT_MAX])
{
	char left[DURATION_TEXT_MAX];

	format_duration(left_ns(rule, now_ns), left);
	(void)snprintf(text, RULE_LEFT_TEXT_MAX, "%s%s", rule->expires_s ? ", ends in " : "",
		       rule->expires_s ? left : "");
}

static int say_nothing_was_said(const char *prefix)
{
	struct trouble trouble;

	trouble_set(&trouble, 0, "nothing was said by hand about %s", prefix);
	trouble_advise(&trouble, "sluice ip list shows what was; the configuration's rules are "
				 "changed there");
	return complain(-EINVAL, &trouble);
}

static int say_rule(const struct cli *cli, const char *prefix, const struct prefix_rule *rule,
		    uint64_t now_ns)
{
	const char *word = rule->action == PREFIX_NONE ? "cleared" : action_name(rule->action);
	char left[RULE_LEFT_TEXT_MAX];

	if (cli->json)
		return print_json(json_pack("{ss ss so}", "prefix", prefix, "rule",
					    action_name(rule->action), "ends_in_s",
					    rule_left_json(rule, now_ns)));
	rule_left_text(rule, now_ns, left);
	printf("%s: %s%s\n", prefix, word, left);
	return EXIT_DONE;
}

static int fail(const char *what, int err)
{
	struct trouble trouble;

	trouble_set(&trouble, 0, "%s: %s", what, strerror(-err));
	if (err == -ENOSPC)
		trouble_advise(&trouble,
			       "the lists hold %d prefixes at most: clear some, or name "
			       "wider ones",
			       PREFIXES_MAX);
	return complain(err, &trouble);
}

static int set_rule(struct cli *cli, const struct prefix_key *key, const struct prefix_rule *rule,
		    uint64_t now_ns)
{
	char prefix[PREFIX_TEXT_MAX];
	struct maps maps;
	struct pins pins;
	int err, code = open_maps(cli, true, &pins, &maps);

	if (code)
		return code;
	format_key(key, prefix);
	err = maps_slot(&maps) ? maps_prefix_set(&maps, key, rule, now_ns) : -ENODATA;
	if (err == -ENODATA)
		code = ip_no_configuration();
	else if (err == -ENOENT)
		code = say_nothing_was_said(prefix);
	else if (err)
		code = fail("the list cannot be changed", err);
	else
		code = say_rule(cli, prefix, rule, now_ns);
	close_maps(&pins, &maps);
	return code;
}

/* Options that do not go with what is to be done would be left unheeded, and nobody would notice.
 */
static int check_options(const struct cli *cli, enum prefix_action action)
{
	if (action == PREFIX_NONE && cli->values[RULE_TTL])
		return misused(&command_ip, "clear takes no --ttl: it takes the rule back now");
	for (int meter = 0; action != PREFIX_LIMIT && meter < METERS; meter++)
		if (cli->values[meter])
			return misused(&command_ip, "--%s goes with limit only",
				       ip_options[meter].name);
	return 0;
}

int ip_rule(struct cli *cli, enum prefix_action action, const struct prefix_key *key)
{
	struct prefix_rule rule = { .action = (uint16_t)action };
	uint64_t now_ns = clock_monotonic_ns();
	int code = check_options(cli, action);

	if (!code && action == PREFIX_LIMIT)
		code = read_limits(cli, &rule);
	if (!code && cli->values[RULE_TTL])
		code = read_ttl(cli->values[RULE_TTL], now_ns, &rule);
	return code ? code : set_rule(cli, key, &rule, now_ns);
}

/* ---- list */

struct listing {
	json_t *rules;
	uint64_t now_ns;
};

static void list_rule(const struct listing *listing, const struct prefix_key *key,
		      const struct prefix_rule *rule, bool by_hand, bool in_force)
{
	char prefix[PREFIX_TEXT_MAX];
	json_t *one;

	format_key(key, prefix);
	one = json_pack("{ss ss sb sb so}", "prefix", prefix, "rule", action_name(rule->action),
			"by_hand", by_hand, "in_force", in_force, "ends_in_s",
			rule_left_json(rule, listing->now_ns));
	for (int meter = 0; rule->action == PREFIX_LIMIT && meter < METERS; meter++)
		json_object_set_new(one, meter_name(meter), limit_json(&rule->limit[meter], 0));
	json_array_append_new(listing->rules, one);
}

static int list_entry(const struct prefix_key *key, const struct prefix_entry *entry, void *data)
{
	const struct listing *listing = data;
	bool by_hand = entry->by_hand.action != PREFIX_NONE &&
		       !prefix_rule_has_ended(&entry->by_hand, listing->now_ns);

	if (by_hand)
		list_rule(listing, key, &entry->by_hand, true, true);
	if (entry->configured.action != PREFIX_NONE)
		list_rule(listing, key, &entry->configured, false, !by_hand);
	return 0;
}

static void print_limits(const json_t *rule)
{
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
}

static void print_list(const json_t *rules)
{
	size_t at;
	json_t *rule;

	printf("%-44s %-8s %-14s %-10s %s\n", "prefix", "rule", "from", "ends in", "limits");
	json_array_foreach(rules, at, rule)
	{
		const json_t *left = json_object_get(rule, "ends_in_s");
		const char *from = "configuration";
		char ends[DURATION_TEXT_MAX] = "never";

		if (json_is_true(json_object_get(rule, "by_hand")))
			from = "by hand";
		else if (!json_is_true(json_object_get(rule, "in_force")))
			from = "overridden";
		if (json_is_number(left))
			format_duration((uint64_t)(json_number_value(left) * NS_PER_S), ends);
		printf("%-44s %-8s %-14s %-10s", json_string_value(json_object_get(rule, "prefix")),
		       json_string_value(json_object_get(rule, "rule")), from, ends);
		print_limits(rule);
		printf("\n");
	}
}

int ip_list(struct cli *cli)
{
	struct listing listing = { .rules = json_array(), .now_ns = clock_monotonic_ns() };
	struct maps maps;
	struct pins pins;
	int err, code = open_maps(cli, false, &pins, &maps);

	if (code) {
		json_decref(listing.rules);
		return code;
	}
	err = maps_each_prefix(&maps, maps.config->active & 1, list_entry, &listing);
	if (err)
		code = fail("the list cannot be read", err);
	else if (!cli->json)
		print_list(listing.rules);
	if (!err && cli->json)
		code = print_json(json_pack("{so}", "rules", listing.rules));
	else
		json_decref(listing.rules);
	close_maps(&pins, &maps);
	return code;
}
