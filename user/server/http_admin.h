/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What operators ask and change:
 *
 *   GET    /v1/rate-limits                   default and all tenants that have a limit of their own
 *   GET    /v1/tenants/{tenant}/rate-limit   the limit in force
 *   PUT    /v1/tenants/{tenant}/rate-limit   set an override (?ttl=1h, ?keep_debt=true)
 *   DELETE /v1/tenants/{tenant}/rate-limit   take it away (?keep_debt=true)
 *   GET    /v1/audit                         who changed what (?tenant=, ?limit=, ?before=)
 *   POST   /v1/reload                        read the configuration again
 */
#ifndef SLUICE_SERVER_HTTP_ADMIN_H
#define SLUICE_SERVER_HTTP_ADMIN_H

struct http_exchange;

void http_limits_run(struct http_exchange *exchange);
void http_limit_get_run(struct http_exchange *exchange);
void http_limit_put_run(struct http_exchange *exchange);
void http_limit_delete_run(struct http_exchange *exchange);
void http_audit_run(struct http_exchange *exchange);
void http_reload_run(struct http_exchange *exchange);

#endif
