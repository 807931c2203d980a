/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What `sluice ip explain` has found out, and how it is said. */
#ifndef SLUICE_CLI_EXPLANATION_H
#define SLUICE_CLI_EXPLANATION_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "dataplane/address.h"
#include "dataplane/node_state.h"
#include "dataplane/verdict.h"

enum {
	FATES_MAX = 3,
	SENTENCE_MAX = 400,
};

/* A kind of packet, and what becomes of it. */
struct fate {
	const char *packet; /* "a new connection" */
	char where[40];     /* " to tcp/443" */
	struct verdict_question question;
	struct verdict verdict;
	char sentence[SENTENCE_MAX];
};

struct explanation {
	union address address;
	uint64_t now_ns;
	uint8_t protocol;
	const char *protocol_name;
	uint16_t port;         /* 0: none was named */
	uint32_t bytes;        /* 0: what is usual for the packet */
	const char *interface; /* NULL: any */
	bool is_attached;
	struct config_slot slot; /* as it stood */
	json_t *ports;           /* that `protect` names, as "443" and "8000-8010" */
	uint16_t protected_port; /* one of them; 0: there is none */
	uint16_t other_port;     /* one that it does not name; 0: there is none */
	struct address_state state;
	struct node_meter_state node[METERS];
	struct fate fates[FATES_MAX];
	size_t fate_count;
};

/* Put each fate into a sentence. */
void explanation_say(struct explanation *explanation);

/* `passes`, `refused`, or `would_refuse`: it passes because of dry_run. */
const char *explanation_verdict(const struct explanation *explanation, const struct fate *fate);

/* What passes whatever the rules say, of the protocol and port in question; NULL: nothing. */
const char *explanation_never_charged(const struct explanation *explanation);

json_t *explanation_json(const struct explanation *explanation);
void explanation_print(const struct explanation *explanation);

#endif
