/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Settings while they are being read, with the places that are needed until all has been read.
 * Private to the settings_*.c files: each reads one part of the configuration into the draft.
 */
#ifndef SLUICE_LIMIT_SETTINGS_DRAFT_H
#define SLUICE_LIMIT_SETTINGS_DRAFT_H

#include "limit/settings.h"
#include "limit/yaml_reader.h"

struct settings_draft {
	struct settings *settings;
	struct yaml_place *prefix_places; /* of settings->prefixes, one each */
	size_t prefix_room;               /* of both arrays */
	unsigned interface_lines[INTERFACES_MAX];
	struct yaml_place *tenant_places; /* of settings->tenants, one each */
	size_t tenant_room;               /* of both arrays */
	unsigned token_lines[ADMIN_TOKENS_MAX];
	struct yaml_place http_place;   /* of listen.http; line 0: not given */
	struct yaml_place limits_place; /* of rate_limits; line 0: not given */
};

/*
 * Room for one more entry and its place. Returns the entries, moved perhaps; NULL is no memory, and then
 * they are where they were. *room: of both arrays.
 */
void *draft_grow(void *entries, size_t entry_bytes, struct yaml_place **places, size_t count,
		 size_t *room);

struct draft_limit;

/* What a set of limits is read into. */
struct limit_scope {
	struct rate_limit *limit;  /* METERS of them */
	bool whole;                /* the node's, which has buckets of 64 bits */
	struct rate_limit *hooks;  /* for read_scope() */
	unsigned *dry;             /* bits 1 << enum meter */
	struct draft_limit *brief; /* of it, what stands in its short form */
};

/* true or false. */
int read_bool(struct yaml_reader *reader, bool *out);

/* Read a map from meters to {rate, burst}. target: struct limit_scope. */
int read_meters(struct yaml_reader *reader, void *target);

/* The same for a scope that limits hooks too, as `hooks: {rate, burst}` or in short {rate, burst}.
 */
int read_scope(struct yaml_reader *reader, struct limit_scope *scope);

/* The values of the keys of the same names. target: struct settings_draft. */
int read_exempt(struct yaml_reader *reader, void *target);
int read_deny(struct yaml_reader *reader, void *target);
int read_prefixes(struct yaml_reader *reader, void *target);
int read_routes(struct yaml_reader *reader, void *target);
int read_default(struct yaml_reader *reader, void *target);
int read_tenants(struct yaml_reader *reader, void *target);
int read_sources(struct yaml_reader *reader, void *target);
int read_limits_scope(struct yaml_reader *reader, void *target);
int read_listen(struct yaml_reader *reader, void *target);
int read_state(struct yaml_reader *reader, void *target);
int read_dataplane(struct yaml_reader *reader, void *target);
int read_workers(struct yaml_reader *reader, void *target);
int read_admin(struct yaml_reader *reader, void *target);
int read_tenant_slots(struct yaml_reader *reader, void *target);
int read_ratelimit_headers(struct yaml_reader *reader, void *target);

/* Fail if two of all the prefixes read are the same. */
int check_prefixes(struct yaml_reader *reader, const struct settings_draft *draft);

/* Fail if a tenant is given twice. */
int check_tenants(struct yaml_reader *reader, const struct settings_draft *draft);

/* Fail if HTTP would be served to others than this host with nothing to know them by. */
int check_listen(struct yaml_reader *reader, const struct settings_draft *draft);

#endif
