/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The only reader of time in the programs: CLOCK_MONOTONIC, in nanoseconds. The fine clock is the
 * dearest thing on the path; the coarse one costs a quarter of it and lies behind it by up to
 * config.coarse_lag_ns (a timer tick). Under FAKE_CLOCK, in the tests' build of the programs, both
 * are variables that the tests set. The host's tests bring functions of their own.
 */
#ifndef SLUICE_CLOCK_H
#define SLUICE_CLOCK_H

#include <sluice/types.h>

#if !defined(__bpf__)

__u64 clock_now_ns(void);
__u64 clock_coarse_ns(void);

#elif defined(FAKE_CLOCK)

__u64 fake_now_ns;
__u64 fake_lag_ns;

SLUICE_INLINE __u64 clock_now_ns(void)
{
	return *(volatile __u64 *)&fake_now_ns;
}

SLUICE_INLINE __u64 clock_coarse_ns(void)
{
	return *(volatile __u64 *)&fake_now_ns - *(volatile __u64 *)&fake_lag_ns;
}

#else

#include <bpf/bpf_helpers.h>

SLUICE_INLINE __u64 clock_now_ns(void)
{
	return bpf_ktime_get_ns();
}

SLUICE_INLINE __u64 clock_coarse_ns(void)
{
	return bpf_ktime_get_coarse_ns();
}

#endif

#endif
