/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What several commands do alike: opening the maps, complaining, and the JSON of counters. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"

int complain(int err, const struct trouble *trouble)
{
	fprintf(stderr, "sluice: %s\n", trouble->cause[0] ? trouble->cause : strerror(-err));
	if (trouble->remedy[0])
		fprintf(stderr, "  -> %s\n", trouble->remedy);
	switch (-err) {
	case EPERM:
	case EACCES:
		return EXIT_PERMISSION;
	case ENOENT:
	case EBUSY:
	case EEXIST:
		return EXIT_UNAVAILABLE;
	case EINVAL:
		return EXIT_FAILED;
	default:
		return EXIT_FAILED;
	}
}

int open_maps(const struct cli *cli, bool write, struct pins *pins, struct maps *maps)
{
	struct trouble trouble = {};
	int err = pins_init(pins, cli->bpffs, &trouble);

	if (!err && write)
		err = pins_lock(pins, false, &trouble);
	if (err)
		return complain(err, &trouble);
	err = maps_open(maps, pins, write, &trouble);
	if (!err)
		return 0;
	pins_unlock(pins);
	return complain(err, &trouble);
}

void close_maps(struct pins *pins, struct maps *maps)
{
	maps_close(maps);
	pins_unlock(pins);
}

int print_json(json_t *value)
{
	json_dumpf(value, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	printf("\n");
	json_decref(value);
	return EXIT_DONE;
}

void print_json_line(json_t *value)
{
	json_dumpf(value, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
	printf("\n");
	json_decref(value);
}

static json_t *amount(uint64_t packets, uint64_t bytes)
{
	return json_pack("{sI sI}", "packets", (json_int_t)packets, "bytes", (json_int_t)bytes);
}

/* The sums and each reason of the refusals, actual or, under dry_run, as they would have been. */
static json_t *refusals(const struct counter counters[REASONS], bool would)
{
	json_t *object = json_object();
	uint64_t packets[2] = {}, bytes[2] = {};

	for (int reason = REASON_FIRST_REFUSAL; reason <= REASON_LAST_REFUSAL; reason++) {
		const struct counter *counter = &counters[reason];
		uint64_t here = would ? counter->would_packets : counter->packets;
		uint64_t here_bytes = would ? counter->would_bytes : counter->bytes;

		json_object_set_new(object, reason_name(reason), amount(here, here_bytes));
		if (reason == REASON_DENY || reason == REASON_SHED_IP || reason == REASON_SHED_NODE)
			continue;
		packets[reason >= REASON_NODE_CONNECTIONS] += here;
		bytes[reason >= REASON_NODE_CONNECTIONS] += here_bytes;
	}
	json_object_set_new(object, "ip", amount(packets[0], bytes[0]));
	json_object_set_new(object, "node", amount(packets[1], bytes[1]));
	return object;
}

json_t *counters_json(const struct counter counters[REASONS])
{
	json_t *object = json_object();

	for (int reason = 0; reason < REASON_FIRST_REFUSAL; reason++)
		json_object_set_new(object, reason_name(reason),
				    amount(counters[reason].packets, counters[reason].bytes));
	json_object_set_new(object, "refused", refusals(counters, false));
	json_object_set_new(object, "would_refuse", refusals(counters, true));
	return object;
}

json_t *notes_json(const uint64_t notes[NOTES])
{
	json_t *object = json_object();

	for (int note = 0; note < NOTES; note++)
		json_object_set_new(object, note_name(note), json_integer((json_int_t)notes[note]));
	return object;
}
