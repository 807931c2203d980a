/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The programs as they are, and one more that draws the source of each frame. */
#include "bpf/sluice.bpf.c"

#include "tests/bench/fresh.h"
