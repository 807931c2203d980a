/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The ethtool ioctls that read. They need no rights, and drivers that lack one say so. */
#include "dataplane/ethtool.h"

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/ethtool.h>
#include <linux/sockios.h>

enum { BITS_PER_BLOCK = 32 };

static bool ask(int fd, const char *name, void *command)
{
	struct ifreq request = { .ifr_data = command };

	(void)snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	return !ioctl(fd, SIOCETHTOOL, &request);
}

static void read_driver(int fd, const char *name, struct driver_facts *out)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };

	if (!ask(fd, name, &info))
		return;
	(void)snprintf(out->driver, sizeof(out->driver), "%.*s", (int)sizeof(info.driver) - 1,
		       info.driver);
	/* Software says "" or "N/A". */
	if (strchr(info.bus_info, ':') || strchr(info.bus_info, '-'))
		(void)snprintf(out->bus, sizeof(out->bus), "%.*s", (int)sizeof(info.bus_info) - 1,
			       info.bus_info);
}

static void read_channels(int fd, const char *name, struct channels *out)
{
	struct ethtool_channels channels = { .cmd = ETHTOOL_GCHANNELS };

	if (!ask(fd, name, &channels))
		return;
	*out = (struct channels){
		.is_known = true,
		.receive = channels.rx_count,
		.transmit = channels.tx_count,
		.combined = channels.combined_count,
		.receive_max = channels.max_rx,
		.transmit_max = channels.max_tx,
		.combined_max = channels.max_combined,
	};
}

/* How many offloads the kernel has names for; 0: it does not say. */
static uint32_t count_offloads(int fd, const char *name)
{
	struct {
		struct ethtool_sset_info info;
		uint32_t count;
	} question = { .info = { .cmd = ETHTOOL_GSSET_INFO,
				 .sset_mask = 1ULL << ETH_SS_FEATURES } };

	if (!ask(fd, name, &question) || !question.info.sset_mask)
		return 0;
	return question.count;
}

static void take_offload(const struct ethtool_get_features_block *block, uint32_t bit,
			 struct offload *out)
{
	uint32_t mask = 1U << bit;

	*out = (struct offload){
		.is_known = true,
		.is_on = block->active & mask,
		.is_fixed = !(block->available & mask) || block->never_changed & mask,
	};
}

static void read_offloads(int fd, const char *name, struct driver_facts *out)
{
	const struct {
		const char *name;
		struct offload *to;
	} wanted[] = {
		{ "rx-lro", &out->lro },
		{ "rx-gro-hw", &out->gro_hw },
		{ "rx-vlan-hw-parse", &out->rxvlan },
		{ "tx-tcp-segmentation", &out->tso },
	};
	uint32_t count = count_offloads(fd, name);
	uint32_t blocks = (count + BITS_PER_BLOCK - 1) / BITS_PER_BLOCK;
	struct ethtool_gstrings *names =
		calloc(1, sizeof(*names) + (size_t)count * ETH_GSTRING_LEN);
	struct ethtool_gfeatures *states =
		calloc(1, sizeof(*states) + blocks * sizeof(states->features[0]));

	if (!names || !states || !count)
		goto out;
	names->cmd = ETHTOOL_GSTRINGS;
	names->string_set = ETH_SS_FEATURES;
	names->len = count;
	states->cmd = ETHTOOL_GFEATURES;
	states->size = blocks;
	if (!ask(fd, name, names) || !ask(fd, name, states))
		goto out;
	for (uint32_t at = 0; at < count && at < names->len; at++)
		for (size_t row = 0; row < sizeof(wanted) / sizeof(wanted[0]); row++)
			if (!strncmp((const char *)names->data + at * ETH_GSTRING_LEN,
				     wanted[row].name, ETH_GSTRING_LEN))
				take_offload(&states->features[at / BITS_PER_BLOCK],
					     at % BITS_PER_BLOCK, wanted[row].to);
out:
	free(names);
	free(states);
}

void ethtool_read(const char *name, struct driver_facts *out)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	*out = (struct driver_facts){};
	if (fd < 0)
		return;
	read_driver(fd, name, out);
	read_channels(fd, name, &out->channels);
	read_offloads(fd, name, out);
	(void)close(fd);
}
