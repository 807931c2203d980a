/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sluice status: where it is attached, what is in force, how full the table is. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/daemon_client.h"
#include "cli/limits_print.h"
#include "dataplane/attach.h"
#include "dataplane/obstacles.h"
#include "dataplane/others.h"

struct state {
	struct link_state links[ATTACH_INTERFACES_MAX];
	size_t link_count;
	struct counter counters[REASONS];
	uint64_t notes[NOTES];
	uint64_t unspent[METERS];
	struct occupancy occupancy;
	unsigned cpus;
};

static int gather(const struct pins *pins, const struct maps *maps, struct state *state)
{
	int err = links_list(pins, state->links, ATTACH_INTERFACES_MAX, &state->link_count);

	if (!err)
		err = maps_counters(maps, state->counters);
	if (!err)
		err = maps_notes(maps, state->notes);
	if (!err)
		err = maps_unspent(maps, state->unspent);
	maps_occupancy(maps, clock_monotonic_ns(), &state->occupancy);
	state->cpus = maps_cpus();
	return err;
}

static json_t *links_json(const struct state *state)
{
	json_t *array = json_array();

	for (size_t at = 0; at < state->link_count; at++) {
		const struct link_state *link = &state->links[at];

		json_array_append_new(
			array,
			json_pack("{ss sI ss ss ss ss sb ss? sI ss}", "name", link->name, "ifindex",
				  (json_int_t)link->ifindex, "mode", attach_mode_name(link->mode),
				  "rung", rung_name(link->rung), "wanted",
				  attach_mode_name(link->wanted), "passed_over", link->passed_over,
				  "attached", link->attached, "reason", link->reason, "program_id",
				  (json_int_t)link->program_id, "program", link->program));
	}
	return array;
}

static json_t *limits_json(const struct config_slot *slot, unsigned cpus)
{
	json_t *ip = json_object(), *node = json_object();

	for (int meter = 0; meter < METERS; meter++) {
		json_object_set_new(ip, meter_name(meter), limit_json(&slot->ip[meter], 0));
		json_object_set_new(
			node, meter_name(meter),
			limit_json(&slot->node[meter].limit, slot->node[meter].slice * cpus));
	}
	return json_pack("{so so}", "per_ip", ip, "node", node);
}

static json_t *status_json(const struct state *state, const struct maps *maps)
{
	const struct config_slot *slot = maps_slot(maps);
	const struct occupancy *table = &state->occupancy;
	json_t *root = json_object();

	json_object_set_new(root, "abi", json_integer(SLUICE_ABI_VERSION));
	json_object_set_new(root, "interfaces", links_json(state));
	if (slot) {
		json_object_set_new(root, "generation", json_integer((json_int_t)slot->generation));
		json_object_set_new(root, "dry_run", json_boolean(slot->flags & CONFIG_DRY_RUN));
		json_object_set_new(root, "when_full",
				    json_string(when_full_name(slot->when_full)));
		json_object_set_new(root, "ipv6_prefix", json_integer(slot->ipv6_prefix));
		json_object_set_new(root, "limits", limits_json(slot, state->cpus));
	}
	json_object_set_new(root, "table",
			    json_pack("{sI sI sI sI}", "words", (json_int_t)IP_SETS * SET_WORDS,
				      "in_debt", (json_int_t)table->in_debt, "passed",
				      (json_int_t)table->passed, "sets_full",
				      (json_int_t)table->sets_full));
	json_object_set_new(root, "counters", counters_json(state->counters));
	json_object_set_new(root, "notes", notes_json(state->notes));
	return root;
}

static void print_links(const struct state *state)
{
	if (!state->link_count)
		printf("not attached to any interface\n");
	for (size_t at = 0; at < state->link_count; at++) {
		const struct link_state *link = &state->links[at];

		if (link->attached)
			printf("%-16s attached, %s, program %s (id %u)\n",
			       link->name[0] ? link->name : "(other netns)", rung_words(link->rung),
			       link->program[0] ? link->program : "?", link->program_id);
		else if (link->name[0])
			printf("%-16s not attached: %s\n", link->name, link->reason);
		else
			printf("ifindex %-8u not attached: %s\n", link->ifindex, link->reason);
		if (link->passed_over[0])
			printf("%-16s passed over %s\n", "", link->passed_over);
	}
}

static void print_limits(const struct config_slot *slot, unsigned cpus)
{
	char ip[LIMIT_TEXT_MAX], node[LIMIT_TEXT_MAX];

	printf("\n%-12s %-34s %s\n", "limit", "per address", "node");
	for (int meter = 0; meter < METERS; meter++) {
		limit_text(&slot->ip[meter], meter, 0, ip);
		limit_text(&slot->node[meter].limit, meter, slot->node[meter].slice * cpus, node);
		printf("%-12s %-34s %s\n", meter_name(meter), ip, node);
	}
	printf("\nconfiguration %llu, when full: %s, IPv6 by /%u%s\n",
	       (unsigned long long)slot->generation, when_full_name(slot->when_full),
	       slot->ipv6_prefix,
	       slot->flags & CONFIG_DRY_RUN ? ", dry run: nothing is refused" : "");
}

/* Sets that this sluice does not read, but that limit packets all the same. */
static void print_others(const struct pins *pins)
{
	struct other_set others[OTHER_VERSIONS_MAX];
	size_t count = 0;

	(void)others_list(pins, others, &count);
	for (size_t at = 0; at < count; at++)
		printf("\nversion %u of the maps: %s; sluice attach takes over what it holds\n",
		       others[at].version, others[at].held ? others[at].names : "no interface");
}

static json_t *others_json(const struct pins *pins)
{
	struct other_set others[OTHER_VERSIONS_MAX];
	json_t *array = json_array();
	size_t count = 0;

	(void)others_list(pins, others, &count);
	for (size_t at = 0; at < count; at++)
		json_array_append_new(array, json_pack("{sI sI ss}", "version",
						       (json_int_t)others[at].version, "held",
						       (json_int_t)others[at].held, "names",
						       others[at].names));
	return array;
}

static void print_sums(const struct state *state)
{
	uint64_t refused = 0, would = 0, passed = 0;

	for (int reason = 0; reason < REASONS; reason++) {
		if (!reason_is_refusal((uint32_t)reason)) {
			passed += state->counters[reason].packets;
			continue;
		}
		refused += state->counters[reason].packets;
		would += state->counters[reason].would_packets;
	}
	printf("table: %llu of %u words in debt, %llu of %u sets full\n",
	       (unsigned long long)state->occupancy.in_debt, IP_SETS * SET_WORDS,
	       (unsigned long long)state->occupancy.sets_full, IP_SETS);
	printf("packets: %llu passed (%llu of them charged), %llu refused, %llu would have been\n",
	       (unsigned long long)passed,
	       (unsigned long long)state->counters[REASON_ADMITTED].packets,
	       (unsigned long long)refused, (unsigned long long)would);
}

static void print_daemon(const json_t *daemon)
{
	if (!daemon) {
		printf("daemon: not running\n");
		return;
	}
	printf("daemon: %lld of %lld tenants have a bucket, %lld overrides, %lld leases\n",
	       (long long)json_integer_value(json_object_get(daemon, "tenants")),
	       (long long)json_integer_value(json_object_get(daemon, "tenant_room")),
	       (long long)json_integer_value(json_object_get(daemon, "overrides")),
	       (long long)json_integer_value(json_object_get(daemon, "leases")));
}

static bool has_pins(const struct cli *cli, struct pins *pins)
{
	struct trouble trouble;

	return !pins_init(pins, cli->bpffs, &trouble) && pins_exist(pins);
}

/* With `dataplane: off`, or where nothing is attached. */
static int print_daemon_alone(const struct cli *cli, const struct pins *pins, json_t *daemon)
{
	if (cli->json)
		return print_json(json_pack("{s[] so so}", "interfaces", "other_versions",
					    others_json(pins), "daemon", daemon));
	printf("not attached to any interface\n");
	print_others(pins);
	print_daemon(daemon);
	json_decref(daemon);
	return EXIT_DONE;
}

static int run_status(struct cli *cli, int argc, char **argv)
{
	struct state state = {};
	struct trouble trouble = {};
	struct maps maps;
	struct pins pins;
	json_t *daemon;
	int err, code;

	(void)argv;
	if (argc)
		return misused(&command_status, "it takes no argument");
	daemon = daemon_numbers(cli);
	if (daemon && !has_pins(cli, &pins))
		return print_daemon_alone(cli, &pins, daemon);
	code = open_maps(cli, false, &pins, &maps);
	if (code) {
		json_decref(daemon);
		return code;
	}
	err = gather(&pins, &maps, &state);
	if (err) {
		trouble_set(&trouble, 0, "cannot read the maps: %s", strerror(-err));
		code = complain(err, &trouble);
	} else if (cli->json) {
		json_t *root = status_json(&state, &maps);

		json_object_set_new(root, "other_versions", others_json(&pins));
		json_object_set(root, "daemon", daemon ? daemon : json_null());
		code = print_json(root);
	} else {
		print_links(&state);
		print_others(&pins);
		if (maps_slot(&maps))
			print_limits(maps_slot(&maps), state.cpus);
		else
			printf("\nno configuration is in force: every packet passes\n");
		print_sums(&state);
		print_daemon(daemon);
	}
	json_decref(daemon);
	close_maps(&pins, &maps);
	return code;
}

const struct command command_status = {
	.name = "status",
	.arguments = "",
	.summary = "where it is attached, what is in force, how full the table is",
	.run = run_status,
};
