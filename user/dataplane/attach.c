/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The order of an attach, in which each step can be taken back: load; make maps and links in
 * staging/; rename them into place; turn the configuration over. Until the last step every packet
 * passes (on new maps) or the old configuration is in force (on adopted ones). Where another version
 * is taken over, the configuration is turned over before the first link is switched: takeover.h.
 */
#include "dataplane/attach.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <linux/if_link.h>

#include "dataplane/apply.h"
#include "dataplane/explain.h"
#include "dataplane/guard.h"
#include "dataplane/maps.h"
#include "dataplane/object.h"
#include "dataplane/switch.h"
#include "dataplane/takeover.h"

struct attempt {
	struct pins *pins;
	const struct settings *settings;
	struct attach_result *result;
	struct trouble *trouble;
	struct guard guard;
	struct takeover takeover;
	struct object *object;
	struct maps maps;
	int link_fd[ATTACH_INTERFACES_MAX]; /* -1: none */
};

int interface_find(const char *name, uint32_t *ifindex, struct trouble *trouble)
{
	*ifindex = if_nametoindex(name);
	if (*ifindex)
		return 0;
	trouble_set(trouble, 0, "there is no interface %s", name);
	trouble_advise(trouble, "ip -brief link shows what there is in this network namespace");
	return -ENODEV;
}

static int find_interfaces(struct attempt *attempt)
{
	const struct settings *settings = attempt->settings;

	if (settings->interface_count == 0 || settings->interface_count > ATTACH_INTERFACES_MAX) {
		trouble_set(attempt->trouble, 0, "no interface is named");
		trouble_advise(attempt->trouble,
			       "name one on the command line, or under `interfaces` in the configuration");
		return -EINVAL;
	}
	for (size_t at = 0; at < settings->interface_count; at++) {
		struct attached *one = &attempt->result->interfaces[at];
		int err;

		*one = (struct attached){ .mode = settings->interfaces[at].mode };
		(void)snprintf(one->name, sizeof(one->name), "%s", settings->interfaces[at].name);
		err = interface_find(one->name, &one->ifindex, attempt->trouble);
		if (err)
			return err;
	}
	attempt->result->count = settings->interface_count;
	return 0;
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

/* One rung: a new link, or -errno. */
static int make_link(const struct attempt *attempt, const struct attached *one,
		     enum attach_mode mode, bool frags)
{
	LIBBPF_OPTS(bpf_link_create_opts, options,
		    .flags = mode == MODE_GENERIC ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE);
	int program = frags ? object_frags_fd(attempt->object) : object_single_fd(attempt->object);
	int fd;

	if (program < 0)
		return -EOPNOTSUPP;
	fd = bpf_link_create(program, (int)one->ifindex, BPF_XDP, &options);
	return fd < 0 ? -errno : fd;
}

static void pass_over(struct attached *one, const char *rung, const struct trouble *why)
{
	size_t length = strlen(one->passed_over);

	(void)snprintf(one->passed_over + length, sizeof(one->passed_over) - length, "%s%s: %s",
		       length ? "; " : "", rung, why->cause);
}

/* The first rung that holds. Returns the link's descriptor or -errno with *trouble. */
static int climb(struct attempt *attempt, struct attached *one)
{
	static const struct {
		const char *name;
		enum attach_mode mode;
		bool frags;
	} rungs[] = {
		{ "native with fragments", MODE_NATIVE, true },
		{ "native", MODE_NATIVE, false },
		/* One buffer: then the kernel makes each packet linear, and its length is true. */
		{ "generic", MODE_GENERIC, false },
	};
	enum attach_mode wanted = one->mode;
	int err = -EOPNOTSUPP;

	for (size_t rung = 0; rung < sizeof(rungs) / sizeof(rungs[0]); rung++) {
		int fd;

		if (wanted != MODE_AUTO && wanted != rungs[rung].mode)
			continue;
		if (rungs[rung].frags && object_frags_fd(attempt->object) < 0)
			continue;
		fd = make_link(attempt, one, rungs[rung].mode, rungs[rung].frags);
		if (fd >= 0) {
			one->mode = rungs[rung].mode;
			one->frags = rungs[rung].frags;
			return fd;
		}
		err = explain_attach(fd, one->name, one->ifindex, rungs[rung].mode,
				     rungs[rung].frags, attempt->trouble);
		if (err == -EBUSY || err == -EEXIST)
			return err;
		pass_over(one, rungs[rung].name, attempt->trouble);
	}
	return err;
}

/* Pin what the interface runs now, where its link is pinned or will be. */
static int note_program(const struct attempt *attempt, const struct attached *one)
{
	const struct pins *pins = attempt->pins;
	int program = one->frags ? object_frags_fd(attempt->object) : object_single_fd(attempt->object);

	return switch_note(attempt->guard.undo->fresh ? pins->staging : pins->set, one->ifindex, program,
			   attempt->trouble);
}

/* The new program in the place of the old one. In generic mode only the one for a single buffer, as
 * in climb(); in native mode the driver may take only one of the two. */
static int update_link(struct attempt *attempt, struct attached *one, enum attach_mode mode, int link)
{
	LIBBPF_OPTS(bpf_link_update_opts, options);
	int frags = mode == MODE_NATIVE ? object_frags_fd(attempt->object) : -1;

	if (one->mode != MODE_AUTO && one->mode != mode) {
		trouble_set(attempt->trouble, 0, "%s is attached in %s mode already", one->name,
			    attach_mode_name(mode));
		trouble_advise(attempt->trouble, "sluice detach %s first; packets pass until it is "
			       "attached again", one->name);
		return -EINVAL;
	}
	one->mode = mode;
	one->frags = frags >= 0 && !bpf_link_update(link, frags, &options);
	if (!one->frags && bpf_link_update(link, object_single_fd(attempt->object), &options))
		return explain_attach(-errno, one->name, one->ifindex, mode, false,
				      attempt->trouble);
	return note_program(attempt, one);
}

/* Renew what the interface's pinned link in the set of a version runs. 0: done. 1: no such link. */
static int renew(struct attempt *attempt, struct attached *one, uint32_t version)
{
	struct undo *undo = attempt->guard.undo;
	enum attach_mode mode;
	uint32_t program_id;
	char folder[PATH_MAX], path[PATH_MAX];
	int err, link;

	(void)pins_version_path(attempt->pins, version, folder);
	err = link_examine(pins_link_path(folder, one->ifindex, path), one->ifindex, &mode, &program_id);
	if (err == -ENOENT || err == -ENODEV)
		return 1; /* the latter: of an interface that is no more */
	if (err == -EXDEV) {
		trouble_set(attempt->trouble, 0, "%s serves an interface of another network namespace",
			    path);
		trouble_advise(attempt->trouble, "give each namespace pins of its own, with --bpffs or "
			       "`bpffs` in the configuration");
		return err;
	}
	link = err ? err : bpf_obj_get(path);
	if (link < 0)
		return trouble_set(attempt->trouble, link, "cannot open %s: %s", path, strerror(-link));
	err = switch_keep(folder, one->ifindex, program_id, attempt->trouble);
	if (!err) {
		undo->switches[undo->switch_count++] =
			(struct undo_switch){ .ifindex = one->ifindex, .version = version };
		err = update_link(attempt, one, mode, link);
	}
	(void)close(link);
	one->renewed = true;
	return err;
}

static int attach_one(struct attempt *attempt, size_t at)
{
	struct attached *one = &attempt->result->interfaces[at];
	struct undo *undo = attempt->guard.undo;
	char path[PATH_MAX];
	int err = renew(attempt, one, SLUICE_ABI_VERSION);

	for (size_t other = 0; err > 0 && other < attempt->takeover.count; other++) {
		err = renew(attempt, one, attempt->takeover.versions[other]);
		one->taken_from = err ? 0 : attempt->takeover.versions[other];
	}
	if (err <= 0)
		return err;
	attempt->link_fd[at] = climb(attempt, one);
	if (attempt->link_fd[at] < 0)
		return attempt->link_fd[at];
	undo->links[undo->link_count++] = one->ifindex;
	if (bpf_obj_pin(attempt->link_fd[at],
			pins_link_path(attempt->pins->staging, one->ifindex, path)))
		return trouble_set(attempt->trouble, -errno, "cannot pin %s: %s", path,
				   strerror(errno));
	return note_program(attempt, one);
}

/* Move what is in staging/ into its place. */
static int publish(struct attempt *attempt)
{
	const struct undo *undo = attempt->guard.undo;
	char from[PATH_MAX], to[PATH_MAX];
	int err;

	if (undo->fresh) {
		if (rename(attempt->pins->staging, attempt->pins->set))
			return trouble_set(attempt->trouble, -errno, "cannot make %s: %s",
					   attempt->pins->set, strerror(errno));
		return takeover_publish(undo, attempt->trouble);
	}
	for (uint32_t at = 0; at < undo->link_count; at++)
		if (rename(pins_link_path(attempt->pins->staging, undo->links[at], from),
			   pins_link_path(attempt->pins->set, undo->links[at], to)))
			return trouble_set(attempt->trouble, -errno, "cannot make %s: %s", to,
					   strerror(errno));
	err = takeover_publish(undo, attempt->trouble);
	return err ? err : pins_remove(attempt->pins->staging);
}

/* See what other versions hold, and load beside them. */
static int prepare(struct attempt *attempt)
{
	struct takeover *takeover = &attempt->takeover;
	struct undo *undo = attempt->guard.undo;
	int err = takeover_open(takeover, attempt->pins, undo->fresh, attempt->trouble);

	if (!err)
		err = takeover_interfaces(takeover, attempt->pins, attempt->result, attempt->trouble);
	if (err)
		return err;
	memcpy(undo->others, takeover->versions, sizeof(undo->others));
	undo->other_count = (uint32_t)takeover->count;
	err = load(attempt);
	if (!err && takeover->from)
		err = takeover_fill(takeover, attempt->pins, &attempt->maps,
				    &attempt->result->taken_over, attempt->trouble);
	if (!err)
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
		err = attach_one(attempt, at);
	if (!err)
		err = publish(attempt);
	if (err || is_done)
		return err;
	undo->active_before = attempt->maps.config->active & 1;
	undo->turned_over = true;
	apply_turn_over(&attempt->maps);
	return 0;
}

static void attempt_done(struct attempt *attempt)
{
	for (size_t at = 0; at < ATTACH_INTERFACES_MAX; at++)
		if (attempt->link_fd[at] >= 0)
			(void)close(attempt->link_fd[at]);
	maps_close(&attempt->maps);
	object_free(attempt->object);
	takeover_close(&attempt->takeover);
}

int attach_all(struct pins *pins, const struct settings *settings,
	       bool (*confirm)(const struct attach_result *, void *), void *data,
	       struct attach_result *result, struct trouble *trouble)
{
	struct attempt attempt = {
		.pins = pins, .settings = settings, .result = result, .trouble = trouble,
	};
	int err;

	memset(attempt.link_fd, -1, sizeof(attempt.link_fd));
	memset(attempt.takeover.fd, -1, sizeof(attempt.takeover.fd));
	memset(attempt.maps.fd, -1, sizeof(attempt.maps.fd));
	err = find_interfaces(&attempt);
	if (err)
		return err;
	(void)pins_remove(pins->staging); /* of one whose guard was killed, too */
	err = guard_start(&attempt.guard, pins);
	if (err)
		return trouble_set(trouble, err, "cannot start a process: %s", strerror(-err));
	attempt.guard.undo->fresh = !pins_exist(pins);
	err = put_in_force(&attempt);
	if (!err && confirm && !confirm(result, data))
		err = trouble_set(trouble, -ECANCELED, "not confirmed in time; taken back");
	attempt_done(&attempt);
	if (err) {
		guard_roll_back(&attempt.guard);
	} else {
		links_forget_dead(pins);
		guard_commit(&attempt.guard);
	}
	return err;
}
