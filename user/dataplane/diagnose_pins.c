/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Judges the folder of pins: whether it will do, and what others have left in it. */
#include "dataplane/diagnose.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <sluice/abi.h>

#define MOUNT_ADVICE "mount -t bpf bpf /sys/fs/bpf"

/* Whether the folder can be used at all. */
static bool judge_folder(const struct pins_facts *pins, struct findings *findings)
{
	bool is_forbidden = pins->error == -EACCES || pins->error == -EPERM;
	struct finding *finding;

	if (pins->error) {
		finding = findings_add(findings, FINDING_FAILURE, "bpffs", "%s: %s", pins->checked,
				       strerror(-pins->error));
		finding->is_permission = is_forbidden;
		finding_explain(finding,
				"programs and maps are pinned on a BPF file system, so that "
				"they stay when sluice has ended");
		finding_advise(finding, is_forbidden ? "run it as root" : MOUNT_ADVICE);
		return false;
	}
	if (!pins->is_bpf) {
		finding = findings_add(findings, FINDING_FAILURE, "bpffs",
				       "%s is not on a BPF file system", pins->checked);
		finding_explain(finding,
				"nothing can be pinned there; `ip netns exec` hides the one of "
				"the host behind a fresh /sys");
		finding_advise(finding, MOUNT_ADVICE "; enter a network namespace by nsenter "
						     "--net=/var/run/netns/NAME");
		return false;
	}
	if (pins->is_read_only) {
		finding = findings_add(findings, FINDING_FAILURE, "bpffs", "%s is read-only",
				       pins->checked);
		finding_explain(finding, "nothing can be pinned there; in a systemd unit "
					 "ProtectKernelTunables= does that");
		finding_advise(finding, "in the unit ReadWritePaths=/sys/fs/bpf; else mount -o "
					"remount,rw /sys/fs/bpf");
		return false;
	}
	if (pins->can_write)
		return true;
	finding = findings_add(findings, FINDING_FAILURE, "bpffs",
			       "this process may not write to %s", pins->checked);
	finding->is_permission = true;
	finding_advise(finding, "run it as root, or give it a folder of its own with --bpffs");
	return true;
}

static void judge_work(const struct pins_facts *pins, struct findings *findings)
{
	struct finding *finding;

	if (pins->lock_pid) {
		finding = findings_add(findings, FINDING_NOTE, "pins",
				       "%s (process %d) is changing something in %s",
				       pins->lock_name[0] ? pins->lock_name : "another process",
				       pins->lock_pid, pins->root);
		finding_explain(finding,
				"others wait five seconds for it; an `attach --confirm` is at "
				"work until it is confirmed");
	} else if (pins->has_staging) {
		finding = findings_add(
			findings, FINDING_NOTE, "pins",
			"%s/staging is left of an attach that did not come to its end", pins->root);
		finding_explain(finding, "the next attach takes it away");
	}
}

static void judge_link(const struct pins_facts *pins, const struct pin_version *version,
		       const struct pin_link *link, struct findings *findings)
{
	char path[PATH_MAX + 64];
	struct finding *finding;

	(void)snprintf(path, sizeof(path), "%s/v%u/%s", pins->root, version->version, link->name);
	switch (link->state) {
	case PIN_LINK_DEAD:
		finding = findings_add(findings, FINDING_NOTE, "pins",
				       "%s is of an interface that is gone", path);
		finding_explain(finding, "it holds nothing; the next attach takes it away");
		finding_advise(finding, "rm %s", path);
		break;
	case PIN_LINK_TAKEN_OFF:
		finding = findings_add(findings, FINDING_WARNING, "pins",
				       "what %s held has been taken off by somebody", path);
		finding_explain(finding, "packets that come in there are not limited");
		finding_advise(finding, "sluice attach, which puts it back");
		break;
	case PIN_LINK_ELSEWHERE:
		finding = findings_add(findings, FINDING_WARNING, "pins",
				       "%s is of an interface in another network namespace", path);
		finding_explain(finding,
				"interfaces are known here by their index, which repeats in "
				"each namespace");
		finding_advise(finding,
			       "give each namespace a folder of its own: --bpffs, or `bpffs` in "
			       "the configuration");
		break;
	default:
		break;
	}
}

static size_t count_attached(const struct pin_version *version)
{
	size_t count = 0;

	for (size_t at = 0; at < version->link_count && at < PIN_LINKS_MAX; at++)
		count += version->links[at].state != PIN_LINK_DEAD &&
			 version->links[at].state != PIN_LINK_TAKEN_OFF;
	return count;
}

/* Maps and links of another version of the ABI. */
static void judge_other_version(const struct pins_facts *pins, const struct pin_version *version,
				struct findings *findings)
{
	size_t attached = count_attached(version);
	struct finding *finding;

	if (!attached) {
		finding = findings_add(findings, FINDING_WARNING, "pins",
				       "%s/v%u is left of another version of sluice, and attached "
				       "nowhere",
				       pins->root, version->version);
		finding_explain(finding, "it does nothing but hold memory");
		finding_advise(finding, "rm -r %s/v%u", pins->root, version->version);
		return;
	}
	finding = findings_add(
		findings, version->version > SLUICE_ABI_VERSION ? FINDING_WARNING : FINDING_NOTE,
		"pins", "%s/v%u is in use by %s version of sluice, on %zu interface%s", pins->root,
		version->version, version->version > SLUICE_ABI_VERSION ? "a newer" : "an older",
		attached, attached == 1 ? "" : "s");
	if (version->version > SLUICE_ABI_VERSION)
		finding_explain(finding, "this one does not know its maps");
	else
		finding_explain(finding, "attaching takes over from it");
	finding_advise(finding,
		       version->version > SLUICE_ABI_VERSION
			       ? "use the newer binary, or take it off: sluice detach --all"
			       : "sluice attach");
}

void diagnose_pins(const struct pins_facts *pins, struct findings *findings)
{
	size_t attached = 0;
	struct finding *finding;

	if (!judge_folder(pins, findings))
		return;
	if (pins->list_error && pins->list_error != -ENOENT) {
		finding = findings_add(findings, FINDING_FAILURE, "pins", "cannot look into %s: %s",
				       pins->root, strerror(-pins->list_error));
		finding->is_permission = true;
		finding_explain(finding, "who uses it is not known");
		finding_advise(finding, "run it as root");
		return;
	}
	judge_work(pins, findings);
	for (size_t at = 0; at < pins->version_count; at++) {
		const struct pin_version *version = &pins->versions[at];

		if (version->version != SLUICE_ABI_VERSION) {
			judge_other_version(pins, version, findings);
			continue;
		}
		attached = count_attached(version);
		for (size_t link = 0; link < version->link_count && link < PIN_LINKS_MAX; link++)
			judge_link(pins, version, &version->links[link], findings);
	}
	if (!pins->can_write)
		return;
	if (attached)
		(void)findings_add(findings, FINDING_OK, "bpffs",
				   "pins can be made in %s; sluice is attached to %zu interface%s",
				   pins->root, attached, attached == 1 ? "" : "s");
	else
		(void)findings_add(findings, FINDING_OK, "bpffs",
				   "pins can be made in %s; nothing is attached", pins->root);
}
