/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cmocka wants four headers before its own, in this order; so every unit test includes this one. */
#ifndef SLUICE_TEST_H
#define SLUICE_TEST_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(*(array)))

/* How often to repeat what is usually repeated so often: TEST_DIVISOR in the environment makes it
 * so many times less, where everything is slow (tests/kernel). */
static inline unsigned test_repeat(unsigned usual)
{
	const char *divisor = getenv("TEST_DIVISOR");
	long by = divisor ? strtol(divisor, NULL, 10) : 1;

	return by > 1 && by <= (long)usual ? usual / (unsigned)by : usual;
}

/* Fail with the row's name in the message. row: the struct of a table that has a .name. */
#define check_row(row, condition)                                                          \
	do {                                                                               \
		if (!(condition))                                                          \
			fail_msg("row \"%s\": %s does not hold", (row)->name, #condition); \
	} while (0)

/* The same for two integers, showing both. */
#define check_row_equal(row, got, wanted)                                                     \
	do {                                                                                  \
		long long got_ = (long long)(got), wanted_ = (long long)(wanted);             \
		if (got_ != wanted_)                                                          \
			fail_msg("row \"%s\": %s is %lld, not %lld", (row)->name, #got, got_, \
				 wanted_);                                                    \
	} while (0)

/* The same for two strings. */
#define check_row_text(row, got, wanted)                                                        \
	do {                                                                                    \
		const char *got_ = (got), *wanted_ = (wanted);                                  \
		if (strcmp(got_, wanted_) != 0)                                                 \
			fail_msg("row \"%s\": %s is\n  %s\nnot\n  %s", (row)->name, #got, got_, \
				 wanted_);                                                      \
	} while (0)

#endif
