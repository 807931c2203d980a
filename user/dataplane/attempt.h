/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What one attach knows while it is under way; shared by attach.c and ladder.c, nobody else's. */
#ifndef SLUICE_DATAPLANE_ATTEMPT_H
#define SLUICE_DATAPLANE_ATTEMPT_H

#include "dataplane/attach.h"
#include "dataplane/guard.h"
#include "dataplane/maps.h"
#include "dataplane/object.h"
#include "dataplane/takeover.h"

struct attempt {
	struct pins *pins;
	bool keeps_configuration; /* that is in force; of settings only the interfaces count */
	bool keeps_interfaces;    /* that are attached: the configuration only */
	const struct settings *settings;
	struct attach_result *result;
	struct trouble *trouble;
	struct guard guard;
	struct takeover takeover;
	struct object *object;
	struct maps maps;
};

/*
 * Have one interface run the new program: renew what holds it, if that is of a mode that is wanted;
 * else attach by the first rung that holds, and park what was there before. 0 or -errno with
 * *attempt->trouble. What has been done is in the guard's undo.
 */
int ladder_attach(struct attempt *attempt, struct attached *one);

#endif
