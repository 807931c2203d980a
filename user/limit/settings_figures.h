/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The figures of a configuration, worked out once and handed to a visitor one by one: a file may
 * hold a million limits. Text and JSON of settings_report.c are two visitors; doctor asks for the
 * table's figure.
 */
#ifndef SLUICE_LIMIT_SETTINGS_FIGURES_H
#define SLUICE_LIMIT_SETTINGS_FIGURES_H

#include "limit/settings.h"

enum { TABLE_WORDS = IP_SETS * SET_WORDS };

/* One meter of one scope. */
struct figures_row {
	const char *scope;                   /* per_ip, node, prefix, source, default or tenant */
	const struct setting_prefix *prefix; /* NULL but for scope prefix */
	const char *tenant;                  /* NULL but for scope tenant */
	const char *meter;                   /* connections, packets, bytes or hooks */
	bool bytes;                          /* what it counts */
	bool unlimited; /* the tenant is exempted from the default: nothing below counts */
	struct rate_limit wanted;
	double enforced; /* per second */
	double debt_s;   /* of a burst spent at once */
	double oversize; /* how often its burst one charge may be, at least 1 */
};

struct figures_visitor {
	void (*row)(const struct figures_row *row, void *data);
	void (*warning)(const char *key, const char *message, void *data);
	void *data;
};

void figures_visit_limits(const struct settings *settings, const struct figures_visitor *visitor);
void figures_visit_warnings(const struct settings *settings, const struct figures_visitor *visitor);

/* The most that can be admitted in any stretch of so many seconds. */
double figures_most_in(const struct figures_row *row, double seconds);

/* How many invented addresses a second, each sending one packet, keep every word of the table in
 * debt; 0: none can. */
double figures_filling_addresses(const struct settings *settings);

#endif
