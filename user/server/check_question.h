/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a proxy asks of /v1/check. Each thing is looked for in the JSON body, then among the query's
 * arguments, then in the header, and the first that is found counts: what a proxy writes into the
 * query wins over what its client may have sent as a header.
 *
 *   body, query      header             meaning
 *   tenant           X-Tenant           whose quota is charged
 *   bytes            X-Body-Bytes       of the body; whole number
 *   atomic           –                  hooks and bytes both, or none (true, false)
 *   source           –                  asks for the checks before the body is read, too
 *   peer             X-Real-IP          with source: the address that connected to the proxy
 *   forwarded_for    X-Forwarded-For    with source: believed if the peer is a trusted proxy
 *
 * Pure functions; thread safe.
 */
#ifndef SLUICE_SERVER_CHECK_QUESTION_H
#define SLUICE_SERVER_CHECK_QUESTION_H

#include "server/http_exchange.h"

struct check_question {
	struct http_text tenant; /* text NULL: not given */
	struct http_text source;
	struct http_text peer;
	bool has_bytes;
	uint64_t bytes;
	bool is_atomic;
	struct forwarded_for forwarded[HTTP_FORWARDED_MAX];
	size_t forwarded_count;
	json_t *body; /* keeps the texts alive that come from it; NULL: there is none */
};

/* What is wrong: with which, and why ("must be …"). Both static. */
struct check_fault {
	const char *name;
	const char *what;
};

/*
 * Read a JSON object into *question, which is zeroed, and is to be released with
 * check_question_done() in any case. 0, or -EINVAL with *fault; its name is "body" if it is no JSON
 * object.
 */
int check_question_read_json(struct check_question *question, const char *text, size_t length,
			     struct check_fault *fault);

/* Fill in what is not given yet, from the query and the header. 0, or -EINVAL with *fault. */
int check_question_read_request(struct check_question *question,
				const struct http_exchange *exchange, struct check_fault *fault);

void check_question_done(struct check_question *question);

#endif
