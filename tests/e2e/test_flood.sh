#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Under floods of as many packets as the generator makes: the daemon is killed, started again, told to
# read changed limits, killed in the midst of that, and the command line attaches anew. Not one packet
# beyond the limit gets through, and of an honest client none is lost. From one version of the maps to
# another: test_upgrade.sh.
# shellcheck source-path=SCRIPTDIR disable=SC2317 # functions are called by name
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/flooded.sh"

# config LIMITS…: what the daemon reads
config() {
	{
		"$@"
		echo "interfaces: [{name: s0}, {name: s1}, {name: s2}]"
		echo "bpffs: $BPFFS"
		echo "state: $work/state"
		echo "listen: {unix: $work/sluice.sock, http: null}"
	} | write_config
}

# start_daemon DESCRIPTION
start_daemon() {
	start server "$OUT/sluiced" --config "$work/sluice.yaml" 2> "$work/daemon.log"
	daemon=$!
	check "$1" await 30 grep -q "answers on" "$work/daemon.log"
	note "$(tail -n 3 "$work/daemon.log")"
}

kill_daemon() {
	note "kill -9 of sluiced"
	kill -9 "$daemon"
	wait "$daemon" 2> /dev/null
}

reload() {
	expect "$1" 0 "" server sluice --socket "$work/sluice.sock" reload
}

# In the midst of a reload, at moments over the time that one takes.
kill_while_reloading() {
	local round

	for round in 1 2 3 4; do
		kill -HUP "$daemon"
		sleep "0.$round"
		kill_daemon
		await 10 is_free
		start_daemon "$1: killed 0.$round s after a reload began, it starts again"
	done
}

# through NAME OTHER_LIMITS LIMITS: all that may happen
through() {
	local name=$1 other=$2 limits=$3

	kill_daemon
	sleep 0.5
	start_daemon "$name: it starts again"
	# shellcheck disable=SC2086 # words
	config $other
	reload "$name: other limits come into force"
	# shellcheck disable=SC2086
	config $limits
	reload "$name: and the ones before"
	expect "$name: the command line attaches anew" 0 "renewed" server sluice attach \
		--config "$work/sluice.yaml"
	kill_while_reloading "$name"
	expect "$name: the command line attaches anew, one of them" 0 "s2: renewed" server sluice \
		attach --config "$work/sluice.yaml" s2
}

test_addresses() {
	config address_limits
	start_daemon "the daemon attaches"
	start_honest
	start_floods one
	# Half the burst at half the rate takes as long to pay, so that nothing falls free by it.
	through addresses "address_limits $((one_rate / 2)) $((one_burst / 2))" address_limits
	stop_floods
	check_floods addresses
	check_honest addresses
}

test_node() {
	config node_limits
	reload "limits of the node come into force"
	start_honest
	start_floods random
	through node "node_limits $((node_rate / 2)) $((node_burst / 2))" node_limits
	stop_floods
	check_node node
	check_honest node
}

make_flooded
test_addresses
test_node
kill -TERM "$daemon"
wait "$daemon"
expect "it ends, and all is taken off" 0 "3 interfaces" server sluice detach --all
finish
