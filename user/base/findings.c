/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The list of findings. What does not fit into a sentence is cut off, since this is for reading. */
#include "base/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIRST_ROOM = 32 };

static struct finding *take_place(struct findings *findings)
{
	struct finding *grown;
	size_t room;

	if (findings->count < findings->room)
		return &findings->list[findings->count++];
	room = findings->room ? 2 * findings->room : FIRST_ROOM;
	grown = realloc(findings->list, room * sizeof(*grown));
	if (!grown) {
		findings->failed = true;
		return &findings->spare;
	}
	findings->list = grown;
	findings->room = room;
	return &findings->list[findings->count++];
}

struct finding *findings_add(struct findings *findings, enum finding_level level,
			     const char *subject, const char *what, ...)
{
	struct finding *finding = take_place(findings);
	va_list arguments;

	*finding = (struct finding){ .level = level };
	(void)snprintf(finding->subject, sizeof(finding->subject), "%s", subject);
	va_start(arguments, what);
	(void)vsnprintf(finding->what, sizeof(finding->what), what, arguments);
	va_end(arguments);
	return finding;
}

void finding_explain(struct finding *finding, const char *why, ...)
{
	va_list arguments;

	va_start(arguments, why);
	(void)vsnprintf(finding->why, sizeof(finding->why), why, arguments);
	va_end(arguments);
}

void finding_advise(struct finding *finding, const char *remedy, ...)
{
	va_list arguments;

	va_start(arguments, remedy);
	(void)vsnprintf(finding->remedy, sizeof(finding->remedy), remedy, arguments);
	va_end(arguments);
}

size_t findings_count(const struct findings *findings, enum finding_level level)
{
	size_t count = 0;

	for (size_t at = 0; at < findings->count; at++)
		count += findings->list[at].level == level;
	return count;
}

static bool has_failure(const struct findings *findings, bool is_permission)
{
	for (size_t at = 0; at < findings->count; at++)
		if (findings->list[at].level == FINDING_FAILURE &&
		    findings->list[at].is_permission == is_permission)
			return true;
	return false;
}

bool findings_has_failure(const struct findings *findings)
{
	return has_failure(findings, false);
}

bool findings_lacks_permission(const struct findings *findings)
{
	return has_failure(findings, true);
}

const char *finding_level_name(enum finding_level level)
{
	static const char *const names[FINDING_LEVELS] = { "ok", "note", "warning", "failure" };

	return level < FINDING_LEVELS ? names[level] : "unknown";
}

void findings_done(struct findings *findings)
{
	free(findings->list);
	*findings = (struct findings){};
}
