/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Causes, in the order in which they are asked for: the first that fits is named. A row fits if its
 * predicate holds and, once the kernel has answered, if the answer is one that this cause gives.
 * The link interface carries no text, so what the kernel would have said is worked out here.
 */
#include "dataplane/obstacles_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <linux/if_arp.h>

bool obstacle_is_ethernet(const struct interface_facts *facts)
{
	if (!strcmp(facts->kind, "tun") && !facts->is_tap)
		return false;
	return facts->hardware == ARPHRD_ETHER || facts->hardware == ARPHRD_LOOPBACK;
}

const char *rung_words(enum rung rung)
{
	static const char *const words[RUNGS] = {
		[RUNG_NONE] = "none",           [RUNG_NATIVE_FRAGS] = "native XDP with fragments",
		[RUNG_NATIVE] = "native XDP",   [RUNG_TCX] = "TC by tcx",
		[RUNG_CLSACT] = "TC by clsact", [RUNG_GENERIC] = "generic XDP",
	};

	return rung < RUNGS ? words[rung] : "unknown";
}

/* ---- programs of others */

const struct program_facts *obstacle_program(const struct interface_facts *facts,
					     const char **mode_word)
{
	const struct {
		const struct program_facts *program;
		const char *word;
	} places[] = {
		{ &facts->xdp_generic, "xdpgeneric" },
		{ &facts->xdp_offloaded, "xdpoffload" },
		{ &facts->xdp_native, "xdpdrv" },
	};

	for (size_t at = 0; at < sizeof(places) / sizeof(places[0]); at++) {
		if (!places[at].program->id || places[at].program->is_ours)
			continue;
		*mode_word = places[at].word;
		return places[at].program;
	}
	return NULL;
}

void obstacle_describe(const struct program_facts *program, const char *mode_word, char *out,
		       size_t size)
{
	const char *mode = !strcmp(mode_word, "xdpgeneric")   ? "generic mode"
			   : !strcmp(mode_word, "xdpoffload") ? "offloaded mode"
			   : !strcmp(mode_word, "xdpdrv")     ? "native mode"
							      : mode_word;

	if (program->name[0])
		(void)snprintf(out, size, "%s (id %u, tag %s, %s)", program->name, program->id,
			       program->tag, mode);
	else
		(void)snprintf(out, size, "with id %u (%s)", program->id, mode);
}

static bool is_dispatcher(const struct program_facts *program)
{
	return !strcmp(program->name, "xdp_dispatcher");
}

static bool is_taken(const struct interface_facts *facts)
{
	const char *word;

	return obstacle_program(facts, &word);
}

static void say_taken(const struct interface_facts *facts, struct trouble *trouble)
{
	char other[96];
	const char *word = "xdp";
	const struct program_facts *program = obstacle_program(facts, &word);

	if (!program) { /* it has gone meanwhile, or we may not see it */
		trouble_set(trouble, 0, "%s is taken by another XDP program", facts->name);
		trouble_advise(trouble, "see whose it is: bpftool net show dev %s", facts->name);
		return;
	}
	obstacle_describe(program, word, other, sizeof(other));
	trouble_set(trouble, 0,
		    "%s is taken by the XDP program %s; sluice never replaces a program of "
		    "others",
		    facts->name, other);
	if (is_dispatcher(program))
		trouble_advise(
			trouble,
			"it is libxdp's, which runs the programs of several tools: see which "
			"(xdp-loader status %s), and use --mode tc, which needs no place among "
			"them",
			facts->name);
	else
		trouble_advise(
			trouble,
			"see whose it is (bpftool net show dev %s) and have its owner take it "
			"off (ip link set dev %s %s off); or use --mode tc, which stands "
			"beside it",
			facts->name, facts->name, word);
}

static bool is_below_taken(const struct interface_facts *facts)
{
	return facts->master[0] && facts->master_has_xdp;
}

static void say_below_taken(const struct interface_facts *facts, struct trouble *trouble)
{
	trouble_set(trouble, 0, "%s is a member of %s, which has an XDP program itself",
		    facts->name, facts->master);
	trouble_advise(trouble,
		       "attach to %s only: what comes in on its members comes in there, too",
		       facts->master);
}

/* ---- native XDP: the kind of interface */

static const struct {
	const char *kind;
	const char *advice; /* "": there is no better place */
} without_native[] = {
	{ "loopback", "" },
	{ "bridge", "attach to its ports, which are cards or veths" },
	{ "vlan", "attach to the interface below it; up to four tags are read there" },
	{ "macvlan", "attach to the interface below it" },
	{ "macvtap", "attach to the interface below it" },
	{ "ipvlan", "attach to the interface below it" },
	{ "dummy", "" },
	{ "ifb", "attach to the interface that it is fed from" },
	{ "vrf", "attach to its members" },
	{ "team", "attach to its members" },
	{ "vxlan", "attach to the interface below it, whose packets are the outer ones" },
	{ "geneve", "attach to the interface below it, whose packets are the outer ones" },
	{ "gretap", "attach to the interface below it, whose packets are the outer ones" },
};

static const char *advice_for_kind(const char *kind)
{
	for (size_t at = 0; at < sizeof(without_native) / sizeof(without_native[0]); at++)
		if (!strcmp(kind, without_native[at].kind))
			return without_native[at].advice;
	return NULL;
}

bool obstacle_lacks_native(const struct interface_facts *facts)
{
	if (facts->knows_xdp == ANSWER_YES)
		return !(facts->xdp_features & XDP_CAN_BASIC);
	return advice_for_kind(facts->kind) || !obstacle_is_ethernet(facts);
}

/* A bond can only what all of its members can. */
static void say_members(const struct interface_facts *facts, struct trouble *trouble)
{
	trouble_set(trouble, 0, "one of the members of %s (%s) has no native XDP", facts->name,
		    facts->members[0] ? facts->members : "it has none yet");
	trouble_advise(trouble, "see which: sluice doctor %s; or use --mode tc",
		       facts->members[0] ? facts->members : "MEMBER");
}

static void say_no_native(const struct interface_facts *facts, struct trouble *trouble)
{
	const char *advice = advice_for_kind(facts->kind);

	if (!strcmp(facts->kind, "bond")) {
		say_members(facts, trouble);
		return;
	}
	trouble_set(trouble, 0, "the driver of %s has no native XDP%s%s%s", facts->name,
		    facts->kind[0] ? " (" : "", facts->kind, facts->kind[0] ? ")" : "");
	if (advice && *advice)
		trouble_advise(trouble,
			       "%s%s%s%s; or use --mode tc or --mode generic, which work here",
			       advice, facts->lower[0] ? " (" : "", facts->lower,
			       facts->lower[0] ? ")" : "");
	else
		trouble_advise(trouble,
			       "use --mode tc or --mode generic, which work everywhere and "
			       "are slower");
}

/* ---- TC: what can only be known from the answer, or of the kernel */

static bool is_always(const struct interface_facts *facts)
{
	(void)facts;
	return true;
}

static void say_lacks_tcx(const struct interface_facts *facts, struct trouble *trouble)
{
	(void)facts;
	trouble_set(trouble, 0, "this kernel has no tcx, which came with Linux 6.6");
	trouble_advise(trouble, "nothing has to be done: clsact serves as well");
}

static void say_lacks_clsact(const struct interface_facts *facts, struct trouble *trouble)
{
	trouble_set(trouble, 0,
		    "there is no place for a TC program on %s: this kernel lacks the clsact "
		    "discipline, or filters of BPF",
		    facts->name);
	trouble_advise(trouble, "modprobe sch_ingress; modprobe cls_bpf");
}

static void say_place_taken(const struct interface_facts *facts, struct trouble *trouble)
{
	trouble_set(trouble, 0, "a TC filter of others has the place of sluice's on %s",
		    facts->name);
	trouble_advise(trouble, "see whose it is: tc filter show dev %s ingress", facts->name);
}

/* ---- the tables */

static const struct obstacle before_drivers[] = {
	{ ON_XDP, { EBUSY, EEXIST }, OUTLOOK_FAILS, is_taken, say_taken },
	{ ON_XDP, { EEXIST }, OUTLOOK_FAILS, is_below_taken, say_below_taken },
	{},
};

static const struct obstacle after_drivers[] = {
	{ ON_NATIVE, { EOPNOTSUPP }, OUTLOOK_FAILS, obstacle_lacks_native, say_no_native },
	{ ON_TCX, { EINVAL }, OUTLOOK_WORKS, is_always, say_lacks_tcx },
	{ ON_CLSACT, { ENOENT, EOPNOTSUPP, EINVAL }, OUTLOOK_WORKS, is_always, say_lacks_clsact },
	{ ON_TCX | ON_CLSACT, { EEXIST, EBUSY }, OUTLOOK_WORKS, is_always, say_place_taken },
	{},
};

static const unsigned bit_of[RUNGS] = {
	[RUNG_NATIVE_FRAGS] = ON_FRAGS, [RUNG_NATIVE] = ON_SINGLE,   [RUNG_TCX] = ON_TCX,
	[RUNG_CLSACT] = ON_CLSACT,      [RUNG_GENERIC] = ON_GENERIC,
};

static bool gives(const struct obstacle *obstacle, int err)
{
	for (int at = 0; at < OBSTACLE_ERRORS_MAX && obstacle->errors[at]; at++)
		if (obstacle->errors[at] == -err)
			return true;
	return false;
}

/* None of the causes that we know. */
static void say_error(const struct interface_facts *facts, int err, struct trouble *trouble)
{
	switch (-err) {
	case EBUSY:
	case EEXIST:
		say_taken(facts, trouble);
		break;
	case EOPNOTSUPP:
		say_no_native(facts, trouble);
		break;
	case EINVAL:
		trouble_set(trouble, 0,
			    "the driver of %s%s%s%s does not take the program as %s is set "
			    "up",
			    facts->name, facts->driver.driver[0] ? " (" : "", facts->driver.driver,
			    facts->driver.driver[0] ? ")" : "", facts->name);
		trouble_advise(trouble,
			       "dmesg may say more; often it wants fewer queues (ethtool -l "
			       "%s) or a smaller MTU; or use --mode tc",
			       facts->name);
		break;
	case EPERM:
	case EACCES:
		trouble_set(trouble, 0, "the kernel does not let us attach to %s", facts->name);
		trouble_advise(trouble,
			       "run as root, or with CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON");
		break;
	case ENODEV:
		trouble_set(trouble, 0, "the interface %s has just gone", facts->name);
		break;
	default:
		trouble_set(trouble, 0, "cannot attach to %s: %s", facts->name, strerror(-err));
		trouble_advise(trouble, "dmesg may say more");
	}
}

/* The first of a table that fits; NULL: none. */
static const struct obstacle *search(const struct obstacle *table, enum rung rung, int err,
				     const struct interface_facts *facts)
{
	for (; table->rungs; table++)
		if (table->rungs & bit_of[rung] &&
		    (err ? gives(table, err) : table->before != OUTLOOK_WORKS) &&
		    table->applies(facts))
			return table;
	return NULL;
}

enum outlook obstacle_find(const struct interface_facts *facts, enum rung rung, int err,
			   struct trouble *trouble)
{
	const struct obstacle *found = search(before_drivers, rung, err, facts);

	if (!found)
		found = search(obstacles_of_drivers, rung, err, facts);
	if (!found)
		found = search(after_drivers, rung, err, facts);
	if (found) {
		found->say(facts, trouble);
		return err ? OUTLOOK_FAILS : found->before;
	}
	if (!err)
		return OUTLOOK_WORKS;
	say_error(facts, err, trouble);
	return OUTLOOK_FAILS;
}
