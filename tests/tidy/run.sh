#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Style as tests, in TAP: each check prints what it finds, and nothing if all is well.
set -u
cd "$(dirname "$0")/../.." || exit 1
number=0 bad=0

check() {
	number=$((number + 1))
	found=$(eval "$2" 2>&1)
	if [ -z "$found" ]; then
		echo "ok $number - $1"
	else
		echo "$found" | head -n 20 | sed 's/^/# /'
		echo "not ok $number - $1"
		bad=1
	fi
}

sources="find bpf include user tests -name '*.[ch]'"
check "includes point down" tests/tidy/layers.sh
check "no function is longer than 70 lines" tests/tidy/functions.sh
check "no file is longer than 500 lines" \
	"$sources -exec awk 'END { if (FNR > 500) print FILENAME \": \" FNR }' {} \\;"
check "every file names its licence" \
	"find bpf include user tests vmlinux dist .ci Makefile -type f ! -path '*/corpus/*' -exec grep -L SPDX-License-Identifier {} +"
check "nothing is left for later" "$sources -exec grep -nE '\\b(TODO|FIXME|XXX|HACK)\\b' {} +"
check "libbpf is used in dataplane/ only" \
	"find user -name '*.[ch]' ! -path 'user/dataplane/*' -exec grep -nE '#include <bpf/|skel.h' {} +"
check "the tests that documents name are there" tests/tidy/named.sh
check "no trailing space" "$sources -exec grep -nE '[[:space:]]+$' {} +"
exit $bad
