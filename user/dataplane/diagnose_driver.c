/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Judges who else is attached to an interface, and what its driver would do differently. */
#include "dataplane/diagnose.h"

#include <stdio.h>
#include <string.h>

#include "dataplane/obstacles.h"

static bool is_of_sluice(const char *name)
{
	return !strncmp(name, "sluice_", strlen("sluice_"));
}

static void say_xdp(const struct interface_facts *facts, struct findings *findings)
{
	const struct program_facts *places[] = { &facts->xdp_native, &facts->xdp_generic,
						 &facts->xdp_offloaded };
	static const char *const words[] = { "xdpdrv", "xdpgeneric", "xdpoffload" };

	for (size_t at = 0; at < sizeof(places) / sizeof(places[0]); at++) {
		struct finding *finding;
		char text[96];

		if (!places[at]->id)
			continue;
		obstacle_describe(places[at], words[at], text, sizeof(text));
		if (places[at]->is_ours) {
			(void)findings_add(findings, FINDING_OK, facts->name,
					   "sluice is attached: the XDP program %s", text);
			continue;
		}
		finding = findings_add(findings, FINDING_WARNING, facts->name,
				       "the XDP program %s is there already", text);
		if (is_of_sluice(places[at]->name)) {
			finding_explain(finding, "it is sluice's own, pinned in another folder");
			finding_advise(finding, "name that folder: sluice --bpffs DIR detach %s",
				       facts->name);
			continue;
		}
		finding_explain(finding,
				"an interface bears one XDP program, and sluice never replaces "
				"one of others");
		finding_advise(finding,
			       "ask its owner to take it off (bpftool net show dev %s), or use "
			       "--mode tc",
			       facts->name);
	}
}

static void add_to_list(char *list, size_t size, const char *name, uint32_t id)
{
	size_t length = strlen(list);

	(void)snprintf(list + length, size - length, "%s%s%s%u", length ? ", " : "", name,
		       name[0] ? " id " : "id ", id);
}

static void say_tc(const struct interface_facts *facts, struct findings *findings)
{
	char list[300] = "";
	struct finding *finding;
	size_t others = 0;

	for (size_t at = 0; at < facts->tcx_count; at++) {
		if (facts->tcx[at].is_ours)
			continue;
		add_to_list(list, sizeof(list), facts->tcx[at].name, facts->tcx[at].id);
		others++;
	}
	if (others) {
		finding = findings_add(findings, FINDING_NOTE, facts->name,
				       "%zu TC program%s (tcx) %s there already: %s", others,
				       others == 1 ? "" : "s", others == 1 ? "is" : "are", list);
		finding_explain(finding,
				"sluice stands beside: XDP comes before them, and in TC mode "
				"what it does not refuse goes on to them");
	}
	if (!facts->has_clsact)
		return;
	list[0] = '\0';
	others = 0;
	for (size_t at = 0; at < facts->filter_count; at++) {
		const struct filter_facts *filter = &facts->filters[at];
		size_t length = strlen(list);

		if (is_of_sluice(filter->name))
			continue;
		(void)snprintf(list + length, sizeof(list) - length, "%s%s%s%s at %u",
			       length ? ", " : "", filter->kind, filter->name[0] ? " " : "",
			       filter->name, filter->priority);
		others++;
	}
	if (!others)
		return;
	finding = findings_add(findings, FINDING_NOTE, facts->name,
			       "%zu filter%s of TC %s there already: %s", others,
			       others == 1 ? "" : "s", others == 1 ? "is" : "are", list);
	finding_explain(finding, "sluice leaves them and their discipline (clsact) alone");
}

void diagnose_programs(const struct interface_facts *facts, struct findings *findings)
{
	say_xdp(facts, findings);
	say_tc(facts, findings);
}

/* ---- the driver */

static bool is_xdp(enum rung rung)
{
	return rung == RUNG_NATIVE || rung == RUNG_NATIVE_FRAGS || rung == RUNG_GENERIC;
}

/* Offloads that join packets: the kernel or the driver turns them off for XDP. */
static void say_offloads(const struct interface_facts *facts, enum rung rung,
			 struct findings *findings)
{
	const struct driver_facts *driver = &facts->driver;
	const struct {
		const struct offload *offload;
		const char *name;
	} joining[] = { { &driver->lro, "lro" }, { &driver->gro_hw, "rx-gro-hw" } };
	struct finding *finding;

	for (size_t at = 0; is_xdp(rung) && at < sizeof(joining) / sizeof(joining[0]); at++) {
		if (!joining[at].offload->is_on || joining[at].offload->is_fixed)
			continue;
		finding = findings_add(findings, FINDING_NOTE, facts->name,
				       "attaching turns %s off", joining[at].name);
		finding_explain(finding,
				"packets that the card has joined cannot be shown to a program "
				"of XDP; large transfers cost more CPU");
		finding_advise(finding, "once detached, if it is not on again: ethtool -K %s %s on",
			       facts->name, joining[at].name);
	}
	if (is_xdp(rung) && rung != RUNG_GENERIC && driver->rxvlan.is_on && driver->bus[0]) {
		finding = findings_add(findings, FINDING_NOTE, facts->name,
				       "the card takes VLAN tags off (rx-vlan-offload)");
		finding_explain(finding,
				"programs of XDP do not see them; sluice looks at the IP header "
				"alone, and needs none");
	}
}

/* More queues, so that more CPUs judge at once. */
static void say_queues(const struct interface_facts *facts, enum rung rung, unsigned cpus,
		       struct findings *findings)
{
	const struct channels *channels = &facts->driver.channels;
	unsigned best = channels->combined_max < cpus ? channels->combined_max : cpus;
	struct interface_facts more = *facts;
	struct trouble trouble;
	struct finding *finding;

	if (!channels->is_known || !channels->combined || !facts->driver.bus[0])
		return;
	/* Not as many that the rung would be lost. */
	for (; best > channels->combined; best--) {
		more.driver.channels.combined = best;
		if (obstacle_find(&more, rung, 0, &trouble) == OUTLOOK_WORKS)
			break;
	}
	if (best <= channels->combined)
		return;
	finding = findings_add(findings, FINDING_NOTE, facts->name,
			       "it uses %u of its queues, and there are %u CPUs",
			       channels->combined, cpus);
	finding_explain(finding,
			"each queue's packets are judged by one CPU: a flood keeps %u busy, and "
			"the others idle",
			channels->combined);
	finding_advise(finding, "ethtool -L %s combined %u", facts->name, best);
}

void diagnose_driver(const struct interface_facts *facts, enum rung rung, unsigned cpus,
		     struct findings *findings)
{
	if (rung == RUNG_NONE)
		return;
	say_offloads(facts, rung, findings);
	say_queues(facts, rung, cpus, findings);
}
