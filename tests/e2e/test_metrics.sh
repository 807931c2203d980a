#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What watches sluice is told: the data plane's numbers, by the daemon and by the command, as
# Prometheus reads them, and whether the daemon is ready, while interfaces, pins and the disk come
# and go under it.
#
#     client                server
#    ┌──────┐     veth     ┌──────────────────────────────────────┐
#    │   c0 ├──────────────┤ s0 ◄ XDP   sluiced :4002 ◄ /metrics  │
#    └──────┘              │              │ tmpfs     /readyz      │
#                          └──────────────────────────────────────┘
# shellcheck source-path=SCRIPTDIR disable=SC2317 # functions are called by name
. "$(dirname "$0")/lib.sh"

run=$work/run
mkdir "$run" "$run/state"
cp "$OUT/sluiced" "$work/sluiced"
# A disk of its own, that can be full.
mount -t tmpfs -o size=2m tmpfs "$run/state" || give_up "cannot mount a file system"
trap 'kill -9 $(jobs -pr) 2> /dev/null; wait; umount "$run/state"; clean_up' EXIT
make_neighbours

config() {
	write_config <<- END
		interfaces: [{name: s0, mode: auto}]
		bpffs: $BPFFS
		state: $run/state
		listen: {unix: $run/sock, tcp: null, http: "127.0.0.1:4002"}
		workers: 1
		tenant_slots: 1024
		protect: [tcp/443]
		dry_run: ${1:-false}
		rate_limits:
		  per_ip: {packets: {rate: 0.001, burst: 10}}
		  node: {packets: {rate: 1000, burst: 100000}}
	END
}

begin() {
	enter server "$work/sluiced" --config "$work/sluice.yaml"
	"${entering[@]}" 2>> "$run/log" 3>&- &
	daemon=$!
	await 20 quietly_in server curl -sf http://127.0.0.1:4002/healthz ||
		give_up "the daemon does not answer" "$(cat "$run/log")"
}

end() {
	kill $daemon
	wait $daemon
}

get() {
	quietly_in server curl -s -m 30 "http://127.0.0.1:4002$1"
}

# value SERIES: of one series, with its labels
value() {
	get /metrics | awk -v series="$1" 'index($0, series " ") == 1 { print $NF }'
}

shows() {
	[ "$(value "$1")" = "$2" ]
}

# ready: status and body
ready() {
	quietly_in server curl -s -m 30 -w ' %{http_code}' http://127.0.0.1:4002/readyz
}

is_ready() {
	[ "$(ready)" = "ok 200" ]
}

# is_unready PATTERN
is_unready() {
	ready | grep -qE "^$1.* 503$"
}

# becomes DESCRIPTION COMMAND…: what is remembered may be some seconds old
becomes() {
	check "$1" await 20 "${@:2}"
	await 0 "${@:2}" || note "readyz says: $(ready)"
}

cli() {
	quietly_in server sluice --socket "$run/sock" "$@"
}

# names: of the families that are the data plane's
names() {
	local first='packet|would|notes|tries|table|slices|dataplane|configuration|dry_run|interface'

	grep -oE "^# TYPE sluice_($first)[a-z_]*" | sort
}

# counts: of packets that the kernel does not send of its own accord
counts() {
	grep -E '^sluice_((packet|would).*reason="(admitted|deny|ip_|node_)|interface.*refused)'
}

# ---- numbers

numbers() {
	local page=$work/page text=$work/text

	send_frames --source 198.18.0.1 --kind ack --packets 30
	get /metrics > "$page"
	check "promtool accepts them" promtool check metrics < "$page"
	equal "packets that passed are counted by reason" 10 \
		"$(value 'sluice_packets_total{reason="admitted",verdict="passed"}')"
	equal "and those that were refused" 20 \
		"$(value 'sluice_packets_total{reason="ip_packets",verdict="refused"}')"
	equal "with their bytes" "$(stat_of .counters.refused.ip_packets.bytes)" \
		"$(value 'sluice_packet_bytes_total{reason="ip_packets",verdict="refused"}')"
	equal "a family has each reason from the beginning on" "$(stat_of \
		'(.counters | length - 2) + (.counters.refused | length - 2)')" \
		"$(grep -c '^sluice_packets_total{' "$page")"
	equal "and each note" "$(stat_of '.notes | length')" \
		"$(grep -c '^sluice_notes_total{' "$page")"
	check "the interface is attached" shows 'sluice_interface_attached{interface="s0"}' 1
	equal "its program has the number that the kernel gave it" \
		"$(ip -n "e2e_$$_server" -json link show s0 | jq .[0].xdp.prog.id)" \
		"$(value 'sluice_interface_program_id{interface="s0"}')"
	check "and how it is held is shown" grep -qE \
		'^sluice_interface_info\{interface="s0",rung="native(_frags)?",program="sluice_[a-z]*"\} 1$' \
		"$page"
	equal "its packets are counted" 20 \
		"$(value 'sluice_interface_packets_total{interface="s0",verdict="refused"}')"
	equal "with their bytes" "$(stat_of .counters.refused.ip_packets.bytes)" \
		"$(value 'sluice_interface_bytes_total{interface="s0",verdict="refused"}')"
	equal "the table has as many words as it has" 1048576 \
		"$(awk '/^sluice_table_words\{/ { sum += $NF } END { print sum }' "$page")"
	becomes "the address in debt has its word" shows 'sluice_table_words{state="in_debt"}' 1
	equal "CPUs hold slices of the node's bucket" "$(quietly_in server bpftool -j map dump \
		pinned "$BPFFS/v$(quietly_in server sluice status --json | jq .abi)/node_slices" |
		jq '[.[0].formatted.values[].value.meter[1].unspent] | add')" \
		"$(value 'sluice_slices_unspent{meter="packets"}')"
	check "which is more than none" test "$(value 'sluice_slices_unspent{meter="packets"}')" -gt 0
	equal "the generation is that of status" \
		"$(quietly_in server sluice status --json | jq .generation)" \
		"$(value sluice_configuration_generation)"
	quietly_in server sluice stats --prometheus > "$text"
	check "the command prints the same without the daemon's help" promtool check metrics < "$text"
	equal "in the same families" "$(names < "$page")" "$(names < "$text")"
	equal "with the same counts" \
		"$(counts < "$page")" "$(counts < "$text")"
	expect "it stands alone" 2 'stands alone' server sluice stats --prometheus --json
}

# The table is gone through once in some seconds: of two looks, one right after the other, the second
# does not know of an address that came between.
remembered() {
	# In a file, since it runs in a subshell.
	echo 0 > "$work/number"
	is_remembered() {
		local before number

		before=$(value 'sluice_table_words{state="in_debt"}')
		number=$(($(< "$work/number") + 1))
		echo "$number" > "$work/number"
		send_frames --source "198.18.1.$number" --kind ack --packets 1
		[ "$(value 'sluice_table_words{state="in_debt"}')" = "$before" ]
	}

	check "what the table holds is remembered for a while" await 30 is_remembered
	becomes "but not for long" shows 'sluice_table_words{state="in_debt"}' \
		$((1 + $(< "$work/number")))
}

dry_run() {
	config true
	check "a reload with dry_run is taken" cli reload
	check "and shown" shows sluice_dry_run 1
	send_frames --source 198.18.0.2 --kind ack --packets 15
	equal "what would have been refused is counted apart" 5 \
		"$(value 'sluice_would_refuse_packets_total{reason="ip_packets"}')"
	equal "and not as refused" 20 \
		"$(value 'sluice_packets_total{reason="ip_packets",verdict="refused"}')"
}

# ---- pins and interfaces come and go

detached() {
	becomes "the daemon is ready" is_ready
	expect "detach --all, beside the daemon" 0 "" server sluice detach --all
	becomes "it is not ready then" is_unready 's0 is not attached'
	check "and says so in its log" grep -q 'not ready: s0 is not attached.*sluice reload' "$run/log"
	check "it lives on" test "$(get /healthz)" = ok
	check "the metrics say that nothing can be read" shows sluice_dataplane_up 0
	check "and which interface is not attached" shows \
		'sluice_interface_attached{interface="s0"}' 0
	check "promtool accepts that, too" promtool check metrics < <(get /metrics)
	expect "the command prints it and says why" 69 'sluice_dataplane_up 0.*' server \
		sluice stats --prometheus
	says "with what helps" 'sluice attach'
	check "a reload attaches again" cli reload
	becomes "which makes it ready" is_ready
	check "and the numbers are there again" shows sluice_dataplane_up 1
	equal "of new maps" 0 "$(value 'sluice_packets_total{reason="ip_packets",verdict="refused"}')"
}

gone() {
	ip -n "e2e_$$_server" link del s0
	becomes "an interface that is gone is not ready" is_unready 'the interface s0 is gone'
	check "nor attached" shows 'sluice_interface_attached{interface="s0"}' 0
	check "promtool accepts what is left" promtool check metrics < <(get /metrics)
	make_link client c0 server s0
	check "when it is back, a reload attaches it" cli reload
	becomes "and it is ready" is_ready
	equal "no series stands twice" "" \
		"$(get /metrics | grep -v '^#' | sed 's/ [^ ]*$//' | sort | uniq -d)"
}

# By TC, which anybody can take off.
taken() {
	config
	sed -i 's/mode: auto/mode: clsact/' "$work/sluice.yaml"
	check "another mode is reloaded" cli reload
	check "and shown" grep -qF 'interface="s0",rung="clsact"' <(get /metrics)
	becomes "it is ready with that" is_ready
	quietly_in server tc filter del dev s0 ingress
	becomes "a filter that somebody took off is not ready" is_unready \
		's0 is not attached, somebody has taken the program off'
	check "nor attached" shows 'sluice_interface_attached{interface="s0"}' 0
	config
	check "a reload puts it back" cli reload
	becomes "and it is ready" is_ready
}

# ---- the disk

disk() {
	is_full() {
		dd if=/dev/zero of="$run/state/ballast" bs=4k oflag=append conv=notrunc 2> /dev/null
		is_unready 'overrides cannot be stored: .*sluice.db'
	}

	check "on a full disk it is not ready" await 30 is_full
	note "readyz says: $(ready)"
	attempt server sluice --socket "$run/sock" tenant set acme --rate 1 --burst 1
	equal "nor can an override be set" 69 "$status"
	rm "$run/state/ballast"
	becomes "with room it is" is_ready
	check "and an override can be set" cli tenant set acme --rate 1 --burst 1
	mv "$run/state/sluice.db" "$run/state/away.db"
	becomes "without its database it is not" is_unready '.*was removed or replaced'
	check "and lives on" test "$(get /healthz)" = ok
	mv "$run/state/away.db" "$run/state/sluice.db"
	becomes "until that is back" is_ready
	equal "asking has not changed what is stored" 1 "$(cli audit --json | jq '.audit | length')"
}

without() {
	end
	equal "it ends cleanly" 0 $?
	quietly_in server sluice detach --all
	config
	sed -i 's/^interfaces.*/dataplane: off/' "$work/sluice.yaml"
	begin
	check "with dataplane: off it is ready" is_ready
	equal "and has no number of the data plane" "" "$(get /metrics | names)"
	end
}

config
begin
numbers
remembered
dry_run
detached
gone
taken
disk
without
finish
