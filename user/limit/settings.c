/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Making and freeing settings, and the words that stand for their values. */
#include "limit/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const meter_names[METERS] = {
	[METER_CONNECTIONS] = "connections",
	[METER_PACKETS] = "packets",
	[METER_BYTES] = "bytes",
};

static const char *const mode_names[] = {
	[MODE_AUTO] = "auto",
	[MODE_NATIVE] = "native",
	[MODE_GENERIC] = "generic",
};

static const char *const when_full_names[] = {
	[WHEN_FULL_SHARE] = "share",
	[WHEN_FULL_REFUSE] = "refuse",
	[WHEN_FULL_ADMIT] = "admit",
};

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

int attach_mode_parse(const char *word, enum attach_mode *out)
{
	size_t i;

	for (i = 0; i < sizeof(mode_names) / sizeof(*mode_names); i++) {
		if (strcmp(word, mode_names[i]) == 0) {
			*out = (enum attach_mode)i;
			return 0;
		}
	}
	return -EINVAL;
}

int when_full_parse(const char *word, enum when_full *out)
{
	size_t i;

	for (i = 0; i < sizeof(when_full_names) / sizeof(*when_full_names); i++) {
		if (strcmp(word, when_full_names[i]) == 0) {
			*out = (enum when_full)i;
			return 0;
		}
	}
	return -EINVAL;
}

struct settings *settings_new(void)
{
	struct settings *settings = calloc(1, sizeof(*settings));

	if (settings)
		settings->ipv6_prefix = IPV6_PREFIX_DEFAULT;
	return settings;
}

void settings_free(struct settings *settings)
{
	if (!settings)
		return;
	free(settings->interfaces);
	free(settings->prefixes);
	free(settings->bpffs);
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
