/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The command line of the generator, as a table: flags, their help, and what a complete request is.
 * Complaints go to stderr where they are found.
 */
#ifndef TESTS_BENCH_FLOOD_REQUEST_H
#define TESTS_BENCH_FLOOD_REQUEST_H

#include <getopt.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/bench/flood.h"
#include "tests/bench/frame.h"

enum { SECONDS_MAX = 60, SOME_MAX = 1 << 24 };

struct request {
	struct frame_wish wish;
	char device[IF_NAMESIZE];
	unsigned ifindex;
	double seconds;
	uint64_t packets; /* 0: until the time is up */
	uint64_t rate;    /* frames per second; 0: no limit */
	enum flood_sources sources;
	uint32_t source_count;
	union address base;
	unsigned base_bits; /* of the family's own address */
	bool has_base, has_source, has_destination, json;
};

static int parse_address(const char *text, union address *out, bool *ipv6)
{
	union address address = { .byte = { [10] = 0xff, [11] = 0xff } };

	*ipv6 = strchr(text, ':');
	if (inet_pton(*ipv6 ? AF_INET6 : AF_INET, text, &address.byte[*ipv6 ? 0 : 12]) != 1)
		return -EINVAL;
	*out = address;
	return 0;
}

static int parse_number(const char *text, uint64_t most, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	return errno || end == text || *end || *text == '-' || *out > most ? -EINVAL : 0;
}

static int parse_own_address(struct request *request, const char *text, union address *out,
			     bool *given)
{
	bool ipv6;

	*given = true;
	if (parse_address(text, out, &ipv6))
		return -EINVAL;
	request->wish.ipv6 |= ipv6;
	return 0;
}

static int set_device(struct request *request, const char *text)
{
	if (strlen(text) >= sizeof(request->device))
		return -EINVAL;
	strcpy(request->device, text);
	return 0;
}

static int set_seconds(struct request *request, const char *text)
{
	char *end;

	request->seconds = strtod(text, &end);
	return end == text || *end || !(request->seconds > 0 && request->seconds <= SECONDS_MAX)
		       ? -EINVAL
		       : 0;
}

static int set_packets(struct request *request, const char *text)
{
	return parse_number(text, UINT64_MAX, &request->packets) || !request->packets ? -EINVAL : 0;
}

static int set_sources(struct request *request, const char *text)
{
	uint64_t count;

	request->sources = SOURCES_ONE;
	if (!strcmp(text, "one"))
		return 0;
	request->sources = SOURCES_RANDOM;
	if (!strcmp(text, "random"))
		return 0;
	request->sources = SOURCES_SOME;
	if (parse_number(text, SOME_MAX, &count) || !count)
		return -EINVAL;
	request->source_count = (uint32_t)count;
	return 0;
}

static int set_source_base(struct request *request, const char *text)
{
	char address[INET6_ADDRSTRLEN] = "";
	const char *slash = strchr(text, '/');
	uint64_t bits;

	if (!slash || (size_t)(slash - text) >= sizeof(address))
		return -EINVAL;
	memcpy(address, text, (size_t)(slash - text));
	if (parse_own_address(request, address, &request->base, &request->has_base))
		return -EINVAL;
	if (parse_number(slash + 1, address_is_v4(&request->base) ? 32 : 64, &bits))
		return -EINVAL;
	request->base_bits = (unsigned)bits;
	return 0;
}

static int set_source(struct request *request, const char *text)
{
	return parse_own_address(request, text, &request->wish.source, &request->has_source);
}

static int set_destination(struct request *request, const char *text)
{
	return parse_own_address(request, text, &request->wish.destination,
				 &request->has_destination);
}

static int set_port(struct request *request, const char *text)
{
	uint64_t port;

	if (parse_number(text, UINT16_MAX, &port))
		return -EINVAL;
	request->wish.destination_port = (uint16_t)port;
	return 0;
}

static int set_kind(struct request *request, const char *text)
{
	static const char *const names[] = {
		[FRAME_SYN] = "syn",
		[FRAME_ACK] = "ack",
		[FRAME_UDP] = "udp",
		[FRAME_QUIC] = "quic",
	};

	for (unsigned kind = 0; kind < sizeof(names) / sizeof(names[0]); kind++) {
		if (strcmp(text, names[kind]))
			continue;
		request->wish.kind = kind;
		return 0;
	}
	return -EINVAL;
}

static int set_size(struct request *request, const char *text)
{
	uint64_t bytes;

	if (parse_number(text, FRAME_BYTES_MAX, &bytes))
		return -EINVAL;
	request->wish.bytes = (unsigned)bytes;
	return 0;
}

static int set_rate(struct request *request, const char *text)
{
	return parse_number(text, UINT32_MAX, &request->rate);
}

static int set_ipv6(struct request *request, const char *text)
{
	(void)text;
	request->wish.ipv6 = true;
	return 0;
}

static int set_destination_mac(struct request *request, const char *text)
{
	unsigned char *mac = request->wish.destination_mac;
	int end = 0;

	return sscanf(text, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", &mac[0], &mac[1], &mac[2],
		      &mac[3], &mac[4], &mac[5], &end) != 6 ||
			       text[end]
		       ? -EINVAL
		       : 0;
}

static int set_json(struct request *request, const char *text)
{
	(void)text;
	request->json = true;
	return 0;
}

static const struct flag {
	const char *name;
	const char *value; /* what it takes; NULL: nothing */
	int (*set)(struct request *request, const char *text);
	const char *help;
} flags[] = {
	{ "dev", "NAME", set_device, "the veth device to send from" },
	{ "seconds", "S", set_seconds, "stop after so long, at most 60" },
	{ "packets", "N", set_packets, "stop after so many frames" },
	{ "rate", "PPS", set_rate, "frames a second; 0, as it is without: as fast as it can" },
	{ "sources", "one|N|random", set_sources, "how many source addresses; random: ever new" },
	{ "source-base", "PREFIX", set_source_base,
	  "where they come from (198.18.0.0/15, 2001:db8::/32; for random: anywhere)" },
	{ "source", "ADDR", set_source, "the one source address" },
	{ "destination", "ADDR", set_destination, "198.51.100.1 or 2001:db8:ffff::1 if not given" },
	{ "port", "PORT", set_port, "destination port; 443 if not given" },
	{ "kind", "syn|ack|udp|quic", set_kind, "what to send; syn if not given" },
	{ "size", "BYTES", set_size, "of a frame, at most 1514; as few as it takes if not given" },
	{ "ipv6", NULL, set_ipv6, "IPv6, where no address says so; random draws the /64" },
	{ "destination-mac", "MAC", set_destination_mac,
	  "02:00:00:00:00:01 if not given, which no stack takes for its own" },
	{ "json", NULL, set_json, "print the figures as JSON" },
};

enum { FLAGS = sizeof(flags) / sizeof(flags[0]), HELP = FLAGS };

static void usage(FILE *to)
{
	fputs("usage: flood --dev NAME --seconds S [option...]\n", to);
	for (int at = 0; at < FLAGS; at++) {
		char left[64];

		snprintf(left, sizeof(left), "--%s %s", flags[at].name,
			 flags[at].value ? flags[at].value : "");
		fprintf(to, "  %-28s %s\n", left, flags[at].help);
	}
	fputs("  --help                       this text\n", to);
}

static int complain(const char *what, const char *value)
{
	fprintf(stderr, "flood: %s%s%s\n", what, value ? ": " : "", value ? value : "");
	return -EINVAL;
}

/* 0; 1 after --help; -EINVAL after a complaint. */
static int parse_flags(int argc, char **argv, struct request *request)
{
	struct option options[FLAGS + 2] = { [HELP] = { "help", no_argument, NULL, HELP } };
	int found;

	for (int at = 0; at < FLAGS; at++)
		options[at] = (struct option){ flags[at].name,
					       flags[at].value ? required_argument : no_argument,
					       NULL, at };
	while ((found = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (found == HELP) {
			usage(stdout);
			return 1;
		}
		if (found >= FLAGS)
			return complain("see --help", NULL);
		if (flags[found].set(request, optarg))
			return complain(flags[found].name, optarg);
	}
	return optind < argc ? complain("not an option", argv[optind]) : 0;
}

/* Fill in what was not given, and refuse what does not go together. */
static int complete(struct request *request)
{
	bool ipv6 = request->wish.ipv6, other;

	if (!request->device[0] || request->seconds <= 0)
		return complain("--dev and --seconds are needed, see --help", NULL);
	if (!request->has_destination)
		(void)parse_address(ipv6 ? "2001:db8:ffff::1" : "198.51.100.1",
				    &request->wish.destination, &other);
	if (!request->has_base && request->sources != SOURCES_RANDOM) {
		request->base_bits = ipv6 ? 32 : 15;
		(void)parse_address(ipv6 ? "2001:db8::" : "198.18.0.0", &request->base, &other);
	} else if (!request->has_base) {
		(void)parse_address(ipv6 ? "::" : "0.0.0.0", &request->base, &other);
	}
	if (request->has_source && request->sources != SOURCES_ONE)
		return complain("--source is one address, --sources are several", NULL);
	if (!request->has_source) {
		request->wish.source = request->base;
		request->wish.source.byte[15] |= 1;
	}
	if (address_is_v4(&request->wish.source) == ipv6 ||
	    address_is_v4(&request->wish.destination) == ipv6)
		return complain("addresses of two families", NULL);
	if (request->sources == SOURCES_SOME &&
	    request->source_count > 1ULL << ((ipv6 ? 64 : 32) - request->base_bits))
		return complain("--source-base has not that many addresses", NULL);
	return 0;
}

#endif
