#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What outlives the daemon: debts of tenants in the pinned map, limits of packets, overrides with
# their audit; whoever kills it, at whatever moment. And who may not start beside it, or at all.
#
#     client                     server
#    ┌──────┐       veth       ┌─────────────────────────────┐
#    │   c0 ├──────────────────┤ s0 ◄ XDP    sluiced ◄ kill  │
#    └──────┘                  │              └ tenants (BPF)│
#                              └─────────────────────────────┘
# ROUNDS: how often it is killed in the midst of changes.
# shellcheck source-path=SCRIPTDIR disable=SC2317 # functions are called by name
. "$(dirname "$0")/lib.sh"

ROUNDS=${ROUNDS:-50}
run=$work/run socket=$work/run/sluice.sock burst=1000000 in_flight=100
mkdir "$run"
cp "$OUT/sluiced" "$work/sluiced"
RANDOM=${SEED:-$$}

# config FILE [NODE_RATE [BPFFS [SOCKET [STATE]]]]
config() {
	cat > "$1" <<- END
		interfaces: [{name: s0, mode: auto}]
		bpffs: ${3:-$BPFFS}
		state: ${5:-$run/state}
		listen: {unix: ${4:-$socket}, tcp: null, http: null}
		tenant_slots: 1024
		workers: 2
		protect: [tcp/443]
		rate_limits:
		  per_ip: {packets: {rate: 0.00001, burst: 2}}
		  node: {packets: {rate: ${2:-1000}, burst: 1000}}
		  default: {rate: 0.0001, burst: 3, bytes_per_second: 0.001, burst_bytes: 1000}
		  tenants:
		    many: {rate: 0.25, burst: $burst}
	END
}

begin() {
	enter server "$work/sluiced" --config "$work/sluice.yaml"
	"${entering[@]}" 2>> "$run/log" 3>&- &
	daemon=$!
	await 20 answers || give_up "the daemon does not answer" "$(cat "$run/log")"
}

# end SIGNAL
end() {
	{
		kill "-$1" $daemon
		wait $daemon
	} 2> /dev/null
}

answers() {
	[ "$(redis-cli -s "$socket" PING 2> /dev/null)" = PONG ]
}

ask() {
	redis-cli -s "$socket" "$@" | tr '\n' ' ' | sed 's/ $//'
}

# slot_of TENANT JQ_FILTER: of the slot that bpftool shows
slot_of() {
	bpftool -j map dump pinned "$BPFFS/daemon/tenants" | jq -r --arg tenant "$1" \
		".[].formatted.value | select(.hash > 1) | .[\"\"][\"\"] as \$key |
		select((\$key.key[:\$key.key_bytes] | implode) == \$tenant) | $2"
}

refused() {
	stat_of .counters.refused.ip_packets.packets
}

# refused_to_start DESCRIPTION STATUS PATTERN COMMAND…: in the server's namespace
refused_to_start() {
	expect "$1" "$2" "$3" server timeout 20 "${@:4}"
}

# ---- packets and debts

packets_and_debts() {
	local before

	begin
	equal "at its start the daemon attaches the interfaces of its configuration" on \
		"$(xdp_on server s0)"
	send_frames --source 198.18.0.1 --kind ack --packets 5
	equal "packets are limited" 3 "$(refused)"
	equal "a tenant spends two hooks of three" "1 0 1 ok 0" \
		"$(ask TENANT.HIT acme 100 > /dev/null; ask TENANT.HIT acme 100)"
	equal "its slot is found with bpftool, by its name" 1 "$(slot_of acme .hash | wc -l)"
	before=$(slot_of acme '.tat | @tsv')
	end KILL
	equal "after kill -9 the slot is as it was" "$before" "$(slot_of acme '.tat | @tsv')"
	equal "the program is still there" on "$(xdp_on server s0)"
	send_frames --source 198.18.0.1 --kind ack --packets 5
	equal "and packets stay limited, debts included" 8 "$(refused)"
	begin
	check "the next daemon says that debts are kept" grep -q 'debts of tenants .* are kept' \
		"$run/log"
	equal "the tenant has one hook left" "1 0 0 ok 0" "$(ask TENANT.HIT acme 100)"
	equal "and no more" "0 rate_limited" "$(ask TENANT.HIT acme | awk '{ print $1, $4 }')"
	equal "of its bytes, too, those that were left" "700" \
		"$(ask TENANT.REFUND acme 1 > /dev/null
		ask TENANT.PEEK acme 1000 | awk '{ print $3 }')"
	equal "another tenant has all of its own" "1 0 2 ok 0" "$(ask TENANT.HIT globex)"
	send_frames --source 198.18.0.1 --kind ack --packets 1
	equal "the start has not forgiven an address" 9 "$(refused)"
	end TERM
	begin
	equal "after SIGTERM debts are kept likewise" "1 0 1 ok 0" "$(ask TENANT.HIT globex)"
}

# kill_while COMMAND ARGUMENT…: of overriding.py, at a random moment after it has begun.
kill_while() {
	: > "$work/said"
	"$python" tests/e2e/overriding.py "$@" > "$work/said" 3>&- &
	await 10 grep -q begun "$work/said" || give_up "$1 does not begin"
	sleep "$(awk "BEGIN { print $RANDOM % 100 / 1000 }")"
	end KILL
	wait $!
}

# What was admitted before each kill is owed after it; what was under way may be, too.
killed_while_hit() {
	local round seen=0 left repaid start=$SECONDS

	for round in 1 2 3 4 5; do
		kill_while hit "$socket" many
		seen=$((seen + $(tail -n 1 "$work/said")))
		begin
	done
	left=$(($(ask TENANT.PEEK many | awk '{ print $3 }') + 1))
	repaid=$(((SECONDS - start + 1) / 4 + 1))
	note "killed five times: $seen admitted, $left of $burst left, $repaid repaid at most"
	check "the daemon was killed while it was at work" test $seen -gt 500 -a $left -gt 0
	check "nobody was admitted twice for one token" test $((seen + left)) -le $((burst + repaid))
	check "and no more is owed than was asked" \
		test $((seen + left + 5 * in_flight)) -ge $burst
}

# ---- who may not start

beside_another() {
	local other=$work/other.yaml second=$work/bpf/second

	config "$other" 7 "$second" "$socket" "$run/state2"
	sed -i '/^interfaces/d' "$other"
	refused_to_start "a second daemon on the same socket is refused" 1 \
		"$socket.*(already|in use|listen)" "$work/sluiced" --config "$other"
	config "$other" 7 "$second" "$run/second.sock" "$run/state"
	refused_to_start "and one with the same database" 1 "sluice.db is in use by another sluiced .process $daemon." \
		"$work/sluiced" --config "$other"
	config "$other" 7 "$BPFFS" "$run/second.sock" "$run/state2"
	refused_to_start "and one with the same map of tenants" 1 "$BPFFS/daemon is in use by another sluiced .process $daemon." \
		"$work/sluiced" --config "$other"
	config "$other" 7 "$BPFFS" "$socket" "$run/state"
	refused_to_start "and one with the same of all" 1 another "$work/sluiced" --config "$other"
	equal "none of them has changed what is in force" 1000 \
		"$(quietly_in server sluice status --json | jq '.limits.node.packets.rate | round')"
	check "or has been in the way of the first" answers
	equal "which still limits" "0 rate_limited" \
		"$(ask TENANT.HIT globex > /dev/null; ask TENANT.HIT globex | awk '{ print $1, $4 }')"
}

without_permission() {
	local config=$work/nobody.yaml nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)

	mkdir -m 777 "$run/nobody"
	config "$config" 7 "$BPFFS" "$run/nobody/sock" "$run/nobody/state"
	chmod 644 "$config"
	refused_to_start "an ordinary user is told of dataplane: off" 77 'dataplane: off' \
		"${nobody[@]}" "$work/sluiced" --config "$config"
	config "$config" 7 "$work/bpf/third" "$run/nobody/sock" "$run/state3"
	refused_to_start "root without capabilities is, too" 77 'dataplane: off' \
		setpriv --bounding-set=-all --inh-caps=-all "$work/sluiced" --config "$config"
	config "$config" 7 "$run/nobody/bpf" "$run/nobody/sock" "$run/nobody/state"
	refused_to_start "where there is no BPF file system, it says what to do" 1 'mount -t bpf' \
		"$work/sluiced" --config "$config"
	sed -i 's/^interfaces.*/dataplane: off/' "$config"
	enter server "${nobody[@]}" "$work/sluiced" --config "$config"
	"${entering[@]}" 2> "$run/nobody/log" 3>&- &
	check "with dataplane: off the same user starts it" await 20 test -S "$run/nobody/sock"
	kill $!
	wait $!
}

# ---- detached

detached() {
	is_clean() { [ "$(xdp_on server s0)" = off ] && [ -z "$(ls "$BPFFS" 2> /dev/null)" ]; }

	expect "detach --all, beside the daemon" 0 "" server sluice detach --all
	check "takes program and pins away" await 5 is_clean
	check "the daemon goes on answering" answers
	end TERM
	begin
	equal "the next one attaches again" on "$(xdp_on server s0)"
	equal "and owes what was forgotten to nobody" "1 0 2 ok 0" "$(ask TENANT.HIT acme)"
	end TERM
	expect "detach --all without a daemon" 0 "" server sluice detach --all
	check "leaves nothing" await 5 is_clean
}

# ---- overrides

killed_while_changed() {
	local round bad="" said changes

	sed -i 's/^interfaces.*/dataplane: off/' "$work/sluice.yaml"
	begin
	for ((round = 1; round <= ROUNDS; round++)); do
		kill_while write "$socket" "$work/changes"
		begin
		said=$("$python" tests/e2e/overriding.py check "$socket" "$work/changes" 2>&1)
		[ -z "$said" ] || bad+="round $round: $said
"
	done
	changes=$(jq .changes "$work/changes")
	note "killed $ROUNDS times within $changes changes"
	check "there were many changes" test "$changes" -gt $((2 * ROUNDS))
	equal "killed at any moment: what was acknowledged is in force, and the audit says the same" \
		"" "$bad"
	equal "no start had anything to warn of" "" \
		"$(grep -vE 'answers|attached|renewed|are kept|ended' "$run/log")"
	end TERM
}

command -v redis-cli > /dev/null || give_up "redis-cli is not installed (sudo make deps)"
command -v bpftool > /dev/null || PATH=$PATH:/usr/sbin
make_neighbours
config "$work/sluice.yaml"
packets_and_debts
killed_while_hit
beside_another
without_permission
detached
killed_while_changed
finish
