/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One interface of an attach: which rung it gets, or that it keeps the one it has.
 *
 * From one mode to another without a gap: the new program is attached beside the old one, which
 * XDP and TC allow, and the old one is parked, that is, replaced by a program of two instructions
 * that lets every packet pass. In the instant between the two a packet may be charged twice, never
 * not at all. Parked, it can be had back until all is confirmed. Native and generic XDP do not
 * stand beside each other; there the way leads over TC.
 */
#include "dataplane/attempt.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dataplane/explain.h"
#include "dataplane/link_names.h"
#include "dataplane/obstacles.h"
#include "dataplane/strays.h"

struct held_link {
	struct link_facts facts;
	uint32_t version; /* of the set that it belongs to */
	char folder[PATH_MAX];
};

/* What holds the interface already, ours first. */
struct held {
	struct held_link links[LINKS_OF_ONE_MAX];
	size_t count;
	uint32_t ifindex;
	uint32_t version; /* that is looked through */
	char folder[PATH_MAX];
	int err;             /* why it cannot be worked with */
	char path[PATH_MAX]; /* that err is about */
};

static int take_held(uint32_t ifindex, const char *path, void *data)
{
	struct held *held = data;
	struct held_link *link = &held->links[held->count];
	int err = held->count < LINKS_OF_ONE_MAX ? 0 : -E2BIG;

	if (ifindex != held->ifindex)
		return 0;
	if (!err)
		err = link_look(path, &link->facts);
	/* Nothing comes of it any more; what is made in its place is pinned there. */
	if (err == -ENODEV || err == -ENOLINK)
		err = link_remove(path) ? -EIO : 1;
	if (!err) {
		link->version = held->version;
		memcpy(link->folder, held->folder, sizeof(link->folder));
		held->count++;
	}
	if (err >= 0)
		return 0;
	held->err = err;
	(void)snprintf(held->path, sizeof(held->path), "%s", path);
	return 1;
}

static int search(const struct attempt *attempt, uint32_t version, struct held *held)
{
	int err;

	held->version = version;
	(void)pins_version_path(attempt->pins, version, held->folder);
	err = pins_each_link(held->folder, take_held, held);
	if (err >= 0)
		return held->err;
	(void)snprintf(held->path, sizeof(held->path), "%s", held->folder);
	return err;
}

static int find_held(const struct attempt *attempt, uint32_t ifindex, struct held *held)
{
	const struct takeover *takeover = &attempt->takeover;
	int err;

	*held = (struct held){ .ifindex = ifindex };
	err = search(attempt, SLUICE_ABI_VERSION, held);
	for (size_t at = 0; !err && at < takeover->count; at++)
		err = search(attempt, takeover->versions[at], held);
	if (!err)
		return 0;
	if (err != -EXDEV)
		return trouble_set(attempt->trouble, err, "cannot open %s: %s", held->path,
				   strerror(-err));
	trouble_set(attempt->trouble, 0, "%s serves an interface of another network namespace",
		    held->path);
	trouble_advise(attempt->trouble, "give each namespace pins of its own, with --bpffs or "
					 "`bpffs` in the configuration");
	return err;
}

static int program_for(const struct attempt *attempt, enum rung rung)
{
	switch (rung) {
	case RUNG_NATIVE_FRAGS:
		return object_frags_fd(attempt->object);
	case RUNG_TCX:
	case RUNG_CLSACT:
		return object_tc_fd(attempt->object);
	default:
		/* One buffer: then the kernel makes each packet linear for generic mode, and its
		 * length is true. */
		return object_single_fd(attempt->object);
	}
}

static void begin_step(struct attempt *attempt, enum undo_what what, enum link_kind kind,
		       uint32_t ifindex, uint32_t version)
{
	struct undo *undo = attempt->guard.undo;

	undo->steps[undo->step_count] = (struct undo_step){
		.what = what, .kind = kind, .ifindex = ifindex, .version = version
	};
	undo->step_count++;
}

/* ---- what is there */

/* Keep what it runs now, so that it can be had back. */
static int keep(struct attempt *attempt, enum undo_what what, const struct held_link *link)
{
	const struct link_facts *facts = &link->facts;
	int err = link_keep(facts, link->folder);

	if (!err) {
		begin_step(attempt, what, facts->kind, facts->ifindex, link->version);
		return 0;
	}
	trouble_set(attempt->trouble, 0,
		    "the program that is in place (id %u) cannot be kept, to be put back if this "
		    "fails: %s",
		    facts->program_id, strerror(-err));
	trouble_advise(attempt->trouble, "run sluice attach once as root with all capabilities");
	return err;
}

static void say_kept(struct trouble *trouble)
{
	size_t length = strlen(trouble->cause);

	(void)snprintf(trouble->cause + length, sizeof(trouble->cause) - length,
		       "; it keeps the program that it has");
}

/* The new program in the place of the old one. In generic mode only the one for a single buffer; in
 * native mode the driver may take only one of the two. */
static int renew(struct attempt *attempt, struct attached *one, const struct held_link *link)
{
	const struct pins *pins = attempt->pins;
	const char *note = attempt->guard.undo->fresh ? pins->staging : pins->set;
	bool is_native = rung_mode(link->facts.rung) == MODE_NATIVE;
	enum rung rung = is_native ? RUNG_NATIVE_FRAGS : link->facts.rung;
	int err = keep(attempt, UNDO_RENEWED, link);

	if (err)
		return err;
	err = -EOPNOTSUPP;
	if (program_for(attempt, rung) >= 0)
		err = link_renew(&link->facts, link->folder, program_for(attempt, rung), note);
	if (err && is_native) {
		rung = RUNG_NATIVE;
		err = link_renew(&link->facts, link->folder, program_for(attempt, rung), note);
	}
	if (err) {
		(void)explain_rung(err, one->name, rung, attempt->trouble);
		say_kept(attempt->trouble);
		return err;
	}
	one->rung = rung;
	one->renewed = true;
	one->taken_from = link->version == SLUICE_ABI_VERSION ? 0 : link->version;
	return 0;
}

static int park(struct attempt *attempt, struct attached *one, const struct held_link *link)
{
	int err = keep(attempt, UNDO_PARKED, link);

	if (err)
		return err;
	err = link_park(&link->facts, link->folder);
	if (err)
		return trouble_set(attempt->trouble, err,
				   "%s: the old program cannot be parked: %s", one->name,
				   strerror(-err));
	return 0;
}

/* The link that the interface keeps: of a mode that is wanted, and not one left parked if there is
 * another. NULL: none. */
static const struct held_link *choose(const struct held *held, const struct attached *one)
{
	const struct held_link *chosen = NULL;

	for (size_t at = 0; at < held->count; at++) {
		const struct held_link *link = &held->links[at];

		if (!rung_suits(link->facts.rung, one->wanted, one->require))
			continue;
		if (!chosen || !strcmp(chosen->facts.program, LINK_PARKED))
			chosen = link;
	}
	return chosen;
}

/* ---- the ladder */

/* Why each rung did not hold; "" if it was not tried. */
struct causes {
	char of[RUNGS][sizeof(((struct trouble *)NULL)->cause)];
};

/* All of them in one line; rungs that failed for the same cause stand together. */
static void write_passed_over(struct attached *one, const struct causes *causes)
{
	size_t size = sizeof(one->passed_over), length = 0;
	const char *before = NULL;

	for (int rung = 0; rung < RUNGS && length < size; rung++) {
		const char *cause = causes->of[rung], *next = "";

		if (!cause[0])
			continue;
		for (int after = rung + 1; after < RUNGS && !next[0]; after++)
			next = causes->of[after];
		length += (size_t)snprintf(one->passed_over + length, size - length, "%s%s",
					   !before                 ? ""
					   : strcmp(before, cause) ? "; "
								   : ", ",
					   rung_words((enum rung)rung));
		if (length < size && strcmp(cause, next))
			length += (size_t)snprintf(one->passed_over + length, size - length, ": %s",
						   cause);
		before = cause;
	}
}

/* One rung. 0, or -errno, with *is_pinning if the rung is not to blame. */
static int try_rung(struct attempt *attempt, struct attached *one, enum rung rung, bool *is_pinning)
{
	struct undo *undo = attempt->guard.undo;
	int program = program_for(attempt, rung);
	bool replace = false;
	int err;

	*is_pinning = false;
	if (program < 0)
		return -EOPNOTSUPP;
	if (rung == RUNG_CLSACT)
		replace = strays_has_filter(attempt->pins, one->ifindex);
	begin_step(attempt, UNDO_MADE, rung_kind(rung), one->ifindex, SLUICE_ABI_VERSION);
	err = link_make(rung, program, one->ifindex, attempt->pins->staging, replace, is_pinning);
	if (err)
		undo->step_count--;
	else
		one->rung = rung;
	return err;
}

/* The first rung that holds. 0 or -errno with *trouble. */
static int climb(struct attempt *attempt, struct attached *one)
{
	struct trouble *trouble = attempt->trouble;
	struct causes causes = {};
	int err = -EOPNOTSUPP;
	bool is_pinning;

	trouble_set(trouble, 0, "%s can be attached in no mode that is wanted", one->name);
	for (enum rung rung = RUNG_NATIVE_FRAGS; rung < RUNGS; rung++) {
		if (!rung_suits(rung, one->wanted, one->require) || program_for(attempt, rung) < 0)
			continue;
		err = try_rung(attempt, one, rung, &is_pinning);
		if (!err)
			break;
		if (is_pinning)
			return trouble_set(trouble, err, "cannot pin in %s: %s",
					   attempt->pins->staging, strerror(-err));
		(void)explain_rung(err, one->name, rung, trouble);
		(void)snprintf(causes.of[rung], sizeof(causes.of[rung]), "%s", trouble->cause);
	}
	write_passed_over(one, &causes);
	return err;
}

/* Generic and native XDP, which would follow one on the other. */
static int refuse_change(struct attempt *attempt, const struct attached *one, enum attach_mode has)
{
	trouble_set(attempt->trouble, 0, "%s is attached in %s mode already", one->name,
		    attach_mode_name(has));
	trouble_advise(attempt->trouble,
		       "go by way of TC, so that no packet goes unlimited: sluice attach %s --mode "
		       "tc, then "
		       "--mode %s; or sluice detach %s first",
		       one->name,
		       one->wanted == MODE_AUTO ? attach_mode_name(one->require)
						: attach_mode_name(one->wanted),
		       one->name);
	return -EINVAL;
}

int ladder_attach(struct attempt *attempt, struct attached *one)
{
	const struct held_link *kept;
	struct held held;
	int err = find_held(attempt, one->ifindex, &held);

	if (err)
		return err;
	kept = choose(&held, one);
	if (!kept && one->wanted != MODE_TC && one->wanted != MODE_CLSACT)
		for (size_t at = 0; at < held.count; at++)
			if (held.links[at].facts.kind == LINK_XDP)
				return refuse_change(attempt, one,
						     rung_mode(held.links[at].facts.rung));
	if (!kept && held.count)
		one->changed_from = held.links[0].facts.rung;
	err = kept ? renew(attempt, one, kept) : climb(attempt, one);
	for (size_t at = 0; !err && at < held.count; at++)
		if (&held.links[at] != kept)
			err = park(attempt, one, &held.links[at]);
	one->mode = rung_mode(one->rung);
	one->frags = one->rung == RUNG_NATIVE_FRAGS;
	return err;
}
