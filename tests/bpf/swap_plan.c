/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Drawing plans, and the model of what they make of a frame. */
#include "swap_plan.h"

#include <string.h>

static const char *const addresses[PLAN_ADDRESSES] = {
	"198.51.100.7",  "198.51.100.70",   "203.0.113.5",     "192.0.2.200",
	"2001:db8:1::1", "2001:db8:1:2::1", "2001:db8:2:2::1", "2001:db9::1",
};

static const uint16_t ports[PLAN_PORTS] = { 22, 80, 443, 8443 };

enum kind { KIND_OPENS, KIND_GOES_ON, KIND_UDP };

enum { CROWDED_V4 = 2, CROWDED_V6 = 5, FRAME_BYTES = 300, NARROW_BYTES = 20, WIDE_S = 500 };

static struct frame frames[PLAN_FRAMES];
static union address keys[PLAN_ADDRESSES];

unsigned plan_address_of(unsigned frame)
{
	return frame % PLAN_ADDRESSES;
}

static unsigned port_of_frame(unsigned frame)
{
	return frame / PLAN_ADDRESSES % PLAN_PORTS;
}

static enum kind kind_of_frame(unsigned frame)
{
	return (enum kind)(frame / PLAN_ADDRESSES / PLAN_PORTS);
}

void plan_build_frames(void)
{
	for (unsigned address = 0; address < PLAN_ADDRESSES; address++)
		keys[address] = address_of(addresses[address]);
	for (unsigned at = 0; at < PLAN_FRAMES; at++) {
		const char *source = addresses[plan_address_of(at)];
		uint16_t port = ports[port_of_frame(at)];

		if (kind_of_frame(at) == KIND_UDP)
			frame_of_udp(&frames[at], source, port, FRAME_BYTES);
		else
			frame_of_tcp(&frames[at], source, port,
				     kind_of_frame(at) == KIND_OPENS ? TCP_SYN : TCP_ACK,
				     FRAME_BYTES);
	}
}

const struct frame *plan_frame(unsigned number)
{
	return &frames[number];
}

const union address *plan_address(unsigned number)
{
	return &keys[number];
}

bool plan_is_crowded(unsigned address)
{
	return address == CROWDED_V4 || address == CROWDED_V6;
}

/* ---- drawing */

uint64_t plan_draw(uint64_t *seed, uint64_t below)
{
	uint64_t z = *seed += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (z ^ (z >> 31)) % below;
}

static bool one_in(uint64_t *seed, uint64_t chances)
{
	return plan_draw(seed, chances) == 0;
}

/* Wide enough for whatever is run within so many seconds, or too narrow for any frame. */
static void draw_limits(struct rate_limit *limits, unsigned *dry, uint64_t *seed)
{
	static const double rates[] = { 1e6, 2e6, 4e6 };

	for (int meter = 0; meter < METERS; meter++) {
		double rate = rates[plan_draw(seed, 3)];
		bool is_bytes = meter == METER_BYTES;

		limits[meter] = (struct rate_limit){};
		*dry |= one_in(seed, 5) ? 1u << meter : 0;
		if (one_in(seed, 2))
			continue;
		limits[meter].rate = is_bytes ? rate * 100 : rate;
		limits[meter].burst = (uint64_t)limits[meter].rate * WIDE_S;
		if (is_bytes && one_in(seed, 3))
			limits[meter].burst = NARROW_BYTES;
	}
}

static void draw_prefix(struct plan *plan, uint64_t *seed)
{
	struct setting_prefix prefix = { .address = keys[plan_draw(seed, PLAN_ADDRESSES)] };
	bool is_v4 = address_is_v4(&prefix.address);

	prefix.bits = is_v4 ? ADDRESS_V4_OFFSET + 8 * (1 + (uint32_t)plan_draw(seed, 4))
			    : 16 * (2 + (uint32_t)plan_draw(seed, 7));
	memset(prefix.address.byte + prefix.bits / 8, 0, 16 - prefix.bits / 8);
	prefix.action = (enum prefix_action)(PREFIX_EXEMPT + plan_draw(seed, 3));
	if (prefix.action == PREFIX_LIMIT)
		draw_limits(prefix.limit, &prefix.dry, seed);
	/* A prefix is named once in a configuration. */
	for (size_t at = 0; at < plan->prefix_count; at++)
		if (plan->prefixes[at].bits == prefix.bits &&
		    memcmp(&plan->prefixes[at].address, &prefix.address, 16) == 0)
			return;
	plan->prefixes[plan->prefix_count++] = prefix;
}

void plan_draw_one(struct plan *plan, uint64_t *seed)
{
	uint64_t prefixes = plan_draw(seed, PLAN_PREFIXES_MAX + 1);

	*plan = (struct plan){ .protect_all = one_in(seed, 3), .dry_run = one_in(seed, 5) };
	for (int port = 0; port < PLAN_PORTS; port++) {
		plan->tcp[port] = one_in(seed, 2);
		plan->udp[port] = one_in(seed, 2);
	}
	plan->shed = one_in(seed, 3);
	plan->when_full = (enum when_full)plan_draw(seed, 3);
	draw_limits(plan->ip, &plan->dry_ip, seed);
	draw_limits(plan->node, &plan->dry_node, seed);
	for (uint64_t at = 0; at < prefixes; at++)
		draw_prefix(plan, seed);
}

void plan_settings(const struct plan *plan, struct settings *settings,
		   struct setting_prefix *prefixes)
{
	*settings = (struct settings){
		.ipv6_prefix = PLAN_IPV6_PREFIX,
		.dry_run = plan->dry_run,
		.when_full = plan->when_full,
		.shed = plan->shed,
		.node_hooks = { .rate = 0.0001, .burst = 1 },
		.dry_ip = plan->dry_ip,
		.dry_node = plan->dry_node,
		.prefixes = prefixes,
		.prefix_count = plan->prefix_count,
	};
	settings->protect.all = plan->protect_all;
	for (int port = 0; port < PLAN_PORTS; port++) {
		uint64_t bit = 1ULL << (ports[port] % 64);

		settings->protect.tcp[ports[port] / 64] |= plan->tcp[port] ? bit : 0;
		settings->protect.udp[ports[port] / 64] |= plan->udp[port] ? bit : 0;
	}
	memcpy(settings->ip, plan->ip, sizeof(plan->ip));
	memcpy(settings->node, plan->node, sizeof(plan->node));
	memcpy(prefixes, plan->prefixes, sizeof(plan->prefixes));
}

/* ---- the model */

static bool is_within(const union address *address, const struct setting_prefix *prefix)
{
	return memcmp(address->byte, prefix->address.byte, prefix->bits / 8) == 0;
}

static const struct setting_prefix *find_longest(const struct plan *plan,
						 const union address *address)
{
	const struct setting_prefix *longest = NULL;

	for (size_t at = 0; at < plan->prefix_count; at++)
		if (is_within(address, &plan->prefixes[at]) &&
		    (!longest || plan->prefixes[at].bits > longest->bits))
			longest = &plan->prefixes[at];
	return longest;
}

/* What a meter of an address says of a frame. */
static enum reason ask_address(const struct plan *plan, const struct rate_limit *limit,
			       bool is_crowded)
{
	if (!is_crowded)
		return limit->burst == NARROW_BYTES ? REASON_IP_BYTES : REASON_ADMITTED;
	if (plan->when_full == WHEN_FULL_REFUSE)
		return REASON_IP_SET_FULL;
	/* Who claims a word never settles it here, so that nobody can tell what is least in debt.
	 */
	return plan->when_full == WHEN_FULL_SHARE ? REASON_IP_TRIES : REASON_ADMITTED;
}

static enum reason judge_address(const struct plan *plan, const struct setting_prefix *rule,
				 unsigned frame, uint32_t *would)
{
	const struct rate_limit *limits = rule ? rule->limit : plan->ip;
	unsigned dry = rule ? rule->dry : plan->dry_ip;
	bool is_crowded = plan_is_crowded(plan_address_of(frame));

	for (int meter = 0; meter < METERS; meter++) {
		enum reason reason = REASON_ADMITTED;

		if (limits[meter].burst &&
		    (meter != METER_CONNECTIONS || kind_of_frame(frame) == KIND_OPENS))
			reason = ask_address(plan, &limits[meter], is_crowded);
		if (reason == REASON_ADMITTED)
			continue;
		if (!(dry & 1u << meter))
			return reason;
		*would |= 1u << reason;
	}
	return REASON_ADMITTED;
}

static enum reason judge_node(const struct plan *plan, unsigned frame, uint32_t *would)
{
	if (plan->shed && kind_of_frame(frame) == KIND_OPENS)
		return REASON_SHED_NODE;
	if (plan->node[METER_BYTES].burst == NARROW_BYTES) {
		if (!(plan->dry_node & 1u << METER_BYTES))
			return REASON_NODE_BYTES;
		*would |= 1u << REASON_NODE_BYTES;
	}
	return REASON_ADMITTED;
}

static enum reason judge(const struct plan *plan, unsigned frame, uint32_t *would)
{
	const struct setting_prefix *rule = find_longest(plan, &keys[plan_address_of(frame)]);
	unsigned port = port_of_frame(frame);
	bool is_named = kind_of_frame(frame) == KIND_UDP ? plan->udp[port] : plan->tcp[port];
	enum reason reason;

	if (rule && rule->action == PREFIX_DENY)
		return REASON_DENY;
	if (rule && rule->action == PREFIX_EXEMPT)
		return REASON_EXEMPT;
	if (!plan->protect_all && !is_named)
		return REASON_UNPROTECTED;
	reason = judge_address(plan, rule, frame, would);
	return reason == REASON_ADMITTED ? judge_node(plan, frame, would) : reason;
}

struct certain plan_model(const struct plan *plan, unsigned frame)
{
	struct certain certain = {};
	enum reason reason = judge(plan, frame, &certain.would);

	if (reason_is_refusal(reason) && plan->dry_run) {
		certain.would |= 1u << reason;
		return certain;
	}
	certain.counted = 1u << reason;
	certain.drops = reason_is_refusal(reason);
	return certain;
}
