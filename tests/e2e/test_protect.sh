#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# During a flood: what is not protected is not touched, so that nobody can be cut off from SSH, and
# an honest client of what is protected is served.
#
#     client                                   server
#    ┌───────────────────────────────┐  veth ┌──────────────────────────┐
#    │ 192.0.2.1, 2001:db8:1::1 ─ c0 ├───────┤ s0 ─ 192.0.2.2, port  22 │
#    │ flood, 198.18.0.1 and invented│       │      2001:db8:1::2   443 │
#    └───────────────────────────────┘       └──────────────────────────┘
#
# Each limit refuses all of the flood that it sees but a little, so that one that touched the wrong
# port would be noticed at once: the connection to it would never come about.
# shellcheck source-path=SCRIPTDIR disable=SC2317 # functions are called by name
. "$(dirname "$0")/lib.sh"

kilobytes=2000

start_server() {
	start server serve.py "$1" "$2" > "$work/server_$1_$2"
	await 20 grep -q ready "$work/server_$1_$2" || give_up "no server on port $2"
}

# For as long as the tests need; they end it.
start_flood() {
	start client flood --dev c0 --seconds 60 --rate 50000 --destination 192.0.2.2 \
		--destination-mac "$(mac_of server s0)" "$@" > /dev/null
}

# Both, by the limits that each is against.
is_flooded() {
	[ "$(stat_of '.counters.refused | [.ip.packets, .node.packets] | min')" -gt 10000 ]
}

stop_all() {
	local pid

	for pid in "$@"; do
		kill "$pid"
		wait "$pid"
	done 2> /dev/null
}

# of the honest client, by the offenders
refused_from() {
	quietly_in server sluice top -n 16384 --json |
		jq "[.offenders[] | select(.address == \"$1\").packets] | add // 0"
}

# transfers PORT: both families, all bytes right
transfers() {
	local address

	for address in 192.0.2.2 2001:db8:1::2; do
		check "during the flood, $kilobytes kB go and come back right: $address port $1" \
			quietly_in client fetch.py "$address" "$1" "${kilobytes}000"
	done
}

# Two floods: one address against its own limit, and many against the node's.
test_unprotected() {
	local one other before

	write_config <<- END
		protect: [tcp/443, udp/443]
		rate_limits:
		  per_ip:
		    connections: {rate: 0.001, burst: 1}
		    packets: {rate: 0.001, burst: 1}
		    bytes: {rate: 1, burst: 1500}
		  node:
		    connections: {rate: 0.001, burst: 1}
		    packets: {rate: 0.001, burst: 1}
		    bytes: {rate: 1, burst: 1500}
	END
	attach_or_give_up s0
	start_flood --source 198.18.0.1
	one=$!
	start_flood --sources random --source-base 198.19.0.0/16
	other=$!
	check "port 443 is flooded, and refuses" await 20 is_flooded
	before=$(stat_of .counters.unprotected.bytes)
	transfers 22
	check "an echo is answered" quietly_in client ping -q -c 3 -i 0.2 -W 10 192.0.2.2
	equal "both floods still run" 2 "$(jobs -pr | grep -cxE "$one|$other")"
	within "its packets are counted as unprotected, to the last byte and their headers" \
		"$((2000 * kilobytes))" "$(($(stat_of .counters.unprotected.bytes) - before))" \
		"$((3 * 2000 * kilobytes))"
	equal "and none was refused" "0 0" "$(refused_from 192.0.2.1) $(refused_from 2001:db8:1::)"
	stop_all $one $other
}

# What an honest client needs, it gets; the flooding address has the same limits.
test_honest() {
	local one other

	write_config <<- END
		protect: [tcp/443, udp/443]
		rate_limits:
		  per_ip:
		    connections: {rate: 10, burst: 20}
		    packets: {rate: 2000, burst: 20000}
		    bytes: {rate: 10MB, burst: 20MB}
	END
	attach_or_give_up s0
	in_ns server sluice ip reset 198.18.0.1 > /dev/null
	start_flood --source 198.18.0.1
	one=$!
	start_flood --source 198.18.0.2 --kind ack
	other=$!
	are_refused() {
		[ "$(refused_from 198.18.0.1)" -gt 1000 ] && [ "$(refused_from 198.18.0.2)" -gt \
			1000 ]
	}
	check "port 443 is flooded by two others, who are refused" await 20 are_refused
	transfers 443
	equal "nothing of the honest client was refused" "0 0" \
		"$(refused_from 192.0.2.1) $(refused_from 2001:db8:1::)"
	equal "both floods still run" 2 "$(jobs -pr | grep -cxE "$one|$other")"
	stop_all $one $other
}

make_neighbours
for address in 192.0.2.2 2001:db8:1::2; do
	for port in 22 443; do
		start_server $address $port
	done
done
test_unprotected
test_honest
finish
