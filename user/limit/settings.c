/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Making and freeing settings, and the words that stand for their values. */
#include "limit/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const meter_names[METERS + 1] = {
	[METER_CONNECTIONS] = "connections",
	[METER_PACKETS] = "packets",
	[METER_BYTES] = "bytes",
	[METER_HOOKS] = "hooks",
};

static const char *const mode_names[] = {
	[MODE_AUTO] = "auto",       [MODE_NATIVE] = "native", [MODE_TC] = "tc",
	[MODE_GENERIC] = "generic", [MODE_CLSACT] = "clsact",
};

static const char *const when_full_names[] = {
	[WHEN_FULL_SHARE] = "share",
	[WHEN_FULL_REFUSE] = "refuse",
	[WHEN_FULL_ADMIT] = "admit",
};

static const char *const headers_names[] = {
	[HEADERS_OFF] = "off",       [HEADERS_LEGACY] = "legacy", [HEADERS_DRAFT6] = "draft6",
	[HEADERS_DRAFT7] = "draft7", [HEADERS_DRAFT8] = "draft8",
};

/* By the number of the bit. */
static const char *const scope_names[] = {
	"rate_limits:read",
	"rate_limits:write",
};

/* -EINVAL if the word is none of them. */
static int find_word(const char *word, const char *const *names, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (strcmp(word, names[i]) == 0)
			return (int)i;
	return -EINVAL;
}

#define FIND_WORD(word, names) find_word(word, names, sizeof(names) / sizeof(*(names)))

const char *meter_name(enum meter meter)
{
	return meter_names[meter];
}

const char *attach_mode_name(enum attach_mode mode)
{
	return mode_names[mode];
}

const char *when_full_name(enum when_full when_full)
{
	return when_full_names[when_full];
}

const char *ratelimit_headers_name(enum ratelimit_headers headers)
{
	return headers_names[headers];
}

const char *admin_scope_name(enum admin_scope scope)
{
	return scope_names[__builtin_ctz(scope)];
}

int attach_mode_parse(const char *word, enum attach_mode *out)
{
	int found = FIND_WORD(word, mode_names);

	if (found < 0)
		return found;
	*out = (enum attach_mode)found;
	return 0;
}

int attach_require_parse(const char *word, enum attach_mode *out)
{
	enum attach_mode mode;

	if (attach_mode_parse(word, &mode) || (mode != MODE_NATIVE && mode != MODE_TC))
		return -EINVAL;
	*out = mode;
	return 0;
}

bool attach_mode_can_be(enum attach_mode mode, enum attach_mode require)
{
	if (mode == MODE_AUTO || require == MODE_AUTO)
		return true;
	return mode == MODE_NATIVE || (require == MODE_TC && mode != MODE_GENERIC);
}

int when_full_parse(const char *word, enum when_full *out)
{
	int found = FIND_WORD(word, when_full_names);

	if (found < 0)
		return found;
	*out = (enum when_full)found;
	return 0;
}

int ratelimit_headers_parse(const char *word, enum ratelimit_headers *out)
{
	int found = FIND_WORD(word, headers_names);

	if (found < 0)
		return found;
	*out = (enum ratelimit_headers)found;
	return 0;
}

int admin_scope_parse(const char *word, enum admin_scope *out)
{
	int found = FIND_WORD(word, scope_names);

	if (found < 0)
		return found;
	*out = (enum admin_scope)(1 << found);
	return 0;
}

struct settings *settings_new(void)
{
	static const union address loopback = {
		.byte = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 },
	};
	struct settings *settings = calloc(1, sizeof(*settings));

	if (!settings)
		return NULL;
	settings->shed = true;
	settings->ipv6_prefix = IPV6_PREFIX_DEFAULT;
	settings->source_bytes.rate = SOURCE_BYTES_DEFAULT;
	settings->source_bytes.burst = SOURCE_BYTES_DEFAULT;
	settings->listen.http.address = loopback;
	settings->listen.http.port = HTTP_PORT_DEFAULT;
	settings->tenant_slots = TENANT_SLOTS_DEFAULT;
	settings->ratelimit_headers = HEADERS_DRAFT8;
	strcpy(settings->listen.unix_path, LISTEN_PATH_DEFAULT);
	strcpy(settings->state, STATE_DEFAULT);
	return settings;
}

void settings_free(struct settings *settings)
{
	if (!settings)
		return;
	free(settings->interfaces);
	free(settings->prefixes);
	free(settings->bpffs);
	free(settings->tenants);
	free(settings->trusted_proxies);
	free(settings->tokens);
	free(settings);
}

void settings_error_print(const struct settings_error *error, const char *path, FILE *out)
{
	fprintf(out, "%s:", path);
	if (error->line)
		fprintf(out, "%u:%u:", error->line, error->column);
	if (error->key[0])
		fprintf(out, " %s:", error->key);
	fprintf(out, " %s\n", error->message);
}
