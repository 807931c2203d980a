/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From what the kernel answers, which is a bare number, to the cause and what helps. */
#ifndef SLUICE_DATAPLANE_EXPLAIN_H
#define SLUICE_DATAPLANE_EXPLAIN_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/abi.h>

#include "base/trouble.h"

/* Why loading the programs failed. Returns err. */
int explain_load(int err, struct trouble *trouble);

/* Why a rung did not hold on an interface. Looks at the interface to say more. Returns err. */
int explain_rung(int err, const char *name, enum rung rung, struct trouble *trouble);

#endif
