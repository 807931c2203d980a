/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * GET|POST /v1/check: may this request pass? (check_question.h says how it is asked.) With a source,
 * the checks before the body is read come first: address, node, source; then, with a tenant, its
 * quota. The first to refuse answers.
 *
 *   200 {"admitted":true,"reason":"ok","remaining":41}   remaining null: unlimited
 *   429 {"error":"rate_limited","scope":"tenant","retry_after_ms":250}
 *       scope: tenant, bytes, ip, node or source
 *   413 {"error":"payload_too_large","limit":65536}      over the tenant's max_body_bytes
 *   503 {"error":"overload","retry_after_ms":1000}       no room for a new key
 *   400 invalid_tenant, invalid_client_address, invalid_argument
 *
 * and the fields of http_fields.h. With ?mode=nginx whatever is not 200 is 403, and X-RL-Status says
 * what it is: nginx's auth_request makes a 500 of any other.
 */
#ifndef SLUICE_SERVER_HTTP_CHECK_H
#define SLUICE_SERVER_HTTP_CHECK_H

struct http_exchange;

void http_check_run(struct http_exchange *exchange);
void http_check_done(struct http_exchange *exchange);

#endif
