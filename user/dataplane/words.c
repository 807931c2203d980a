/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The words that reasons, notes and rungs have in JSON, in metrics and in docs/operations.md. */
#include "dataplane/words.h"

static const char *const reasons[REASONS] = {
	[REASON_NO_CONFIG] = "no_config",
	[REASON_NOT_IP] = "not_ip",
	[REASON_UNPARSED] = "unparsed",
	[REASON_CONTROL] = "control",
	[REASON_UNPROTECTED] = "unprotected",
	[REASON_EXEMPT] = "exempt",
	[REASON_ADMITTED] = "admitted",
	[REASON_DENY] = "deny",
	[REASON_IP_CONNECTIONS] = "ip_connections",
	[REASON_IP_PACKETS] = "ip_packets",
	[REASON_IP_BYTES] = "ip_bytes",
	[REASON_IP_SET_FULL] = "ip_set_full",
	[REASON_IP_TRIES] = "ip_tries",
	[REASON_SHED_IP] = "shed_ip",
	[REASON_NODE_CONNECTIONS] = "node_connections",
	[REASON_NODE_PACKETS] = "node_packets",
	[REASON_NODE_BYTES] = "node_bytes",
	[REASON_SHED_NODE] = "shed_node",
};

static const char *const notes[NOTES] = {
	[NOTE_SET_FULL_SHARED] = "set_full_shared",
	[NOTE_SET_FULL_ADMITTED] = "set_full_admitted",
	[NOTE_NODE_TRIES] = "node_tries",
	[NOTE_SPENT_IN_VAIN] = "spent_in_vain",
	[NOTE_CLAMPED] = "clamped",
	[NOTE_EVENT_LOST] = "event_lost",
	[NOTE_EVENT_SAMPLED_OUT] = "event_sampled_out",
	[NOTE_OFFENDER_LOST] = "offender_lost",
	[NOTE_SWEPT] = "swept",
	[NOTE_SWEEPS] = "sweeps",
};

static const char *const rungs[RUNGS] = {
	[RUNG_NONE] = "none",     [RUNG_NATIVE_FRAGS] = "native_frags",
	[RUNG_NATIVE] = "native", [RUNG_TCX] = "tcx",
	[RUNG_CLSACT] = "clsact", [RUNG_GENERIC] = "generic",
};

const char *reason_name(enum reason reason)
{
	return reason < REASONS ? reasons[reason] : "unknown";
}

const char *note_name(enum note note)
{
	return note < NOTES ? notes[note] : "unknown";
}

const char *rung_name(enum rung rung)
{
	return rung < RUNGS ? rungs[rung] : "unknown";
}
