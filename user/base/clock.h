/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The only reader of the clocks in user space. Thread safe. */
#ifndef SLUICE_BASE_CLOCK_H
#define SLUICE_BASE_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC as the kernel's programs see it: what a time namespace adds is taken off. */
uint64_t clock_monotonic_ns(void);

/* How far CLOCK_MONOTONIC_COARSE may lie behind: one timer tick. */
uint64_t clock_tick_ns(void);

#endif
