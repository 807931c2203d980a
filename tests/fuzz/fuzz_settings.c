/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Configuration files of any bytes: either refused with a message that can be shown, or accepted
 * and then fit to be reported.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "limit/settings.h"
#include "limit/settings_report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
	if (!condition)
		abort();
}

static bool is_shown_safely(const char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			return false;
	return true;
}

static void report(const struct settings *settings)
{
	json_t *json = settings_report_json(settings);
	FILE *out = fopen("/dev/null", "w");
	size_t i;

	must(json != NULL && out != NULL);
	settings_report_print(settings, out);
	fclose(out);
	json_decref(json);
	for (i = 0; i < settings->prefix_count; i++)
		must(settings->prefixes[i].bits <= 128);
	must(settings->ipv6_prefix >= IPV6_PREFIX_MIN && settings->ipv6_prefix <= IPV6_PREFIX_MAX);
	must(settings->interface_count <= INTERFACES_MAX);
	for (i = 0; i < settings->tenant_count; i++)
		must(tenant_id_is_valid(settings->tenants[i].tenant,
					strlen(settings->tenants[i].tenant)));
	for (i = 0; i < settings->trusted_proxy_count; i++)
		must(settings->trusted_proxies[i].bits <= 128);
	must(settings->trusted_proxy_count <= TRUSTED_PROXIES_MAX);
	must(settings->token_count <= ADMIN_TOKENS_MAX && settings->workers <= WORKERS_MAX);
	must(settings->tenant_slots >= TENANT_SLOTS_MIN &&
	     (settings->tenant_slots & (settings->tenant_slots - 1)) == 0);
	must(settings->state[0] == '/' && settings->source_bytes.burst > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct settings *settings = NULL;
	struct settings_error error;

	if (settings_parse((const char *)data, size, &settings, &error) == 0) {
		report(settings);
		settings_free(settings);
		return 0;
	}
	must(settings == NULL);
	must(error.message[0] && is_shown_safely(error.message) && is_shown_safely(error.key));
	return 0;
}
