/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is counted for each interface: what passed and what was refused, by packets and bytes, under
 * the interface's number and no other, and two that share a place together. Every other test checks
 * the same for loopback, with each frame it runs.
 */
#include "harness.h"

#include <string.h>
#include <unistd.h>

#include <linux/bpf.h>

#include "tap.h"

#define CLIENT "198.51.100.7"

/* The last two share a place, and the second stands in the first of all. */
static const uint32_t interfaces[] = { 2, INTERFACE_COUNTERS, 63, 1000, 5, 5 + INTERFACE_COUNTERS };

static int descriptors[COUNT_OF(interfaces)];

static int make_interfaces(void)
{
	if (!tap_is_known())
		return 0;
	tap_own_namespace();
	for (size_t i = 0; i < COUNT_OF(interfaces); i++)
		descriptors[i] = tap_make(interfaces[i]);
	return 0;
}

static int open_xdp(void **state)
{
	return harness_open_xdp(state) ? -1 : make_interfaces();
}

static int open_frags(void **state)
{
	return harness_open_frags(state) ? -1 : make_interfaces();
}

static int open_tc(void **state)
{
	return harness_open_tc(state) ? -1 : make_interfaces();
}

static int close_all(void **state)
{
	for (size_t i = 0; tap_is_known() && i < COUNT_OF(interfaces); i++)
		close(descriptors[i]);
	return harness_close(state);
}

static struct interface_counter sum(const struct harness *harness)
{
	struct interface_counter all = {};

	for (uint32_t place = 0; place < INTERFACE_COUNTERS; place++) {
		struct interface_counter one = harness_interface(harness, place);

		all.passed_packets += one.passed_packets;
		all.passed_bytes += one.passed_bytes;
		all.refused_packets += one.refused_packets;
		all.refused_bytes += one.refused_bytes;
	}
	return all;
}

/* Each is given more than the one before, of a limit that all of them share. */
static void what_passes_and_what_is_refused_is_counted_where_it_came_in(void **state)
{
	static struct frame frame;
	struct harness *harness = *state;
	struct settings settings = harness_settings();
	uint64_t frames = 0;

	need_tap();
	settings.ip[METER_PACKETS] = RATE_LIMIT(0.001, 7);
	harness_apply(harness, &settings);
	frame_of_tcp(&frame, CLIENT, 443, TCP_ACK, 500);
	for (size_t i = 0; i < COUNT_OF(interfaces); i++) {
		struct interface_counter before = harness_interface(harness, interfaces[i]), now;
		uint64_t passes = frames > 7 ? 0 : 7 - frames;

		harness->ifindex = interfaces[i];
		for (size_t packet = 0; packet <= i + 1; packet++)
			harness_frame(harness, &frame);
		frames += i + 2;
		passes = passes < i + 2 ? passes : i + 2;
		now = harness_interface(harness, interfaces[i]);
		assert_int_equal(now.passed_packets - before.passed_packets, passes);
		assert_int_equal(now.passed_bytes - before.passed_bytes, passes * 500);
		assert_int_equal(now.refused_packets - before.refused_packets, i + 2 - passes);
		assert_int_equal(now.refused_bytes - before.refused_bytes, (i + 2 - passes) * 500);
	}
	assert_int_equal(sum(harness).passed_packets, 7);
	assert_int_equal(sum(harness).refused_packets, frames - 7);
}

static void in_a_dry_run_everything_has_passed(void **state)
{
	struct harness *harness = *state;

	need_tap();
	for (int everything = 0; everything <= 1; everything++) {
		struct settings settings = harness_settings();

		harness_reset(state);
		settings.dry_run = everything;
		settings.dry_ip = everything ? 0 : 1u << METER_PACKETS;
		settings.ip[METER_PACKETS] = RATE_LIMIT(0.001, 1);
		harness_apply(harness, &settings);
		harness->ifindex = interfaces[0];
		for (int packet = 0; packet < 10; packet++)
			assert_int_equal(harness_tcp(harness, CLIENT, TCP_ACK, 100).action,
					 XDP_PASS);
		assert_int_equal(harness_interface(harness, interfaces[0]).passed_packets, 10);
		assert_int_equal(harness_interface(harness, interfaces[0]).passed_bytes, 1000);
		assert_int_equal(sum(harness).refused_packets, 0);
		assert_int_equal(harness_counter(harness, REASON_IP_PACKETS).would_packets, 9);
	}
}

/* Whatever the reason why it passed, without a configuration too. */
static void what_is_not_limited_is_counted_as_passed(void **state)
{
	static struct frame frame;
	struct harness *harness = *state;
	struct setting_prefix exempt = {
		.address = address_of(CLIENT),
		.bits = 128,
		.action = PREFIX_EXEMPT,
	};
	struct settings settings = harness_settings();

	need_tap();
	harness->ifindex = interfaces[0];
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_SYN, 0).reason, REASON_NO_CONFIG);
	settings.prefixes = &exempt;
	settings.prefix_count = 1;
	harness_apply(harness, &settings);
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_SYN, 0).reason, REASON_EXEMPT);
	settings.prefix_count = 0;
	settings.protect.all = false;
	harness_apply(harness, &settings);
	assert_int_equal(harness_tcp(harness, CLIENT, TCP_SYN, 0).reason, REASON_UNPROTECTED);
	frame_begin(&frame);
	frame_type(&frame, 0x0806);
	frame_payload(&frame, 46);
	assert_int_equal(harness_frame(harness, &frame).reason, REASON_NOT_IP);
	assert_int_equal(harness_interface(harness, interfaces[0]).passed_packets, 4);
	assert_int_equal(harness_interface(harness, interfaces[0]).passed_bytes, 3 * 40 + 46);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_passes_and_what_is_refused_is_counted_where_it_came_in,
				       harness_reset),
		cmocka_unit_test_setup(in_a_dry_run_everything_has_passed, harness_reset),
		cmocka_unit_test_setup(what_is_not_limited_is_counted_as_passed, harness_reset),
	};

	return cmocka_run_group_tests_name("interfaces, xdp", tests, open_xdp, close_all) +
	       cmocka_run_group_tests_name("interfaces, xdp.frags", tests, open_frags, close_all) +
	       cmocka_run_group_tests_name("interfaces, tc", tests, open_tc, close_all);
}
