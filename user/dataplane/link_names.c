/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of pins, and what belongs to a rung. */
#include "dataplane/link_names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *const prefixes[LINK_KINDS] = {
	[LINK_XDP] = "link_",
	[LINK_TCX] = "tcx_",
	[LINK_CLSACT] = "clsact_",
};

enum link_kind rung_kind(enum rung rung)
{
	return rung == RUNG_TCX ? LINK_TCX : rung == RUNG_CLSACT ? LINK_CLSACT : LINK_XDP;
}

enum attach_mode rung_mode(enum rung rung)
{
	switch (rung) {
	case RUNG_TCX:
	case RUNG_CLSACT:
		return MODE_TC;
	case RUNG_GENERIC:
		return MODE_GENERIC;
	default:
		return MODE_NATIVE;
	}
}

bool rung_suits(enum rung rung, enum attach_mode wanted, enum attach_mode require)
{
	enum attach_mode mode = rung_mode(rung);

	if (require == MODE_NATIVE && mode != MODE_NATIVE)
		return false;
	if (require == MODE_TC && mode == MODE_GENERIC)
		return false;
	if (wanted == MODE_CLSACT)
		return rung == RUNG_CLSACT;
	return wanted == MODE_AUTO || wanted == mode;
}

uint64_t link_netns(void)
{
	struct stat here;

	return stat("/proc/self/ns/net", &here) ? 0 : here.st_ino;
}

bool link_parse(const char *name, struct link_name *out)
{
	struct link_name read = {};
	char rest;

	for (int kind = 0; kind < LINK_KINDS; kind++) {
		size_t length = strlen(prefixes[kind]);
		int parts;

		if (strncmp(name, prefixes[kind], length))
			continue;
		read.kind = (enum link_kind)kind;
		if (kind == LINK_CLSACT)
			parts = sscanf(name + length, "%" SCNu32 "_%" SCNu64 "%c", &read.ifindex,
				       &read.netns, &rest) == 2;
		else
			parts = sscanf(name + length, "%" SCNu32 "%c", &read.ifindex, &rest) == 1;
		if (parts && out)
			*out = read;
		return parts;
	}
	return false;
}

const char *link_path(const char *folder, enum link_kind kind, uint32_t ifindex,
		      char buffer[PATH_MAX])
{
	if (kind == LINK_CLSACT)
		(void)snprintf(buffer, PATH_MAX, "%s/%s%u_%" PRIu64, folder, prefixes[kind],
			       ifindex, link_netns());
	else
		(void)snprintf(buffer, PATH_MAX, "%s/%s%u", folder, prefixes[kind], ifindex);
	return buffer;
}

/* What stands beside a pin: its prefix and the pin's own name, for an XDP link only the number. */
static const char *beside(const char *folder, const char *prefix, enum link_kind kind,
			  uint32_t ifindex, char buffer[PATH_MAX])
{
	char path[PATH_MAX];

	if (kind == LINK_XDP)
		(void)snprintf(buffer, PATH_MAX, "%s/%s%u", folder, prefix, ifindex);
	else
		(void)snprintf(buffer, PATH_MAX, "%s/%s%s", folder, prefix,
			       link_path("", kind, ifindex, path) + 1);
	return buffer;
}

const char *link_program_path(const char *folder, enum link_kind kind, uint32_t ifindex,
			      char buffer[PATH_MAX])
{
	if (kind == LINK_CLSACT)
		return link_path(folder, kind, ifindex, buffer);
	return beside(folder, "program_", kind, ifindex, buffer);
}

const char *link_before_path(const char *folder, enum link_kind kind, uint32_t ifindex,
			     char buffer[PATH_MAX])
{
	return beside(folder, "before_", kind, ifindex, buffer);
}
