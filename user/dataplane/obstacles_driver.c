/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the drivers of cards want before they take a program: queues, offloads, the size of frames.
 * As their users report it and as is known of them, not tried on each: what it says is where to look
 * first. Where a driver says nothing but a number, this is the likeliest of what it would have said.
 */
#include "dataplane/obstacles_internal.h"

#include <errno.h>
#include <string.h>

enum {
	VETH_SINGLE_MTU =
		3506,    /* a page less head room, Ethernet header and the kernel's own part */
	SAFE_MTU = 2030, /* two frames to a page: what every driver can do in one buffer */
};

/* What is peculiar to a driver. All zero: nothing that we know of. */
struct driver_rule {
	const char *driver;
	bool halves;      /* wants as many queues unused as are used */
	bool joined;      /* wants receive and transmit queues in pairs */
	bool refuses_lro; /* with LRO on */
	bool refuses_gro_hw;
	uint32_t mtu_max; /* in one buffer; 0: SINGLE_BUFFER_MTU */
};

static const struct driver_rule rules[] = {
	{ .driver = "ena", .halves = true },
	{ .driver = "gve", .halves = true, .mtu_max = 1786 },
	{ .driver = "bnxt_en", .joined = true },
	{ .driver = "mlx5_core", .refuses_lro = true, .refuses_gro_hw = true },
	{ .driver = "hv_netvsc", .refuses_lro = true },
	{ .driver = "sfc", .refuses_lro = true },
	{ .driver = "thunder-nicvf", .refuses_lro = true, .mtu_max = 1500 },
	{ .driver = "virtio_net", .refuses_gro_hw = true, .mtu_max = 3506 },
	{ .driver = "veth", .mtu_max = VETH_SINGLE_MTU },
};

static const struct driver_rule *rule_of(const struct interface_facts *facts)
{
	static const struct driver_rule none = {};

	for (size_t at = 0; at < sizeof(rules) / sizeof(rules[0]); at++)
		if (!strcmp(facts->driver.driver, rules[at].driver))
			return &rules[at];
	return &none;
}

/* ---- offloads and queues */

static bool has_lro(const struct interface_facts *facts)
{
	return facts->driver.lro.is_on && !obstacle_lacks_native(facts);
}

static bool has_refused_lro(const struct interface_facts *facts)
{
	return has_lro(facts) && rule_of(facts)->refuses_lro;
}

static void say_lro(const struct interface_facts *facts, struct trouble *trouble)
{
	trouble_set(trouble, 0,
		    "%s joins packets in the card (LRO is on), which drivers do not do "
		    "together with XDP",
		    facts->name);
	trouble_advise(trouble, "ethtool -K %s lro off", facts->name);
}

static bool has_gro_hw(const struct interface_facts *facts)
{
	return facts->driver.gro_hw.is_on && rule_of(facts)->refuses_gro_hw &&
	       (facts->driver.gro_hw.is_fixed || strcmp(facts->driver.driver, "virtio_net") != 0);
}

static void say_gro_hw(const struct interface_facts *facts, struct trouble *trouble)
{
	trouble_set(trouble, 0,
		    "packets are joined before they reach %s (rx-gro-hw is on%s), which "
		    "this driver does not do together with XDP",
		    facts->name, facts->driver.gro_hw.is_fixed ? " and cannot be switched" : "");
	if (!facts->driver.gro_hw.is_fixed)
		trouble_advise(trouble, "ethtool -K %s rx-gro-hw off", facts->name);
	else
		trouble_advise(
			trouble,
			"turn it off where the virtual machine is defined (QEMU: "
			"guest_tso4=off,guest_tso6=off,guest_ufo=off,guest_csum=off), or use "
			"--mode tc");
}

static bool has_too_few_spare(const struct interface_facts *facts)
{
	const struct channels *channels = &facts->driver.channels;

	return rule_of(facts)->halves && channels->is_known &&
	       2 * channels->combined > channels->combined_max;
}

static void say_too_few_spare(const struct interface_facts *facts, struct trouble *trouble)
{
	const struct channels *channels = &facts->driver.channels;
	uint32_t half = channels->combined_max / 2;

	trouble_set(trouble, 0,
		    "%s uses %u of its %u queues, and its driver (%s) wants as many unused "
		    "ones for XDP",
		    facts->name, channels->combined, channels->combined_max, facts->driver.driver);
	if (half)
		trouble_advise(trouble, "ethtool -L %s combined %u", facts->name, half);
	else
		trouble_advise(trouble, "a larger machine has more queues; or use --mode tc");
}

static bool has_apart_queues(const struct interface_facts *facts)
{
	const struct channels *channels = &facts->driver.channels;

	return rule_of(facts)->joined && channels->is_known && !channels->combined;
}

static void say_apart_queues(const struct interface_facts *facts, struct trouble *trouble)
{
	const struct channels *channels = &facts->driver.channels;
	uint32_t count =
		channels->receive < channels->transmit ? channels->receive : channels->transmit;

	if (count > channels->combined_max)
		count = channels->combined_max;
	trouble_set(trouble, 0,
		    "%s has queues apart for what comes and what goes, and its driver (%s) "
		    "wants them in pairs for XDP",
		    facts->name, facts->driver.driver);
	trouble_advise(trouble, "ethtool -L %s rx 0 tx 0 combined %u", facts->name,
		       count ? count : 1);
}

/* virtio before Linux 5.13, and others: a queue to send from for each CPU. */
static bool has_no_spare_queues(const struct interface_facts *facts)
{
	const struct channels *channels = &facts->driver.channels;

	return channels->is_known && channels->combined && channels->combined_max;
}

static void say_no_spare_queues(const struct interface_facts *facts, struct trouble *trouble)
{
	const struct channels *channels = &facts->driver.channels;
	uint32_t fewer = channels->combined > 1 ? channels->combined / 2 : 1;

	trouble_set(trouble, 0,
		    "%s has too few queues for XDP: %u of %u are used, and its driver (%s) "
		    "wants one more for each CPU",
		    facts->name, channels->combined, channels->combined_max, facts->driver.driver);
	if (fewer < channels->combined)
		trouble_advise(trouble, "ethtool -L %s combined %u", facts->name, fewer);
	else
		trouble_advise(trouble, "give the machine more queues; or use --mode tc");
}

static bool has_narrow_peer(const struct interface_facts *facts)
{
	return !strcmp(facts->kind, "veth") && facts->driver.channels.is_known &&
	       facts->peer_transmit_queues > facts->driver.channels.receive;
}

static void say_narrow_peer(const struct interface_facts *facts, struct trouble *trouble)
{
	uint32_t receive = facts->driver.channels.receive;

	trouble_set(trouble, 0,
		    "%s receives by %u queues, and its other end sends by %u: native XDP "
		    "wants at least as many",
		    facts->name, receive, facts->peer_transmit_queues);
	if (facts->driver.channels.receive_max >= facts->peer_transmit_queues)
		trouble_advise(trouble, "ethtool -L %s rx %u", facts->name,
			       facts->peer_transmit_queues);
	else
		trouble_advise(trouble, "ethtool -L %s tx %u", facts->lower, receive);
}

/* ---- the size of frames */

/* What comes in is as large as the other end may send. */
static uint32_t mtu_that_counts(const struct interface_facts *facts)
{
	return facts->peer_mtu ? facts->peer_mtu : facts->mtu;
}

static uint32_t mtu_max(const struct interface_facts *facts)
{
	uint32_t most = rule_of(facts)->mtu_max;

	return most ? most : SINGLE_BUFFER_MTU;
}

static bool is_too_large(const struct interface_facts *facts)
{
	return mtu_that_counts(facts) > mtu_max(facts) && !obstacle_lacks_native(facts);
}

/* Of a kernel that cannot be asked, suppose that the driver takes them. */
static bool lacks_frags(const struct interface_facts *facts)
{
	return is_too_large(facts) && facts->knows_xdp == ANSWER_YES &&
	       !(facts->xdp_features & XDP_CAN_FRAGS);
}

/* A driver that is not in the table may take less than most. */
static bool is_perhaps_too_large(const struct interface_facts *facts)
{
	return !rule_of(facts)->driver && mtu_that_counts(facts) > SAFE_MTU &&
	       !obstacle_lacks_native(facts);
}

static void say_too_large(const struct interface_facts *facts, struct trouble *trouble)
{
	const char *whose = facts->peer_mtu ? facts->lower : facts->name;

	trouble_set(trouble, 0,
		    "the MTU of %s%s is too large for native XDP in one buffer: it is %u, "
		    "of %u at most",
		    whose,
		    strcmp(facts->kind, "veth") || facts->peer_mtu ? "" : " or of its other end",
		    mtu_that_counts(facts), mtu_max(facts));
	trouble_advise(trouble, "lower it (ip link set dev %s mtu %u), or use --mode tc", whose,
		       mtu_max(facts));
}

static void say_perhaps_too_large(const struct interface_facts *facts, struct trouble *trouble)
{
	trouble_set(trouble, 0,
		    "an MTU of %u is more than some drivers take for native XDP in one "
		    "buffer",
		    mtu_that_counts(facts));
	trouble_advise(trouble, "if it is refused: ip link set dev %s mtu %d, or --mode tc",
		       facts->name, SAFE_MTU);
}

static bool is_always(const struct interface_facts *facts)
{
	(void)facts;
	return true;
}

static void say_out_of_range(const struct interface_facts *facts, struct trouble *trouble)
{
	trouble_set(trouble, 0,
		    "the MTU of %s or of its other end is too large for native XDP (that of "
		    "%s is %u)",
		    facts->name, facts->name, facts->mtu);
	trouble_advise(trouble, "lower it (ip link set dev %s mtu %u), or use --mode tc",
		       facts->name, mtu_max(facts));
}

const struct obstacle obstacles_of_drivers[] = {
	{ ON_NATIVE, { EOPNOTSUPP, EINVAL }, OUTLOOK_FAILS, has_gro_hw, say_gro_hw },
	{ ON_NATIVE, { EINVAL, EOPNOTSUPP }, OUTLOOK_FAILS, has_refused_lro, say_lro },
	{ ON_NATIVE, { EINVAL, EOPNOTSUPP }, OUTLOOK_FAILS, has_too_few_spare, say_too_few_spare },
	{ ON_NATIVE, { EINVAL, EOPNOTSUPP }, OUTLOOK_FAILS, has_apart_queues, say_apart_queues },
	{ ON_NATIVE, { ENOSPC }, OUTLOOK_FAILS, has_narrow_peer, say_narrow_peer },
	{ ON_NATIVE, { ENOMEM }, OUTLOOK_WORKS, has_no_spare_queues, say_no_spare_queues },
	{ ON_SINGLE, { ERANGE, EINVAL, EOPNOTSUPP }, OUTLOOK_FAILS, is_too_large, say_too_large },
	{ ON_FRAGS, { ERANGE, EINVAL, EOPNOTSUPP }, OUTLOOK_FAILS, lacks_frags, say_too_large },
	{ ON_NATIVE, { EINVAL, EOPNOTSUPP, EBUSY }, OUTLOOK_DOUBTFUL, has_lro, say_lro },
	{ ON_NATIVE, { ERANGE }, OUTLOOK_WORKS, is_always, say_out_of_range },
	{ ON_SINGLE, { EINVAL }, OUTLOOK_DOUBTFUL, is_perhaps_too_large, say_perhaps_too_large },
	{},
};
