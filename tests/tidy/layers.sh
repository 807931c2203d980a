#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Fail on an include that points upwards. A folder may include itself, the
# folders on the lines above its own in layers.txt, and include/.
set -eu

find user -name '*.[ch]' -exec awk '
	FILENAME == ARGV[1] {
		if ($0 ~ /^#/ || NF == 0)
			next
		rank++
		for (i = 1; i <= NF; i++)
			level[$i] = rank
		next
	}
	/^[ \t]*#[ \t]*include[ \t]*"/ {
		split(FILENAME, from, "/")
		split($0, quoted, "\"")
		split(quoted[2], to, "/")
		if (!(from[2] in level)) {
			printf "%s: folder user/%s is not in layers.txt\n", FILENAME, from[2]
			bad = 1
		} else if (to[1] in level && from[2] != to[1] && level[to[1]] >= level[from[2]]) {
			printf "%s:%d: %s may not include %s\n", FILENAME, FNR, from[2], quoted[2]
			bad = 1
		}
	}
	END { exit bad }
' tests/tidy/layers.txt {} +
