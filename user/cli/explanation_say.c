/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Why a packet passes or not, in words. */
#include "cli/explanation.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "cli/ip_rules.h"
#include "cli/ip_show.h"
#include "dataplane/words.h"
#include "limit/settings.h"

static void say_rule(const struct explanation *out, char *text, size_t size)
{
	char prefix[PREFIX_TEXT_MAX], left[RULE_LEFT_TEXT_MAX];

	rule_prefix_text(&out->address, out->state.found.bits, prefix);
	rule_left_text(&out->state.found.rule, out->now_ns, left);
	(void)snprintf(text, size, "by the rule for %s %s%s", prefix,
		       out->state.found.by_hand ? "given by hand" : "of the configuration", left);
}

/* What a bucket that refuses has left, against what is asked of it. */
static void say_bucket(const struct fate *fate, const char *whose, enum meter meter,
		       uint64_t remaining, uint64_t burst, char *text, size_t size)
{
	uint64_t asked = meter == METER_BYTES ? fate->question.bytes : 1;
	char wait[DURATION_TEXT_MAX];

	if (fate->verdict.wait_ns == UINT64_MAX) {
		(void)snprintf(text, size,
			       "it takes %llu %s, more than the burst of %llu, and so never "
			       "passes",
			       (unsigned long long)asked, meter_name(meter),
			       (unsigned long long)burst);
		return;
	}
	format_duration(fate->verdict.wait_ns, wait);
	(void)snprintf(text, size, "%s %llu %s left and it takes %llu; there is enough in %s",
		       whose, (unsigned long long)remaining, meter_name(meter),
		       (unsigned long long)asked, wait);
}

static void say_address_bucket(const struct explanation *out, const struct fate *fate, char *text,
			       size_t size)
{
	enum meter meter = (enum meter)(fate->verdict.reason - REASON_IP_CONNECTIONS);
	const struct address_meter *state = &out->state.meters[meter];
	char wait[DURATION_TEXT_MAX];

	if (state->has_word || !fate->verdict.is_set_full || fate->verdict.wait_ns == UINT64_MAX) {
		say_bucket(fate, "the address has", meter, state->remaining, state->limit.burst,
			   text, size);
		return;
	}
	format_duration(fate->verdict.wait_ns, wait);
	(void)snprintf(text, size,
		       "its set in the table is full, and the word least in debt (when_full: "
		       "share) owes too much for another %s",
		       wait);
}

static void say_node_bucket(const struct explanation *out, const struct fate *fate, char *text,
			    size_t size)
{
	enum meter meter = (enum meter)(fate->verdict.reason - REASON_NODE_CONNECTIONS);
	const struct node_meter_state *state = &out->node[meter];
	size_t length;

	say_bucket(fate, "the node has", meter, state->remaining,
		   state->limit.burst + state->held_back, text, size);
	length = strlen(text);
	if (fate->verdict.cpus_admitting)
		(void)snprintf(text + length, size - length,
			       " (%u of %u CPUs hold tokens enough and "
			       "pass it)",
			       fate->verdict.cpus_admitting, fate->verdict.cpus);
}

static void say_why(const struct explanation *out, const struct fate *fate, char *text, size_t size)
{
	const char *why = "it is within every limit";

	switch (fate->verdict.reason) {
	case REASON_EXEMPT:
	case REASON_DENY:
		say_rule(out, text, size);
		return;
	case REASON_IP_CONNECTIONS:
	case REASON_IP_PACKETS:
	case REASON_IP_BYTES:
		say_address_bucket(out, fate, text, size);
		return;
	case REASON_NODE_CONNECTIONS:
	case REASON_NODE_PACKETS:
	case REASON_NODE_BYTES:
		say_node_bucket(out, fate, text, size);
		return;
	case REASON_UNPROTECTED:
		why = "`protect` does not name it";
		break;
	case REASON_IP_SET_FULL:
		why = "its set in the table is full, and when_full is refuse";
		break;
	case REASON_IP_TRIES:
		why = "other CPUs are just taking its word in the table";
		break;
	case REASON_SHED_IP:
		why = "the daemon would refuse the address's next request (hooks of per_ip)";
		break;
	case REASON_SHED_NODE:
		why = "the daemon would refuse any request (hooks of node)";
		break;
	default:
		break;
	}
	(void)snprintf(text, size, "%s", why);
}

const char *explanation_verdict(const struct explanation *out, const struct fate *fate)
{
	if (!out->is_attached)
		return "passes";
	if (fate->verdict.is_refused)
		return "refused";
	return reason_is_refusal(fate->verdict.reason) ? "would_refuse" : "passes";
}

/* In one sentence. */
static void say(const struct explanation *out, struct fate *fate)
{
	const char *word = explanation_verdict(out, fate), *reason_word;
	char why[SENTENCE_MAX / 2], verb[80] = "passes";
	size_t length;

	reason_word = reason_name(fate->verdict.reason);
	say_why(out, fate, why, sizeof(why));
	if (!out->is_attached)
		(void)snprintf(why, sizeof(why), "sluice is not attached to %s", out->interface);
	else if (strcmp(word, "passes"))
		(void)snprintf(verb, sizeof(verb), "%s (%s)",
			       fate->verdict.is_refused ? "is refused"
							: "passes only because of dry_run",
			       reason_word);
	(void)snprintf(fate->sentence, sizeof(fate->sentence), "%s%s %s: %s", fate->packet,
		       fate->where, verb, why);
	for (int reason = 0; out->is_attached && reason < REASONS; reason++) {
		length = strlen(fate->sentence);
		if (fate->verdict.would & 1u << reason)
			(void)snprintf(fate->sentence + length, sizeof(fate->sentence) - length,
				       "; %s would refuse it, but is in a dry run",
				       reason_name(reason));
	}
}

void explanation_say(struct explanation *out)
{
	for (size_t at = 0; at < out->fate_count; at++)
		say(out, &out->fates[at]);
}

const char *explanation_never_charged(const struct explanation *out)
{
	bool is_v4 = address_is_v4(&out->address);

	if (out->protocol == IPPROTO_ICMPV6 && !is_v4)
		return "neighbour discovery is never charged nor refused";
	if (out->protocol == IPPROTO_UDP &&
	    (is_v4 ? out->port == 67 || out->port == 68 : out->port == 546 || out->port == 547))
		return "DHCP, from a DHCP port, is never charged nor refused";
	return NULL;
}
