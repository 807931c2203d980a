/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers of tcx (Linux 6.6), which the headers of Debian 12 do not have yet. */
#ifndef SLUICE_DATAPLANE_TCX_H
#define SLUICE_DATAPLANE_TCX_H

enum {
	TCX_INGRESS = 46,   /* enum bpf_attach_type: BPF_TCX_INGRESS */
	TCX_LINK_TYPE = 11, /* enum bpf_link_type: BPF_LINK_TYPE_TCX */
	TCX_FIRST = 1 << 3, /* BPF_F_BEFORE, and no program named: before all that are there */
};

#endif
