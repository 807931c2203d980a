#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The build from a bare clone: nothing is missing from the repository, a change of a BPF header is
# followed through to the command, and what is installed is taken away again.
set -u
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
number=0 bad=0

tap() {
	local status=$1
	shift
	number=$((number + 1))
	if [ "$status" = 0 ]; then
		echo "ok $number - $*"
	else
		sed 's/^/# /' "$work/log" | tail -n 20
		echo "not ok $number - $*"
		bad=1
	fi
}

git clone -q . "$work/clone" > "$work/log" 2>&1
cd "$work/clone" || exit 1
make > "$work/log" 2>&1 && [ -x build/sluice ]
tap $? "a bare clone builds"
! grep -qi warning "$work/log"
tap $? "without a warning"
git status --porcelain > "$work/log" && [ ! -s "$work/log" ]
tap $? "and leaves nothing that git would see"

make > "$work/log" 2>&1 && ! grep -qE '  (CC|BPF|SKEL|LINK)' "$work/log"
tap $? "a second make has nothing to do"
before=$(stat -c %Y.%y build/sluice)
sleep 0.05
touch bpf/maps.h
make > "$work/log" 2>&1 && [ "$(stat -c %Y.%y build/sluice)" != "$before" ]
tap $? "a change of a BPF header makes the command anew"

make install DESTDIR="$work/root" PREFIX=/usr > "$work/log" 2>&1 && "$work/root/usr/sbin/sluice" --version > "$work/log"
tap $? "install puts a command there that runs"
for page in sluice.8 sluice.yaml.5; do
	man -l "$work/root/usr/share/man/man${page##*.}/$page" > /dev/null 2> "$work/log" && [ ! -s "$work/log" ]
	tap $? "and the manual page $page, without a complaint"
done
make uninstall DESTDIR="$work/root" PREFIX=/usr > "$work/log" 2>&1
find "$work/root" -type f > "$work/log"
[ ! -s "$work/log" ]
tap $? "uninstall leaves no file"
echo "1..$number"
exit $bad
