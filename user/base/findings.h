/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an examination finds: a list of sentences, each with how grave it is, why it matters and
 * what to do about it. Who judges adds to it; who prints reads it. Not thread safe.
 */
#ifndef SLUICE_BASE_FINDINGS_H
#define SLUICE_BASE_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>

enum finding_level {
	FINDING_OK,
	FINDING_NOTE,    /* worth knowing, nothing to do */
	FINDING_WARNING, /* it would work, but not as well, or not as meant */
	FINDING_FAILURE, /* it would not work */
	FINDING_LEVELS,
};

struct finding {
	enum finding_level level;
	bool is_permission; /* a failure of this process only: more rights would tell, or would do
			     */
	char subject[32];   /* an interface, or a part of the host: kernel, memory … */
	char what[400];
	char why[400];    /* "" if what says it */
	char remedy[400]; /* the command; "" if there is nothing to do */
};

struct findings {
	struct finding *list;
	size_t count;
	size_t room;
	bool failed; /* out of memory: some are missing */
	struct finding spare;
};

/* Add one. It can be changed until the next is added; never NULL. */
struct finding *findings_add(struct findings *findings, enum finding_level level,
			     const char *subject, const char *what, ...)
	__attribute__((format(printf, 4, 5)));

/* Say why it matters; say what to do. */
void finding_explain(struct finding *finding, const char *why, ...)
	__attribute__((format(printf, 2, 3)));
void finding_advise(struct finding *finding, const char *remedy, ...)
	__attribute__((format(printf, 2, 3)));

/* How many there are of a level. */
size_t findings_count(const struct findings *findings, enum finding_level level);

/* Whether there is a failure that more rights would not mend; whether there is one that they would.
 */
bool findings_has_failure(const struct findings *findings);
bool findings_lacks_permission(const struct findings *findings);

const char *finding_level_name(enum finding_level level);

/* A zeroed one is fine. */
void findings_done(struct findings *findings);

#endif
