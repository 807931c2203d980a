/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tries the ways to attach, where it touches nobody. For probe_kernel.c. */
#ifndef SLUICE_DATAPLANE_PROBE_ATTACH_H
#define SLUICE_DATAPLANE_PROBE_ATTACH_H

#include "dataplane/facts.h"

/* Fills FEATURE_LINK, FEATURE_TCX and FEATURE_CLSACT. */
void probe_attach(struct trial features[FEATURES]);

#endif
