/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a driver says of itself: its name, its queues, its offloads. Reads only. */
#ifndef SLUICE_DATAPLANE_ETHTOOL_H
#define SLUICE_DATAPLANE_ETHTOOL_H

#include <stdbool.h>
#include <stdint.h>

/* What `ethtool -l` shows. */
struct channels {
	bool is_known;
	uint32_t receive, transmit, combined; /* in use */
	uint32_t receive_max, transmit_max, combined_max;
};

/* One line of `ethtool -k`. */
struct offload {
	bool is_known;
	bool is_on;
	bool is_fixed; /* cannot be switched */
};

struct driver_facts {
	char driver[32]; /* "" if it does not say */
	char bus[32];    /* where the card is; "" for what is made by software */
	struct channels channels;
	struct offload lro;    /* large-receive-offload */
	struct offload gro_hw; /* rx-gro-hw */
	struct offload rxvlan; /* rx-vlan-offload */
	struct offload tso;    /* tx-tcp-segmentation */
};

/* What cannot be read is left unknown. */
void ethtool_read(const char *name, struct driver_facts *out);

#endif
