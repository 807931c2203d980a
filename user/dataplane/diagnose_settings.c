/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Judges a configuration by whom it would meet: the session of who asks, and the addresses that the
 * host cannot do without. The order of a verdict is that of bpf/classify.h: lists first, by the
 * longest prefix and for every port; then `protect`.
 */
#include "dataplane/diagnose.h"

#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "limit/settings_figures.h"

enum {
	/* What Linux sends its own questions from, and gets answers to. */
	EPHEMERAL_FIRST = 32768,
	EPHEMERAL_LAST = 60999,
	ONE_IN = 8, /* of the words in debt: then one set in 100 000 is full; docs/operations.md,
		       Sizing */
};

static bool contains(const struct setting_prefix *prefix, const union address *address)
{
	uint32_t high = prefix->bits > 64 ? 64 : prefix->bits;

	return !((prefix->address.half[0] ^ address->half[0]) & address_mask(high)) &&
	       !((prefix->address.half[1] ^ address->half[1]) & address_mask(prefix->bits - high));
}

/* The longest prefix around an address; NULL if there is none. */
static const struct setting_prefix *find_prefix(const struct settings *settings,
						const union address *address)
{
	const struct setting_prefix *found = NULL;

	for (size_t at = 0; at < settings->prefix_count; at++) {
		const struct setting_prefix *prefix = &settings->prefixes[at];

		if (contains(prefix, address) && (!found || prefix->bits > found->bits))
			found = prefix;
	}
	return found;
}

static bool has_limits(const struct rate_limit *limits)
{
	for (int meter = 0; meter < METERS; meter++)
		if (limits[meter].burst)
			return true;
	return false;
}

/* Whether packets of an address to what is protected are held to anything. */
static bool is_held(const struct settings *settings, const struct setting_prefix *prefix)
{
	if (prefix && prefix->action == PREFIX_EXEMPT)
		return false;
	if (prefix && prefix->action == PREFIX_LIMIT)
		return has_limits(prefix->limit) || has_limits(settings->node);
	return has_limits(settings->ip) || has_limits(settings->node);
}

static bool is_port_set(const uint64_t *ports, unsigned first, unsigned last)
{
	for (unsigned port = first; port <= last; port++)
		if (ports[port / 64] >> (port % 64) & 1)
			return true;
	return false;
}

/* ---- the session of who asks */

static void judge_session(const struct settings *settings, const struct session_facts *session,
			  struct findings *findings)
{
	const struct setting_prefix *prefix = find_prefix(settings, &session->peer);
	char peer[ADDRESS_TEXT_MAX], rule[PREFIX_TEXT_MAX] = "";
	bool is_protected = settings->protect.all ||
			    is_port_set(settings->protect.tcp, session->port, session->port);
	struct finding *finding;

	format_address(&session->peer, peer);
	if (prefix)
		format_prefix(&prefix->address, prefix->bits, rule);
	if (prefix && prefix->action == PREFIX_DENY) {
		finding = findings_add(findings,
				       settings->dry_run ? FINDING_WARNING : FINDING_FAILURE, "ssh",
				       "your own connection, from %s, would be refused: %s is "
				       "under `deny`",
				       peer, rule);
		finding_explain(finding,
				settings->dry_run
					? "in a dry run it is only counted; in earnest it would "
					  "cut you off"
					: "it would cut you off");
		finding_advise(finding,
			       "put your address under exempt: [%s], or take %s out; and "
			       "attach with --confirm 30s",
			       peer, rule);
		return;
	}
	if (!is_protected || !is_held(settings, prefix)) {
		(void)findings_add(findings, FINDING_OK, "ssh",
				   "your own connection, from %s to port %u, is not limited", peer,
				   session->port);
		return;
	}
	finding = findings_add(findings, FINDING_WARNING, "ssh",
			       "your own connection, from %s, would be limited: %s covers port %u",
			       peer, settings->protect.all ? "`protect: [all]`" : "`protect`",
			       session->port);
	finding_explain(finding, "under a flood it shares the limits of everybody, and may stall");
	finding_advise(finding,
		       "take tcp/%u out of `protect`, or add exempt: [%s]; and attach with "
		       "--confirm 30s",
		       session->port, peer);
}

/* ---- addresses that the host cannot do without */

enum fate { FATE_PASSES, FATE_LIMITED, FATE_REFUSED };

/* What would become of packets that come from there. */
static enum fate fate_of(const struct settings *settings, const struct neighbour *neighbour)
{
	const struct setting_prefix *prefix = find_prefix(settings, &neighbour->address);
	const struct setting_protect *protect = &settings->protect;

	if (prefix && prefix->action == PREFIX_DENY)
		return FATE_REFUSED;
	if (!is_held(settings, prefix))
		return FATE_PASSES;
	switch (neighbour->role) {
	case ROLE_RESOLVER: /* its answers */
		return protect->all || is_port_set(protect->udp, EPHEMERAL_FIRST, EPHEMERAL_LAST)
			       ? FATE_LIMITED
			       : FATE_PASSES;
	case ROLE_GATEWAY:
		return protect->all || protect->icmp ? FATE_LIMITED : FATE_PASSES;
	default: /* a host's own packets come in on the loopback only */
		return FATE_PASSES;
	}
}

/* All of one role with one fate, as a list that can be put under `exempt`. */
static size_t list_addresses(const struct settings *settings, const struct network_facts *network,
			     enum neighbour_role role, enum fate fate, char *out, size_t size)
{
	size_t count = 0, length = 0;

	out[0] = '\0';
	for (size_t at = 0; at < network->count; at++) {
		char text[ADDRESS_TEXT_MAX];

		if (network->list[at].role != role || fate_of(settings, &network->list[at]) != fate)
			continue;
		count++;
		format_address(&network->list[at].address, text);
		if (length + strlen(text) + 8 < size)
			length += (size_t)snprintf(out + length, size - length, "%s%s",
						   length ? ", " : "", text);
	}
	return count;
}

static void judge_neighbours(const struct settings *settings, const struct network_facts *network,
			     struct findings *findings)
{
	static const struct {
		const char *one, *many;
		const char *refused, *limited;
	} roles[ROLES] = {
		[ROLE_OWN] = { "this host's own address", "this host's own addresses",
			       "what it sends to itself over this interface does not arrive", "" },
		[ROLE_GATEWAY] = { "the gateway", "the gateways",
				   "its messages are lost: a path whose packets are too large for "
				   "it "
				   "is never found",
				   "its messages may be lost under a flood" },
		[ROLE_RESOLVER] = { "the resolver", "the resolvers",
				    "no answer arrives, and no name is found",
				    "its answers count as anybody's, and may be lost" },
	};
	char list[200];

	for (int role = 0; role < ROLES; role++)
		for (int fate = FATE_LIMITED; fate <= FATE_REFUSED; fate++) {
			size_t count =
				list_addresses(settings, network, role, fate, list, sizeof(list));
			struct finding *finding;

			if (!count)
				continue;
			finding = findings_add(
				findings, FINDING_WARNING, "network", "%s %s would be %s",
				count == 1 ? roles[role].one : roles[role].many, list,
				fate == FATE_REFUSED ? "refused, by `deny`" : "limited");
			finding_explain(finding, "%s",
					fate == FATE_REFUSED ? roles[role].refused
							     : roles[role].limited);
			finding_advise(finding, "exempt: [%s]", list);
		}
}

/* ---- capacity */

static void judge_capacity(const struct settings *settings, struct findings *findings)
{
	double filling = figures_filling_addresses(settings);
	struct finding *finding;

	if (filling <= 0)
		return;
	finding = findings_add(
		findings, filling < 1e6 ? FINDING_WARNING : FINDING_OK, "capacity",
		"%.0f invented addresses a second, one packet each, are held without a "
		"set full (one in 100 000); %.0f keep all %d words in debt",
		filling / ONE_IN, filling, TABLE_WORDS);
	if (filling >= 1e6)
		return;
	finding_explain(finding,
			"one cheap machine sends a million a second; beyond that when_full "
			"(%s) decides about new addresses",
			when_full_name(settings->when_full));
	finding_advise(finding,
		       "a higher rate with the same burst makes debts shorter; fewer meters "
		       "under per_ip; a limit under node as a backstop");
}

void diagnose_settings(const struct settings *settings, const struct network_facts *network,
		       const struct session_facts *session, struct findings *findings)
{
	const struct setting_protect *protect = &settings->protect;
	bool protects = protect->all || protect->icmp || is_port_set(protect->tcp, 0, UINT16_MAX) ||
			is_port_set(protect->udp, 0, UINT16_MAX);
	struct finding *finding;

	if (!protects) {
		finding = findings_add(findings, FINDING_WARNING, "configuration",
				       "`protect` names nothing");
		finding_explain(finding, "no packet is held to a limit; only `deny` refuses");
		finding_advise(finding, "protect: [tcp/443, udp/443], or whatever you serve");
	}
	if (settings->dry_run)
		(void)findings_add(findings, FINDING_NOTE, "configuration",
				   "it is a dry run: nothing is refused, only counted");
	if (session->is_known)
		judge_session(settings, session, findings);
	judge_neighbours(settings, network, findings);
	judge_capacity(settings, findings);
}
