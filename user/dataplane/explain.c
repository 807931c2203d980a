/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's answers to loading and attaching, explained. The link interface carries no text, so
 * what the driver would have said is worked out from the interface itself; the causes are those of
 * obstacles.c, which `sluice doctor` asks before anything is tried.
 */
#include "dataplane/explain.h"

#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "dataplane/obstacles.h"
#include "dataplane/probe.h"

int explain_load(int err, struct trouble *trouble)
{
	char needed[SIZE_TEXT_MAX];

	switch (-err) {
	case EPERM:
	case EACCES:
		trouble_set(trouble, 0, "the kernel does not let us load a program");
		trouble_advise(trouble,
			       "run as root, or with CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON");
		break;
	case ENOMEM:
		format_size((double)probe_map_bytes(), needed);
		trouble_set(trouble, 0, "there is no memory for the maps (about %s)", needed);
		trouble_advise(
			trouble,
			"raise the memory limit of this control group (systemd: MemoryMax=)");
		break;
	case EINVAL:
	case E2BIG:
	case ENOTSUP:
		trouble_set(trouble, 0, "this kernel does not take the program: %s",
			    strerror(-err));
		trouble_advise(
			trouble,
			"sluice needs Linux 5.15 or newer; --verbose shows what the kernel says");
		break;
	default:
		trouble_set(trouble, 0, "the program cannot be loaded: %s", strerror(-err));
		trouble_advise(trouble, "--verbose shows what the kernel says");
	}
	return err;
}

int explain_rung(int err, const char *name, enum rung rung, struct trouble *trouble)
{
	struct interface_facts facts;

	probe_interface(name, NULL, &facts);
	(void)obstacle_find(&facts, rung, err, trouble);
	return err;
}
