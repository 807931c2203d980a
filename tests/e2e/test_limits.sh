#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What is admitted under a flood, counted behind the interface by nftables and by sluice itself.
#
#     client                          server
#    ┌──────────────┐     veth      ┌─────────────────────────────────┐
#    │ flood ──► c0 ├───────────────┤ s0 ──► XDP ──► nftables ingress │
#    └──────────────┘               └─────────────────────────────────┘
#
# In any stretch of time t at most burst + rate * t may be admitted. The stretch is taken from the
# clock, not from what the generator was asked for, so that a slow machine passes as well:
#
#     most    from before the generator was started until after it has ended
#     least   from the first refusal to the last one: when one is refused, the bucket holds less
#             than the packet costs, so all of the burst and of rate * t is spent
#
# When an address was refused is told by `sluice top`; when the node refused, by counters read again
# and again (`sluice stats --interval`), with the time at which each was read.
# shellcheck source-path=SCRIPTDIR disable=SC2317 # functions are called by name
. "$(dirname "$0")/lib.sh"

flood_seconds=10
tick=0.01 # of the slowest kernel clock, HZ=100

# sources: name, address, kind of frame, meter, rate, burst, bytes of a frame and of its IP packet
sources="
4_packets     198.18.0.1     ack  packets      1000     2000     60   46
4_connections 198.18.0.2     syn  connections  200      400      60   46
4_bytes       198.18.0.3     udp  bytes        1000000  2000000  1000 986
6_packets     2001:db8:a::1  ack  packets      1000     2000     80   66
6_connections 2001:db8:b::1  syn  connections  200      400      80   66
6_bytes       2001:db8:c::1  udp  bytes        1000000  2000000  1000 986
"

each_source() {
	local line

	while read -r line; do
		# shellcheck disable=SC2086 # the words of the row
		[ -z "$line" ] || "$1" $line
	done <<< "$sources"
}

family_of() {
	[[ $1 = *:* ]] && echo ip6 || echo ip
}

# ---- limits of an address

# Each source has one limit only, so that each meter is seen alone.
prefix_lines() {
	echo "    \"$2\": {$4: {rate: $5, burst: $6}}"
}

count_behind() {
	local name=$1 address=$2

	quietly_in server nft -f - <<- END
		table netdev behind {
			counter from_$name {}
			chain ingress {
				type filter hook ingress device s0 priority 0;
				$(family_of "$address") saddr $address counter name from_$name
			}
		}
	END
}

behind() {
	quietly_in server nft --json list counters |
		jq -r ".nftables[].counter | select(. and .name == \"from_$1\") | .$2"
}

start_flood() {
	local name=$1 address=$2 kind=$3

	start client timed.py "$OUT/tests/bench/flood" --dev c0 --rate 10000 \
		--seconds "$flood_seconds" --source "$address" --kind "$kind" --size "$7" \
		> "$work/took_$name"
	floods+=($!)
}

# Seconds between the first and the last refusal of those whose address begins so.
refused_for() {
	jq -r --arg prefix "$1" '[.offenders[] | select(.address | startswith($prefix))] |
		if . == [] then 0
		else (map(.first_seen_s_ago) | max) - (map(.last_seen_s_ago) | min) end' \
		"$work/top.json"
}

check_source() {
	local name=$1 address=$2 meter=$4 rate=$5 burst=$6 token=1 used least most spent
	local key=${address%1} # an IPv6 client is its /64

	[[ $address = *:* ]] || key=$address
	if [ "$meter" = bytes ]; then
		used=$(behind "$name" bytes)
		token=$8
	else
		used=$(behind "$name" packets)
	fi
	spent=$(refused_for "$key")
	note "$name: $used $meter in $(cat "$work/took_$name") s, refused for $spent s"
	most=$(awk "BEGIN { print $burst + $rate * ($(cat "$work/took_$name") + $tick) }")
	least=$(awk "BEGIN { print $burst - $token + $rate * ($spent - 2 * $tick) }")
	within "$name: no more than burst + rate * time is admitted, and no less" \
		"$least" "$used" "$most"
	within "$name: the flood was refused nearly all the time" \
		"$(awk "BEGIN { print $flood_seconds / 2 }")" "$spent" 60
	total_packets=$((total_packets + $(behind "$name" packets)))
	total_bytes=$((total_bytes + $(behind "$name" bytes)))
}

test_addresses() {
	local pid floods=() total_packets=0 total_bytes=0

	write_config <<- END
		protect: [all]
		rate_limits:
		  prefixes:
		$(each_source prefix_lines)
	END
	attach_or_give_up s0 --mode native
	each_source count_behind
	each_source start_flood
	for pid in "${floods[@]}"; do
		wait "$pid" || give_up "the generator failed"
	done
	in_ns server sluice top -n 1000 --json > "$work/top.json"
	each_source check_source
	equal "packets admitted, as sluice counts them, are those behind the interface" \
		"$total_packets" "$(stat_of .counters.admitted.packets)"
	equal "and so are the bytes" "$total_bytes" "$(stat_of .counters.admitted.bytes)"
	check "each meter has refused" jq -e '.counters.refused | .ip_connections.packets > 0 and
		.ip_packets.packets > 0 and .ip_bytes.packets > 0 and .node.packets == 0' \
		<(quietly_in server sluice stats --json)
}

# ---- limits of the node

# has_samples NUMBER
has_samples() {
	[ "$(wc -l < "$work/samples")" -ge "$1" ]
}

# From the lines of `stats --interval`: seconds from the first refusal to the last, at least, and
# from the first packet to the last, at most. A sample's time is that after it was read.
windows() {
	jq -rs 'map({time: (.time_ns / 1e9), refused: .counters.refused.node.packets,
			all: (.counters.refused.node.packets + .counters.admitted.packets)}) as $s |
		($s | length - 1) as $final |
		first(range($final) | select($s[.].refused > 0)) as $refused |
		last(range(1; $final) | select($s[.].refused < $s[. + 1].refused)) as $refusing |
		last(range(1; $final) | select($s[.].all == 0)) as $silent |
		first(range($final + 1) | select($s[.].all == $s[$final].all)) as $done |
		[$s[$refusing - 1].time - $s[$refused].time,
			$s[$done].time - $s[$silent - 1].time] |
		@tsv' "$work/samples"
}

test_node() {
	local rate=2000 burst=4000 samples took most least spent behind

	write_config <<- END
		protect: [tcp/443]
		rate_limits:
		  node:
		    packets: {rate: $rate, burst: $burst}
	END
	in_ns server sluice detach --all > /dev/null
	in_ns server nft flush ruleset
	attach_or_give_up s0
	count_behind node "198.18.0.0/15"
	start server sluice stats --interval 20ms --json > "$work/samples"
	samples=$!
	await 10 has_samples 2 || give_up "no samples"
	in_ns client flood --dev c0 --rate 50000 --seconds "$flood_seconds" --sources random \
		--source-base 198.18.0.0/15 > /dev/null || give_up "the generator failed"
	await 10 has_samples $(($(wc -l < "$work/samples") + 2))
	kill $samples
	wait $samples
	behind=$(behind node packets)
	IFS=$'\t' read -r spent took < <(windows)
	note "node: $behind packets in $took s, refused for $spent s"
	most=$(awk "BEGIN { print $burst + $rate * ($took + $tick) }")
	# Slices on other CPUs may hold up to an eighth of the burst, which is also kept in reserve.
	least=$(awk "BEGIN { print $burst * 3 / 4 + $rate * ($spent - 2 * $tick) }")
	within "node: no more than burst + rate * time is admitted, and no less but slices" \
		"$least" "$behind" "$most"
	within "node: the flood was refused nearly all the time" "$((flood_seconds / 2))" "$spent" \
		60
	equal "node: sluice counts the same packets" "$behind" \
		"$(stat_of .counters.admitted.packets)"
	equal "node: every refusal is the node's" \
		"$(stat_of .counters.refused.node_packets.packets)" \
		"$(stat_of '[.counters.refused | .ip, .node, .deny | .packets] | add')"
}

# ---- the order of the limits, and whose bucket it is

node_word() {
	quietly_in server bpftool --json map lookup pinned "$BPFFS/v2/node_buckets" key 0 0 0 0 |
		jq -c '.formatted.value.tat'
}

admitted() {
	stat_of .counters.admitted.packets
}

test_order() {
	local before

	write_config <<- END
		protect: [all]
		rate_limits:
		  per_ip:
		    packets: {rate: 0.001, burst: 1}
		  node:
		    packets: {rate: 0.001, burst: 4}
	END
	in_ns server sluice detach --all > /dev/null
	attach_or_give_up s0
	send_frames --source 198.18.0.1 --packets 1
	equal "the first packet of an address is admitted" 1 "$(admitted)"
	before=$(node_word)
	send_frames --source 198.18.0.1 --packets 1000
	equal "then its packets are refused" 1000 "$(stat_of .counters.refused.ip_packets.packets)"
	equal "an address that is refused has not touched the node's bucket" "$before" \
		"$(node_word)"

	send_frames --source 2001:db8:0:1::1 --packets 1
	send_frames --source 2001:db8:0:1:ffff::2 --packets 1
	equal "two addresses of one /64 share a bucket" 2 "$(admitted)"
	send_frames --source 2001:db8:0:2::1 --packets 1
	equal "addresses of two /64 do not" 3 "$(admitted)"
	check "an address admitted has touched the node's bucket" [ "$before" != "$(node_word)" ]

	send_frames --source 198.18.0.2 --packets 1
	send_frames --source 198.18.0.3 --packets 1
	equal "the node admits as many as its burst" 4 "$(admitted)"
	equal "and refuses the next, of whatever address" 1 \
		"$(stat_of .counters.refused.node_packets.packets)"
}

make_ns client
make_ns server
make_link client c0 server s0
test_addresses
test_node
test_order
finish
