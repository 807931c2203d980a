/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The order of an attach, in which each step can be taken back: load; make maps and links in
 * staging/; rename them into place; turn the configuration over. Until the last step every packet
 * passes (on new maps) or the old configuration is in force (on adopted ones). Where another version
 * is taken over, the configuration is turned over before the first link is switched: takeover.h.
 */
#include "dataplane/attempt.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "dataplane/apply.h"
#include "dataplane/strays.h"

static int find_interfaces(struct attempt *attempt)
{
	const struct settings *settings = attempt->settings;

	if (settings->interface_count == 0 || settings->interface_count > ATTACH_INTERFACES_MAX) {
		trouble_set(attempt->trouble, 0, "no interface is named");
		trouble_advise(
			attempt->trouble,
			"name one on the command line, or under `interfaces` in the configuration");
		return -EINVAL;
	}
	for (size_t at = 0; at < settings->interface_count; at++) {
		const struct setting_interface *setting = &settings->interfaces[at];
		struct attached *one = &attempt->result->interfaces[at];
		int err;

		*one = (struct attached){ .wanted = setting->mode, .require = setting->require };
		(void)snprintf(one->name, sizeof(one->name), "%s", setting->name);
		err = interface_find(one->name, &one->ifindex, attempt->trouble);
		if (err)
			return err;
	}
	attempt->result->count = settings->interface_count;
	return 0;
}

static int check_interfaces(const struct attempt *attempt)
{
	uint32_t numbers[ATTACH_INTERFACES_MAX];

	for (size_t at = 0; at < attempt->result->count; at++)
		numbers[at] = attempt->result->interfaces[at].ifindex;
	return devices_check(attempt->pins, numbers, attempt->result->count, attempt->trouble);
}

/* The programs, on the maps that are pinned, or on new ones and what can be adopted. */
static int load_object(struct attempt *attempt)
{
	struct maps pinned;
	int err;

	if (attempt->guard.undo->fresh)
		return object_load(attempt->takeover.fd, &attempt->object, attempt->trouble);
	err = maps_open(&pinned, attempt->pins, true, attempt->trouble);
	if (err)
		return err;
	err = object_load(pinned.fd, &attempt->object, attempt->trouble);
	maps_close(&pinned);
	return err;
}

/* The object, its maps, and for new maps their pins in staging/. */
static int load(struct attempt *attempt)
{
	struct undo *undo = attempt->guard.undo;
	int err = load_object(attempt);

	if (!err)
		err = object_maps(attempt->object, &attempt->maps);
	if (err)
		return err;
	if (mkdir(attempt->pins->staging, 0700))
		return trouble_set(attempt->trouble, -errno, "cannot make %s: %s",
				   attempt->pins->staging, strerror(errno));
	if (!undo->fresh)
		return 0;
	err = apply_found(&attempt->maps);
	if (err)
		return trouble_set(attempt->trouble, err, "no random numbers: %s", strerror(-err));
	return object_pin_maps(attempt->object, attempt->pins->staging, attempt->trouble);
}

static int remove_leftover(uint32_t ifindex, const char *path, void *data)
{
	(void)ifindex;
	(void)data;
	(void)link_remove(path);
	return 0;
}

/* What an attach has left whose guard was killed, too. */
static void clear_staging(struct pins *pins)
{
	(void)pins_each_link(pins->staging, remove_leftover, NULL);
	(void)pins_remove(pins->staging);
}

/* Move what is in staging/ into its place. */
static int publish(struct attempt *attempt)
{
	const struct undo *undo = attempt->guard.undo;
	const struct pins *pins = attempt->pins;
	int err = 0;

	if (undo->fresh) {
		if (rename(pins->staging, pins->set))
			return trouble_set(attempt->trouble, -errno, "cannot make %s: %s",
					   pins->set, strerror(errno));
		return takeover_publish(undo, attempt->trouble);
	}
	for (uint32_t at = 0; !err && at < undo->step_count; at++)
		if (undo->steps[at].what == UNDO_MADE)
			err = link_move(pins->staging, pins->set, undo->steps[at].kind,
					undo->steps[at].ifindex);
	if (!err)
		err = pins_remove(pins->staging);
	if (err)
		return trouble_set(attempt->trouble, err, "cannot move %s into %s: %s",
				   pins->staging, pins->set, strerror(-err));
	return takeover_publish(undo, attempt->trouble);
}

/* See what other versions hold, and load beside them. */
static int prepare(struct attempt *attempt)
{
	struct takeover *takeover = &attempt->takeover;
	struct undo *undo = attempt->guard.undo;
	int err = takeover_open(takeover, attempt->pins, undo->fresh, attempt->trouble);

	if (!err)
		err = takeover_interfaces(takeover, attempt->pins, attempt->result,
					  attempt->trouble);
	if (!err)
		err = check_interfaces(attempt);
	if (err)
		return err;
	memcpy(undo->others, takeover->versions, sizeof(undo->others));
	undo->other_count = (uint32_t)takeover->count;
	err = load(attempt);
	if (!err && takeover->from)
		err = takeover_fill(takeover, attempt->pins, &attempt->maps,
				    &attempt->result->taken_over, attempt->trouble);
	if (!err && !attempt->keeps_configuration)
		err = apply_prepare(&attempt->maps, attempt->settings, attempt->trouble);
	return err;
}

static int put_in_force(struct attempt *attempt)
{
	struct undo *undo = attempt->guard.undo;
	bool is_done = false;
	int err = prepare(attempt);

	if (!err && undo->fresh && attempt->takeover.from) {
		/* No interface may run the new program without a configuration. */
		apply_turn_over(&attempt->maps);
		is_done = true;
	}
	for (size_t at = 0; !err && at < attempt->result->count; at++)
		err = ladder_attach(attempt, &attempt->result->interfaces[at]);
	if (!err)
		err = publish(attempt);
	if (err || is_done || attempt->keeps_configuration)
		return err;
	undo->active_before = attempt->maps.config->active & 1;
	undo->turned_over = true;
	apply_turn_over(&attempt->maps);
	return 0;
}

/* So that it can be told later why no better rung holds an interface. */
static void write_record(const struct attempt *attempt, const struct attached *one)
{
	struct interface_record record = { .mode = one->wanted, .rung = one->rung };

	memcpy(record.name, one->name, sizeof(record.name));
	memcpy(record.passed_over, one->passed_over, sizeof(record.passed_over));
	(void)bpf_map_update_elem(attempt->maps.fd[MAP_INTERFACES], &one->ifindex, &record,
				  BPF_ANY);
}

/* After the point of no return: take away what is of no use any more, and write down what was done.
 * If we die here, the next attach does the former. */
static void finish(struct attempt *attempt)
{
	const struct pins *pins = attempt->pins;
	struct trouble trouble;
	unsigned count = 0;

	links_forget_dead(pins);
	for (size_t at = 0; at < attempt->result->count; at++) {
		const struct attached *one = &attempt->result->interfaces[at];

		(void)strays_remove(pins, one->ifindex, &count, &trouble);
		if (!one->renewed || one->taken_from)
			write_record(attempt, one);
	}
}

static void attempt_done(struct attempt *attempt)
{
	maps_close(&attempt->maps);
	object_free(attempt->object);
	takeover_close(&attempt->takeover);
}

static int attach_some(struct attempt *wanted,
		       bool (*confirm)(const struct attach_result *, void *), void *data)
{
	struct attempt attempt = *wanted;
	struct attach_result *result = attempt.result;
	struct trouble *trouble = attempt.trouble;
	struct pins *pins = attempt.pins;
	int err;

	memset(attempt.takeover.fd, -1, sizeof(attempt.takeover.fd));
	memset(attempt.maps.fd, -1, sizeof(attempt.maps.fd));
	err = attempt.keeps_interfaces ? 0 : find_interfaces(&attempt);
	if (err)
		return err;
	clear_staging(pins);
	err = guard_start(&attempt.guard, pins);
	if (err)
		return trouble_set(trouble, err, "cannot start a process: %s", strerror(-err));
	attempt.guard.undo->fresh = !pins_exist(pins);
	err = put_in_force(&attempt);
	if (!err && confirm && !confirm(result, data))
		err = trouble_set(trouble, -ECANCELED, "not confirmed in time; taken back");
	if (err) {
		attempt_done(&attempt);
		guard_roll_back(&attempt.guard);
		return err;
	}
	guard_commit(&attempt.guard);
	finish(&attempt);
	attempt_done(&attempt);
	return 0;
}

int attach_all(struct pins *pins, const struct settings *settings,
	       bool (*confirm)(const struct attach_result *, void *), void *data,
	       struct attach_result *result, struct trouble *trouble)
{
	struct attempt attempt = {
		.pins = pins,
		.settings = settings,
		.result = result,
		.trouble = trouble,
	};

	return attach_some(&attempt, confirm, data);
}

static int explain_none(const struct pins *pins, struct trouble *trouble)
{
	return trouble_set(trouble, -ENOENT, "nothing is attached: there is no %s", pins->set);
}

int attach_configure(struct pins *pins, const struct settings *settings,
		     bool (*confirm)(const struct attach_result *, void *), void *data,
		     struct trouble *trouble)
{
	struct attach_result result = {};
	struct attempt attempt = {
		.pins = pins,
		.keeps_interfaces = true,
		.settings = settings,
		.result = &result,
		.trouble = trouble,
	};

	return pins_exist(pins) ? attach_some(&attempt, confirm, data)
				: explain_none(pins, trouble);
}

int attach_more(struct pins *pins, const struct setting_interface *interfaces, size_t count,
		struct attach_result *result, struct trouble *trouble)
{
	const struct settings settings = {
		.interfaces = (struct setting_interface *)interfaces,
		.interface_count = count,
	};
	struct attempt attempt = {
		.pins = pins,
		.keeps_configuration = true,
		.settings = &settings,
		.result = result,
		.trouble = trouble,
	};

	return pins_exist(pins) ? attach_some(&attempt, NULL, NULL) : explain_none(pins, trouble);
}
