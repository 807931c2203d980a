/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Judges an interface: whether it can be held at all, by which rung, and where it stands. */
#include "dataplane/diagnose.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dataplane/link_names.h"
#include "dataplane/obstacles.h"

/* What the kernel cannot do at all, whatever the interface. */
static bool is_missing(const struct kernel_facts *kernel, enum rung rung, struct trouble *trouble)
{
	static const struct {
		enum feature feature;
		int error; /* that attaching would come to */
	} needs[RUNGS] = {
		[RUNG_NATIVE_FRAGS] = { FEATURE_FRAGS, 0 },
		[RUNG_TCX] = { FEATURE_TCX, -EINVAL },
		[RUNG_CLSACT] = { FEATURE_CLSACT, -ENOENT },
	};
	static const struct interface_facts nobody = { .name = "it" };

	if (!needs[rung].feature || kernel->features[needs[rung].feature].answer != ANSWER_NO)
		return false;
	if (needs[rung].error)
		(void)obstacle_find(&nobody, rung, needs[rung].error, trouble);
	else
		trouble_set(trouble, 0,
			    "this kernel takes no frames in several buffers (Linux 5.18)");
	return true;
}

/* What lies between an interface and the rung it gets. */
struct climb {
	enum rung rung;
	bool is_doubtful;
	struct trouble doubt;
	struct trouble first; /* of the rungs that were passed over */
	char passed_over[400];
};

static void pass_over(struct climb *climb, enum rung rung, const struct trouble *why)
{
	size_t length = strlen(climb->passed_over);

	if (!length)
		climb->first = *why;
	/* Two rungs fail for one cause more often than not. */
	if (strstr(climb->passed_over, why->cause))
		return;
	(void)snprintf(climb->passed_over + length, sizeof(climb->passed_over) - length, "%s%s: %s",
		       length ? "; " : "", rung_words(rung), why->cause);
}

/* As ladder.c climbs, without trying. */
static void climb(const struct interface_facts *facts, const struct kernel_facts *kernel,
		  const struct wanted_mode *wanted, struct climb *out)
{
	for (enum rung rung = RUNG_NATIVE_FRAGS; rung < RUNGS; rung++) {
		struct trouble trouble = {};
		enum outlook outlook = OUTLOOK_FAILS;

		if (!rung_suits(rung, wanted->mode, wanted->require))
			continue;
		if (!is_missing(kernel, rung, &trouble))
			outlook = obstacle_find(facts, rung, 0, &trouble);
		if (outlook == OUTLOOK_FAILS) {
			pass_over(out, rung, &trouble);
			continue;
		}
		out->rung = rung;
		out->is_doubtful = outlook == OUTLOOK_DOUBTFUL;
		out->doubt = trouble;
		return;
	}
}

static void say_rung(const struct interface_facts *facts, const struct climb *climb,
		     struct findings *findings)
{
	const char *driver = facts->driver.driver;
	struct finding *finding;

	if (climb->rung == RUNG_NONE) {
		finding = findings_add(findings, FINDING_FAILURE, facts->name,
				       "sluice could not be attached: %s", climb->first.cause);
		if (strchr(climb->passed_over, ';'))
			finding_explain(finding, "%s", climb->passed_over);
		finding_advise(finding, "%s", climb->first.remedy);
		return;
	}
	finding =
		findings_add(findings, climb->passed_over[0] ? FINDING_NOTE : FINDING_OK,
			     facts->name, "%s would be used (MTU %u%s%s)", rung_words(climb->rung),
			     facts->mtu, driver[0] ? ", driver " : "", driver);
	if (climb->passed_over[0]) {
		finding_explain(finding, "passed over %s", climb->passed_over);
		finding_advise(finding, "%s", climb->first.remedy);
	}
	if (!climb->is_doubtful)
		return;
	finding = findings_add(findings, FINDING_WARNING, facts->name, "%s may be refused: %s",
			       rung_words(climb->rung), climb->doubt.cause);
	finding_explain(finding,
			"only the driver knows; `auto` then takes the next that it can do");
	finding_advise(finding, "%s", climb->doubt.remedy);
}

/* What the rung is worth on this kind of interface. */
static void say_price(const struct interface_facts *facts, enum rung rung,
		      struct findings *findings)
{
	bool is_native = rung == RUNG_NATIVE || rung == RUNG_NATIVE_FRAGS;
	bool is_veth = !strcmp(facts->kind, "veth");
	struct finding *finding;

	if (rung == RUNG_GENERIC) {
		finding = findings_add(findings, FINDING_NOTE, facts->name,
				       "generic XDP copies each packet, and is the slowest");
		finding_explain(finding, "%s",
				is_veth ? "and what a veth joined is seen as one packet "
					  "of up to 65535 bytes"
					: "it sees a packet when the kernel has made its "
					  "own form of it already");
	}
	if (is_native && is_veth && facts->driver.tso.is_known) {
		finding =
			findings_add(findings, FINDING_NOTE, facts->name,
				     "native XDP on a veth turns segmentation offload of its other "
				     "end off");
		finding_explain(finding, "bulk transfers through it become several times slower");
		finding_advise(finding, "where that matters: sluice attach %s --mode tc",
			       facts->name);
	}
	if (is_native && facts->driver.bus[0]) {
		finding = findings_add(
			findings, FINDING_NOTE, facts->name,
			"the first attach may take the link away for a second or more");
		finding_explain(finding,
				"some drivers set up their queues anew; renewing a program does "
				"not do that");
	}
}

/* What it belongs to, and what belongs to it. */
static void say_place(const struct interface_facts *facts, struct findings *findings)
{
	struct finding *finding;

	if (!facts->is_up) {
		finding = findings_add(findings, FINDING_WARNING, facts->name, "it is down");
		finding_explain(finding, "it can be attached to, and nothing comes in");
		finding_advise(finding, "ip link set dev %s up", facts->name);
	}
	if (!strcmp(facts->master_kind, "bond") || !strcmp(facts->master_kind, "team")) {
		finding = findings_add(findings, FINDING_WARNING, facts->name,
				       "it is a member of %s (%s)", facts->master,
				       facts->master_kind);
		finding_explain(finding,
				"what comes in on the other members is not limited; and while a "
				"program is on it, it cannot be added to a %s again",
				facts->master_kind);
		finding_advise(finding, "attach to %s instead: sluice attach %s", facts->master,
			       facts->master);
	} else if (facts->master[0]) {
		finding = findings_add(findings, FINDING_NOTE, facts->name,
				       "it is a member of %s (%s)", facts->master,
				       facts->master_kind);
		finding_explain(finding,
				"what only passes through to other members is limited, too");
	}
	if (!strcmp(facts->kind, "loopback")) {
		finding = findings_add(findings, FINDING_NOTE, facts->name,
				       "only what this host sends to itself comes in on it");
		finding_explain(finding,
				"limits there hit the services of this host among themselves");
	}
}

enum rung diagnose_interface(const struct interface_facts *facts, const struct kernel_facts *kernel,
			     const struct wanted_mode *wanted, unsigned cpus,
			     struct findings *findings)
{
	struct climb got = {};
	struct finding *finding;

	if (!facts->ifindex) {
		finding = findings_add(findings, FINDING_FAILURE, facts->name,
				       "there is no interface %s", facts->name);
		finding_advise(finding,
			       "ip -brief link shows what there is in this network namespace");
		return RUNG_NONE;
	}
	if (!obstacle_is_ethernet(facts)) {
		finding = findings_add(findings, FINDING_FAILURE, facts->name,
				       "its packets have no Ethernet header%s%s%s",
				       facts->kind[0] ? " (" : "", facts->kind,
				       facts->kind[0] ? ")" : "");
		finding_explain(
			finding,
			"sluice reads no other frames: it would take them for something else "
			"than IP, and let all of them pass");
		finding_advise(finding,
			       "attach to the interface that the outer packets come in on");
		return RUNG_NONE;
	}
	climb(facts, kernel, wanted, &got);
	say_rung(facts, &got, findings);
	say_place(facts, findings);
	diagnose_programs(facts, findings);
	say_price(facts, got.rung, findings);
	diagnose_driver(facts, got.rung, cpus, findings);
	return got.rung;
}
