/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What doctor makes of an interface, by made-up facts: the rung it would get, and what to know. */
#include "test.h"

#include <errno.h>
#include <string.h>

#include <linux/if_arp.h>

#include "tests/unit/findings_check.h"

#define SIZED(bytes) \
	.name = "eth0", .ifindex = 2, .is_up = true, .hardware = ARPHRD_ETHER, .mtu = (bytes)
#define CARD SIZED(1500)
#define ASKED(features) .knows_xdp = ANSWER_YES, .xdp_features = (features)
#define PCI .bus = "0000:00:05.0"
#define ON                                      \
	{                                       \
		.is_known = true, .is_on = true \
	}
#define COMBINED(now, max)                                                 \
	{                                                                  \
		.is_known = true, .combined = (now), .combined_max = (max) \
	}

enum { CPUS = 8, BASIC = XDP_CAN_BASIC, FRAGS = XDP_CAN_BASIC | XDP_CAN_FRAGS };

static const struct row {
	const char *name;
	struct interface_facts facts;
	enum attach_mode mode;
	enum rung rung;
	struct wanted wanted;
} rows[] = {
	{ "a card",
	  { CARD, ASKED(FRAGS) },
	  MODE_AUTO,
	  RUNG_NATIVE_FRAGS,
	  { FINDING_OK, "eth0", "native XDP with fragments would be used (MTU 1500", NULL,
	    false } },
	{ "none",
	  { .name = "eth0" },
	  MODE_AUTO,
	  RUNG_NONE,
	  { FINDING_FAILURE, "eth0", "there is no interface eth0", "ip -brief link", false } },
	{ "no Ethernet header",
	  { .name = "wg0", .ifindex = 3, .hardware = ARPHRD_NONE, .kind = "wireguard" },
	  MODE_AUTO,
	  RUNG_NONE,
	  { FINDING_FAILURE, "wg0", "no Ethernet header (wireguard)", "outer packets", false } },
	{ "without XDP, auto",
	  { CARD, ASKED(0) },
	  MODE_AUTO,
	  RUNG_TCX,
	  { FINDING_NOTE, "eth0", "TC by tcx would be used", NULL, false } },
	{ "without XDP, native",
	  { CARD, ASKED(0) },
	  MODE_NATIVE,
	  RUNG_NONE,
	  { FINDING_FAILURE, "eth0", "could not be attached: the driver of eth0", "--mode tc",
	    false } },
	{ "TC on demand",
	  { CARD, ASKED(FRAGS) },
	  MODE_TC,
	  RUNG_TCX,
	  { FINDING_OK, "eth0", "TC by tcx would be used", NULL, false } },
	{ "generic on demand",
	  { CARD, ASKED(FRAGS) },
	  MODE_GENERIC,
	  RUNG_GENERIC,
	  { FINDING_NOTE, "eth0", "copies each packet", NULL, false } },
	{ "a program of others, auto",
	  { CARD, ASKED(FRAGS), .xdp_native = { .id = 7 } },
	  MODE_AUTO,
	  RUNG_TCX,
	  { FINDING_WARNING, "eth0", "with id 7 (native mode) is there", "--mode tc", false } },
	{ "a program of others, native",
	  { CARD, ASKED(FRAGS), .xdp_native = { .id = 7 } },
	  MODE_NATIVE,
	  RUNG_NONE,
	  { FINDING_FAILURE, "eth0", "is taken by", "bpftool net", false } },
	{ "an older sluice with other pins",
	  { CARD, ASKED(FRAGS), .xdp_native = { .id = 7, .name = "sluice_frags" } },
	  MODE_AUTO,
	  RUNG_TCX,
	  { FINDING_WARNING, "eth0", "sluice_frags", "--bpffs DIR detach eth0", false } },
	{ "our own",
	  { CARD, ASKED(FRAGS), .xdp_native = { .id = 7, .is_ours = true } },
	  MODE_AUTO,
	  RUNG_NATIVE_FRAGS,
	  { FINDING_OK, "eth0", "sluice is attached", NULL, false } },
	{ "TC programs of others",
	  { CARD, ASKED(FRAGS), .tcx_count = 2,
	    .tcx = { { .id = 5, .name = "cil_from" }, { .id = 6 } } },
	  MODE_AUTO,
	  RUNG_NATIVE_FRAGS,
	  { FINDING_NOTE, "eth0", "2 TC programs (tcx) are there already: cil_from id 5, id 6",
	    NULL, false } },
	{ "filters of others",
	  { CARD, ASKED(FRAGS), .has_clsact = true, .filter_count = 1,
	    .filters = { { .kind = "flower", .priority = 49152 } } },
	  MODE_AUTO,
	  RUNG_NATIVE_FRAGS,
	  { FINDING_NOTE, "eth0", "1 filter of TC is there already: flower at 49152", NULL,
	    false } },
	{ "down",
	  { .name = "eth0", .ifindex = 2, .hardware = ARPHRD_ETHER, .mtu = 1500 },
	  MODE_AUTO,
	  RUNG_NATIVE_FRAGS,
	  { FINDING_WARNING, "eth0", "it is down", "ip link set dev eth0 up", false } },
	{ "a member of a bond",
	  { CARD, .master = "bond0", .master_kind = "bond" },
	  MODE_AUTO,
	  RUNG_NATIVE_FRAGS,
	  { FINDING_WARNING, "eth0", "member of bond0", "sluice attach bond0", false } },
	{ "a port of a bridge",
	  { CARD, .master = "br0", .master_kind = "bridge" },
	  MODE_AUTO,
	  RUNG_NATIVE_FRAGS,
	  { FINDING_NOTE, "eth0", "member of br0 (bridge)", NULL, false } },
	{ "native on a veth",
	  { CARD, .kind = "veth", .peer_mtu = 1500, .driver = { .driver = "veth", .tso = ON } },
	  MODE_AUTO,
	  RUNG_NATIVE_FRAGS,
	  { FINDING_NOTE, "eth0", "segmentation offload", "--mode tc", false } },
	{ "LRO that may be refused",
	  { CARD, .driver = { .driver = "ixgbe", .lro = ON, PCI } },
	  MODE_AUTO,
	  RUNG_NATIVE_FRAGS,
	  { FINDING_WARNING, "eth0", "may be refused", "ethtool -K eth0 lro off", false } },
	{ "LRO that generic XDP turns off",
	  { CARD, .driver = { .driver = "ixgbe", .lro = ON, PCI } },
	  MODE_GENERIC,
	  RUNG_GENERIC,
	  { FINDING_NOTE, "eth0", "attaching turns lro off", "ethtool -K eth0 lro on", false } },
	{ "joined by the card, and the driver turns it off",
	  { CARD, .driver = { .driver = "virtio_net", .gro_hw = ON, PCI } },
	  MODE_AUTO,
	  RUNG_NATIVE_FRAGS,
	  { FINDING_NOTE, "eth0", "turns rx-gro-hw off", "ethtool -K eth0 rx-gro-hw on", false } },
	{ "VLAN tags taken off",
	  { CARD, .driver = { .driver = "ice", .rxvlan = ON, PCI } },
	  MODE_AUTO,
	  RUNG_NATIVE_FRAGS,
	  { FINDING_NOTE, "eth0", "VLAN tags", NULL, false } },
	{ "a card's link may flap",
	  { CARD, .driver = { .driver = "ice", PCI } },
	  MODE_AUTO,
	  RUNG_NATIVE_FRAGS,
	  { FINDING_NOTE, "eth0", "take the link away", NULL, false } },
	{ "one queue of many",
	  { CARD, .driver = { .driver = "ice", .channels = COMBINED(1, 16), PCI } },
	  MODE_AUTO,
	  RUNG_NATIVE_FRAGS,
	  { FINDING_NOTE, "eth0", "uses 1 of its queues, and there are 8 CPUs",
	    "ethtool -L eth0 combined 8", false } },
	{ "no more queues than the rung bears",
	  { CARD, .driver = { .driver = "ena", .channels = COMBINED(1, 8), PCI } },
	  MODE_AUTO,
	  RUNG_NATIVE_FRAGS,
	  { FINDING_NOTE, "eth0", "uses 1 of its queues", "ethtool -L eth0 combined 4", false } },
	{ "ENA with all its queues in use",
	  { CARD, .driver = { .driver = "ena", .channels = COMBINED(8, 8), PCI } },
	  MODE_NATIVE,
	  RUNG_NONE,
	  { FINDING_FAILURE, "eth0", "8 of its 8", "ethtool -L eth0 combined 4", false } },
	{ "a jumbo MTU without fragments",
	  { SIZED(9000), ASKED(BASIC) },
	  MODE_NATIVE,
	  RUNG_NONE,
	  { FINDING_FAILURE, "eth0", "9000", "ip link set dev eth0 mtu 3498", false } },
};

static void the_rung_and_what_to_know_are_told(void **state)
{
	struct kernel_facts kernel = able_kernel();

	(void)state;
	for (size_t at = 0; at < COUNT_OF(rows); at++) {
		struct findings findings = {};

		check_row_equal(
			&rows[at],
			diagnose_interface(&rows[at].facts, &kernel,
					   &(struct wanted_mode){ rows[at].mode, MODE_AUTO }, CPUS,
					   &findings),
			rows[at].rung);
		check_wanted(rows[at].name, &findings, &rows[at].wanted);
		check_row_equal(&rows[at], findings_has_failure(&findings),
				rows[at].rung == RUNG_NONE);
		findings_done(&findings);
	}
}

static const struct lack_row {
	const char *name;
	enum feature lacks[2];
	struct interface_facts facts;
	enum attach_mode mode;
	enum rung rung;
} lack_rows[] = {
	{ "no fragments", { FEATURE_FRAGS }, { CARD, ASKED(FRAGS) }, MODE_AUTO, RUNG_NATIVE },
	{ "no fragments, jumbo",
	  { FEATURE_FRAGS },
	  { SIZED(9000), ASKED(FRAGS) },
	  MODE_AUTO,
	  RUNG_TCX },
	{ "no tcx", { FEATURE_TCX }, { CARD, ASKED(0) }, MODE_AUTO, RUNG_CLSACT },
	{ "no tcx, tc", { FEATURE_TCX }, { CARD, ASKED(FRAGS) }, MODE_TC, RUNG_CLSACT },
	{ "no TC at all",
	  { FEATURE_TCX, FEATURE_CLSACT },
	  { CARD, ASKED(0) },
	  MODE_AUTO,
	  RUNG_GENERIC },
	{ "no TC at all, tc",
	  { FEATURE_TCX, FEATURE_CLSACT },
	  { CARD, ASKED(FRAGS) },
	  MODE_TC,
	  RUNG_NONE },
	{ "no TC, and XDP taken",
	  { FEATURE_TCX, FEATURE_CLSACT },
	  { CARD, ASKED(FRAGS), .xdp_native = { .id = 7 } },
	  MODE_AUTO,
	  RUNG_NONE },
};

static void what_the_kernel_lacks_decides_the_rung(void **state)
{
	(void)state;
	for (size_t at = 0; at < COUNT_OF(lack_rows); at++) {
		struct kernel_facts kernel = able_kernel();
		struct findings findings = {};

		for (int lack = 0; lack < 2; lack++)
			if (lack_rows[at].lacks[lack])
				kernel.features[lack_rows[at].lacks[lack]].answer = ANSWER_NO;
		check_row_equal(
			&lack_rows[at],
			diagnose_interface(&lack_rows[at].facts, &kernel,
					   &(struct wanted_mode){ lack_rows[at].mode, MODE_AUTO },
					   CPUS, &findings),
			lack_rows[at].rung);
		findings_done(&findings);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rung_and_what_to_know_are_told),
		cmocka_unit_test(what_the_kernel_lacks_decides_the_rung),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
