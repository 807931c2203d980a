#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# `sluice attach`, killed with SIGKILL in the midst of it, over and over: what is left is all or
# nothing.
#
#     client                 server
#    ┌──────┐     veth     ┌──────────────────┐
#    │   c0 ├──────────────┤ s0 ◄─┐           │
#    │   c1 ├──────────────┤ s1 ◄─┴ XDP or TC │
#    └──────┘     veth     └──────────────────┘
#
# Moments are counted in system calls (killed.py), each STEP-th of them from a random one on, so
# that many runs see all of them; STEP=1 tries each in one run.
# shellcheck source-path=SCRIPTDIR disable=SC2317 # functions are called by name
. "$(dirname "$0")/lib.sh"

STEP=${STEP:-36}
debtor=198.18.0.1

# What holds an interface: off, xdp, tcx or clsact.
held() {
	local by=""

	[ "$(xdp_on server "$1")" = off ] || by=xdp
	[[ "$(quietly_in server tcx.py query "$1")" != *sluice* ]] || by+=tcx
	! quietly_in server tc filter show dev "$1" ingress | grep -q sluice || by+=clsact
	echo "${by:-off}"
}

# All that is to be seen from outside, on one line.
state() {
	echo "s0 $(held s0), s1 $(held s1)," \
		"pins:$(find "$BPFFS" -mindepth 1 -maxdepth 1 -printf ' %f' 2> /dev/null)," \
		"links: $(find "$BPFFS" \( -name 'link_*' -o -name 'tcx_*' -o -name 'clsact_*' \) \
			2> /dev/null | wc -l)," \
		"node: $(quietly_in server sluice status --json 2> /dev/null |
			jq -r '.limits.node.packets.rate // 0 | round')"
}

# modes FROM TO: what is attached before, and what is to be
modes() {
	local -A by=([native]=xdp [tc]=tcx [clsact]=clsact)

	from=$1 to=$2
	nothing="s0 off, s1 off, pins:, links: 0, node: "
	one="s0 ${by[$from]}, s1 off, pins: v2, links: 1, node: 1000"
	both="s0 ${by[$to]}, s1 ${by[$to]}, pins: v2, links: 2, node: 2000"
}

# The kernel takes a program off a moment after its last pin is gone: to be waited for.
is_state() {
	local wanted

	is_free || return 1
	seen=$(state)
	for wanted in "$@"; do
		[ "$seen" != "$wanted" ] || return 0
	done
	return 1
}

config() {
	write_config <<- END
		protect: [tcp/443]
		rate_limits:
		  per_ip: {packets: {rate: 0.00001, burst: 1}}
		  node: {packets: {rate: $1, burst: 1000}}
	END
}

# killed [--children] CALLS ARGUMENT…: an attach that dies
killed() {
	local option=()

	[ "$1" != --children ] || { option=(--children) && shift; }
	quietly_in server killed.py ${option[@]+"${option[@]}"} "$1" "$work/sluice" \
		--bpffs "$BPFFS" attach --config "$work/sluice.yaml" --mode "$to" "${@:2}" 2>&1 < /dev/null
}

answers() {
	quietly_in client ping -q -c 1 -W 5 192.0.2.2 > /dev/null
}

has_debt() {
	quietly_in server sluice ip show "$debtor" --json |
		jq -e '.meters.packets.debt > 0.9' > /dev/null
}

# Back to where each attempt begins.
begin() {
	local wanted=$1

	! is_state "$wanted" || return 0
	attempt server sluice detach --all
	if [ "$wanted" = "$one" ]; then
		config 1000
		attempt server sluice attach --config "$work/sluice.yaml" --mode "$from" s0
		send_frames --source "$debtor" --kind ack --packets 1
	fi 3> /dev/null
	await 5 is_state "$wanted" || give_up "cannot begin with: $wanted
there is: $(state)"
}

# kill_all_along NAME BEFORE AFTER
kill_all_along() {
	local name=$1 before=$2 after=$3 calls call seen bad="" count_before=0 count_after=0

	begin "$before"
	config 2000
	calls=$(killed 0 s0 s1 | tail -n 1)
	await 5 is_state "$after"
	equal "$name: undisturbed, it ends with all" "$after" "$(state)"
	for ((call = 1 + RANDOM % STEP; call <= calls; call += STEP)); do
		begin "$before"
		config 2000
		killed "$call" s0 s1 > "$work/said"
		await 10 is_state "$before" "$after" || bad+="call $call: $seen
$(cat "$work/said")
"
		answers || bad+="call $call: no answer
"
		[ "$before" = "$nothing" ] || has_debt || bad+="call $call: the debt is forgotten
"
		[ "$seen" = "$before" ] && count_before=$((count_before + 1))
		[ "$seen" = "$after" ] && count_after=$((count_after + 1))
	done
	note "$name: of $calls calls, killed at each ${STEP}th: $count_before times taken back," \
		"$count_after times done"
	equal "$name: killed at any moment, it leaves all or nothing, and packets pass" "" "$bad"
	check "$name: mostly it was taken back" [ $count_before -gt $count_after ]
}

# The same by the clock, for moments within a system call.
kill_at_any_time() {
	local start=${EPOCHREALTIME/[.,]/} took seen bad="" round

	begin "$nothing"
	config 2000
	start=${EPOCHREALTIME/[.,]/}
	attempt server sluice attach --config "$work/sluice.yaml" s0 s1
	took=$((${EPOCHREALTIME/[.,]/} - start))
	for ((round = 0; round < 12; round++)); do
		begin "$nothing"
		start server sluice attach --config "$work/sluice.yaml" s0 s1 < /dev/null \
			> "$work/said" 2>&1
		sleep "$(awk "BEGIN { print $took * $((RANDOM % 100)) / 1e8 }")"
		kill -9 $! 2> /dev/null
		wait $! 2> /dev/null
		await 10 is_state "$nothing" "$both" || bad+="$seen
$(cat "$work/said")
"
	done
	equal "killed at twelve times within the $((took / 1000)) ms that it takes, the same" "" \
		"$bad"
}

# Wait until the configuration is in force, which needs no lock to be seen.
is_in_force() {
	[ "$(state)" = "$1" ]
}

kill_unconfirmed() {
	local before=$1 what=$2 waiting=${3:-$both}

	begin "$before"
	config 2000
	start server sluice attach --config "$work/sluice.yaml" --mode "$to" s0 s1 --confirm 60s \
		> /dev/null 2>&1 < /dev/null
	check "$what, waiting to be confirmed: all is in force" await 10 is_in_force "$waiting"
	kill -9 $!
	wait $! 2> /dev/null
	check "$what: killed then, it is taken back" await 10 is_state "$before"
}

# Nobody is left who could take back; but it can be mended by hand.
kill_guard_as_well() {
	local calls call seen bad="" mended=0

	begin "$nothing"
	config 2000
	calls=$(killed 0 s0 s1 | tail -n 1)
	begin "$nothing"
	for ((call = calls / 3 + RANDOM % STEP; call <= calls; call += 2 * STEP)); do
		killed --children "$call" s0 s1 > "$work/said"
		await 10 is_free
		answers || bad+="call $call: no answer
"
		attempt server sluice attach --config "$work/sluice.yaml" --mode "$to" s0 s1 \
			3> /dev/null
		await 5 is_state "$both" || bad+="call $call, attached again: $seen
$output
"
		attempt server sluice detach --all 3> /dev/null
		killed --children "$call" s0 s1 > "$work/said"
		attempt server sluice detach --all 3> /dev/null
		await 5 is_state "$nothing" || bad+="call $call, detached: $seen
$output
"
		mended=$((mended + 1))
	done
	note "mended $mended times"
	equal "$to, killed together with its guard: attach and detach --all put in order what is left" \
		"" "$bad"
}

RANDOM=${SEED:-$$}
make_neighbours
make_link client c1 server s1
modes native native
kill_all_along "a first attach" "$nothing" "$both"
kill_all_along "a renewal" "$one" "$both"
kill_at_any_time
kill_unconfirmed "$nothing" "a first attach"
kill_unconfirmed "$one" "a renewal"
kill_guard_as_well

# By a filter there is no link that goes with its process. Seen by fewer moments.
STEP=$((2 * STEP))
modes clsact clsact
kill_all_along "a first attach by clsact" "$nothing" "$both"
kill_all_along "a renewal by clsact" "$one" "$both"
kill_guard_as_well
modes native clsact
kill_all_along "from native XDP to clsact" "$one" "$both"
kill_unconfirmed "$one" "from native XDP to clsact" \
	"s0 xdpclsact, s1 clsact, pins: v2, links: 3, node: 2000" # the old one is parked
if [ "$(quietly_in server tcx.py query s0)" != none ]; then
	modes native tc
	kill_all_along "from native XDP to tcx" "$one" "$both"
	modes tc native
	kill_all_along "from tcx to native XDP" "$one" "$both"
else
	skip "from native XDP to tcx and back" "this kernel has no tcx"
fi
finish
