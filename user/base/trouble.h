/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What to tell a person when something cannot be done: the cause, and what would help. */
#ifndef SLUICE_BASE_TROUBLE_H
#define SLUICE_BASE_TROUBLE_H

struct trouble {
	char cause[320];
	char remedy[320]; /* "" if there is nothing to advise */
};

/* Set the cause, clear the remedy, and return err, so that a caller can end with `return …`. */
int trouble_set(struct trouble *trouble, int err, const char *cause, ...)
	__attribute__((format(printf, 3, 4)));

/* Add what would help. */
void trouble_advise(struct trouble *trouble, const char *remedy, ...)
	__attribute__((format(printf, 2, 3)));

#endif
