/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sluice monitor: refusals as they happen, sampled. */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/repeat.h"
#include "dataplane/events.h"

enum monitor_option { MONITOR_COUNT };

enum { POLL_MS = 200, PROTOCOL_TEXT_MAX = 16 };

static const struct option_row monitor_options[] = {
	[MONITOR_COUNT] = { "count", 'n', "N", "end after N refusals" },
	{},
};

struct monitor {
	const struct cli *cli;
	uint64_t left; /* refusals to print; 0: no end */
	uint64_t printed;
	uint64_t since_ns; /* older ones lay in the ring buffer before we came */
};

static const char *protocol_text(uint8_t protocol, char text[PROTOCOL_TEXT_MAX])
{
	switch (protocol) {
	case 1:
		return "icmp";
	case 6:
		return "tcp";
	case 17:
		return "udp";
	case 58:
		return "icmpv6";
	default:
		(void)snprintf(text, PROTOCOL_TEXT_MAX, "protocol %u", protocol);
		return text;
	}
}

static void print_event_json(const struct event *event, const char *source, const char *target,
			     const char *interface)
{
	char header[2 * EVENT_HEADER_BYTES + 1] = "";
	json_t *root;

	for (unsigned at = 0; at < event->header_bytes && at < EVENT_HEADER_BYTES; at++)
		(void)snprintf(header + 2 * at, 3, "%02x", event->header[at]);
	root = json_pack("{sI ss si ss ss si ss si si sb ss}", "time_ns",
			 (json_int_t)event->time_ns, "interface", interface, "ifindex",
			 (int)event->ifindex, "reason", reason_name(event->reason), "source",
			 source, "source_port", event->source_port, "destination", target,
			 "destination_port", event->destination_port, "protocol", event->protocol,
			 "dry_run", event->dry_run, "header", header);
	json_object_set_new(root, "bytes", json_integer(event->bytes));
	print_json_line(root);
}

static void print_event(const struct event *event, void *data)
{
	struct monitor *monitor = data;
	char source[ADDRESS_TEXT_MAX], target[ADDRESS_TEXT_MAX], protocol[PROTOCOL_TEXT_MAX];
	char interface[IF_NAMESIZE] = "?";

	if (event->time_ns < monitor->since_ns ||
	    (monitor->left && monitor->printed == monitor->left))
		return;
	monitor->printed++;
	format_address(&event->source, source);
	format_address(&event->destination, target);
	(void)if_indextoname(event->ifindex, interface);
	if (monitor->cli->json) {
		print_event_json(event, source, target, interface);
		return;
	}
	printf("%12.6f %-10s %s%-18s %s", (double)event->time_ns / 1e9, interface,
	       event->dry_run ? "would " : "", reason_name(event->reason), source);
	if (event->source_port)
		printf(" port %u", event->source_port);
	printf(" to %s", target);
	if (event->destination_port)
		printf(" port %u", event->destination_port);
	printf(" %s %u bytes\n", protocol_text(event->protocol, protocol), event->bytes);
}

/* How many refusals the stream did not show, since it was last asked. */
static void print_lost(const struct monitor *monitor, const struct maps *maps, uint64_t *known)
{
	uint64_t notes[NOTES], lost;

	if (maps_notes(maps, notes))
		return;
	lost = notes[NOTE_EVENT_LOST] + notes[NOTE_EVENT_SAMPLED_OUT];
	if (*known != UINT64_MAX && lost != *known && !monitor->cli->json)
		printf("             … and %llu more that are not shown\n",
		       (unsigned long long)(lost - *known));
	*known = lost;
}

static int watch(struct monitor *monitor, const struct maps *maps)
{
	uint64_t known = UINT64_MAX, next_ns = 0;
	struct events *events;
	int err = events_open(maps, print_event, monitor, &events);

	if (err)
		return err;
	repeat_until_signal();
	while (!repeat_is_over() && !(monitor->left && monitor->printed >= monitor->left)) {
		err = events_poll(events, POLL_MS);
		if (err && err != -EINTR)
			break;
		err = 0;
		if (clock_monotonic_ns() >= next_ns) {
			print_lost(monitor, maps, &known);
			next_ns = clock_monotonic_ns() + 1000000000;
		}
		if (fflush(stdout))
			break;
	}
	events_close(events);
	return err;
}

static int run_monitor(struct cli *cli, int argc, char **argv)
{
	struct monitor monitor = { .cli = cli, .since_ns = clock_monotonic_ns() - clock_tick_ns() };
	struct trouble trouble = {};
	struct maps maps;
	struct pins pins;
	int err, code;

	(void)argv;
	if (argc)
		return misused(&command_monitor, "it takes no argument");
	if (cli->values[MONITOR_COUNT] &&
	    parse_uint(cli->values[MONITOR_COUNT], 1, UINT32_MAX, &monitor.left))
		return misused(&command_monitor, "-n takes a number from 1");
	code = open_maps(cli, false, &pins, &maps);
	if (code)
		return code;
	err = watch(&monitor, &maps);
	if (err) {
		trouble_set(&trouble, 0, "cannot read the events: %s", strerror(-err));
		code = complain(err, &trouble);
	}
	close_maps(&pins, &maps);
	return code;
}

const struct command command_monitor = {
	.name = "monitor",
	.arguments = "[-n N]",
	.summary = "refusals as they happen, sampled",
	.options = monitor_options,
	.run = run_monitor,
};
