/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The daemon's part of the configuration: what is read from a good one, and of bad ones the line,
 * the column, the key and what the message says. The messages about tenants are those that
 * operators of the first edition know. Runs in the root of the repository, for dist/sluice.yaml.
 */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "limit/settings.h"

#define SHA "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
#define SHA_UPPER "60303AE22B998861BCE3B28F33EEC1BE758A213C86C93C076DBE9F558C11C752"

static struct settings *must_parse(const char *text)
{
	struct settings *settings = NULL;
	struct settings_error error;

	if (settings_parse(text, strlen(text), &settings, &error))
		fail_msg("%u:%u: %s: %s", error.line, error.column, error.key, error.message);
	return settings;
}

static void check_address(const union address *address, const char *wanted)
{
	char text[ADDRESS_TEXT_MAX];

	format_address(address, text);
	assert_string_equal(text, wanted);
}

static void the_defaults_are_those_of_the_documentation(void **state)
{
	struct settings *settings = must_parse("{}");

	(void)state;
	assert_int_equal(settings->ip_hooks.burst, 0);
	assert_int_equal(settings->node_hooks.burst, 0);
	assert_true(settings->source_bytes.rate == 100e6);
	assert_int_equal(settings->source_bytes.burst, 100000000);
	assert_false(settings->has_fallback);
	assert_int_equal(settings->tenant_count, 0);
	assert_int_equal(settings->trusted_proxy_count, 0);
	assert_string_equal(settings->listen.unix_path, "/run/sluice/sluice.sock");
	assert_int_equal(settings->listen.tcp.port, 0);
	assert_int_equal(settings->listen.http.port, 4002);
	check_address(&settings->listen.http.address, "127.0.0.1");
	assert_string_equal(settings->state, "/var/lib/sluice");
	assert_false(settings->no_dataplane);
	assert_int_equal(settings->workers, 0);
	assert_int_equal(settings->token_count, 0);
	assert_int_equal(settings->tenant_slots, 131072);
	assert_int_equal(settings->ratelimit_headers, HEADERS_DRAFT8);
	settings_free(settings);
}

static void hooks_are_read_in_both_forms(void **state)
{
	struct settings *settings = must_parse("rate_limits:\n"
					       "  per_ip: {rate: 50, burst: 100}\n"
					       "  node: {hooks: {rate: 0.5, burst: 3}}\n");

	(void)state;
	assert_true(settings->ip_hooks.rate == 50);
	assert_int_equal(settings->ip_hooks.burst, 100);
	assert_true(settings->node_hooks.rate == 0.5);
	assert_int_equal(settings->node_hooks.burst, 3);
	settings_free(settings);
	/* The short form may stand beside other meters, which need `protect` as ever. */
	settings = must_parse("protect: [all]\nrate_limits:\n"
			      "  per_ip: {packets: {rate: 9, burst: 9}, burst: 7, rate: 6}\n");
	assert_true(settings->ip_hooks.rate == 6);
	assert_int_equal(settings->ip_hooks.burst, 7);
	assert_int_equal(settings->ip[METER_PACKETS].burst, 9);
	settings_free(settings);
}

static void limits_of_tenants_are_read_whole(void **state)
{
	struct settings *settings = must_parse(
		"rate_limits:\n"
		"  default: {rate: '100', burst: \"200\", bytes_per_second: 1.5}\n"
		"  tenants:\n"
		"    acme: {rate: 0.5, burst: 2, bytes_per_second: 1MB, max_body_bytes: 64KiB,\n"
		"           max_queue: 100, max_queue_bytes: 10MB, burst_bytes: 2MB}\n"
		"    VIP_-9: {unlimited: true}\n"
		"    plain: {burst: 1, rate: 1e6}\n"
		"  sources: {default: {bytes_per_second: 1.5MB}}\n"
		"  scope: node\n");
	const struct tenant_limit *limit = &settings->tenants[0].limit;

	(void)state;
	assert_true(settings->has_fallback);
	assert_true(settings->fallback.hooks.rate == 100);
	assert_int_equal(settings->fallback.hooks.burst, 200);
	assert_int_equal(settings->fallback.bytes.burst, 2); /* one second's worth, rounded up */
	assert_false(settings->fallback.burst_bytes_given);
	assert_true(settings->fallback.hook_bucket.capacity > 0);
	assert_int_equal(settings->tenant_count, 3);
	assert_string_equal(settings->tenants[0].tenant, "acme");
	assert_true(limit->hooks.rate == 0.5);
	assert_int_equal(limit->hooks.burst, 2);
	assert_true(limit->bytes.rate == 1e6);
	assert_true(limit->burst_bytes_given);
	assert_int_equal(limit->bytes.burst, 2000000);
	assert_int_equal(limit->max_body_bytes, 65536);
	assert_int_equal(limit->max_queue, 100);
	assert_int_equal(limit->max_queue_bytes, 10000000);
	assert_true(limit->byte_bucket.capacity > 0);
	assert_string_equal(settings->tenants[1].tenant, "VIP_-9");
	assert_true(settings->tenants[1].limit.unlimited);
	assert_int_equal(settings->tenants[1].limit.hook_bucket.capacity, 0);
	/* Nothing is taken over from the default. */
	assert_int_equal(settings->tenants[2].limit.byte_bucket.capacity, 0);
	assert_true(settings->source_bytes.rate == 1.5e6);
	assert_int_equal(settings->source_bytes.burst, 1500000);
	settings_free(settings);
}

static void the_rest_of_the_daemon_is_read(void **state)
{
	struct settings *settings = must_parse(
		"routes: {trusted_proxies: [10.0.0.0/8, '2001:db8::/32', 192.0.2.1]}\n"
		"listen: {unix: /tmp/s, tcp: '[::1]:6380', http: 0.0.0.0:80}\n"
		"state: /srv/sluice\n"
		"dataplane: off\n"
		"workers: 64\n"
		"tenant_slots: 1024\n"
		"ratelimit_headers: legacy\n"
		"admin:\n"
		"  tokens:\n"
		"  - {name: ops, sha256: " SHA ", scopes: [rate_limits:read, rate_limits:write]}\n"
		"  - {name: a.b_C-9, sha256: " SHA_UPPER ", scopes: [rate_limits:read]}\n");

	(void)state;
	assert_int_equal(settings->trusted_proxy_count, 3);
	assert_int_equal(settings->trusted_proxies[0].bits, 104);
	assert_int_equal(settings->trusted_proxies[1].bits, 32);
	assert_int_equal(settings->trusted_proxies[2].bits, 128);
	assert_string_equal(settings->listen.unix_path, "/tmp/s");
	assert_int_equal(settings->listen.tcp.port, 6380);
	check_address(&settings->listen.tcp.address, "::1");
	assert_int_equal(settings->listen.http.port, 80);
	check_address(&settings->listen.http.address, "0.0.0.0");
	assert_string_equal(settings->state, "/srv/sluice");
	assert_true(settings->no_dataplane);
	assert_int_equal(settings->workers, 64);
	assert_int_equal(settings->tenant_slots, 1024);
	assert_int_equal(settings->ratelimit_headers, HEADERS_LEGACY);
	assert_int_equal(settings->token_count, 2);
	assert_string_equal(settings->tokens[0].name, "ops");
	assert_int_equal(settings->tokens[0].sha256[0], 0x9f);
	assert_int_equal(settings->tokens[0].sha256[31], 0x08);
	assert_int_equal(settings->tokens[0].scopes,
			 SCOPE_RATE_LIMITS_READ | SCOPE_RATE_LIMITS_WRITE);
	assert_int_equal(settings->tokens[1].sha256[2], 0x3a);
	assert_int_equal(settings->tokens[1].scopes, SCOPE_RATE_LIMITS_READ);
	settings_free(settings);
	settings = must_parse("listen: {unix: null, http: ~}\nworkers: auto\ndataplane: on\n");
	assert_string_equal(settings->listen.unix_path, "");
	assert_int_equal(settings->listen.http.port, 0);
	assert_int_equal(settings->workers, 0);
	assert_false(settings->no_dataplane);
	settings_free(settings);
}

#define LIMITS "rate_limits:\n  "
#define DEFAULT LIMITS "default: "
#define TOKENS "admin:\n  tokens:\n  - "

static const struct bad_row {
	const char *name;
	const char *text;
	unsigned line, column;
	const char *key;
	const char *message; /* a part of it */
} bad_rows[] = {
	{ "hooks and short form", LIMITS "per_ip: {hooks: {rate: 1, burst: 1}, burst: 2, rate: 3}",
	  2, 56, "rate_limits.per_ip.rate", "is short for hooks, which are given too" },
	{ "short form without a burst", LIMITS "per_ip: {rate: 1}", 2, 3, "rate_limits.per_ip",
	  "burst is missing: a limit needs both" },
	{ "short form without a rate", LIMITS "node: {burst: 1}", 2, 3, "rate_limits.node",
	  "rate is missing: a limit needs both" },
	{ "short form with a bad rate", LIMITS "per_ip: {rate: x, burst: 1}", 2, 18,
	  "rate_limits.per_ip.rate", "must be a number above 0, got \"x\"" },
	{ "short form too long", LIMITS "per_ip: {rate: 1, burst: 5000000}", 2, 28,
	  "rate_limits.per_ip.burst", "at this rate the burst can be at most 2251797" },
	{ "hooks of a prefix", LIMITS "prefixes: {10.0.0.0/8: {hooks: {rate: 1, burst: 1}}}", 2, 27,
	  "rate_limits.prefixes.10.0.0.0/8.hooks",
	  "unknown key; allowed here: connections, packets, bytes" },

	{ "tenants a list", LIMITS "tenants: [acme]", 2, 12, "rate_limits.tenants",
	  "must be a map of tenant id to limit, got a list" },
	{ "tenant id with a dot", LIMITS "tenants: {x.y: {rate: 1, burst: 1}}", 2, 13,
	  "rate_limits.tenants.x.y", "tenant id \"x.y\" must match [A-Za-z0-9_-]{1,64}" },
	{ "tenant id empty", LIMITS "tenants: {'': {rate: 1, burst: 1}}", 2, 13,
	  "rate_limits.tenants.", "tenant id \"\" must match" },
	{ "tenant id too long",
	  LIMITS "tenants: {aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: {}}",
	  2, 13, "rate_limits.tenants.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	  "aaaa\"... must match" },
	{ "tenant id of escapes", LIMITS "tenants: {\"\\e[31m\": {}}", 2, 13,
	  "rate_limits.tenants.?[31m", "tenant id \"?[31m\" must match" },
	{ "tenant twice",
	  LIMITS "tenants:\n    b: {rate: 1, burst: 1}\n    a: {rate: 1, burst: 1}\n    b: "
		 "{unlimited: true}\n    a: {unlimited: true}",
	  5, 5, "rate_limits.tenants", "b is given twice; the first is on line 3" },
	{ "limit a number", LIMITS "tenants: {acme: 5}", 2, 19, "rate_limits.tenants.acme",
	  "must be a map of rate, burst, bytes_per_second, burst_bytes, max_body_bytes, max_queue, "
	  "max_queue_bytes, unlimited, got \"5\"" },
	{ "unknown key of a tenant", LIMITS "tenants: {acme: {per: 1s}}", 2, 20,
	  "rate_limits.tenants.acme.per", "unknown key; allowed here: rate, burst" },
	{ "misspelt default", LIMITS "defaults: {}", 2, 3, "rate_limits.defaults",
	  "unknown key, did you mean \"default\"?" },
	{ "burst missing", LIMITS "tenants: {acme: {rate: 1}}", 2, 13, "rate_limits.tenants.acme",
	  "missing required key \"burst\"" },
	{ "rate missing", DEFAULT "{burst: 1}", 2, 3, "rate_limits.default",
	  "missing required key \"rate\"" },
	{ "limit empty", DEFAULT "{}", 2, 3, "rate_limits.default",
	  "missing required key \"rate\"" },
	{ "rate 0", DEFAULT "{rate: 0, burst: 1}", 2, 19, "rate_limits.default.rate",
	  "must be a number greater than 0, got 0" },
	{ "rate negative", DEFAULT "{rate: -1.5, burst: 1}", 2, 19, "rate_limits.default.rate",
	  "must be a number greater than 0, got -1.5" },
	{ "rate a word", LIMITS "tenants: {acme: {rate: fast, burst: 1}}", 2, 26,
	  "rate_limits.tenants.acme.rate", "must be a number greater than 0, got \"fast\"" },
	{ "rate nothing", DEFAULT "{rate: , burst: 1}", 2, 19, "rate_limits.default.rate",
	  "must be a number greater than 0, got nothing" },
	{ "rate a list", DEFAULT "{rate: [1], burst: 1}", 2, 19, "rate_limits.default.rate",
	  "must be a number greater than 0, got a list" },
	{ "rate too high", DEFAULT "{rate: 2e8, burst: 1}", 2, 19, "rate_limits.default.rate",
	  "must be at most 100000000, got 200000000" },
	{ "rate overflowing", DEFAULT "{rate: 1e999, burst: 1}", 2, 19, "rate_limits.default.rate",
	  "must be at most 100000000" },
	{ "rate too low", DEFAULT "{rate: 1e-9, burst: 1}", 2, 19, "rate_limits.default.rate",
	  "must be at least 2.3e-07, because a bucket forgets after 52 days, got 1e-09" },
	{ "burst 0", DEFAULT "{rate: 1, burst: 0}", 2, 29, "rate_limits.default.burst",
	  "must be an integer of at least 1, got 0" },
	{ "burst broken", DEFAULT "{rate: 1, burst: 1.5}", 2, 29, "rate_limits.default.burst",
	  "must be an integer of at least 1, got 1.5" },
	{ "burst too long", DEFAULT "{burst: 5000000, rate: 1}", 2, 20, "rate_limits.default.burst",
	  "must be at most 4503598 at this rate, got 5000000" },
	{ "burst overflowing", DEFAULT "{rate: 1, burst: 99999999999999999999}", 2, 29,
	  "rate_limits.default.burst", "must be at most 4398046511104" },
	{ "bytes in bits", DEFAULT "{rate: 1, burst: 1, bytes_per_second: 1Mbit}", 2, 50,
	  "rate_limits.default.bytes_per_second", "must be bytes per second greater than 0" },
	{ "bytes too fast", DEFAULT "{rate: 1, burst: 1, bytes_per_second: 1TB}", 2, 50,
	  "rate_limits.default.bytes_per_second", "must be at most 110000000000" },
	{ "bytes too slow", DEFAULT "{rate: 1, burst: 1, bytes_per_second: 1e-9}", 2, 50,
	  "rate_limits.default.bytes_per_second", "must be at least 2.3e-07" },
	{ "burst_bytes alone", DEFAULT "{rate: 1, burst: 1, burst_bytes: 1MB}", 2, 45,
	  "rate_limits.default.burst_bytes", "needs bytes_per_second" },
	{ "burst_bytes 0", DEFAULT "{rate: 1, burst: 1, bytes_per_second: 1, burst_bytes: 0B}", 2,
	  66, "rate_limits.default.burst_bytes", "must be whole bytes, at least 1" },
	{ "burst_bytes too long",
	  DEFAULT "{rate: 1, burst: 1, bytes_per_second: 1, burst_bytes: 1GB}", 2, 66,
	  "rate_limits.default.burst_bytes", "must be at most 4503598 at this rate" },
	{ "max_body_bytes broken", DEFAULT "{rate: 1, burst: 1, max_body_bytes: 0.5}", 2, 48,
	  "rate_limits.default.max_body_bytes", "must be whole bytes, at least 1" },
	{ "max_queue 0", DEFAULT "{rate: 1, burst: 1, max_queue: 0}", 2, 43,
	  "rate_limits.default.max_queue", "must be an integer of at least 1, got 0" },
	{ "max_queue with a unit", DEFAULT "{rate: 1, burst: 1, max_queue: 1KB}", 2, 43,
	  "rate_limits.default.max_queue", "must be an integer of at least 1, got \"1KB\"" },
	{ "max_queue_bytes too large", DEFAULT "{rate: 1, burst: 1, max_queue_bytes: 1e19}", 2, 49,
	  "rate_limits.default.max_queue_bytes", "must be at most 9223372036854775807" },
	{ "unlimited false", DEFAULT "{unlimited: false}", 2, 24, "rate_limits.default.unlimited",
	  "must be true or left out, got \"false\"" },
	{ "unlimited with a rate", DEFAULT "{rate: 1, unlimited: true}", 2, 33,
	  "rate_limits.default.unlimited", "must stand alone, got rate too" },
	{ "source 0", LIMITS "sources: {default: {bytes_per_second: 0}}", 2, 41,
	  "rate_limits.sources.default.bytes_per_second", "greater than 0, as 125000, 10MB" },
	{ "source too fast", LIMITS "sources: {default: {bytes_per_second: 1TB}}", 2, 41,
	  "rate_limits.sources.default.bytes_per_second", "must be at most 110000000000" },
	{ "source by name", LIMITS "sources: {shop: {bytes_per_second: 1}}", 2, 13,
	  "rate_limits.sources.shop", "unknown key; allowed here: default" },
	{ "scope fleet", LIMITS "scope: fleet", 2, 10, "rate_limits.scope",
	  "is not available yet: must be node, got \"fleet\"" },
	{ "scope unknown", LIMITS "scope: world", 2, 10, "rate_limits.scope", "must be node, got" },

	{ "proxy by name", "routes: {trusted_proxies: [lb]}", 1, 28, "routes.trusted_proxies[0]",
	  "must be an address or a prefix" },
	{ "proxy with host bits", "routes: {trusted_proxies: [10.1.0.0/8]}", 1, 28,
	  "routes.trusted_proxies[0]", "did you mean 10.0.0.0/8?" },
	{ "all proxies", "routes: {trusted_proxies: ['::/0']}", 1, 28, "routes.trusted_proxies[0]",
	  "holds all of IPv4" },
	{ "unix relative", "listen: {unix: run/s}", 1, 16, "listen.unix",
	  "must be an absolute path of at most 107 bytes" },
	{ "unix empty", "listen: {unix: }", 1, 16, "listen.unix", "or null, got nothing" },
	{ "unix too long",
	  "listen: {unix: "
	  "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}",
	  1, 16, "listen.unix", "at most 107 bytes" },
	{ "port alone", "listen: {tcp: 6380}", 1, 15, "listen.tcp", "must be ADDRESS:PORT" },
	{ "port 0", "listen: {tcp: '127.0.0.1:0'}", 1, 15, "listen.tcp", "must be ADDRESS:PORT" },
	{ "port too large", "listen: {tcp: 127.0.0.1:65536}", 1, 15, "listen.tcp", "ADDRESS:PORT" },
	{ "host by name", "listen: {tcp: localhost:6380}", 1, 15, "listen.tcp", "ADDRESS:PORT" },
	{ "IPv6 bare", "listen: {tcp: '::1:6380'}", 1, 15, "listen.tcp", "ADDRESS:PORT" },
	{ "IPv4 in brackets", "listen: {tcp: '[127.0.0.1]:1'}", 1, 15, "listen.tcp",
	  "ADDRESS:PORT" },
	{ "brackets open", "listen: {tcp: '[::1:6380'}", 1, 15, "listen.tcp", "ADDRESS:PORT" },
	{ "brackets empty", "listen: {tcp: '[]:6380'}", 1, 15, "listen.tcp", "ADDRESS:PORT" },
	{ "HTTP to the world", "listen: {http: '0.0.0.0:4002'}", 1, 16, "listen.http",
	  "without admin.tokens must be a loopback address" },
	{ "HTTP to the world in IPv6", "listen: {http: '[::]:4002'}", 1, 16, "listen.http",
	  "without admin.tokens must be a loopback address" },
	{ "state relative", "state: here", 1, 8, "state", "must be the absolute path of a folder" },
	{ "dataplane true", "dataplane: true", 1, 12, "dataplane", "must be on or off" },
	{ "workers 0", "workers: 0", 1, 10, "workers", "must be auto or a whole number from 1" },
	{ "workers 65", "workers: 65", 1, 10, "workers", "from 1 to 64, got \"65\"" },
	{ "slots odd", "tenant_slots: 100000", 1, 15, "tenant_slots", "must be a power of two" },
	{ "slots few", "tenant_slots: 512", 1, 15, "tenant_slots", "from 1024 to 16777216" },
	{ "slots many", "tenant_slots: 33554432", 1, 15, "tenant_slots", "must be a power of two" },
	{ "headers", "ratelimit_headers: draft9", 1, 20, "ratelimit_headers",
	  "must be off, legacy, draft6, draft7 or draft8, got \"draft9\"" },

	{ "token without a name", TOKENS "{sha256: " SHA ", scopes: [rate_limits:read]}", 3, 5,
	  "admin.tokens[0]", "name is missing: a token needs all of name, sha256 and scopes" },
	{ "token without a hash", TOKENS "{name: a, scopes: [rate_limits:read]}", 3, 5,
	  "admin.tokens[0]", "sha256 is missing" },
	{ "token without scopes", TOKENS "{name: a, sha256: " SHA "}", 3, 5, "admin.tokens[0]",
	  "scopes are missing" },
	{ "no scope", TOKENS "{name: a, sha256: " SHA ", scopes: []}", 3, 5, "admin.tokens[0]",
	  "scopes are missing" },
	{ "scope of another", TOKENS "{name: a, scopes: [admin]}", 3, 24,
	  "admin.tokens[0].scopes[0]", "must be rate_limits:read or rate_limits:write" },
	{ "name of spaces", TOKENS "{name: a b}", 3, 12, "admin.tokens[0].name",
	  "must be 1 to 64" },
	{ "name twice",
	  TOKENS "{name: a, sha256: " SHA
		 ", scopes: [rate_limits:read]}\n  - {name: a, sha256: " SHA_UPPER
		 ", scopes: [rate_limits:read]}",
	  4, 5, "admin.tokens[1].name", "a is given twice; the first is on line 3" },
	{ "hash twice",
	  TOKENS "{name: a, sha256: " SHA
		 ", scopes: [rate_limits:read]}\n  - {name: b, sha256: " SHA
		 ", scopes: [rate_limits:read]}",
	  4, 5, "admin.tokens[1].sha256", "is that of a, on line 3" },
};

static void bad_input_is_refused_where_it_stands(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(bad_rows); i++) {
		const struct bad_row *row = &bad_rows[i];
		struct settings *settings = NULL;
		struct settings_error error;

		check_row_equal(row,
				settings_parse(row->text, strlen(row->text), &settings, &error),
				-EINVAL);
		check_row(row, settings == NULL);
		if (!strstr(error.message, row->message))
			fail_msg("row \"%s\": the message is\n  %s\nwithout\n  %s", row->name,
				 error.message, row->message);
		check_row_equal(row, error.line, row->line);
		check_row_equal(row, error.column, row->column);
		check_row_text(row, error.key, row->key);
	}
}

/* It may be the token itself, pasted into the wrong place. */
static void a_bad_hash_is_not_repeated(void **state)
{
	static const char text[] = TOKENS "{name: a, sha256: my-secret-token}";
	struct settings *settings = NULL;
	struct settings_error error;

	(void)state;
	assert_int_equal(settings_parse(text, strlen(text), &settings, &error), -EINVAL);
	assert_string_equal(error.key, "admin.tokens[0].sha256");
	assert_non_null(strstr(error.message, "64 hexadecimal digits"));
	assert_null(strstr(error.message, "my-secret"));
}

static void lists_are_bounded(void **state)
{
	size_t room = 64 * 2048;
	char *text = malloc(room);
	struct settings *settings = NULL;
	struct settings_error error;
	size_t length;

	(void)state;
	assert_non_null(text);
	length = (size_t)sprintf(text, "routes:\n  trusted_proxies:\n");
	for (int i = 0; i <= TRUSTED_PROXIES_MAX; i++)
		length += (size_t)sprintf(text + length, "  - 10.0.%d.%d\n", i >> 8, i & 255);
	assert_int_equal(settings_parse(text, length, &settings, &error), -EINVAL);
	assert_string_equal(error.message, "is one prefix more than the 1024 that there may be");
	length = (size_t)sprintf(text, "admin:\n  tokens:\n");
	for (int i = 0; i <= ADMIN_TOKENS_MAX; i++)
		length += (size_t)sprintf(
			text + length,
			"  - {name: n%d, sha256: %064x, scopes: [rate_limits:read]}\n", i, i);
	assert_int_equal(settings_parse(text, length, &settings, &error), -EINVAL);
	assert_string_equal(error.message, "there can be at most 64 tokens");
	assert_null(settings);
	free(text);
}

static void a_hundred_thousand_tenants_are_read(void **state)
{
	enum { TENANTS = 100000 };
	char *text = malloc(TENANTS * 40 + 64);
	struct settings *settings;
	size_t length;

	(void)state;
	assert_non_null(text);
	length = (size_t)sprintf(text, "rate_limits:\n  tenants:\n");
	for (int i = 0; i < TENANTS; i++)
		length += (size_t)sprintf(text + length, "    t%d: {rate: 5, burst: 9}\n", i);
	settings = must_parse(text);
	assert_int_equal(settings->tenant_count, TENANTS);
	assert_string_equal(settings->tenants[TENANTS - 1].tenant, "t99999");
	settings_free(settings);
	free(text);
}

/* `# key: value` or `#   - key: value`; other comments are prose. */
static bool is_commented_out(const char *line)
{
	line += strspn(line, " ");
	if (line[0] != '#' || line[1] != ' ')
		return false;
	line += 1 + strspn(line + 1, " -");
	return line[strspn(line, "abcdefghijklmnopqrstuvwxyz_0123456789")] == ':';
}

static void what_the_example_has_commented_out_is_right_too(void **state)
{
	static char text[16384];
	FILE *file = fopen("dist/sluice.yaml", "r");
	char line[256];
	bool begun = false;
	struct settings *settings;

	(void)state;
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		char *mark = strstr(line, "# ");

		begun |= strstr(line, "From here on it is the daemon's") != NULL;
		assert_true(strlen(text) + sizeof(line) < sizeof(text));
		if (begun && is_commented_out(line))
			memmove(mark, mark + 2, strlen(mark + 2) + 1);
		strcat(text, line);
	}
	fclose(file);
	settings = must_parse(text);
	assert_int_equal(settings->tenant_count, 2);
	assert_true(settings->has_fallback && settings->sources_given);
	assert_int_equal(settings->trusted_proxy_count, 1);
	assert_int_equal(settings->token_count, 1);
	settings_free(settings);
}

static void words_come_back_as_they_were_read(void **state)
{
	enum ratelimit_headers headers = HEADERS_OFF;
	enum admin_scope scope = SCOPE_RATE_LIMITS_WRITE;

	(void)state;
	for (int i = HEADERS_OFF; i <= HEADERS_DRAFT8; i++) {
		assert_int_equal(
			ratelimit_headers_parse(ratelimit_headers_name((enum ratelimit_headers)i),
						&headers),
			0);
		assert_int_equal(headers, i);
	}
	assert_int_equal(admin_scope_parse("rate_limits:read", &scope), 0);
	assert_int_equal(scope, SCOPE_RATE_LIMITS_READ);
	assert_string_equal(admin_scope_name(SCOPE_RATE_LIMITS_WRITE), "rate_limits:write");
	assert_int_equal(admin_scope_parse("", &scope), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_defaults_are_those_of_the_documentation),
		cmocka_unit_test(hooks_are_read_in_both_forms),
		cmocka_unit_test(limits_of_tenants_are_read_whole),
		cmocka_unit_test(the_rest_of_the_daemon_is_read),
		cmocka_unit_test(bad_input_is_refused_where_it_stands),
		cmocka_unit_test(a_bad_hash_is_not_repeated),
		cmocka_unit_test(lists_are_bounded),
		cmocka_unit_test(a_hundred_thousand_tenants_are_read),
		cmocka_unit_test(what_the_example_has_commented_out_is_right_too),
		cmocka_unit_test(words_come_back_as_they_were_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
