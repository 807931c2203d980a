/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The fixed-width types and the few compiler words that both halves share. */
#ifndef SLUICE_TYPES_H
#define SLUICE_TYPES_H

#ifdef __bpf__
#include "vmlinux.h"
#else
#include <linux/types.h>
#include <stdbool.h>
#endif

/* BPF programs must be inlined to stay within one stack frame; gcc may decide for itself. */
#ifdef __bpf__
#define SLUICE_INLINE static inline __attribute__((always_inline))
#else
#define SLUICE_INLINE static inline __attribute__((unused))
#endif

#endif
