/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sluice stats: the counters by reason, once or again and again with rates; or all numbers for
 * Prometheus, as the daemon has them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/repeat.h"
#include "dataplane/numbers.h"

enum stats_option { STATS_INTERVAL, STATS_PROMETHEUS };

static const struct option_row stats_options[] = {
	[STATS_INTERVAL] = { "interval", 'i', "DURATION", "print again each DURATION, with rates" },
	[STATS_PROMETHEUS] = { "prometheus", 0, NULL, "all numbers, as GET /metrics has them" },
	{},
};

struct sample {
	uint64_t time_ns;
	struct counter counters[REASONS];
	uint64_t notes[NOTES];
};

static int take_sample(const struct maps *maps, struct sample *sample)
{
	int err = maps_counters(maps, sample->counters);

	sample->time_ns = clock_monotonic_ns();
	return err ? err : maps_notes(maps, sample->notes);
}

static void print_row(const char *name, uint64_t packets, uint64_t bytes, const double *per_second)
{
	char size[SIZE_TEXT_MAX];

	if (!packets)
		return;
	format_size((double)bytes, size);
	printf("%-24s %14llu %12s", name, (unsigned long long)packets, size);
	if (per_second)
		printf(" %14.0f", *per_second);
	printf("\n");
}

static void print_sample(const struct sample *now, const struct sample *before)
{
	printf("%-24s %14s %12s%s\n", "verdict", "packets", "bytes",
	       before ? "      packets/s" : "");
	for (int reason = 0; reason < REASONS; reason++) {
		const struct counter *counter = &now->counters[reason];
		double rate = 0, would_rate = 0;
		char name[40];

		if (before) {
			double seconds = (double)(now->time_ns - before->time_ns) / 1e9;
			const struct counter *old = &before->counters[reason];

			rate = (double)(counter->packets - old->packets) / seconds;
			would_rate =
				(double)(counter->would_packets - old->would_packets) / seconds;
		}
		(void)snprintf(name, sizeof(name), "%s%s",
			       reason_is_refusal((uint32_t)reason) ? "refused " : "",
			       reason_name(reason));
		print_row(name, counter->packets, counter->bytes, before ? &rate : NULL);
		(void)snprintf(name, sizeof(name), "would %s", reason_name(reason));
		print_row(name, counter->would_packets, counter->would_bytes,
			  before ? &would_rate : NULL);
	}
	for (int note = 0; note < NOTES; note++)
		if (now->notes[note] && note != NOTE_SWEPT && note != NOTE_SWEEPS)
			printf("%-24s %14llu\n", note_name(note),
			       (unsigned long long)now->notes[note]);
}

static void print(const struct cli *cli, const struct sample *now, const struct sample *before)
{
	json_t *root;

	if (!cli->json) {
		print_sample(now, before);
		return;
	}
	root = json_pack("{sI so so}", "time_ns", (json_int_t)now->time_ns, "counters",
			 counters_json(now->counters), "notes", notes_json(now->notes));
	if (before) {
		print_json_line(root);
	} else {
		(void)print_json(root);
	}
}

static int repeat(const struct cli *cli, const struct maps *maps, uint64_t interval_ns)
{
	struct sample samples[2] = {};
	unsigned now = 0;
	int err = take_sample(maps, &samples[now]);

	repeat_until_signal();
	while (!err && repeat_wait(interval_ns)) {
		now = !now;
		err = take_sample(maps, &samples[now]);
		if (err)
			break;
		print(cli, &samples[now], &samples[!now]);
		if (!cli->json)
			printf("\n");
	}
	return err;
}

/* That nothing is attached is a number, too. */
static int print_prometheus(const struct cli *cli)
{
	struct exposition *page = exposition_new();
	struct trouble trouble = {};
	struct table_seen seen = {};
	struct pins pins;
	size_t length;
	char *text;
	int err = page ? pins_init(&pins, cli->bpffs, &trouble) : -ENOMEM;

	if (err) {
		exposition_free(page);
		return complain(err, &trouble);
	}
	err = numbers_write(&pins, NULL, 0, &seen, page, &trouble);
	if (exposition_finish(page, &text, &length))
		return complain(-ENOMEM, &trouble);
	(void)fwrite(text, 1, length, stdout);
	free(text);
	return err ? complain(err, &trouble) : EXIT_DONE;
}

static int run_stats(struct cli *cli, int argc, char **argv)
{
	struct trouble trouble = {};
	uint64_t interval_ns = 0;
	struct maps maps;
	struct pins pins;
	int err, code;

	(void)argv;
	if (argc)
		return misused(&command_stats, "it takes no argument");
	if (cli->values[STATS_INTERVAL] &&
	    (parse_duration(cli->values[STATS_INTERVAL], &interval_ns) || !interval_ns))
		return misused(&command_stats, "--interval takes a time, as 1s");
	if (cli->values[STATS_PROMETHEUS])
		return interval_ns || cli->json
			       ? misused(&command_stats, "--prometheus stands alone")
			       : print_prometheus(cli);
	code = open_maps(cli, false, &pins, &maps);
	if (code)
		return code;
	if (interval_ns) {
		err = repeat(cli, &maps, interval_ns);
	} else {
		struct sample sample;

		err = take_sample(&maps, &sample);
		if (!err)
			print(cli, &sample, NULL);
	}
	if (err) {
		trouble_set(&trouble, 0, "cannot read the counters: %s", strerror(-err));
		code = complain(err, &trouble);
	}
	close_maps(&pins, &maps);
	return code;
}

const struct command command_stats = {
	.name = "stats",
	.arguments = "[--interval DURATION | --prometheus]",
	.summary = "packets and bytes by verdict and reason",
	.options = stats_options,
	.run = run_stats,
};
