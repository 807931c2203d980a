/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which sluice this is. */
#ifndef SLUICE_BASE_VERSION_H
#define SLUICE_BASE_VERSION_H

#define SLUICE_VERSION "0.1"

/* For protocols whose clients want three numbers. */
#define SLUICE_VERSION_FULL SLUICE_VERSION ".0"

#endif
