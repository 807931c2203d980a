/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sockets that a supervisor has opened for us: which server each is for. Its name says so, `resp`
 * or `http` (FileDescriptorName=); else its kind does: a Unix socket is for RESP, TCP for HTTP, but
 * for RESP if its port is that of listen.tcp.
 */
#ifndef SLUICE_SERVER_SOCKETS_H
#define SLUICE_SERVER_SOCKETS_H

#include "base/notify.h"
#include "base/trouble.h"
#include "limit/settings.h"

struct sockets {
	int resp[INHERITED_MAX];
	size_t resp_count;
	bool has_resp_unix; /* so listen.unix need not be opened */
	bool has_resp_tcp;
	int http; /* 0: none; descriptors that are inherited begin with 3 */
};

/* -EINVAL with *trouble: one that is of no use here, or a second one for HTTP. */
int sockets_sort(const struct inherited *inherited, size_t count,
		 const struct setting_listen *listen, struct sockets *out, struct trouble *trouble);

#endif
