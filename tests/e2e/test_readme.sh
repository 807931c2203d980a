#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What the documents tell people to type. Each ```sh block that stands right below `<!-- tested -->`
# is run as it stands, in order, and has to succeed.
#
#     client               server
#    ┌────────┐   veth   ┌────────┐    /etc/sluice/sluice.yaml is dist/sluice.yaml,
#    │     c0 ├──────────┤ eth0   │    /sys/fs/bpf an empty BPF file system,
#    └────────┘          └────────┘    /tmp an empty folder, and `sluice` the one that was built
#
# All of these are mounts that only this test sees: nothing is left in /etc or /tmp.
# shellcheck source-path=SCRIPTDIR disable=SC2317 # functions are called by name
. "$(dirname "$0")/lib.sh"

# blocks FILE: writes each to $work/blocks/LINE
blocks() {
	rm -rf "$work/blocks"
	mkdir "$work/blocks"
	awk -v folder="$work/blocks" '
		/^```/ && open { close(open); open = ""; next }
		open { print > open; next }
		/^<!-- tested -->$/ { marked = FNR; next }
		marked && FNR == marked + 1 && /^```sh$/ {
			open = sprintf("%s/%05d", folder, FNR + 1)
			printf "" > open
			next
		}
		marked && FNR == marked + 1 { print FILENAME ":" FNR ": no block of sh below it" }
	' "$1"
}

# A copy of /etc with the example in it, and the programs that blocks call by name.
prepare() {
	mkdir "$work/etc" "$work/tmp"
	cp -a /etc/. "$work/etc"
	mkdir -p "$work/etc/sluice/bin"
	cp dist/sluice.yaml "$work/etc/sluice/sluice.yaml"
	cp "$work/sluice" "$work/etc/sluice/bin/sluice"
	printf '#!/bin/sh\nexec "$@"\n' > "$work/etc/sluice/bin/sudo"
	chmod 755 "$work/etc/sluice/bin/sudo"
	mount --bind "$work/etc" /etc || give_up "cannot mount over /etc"
	mount -t bpf bpf /sys/fs/bpf || give_up "cannot mount over /sys/fs/bpf"
}

# One more mount namespace for /tmp, in which $work itself lies.
run_block() {
	# shellcheck disable=SC2016 # the inner shell expands them
	quietly_in server unshare --mount --propagation private -- bash -c '
		mount --bind "$1" /tmp && cd / || exit 1
		PATH=/etc/sluice/bin:$PATH exec bash -e -c "$2"' \
		block "$work/tmp" "$(cat "$1")" < /dev/null 2>&1
}

clean_slate() {
	quietly_in server "$work/sluice" detach --all > /dev/null 2>&1
	find "$work/tmp" -mindepth 1 -delete
}

test_document() {
	local document=$1 block name

	if [ ! -e "$document" ]; then
		skip "$document" "there is no $document"
		return
	fi
	equal "$document: each mark has its block" "" "$(blocks "$document")"
	if [ -z "$(ls "$work/blocks")" ]; then
		skip "$document" "$document has no tested blocks"
		return
	fi
	clean_slate
	for block in "$work"/blocks/*; do
		name=$document:$((10#${block##*/}))
		output=$(run_block "$block")
		status=$?
		if [ $status = 0 ]; then
			ok "$name works"
		else
			not_ok "$name works" "status $status from
$(cat "$block")
which said
$output"
		fi
	done
	clean_slate
}

make_ns client
make_ns server
make_link client c0 server eth0
prepare
test_document README.md
test_document docs/operations.md
finish
