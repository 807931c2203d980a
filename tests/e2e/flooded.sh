# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154,SC2317 # of lib.sh; functions are called by name
# A server under floods, for tests that change something meanwhile. Sourced after lib.sh.
#
#     client                                server
#    ┌────────────────────────┐           ┌────────────────────────────┐
#    │ flood, one address ─► c0 ├─────────┤ s0 ─► sluice ─► nftables   │
#    │ an honest client   ─► c1 ├─────────┤ s1 ─► sluice ─► serve.py   │
#    │ flood, many        ─► c2 ├─────────┤ s2 ─► sluice ─► nftables   │
#    └────────────────────────┘           └────────────────────────────┘
#
# What arrives behind the interfaces is counted by nftables. In any stretch of time t that is at most
# burst + rate * t for each address; t is read from the clock around the floods, and so there is no
# dependence on how fast the machine is. One packet that goes unlimited while the flood goes on
# stands for thousands, and a second burst doubles the figure, so that neither can hide.
#
# Of the honest client nothing is lost: the packets that it sends are those that arrive, and its link
# is its own, so that no queue is full.

many=500
one_rate=10 one_burst=2000 many_rate=1 many_burst=20
node_rate=2000 node_burst=20000

make_flooded() {
	make_ns client
	make_ns server
	make_link client c0 server s0
	make_link client c1 server s1
	make_link client c2 server s2
	quietly_in server ethtool -K s1 gro off # it would make one packet of several
	ip -n "e2e_$$_client" addr add 192.0.2.1/24 dev c1
	ip -n "e2e_$$_server" addr add 192.0.2.2/24 dev s1
	ip -n "e2e_$$_client" neigh add 192.0.2.2 lladdr "$(mac_of server s1)" dev c1
	ip -n "e2e_$$_server" neigh add 192.0.2.1 lladdr "$(mac_of client c1)" dev s1
	quietly_in server nft -f - <<- END
		table netdev behind {
			counter one {}
			counter many {}
			counter honest {}
			chain s0 {
				type filter hook ingress device s0 priority 0;
				ip saddr 198.18.0.0/15 counter name one
			}
			chain s1 {
				type filter hook ingress device s1 priority 0;
				ip saddr 192.0.2.1 counter name honest
			}
			chain s2 {
				type filter hook ingress device s2 priority 0;
				ip saddr 198.18.0.0/15 counter name many
			}
		}
	END
	quietly_in client nft -f - <<- END
		table inet out {
			counter honest {}
			chain out {
				type filter hook output priority 0;
				ip daddr 192.0.2.2 counter name honest
			}
		}
	END
	start server serve.py 192.0.2.2 443 > "$work/serve"
	await 10 grep -q ready "$work/serve" || give_up "no server"
}

# address_limits, node_limits [RATE BURST]: what the two kinds of flood are held to. The honest client has limits
# that no client can reach that waits for its answers.
address_limits() {
	cat <<- END
		protect: [tcp/443]
		rate_limits:
		  per_ip: {packets: {rate: 100000, burst: 100000}}
		  prefixes:
		    198.18.0.0/16: {packets: {rate: ${1:-$one_rate}, burst: ${2:-$one_burst}}}
		    198.19.0.0/16: {packets: {rate: $many_rate, burst: $many_burst}}
	END
}

node_limits() {
	cat <<- END
		protect: [tcp/443]
		exempt: [192.0.2.1/32]
		rate_limits:
		  node: {packets: {rate: ${1:-$node_rate}, burst: ${2:-$node_burst}}}
	END
}

counted() {
	quietly_in "$1" nft --json list counters |
		jq ".nftables[].counter | select(. and .name == \"$2\").packets"
}

uptime_s() {
	local up

	read -r up _ < /proc/uptime
	echo "$up"
}

# To be called before start_floods: it begins to count anew.
start_honest() {
	quietly_in server nft reset counters > /dev/null
	quietly_in client nft reset counters > /dev/null
	start client requests.py 192.0.2.2 443 > "$work/honest"
	honest=$!
}

# Nothing of what it sent was lost, and each request was answered.
check_honest() {
	local answered slowest

	kill -TERM "$honest" 2> /dev/null
	wait "$honest"
	equal "$1: the honest client got every answer" 0 $?
	read -r answered slowest < "$work/honest"
	note "$1: honest client: $answered requests answered, the slowest in $slowest s"
	within "$1: and had many" 10 "$answered" 1e9
	arrived() {
		[ "$(counted client honest)" = "$(counted server honest)" ]
	}
	await 10 arrived
	equal "$1: every packet that it sent has arrived, no more and no less" \
		"$(counted client honest)" "$(counted server honest)"
}

# start_floods one|random: as fast as they can. `random`: from all over 198.18/15 on both links.
start_floods() {
	local kind=(--kind ack --seconds 60 --json)

	floods_began=$(uptime_s)
	if [ "$1" = one ]; then
		start client flood --dev c0 --source 198.18.0.1 "${kind[@]}" > "$work/flood_0"
		floods=($!)
		start client flood --dev c2 --sources $many --source-base 198.19.0.0/16 \
			"${kind[@]}" > "$work/flood_2"
	else
		start client flood --dev c0 --sources random --source-base 198.18.0.0/16 \
			"${kind[@]}" > "$work/flood_0"
		floods=($!)
		start client flood --dev c2 --sources random --source-base 198.19.0.0/16 \
			"${kind[@]}" > "$work/flood_2"
	fi
	floods+=($!)
}

stop_floods() {
	kill -TERM "${floods[@]}" 2> /dev/null
	wait "${floods[@]}" || give_up "the generator failed"
	flooded_s=$(awk "BEGIN { print $(uptime_s) - $floods_began + 0.02 }")
	made=$(jq -s 'map(.sent) | add' "$work/flood_0" "$work/flood_2")
	note "$made packets in $flooded_s s: $(awk "BEGIN { printf \"%.0f\", $made / $flooded_s }")" \
		"a second"
}

# most BURST RATE COUNT: what so many buckets admit in that time
most() {
	awk "BEGIN { print int($3 * ($1 + $2 * $flooded_s)) }"
}

# check_floods DESCRIPTION: those of addresses
check_floods() {
	within "$1: of the flood from one address arrives its burst and rate * time, not one more" \
		$one_burst "$(counted server one)" "$(most $one_burst $one_rate 1)"
	within "$1: of the flood from $many addresses the same" $((many * many_burst)) \
		"$(counted server many)" "$(most $many_burst $many_rate $many)"
	note "$1: arrived $(counted server one) of at most $(most $one_burst $one_rate 1), and" \
		"$(counted server many) of at most $(most $many_burst $many_rate $many)"
	check "$1: that was a small part of what was sent" \
		[ $((10 * ($(counted server one) + $(counted server many)))) -lt "$made" ]
}

# An eighth of the burst may lie in slices, on either side of a change.
check_node() {
	local used=$(($(counted server one) + $(counted server many)))

	within "$1: of floods from addresses without number the node admits its burst and rate * time" \
		$((node_burst * 3 / 4)) $used "$(most $node_burst $node_rate 1)"
	note "$1: arrived $used of at most $(most $node_burst $node_rate 1)"
	check "$1: that was a small part of what was sent" [ $((10 * used)) -lt "$made" ]
}
