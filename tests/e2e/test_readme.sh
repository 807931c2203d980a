#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What the documents tell people to type. Each ```sh block that stands right below `<!-- tested -->`
# is run as it stands, in order, and has to succeed.
#
#     client               server
#    ┌────────┐   veth   ┌────────┐    /etc/sluice/sluice.yaml is dist/sluice.yaml,
#    │     c0 ├──────────┤ eth0   │    /sys/fs/bpf an empty BPF file system,
#    └────────┘          └────────┘    /tmp, /run and /var/lib empty folders, `sluice` and `sluiced`
#                                      the ones that were built
#
# All of these are mounts that only this test sees: nothing is left in /etc or /tmp. Of systemctl
# there is what the unit's own commands make of start, reload and stop.
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

# Run the commands that dist/sluiced.service has for what is asked.
write_systemctl() {
	cat <<-'SH'
	#!/bin/bash
	of_unit() { sed -n "s|^$1=||p" /etc/sluice/sluiced.service | sed 's|/usr/local/sbin/||'; }
	case $* in
	"enable --now sluiced" | "start sluiced")
		mkdir -p /run/sluice /var/lib/sluice
		$(of_unit ExecStart) > /run/log 2>&1 < /dev/null &
		echo $! > /run/pid
		timeout 10 sh -c 'until test -S /run/sluice/sluice.sock; do sleep 0.1; done' ||
			{ cat /run/log; exit 1; }
		;;
	"reload sluiced")
		of_unit ExecReload | MAINPID=$(cat /run/pid) bash -e
		;;
	"restart sluiced") "$0" stop sluiced && "$0" start sluiced ;;
	"stop sluiced")
		kill "$(cat /run/pid)"
		timeout 20 tail --pid="$(cat /run/pid)" -f /dev/null
		;;
	*) echo "no such unit or command: $*" >&2; exit 1 ;;
	esac
	SH
}

# A copy of /etc with the example in it, and the programs that blocks call by name.
prepare() {
	mkdir "$work/etc" "$work/tmp" "$work/run" "$work/lib"
	cp -a /etc/. "$work/etc"
	mkdir -p "$work/etc/sluice/bin"
	cp dist/sluice.yaml "$work/etc/sluice/sluice.yaml"
	cp "$work/sluice" "$work/etc/sluice/bin/sluice"
	cp dist/sluiced.service "$work/etc/sluice/sluiced.service"
	cp "$OUT/sluiced" "$work/etc/sluice/sluiced"
	# So that those that a block leaves running are known.
	printf '#!/bin/sh\necho $$ >> /etc/sluice/daemons\nexec /etc/sluice/sluiced "$@"\n' \
		> "$work/etc/sluice/bin/sluiced"
	printf '#!/bin/sh\nexec "$@"\n' > "$work/etc/sluice/bin/sudo"
	write_systemctl > "$work/etc/sluice/bin/systemctl"
	chmod 755 "$work/etc/sluice/bin"/*
	mount --bind "$work/etc" /etc || give_up "cannot mount over /etc"
	mount -t bpf bpf /sys/fs/bpf || give_up "cannot mount over /sys/fs/bpf"
}

end_daemons() {
	local pid

	while read -r pid; do
		kill "$pid" 2> /dev/null && ! await 20 is_over "$pid" && kill -9 "$pid"
	done < <(cat "$work/etc/sluice/daemons" 2> /dev/null)
	rm -f "$work/etc/sluice/daemons"
}
trap 'end_daemons; clean_up' EXIT

# One more mount namespace: for /tmp, in which $work itself lies, and /run, where the names of
# network namespaces are.
run_block() {
	# shellcheck disable=SC2016 # the inner shell expands them
	quietly_in server unshare --mount --propagation private -- bash -c '
		mount --bind "$1/run" /run && mount --bind "$1/lib" /var/lib &&
			mount --bind "$1/tmp" /tmp && cd / || exit 1
		PATH=/etc/sluice/bin:$PATH exec bash -e -c "$2"' \
		block "$work" "$(cat "$1")" < /dev/null 2>&1
}

clean_slate() {
	end_daemons
	quietly_in server "$work/sluice" detach --all > /dev/null 2>&1
	find "$work/tmp" "$work/run" "$work/lib" -mindepth 1 -delete
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
