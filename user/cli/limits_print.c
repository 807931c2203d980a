/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Formats limits for status and ip. */
#include "cli/limits_print.h"

#include <stdio.h>

#include "base/parse.h"
#include "limit/build.h"

void limit_text(const struct gcra_limit *limit, enum meter meter, uint64_t held_back,
		char text[LIMIT_TEXT_MAX])
{
	uint64_t burst = limit->burst + held_back;
	char rate[RATE_TEXT_MAX], size[SIZE_TEXT_MAX];

	if (!limit->capacity) {
		(void)snprintf(text, LIMIT_TEXT_MAX, "none");
		return;
	}
	if (meter != METER_BYTES) {
		format_rate(limit_enforced_rate(limit), rate);
		(void)snprintf(text, LIMIT_TEXT_MAX, "%s, burst %llu", rate,
			       (unsigned long long)burst);
		return;
	}
	format_size(limit_enforced_rate(limit), rate);
	format_size((double)burst, size);
	(void)snprintf(text, LIMIT_TEXT_MAX, "%s/s, burst %s", rate, size);
}

json_t *limit_json(const struct gcra_limit *limit, uint64_t held_back)
{
	if (!limit->capacity)
		return json_null();
	return json_pack("{sf sI}", "rate", limit_enforced_rate(limit), "burst",
			 (json_int_t)(limit->burst + held_back));
}
