# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
# What the end-to-end tests have in common: namespaces, veths and a BPF file system of their own,
# TAP, and waiting. To be sourced first by each test.
#
# Nothing here touches an interface that the test has not made, and both ends of each veth lie in
# namespaces. The script runs again in a mount namespace of its own, so that what it mounts goes
# with it, however it ends. Commands enter a namespace with `nsenter --net`: `ip netns exec` would
# mount a fresh /sys and hide the BPF file system.
#
# Variables set here: $work (a folder that is removed at the end), $BPFFS (where pins go), and after
# attempt or expect $status and $output of what was run.

set -u -o pipefail

if [ "$(id -u)" != 0 ]; then
	echo "ok 1 - ${0##*/} # SKIP needs root, for namespaces and BPF"
	echo 1..1
	exit 0
fi
if [ "${E2E_PRIVATE:-}" != $$ ]; then
	# exec keeps the number, so that it also tells a test run by a test from the outer one.
	E2E_PRIVATE=$$ exec unshare --mount --propagation private -- "$BASH" "$0" "$@"
fi

cd "$(dirname "$0")/../.." || exit 1
OUT=$(realpath "${OUT:-build}")
tests=0 failures=0 namespaces=()
python=$(command -v /usr/bin/python3 python3 | head -n 1) # pyenv's takes its time
exec 3>&1 # comments go there, also from within $(…)

work=$(mktemp -d "${TMPDIR:-/tmp}/sluice_e2e.XXXXXX") || exit 1
mkdir "$work/bpf" && mount -t bpf -o mode=0700 bpf "$work/bpf" || exit 1
BPFFS=$work/bpf/sluice
# A copy: users that cannot look into the build can run it, and a build meanwhile leaves it alone.
chmod 711 "$work" && cp "$OUT/sluice" "$work/sluice" || exit 1

clean_up() {
	local pid name

	for pid in $(jobs -pr); do
		kill -9 "$pid"
	done
	wait 2> /dev/null
	for name in ${namespaces[@]+"${namespaces[@]}"}; do
		ip netns del "$name" 2> /dev/null
		rm -f "/var/run/netns/$name"
	done
	umount "$work/bpf"
	rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 143' INT TERM HUP

# ---- TAP

note() {
	printf '%s\n' "$*" | sed 's/^/# /' >&3
}

ok() {
	tests=$((tests + 1))
	echo "ok $tests - $1" >&3
}

# not_ok DESCRIPTION [WHY…]
not_ok() {
	tests=$((tests + 1)) failures=$((failures + 1))
	[ $# = 1 ] || note "${@:2}"
	echo "not ok $tests - $1" >&3
}

# skip DESCRIPTION WHY
skip() {
	tests=$((tests + 1))
	echo "ok $tests - $1 # SKIP $2" >&3
}

# check DESCRIPTION COMMAND…: passes if the command succeeds; what it prints explains the failure.
check() {
	local said

	if said=$("${@:2}" 2>&1); then
		ok "$1"
	else
		not_ok "$1" "failed: ${*:2}${said:+
$said}"
	fi
}

# equal DESCRIPTION EXPECTED ACTUAL
equal() {
	if [ "$2" = "$3" ]; then
		ok "$1"
	else
		not_ok "$1" "expected $2
got      $3"
	fi
}

# within DESCRIPTION LEAST VALUE MOST, as numbers
within() {
	if awk -v least="$2" -v value="$3" -v most="$4" \
		'BEGIN { exit !(value != "" && least <= value + 0 && value + 0 <= most) }'; then
		ok "$1"
	else
		not_ok "$1" "$3 is not from $2 to $4"
	fi
}

# The last line of each test.
finish() {
	echo "1..$tests" >&3
	[ $failures = 0 ] && [ $tests -gt 0 ]
	exit
}

# give_up WHY: without what failed, the rest would only fail as well.
give_up() {
	not_ok "the test can be set up" "$@"
	finish
}

# ---- namespaces

ns_path() {
	echo "/var/run/netns/e2e_$$_$1"
}

make_ns() {
	ip netns add "e2e_$$_$1" || give_up "cannot make a network namespace"
	namespaces+=("e2e_$$_$1")
	ip -n "e2e_$$_$1" link set lo up
}

# What runs a command in a namespace, in $entering. `sluice` is the copy, `flood` the one that was
# built, and Python programs are those that lie here.
enter() {
	local name=$1

	shift
	case $1 in
	sluice) set -- "$work/sluice" --bpffs "$BPFFS" "${@:2}" ;;
	flood) set -- "$OUT/tests/bench/flood" "${@:2}" ;;
	*.py) set -- "$python" "tests/e2e/$1" "${@:2}" ;;
	esac
	entering=(nsenter --net="$(ns_path "$name")" -- "$@")
}

# Run a command in a namespace without a word.
quietly_in() {
	enter "$@"
	"${entering[@]}"
}

# The same, said aloud.
in_ns() {
	note "[$1] ${*:2}"
	quietly_in "$@"
}

# make_link NS DEVICE NS DEVICE: a veth, both ends up, with GRO so that neither end swallows frames,
# and silent: no addresses of its own accord, so that what is counted is what the test has sent.
make_link() {
	ip -n "e2e_$$_$1" link add "$2" type veth peer name "$4" netns "e2e_$$_$3" ||
		give_up "cannot make a veth"
	set_up "$1" "$2"
	set_up "$3" "$4"
}

set_up() {
	ip -n "e2e_$$_$1" link set "$2" addrgenmode none up
	quietly_in "$1" ethtool -K "$2" gro on
}

mac_of() {
	ip -n "e2e_$$_$1" -json link show "$2" | jq -r '.[0].address'
}

# make_neighbours: a client and a server that know each other, as 192.0.2.1 and .2, 2001:db8:1::1
# and ::2.
make_neighbours() {
	make_ns client
	make_ns server
	make_link client c0 server s0
	local client server

	client=$(mac_of client c0)
	server=$(mac_of server s0)
	ip -n "e2e_$$_client" addr add 192.0.2.1/24 dev c0
	ip -n "e2e_$$_client" addr add 2001:db8:1::1/64 dev c0 nodad
	ip -n "e2e_$$_client" neigh add 192.0.2.2 lladdr "$server" dev c0
	ip -n "e2e_$$_client" neigh add 2001:db8:1::2 lladdr "$server" dev c0
	ip -n "e2e_$$_server" addr add 192.0.2.2/24 dev s0
	ip -n "e2e_$$_server" addr add 2001:db8:1::2/64 dev s0 nodad
	ip -n "e2e_$$_server" neigh add 192.0.2.1 lladdr "$client" dev s0
	ip -n "e2e_$$_server" neigh add 2001:db8:1::1 lladdr "$client" dev s0
}

# ---- running

# attempt NS COMMAND…: run it; $status and $output say how it went.
attempt() {
	output=$(in_ns "$@" 2>&1 < /dev/null)
	status=$?
}

# expect DESCRIPTION STATUS PATTERN NS COMMAND…: the exit status, and output that matches (grep -E).
expect() {
	attempt "${@:4}"
	if [ "$status" = "$2" ] && grep -qE -- "$3" <<< "$output"; then
		ok "$1"
	else
		not_ok "$1" "expected status $2 and output like: $3
got status $status and:
$output"
	fi
}

# says DESCRIPTION PATTERN: what the last command said.
says() {
	if grep -qE -- "$2" <<< "$output"; then
		ok "$1"
	else
		not_ok "$1" "expected output like: $2
got:
$output"
	fi
}

# start NS COMMAND…: in the background, ended with the test at the latest; $! is the process itself.
# It must not hold the output open, or whoever reads that would wait for it. `<&0`, since the shell
# would else give it /dev/null instead of what start was given.
start() {
	note "[$1] ${*:2}"
	enter "$@"
	"${entering[@]}" <&0 3>&- &
}

# await SECONDS COMMAND…: until it succeeds.
await() {
	local end=$((SECONDS + $1 + 1))

	shift
	until "$@" > /dev/null 2>&1; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.05
	done
}

# is_over PID: for await; a process that has ended but was not waited for is over, too.
is_over() {
	[ ! -e "/proc/$1" ] || grep -q '^State:.Z' "/proc/$1/status"
}

# ---- looking

# stat_of JQ_FILTER: from `sluice stats --json`, which has .counters and .notes.
stat_of() {
	quietly_in server sluice stats --json | jq -r "$1"
}

# on or off: whether an XDP program is attached
xdp_on() {
	ip -n "e2e_$$_$1" -json link show "$2" | jq -r 'if .[0].xdp then "on" else "off" end'
}

# Whether no sluice is at work on the pins; the guard of one that was killed is, until it has done.
is_free() {
	[ ! -d "$BPFFS" ] || flock --nonblock "$BPFFS" true
}

write_config() {
	cat > "$work/sluice.yaml"
}

# attach_or_give_up [ARGUMENT…]: what most tests begin with
attach_or_give_up() {
	attempt server sluice attach --config "$work/sluice.yaml" "$@"
	[ "$status" = 0 ] || give_up "$output"
}

# send_frames ARGUMENT…: a few frames by the generator, from c0; all have to arrive. The kernel may send
# one of its own meanwhile (it makes its IPv6 address known).
send_frames() {
	in_ns client flood --dev c0 --seconds 20 --rate 5000 --json "$@" > "$work/flood.json"
	jq -e '.made > 0 and .sent >= .made' "$work/flood.json" > /dev/null ||
		give_up "frames were lost on the way: $(cat "$work/flood.json")"
}
