#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# `sluice ip explain`: what it foresees is what becomes of the next frame, and it charges nothing.
# (tests/bpf/test_explain.c compares the two on random states; this is about the command.)
#
#     client                          server
#    ┌──────────────┐     veth      ┌────────────────┐
#    │ flood ──► c0 ├───────────────┤ s0 ──► XDP     │
#    └──────────────┘               └────────────────┘
#
# Rates are so low that nothing is refilled while the test runs: what is admitted is the burst.
# shellcheck source-path=SCRIPTDIR disable=SC2317 # functions are called by name
. "$(dirname "$0")/lib.sh"

config() {
	write_config <<- END
		protect: [udp/443, udp/8000-8010, tcp/80]
		deny: [203.0.113.0/24]
		exempt: [198.51.100.0/24]
		dry_run: ${1:-false}
		rate_limits:
		  per_ip: {packets: {rate: 0.001, burst: 3}, bytes: {rate: 1, burst: 2000}}
		  node: {packets: {rate: 0.001, burst: ${2:-1000}}}
	END
}

# explain ARGUMENT…: as JSON
explain() {
	quietly_in server sluice ip explain "$@" --json
}

# The reason foreseen for a datagram of 46 bytes to udp/443.
foreseen() {
	explain "$1" --proto udp --port 443 --size 46 | jq -r '.verdicts[1].reason'
}

reasons() {
	quietly_in server sluice stats --json | jq -c '.counters as $all |
		($all | del(.refused, .would_refuse) | map_values(.packets)) +
		($all.refused | del(.ip, .node) | map_values(.packets))'
}

# What became of one: the reason that was counted.
fate() {
	local before after

	before=$(reasons)
	send_frames --kind udp --source "$1" --packets 1
	after=$(reasons)
	jq -nr --argjson before "$before" --argjson after "$after" \
		'$after | to_entries[] | select(.value > $before[.key]) | .key'
}

# agrees ADDRESS REASON
agrees() {
	equal "$1: foreseen is $2" "$2" "$(foreseen "$1")"
	equal "$1: and so it is" "$2" "$(fate "$1")"
}

test_agrees() {
	agrees 203.0.113.9 deny
	agrees 198.51.100.9 exempt
	for _ in 1 2 3; do
		equal "looking as often as one likes charges nothing" admitted \
			"$(foreseen 198.18.0.1)"
	done
	agrees 198.18.0.1 admitted
	agrees 198.18.0.1 admitted
	agrees 198.18.0.1 admitted
	agrees 198.18.0.1 ip_packets
	expect "a refusal is said in a sentence" 0 \
		"^another datagram to udp/443 is refused \(ip_packets\): the address has 0 packets left and it takes 1; there is enough in 1[0-9.]+ min" \
		server sluice ip explain 198.18.0.1 --proto udp --port 443
	says "with the word in the table" "^per_ip packets +3\.6/h, burst 3 .* word [0-7], 0x"
	says "and the node's tokens" "^node packets +3\.6/h, burst 1000 +[0-9]+ +[0-9]+ "
	check "and for programs, with the time to wait" jq -e '.verdicts[1] | .verdict == "refused" and
		.reason == "ip_packets" and .retry_after_s > 600 and .retry_after_s <= 1000' \
		<(explain 198.18.0.1 --proto udp --port 443)
	expect "a packet that can never pass is told so" 0 \
		"refused \(ip_bytes\): it takes 3000 bytes, more than the burst of 2000, and so never" \
		server sluice ip explain 198.18.0.2 --proto udp --port 443 --size 3000
	quietly_in server sluice ip deny 198.18.0.1 --ttl 1h > /dev/null
	expect "a rule by hand is named, with its end" 0 \
		"is refused \(deny\): by the rule for 198\.18\.0\.1/32 given by hand, ends in 60 min" \
		server sluice ip explain 198.18.0.1 --proto udp
	quietly_in server sluice ip clear 198.18.0.1 > /dev/null
}

test_ports() {
	expect "without a port: what is protected" 0 "^protect: udp/443, udp/8000-8010$" \
		server sluice ip explain 198.18.0.3 --proto udp
	says "and what is not" "^a packet to any other udp port passes: .protect. does not name it"
	equal "tcp is what it asks about by itself" '["80"]' \
		"$(explain 198.18.0.3 | jq -c .protected_ports)"
	equal "a port that is not protected" '["unprotected","unprotected"]' \
		"$(explain 198.18.0.3 --port 22 | jq -c '[.verdicts[].reason]')"
	equal "ICMP that is not protected" '["unprotected"]' \
		"$(explain 198.18.0.3 --proto icmp | jq -c '[.verdicts[].reason]')"
	check "neighbour discovery is mentioned" jq -e '.never_charged | test("neighbour")' \
		<(explain fe80::1 --proto icmp)
	check "an interface that it is attached to" jq -e .attached <(explain 198.18.0.3 --iface s0)
	expect "and one that it is not" 0 "passes: sluice is not attached to lo" \
		server sluice ip explain 203.0.113.9 --iface lo
	expect "ICMP has no ports" 2 "ICMP has no ports" \
		server sluice ip explain 198.18.0.3 --proto icmp --port 1
	expect "a protocol it does not know" 2 "tcp, udp or icmp" \
		server sluice ip explain 198.18.0.3 --proto sctp
	expect "no such port" 2 "1 to 65535" server sluice ip explain 198.18.0.3 --port 0
	expect "no address" 2 "not an IPv4 or IPv6 address" server sluice ip explain 198.18.0.0/24
}

test_node() {
	config false 2
	quietly_in server sluice detach --all > /dev/null # the node is in debt by now
	attach_or_give_up s0
	agrees 198.18.0.11 admitted
	agrees 198.18.0.12 admitted
	agrees 198.18.0.13 node_packets
	expect "the node's refusal in a sentence" 0 \
		"refused \(node_packets\): the node has 0 packets left and it takes 1; there is enough in" \
		server sluice ip explain 198.18.0.13 --proto udp --port 443
}

test_dry_run() {
	config true
	attach_or_give_up s0
	expect "in a dry run it says why it passes all the same" 0 \
		"passes only because of dry_run \(deny\): by the rule for 203\.0\.113\.0/24" \
		server sluice ip explain 203.0.113.9
	check "and to programs" jq -e 'all(.verdicts[]; .verdict == "would_refuse") and .dry_run' \
		<(explain 203.0.113.9)
}

make_ns client
make_ns server
make_link client c0 server s0
config
expect "before anything is attached it says so" 69 "nothing is attached" \
	server sluice ip explain 198.18.0.1
attach_or_give_up s0
test_agrees
test_ports
test_node
test_dry_run
finish
