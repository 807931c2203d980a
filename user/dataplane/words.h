/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Words for reasons, notes and rungs, one for each and the same everywhere: `ip_packets`. */
#ifndef SLUICE_DATAPLANE_WORDS_H
#define SLUICE_DATAPLANE_WORDS_H

#include <sluice/abi.h>

const char *reason_name(enum reason reason);
const char *note_name(enum note note);
const char *rung_name(enum rung rung);

#endif
