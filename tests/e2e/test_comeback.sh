#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Interfaces that come late, go, come back, get another name or another namespace; programs that
# somebody else takes off; and two that want to change something at once.
#
#     client                 server
#    ┌──────┐     veth     ┌──────────────────────────┐
#    │   c0 ├──────────────┤ s0 ◄── sluiced           │
#    │   c1 ├─ at times ───┤ s1 ◄── sluiced, when it  │
#    └──────┘              │        is there          │
#                          └──────────────────────────┘
# shellcheck source-path=SCRIPTDIR disable=SC2317 # functions are called by name
. "$(dirname "$0")/lib.sh"

config() {
	write_config <<- END
		interfaces: [$1]
		protect: [udp/443]
		rate_limits:
		  per_ip: {packets: {rate: 0.00001, burst: ${2:-10}}}
		bpffs: $BPFFS
		state: $work/state
		listen: {unix: $work/sluice.sock, http: "127.0.0.1:4002"}
	END
}

start_daemon() {
	start server "$OUT/sluiced" --config "$work/sluice.yaml" 2> "$work/daemon.log"
	daemon=$!
	await 20 grep -q "answers HTTP" "$work/daemon.log" || give_up "$(cat "$work/daemon.log")"
}

stop_daemon() {
	kill -TERM "$daemon"
	wait "$daemon"
}

# interfaces: names of those that are limited
limited() {
	quietly_in server sluice status --json |
		jq -r '[.interfaces[] | select(.attached and .name != "").name] | sort | join(" ")'
}

is_limited() {
	[ "$(limited)" = "$1" ]
}

# now_limited DESCRIPTION NAMES
now_limited() {
	if await 15 is_limited "$2"; then
		ok "$1"
	else
		not_ok "$1" "expected $2
got      $(limited)
$(cat "$work/daemon.log")"
	fi
}

ready() {
	quietly_in server curl -s -o "$work/readyz" -w '%{http_code}' http://127.0.0.1:4002/readyz
}

is_ready() {
	[ "$(ready)" = "$1" ]
}

metric() {
	quietly_in server curl -s http://127.0.0.1:4002/metrics | awk -v name="$1" \
		'index($0, name) == 1 { print $NF }'
}

# logged DESCRIPTION TIMES PATTERN
logged() {
	if [ "$(grep -cE -- "$3" "$work/daemon.log")" = "$2" ]; then
		ok "$1"
	else
		not_ok "$1" "not $2 times: $3
$(cat "$work/daemon.log")"
	fi
}

refused() {
	stat_of .counters.refused.ip_packets.packets
}

# ---- late, gone, back

test_late() {
	config "{name: s1}"
	expect "attach refuses an interface that is not there" 1 "there is no interface s1" server \
		sluice attach --config "$work/sluice.yaml"
	start_daemon
	logged "the daemon waits for it, and says so" 1 \
		"there is no interface s1; it is attached when it comes"
	equal "it is not ready meanwhile" 503 "$(ready)"
	check "and tells why" grep -q "the interface s1 is gone" "$work/readyz"
	make_link client c1 server s1
	now_limited "it comes, and is limited" s1
	check "and the daemon is ready" await 5 is_ready 200
	stop_daemon
	quietly_in server sluice detach --all > /dev/null
}

test_gone() {
	config "{name: s0}, {name: s1}"
	start_daemon
	now_limited "both are limited" "s0 s1"
	send_frames --kind udp --source 198.18.0.1 --packets 50
	in_ns client ip link del c1
	now_limited "one goes" s0
	check "the daemon is not ready" await 5 is_ready 503
	make_link client c1 server s1
	now_limited "it comes back, and is limited again" "s0 s1"
	check "the daemon is ready again" await 5 is_ready 200
	logged "that it went is logged once" 1 "s1 is gone; it is attached again when it comes back"
	logged "and that it came" 1 "s1 has come, and is attached"
	equal "and counted" 1 "$(metric 'sluice_attached_again_total{reason="came"}')"
	equal "the configuration was not touched" 1 "$(quietly_in server sluice status --json |
		jq .generation)"
	send_frames --kind udp --source 198.18.0.1 --packets 10
	equal "nor what addresses owe" 50 "$(refused)"
	equal "nothing is left of the old link" 2 "$(find "$BPFFS" -name 'link_*' | wc -l)"
}

# The daemon is slow to look, and sees another number under the same name.
test_unseen() {
	kill -STOP "$daemon"
	in_ns client ip link del c1
	make_link client c1 server s1
	kill -CONT "$daemon"
	now_limited "gone and back while nobody looked, it is limited" "s0 s1"
	logged "that it went is logged all the same" 2 \
		"s1 is gone; it is attached again when it comes back"
}

test_often() {
	for _ in {1..5}; do
		quietly_in client ip link del c1
		make_link client c1 server s1
	done
	now_limited "gone and back five times at once, it is limited" "s0 s1"
}

test_without_daemon() {
	stop_daemon
	in_ns client ip link del c1
	make_link client c1 server s1
	expect "without the daemon, status says what to do" 0 \
		"s1 +not attached: the interface is gone, and has come back as another: attach again" server sluice status
	start_daemon
	now_limited "a daemon that starts attaches it" "s0 s1"
}

# ---- taken off

test_taken_off() {
	local link id

	link=$(find "$BPFFS" -name "link_$(ip -n "e2e_$$_server" -json link show s1 | jq '.[0].ifindex')")
	id=$(bpftool --json link show pinned "$link" | jq .id)
	in_ns server bpftool link detach id "$id"
	now_limited "a program that somebody else takes off is put back" "s0 s1"
	logged "which is logged" 1 "somebody else took the program off s1; it is put back"
	equal "and counted" 1 "$(metric 'sluice_attached_again_total{reason="taken_off"}')"
}

# A filter has no link, and anybody can delete it.
test_filter_deleted() {
	in_ns server sluice detach s1 > /dev/null
	config "{name: s0}, {name: s1, mode: clsact}"
	expect "another mode by a reload" 0 "" server sluice --socket "$work/sluice.sock" reload
	now_limited "it is limited by a filter" "s0 s1"
	in_ns server tc qdisc del dev s1 clsact
	is_filtered() {
		quietly_in server tc filter show dev s1 ingress | grep -q sluice_tc
	}
	check "deleted together with clsact, it is put back" await 15 is_filtered
	in_ns server sluice detach s1 > /dev/null
	config "{name: s0}, {name: s1}"
	in_ns server sluice --socket "$work/sluice.sock" reload > /dev/null
	now_limited "and back to XDP" "s0 s1"
}

test_detached() {
	in_ns server sluice detach s1 > /dev/null
	is_let_go() {
		grep -q "s1 was detached, and is left alone until a reload" "$work/daemon.log"
	}
	check "what was detached by sluice is left alone" await 10 is_let_go
	sleep 3
	now_limited "for good" s0
	expect "until a reload" 0 "" server sluice --socket "$work/sluice.sock" reload
	now_limited "which attaches it" "s0 s1"
}

# ---- other names and namespaces

test_renamed() {
	in_ns server ip link set s1 down
	in_ns server ip link set s1 name other
	in_ns server ip link set other up
	now_limited "renamed, it stays limited" "other s0"
	check "the log says so" await 10 grep -q "s1 is called other now, and stays limited" \
		"$work/daemon.log"
	make_link client c2 server s1
	now_limited "another of that name is limited, too" "other s0 s1"
	in_ns client ip link del c2
	in_ns server ip link set other down
	in_ns server ip link set other name s1
	in_ns server ip link set s1 up
	now_limited "renamed back, all is as it was" "s0 s1"
}

test_moved() {
	make_ns elsewhere
	in_ns server ip link set s1 netns "e2e_$$_elsewhere"
	now_limited "moved to another namespace, it is not counted as ours" s0
	in_ns elsewhere ip link set s1 netns "e2e_$$_server"
	in_ns server ip link set s1 up
	now_limited "moved back, it is limited" "s0 s1"
}

# ---- what cannot be done does not fill the log

test_failing() {
	in_ns client ip link del c1
	is_gone() {
		is_limited s0
	}
	await 10 is_gone
	cat > "$work/other.c" <<- END
		__attribute__((section("xdp"), used)) int other(void *context) { return 2; }
	END
	clang -O2 -g -target bpf -c "$work/other.c" -o "$work/other.o" || give_up "clang failed"
	bpftool prog load "$work/other.o" "$work/bpf/other" || give_up "no other program"
	config "{name: s0}, {name: s1, mode: native}"
	in_ns server sluice --socket "$work/sluice.sock" reload > /dev/null
	make_ns aside
	ip -n "e2e_$$_client" link add c1 type veth peer name s1 netns "e2e_$$_aside"
	quietly_in aside bpftool net attach xdpdrv pinned "$work/bpf/other" dev s1
	ip -n "e2e_$$_aside" link set s1 netns "e2e_$$_server"
	failures() {
		[ "$(metric sluice_attach_failures_total)" -ge 2 ]
	}
	check "an interface that comes with a program of others is tried again and again" \
		await 30 failures
	logged "but said once" 1 "s1 is there and cannot be attached: s1 is taken by the XDP program other"
	in_ns server ip link set dev s1 xdp off
	is_back() {
		is_limited "s0 s1"
	}
	check "and limited when it can be" await 60 is_back
}

# ---- two at once

test_two() {
	local confirming

	mkfifo "$work/keyboard"
	exec 4<> "$work/keyboard"
	start server sluice attach --config "$work/sluice.yaml" s0 --confirm 60s <&4 \
		> "$work/said" 2>&1
	confirming=$!
	await 10 grep -q "In force" "$work/said" || not_ok "attach --confirm asks"
	expect "while an attach waits to be confirmed, the daemon does not reload" 1 \
		"another sluice is at work" server sluice --socket "$work/sluice.sock" reload
	echo >&4
	wait $confirming
	equal "it can be confirmed" 0 $?
	exec 4>&-
	expect "then the daemon reloads" 0 "" server sluice --socket "$work/sluice.sock" reload
	sed "s|state: .*|state: $work/state2|; s|sluice.sock|other.sock|; s|:4002|:4003|" \
		"$work/sluice.yaml" > "$work/second.yaml"
	expect "a second daemon with the same pins does not start" 1 "in use by another sluiced" \
		server "$OUT/sluiced" --config "$work/second.yaml"
	now_limited "and changes nothing" "s0 s1"
}

make_neighbours
test_late
test_gone
test_unseen
test_often
test_without_daemon
test_taken_off
test_filter_deleted
test_detached
test_renamed
test_moved
test_failing
test_two
stop_daemon
finish
