/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The explanation as JSON and as tables for people. */
#include "cli/explanation.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "cli/ip_rules.h"
#include "cli/ip_show.h"
#include "cli/limits_print.h"
#include "dataplane/words.h"
#include "limit/settings.h"

enum { PORTS_SHOWN = 6 };

static json_t *buckets_json(const struct explanation *out)
{
	json_t *address = json_object(), *node = json_object();

	for (int at = 0; at < METERS; at++) {
		const struct address_meter *meter = &out->state.meters[at];
		const struct node_meter_state *whole = &out->node[at];
		json_t *one = json_pack(
			"{so sI sf sb}", "limit", limit_json(&meter->limit, 0), "remaining",
			meter->limit.capacity ? (json_int_t)meter->remaining : -1, "full_after_s",
			(double)meter->full_after_ns / 1e9, "dry_run", meter->is_dry);

		json_object_set_new(
			one, "word",
			meter->has_word ? json_sprintf("0x%016llx", (unsigned long long)meter->word)
					: json_null());
		json_object_set_new(address, meter_name(at), one);
		one = json_pack("{so sI sI sf sb}", "limit",
				limit_json(&whole->limit, whole->held_back), "remaining",
				whole->limit.capacity ? (json_int_t)whole->remaining : -1,
				"unspent", (json_int_t)whole->unspent, "full_after_s",
				(double)whole->full_after_ns / 1e9, "dry_run", whole->is_dry);
		json_object_set_new(node, meter_name(at), one);
	}
	return json_pack("{so so}", "per_ip", address, "node", node);
}

static json_t *fate_json(const struct explanation *out, const struct fate *fate)
{
	const struct verdict *verdict = &fate->verdict;
	json_t *would = json_array(), *one;

	for (int reason = 0; reason < REASONS; reason++)
		if (verdict->would & 1u << reason)
			json_array_append_new(would, json_string(reason_name(reason)));
	one = json_pack("{ss sb si ss ss so si si ss}", "packet", fate->packet, "opens",
			fate->question.opens, "bytes", (int)fate->question.bytes, "verdict",
			explanation_verdict(out, fate), "reason", reason_name(verdict->reason),
			"would", would, "cpus", (int)verdict->cpus, "cpus_admitting",
			(int)verdict->cpus_admitting, "sentence", fate->sentence);
	json_object_set_new(one, "port",
			    fate->question.port ? json_integer(fate->question.port) : json_null());
	json_object_set_new(one, "retry_after_s",
			    verdict->wait_ns == UINT64_MAX
				    ? json_integer(-1)
				    : json_real((double)verdict->wait_ns / 1e9));
	return one;
}

json_t *explanation_json(const struct explanation *out)
{
	char address[ADDRESS_TEXT_MAX], key[ADDRESS_TEXT_MAX], prefix[PREFIX_TEXT_MAX];
	const struct rule_found *found = &out->state.found;
	json_t *root, *fates = json_array();
	const char *never = explanation_never_charged(out);

	format_address(&out->address, address);
	format_address(&out->state.key, key);
	rule_prefix_text(&out->address, found->bits, prefix);
	for (size_t at = 0; at < out->fate_count; at++)
		json_array_append_new(fates, fate_json(out, &out->fates[at]));
	root = json_pack("{ss ss ss ss sb sO sb sb ss sb so so}", "address", address, "key", key,
			 "protocol", out->protocol_name, "rule", action_name(found->rule.action),
			 "by_hand", found->by_hand, "protected_ports", out->ports, "protects_all",
			 (out->slot.flags & CONFIG_PROTECT_ALL) != 0, "dry_run",
			 (out->slot.flags & CONFIG_DRY_RUN) != 0, "when_full",
			 when_full_name(out->slot.when_full), "set_is_full", out->state.set_is_full,
			 "buckets", buckets_json(out), "verdicts", fates);
	json_object_set_new(root, "prefix",
			    found->rule.action == PREFIX_NONE ? json_null() : json_string(prefix));
	json_object_set_new(root, "ends_in_s", rule_left_json(&found->rule, out->now_ns));
	json_object_set_new(root, "interface",
			    out->interface ? json_string(out->interface) : json_null());
	json_object_set_new(root, "attached", json_boolean(out->is_attached));
	json_object_set_new(root, "never_charged", never ? json_string(never) : json_null());
	return root;
}

static void print_protect(const struct explanation *out)
{
	size_t count = json_array_size(out->ports);

	printf("protect: ");
	if (out->slot.flags & CONFIG_PROTECT_ALL)
		printf("all");
	else if (out->protocol == IPPROTO_ICMP || out->protocol == IPPROTO_ICMPV6)
		printf("%s", out->slot.flags & CONFIG_PROTECT_ICMP ? "icmp" : "not icmp");
	else if (!count)
		printf("no %s port", out->protocol_name);
	for (size_t at = 0; !(out->slot.flags & CONFIG_PROTECT_ALL) && at < count; at++) {
		if (at == PORTS_SHOWN) {
			printf(" and %zu more", count - at);
			break;
		}
		printf("%s%s/%s", at ? ", " : "", out->protocol_name,
		       json_string_value(json_array_get(out->ports, at)));
	}
	if (out->slot.flags & CONFIG_DRY_RUN)
		printf("; dry run: nothing is refused");
	if (out->state.set_is_full)
		printf("; its set is full, when_full is %s", when_full_name(out->slot.when_full));
	printf("\n");
}

/* The address's word in the table, and whether the meter stops nothing. */
static void print_rest(bool is_dry, const struct address_meter *meter)
{
	if (meter && meter->has_word)
		printf("  word %u, 0x%016llx", meter->index, (unsigned long long)meter->word);
	printf("%s\n", is_dry ? "  dry run" : "");
}

static void print_buckets(const struct explanation *out)
{
	char limit[LIMIT_TEXT_MAX], wait[DURATION_TEXT_MAX], name[40];

	printf("%-20s %-30s %14s %10s %14s\n", "bucket", "limit", "left", "unspent",
	       "full again in");
	for (int at = 0; at < METERS; at++) {
		const struct address_meter *meter = &out->state.meters[at];

		if (!meter->limit.capacity)
			continue;
		limit_text(&meter->limit, at, 0, limit);
		format_duration(meter->full_after_ns, wait);
		(void)snprintf(name, sizeof(name), "per_ip %s", meter_name(at));
		printf("%-20s %-30s %14llu %10s %14s", name, limit,
		       (unsigned long long)meter->remaining, "", wait);
		print_rest(meter->is_dry, meter);
	}
	for (int at = 0; at < METERS; at++) {
		const struct node_meter_state *meter = &out->node[at];

		if (!meter->limit.capacity)
			continue;
		limit_text(&meter->limit, at, meter->held_back, limit);
		format_duration(meter->full_after_ns, wait);
		(void)snprintf(name, sizeof(name), "node %s", meter_name(at));
		printf("%-20s %-30s %14llu %10llu %14s", name, limit,
		       (unsigned long long)meter->remaining, (unsigned long long)meter->unspent,
		       wait);
		print_rest(meter->is_dry, NULL);
	}
}

void explanation_print(const struct explanation *out)
{
	const char *never = explanation_never_charged(out);
	enum prefix_action action = (enum prefix_action)out->state.found.rule.action;

	address_print_rule(&out->address, &out->state, out->now_ns);
	print_protect(out);
	/* The others are not held to any. */
	if (action != PREFIX_DENY && action != PREFIX_EXEMPT)
		print_buckets(out);
	printf("\n");
	for (size_t at = 0; at < out->fate_count; at++)
		printf("%s\n", out->fates[at].sentence);
	if (never)
		printf("%s\n", never);
}
