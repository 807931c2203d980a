/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Limits of any bytes, as PUT …/rate-limit takes them: either refused with a message that can be
 * shown, or read, built, and the same again when written and read back.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "limit/tenant_limit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
	if (!condition)
		abort();
}

static bool is_shown_safely(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	return true;
}

static void check(const struct tenant_limit *limit)
{
	struct tenant_limit again;
	char message[LIMIT_MESSAGE_MAX];
	json_t *json = tenant_limit_to_json(limit);
	char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

	must(text != NULL);
	must(limit->unlimited == (limit->hook_bucket.capacity == 0));
	must(limit->hook_bucket.capacity <= GCRA_CAPACITY_MAX);
	must((limit->bytes.rate != 0) == (limit->byte_bucket.capacity != 0));
	must(limit->byte_bucket.capacity <= GCRA_CAPACITY_MAX);
	must(tenant_limit_parse(text, strlen(text), &again, message) == 0);
	must(memcmp(limit, &again, sizeof(again)) == 0);
	free(text);
	json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tenant_limit limit;
	char message[LIMIT_MESSAGE_MAX] = "";

	if (tenant_limit_parse((const char *)data, size, &limit, message) == 0)
		check(&limit);
	else
		must(message[0] && is_shown_safely(message));
	return 0;
}
