/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sluice ip explain: what would become of packets of an address now, and why. Which packets stands
 * here; what the programs would do is foreseen in dataplane/verdict.c, and put into words in
 * explanation_say.c and explanation_print.c.
 */
#include "cli/ip_explain.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "cli/explanation.h"
#include "cli/ip_rules.h"
#include "dataplane/attach.h"

enum { PORT_MAX = 65535, PACKET_BYTES_MAX = 65535 };

static int read_options(const struct cli *cli, const char *text, struct explanation *out)
{
	static const struct {
		const char *name;
		uint8_t number;
	} protocols[] = { { "tcp", IPPROTO_TCP },
			  { "udp", IPPROTO_UDP },
			  { "icmp", IPPROTO_ICMP } };
	const char *protocol =
		cli->values[EXPLAIN_PROTOCOL] ? cli->values[EXPLAIN_PROTOCOL] : "tcp";
	uint64_t number;

	if (parse_address(text, &out->address))
		return misused(&command_ip, "%s is not an IPv4 or IPv6 address", text);
	for (size_t at = 0; at < sizeof(protocols) / sizeof(protocols[0]); at++)
		if (!strcmp(protocol, protocols[at].name)) {
			out->protocol_name = protocols[at].name;
			out->protocol = protocols[at].number;
		}
	if (!out->protocol_name)
		return misused(&command_ip, "--proto is tcp, udp or icmp, not %s", protocol);
	if (out->protocol == IPPROTO_ICMP && !address_is_v4(&out->address))
		out->protocol = IPPROTO_ICMPV6;
	if (cli->values[EXPLAIN_PORT] && !strcmp(protocol, "icmp"))
		return misused(&command_ip, "ICMP has no ports");
	if (cli->values[EXPLAIN_PORT]) {
		if (parse_uint(cli->values[EXPLAIN_PORT], 1, PORT_MAX, &number))
			return misused(&command_ip, "--port is a number from 1 to 65535, not %s",
				       cli->values[EXPLAIN_PORT]);
		out->port = (uint16_t)number;
	}
	if (cli->values[EXPLAIN_SIZE]) {
		if (parse_size_whole(cli->values[EXPLAIN_SIZE], &number) || !number ||
		    number > PACKET_BYTES_MAX)
			return misused(&command_ip,
				       "--size is the bytes of one packet, 1 to 65535");
		out->bytes = (uint32_t)number;
	}
	out->interface = cli->values[EXPLAIN_INTERFACE];
	return 0;
}

/* ---- which packets */

static void find_ports(const struct maps *maps, struct explanation *out)
{
	unsigned first = 0;

	out->ports = json_array();
	if (out->protocol != IPPROTO_TCP && out->protocol != IPPROTO_UDP)
		return;
	for (unsigned port = 1; port <= PORT_MAX + 1; port++) {
		bool is_named =
			port <= PORT_MAX && verdict_names_port(maps, out->protocol, (uint16_t)port);

		if (port <= PORT_MAX && !is_named && !out->other_port)
			out->other_port = (uint16_t)port;
		if (is_named && !first)
			first = port;
		if (is_named || !first)
			continue;
		if (!out->protected_port)
			out->protected_port = (uint16_t)first;
		json_array_append_new(out->ports, first == port - 1
							  ? json_sprintf("%u", first)
							  : json_sprintf("%u-%u", first, port - 1));
		first = 0;
	}
	if (!(out->slot.flags & CONFIG_PROTECT_ALL))
		return;
	out->protected_port = 1;
	out->other_port = 0;
}

static struct fate *add_fate(struct explanation *out, const char *packet, uint16_t port, bool opens,
			     uint32_t usual_bytes)
{
	struct fate *fate = &out->fates[out->fate_count++];

	*fate = (struct fate){ .packet = packet };
	fate->question = (struct verdict_question){
		.source = out->address,
		.protocol = out->protocol,
		.port = port,
		.opens = opens,
		.bytes = out->bytes ? out->bytes : usual_bytes,
		.now_ns = out->now_ns,
		.coarse_ns = out->now_ns,
		.cpu = -1,
	};
	if (out->port)
		(void)snprintf(fate->where, sizeof(fate->where), " to %s/%u", out->protocol_name,
			       port);
	else if (port)
		(void)snprintf(fate->where, sizeof(fate->where), " to %s %s port",
			       port == out->other_port ? "any other" : "a protected",
			       out->protocol_name);
	return fate;
}

/* The sizes are those of a SYN, of full Ethernet frames, of the least QUIC Initial and of a ping.
 */
static void choose_packets(struct explanation *out)
{
	uint16_t port = out->port ? out->port : out->protected_port;

	if (out->protocol == IPPROTO_ICMP || out->protocol == IPPROTO_ICMPV6) {
		(void)add_fate(out, "an ICMP packet", 0, false, 84);
		return;
	}
	if (port && out->protocol == IPPROTO_TCP) {
		(void)add_fate(out, "a new connection", port, true, 60);
		(void)add_fate(out, "a packet of an open connection", port, false, 1500);
	} else if (port) {
		(void)add_fate(out, "a QUIC Initial", port, true, 1228);
		(void)add_fate(out, "another datagram", port, false, 1500);
	}
	if (!out->port && out->other_port)
		(void)add_fate(out, "a packet", out->other_port, false, 60);
}

/* ---- the command */

static bool is_attached(const struct pins *pins, const char *name)
{
	struct link_state links[ATTACH_INTERFACES_MAX];
	size_t count;

	if (links_list(pins, links, ATTACH_INTERFACES_MAX, &count))
		return false;
	for (size_t at = 0; at < count; at++)
		if (links[at].attached && !strcmp(links[at].name, name))
			return true;
	return false;
}

static int look(const struct maps *maps, struct explanation *out)
{
	const struct config_slot *slot = maps_slot(maps);
	int err = slot ? address_look(maps, &out->address, out->now_ns, &out->state) : -ENOENT;

	if (!err)
		err = node_state_look(maps, out->now_ns, out->node);
	if (err)
		return err;
	out->slot = *slot;
	find_ports(maps, out);
	choose_packets(out);
	for (size_t at = 0; !err && at < out->fate_count; at++)
		err = verdict_foresee(maps, &out->fates[at].question, &out->fates[at].verdict);
	if (!err)
		explanation_say(out);
	return err;
}

int ip_explain(struct cli *cli, const char *text)
{
	struct explanation out = { .now_ns = clock_monotonic_ns() };
	struct maps maps;
	struct pins pins;
	int code = read_options(cli, text, &out);

	if (!code)
		code = open_maps(cli, false, &pins, &maps);
	if (code)
		return code;
	out.is_attached = !out.interface || is_attached(&pins, out.interface);
	if (look(&maps, &out))
		code = ip_no_configuration();
	else if (cli->json)
		code = print_json(explanation_json(&out));
	else
		explanation_print(&out);
	json_decref(out.ports);
	close_maps(&pins, &maps);
	return code;
}
