/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From what the kernel answers, which is a bare number, to the cause and what helps. */
#ifndef SLUICE_DATAPLANE_EXPLAIN_H
#define SLUICE_DATAPLANE_EXPLAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/trouble.h"
#include "limit/settings.h"

/* Why loading the programs failed. Returns err. */
int explain_load(int err, struct trouble *trouble);

/* Why attaching to an interface failed. Looks at the interface to say more. Returns err. */
int explain_attach(int err, const char *name, uint32_t ifindex, enum attach_mode mode, bool frags,
		   struct trouble *trouble);

/* The same by the rung that was tried. */
int explain_rung(int err, const char *name, enum rung rung, struct trouble *trouble);

#endif
