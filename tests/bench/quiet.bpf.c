/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A peer: the same programs, which tell of no refusal: no offender, no event. */
#include "bpf/report.h"

#define report_refusal(data, data_end, packet, refusal) \
	((void)(data), (void)(data_end), (void)(packet), (void)(refusal))

#include "bpf/sluice.bpf.c"

#include "tests/bench/fresh.h"
