#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The command and the daemon on whatever kernel runs: in each mode packets are limited exactly, what is
# attached is told and can be taken off. For a kernel where not all of tests/e2e can be run.
#
#     client              server
#    ┌──────┐    veth    ┌──────────────┐
#    │   c0 ├────────────┤ s0 ◄─ sluice │
#    └──────┘            └──────────────┘
# shellcheck source-path=SCRIPTDIR/../e2e disable=SC2317 # functions are called by name
. "$(dirname "$0")/../e2e/lib.sh"

config() {
	write_config <<- END
		interfaces: [{name: s0, mode: auto}]
		bpffs: $BPFFS
		state: $work/state
		listen: {unix: $work/socket, tcp: null, http: null}
		tenant_slots: 1024
		protect: [udp/443]
		rate_limits:
		  per_ip: {packets: {rate: 0.001, burst: 10}}
		  default: {rate: 0.001, burst: 2}
	END
}

# interfaces JQ_FILTER: of `status --json`, as one line
interfaces() {
	quietly_in server sluice status --json | jq -c "[.interfaces[] | $1]"
}

refused() {
	stat_of .counters.refused.ip_packets.packets
}

is_clean() {
	[ "$(xdp_on server s0)" = off ] && [ -z "$(ls "$BPFFS" 2> /dev/null)" ] &&
		! tc -n "e2e_$$_server" filter show dev s0 ingress 2> /dev/null | grep -q sluice
}

# tcx came with kernel 6.6; before it TC is clsact.
tc_of_this_kernel() {
	[ "$(printf '%s\n' 6.6 "$(uname -r)" | sort -V | head -n 1)" = 6.6 ] && echo tcx || echo clsact
}

# test_mode MODE RUNG: attached in that mode it is on that rung, and limits
test_mode() {
	config
	expect "$1: attached" 0 "s0: attached" server \
		sluice attach --config "$work/sluice.yaml" --mode "$1" s0
	[ "$status" = 0 ] || return
	equal "$1: and told, as $2" "[[\"s0\",true,\"$2\"]]" "$(interfaces '[.name, .attached, .rung]')"
	send_frames --kind udp --source 198.18.0.1 --packets 50
	equal "$1: ten pass and forty are refused" 40 "$(refused)"
	send_frames --kind udp --source 2001:db8:a::1 --packets 50
	equal "$1: so it is with IPv6" 80 "$(refused)"
	expect "$1: a source is denied by hand" 0 "" server sluice ip deny 198.18.0.9
	send_frames --kind udp --source 198.18.0.9 --packets 5
	equal "$1: and refused" 5 "$(stat_of .counters.refused.deny.packets)"
	expect "$1: detached" 0 "s0: detached" server sluice detach s0
	check "$1: nothing is left" await 60 is_clean
}

set_mtu() {
	ip -n "e2e_$$_client" link set c0 mtu "$1"
	ip -n "e2e_$$_server" link set s0 mtu "$1"
}

# Frames in several buffers: a kernel that has them takes an MTU beyond a page in native mode. Renewed,
# it keeps what is in debt.
test_jumbo() {
	config
	set_mtu 9000
	expect "MTU 9000, auto: native, by the program for frames in several buffers" 0 \
		"native.*several buffers" server sluice attach --config "$work/sluice.yaml" s0
	send_frames --kind udp --source 198.18.0.1 --packets 50
	equal "which limits as well" 40 "$(refused)"
	expect "attached again, it is renewed" 0 "s0: renewed" server \
		sluice attach --config "$work/sluice.yaml" s0
	send_frames --kind udp --source 198.18.0.1 --packets 50
	equal "what was in debt stays in debt" 90 "$(refused)"
	attempt server sluice detach --all
	set_mtu 1500
}

answers() {
	quietly_in server sluice --socket "$work/socket" tenant show acme
}

test_daemon() {
	local daemon

	config
	enter server "$OUT/sluiced" --config "$work/sluice.yaml"
	"${entering[@]}" 2> "$work/said" 3>&- &
	daemon=$!
	if ! await 120 answers; then
		not_ok "the daemon starts" "$(cat "$work/said")"
		return
	fi
	ok "the daemon starts"
	equal "and has attached itself" '[["s0",true,"native"]]' \
		"$(interfaces '[.name, .attached, .mode]')"
	send_frames --kind udp --source 198.18.0.1 --packets 50
	equal "packets are limited" 40 "$(refused)"
	equal "and hooks, by debts in a BPF map" "0 0 1" "$(for _ in 1 2 3; do
		quietly_in server sluice --socket "$work/socket" tenant hit acme > "$work/said" 2>&1
		echo $?
	done | xargs)"
	kill $daemon
	wait $daemon
	equal "it ends when told to" 0 $?
	equal "and what it attached stays" '[["s0",true]]' "$(interfaces '[.name, .attached]')"
	attempt server sluice detach --all
	check "until it is taken off" await 60 is_clean
}

make_neighbours
test_mode native native_frags
test_mode tc "$(tc_of_this_kernel)"
test_mode generic generic
test_jumbo
test_daemon
finish
