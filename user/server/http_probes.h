/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What watches the daemon asks: GET /healthz (200 ok: it lives), /readyz (200 ok, or 503 and why
 * not), /metrics (Prometheus text 0.0.4).
 */
#ifndef SLUICE_SERVER_HTTP_PROBES_H
#define SLUICE_SERVER_HTTP_PROBES_H

struct http_exchange;

void http_healthz_run(struct http_exchange *exchange);
void http_readyz_run(struct http_exchange *exchange);
void http_metrics_run(struct http_exchange *exchange);

#endif
