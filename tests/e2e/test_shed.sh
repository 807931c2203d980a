#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The daemon sees a flood of requests, and the kernel refuses the connections that would bring more:
# for as long as the daemon would refuse them, whoever dies, detaches or reloads meanwhile.
#
#     client                              server
#    ┌───────────────────┐     veth     ┌────────────────────────────────────┐
#    │ 192.0.2.1, .3  c0 ├──────────────┤ s0 ◄ program   serve.py on 443     │
#    │ 198.18.0.x (made) │              │      looks ╲                       │
#    └───────────────────┘              │   hook_buckets ◄ charges ─ sluiced │
#                                       └────────────────────────────────────┘
# Limits are so slow that nothing passes by itself while it is looked at, but where that is tested;
# there the test waits for as long as the daemon has said.
# shellcheck source-path=SCRIPTDIR disable=SC2317 # functions are called by name
. "$(dirname "$0")/lib.sh"

command -v redis-cli > /dev/null || give_up "redis-cli is not installed (sudo make deps)"
run=$work/run
mkdir "$run"
cp "$OUT/sluiced" "$work/sluiced"
make_neighbours
ip -n "e2e_$$_client" addr add 192.0.2.3/24 dev c0
ip -n "e2e_$$_server" neigh add 192.0.2.3 lladdr "$(mac_of client c0)" dev s0

slow="hooks: {rate: 0.001, burst: 3}"
no_limit="connections: {rate: 100000, burst: 100000}"

# config PER_IP [NODE [SHED]]
config() {
	write_config <<- END
		interfaces: [{name: s0, mode: auto}]
		bpffs: $BPFFS
		state: $run/state
		listen: {unix: $run/sock, tcp: null, http: null}
		workers: 2
		tenant_slots: 1024
		protect: [tcp/443]
		shed: ${3:-true}
		rate_limits:
		  per_ip: {$1}
		  node: {${2:-$no_limit}}
	END
}

begin() {
	enter server "$work/sluiced" --config "$work/sluice.yaml"
	"${entering[@]}" 2>> "$run/log" 3>&- &
	daemon=$!
	await 20 redis-cli -s "$run/sock" PING || give_up "the daemon does not answer" \
		"$(cat "$run/log")"
}

ask() { redis-cli -s "$run/sock" "$@" | tr '\n' ' ' | sed 's/ $//'; }

# What the daemon says of a request: ok, ip or node.
request() { ask EDGE.PREREAD "$1" hook | awk '{ print $4 }'; }

# Ask until it is refused; prints for how many milliseconds.
flood() {
	local answer

	for _ in $(seq 20); do
		answer=$(ask EDGE.PREREAD "$1" hook)
		[ "${answer%% *}" = 1 ] || { awk '{ print $2 }' <<< "$answer"; return; }
	done
	give_up "$1 is never refused: $answer"
}

# A SYN from an address, and what it is counted as: shed_ip, shed_node, or nothing for passed.
syn() {
	local before after

	before=$(stat_of "[.counters.${2:-refused} | .shed_ip.packets, .shed_node.packets] | @sh")
	send_frames --source "$1" --kind syn --packets 1 3> /dev/null
	after=$(stat_of "[.counters.${2:-refused} | .shed_ip.packets, .shed_node.packets] | @sh")
	# shellcheck disable=SC2086 # two words each
	set -- $before $after
	[ "$1" = "$3" ] || echo shed_ip
	[ "$2" = "$4" ] || echo shed_node
}

is_shed() { [ "$(syn "$1")" = shed_ip ]; }
is_not_shed() { [ -z "$(syn "$1")" ]; }

# A connection from an address, with what it carries; patient for so many seconds.
connects() {
	quietly_in client timeout "$2" "$python" tests/e2e/fetch.py 192.0.2.2 443 1000 "$1"
}

reload() {
	quietly_in server sluice --socket "$run/sock" reload > "$work/said" 2>&1 ||
		give_up "$(cat "$work/said")"
}

config "$slow"
begin
start server serve.py 192.0.2.2 443 > "$run/ready"
await 20 grep -q ready "$run/ready" || give_up "the server does not listen"

# ---- a flood of requests
check "an address that has asked for nothing connects" connects 192.0.2.1 20
equal "within its limit it is admitted" "ok ok" "$(request 192.0.2.1) $(request 192.0.2.1)"
check "and connects" connects 192.0.2.1 20
flood 192.0.2.1 > /dev/null
dropped=$(stat_of .counters.refused.shed_ip.packets)
check "when its requests are refused it connects no more" \
	bash -c "! nsenter --net=$(ns_path client) timeout 3 $python tests/e2e/fetch.py 192.0.2.2 443 9 192.0.2.1"
within "its SYNs are dropped by the kernel, and counted" 1 \
	$(($(stat_of .counters.refused.shed_ip.packets) - dropped)) 100
check "another address connects meanwhile" connects 192.0.2.3 20
check "only connections are refused" [ "$(syn 192.0.2.3)" = "" ]
send_frames --source 192.0.2.1 --kind ack --packets 5
equal "what belongs to one that there is passes" 0 "$(stat_of .counters.refused.ip.packets)"

# ---- the kernel is as fast as the daemon
for number in $(seq 20); do
	ask EDGE.PREREAD "198.18.0.$number" hook > /dev/null
	ask EDGE.PREREAD "198.18.0.$number" hook > /dev/null
	before+=$(syn "198.18.0.$number")
	ask EDGE.PREREAD "198.18.0.$number" hook > /dev/null
	after+=$(syn "198.18.0.$number")
done
equal "twenty addresses with one request left: none is shed" "" "$before"
equal "with none left, though none was refused yet: all are" "20" \
	"$(grep -o shed_ip <<< "$after" | wc -l)"

# ---- the debt passes
config "hooks: {rate: 0.5, burst: 2}"
reload
check "after a reload nobody owes more than the new limit can: two seconds, and it is over" \
	await 20 connects 192.0.2.1 20
wait_ms=$(flood 192.0.2.1)
within "refused, the daemon says for how long" 1 "$wait_ms" 2000
sleep "$(awk "BEGIN { print $wait_ms / 1000 }")"
dropped=$(stat_of .counters.refused.shed_ip.packets)
check "that waited out, it connects" connects 192.0.2.1 20
equal "at the first try" "$dropped" "$(stat_of .counters.refused.shed_ip.packets)"
equal "and its request is admitted" ok "$(request 192.0.2.1)"

# ---- the daemon dies
config "$slow"
reload
flood 198.18.1.1 > /dev/null
kill -9 $daemon
wait $daemon 2> /dev/null
check "when the daemon is killed, debts stay" is_shed 198.18.1.1
begin
equal "and the next daemon knows of them" ip "$(request 198.18.1.1)"
check "as does the kernel" is_shed 198.18.1.1
check "an address that owes nothing is not shed" is_not_shed 198.18.1.2
config "hooks: {rate: 0.1, burst: 1}"
reload
asked_at=${EPOCHREALTIME/[.,]/}
wait_ms=$(flood 198.18.1.3)
kill -9 $daemon
wait $daemon 2> /dev/null
check "killed again, the kernel goes on refusing" is_shed 198.18.1.3
check "until the debt has passed" await 20 is_not_shed 198.18.1.3
within "and no less than the daemon had said, but for the lag of the clock" $((wait_ms - 50)) \
	$(((${EPOCHREALTIME/[.,]/} - asked_at) / 1000)) 1000000
begin

# ---- the set goes, and comes again
config "$slow"
reload
flood 198.18.2.1 > /dev/null
check "before the detach it is shed" is_shed 198.18.2.1
attempt server sluice detach --all
equal "detached, the daemon goes on refusing" ip "$(request 198.18.2.1)"
flood 198.18.2.2 > /dev/null
attach_or_give_up s0
check "attached again, it is shed within seconds" await 10 is_shed 198.18.2.1
check "and so is who came to its limit meanwhile" is_shed 198.18.2.2
check "and nobody else" is_not_shed 198.18.2.3
flood 198.18.2.4 > /dev/null
check "new debts are seen, too" is_shed 198.18.2.4
equal "the log tells of it" 2 "$(grep -c "from now on" "$run/log")"
for _ in 1 2 3; do
	attempt server sluice detach --all
	attach_or_give_up s0
done 3> /dev/null
check "however often it goes and comes" await 10 is_shed 198.18.2.4

# ---- limits that differ, and shed: false
sed 's/burst: 3/burst: 4/' "$work/sluice.yaml" > "$work/other.yaml"
attempt server sluice attach s0 --config "$work/other.yaml"
check "attached with another limit than the daemon's, nothing is shed" is_not_shed 198.18.2.4
attach_or_give_up s0
check "with the same again, it is" is_shed 198.18.2.4
config "$slow" "" false
reload
check "with shed: false nothing is shed" is_not_shed 198.18.2.4
equal "though the daemon refuses as before" ip "$(request 198.18.2.4)"

# ---- the node
config "$slow" "hooks: {rate: 0.001, burst: 2}"
reload
request 198.18.3.1 > /dev/null
request 198.18.3.2 > /dev/null
equal "at the node's limit every address is refused" node "$(request 198.18.3.3)"
equal "and shed" shed_node "$(syn 198.18.3.4)"

# ---- dry runs
config "hooks: {rate: 0.001, burst: 3, dry_run: true}" "hooks: {rate: 0.001, burst: 2, dry_run: true}"
reload
equal "in a dry run the daemon refuses nothing" "ok ok ok ok" \
	"$(for _ in 1 2 3 4; do request 198.18.4.1; done | tr '\n' ' ' | sed 's/ $//')"
equal "and counts what it would refuse" "1" "$(ask INFO sluice | tr ' ' '\n' | tr -d '\r' |
	awk -F: '$1 == "edge_preread_would_refuse_ip" { print $2 }')"
check "by the node as well" bash -c "redis-cli -s $run/sock INFO sluice | grep -q would_refuse_node:"
equal "and the kernel what it would shed" "shed_ip
shed_node" "$(syn 198.18.4.1 would_refuse)"
check "and sheds nothing" is_not_shed 198.18.4.1

kill $daemon
wait $daemon
equal "the daemon ends cleanly" 0 $?
finish
