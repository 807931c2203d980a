/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is attached, as the pins, the interfaces and the record of the last attach tell it. */
#include "dataplane/attach.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "dataplane/link_names.h"
#include "dataplane/maps.h"

struct listing {
	struct link_state *links;
	size_t max;
	size_t count;
	int records; /* map of struct interface_record; or -1 */
};

static int open_records(const struct pins *pins)
{
	char path[PATH_MAX];

	return bpf_obj_get(pins_path(pins->set, map_name(MAP_INTERFACES), path));
}

/* The record, if it is about what is there now. */
static void add_record(const struct listing *listing, struct link_state *state)
{
	struct interface_record record = {};

	if (listing->records < 0 ||
	    bpf_map_lookup_elem(listing->records, &state->ifindex, &record) ||
	    record.mode > MODE_CLSACT)
		return;
	state->wanted = (enum attach_mode)record.mode;
	if (rung_kind((enum rung)record.rung) != rung_kind(state->rung))
		return;
	(void)snprintf(state->passed_over, sizeof(state->passed_over), "%.*s",
		       (int)sizeof(record.passed_over) - 1, record.passed_over);
}

static const char *reason_of(int err, const struct link_facts *facts)
{
	switch (err) {
	case 0:
		return strcmp(facts->program, LINK_PARKED)
			       ? NULL
			       : "a change of mode was cut short: attach again";
	case -EXDEV:
		return "the interface is in another network namespace";
	case -ENOLINK:
		return "somebody has taken the program off";
	case -ENODEV:
		return "the interface is gone";
	default:
		return "the pin cannot be read";
	}
}

/* What it was called, and whether another has that name now. */
static void name_gone(const struct listing *listing, struct link_state *state)
{
	struct interface_record record = {};

	if (listing->records < 0 || bpf_map_lookup_elem(listing->records, &state->ifindex, &record))
		return;
	(void)snprintf(state->name, sizeof(state->name), "%.*s", (int)sizeof(record.name) - 1,
		       record.name);
	if (if_nametoindex(state->name))
		state->reason = "the interface is gone, and has come back as another: attach again";
}

static int list_link(uint32_t ifindex, const char *path, void *data)
{
	struct listing *listing = data;
	struct link_facts facts;
	struct link_state *state;
	int err;

	if (listing->count == listing->max)
		return 0;
	state = &listing->links[listing->count++];
	err = link_look(path, &facts);
	*state = (struct link_state){
		.ifindex = ifindex,
		.rung = facts.rung,
		.mode = rung_mode(facts.rung),
		.reason = reason_of(err, &facts),
		.program_id = facts.program_id,
	};
	state->attached = !state->reason || err == -EXDEV;
	if (!err || err == -ENOLINK)
		(void)if_indextoname(ifindex, state->name);
	if (err == -ENODEV)
		name_gone(listing, state);
	memcpy(state->program, facts.program, sizeof(state->program));
	if (state->name[0] && err != -ENODEV)
		add_record(listing, state);
	return 0;
}

static bool has_other(const struct listing *listing, const struct link_state *parked)
{
	for (size_t at = 0; at < listing->count; at++)
		if (listing->links[at].ifindex == parked->ifindex && listing->links[at].attached)
			return true;
	return false;
}

/* While a change of mode waits to be confirmed, what is parked says nothing to anybody. */
static void leave_out_parked(struct listing *listing)
{
	size_t kept = 0;

	for (size_t at = 0; at < listing->count; at++) {
		const struct link_state *link = &listing->links[at];

		if (strcmp(link->program, LINK_PARKED) != 0 || !has_other(listing, link))
			listing->links[kept++] = *link;
	}
	listing->count = kept;
}

int links_list(const struct pins *pins, struct link_state *links, size_t max, size_t *count)
{
	struct listing listing = { .links = links, .max = max, .records = open_records(pins) };
	int err = pins_each_link(pins->set, list_link, &listing);

	if (listing.records >= 0)
		(void)close(listing.records);
	leave_out_parked(&listing);
	*count = listing.count;
	return err;
}

/* A link whose interface is gone holds nothing but its pin. */
static int remove_dead(uint32_t ifindex, const char *path, void *data)
{
	const struct listing *listing = data;
	struct link_facts facts;

	if (link_look(path, &facts) != -ENODEV)
		return 0;
	(void)link_remove(path);
	if (listing->records >= 0)
		(void)bpf_map_delete_elem(listing->records, &ifindex);
	return 0;
}

void links_forget_dead(const struct pins *pins)
{
	struct listing listing = { .records = open_records(pins) };

	(void)pins_each_link(pins->set, remove_dead, &listing);
	if (listing.records >= 0)
		(void)close(listing.records);
}
