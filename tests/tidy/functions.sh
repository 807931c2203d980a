#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Fail on a function whose body is longer than LIMIT lines (default 70).
set -eu

find bpf include user tests -name '*.[ch]' -exec awk -v limit="${LIMIT:-70}" '
	/^{/ { start = FNR }
	/^}/ && start {
		if (FNR - start - 1 > limit) {
			printf "%s:%d: function of %d lines\n", FILENAME, start, FNR - start - 1
			bad = 1
		}
		start = 0
	}
	END { exit bad }
' {} +
