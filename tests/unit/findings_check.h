/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For the tests of doctor: what a row of facts must lead to, and a kernel that can do everything.
 */
#ifndef SLUICE_FINDINGS_CHECK_H
#define SLUICE_FINDINGS_CHECK_H

#include "test.h"

#include <string.h>

#include "dataplane/diagnose.h"

/* A finding that a case must lead to; level FINDING_LEVELS: none of this subject but ok. */
struct wanted {
	enum finding_level level;
	const char *subject;
	const char *what; /* parts of it */
	const char *remedy;
	bool is_permission;
};

static inline void check_wanted(const char *name, const struct findings *findings,
				const struct wanted *wanted)
{
	for (size_t at = 0; at < findings->count; at++) {
		const struct finding *one = &findings->list[at];

		if (strcmp(one->subject, wanted->subject))
			continue;
		if (wanted->level == FINDING_LEVELS) {
			if (one->level > FINDING_OK)
				fail_msg("row \"%s\": unwanted %s: %s", name,
					 finding_level_name(one->level), one->what);
			continue;
		}
		if (one->level == wanted->level && strstr(one->what, wanted->what) &&
		    (!wanted->remedy || strstr(one->remedy, wanted->remedy)) &&
		    one->is_permission == wanted->is_permission)
			return;
	}
	if (wanted->level == FINDING_LEVELS)
		return;
	for (size_t at = 0; at < findings->count; at++)
		print_message("%s %s: %s -> %s\n", finding_level_name(findings->list[at].level),
			      findings->list[at].subject, findings->list[at].what,
			      findings->list[at].remedy);
	fail_msg("row \"%s\": no %s of %s says: %s", name, finding_level_name(wanted->level),
		 wanted->subject, wanted->what);
}

/* A kernel that can do all of it. */
static inline struct kernel_facts able_kernel(void)
{
	struct kernel_facts kernel = {
		.release = "6.1.0",
		.is_compiled = ANSWER_YES,
		.clock_source = "tsc",
		.fine_clock_ns = 40,
		.coarse_clock_ns = 5,
	};

	for (int feature = 0; feature < FEATURES; feature++)
		kernel.features[feature].answer = ANSWER_YES;
	return kernel;
}

#endif
