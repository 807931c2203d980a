/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All is read before the first family is written, so that a set of maps that goes away in the
 * middle leaves no half of them. Names are a contract: see docs/operations.md.
 */
#include "dataplane/numbers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <bpf/bpf.h>

#include "base/clock.h"
#include "dataplane/attach.h"
#include "dataplane/words.h"

enum { ROWS_MAX = 2 * ATTACH_INTERFACES_MAX, NUMBER_TEXT_MAX = 24 };

/* One interface, by its name; one that is gone and whose name nobody knows, by its number. */
struct interface_row {
	char name[INTERFACE_NAME_MAX + 16];
	uint32_t ifindex; /* 0: not known here */
	bool attached;
	const char *rung;
	char program[16]; /* "": we may not look */
	uint32_t program_id;
	struct interface_counter counter;
};

struct numbers {
	struct interface_row interfaces[ROWS_MAX];
	size_t interface_count;
	struct counter counters[REASONS];
	uint64_t notes[NOTES];
	uint64_t unspent[METERS];
	uint64_t generation; /* 0: no configuration is in force */
	bool dry_run;
};

static struct exposition_label label(const char *name, const char *value)
{
	return (struct exposition_label){ .name = name, .value = value };
}

/* ---- reading */

/* The row of that name, made if there is none: no name may stand twice. NULL: no room. */
static struct interface_row *row_of(struct numbers *numbers, const char *name)
{
	struct interface_row *row;

	for (size_t at = 0; at < numbers->interface_count; at++)
		if (!strcmp(numbers->interfaces[at].name, name))
			return &numbers->interfaces[at];
	if (numbers->interface_count == ROWS_MAX)
		return NULL;
	row = &numbers->interfaces[numbers->interface_count++];
	(void)snprintf(row->name, sizeof(row->name), "%s", name);
	return row;
}

/* maps: NULL if they cannot be read. */
static void add_link(struct numbers *numbers, const struct maps *maps,
		     const struct link_state *link)
{
	struct interface_record record = {};
	struct interface_row *row;
	char number[NUMBER_TEXT_MAX];
	const char *name = link->name;

	(void)snprintf(number, sizeof(number), "ifindex %u", link->ifindex);
	if (maps)
		(void)bpf_map_lookup_elem(maps->fd[MAP_INTERFACES], &link->ifindex, &record);
	record.name[sizeof(record.name) - 1] = '\0';
	if (!name[0])
		name = record.name[0] ? record.name : number;
	row = row_of(numbers, name);
	/* One that is attached counts for more than one that is gone and had the same name. */
	if (!row || row->attached)
		return;
	row->ifindex = link->ifindex;
	row->attached = link->attached;
	row->rung = rung_name(link->rung);
	row->program_id = link->program_id;
	memcpy(row->program, link->program, sizeof(row->program));
}

static int read_interfaces(const struct pins *pins, const struct maps *maps,
			   const struct setting_interface *wanted, size_t wanted_count,
			   struct numbers *numbers)
{
	struct link_state links[ATTACH_INTERFACES_MAX];
	size_t count = 0;
	int err = links_list(pins, links, ATTACH_INTERFACES_MAX, &count);

	for (size_t at = 0; at < count; at++)
		add_link(numbers, maps, &links[at]);
	for (size_t at = 0; at < wanted_count; at++)
		(void)row_of(numbers, wanted[at].name);
	for (size_t at = 0; maps && !err && at < numbers->interface_count; at++)
		if (numbers->interfaces[at].ifindex)
			err = maps_interface(maps, numbers->interfaces[at].ifindex,
					     &numbers->interfaces[at].counter);
	return err;
}

static void read_table(const struct maps *maps, struct table_seen *seen)
{
	uint64_t now_ns = clock_monotonic_ns();
	struct bpf_map_info info = {};
	uint32_t length = sizeof(info);

	(void)bpf_obj_get_info_by_fd(maps->fd[MAP_IP_BUCKETS], &info, &length);
	if (seen->read_at_ns && seen->map_id == info.id &&
	    now_ns - seen->read_at_ns < TABLE_READ_AGAIN_S * 1000000000ULL)
		return;
	maps_occupancy(maps, now_ns, &seen->occupancy);
	seen->read_at_ns = now_ns;
	seen->map_id = info.id;
}

static int read_maps(const struct maps *maps, struct numbers *numbers, struct table_seen *seen)
{
	const struct config_slot *slot = maps_slot(maps);
	int err = maps_counters(maps, numbers->counters);

	if (!err)
		err = maps_notes(maps, numbers->notes);
	if (!err)
		err = maps_unspent(maps, numbers->unspent);
	if (err)
		return err;
	read_table(maps, seen);
	if (slot) {
		numbers->generation = slot->generation;
		numbers->dry_run = slot->flags & CONFIG_DRY_RUN;
	}
	return 0;
}

/* The interfaces also if nothing else can be read. */
static int read_all(const struct pins *pins, const struct setting_interface *wanted,
		    size_t wanted_count, struct table_seen *seen, struct numbers *numbers,
		    struct trouble *trouble)
{
	struct maps maps;
	int err = maps_open(&maps, pins, false, trouble), listed;

	listed = read_interfaces(pins, err ? NULL : &maps, wanted, wanted_count, numbers);
	if (err)
		return err;
	err = listed ? listed : read_maps(&maps, numbers, seen);
	if (err)
		trouble_set(trouble, 0, "cannot read what is in %s: %s", pins->set, strerror(-err));
	maps_close(&maps);
	return err;
}

/* ---- writing */

/* One member of each counter of the reasons from one on. */
static void write_reasons(const struct numbers *numbers, int from, size_t member,
			  struct exposition *out)
{
	for (int reason = from; reason < REASONS; reason++) {
		const char *base = (const char *)&numbers->counters[reason];
		const struct exposition_label labels[] = {
			label("reason", reason_name((enum reason)reason)),
			label("verdict",
			      reason_is_refusal((uint32_t)reason) ? "refused" : "passed"),
		};
		uint64_t value;

		memcpy(&value, base + member, sizeof(value));
		exposition_count(out, labels, from ? 1 : 2, value);
	}
}

static void write_packets(const struct numbers *numbers, struct exposition *out)
{
	exposition_family(out, EXPOSITION_COUNTER, "sluice_packets_total",
			  "Packets judged, by reason and verdict.");
	write_reasons(numbers, 0, offsetof(struct counter, packets), out);
	exposition_family(out, EXPOSITION_COUNTER, "sluice_packet_bytes_total",
			  "Bytes of packets judged, from the IP header on.");
	write_reasons(numbers, 0, offsetof(struct counter, bytes), out);
	exposition_family(out, EXPOSITION_COUNTER, "sluice_would_refuse_packets_total",
			  "Packets that passed under dry_run, and would have been refused.");
	write_reasons(numbers, REASON_FIRST_REFUSAL, offsetof(struct counter, would_packets), out);
	exposition_family(out, EXPOSITION_COUNTER, "sluice_would_refuse_bytes_total",
			  "Their bytes.");
	write_reasons(numbers, REASON_FIRST_REFUSAL, offsetof(struct counter, would_bytes), out);
}

static void write_notes(const struct numbers *numbers, struct exposition *out)
{
	const struct counter *ip = &numbers->counters[REASON_IP_TRIES];
	const struct exposition_label of_ip = label("bucket", "ip"),
				      of_node = label("bucket", "node");

	exposition_family(out, EXPOSITION_COUNTER, "sluice_notes_total",
			  "What happened on the way to verdicts.");
	for (int note = 0; note < NOTES; note++) {
		const struct exposition_label name = label("note", note_name((enum note)note));

		exposition_count(out, &name, 1, numbers->notes[note]);
	}
	exposition_family(out, EXPOSITION_COUNTER, "sluice_tries_exhausted_total",
			  "Packets that lost too many races for a bucket.");
	exposition_count(out, &of_ip, 1, ip->packets + ip->would_packets);
	exposition_count(out, &of_node, 1, numbers->notes[NOTE_NODE_TRIES]);
}

static void write_table(const struct numbers *numbers, const struct occupancy *table,
			struct exposition *out)
{
	const struct exposition_label in_debt = label("state", "in_debt");
	const struct exposition_label passed = label("state", "passed");
	const struct exposition_label empty = label("state", "empty");

	exposition_family(out, EXPOSITION_GAUGE, "sluice_table_words",
			  "Words of the table of addresses, by state; some seconds old.");
	exposition_count(out, &in_debt, 1, table->in_debt);
	exposition_count(out, &passed, 1, table->passed);
	exposition_count(out, &empty, 1, table->empty);
	exposition_family(out, EXPOSITION_GAUGE, "sluice_table_words_max",
			  "Words that the table has.");
	exposition_count(out, NULL, 0, (uint64_t)IP_SETS * SET_WORDS);
	exposition_family(out, EXPOSITION_GAUGE, "sluice_table_sets_full",
			  "Sets of the table with all words in debt; some seconds old.");
	exposition_count(out, NULL, 0, table->sets_full);
	exposition_family(out, EXPOSITION_GAUGE, "sluice_table_sets_max",
			  "Sets that the table has.");
	exposition_count(out, NULL, 0, IP_SETS);
	exposition_family(
		out, EXPOSITION_GAUGE, "sluice_slices_unspent",
		"Tokens of the node's buckets that CPUs hold and have not spent, by meter.");
	for (int meter = 0; meter < METERS; meter++) {
		const struct exposition_label name = label("meter", meter_name((enum meter)meter));

		exposition_count(out, &name, 1, numbers->unspent[meter]);
	}
}

static void write_configuration(const struct numbers *numbers, struct exposition *out)
{
	struct exposition_label abi = label("abi", NULL);
	char version[NUMBER_TEXT_MAX];

	(void)snprintf(version, sizeof(version), "%d", SLUICE_ABI_VERSION);
	abi.value = version;
	exposition_family(out, EXPOSITION_GAUGE, "sluice_dataplane_info",
			  "Which version of the maps is in use; always 1.");
	exposition_count(out, &abi, 1, 1);
	exposition_family(out, EXPOSITION_GAUGE, "sluice_configuration_generation",
			  "Grows with each configuration; 0: none is in force.");
	exposition_count(out, NULL, 0, numbers->generation);
	exposition_family(out, EXPOSITION_GAUGE, "sluice_dry_run",
			  "1: nothing is refused, only counted.");
	exposition_count(out, NULL, 0, numbers->dry_run);
}

static void write_interfaces(const struct numbers *numbers, struct exposition *out)
{
	const struct interface_row *row, *end = numbers->interfaces + numbers->interface_count;

	exposition_family(out, EXPOSITION_GAUGE, "sluice_interface_attached",
			  "1: packets of the interface are limited; 0: they are not.");
	for (row = numbers->interfaces; row < end; row++) {
		const struct exposition_label name = label("interface", row->name);

		exposition_count(out, &name, 1, row->attached);
	}
	exposition_family(out, EXPOSITION_GAUGE, "sluice_interface_info",
			  "How an interface is held; always 1.");
	for (row = numbers->interfaces; row < end; row++) {
		const struct exposition_label labels[] = {
			label("interface", row->name),
			label("rung", row->rung),
			label("program", row->program),
		};

		if (row->attached)
			exposition_count(out, labels, 3, 1);
	}
	exposition_family(out, EXPOSITION_GAUGE, "sluice_interface_program_id",
			  "Number of the program on the interface, as bpftool shows it.");
	for (row = numbers->interfaces; row < end; row++) {
		const struct exposition_label name = label("interface", row->name);

		if (row->attached)
			exposition_count(out, &name, 1, row->program_id);
	}
}

static void write_verdicts(const char *interface, uint64_t passed, uint64_t refused,
			   struct exposition *out)
{
	struct exposition_label labels[] = {
		label("interface", interface),
		label("verdict", "passed"),
	};

	exposition_count(out, labels, 2, passed);
	labels[1].value = "refused";
	exposition_count(out, labels, 2, refused);
}

static void write_interface_packets(const struct numbers *numbers, struct exposition *out)
{
	const struct interface_row *row, *end = numbers->interfaces + numbers->interface_count;

	exposition_family(out, EXPOSITION_COUNTER, "sluice_interface_packets_total",
			  "Packets judged, by interface.");
	for (row = numbers->interfaces; row < end; row++)
		if (row->ifindex)
			write_verdicts(row->name, row->counter.passed_packets,
				       row->counter.refused_packets, out);
	exposition_family(out, EXPOSITION_COUNTER, "sluice_interface_bytes_total",
			  "Their bytes, from the IP header on.");
	for (row = numbers->interfaces; row < end; row++)
		if (row->ifindex)
			write_verdicts(row->name, row->counter.passed_bytes,
				       row->counter.refused_bytes, out);
}

int numbers_write(const struct pins *pins, const struct setting_interface *wanted,
		  size_t wanted_count, struct table_seen *seen, struct exposition *out,
		  struct trouble *trouble)
{
	struct numbers numbers = {};
	int err = read_all(pins, wanted, wanted_count, seen, &numbers, trouble);

	exposition_family(
		out, EXPOSITION_GAUGE, "sluice_dataplane_up",
		"1: the maps can be read; 0: nothing is attached, or not by this version.");
	exposition_count(out, NULL, 0, !err);
	write_interfaces(&numbers, out);
	if (err)
		return err;
	write_configuration(&numbers, out);
	write_packets(&numbers, out);
	write_interface_packets(&numbers, out);
	write_notes(&numbers, out);
	write_table(&numbers, &seen->occupancy, out);
	return 0;
}
