/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What each limit really enforces and at worst lets through, and what is worth a warning. */
#include "limit/settings_figures.h"

#include <stdarg.h>
#include <string.h>

#include "base/parse.h"

enum {
	SYN_BYTES = 60,            /* what one packet of a flood of new addresses costs at least */
	SUPER_FRAME_BYTES = 65535, /* the largest packet that generic XDP or a veth may show */
	SUPER_FRAME_PACKETS = 45,  /* of 1500 bytes, that were joined to such a one */
	FLOOD_PER_S = 1000000,     /* what one cheap machine can send */
	MESSAGE_MAX = 256,
};

double figures_most_in(const struct figures_row *row, double seconds)
{
	return ((double)row->wanted.burst + row->enforced * seconds) * row->oversize;
}

static enum bucket_kind kind_of(bool bytes, bool whole)
{
	if (bytes)
		return whole ? BUCKET_WHOLE_BYTES : BUCKET_WORD_BYTES;
	return whole ? BUCKET_WHOLE : BUCKET_WORD;
}

/* Fill in what follows from row->wanted, and hand it over; without a burst there is no limit. */
static void visit(struct figures_row *row, bool whole, const struct figures_visitor *visitor)
{
	struct gcra_limit built;
	uint64_t longest;

	if (!row->wanted.burst ||
	    limit_build(&row->wanted, kind_of(row->bytes, whole), &built, &longest))
		return;
	row->enforced = limit_enforced_rate(&built);
	row->debt_s = (double)gcra_wait_ns(built.capacity, built.tick_shift) / 1e9;
	if (row->oversize < 1)
		row->oversize = 1;
	visitor->row(row, visitor->data);
}

static void visit_meters(const struct rate_limit *limits, const char *scope,
			 const struct setting_prefix *prefix, const struct figures_visitor *visitor)
{
	int meter;

	for (meter = 0; meter < METERS; meter++) {
		struct figures_row row = {
			.scope = scope,
			.prefix = prefix,
			.meter = meter_name((enum meter)meter),
			.bytes = meter == METER_BYTES,
			.wanted = limits[meter],
		};

		visit(&row, scope[0] == 'n', visitor);
	}
}

static void visit_hooks(const struct rate_limit *hooks, const char *scope, bool whole,
			const struct figures_visitor *visitor)
{
	struct figures_row row = { .scope = scope, .meter = "hooks", .wanted = *hooks };

	visit(&row, whole, visitor);
}

/* tenant: NULL for the default. */
static void visit_tenant(const struct tenant_limit *limit, const char *tenant,
			 const struct figures_visitor *visitor)
{
	struct figures_row hooks = {
		.scope = tenant ? "tenant" : "default",
		.tenant = tenant,
		.meter = "hooks",
		.unlimited = limit->unlimited,
		.wanted = limit->hooks,
	};
	struct figures_row bytes = hooks;

	if (limit->unlimited) {
		visitor->row(&hooks, visitor->data);
		return;
	}
	visit(&hooks, true, visitor);
	bytes.meter = "bytes";
	bytes.bytes = true;
	bytes.wanted = limit->bytes;
	/* A body larger than the burst costs the burst. */
	if (limit->bytes.burst)
		bytes.oversize = (double)limit->max_body_bytes / (double)limit->bytes.burst;
	visit(&bytes, true, visitor);
}

static void visit_sources(const struct settings *settings, const struct figures_visitor *visitor)
{
	struct figures_row row = {
		.scope = "source", .meter = "bytes", .bytes = true, .wanted = settings->source_bytes
	};

	if (settings->sources_given)
		visit(&row, true, visitor);
}

void figures_visit_limits(const struct settings *settings, const struct figures_visitor *visitor)
{
	size_t i;

	visit_meters(settings->ip, "per_ip", NULL, visitor);
	visit_hooks(&settings->ip_hooks, "per_ip", false, visitor);
	visit_meters(settings->node, "node", NULL, visitor);
	visit_hooks(&settings->node_hooks, "node", true, visitor);
	for (i = 0; i < settings->prefix_count; i++)
		if (settings->prefixes[i].action == PREFIX_LIMIT)
			visit_meters(settings->prefixes[i].limit, "prefix", &settings->prefixes[i],
				     visitor);
	visit_sources(settings, visitor);
	if (settings->has_fallback)
		visit_tenant(&settings->fallback, NULL, visitor);
	for (i = 0; i < settings->tenant_count; i++)
		visit_tenant(&settings->tenants[i].limit, settings->tenants[i].tenant, visitor);
}

/* One packet takes a word of each meter for as long as it costs, cost / rate. */
double figures_filling_addresses(const struct settings *settings)
{
	double word_seconds = 0;
	int meter;

	for (meter = 0; meter < METERS; meter++)
		if (settings->ip[meter].burst)
			word_seconds +=
				(meter == METER_BYTES ? SYN_BYTES : 1) / settings->ip[meter].rate;
	return word_seconds > 0 ? TABLE_WORDS / word_seconds : 0;
}

static void warn(const struct figures_visitor *visitor, const char *key, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void warn(const struct figures_visitor *visitor, const char *key, const char *format, ...)
{
	char message[MESSAGE_MAX];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	visitor->warning(key, message, visitor->data);
}

static void warn_of_burst(const struct rate_limit *limits, const char *scope,
			  const struct figures_visitor *visitor)
{
	char key[PREFIX_TEXT_MAX + 48];

	if (!limits[METER_BYTES].burst || limits[METER_BYTES].burst >= SUPER_FRAME_BYTES)
		return;
	snprintf(key, sizeof(key), "rate_limits.%s.bytes.burst", scope);
	warn(visitor, key,
	     "a packet larger than %llu bytes can never pass; where the card or a veth joins "
	     "packets, they reach %d bytes: give at least 64KiB",
	     (unsigned long long)limits[METER_BYTES].burst, SUPER_FRAME_BYTES);
}

/* TC charges a buffer for all the packets in it at once. */
static void warn_of_joined(const struct settings *settings, const struct rate_limit *limits,
			   const char *scope, const struct figures_visitor *visitor)
{
	char key[PREFIX_TEXT_MAX + 48];
	bool in_tc = false;

	for (size_t at = 0; at < settings->interface_count; at++)
		in_tc |= settings->interfaces[at].mode == MODE_TC ||
			 settings->interfaces[at].mode == MODE_CLSACT;
	if (!in_tc || !limits[METER_PACKETS].burst ||
	    limits[METER_PACKETS].burst >= SUPER_FRAME_PACKETS)
		return;
	snprintf(key, sizeof(key), "rate_limits.%s.packets.burst", scope);
	warn(visitor, key,
	     "in TC up to %d packets arrive joined, and are admitted together or not at all: give "
	     "at least 64",
	     SUPER_FRAME_PACKETS);
}

static void warn_of_limits(const struct settings *settings, const struct rate_limit *limits,
			   const char *scope, const struct figures_visitor *visitor)
{
	warn_of_burst(limits, scope, visitor);
	warn_of_joined(settings, limits, scope, visitor);
}

static void warn_of_prefixes(const struct settings *settings, const struct figures_visitor *visitor)
{
	size_t i;

	for (i = 0; i < settings->prefix_count; i++) {
		char scope[PREFIX_TEXT_MAX + 16] = "prefixes.";

		format_prefix(&settings->prefixes[i].address, settings->prefixes[i].bits,
			      scope + strlen(scope));
		if (settings->prefixes[i].action == PREFIX_LIMIT)
			warn_of_limits(settings, settings->prefixes[i].limit, scope, visitor);
	}
}

static void warn_of_one_taking_all(const struct settings *settings,
				   const struct figures_visitor *visitor)
{
	int meter;

	for (meter = 0; meter < METERS; meter++) {
		char key[64];

		if (!settings->ip[meter].burst || !settings->node[meter].burst ||
		    settings->ip[meter].rate < settings->node[meter].rate)
			continue;
		snprintf(key, sizeof(key), "rate_limits.per_ip.%s.rate",
			 meter_name((enum meter)meter));
		warn(visitor, key,
		     "one address may use up all that the node admits: give a lower rate than the "
		     "node's");
	}
}

static void warn_of_hooks(const struct settings *settings, const struct figures_visitor *visitor)
{
	if (settings->ip_hooks.burst && settings->node_hooks.burst &&
	    settings->ip_hooks.rate >= settings->node_hooks.rate)
		warn(visitor, "rate_limits.per_ip.hooks.rate",
		     "one address may use up all that the node admits: give a lower rate than the "
		     "node's");
}

/* Whether a full bucket of bytes admits one body of any size. */
static bool has_open_end(const struct tenant_limit *limit)
{
	return limit->byte_bucket.capacity && !limit->max_body_bytes;
}

static void warn_of_bodies(const struct settings *settings, const struct figures_visitor *visitor)
{
	size_t count = settings->has_fallback && has_open_end(&settings->fallback), i;
	char key[TENANT_ID_MAX + 40] = "rate_limits.default";

	for (i = 0; i < settings->tenant_count; i++) {
		if (!has_open_end(&settings->tenants[i].limit))
			continue;
		if (count++ == 0)
			snprintf(key, sizeof(key), "rate_limits.tenants.%s",
				 settings->tenants[i].tenant);
	}
	if (count)
		warn(visitor, key,
		     "a full bucket admits one body of any size, which empties it (%zu such "
		     "limit%s): set max_body_bytes to bound what gets through",
		     count, count == 1 ? "" : "s");
}

/* Open addressing wants some air. */
static void warn_of_slots(const struct settings *settings, const struct figures_visitor *visitor)
{
	if (settings->tenant_count > settings->tenant_slots / 4 * 3)
		warn(visitor, "tenant_slots",
		     "%zu tenants are configured, which is a tight fit for %u slots: give at least "
		     "twice as many slots as tenants",
		     settings->tenant_count, settings->tenant_slots);
}

static void warn_of_table(const struct settings *settings, const struct figures_visitor *visitor)
{
	double addresses = figures_filling_addresses(settings);

	if (addresses == 0 || addresses >= FLOOD_PER_S)
		return;
	warn(visitor, "rate_limits.per_ip",
	     "a flood of %.0f invented addresses per second keeps all %d words of the table in "
	     "debt; "
	     "then when_full (%s) decides about new addresses: higher rates make debts shorter",
	     addresses, TABLE_WORDS, when_full_name(settings->when_full));
}

static void warn_of_dry_meters(unsigned dry, const char *scope,
			       const struct figures_visitor *visitor)
{
	char key[64];

	for (int meter = 0; meter <= METER_HOOKS; meter++) {
		if (!(dry & 1u << meter))
			continue;
		snprintf(key, sizeof(key), "rate_limits.%s.%s.dry_run", scope, meter_name(meter));
		warn(visitor, key, "it refuses nothing, it only counts");
	}
}

void figures_visit_warnings(const struct settings *settings, const struct figures_visitor *visitor)
{
	if (settings->dry_run)
		warn(visitor, "dry_run", "nothing is refused, only counted");
	warn_of_dry_meters(settings->dry_ip, "per_ip", visitor);
	warn_of_dry_meters(settings->dry_node, "node", visitor);
	warn_of_limits(settings, settings->ip, "per_ip", visitor);
	warn_of_limits(settings, settings->node, "node", visitor);
	warn_of_prefixes(settings, visitor);
	warn_of_one_taking_all(settings, visitor);
	warn_of_table(settings, visitor);
	warn_of_hooks(settings, visitor);
	warn_of_bodies(settings, visitor);
	warn_of_slots(settings, visitor);
}
