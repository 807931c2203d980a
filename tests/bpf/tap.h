/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A TAP interface in a network namespace of its own, with the program for TC at its ingress (by
 * clsact, which every kernel has) and a probe behind it. A frame that is written comes in as from a
 * driver, and with what a driver can say of it and BPF_PROG_TEST_RUN cannot: how much of it is
 * linear, and that it stands for many which nobody has counted. When tap_send() returns, the
 * programs have run.
 *
 * The process stays in the namespace.
 */
#ifndef SLUICE_TESTS_TAP_H
#define SLUICE_TESTS_TAP_H

#include <stdbool.h>
#include <stdint.h>

#include "harness.h"

struct arrival_probe_bpf;

struct tap {
	int fd;
	uint32_t ifindex;
	struct arrival_probe_bpf *probe;
	uint64_t arrived; /* as it stood after the last frame */
};

/* Whether this kernel has such interfaces. If not, a test says so with need_tap() and is skipped.
 */
bool tap_is_known(void);

#define need_tap()                                                                     \
	do {                                                                           \
		if (tap_is_known())                                                    \
			break;                                                         \
		print_message("# this kernel has no TAP interfaces (/dev/net/tun)\n"); \
		skip();                                                                \
	} while (0)

/* Anything that does not work fails the test. */

/* Leave for a network namespace that nobody else knows. */
void tap_own_namespace(void);

/* An interface of this number that is up, and nothing more. It is gone when the descriptor is
 * closed. */
int tap_make(uint32_t ifindex);

/* All of it. */
void tap_open(struct tap *tap, const struct harness *harness, uint32_t ifindex);
void tap_close(struct tap *tap);

/* How a frame is put before the programs. */
struct tap_frame {
	const void *byte;
	uint32_t bytes;
	uint32_t linear_bytes; /* at least 14; 0: all. The kernel heeds it if they are a page or
				  more */
	uint16_t payload_each; /* it stands for many of such a payload, uncounted; 0: it does not */
	bool is_v6;            /* that many: of TCP over IPv6, else over IPv4 */
};

/* What was counted of it; the action is what the probe saw. */
struct ran tap_send(struct tap *tap, struct harness *harness, const struct tap_frame *frame);

#endif
