#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Rules for prefixes, from the configuration and by hand; what is shown of an address, of the
# offenders and of the whole; and dry_run.
#
#     client                          server
#    ┌──────────────┐     veth      ┌─────────────────────────────────┐
#    │ flood ──► c0 ├───────────────┤ s0 ──► XDP ──► nftables ingress │
#    └──────────────┘               └─────────────────────────────────┘
#
# Rates are so low that nothing is refilled while the test runs: what is admitted is the burst.
# shellcheck source-path=SCRIPTDIR disable=SC2317 # functions are called by name
. "$(dirname "$0")/lib.sh"

config() {
	write_config <<- END
		protect: [udp/443]
		deny: [203.0.113.0/24, "2001:db8:bad::/48"]
		exempt: [198.51.100.0/24]
		dry_run: ${1:-false}
		${2:-}
		rate_limits:
		  per_ip: {packets: {rate: 0.001, burst: 10}}
		  prefixes:
		    192.0.2.64/26: {packets: {rate: 0.001, burst: 3}}
	END
}

# All counters that a packet can end in, with short names.
verdict_counts() {
	stat_of '.counters | {admitted, exempt, unprotected, deny: .refused.deny, ip: .refused.ip,
		node: .refused.node, would_deny: .would_refuse.deny, would_ip: .would_refuse.ip} |
		map_values(.packets) | tojson'
}

# verdict_is DESCRIPTION VERDICTS ADDRESS FRAMES: what became of so many frames, as
# `admitted 10, ip 5`
verdict_is() {
	local before after

	before=$(verdict_counts)
	send_frames --kind udp --source "$3" --packets "$4"
	after=$(verdict_counts)
	equal "$1" "$2" "$(jq -nr --argjson before "$before" --argjson after "$after" \
		'[$after | to_entries[] | .value -= $before[.key] | select(.value != 0) |
		"\(.key) \(.value)"] | join(", ")')"
}

# by_hand ARGUMENT…: a rule that is to be taken
by_hand() {
	expect "sluice ip $* is taken" 0 "" server sluice ip "$@"
}

test_configured() {
	verdict_is "an address has the limits of per_ip" "admitted 10, ip 5" 198.18.0.1 15
	verdict_is "of a prefix with limits of its own, those" "admitted 3, ip 2" 192.0.2.70 5
	verdict_is "a denied prefix is refused" "deny 5" 203.0.113.7 5
	verdict_is "and an IPv6 one" "deny 5" 2001:db8:bad:1::1 5
	verdict_is "an exempt prefix is not limited" "exempt 15" 198.51.100.7 15
}

test_by_hand() {
	by_hand exempt 203.0.113.0/24
	verdict_is "by hand wins over the configuration" "exempt 5" 203.0.113.7 5
	expect "the list shows both" 0 "203\.0\.113\.0/24 +exempt +by hand" server sluice ip list
	says "and which one is not in force" "203\.0\.113\.0/24 +deny +overridden"
	by_hand clear 203.0.113.0/24
	verdict_is "cleared, the configuration's is in force again" "deny 5" 203.0.113.7 5

	by_hand deny 198.51.100.0/24
	verdict_is "what is exempt can be denied" "deny 5" 198.51.100.7 5
	by_hand exempt 198.51.100.128/25
	verdict_is "the longest prefix decides: within it" "exempt 5" 198.51.100.200 5
	verdict_is "and beside it" "deny 5" 198.51.100.7 5
	by_hand limit 198.51.100.200 --packets 0.001:2
	verdict_is "down to a single address" "admitted 2, ip 3" 198.51.100.200 5
	by_hand clear 198.51.100.200
	by_hand clear 198.51.100.128/25
	by_hand clear 198.51.100.0/24
	verdict_is "all cleared, it is exempt as it was" "exempt 5" 198.51.100.200 5

	by_hand limit 2001:db8:5::/48 --packets 0.001:4 --bytes 1MB:2MB
	verdict_is "IPv6 prefixes can be limited" "admitted 4, ip 1" 2001:db8:5:1::1 5
	verdict_is "which holds for each /64 alone" "admitted 4, ip 1" 2001:db8:5:2::1 5
	by_hand clear 2001:db8:5::/48
	expect "what was not said cannot be cleared" 1 "nothing was said by hand" \
		server sluice ip clear 203.0.113.0/24
	says "and where to look is said" "-> .*sluice ip list"
	expect "a prefix with bits beyond its length is refused, with what may be meant" 2 \
		"did you mean 10\.0\.0\.0/8" server sluice ip deny 10.1.0.0/8
}

# What is said by hand stays when the configuration is renewed, also over one for the same prefix.
test_renewal() {
	by_hand deny 198.18.9.0/24
	config false 'ipv6_prefix: 64'
	sed -i 's|^exempt: .*|exempt: [198.51.100.0/24, 198.18.9.0/24]|' "$work/sluice.yaml"
	attach_or_give_up s0
	verdict_is "a rule by hand is kept over a renewal" "deny 5" 198.18.9.1 5
	equal "and listed" '[["deny",true,true],["exempt",false,false]]' "$(
		quietly_in server sluice ip list --json | jq -c '[.rules[] |
			select(.prefix == "198.18.9.0/24") | [.rule, .by_hand, .in_force]] | sort')"
	by_hand clear 198.18.9.0/24
	verdict_is "cleared, what the new configuration says is in force" "exempt 5" 198.18.9.1 5
	config
	attach_or_give_up s0
	verdict_is "and goes with it" "admitted 5" 198.18.9.1 5
}

# ---- one address

show() {
	quietly_in server sluice ip show "$1" --json
}

# The command that `ip show` names, and the word in what it prints.
word_by_bpftool() {
	local command

	command=$(jq -r .bpftool "$work/shown.json")
	note "[server] $command"
	# shellcheck disable=SC2086 # the words of a command
	quietly_in server ${command/bpftool/bpftool --json} | "$python" -c '
import json, sys
word = json.load(sys.stdin)["formatted"]["value"]["word"][int(sys.argv[1])]
print(f"0x{word:016x}")' "$(jq .meters.packets.word_index "$work/shown.json")"
}

test_address() {
	verdict_is "an address that has spent its burst is refused" "admitted 10, ip 5" 198.18.0.2 \
		15
	show 198.18.0.2 > "$work/shown.json"
	check "ip show: it has its debt, and nothing left" jq -e '.rule == "none" and
		(.meters.packets | .debt > 9.9 and .debt <= 10 and .remaining == 0 and
		.full_after_s > 9000 and .limit.burst == 10)' "$work/shown.json"
	equal "the command that it names shows the same word" \
		"$(jq -r .meters.packets.word "$work/shown.json")" "$(word_by_bpftool)"
	expect "and people can read it" 0 "packets +3\.6/h, burst 10 +10\.0 +0 " \
		server sluice ip show 198.18.0.2
	check "ip show of one never seen: no debt, no word" jq -e '.meters.packets |
		.debt == 0 and .remaining == 10 and .word == null' <(show 198.18.77.77)
	check "ip show of a denied one names the rule and its prefix" jq -e '.rule == "deny" and
		.prefix == "203.0.113.0/24" and (.by_hand | not)' <(show 203.0.113.9)
	check "ip show of an IPv6 address names the /64 that it counts as" \
		jq -e '.key == "2001:db8:7:1::"' <(show 2001:db8:7:1::5)
	expect "ip reset forgets the debt" 0 "1 debt forgotten" server sluice ip reset 198.18.0.2
	check "after which there is none" jq -e '.meters.packets.debt == 0' <(show 198.18.0.2)
	verdict_is "and the next packets are admitted" "admitted 10, ip 1" 198.18.0.2 11
}

# ---- offenders

test_offenders() {
	send_frames --kind udp --source 198.18.0.66 --packets 500
	send_frames --kind udp --source 198.18.0.67 --packets 100
	check "top names the worst offender first, with what was refused" jq -e \
		'.offenders[0] | .address == "198.18.0.66" and .packets == 490 and
		.reason == "ip_packets" and .last_seen_s_ago < 60' \
		<(quietly_in server sluice top -n 2 --json)
	expect "top -n 1 shows one" 0 "^198\.18\.0\.66 +490 " server sluice top -n 1
	check "and no more" test "$(grep -c '^198' <<< "$output")" = 1

	start server sluice monitor -n 3 --json > "$work/events"
	sees_events() {
		quietly_in client flood --dev c0 --seconds 1 --packets 10 --kind udp \
			--source 198.18.0.66 > /dev/null
		is_over "$!"
	}
	check "monitor ends after as many as asked for" await 20 sees_events
	equal "and has shown who, what and why" '["198.18.0.66","s0","ip_packets",443,17,46]' \
		"$(jq -c '[.source, .interface, .reason, .destination_port, .protocol, .bytes]' \
			"$work/events" | sort -u)"
	equal "three times" 3 "$(wc -l < "$work/events")"
}

# ---- what programs read

is_contract() {
	jq -e 'def amount: (.packets | type) == "number" and (.bytes | type) == "number";
		(.interfaces | length) == 1 and
		(.interfaces[0] | .name == "s0" and (.ifindex | type) == "number" and
			.mode == "native" and .attached == true and .reason == null) and
		.limits.per_ip.packets.burst == 10 and .limits.per_ip.bytes == null and
		(.limits | has("node")) and
		(.counters | all(.admitted, .exempt, .unprotected, .unparsed, .not_ip, .control,
			.no_config; amount)) and
		all(.counters.refused, .counters.would_refuse; all(.ip, .node, .deny, .ip_packets,
			.ip_connections, .ip_bytes, .node_packets, .node_connections, .node_bytes;
			amount))' "$1"
}

test_json() {
	quietly_in server sluice status --json > "$work/status.json"
	check "status --json is as documented" is_contract "$work/status.json"
	# shellcheck disable=SC2016 # a variable of jq's
	check "stats --json has the same counters" jq -e --slurpfile status "$work/status.json" \
		'.counters == $status[0].counters and (.time_ns | type) == "number"' \
		<(quietly_in server sluice stats --json)
	start server sluice stats --interval 100ms --json > "$work/lines"
	has_lines() {
		[ "$(wc -l < "$work/lines")" -ge 3 ]
	}
	check "stats --interval prints again and again" await 20 has_lines
	check "a JSON value a line" jq -e --slurp \
		'all(.[]; .counters.admitted.packets > 0) and .[1].time_ns > .[0].time_ns' \
		<(head -n 3 "$work/lines")
	expect "people get tables: stats" 0 "^refused ip_packets +[0-9]+" server sluice stats
	expect "and status" 0 "^packets +3\.6/h, burst 10 +none" server sluice status
}

# ---- dry_run

test_dry_run() {
	config true
	attach_or_give_up s0
	quietly_in server nft -f - <<- END
		table netdev behind {
			counter passed {}
			chain ingress {
				type filter hook ingress device s0 priority 0;
				counter name passed
			}
		}
	END
	verdict_is "dry_run counts what it would refuse" "admitted 10, would_ip 5" 198.18.0.3 15
	verdict_is "and whom it would deny" "would_deny 5" 203.0.113.7 5
	equal "and lets all of it pass" 20 "$(quietly_in server nft --json list counters |
		jq '.nftables[].counter | select(.).packets')"
	expect "status says so" 0 "dry run: nothing is refused" server sluice status
	config false
	attach_or_give_up s0
	verdict_is "what it had charged counts when it gets serious" "ip 5" 198.18.0.3 5
}

make_ns client
make_ns server
make_link client c0 server s0
config
attach_or_give_up s0
test_configured
test_by_hand
test_renewal
test_address
test_offenders
test_json
test_dry_run
finish
