/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `sluice ip explain` says what the programs do: random configurations, lists, buckets of the
 * address, the node and the daemon, clocks and packets; each packet is foreseen, then run. The
 * state is drawn so that every reason comes up often, and that is checked, too.
 */
#include "harness.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <linux/bpf.h>

#include <bpf/bpf.h>

#include <sluice/word.h>

#include "dataplane/maps.h"
#include "dataplane/verdict.h"
#include "dataplane/words.h"

enum {
	CONFIGURATIONS = 3000,
	PACKETS_EACH = 12,
	OFTEN = 20, /* how often each reason has to come up */
	PREFIXES = 8,
	FRAME_BYTES = 1400,
};

#define WAIT_MAX_NS (4 * SECOND_NS)

static const char *const sources[] = {
	"198.51.100.7",    "198.51.100.8",    "203.0.113.200", "2001:db8:1:2::7",
	"2001:db8:1:2::8", "2001:db8:1:3::7", "fe80::1",
};

struct world {
	struct harness *harness;
	struct maps maps;
	uint64_t now_ns, lag_ns;
	unsigned seen[REASONS], would[REASONS], refused_in_time;
};

static uint64_t draw(uint64_t below)
{
	return (((uint64_t)rand() << 31) ^ (uint64_t)rand()) % below;
}

static bool one_in(unsigned chances)
{
	return draw(chances) == 0;
}

/* ---- a configuration */

/* From a burst of microseconds to one of days, so that all classes of words come up. */
static struct rate_limit draw_limit(enum meter meter)
{
	static const double rates[] = { 0.01, 0.5, 20, 1000, 100000 };
	struct rate_limit limit = { .rate = rates[draw(COUNT_OF(rates))], .burst = 1 + draw(300) };

	if (meter == METER_BYTES) {
		limit.rate *= 1000;
		limit.burst = BURST_BYTES_MIN - 1000 + draw(20000);
	}
	return limit;
}

static void draw_limits(struct rate_limit *limits, unsigned *dry)
{
	for (int meter = 0; meter < METERS; meter++) {
		if (!one_in(3))
			limits[meter] = draw_limit(meter);
		*dry |= one_in(8) ? 1u << meter : 0;
	}
}

static struct setting_prefix draw_prefix(void)
{
	struct setting_prefix prefix = { .address = address_of(sources[draw(COUNT_OF(sources))]) };
	bool is_v4 = address_is_v4(&prefix.address);

	prefix.bits = (uint32_t)(is_v4 ? ADDRESS_V4_OFFSET + 8 + draw(25) : 10 + draw(119));
	prefix.address.half[0] &= address_mask(prefix.bits);
	prefix.address.half[1] &= address_mask(prefix.bits > 64 ? prefix.bits - 64 : 0);
	prefix.action = (enum prefix_action)(1 + draw(3));
	if (prefix.action == PREFIX_LIMIT)
		draw_limits(prefix.limit, &prefix.dry);
	return prefix;
}

static void draw_lists(struct world *world, struct settings *settings)
{
	static struct setting_prefix prefixes[PREFIXES];

	settings->prefixes = prefixes;
	settings->prefix_count = one_in(3) ? 0 : draw(PREFIXES);
	for (size_t at = 0; at < settings->prefix_count; at++)
		prefixes[at] = draw_prefix();
	harness_apply(world->harness, settings);
	for (uint64_t left = one_in(2) ? 0 : draw(PREFIXES); left > 0; left--) {
		struct setting_prefix by_hand = draw_prefix();
		uint32_t end_s = (uint32_t)(world->now_ns / SECOND_NS + draw(3));

		harness_by_hand_until(world->harness, &by_hand, one_in(3) ? 0 : end_s);
	}
}

static void draw_configuration(struct world *world)
{
	struct settings settings = harness_settings();

	settings.protect.all = one_in(2);
	settings.protect.icmp = one_in(2);
	settings.protect.tcp[443 / 64] = settings.protect.udp[443 / 64] = 1ULL << (443 % 64);
	settings.dry_run = one_in(6);
	settings.when_full = (enum when_full)draw(3);
	settings.ipv6_prefix = (uint32_t)(48 + draw(81));
	if (!one_in(5))
		draw_limits(settings.ip, &settings.dry_ip);
	if (!one_in(3))
		draw_limits(settings.node, &settings.dry_node);
	settings.shed = !one_in(4);
	if (!one_in(3))
		settings.ip_hooks = draw_limit(METER_PACKETS);
	if (!one_in(3))
		settings.node_hooks = draw_limit(METER_PACKETS);
	settings.dry_ip |= one_in(8) ? 1u << METER_HOOKS : 0;
	settings.dry_node |= one_in(8) ? 1u << METER_HOOKS : 0;
	draw_lists(world, &settings);
}

/* ---- buckets */

/* How far ahead a TAT lies, in ticks of the limit: gone by, somewhere, at the edge, beyond it. */
static int64_t draw_ahead(const struct gcra_limit *limit)
{
	int64_t capacity = limit->capacity ? (int64_t)limit->capacity : 1 << 20;

	switch (draw(5)) {
	case 0:
		return -(int64_t)draw(1 << 20);
	case 1:
		return (int64_t)draw((uint64_t)capacity);
	case 2:
		return capacity - (int64_t)(limit->interval >> limit->fraction_bits) +
		       (int64_t)draw(5) - 2;
	case 3:
		return capacity - (int64_t)draw(5);
	default:
		return capacity + (int64_t)draw((uint64_t)capacity);
	}
}

static uint64_t draw_word(const struct world *world, uint32_t tag, const struct gcra_limit *limit)
{
	uint32_t class = one_in(4) ? (uint32_t)draw(WORD_CLASSES) : limit->word_class;
	uint64_t now = word_ticks(world->now_ns, class);

	if (one_in(60))
		return word_claim(tag);
	return word_pack(tag, class, now + (uint64_t)draw_ahead(limit));
}

/* The meters' own words, each at most once, and those of others; mostly in debt, so that it is full
 * now and then. */
static void draw_set(const struct world *world, struct bucket_set *set, const struct place *place,
		     const struct gcra_limit *limits, uint32_t first_meter, uint32_t meters)
{
	static const struct gcra_limit other = { .interval = 1 << 20,
						 .capacity = 1 << 30,
						 .burst = 1 << 10,
						 .word_class = 1,
						 .tick_shift = 3 };
	bool is_crowded = one_in(2);

	for (uint32_t at = 0; at < SET_WORDS; at++) {
		uint64_t now = word_ticks(world->now_ns, other.word_class);

		set->word[at] = WORD_EMPTY;
		if (is_crowded)
			set->word[at] = word_pack((uint32_t)draw(1 << WORD_TAG_BITS), 1,
						  now + draw(1 << 30) + 1);
		else if (one_in(2))
			set->word[at] =
				draw_word(world, (uint32_t)draw(1 << WORD_TAG_BITS), &other);
	}
	for (uint32_t meter = first_meter; meter < first_meter + meters; meter++)
		if (!one_in(3))
			set->word[(place->way + meter) % SET_WORDS] = draw_word(
				world, place_tag(place, meter), &limits[meter - first_meter]);
}

static void draw_hooks(const struct world *world, const union address *key)
{
	const struct config_slot *slot = harness_slot(world->harness);
	struct hooks hooks = { .secret = { { 1, 2 } } };
	struct bucket_set set;
	struct place place = key_place(&hooks.secret, key, IP_SETS - 1);
	uint32_t only = 0;

	hooks.limits_digest = slot->hooks_digest + one_in(8);
	hooks.refusing_until_ns = world->now_ns - world->lag_ns + draw(3) - (one_in(4) ? 1 : 0);
	if (slot->node_hooks.capacity && !one_in(3))
		hooks.node_tat = gcra_ticks(world->now_ns, GCRA_TICK_SHIFT) +
				 (uint64_t)draw_ahead(&slot->node_hooks);
	draw_set(world, &set, &place, &slot->ip_hooks, METER_HOOKS, 1);
	assert_int_equal(bpf_map_update_elem(world->maps.fd[MAP_HOOKS], &only, &hooks, BPF_ANY), 0);
	assert_int_equal(
		bpf_map_update_elem(world->maps.fd[MAP_HOOK_BUCKETS], &place.set, &set, BPF_ANY),
		0);
}

static void draw_node(const struct world *world)
{
	const struct config_slot *slot = harness_slot(world->harness);
	unsigned cpus = maps_cpus();
	struct node_slices *slices = calloc(cpus, sizeof(*slices));
	uint32_t only = 0;

	assert_non_null(slices);
	for (int meter = 0; meter < METERS; meter++) {
		const struct node_limit *node = &slot->node[meter];

		world->harness->node->tat[meter] = 0;
		if (node->limit.capacity && !one_in(4))
			world->harness->node->tat[meter] =
				gcra_ticks(world->now_ns, GCRA_TICK_SHIFT) +
				(uint64_t)draw_ahead(&node->limit);
		for (unsigned cpu = 0; cpu < cpus; cpu++)
			slices[cpu].meter[meter].unspent = node->slice ? draw(node->slice) : 0;
	}
	for (unsigned cpu = 0; cpu < cpus; cpu++)
		slices[cpu].generation = slot->generation - one_in(4);
	assert_int_equal(
		bpf_map_update_elem(world->maps.fd[MAP_NODE_SLICES], &only, slices, BPF_ANY), 0);
	free(slices);
}

/* ---- a packet */

static struct verdict_question draw_packet(const struct world *world, const char *source,
					   struct frame *frame)
{
	static const uint8_t tcp_flags[] = { TCP_SYN, TCP_ACK, TCP_SYN | TCP_ACK };
	struct verdict_question question = { .source = address_of(source),
					     .port = one_in(3) ? 22 : 443,
					     .cpu = sched_getcpu(),
					     .now_ns = world->now_ns,
					     .coarse_ns = world->now_ns - world->lag_ns };
	struct ip_fields ip = { .source = question.source, .hop_limit = 64 };
	uint8_t flags = tcp_flags[draw(COUNT_OF(tcp_flags))];

	ip.destination = address_of(address_is_v4(&ip.source) ? "203.0.113.9" : "2001:db8:9::9");
	frame_begin(frame);
	frame_ip(frame, &ip);
	switch (draw(4)) {
	case 0:
		frame_udp(frame, SOURCE_PORT, question.port);
		question.protocol = 17;
		question.opens = one_in(2);
		frame_payload(frame, 5);
		memcpy(&frame->byte[frame->udp_at + 8], "\xc0\0\0\0\1", question.opens ? 5 : 0);
		break;
	case 1:
		frame_icmp(frame, address_is_v4(&ip.source) ? 8 : 128);
		question.protocol = address_is_v4(&ip.source) ? 1 : 58;
		break;
	default:
		frame_tcp(frame, SOURCE_PORT, question.port, flags);
		question.protocol = 6;
		question.opens = flags == TCP_SYN;
	}
	frame_payload(frame, (uint32_t)draw(FRAME_BYTES));
	frame_end(frame);
	question.bytes = frame->bytes - frame->ip_at;
	return question;
}

/* A refused packet that comes again when it was told to is not refused by the same bucket. (In a
 * full set, where meters take over one another's words, it may be another bucket of the same name;
 * and in the long run rules end, and words that nobody sweeps wrap.) */
static void check_wait(struct world *world, const struct verdict_question *question,
		       const struct verdict *verdict)
{
	struct verdict_question later = *question;
	struct verdict then;

	if (!verdict->wait_ns || verdict->wait_ns > WAIT_MAX_NS || !verdict->is_refused ||
	    verdict->is_set_full)
		return;
	later.now_ns += verdict->wait_ns;
	later.coarse_ns = later.now_ns;
	assert_int_equal(verdict_foresee(&world->maps, &later, &then), 0);
	if (then.reason == verdict->reason && !then.is_set_full &&
	    then.found.bits == verdict->found.bits && then.found.by_hand == verdict->found.by_hand)
		fail_msg("%s: after %llu ns it is refused again for %llu ns",
			 reason_name(verdict->reason), (unsigned long long)verdict->wait_ns,
			 (unsigned long long)then.wait_ns);
	world->refused_in_time++;
}

static void check_packet(struct world *world, const char *source)
{
	static struct frame frame;
	struct harness *harness = world->harness;
	struct verdict_question question = draw_packet(world, source, &frame);
	bool dry_run = harness_slot(harness)->flags & CONFIG_DRY_RUN;
	struct bucket_set before = *harness_set(harness, source);
	struct node_buckets node_before = *harness->node;
	struct verdict verdict;
	struct ran ran;
	bool would;

	assert_int_equal(verdict_foresee(&world->maps, &question, &verdict), 0);
	assert_memory_equal(harness_set(harness, source), &before, sizeof(before));
	assert_memory_equal(harness->node, &node_before, sizeof(node_before));
	would = dry_run && reason_is_refusal(verdict.reason);
	if (would)
		verdict.would |= 1u << verdict.reason;
	ran = harness_frame(harness, &frame);
	if (ran.would != would || (!would && ran.reason != verdict.reason) ||
	    ran.would_reasons != verdict.would ||
	    ran.action != (verdict.is_refused ? XDP_DROP : XDP_PASS))
		fail_msg("from %s, protocol %u, port %u, %u bytes: foreseen %s, would 0x%x; "
			 "the program says %s, would 0x%x, action %d",
			 source, question.protocol, question.port, question.bytes,
			 reason_name(verdict.reason), verdict.would, reason_name(ran.reason),
			 ran.would_reasons, ran.action);
	/* After the program, which has brought back a debt that was beyond the capacity. */
	check_wait(world, &question, &verdict);
	world->seen[verdict.reason]++;
	for (int reason = 0; reason < REASONS; reason++)
		world->would[reason] += verdict.would >> reason & 1;
}

/* ---- */

static void draw_buckets(struct world *world, const char *source)
{
	const struct config_slot *slot = harness_slot(world->harness);
	union address address = address_of(source);
	union address key = address_key(&address, slot->ipv6_prefix);
	struct place place = harness_place(world->harness, source);
	struct rule_found found;
	const struct gcra_limit *limits = slot->ip;

	if (!maps_rule_find(&world->maps, &address, world->now_ns, &found) &&
	    found.rule.action == PREFIX_LIMIT)
		limits = found.rule.limit;
	draw_set(world, harness_set(world->harness, source), &place, limits, 0, METERS);
	draw_node(world);
	draw_hooks(world, &key);
}

static void check_coverage(const struct world *world)
{
	for (int reason = REASON_UNPROTECTED; reason < REASONS; reason++) {
		if (world->seen[reason] < OFTEN)
			fail_msg("%s came up %u times only", reason_name(reason),
				 world->seen[reason]);
		if (reason_is_refusal(reason) && world->would[reason] < OFTEN / 4)
			fail_msg("%s came up in a dry run %u times only", reason_name(reason),
				 world->would[reason]);
	}
	assert_true(world->refused_in_time > OFTEN);
}

static void what_is_foreseen_is_what_the_program_does(void **state)
{
	struct world world = { .harness = *state, .now_ns = HARNESS_START_NS };

	srand(20260404);
	harness_maps(world.harness, &world.maps);
	for (int configuration = 0; configuration < CONFIGURATIONS; configuration++) {
		draw_configuration(&world);
		for (int packet = 0; packet < PACKETS_EACH; packet++) {
			const char *source = sources[draw(COUNT_OF(sources))];

			/* Farther than a tick, so that nothing is remembered of the one before. */
			world.now_ns += HARNESS_LAG_NS + 1 + draw(SECOND_NS / 4);
			world.lag_ns = one_in(2) ? 0 : draw(HARNESS_LAG_NS);
			harness_clock(world.harness, world.now_ns, world.lag_ns);
			draw_buckets(&world, source);
			check_packet(&world, source);
		}
	}
	check_coverage(&world);
	maps_close(&world.maps);
}

static void without_a_configuration_nothing_is_foreseen(void **state)
{
	struct harness *harness = *state;
	struct verdict_question question = { .source = address_of("192.0.2.1"), .cpu = -1 };
	struct verdict verdict;
	struct maps maps;

	harness_maps(harness, &maps);
	assert_int_equal(verdict_foresee(&maps, &question, &verdict), -ENOENT);
	maps_close(&maps);
}

/* CPUs that hold tokens of the node's admit what the others refuse. */
static void cpus_may_be_of_two_minds(void **state)
{
	struct harness *harness = *state;
	struct settings settings = harness_settings();
	unsigned cpus = maps_cpus();
	struct node_slices *slices = calloc(cpus, sizeof(*slices));
	struct verdict_question question = { .source = address_of("192.0.2.1"),
					     .protocol = 6,
					     .port = 443,
					     .bytes = 60,
					     .now_ns = HARNESS_START_NS,
					     .coarse_ns = HARNESS_START_NS,
					     .cpu = -1 };
	struct verdict verdict;
	struct maps maps;
	uint32_t only = 0;

	assert_non_null(slices);
	settings.node[METER_PACKETS] = RATE_LIMIT(1, 1000);
	harness_apply(harness, &settings);
	harness_maps(harness, &maps);
	assert_int_equal(verdict_foresee(&maps, &question, &verdict), 0);
	assert_int_equal(verdict.cpus, cpus);
	assert_int_equal(verdict.cpus_admitting, cpus);
	assert_int_equal(verdict.reason, REASON_ADMITTED);
	harness->node->tat[METER_PACKETS] =
		gcra_ticks(HARNESS_START_NS, GCRA_TICK_SHIFT) +
		harness_slot(harness)->node[METER_PACKETS].limit.capacity;
	for (unsigned cpu = 0; cpu < cpus; cpu++)
		slices[cpu].generation = harness_slot(harness)->generation;
	slices[0].meter[METER_PACKETS].unspent = 1;
	assert_int_equal(bpf_map_update_elem(maps.fd[MAP_NODE_SLICES], &only, slices, BPF_ANY), 0);
	assert_int_equal(verdict_foresee(&maps, &question, &verdict), 0);
	assert_int_equal(verdict.cpus_admitting, 1);
	assert_int_equal(verdict.reason, cpus > 1 ? REASON_NODE_PACKETS : REASON_ADMITTED);
	free(slices);
	maps_close(&maps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_is_foreseen_is_what_the_program_does, harness_reset),
		cmocka_unit_test_setup(without_a_configuration_nothing_is_foreseen, harness_reset),
		cmocka_unit_test_setup(cpus_may_be_of_two_minds, harness_reset),
	};

	return cmocka_run_group_tests_name("explain, xdp", tests, harness_open_xdp, harness_close) +
	       cmocka_run_group_tests_name("explain, tc", tests, harness_open_tc, harness_close);
}
