#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# make install, attach, run the daemon, make uninstall: what is there afterwards is what was there
# before, also if the installed programs are broken or gone. Into a DESTDIR, and in earnest into
# /usr/local, where /usr/local, /etc, /run, /var/lib and the BPF file system are this test's own.
# shellcheck disable=SC2317 # clean_up is called by the trap
set -u
if [ "$(id -u)" != 0 ]; then
	echo "ok 1 - install # SKIP needs root, for namespaces and BPF"
	echo 1..1
	exit 0
fi
if [ "${INSTALL_PRIVATE:-}" != $$ ]; then
	INSTALL_PRIVATE=$$ exec unshare --mount --net --propagation private -- "$BASH" "$0" "$@"
fi
cd "$(dirname "$0")/../.." || exit 1
tree=$PWD
work=$(mktemp -d)
number=0 bad=0 daemon=

clean_up() {
	[ -z "$daemon" ] || kill -9 "$daemon" 2> /dev/null
	umount -l /etc /run /var/lib /usr/local /sys/fs/bpf
	rm -rf "$work"
}
trap clean_up EXIT
exec 2>> "$work/stderr"

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

# said DESCRIPTION PATTERN: in the log of the last command
said() {
	grep -qE -- "$2" "$work/log"
	tap $? "$1"
}

# ---- a DESTDIR

make -C "$tree" install DESTDIR="$work/root" PREFIX=/usr > "$work/log" 2>&1
tap $? "installs into a DESTDIR"
make -C "$tree" uninstall DESTDIR="$work/root" PREFIX=/usr > "$work/log" 2>&1
find "$work/root" -type f > "$work/log"
[ ! -s "$work/log" ]
tap $? "and leaves no file there"

# ---- in earnest

cp -a /etc "$work/etc" && mount --bind "$work/etc" /etc &&
	for folder in /run /var/lib /usr/local; do
		mount -t tmpfs tmpfs $folder || exit 1
	done && mount -t bpf bpf /sys/fs/bpf || exit 1
ip link set lo up
ip link add e0 type veth peer name e1
ip link set e0 up
ip link set e1 up

everything() {
	find /usr/local /etc/sluice /run /var/lib /sys/fs/bpf ! -type d ! -name '*.debug' 2> /dev/null | sort
}

config() {
	mkdir -p /etc/sluice
	cat > /etc/sluice/sluice.yaml <<- END
		interfaces: [{name: e0}]
		protect: [udp/443]
		rate_limits:
		  per_ip: {packets: {rate: 10, burst: 10}}
		listen: {http: null}
	END
}

install_all() {
	make -C "$tree" install > "$work/log" 2>&1
	tap $? "$1: installed"
	config
}

# What is ours in the kernel, by its numbers; others may have theirs at the same time.
note_ids() {
	local pin kind

	ids=()
	for pin in /sys/fs/bpf/sluice/*/*; do
		for kind in prog map link; do
			if bpftool $kind show pinned "$pin" > "$work/one" 2> /dev/null; then
				ids+=("$kind $(sed -n '1s/:.*//p' "$work/one")")
				break
			fi
		done
	done
	[ ${#ids[@]} -gt 10 ]
	tap $? "there are programs, maps and links (${#ids[@]})"
}

ids_left() {
	local id

	for id in "${ids[@]}"; do
		# shellcheck disable=SC2086 # kind and number
		set -- $id
		! bpftool "$1" show id "$2" > /dev/null 2>&1 || echo "$id"
	done
}

nothing_is_left() {
	local try

	for ((try = 0; try < 50; try++)); do
		ids_left > "$work/log"
		[ -s "$work/log" ] || break
		sleep 0.1
	done
	[ ! -s "$work/log" ]
	tap $? "$1: no program, map or link is left"
	{
		everything | grep -v '^/etc/sluice/\|^/var/lib/sluice/'
		ip link show e0 | grep xdp
	} > "$work/log"
	[ ! -s "$work/log" ]
	tap $? "$1: no file, pin or socket is left but what was written"
}

uninstall() {
	make -C "$tree" "${2:-uninstall}" > "$work/log" 2>&1
	tap $? "$1: ${2:-uninstall}"
}

everything > "$work/log"
[ ! -s "$work/log" ]
tap $? "the test begins with nothing"

install_all "attached"
/usr/local/sbin/sluice attach > "$work/log" 2>&1
tap $? "attached: by the command"
note_ids
uninstall "attached"
said "attached: the configuration is named, with what removes it" \
	"/etc/sluice stays .*make purge removes it"
nothing_is_left "attached"
uninstall "attached, again"

start_daemon() {
	/usr/local/sbin/sluiced 2> "$work/daemon.log" &
	daemon=$!
	for ((try = 0; try < 200; try++)); do
		! grep -q "answers on" "$work/daemon.log" || break
		sleep 0.1
	done
	cp "$work/daemon.log" "$work/log"
	[ -S /run/sluice/sluice.sock ]
	tap $? "$1: the daemon runs"
	note_ids
}

mkdir /run/sluice
install_all "daemon"
start_daemon "daemon"
uninstall "daemon"
said "daemon: it was ended" "ending sluiced \(process $daemon\)"
said "daemon: what it has kept is named" "/var/lib/sluice stays"
wait $daemon
[ -s /var/lib/sluice/sluice.db ]
tap $? "daemon: and is there"
nothing_is_left "daemon"

mkdir /run/sluice
install_all "broken"
start_daemon "broken"
echo broken > /usr/local/sbin/sluice
uninstall "broken"
said "broken: pins are removed by hand" "removing the pins in /sys/fs/bpf/sluice by hand"
nothing_is_left "broken"

mkdir /run/sluice
install_all "gone"
start_daemon "gone"
rm /usr/local/sbin/sluice /usr/local/sbin/sluiced
uninstall "gone"
said "gone: the daemon that runs still was ended" "ending sluiced \(process $daemon\)"
nothing_is_left "gone"

install_all "purge"
uninstall "purge" purge
ls -d /etc/sluice /var/lib/sluice > "$work/log" 2> /dev/null
[ ! -s "$work/log" ]
tap $? "purge: the configuration and what the daemon has kept are gone"
everything > "$work/log"
[ ! -s "$work/log" ]
tap $? "purge: nothing at all is left"
daemon=
echo "1..$number"
exit $bad
