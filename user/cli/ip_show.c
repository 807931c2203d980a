/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sluice ip show: prints an address's state. */
#include "cli/ip_show.h"

#include <stdio.h>

#include "base/parse.h"
#include "cli/commands.h"
#include "cli/ip_rules.h"
#include "cli/limits_print.h"
#include "limit/settings.h"

static const char *const actions[] = {
	[PREFIX_NONE] = "none",
	[PREFIX_EXEMPT] = "exempt",
	[PREFIX_DENY] = "deny",
	[PREFIX_LIMIT] = "limit",
};

const char *action_name(enum prefix_action action)
{
	return actions[action <= PREFIX_LIMIT ? action : PREFIX_NONE];
}

void rule_prefix_text(const union address *address, uint32_t bits, char text[PREFIX_TEXT_MAX])
{
	union address prefix = *address;

	prefix.half[0] &= address_mask(bits);
	prefix.half[1] &= address_mask(bits > 64 ? bits - 64 : 0);
	format_prefix(&prefix, bits, text);
}

/* The command that shows the address's set, in the byte order of this machine. */
static void bpftool_command(const struct pins *pins, uint32_t set, char *text, size_t size)
{
	const unsigned char *byte = (const unsigned char *)&set;

	(void)snprintf(text, size,
		       "bpftool map lookup pinned %s/ip_buckets key 0x%02x 0x%02x 0x%02x 0x%02x",
		       pins->set, byte[0], byte[1], byte[2], byte[3]);
}

json_t *address_json(const struct pins *pins, const union address *address,
		     const struct address_state *state, uint64_t now_ns)
{
	char text[PREFIX_TEXT_MAX], key[ADDRESS_TEXT_MAX], command[PATH_MAX + 96];
	json_t *root, *meters = json_object();

	for (int at = 0; at < METERS; at++) {
		const struct address_meter *meter = &state->meters[at];
		json_t *one = json_pack("{so sf sI sf}", "limit", limit_json(&meter->limit, 0),
					"debt", meter->debt, "remaining",
					meter->limit.capacity ? (json_int_t)meter->remaining : -1,
					"full_after_s", (double)meter->full_after_ns / 1e9);
		char word[24];

		(void)snprintf(word, sizeof(word), "0x%016llx", (unsigned long long)meter->word);
		json_object_set_new(one, "word", meter->has_word ? json_string(word) : json_null());
		json_object_set_new(one, "word_index",
				    meter->has_word ? json_integer(meter->index) : json_null());
		json_object_set_new(meters, meter_name(at), one);
	}
	format_address(&state->key, key);
	bpftool_command(pins, state->place.set, command, sizeof(command));
	root = json_pack("{ss si ss sb sb ss so}", "key", key, "set", (int)state->place.set, "rule",
			 action_name(state->found.rule.action), "by_hand", state->found.by_hand,
			 "set_is_full", state->set_is_full, "bpftool", command, "meters", meters);
	format_address(address, key);
	json_object_set_new(root, "address", json_string(key));
	rule_prefix_text(address, state->found.bits, text);
	json_object_set_new(root, "ends_in_s", rule_left_json(&state->found.rule, now_ns));
	json_object_set_new(root, "prefix",
			    state->found.rule.action == PREFIX_NONE ? json_null()
								    : json_string(text));
	return root;
}

void address_print_rule(const union address *address, const struct address_state *state,
			uint64_t now_ns)
{
	char address_text[ADDRESS_TEXT_MAX], key[ADDRESS_TEXT_MAX], prefix[PREFIX_TEXT_MAX];
	char left[RULE_LEFT_TEXT_MAX];

	format_address(address, address_text);
	format_address(&state->key, key);
	rule_prefix_text(address, state->found.bits, prefix);
	rule_left_text(&state->found.rule, now_ns, left);
	printf("%s (counts as %s): ", address_text, key);
	if (state->found.rule.action == PREFIX_NONE)
		printf("held to per_ip\n");
	else
		printf("%s, by the rule for %s %s%s\n", action_name(state->found.rule.action),
		       prefix, state->found.by_hand ? "given by hand" : "of the configuration",
		       left);
}

void address_print(const struct pins *pins, const union address *address,
		   const struct address_state *state, uint64_t now_ns)
{
	char limit[LIMIT_TEXT_MAX], wait[DURATION_TEXT_MAX], command[PATH_MAX + 96];

	address_print_rule(address, state, now_ns);
	printf("%-12s %-30s %12s %12s %14s\n", "meter", "limit", "debt", "admits now",
	       "full again in");
	for (int at = 0; at < METERS; at++) {
		const struct address_meter *meter = &state->meters[at];

		limit_text(&meter->limit, at, 0, limit);
		format_duration(meter->full_after_ns, wait);
		if (!meter->limit.capacity)
			printf("%-12s %-30s\n", meter_name(at), limit);
		else
			printf("%-12s %-30s %12.1f %12llu %14s\n", meter_name(at), limit,
			       meter->debt, (unsigned long long)meter->remaining, wait);
	}
	if (state->set_is_full)
		printf("its set is full: a meter without a word falls to when_full\n");
	bpftool_command(pins, state->place.set, command, sizeof(command));
	printf("\n%s\n", command);
	for (int at = 0; at < METERS; at++)
		if (state->meters[at].has_word)
			printf("  %s: word %u, 0x%016llx%s\n", meter_name(at),
			       state->meters[at].index, (unsigned long long)state->meters[at].word,
			       state->meters[at].is_claimed ? " (being taken)" : "");
}
