/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sluice top: the addresses that were refused most. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/repeat.h"

enum top_option { TOP_COUNT, TOP_INTERVAL };

enum { TOP_DEFAULT = 20 };

static const struct option_row top_options[] = {
	[TOP_COUNT] = { "count", 'n', "N", "how many addresses (20)" },
	[TOP_INTERVAL] = { "interval", 'i', "DURATION", "print again each DURATION" },
	{},
};

static void print_offenders(const struct known_offender *offenders, size_t count, uint64_t now_ns)
{
	printf("%-40s %14s %12s %14s %-18s\n", "address", "refused", "bytes", "last seen",
	       "reason");
	for (size_t at = 0; at < count; at++) {
		const struct offender *offender = &offenders[at].offender;
		char address[ADDRESS_TEXT_MAX], size[SIZE_TEXT_MAX], ago[DURATION_TEXT_MAX];
		uint64_t ago_ns =
			now_ns > offender->last_seen_ns ? now_ns - offender->last_seen_ns : 0;

		format_address(&offenders[at].address, address);
		format_size((double)offender->bytes, size);
		format_duration(ago_ns, ago);
		printf("%-40s %14llu %12s %10s ago %-18s\n", address,
		       (unsigned long long)offender->packets, size, ago,
		       reason_name(offender->last_reason));
	}
	if (!count)
		printf("(nobody was refused)\n");
}

static json_t *offenders_json(const struct known_offender *offenders, size_t count, uint64_t now_ns)
{
	json_t *array = json_array();

	for (size_t at = 0; at < count; at++) {
		const struct offender *offender = &offenders[at].offender;
		char address[ADDRESS_TEXT_MAX];

		format_address(&offenders[at].address, address);
		json_array_append_new(
			array, json_pack("{ss sI sI sf sf ss}", "address", address, "packets",
					 (json_int_t)offender->packets, "bytes",
					 (json_int_t)offender->bytes, "first_seen_s_ago",
					 ((double)now_ns - (double)offender->first_seen_ns) / 1e9,
					 "last_seen_s_ago",
					 ((double)now_ns - (double)offender->last_seen_ns) / 1e9,
					 "reason", reason_name(offender->last_reason)));
	}
	return json_pack("{so}", "offenders", array);
}

static int show(const struct cli *cli, const struct maps *maps, size_t most)
{
	struct known_offender *offenders;
	uint64_t now_ns = clock_monotonic_ns();
	size_t count;
	int err = maps_offenders(maps, &offenders, &count);

	if (err)
		return err;
	if (count > most)
		count = most;
	if (cli->json && cli->values[TOP_INTERVAL])
		print_json_line(offenders_json(offenders, count, now_ns));
	else if (cli->json)
		(void)print_json(offenders_json(offenders, count, now_ns));
	else
		print_offenders(offenders, count, now_ns);
	free(offenders);
	return 0;
}

static int run_top(struct cli *cli, int argc, char **argv)
{
	struct trouble trouble = {};
	uint64_t interval_ns = 0, most = TOP_DEFAULT;
	struct maps maps;
	struct pins pins;
	int err, code;

	(void)argv;
	if (argc)
		return misused(&command_top, "it takes no argument");
	if (cli->values[TOP_COUNT] && parse_uint(cli->values[TOP_COUNT], 1, OFFENDERS_MAX, &most))
		return misused(&command_top, "-n takes a number from 1 to %d", OFFENDERS_MAX);
	if (cli->values[TOP_INTERVAL] &&
	    (parse_duration(cli->values[TOP_INTERVAL], &interval_ns) || !interval_ns))
		return misused(&command_top, "--interval takes a time, as 1s");
	code = open_maps(cli, false, &pins, &maps);
	if (code)
		return code;
	repeat_until_signal();
	do {
		err = show(cli, &maps, most);
	} while (!err && interval_ns && repeat_wait(interval_ns));
	if (err) {
		trouble_set(&trouble, 0, "cannot read the offenders: %s", strerror(-err));
		code = complain(err, &trouble);
	}
	close_maps(&pins, &maps);
	return code;
}

const struct command command_top = {
	.name = "top",
	.arguments = "[-n N] [--interval DURATION]",
	.summary = "the addresses that were refused most",
	.options = top_options,
	.run = run_top,
};
