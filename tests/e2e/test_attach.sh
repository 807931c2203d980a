#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Attaching and detaching: all or nothing, beside programs of others, by whom and where, and back
# again. What happens when it is killed stands in test_killed.sh.
#
#     client                  server
#    ┌──────┐  veth         ┌────────────────────┐
#    │   c0 ├───────────────┤ s0 ◄── sluice      │
#    │   c1 ├───────────────┤ s1 ◄── sluice or a │
#    └──────┘  veth         │        foreign one │
#                           └────────────────────┘
# shellcheck source-path=SCRIPTDIR disable=SC2317 # functions are called by name
. "$(dirname "$0")/lib.sh"

config() {
	write_config <<- END
		protect: [udp/443]
		rate_limits:
		  per_ip: {packets: {rate: 0.001, burst: ${1:-10}}}
	END
}

attach() {
	attempt server sluice attach --config "$work/sluice.yaml" "$@"
}

# nothing_is_left DESCRIPTION
nothing_is_left() {
	is_clean() {
		[ "$(xdp_on server s0)" = off ] && [ -z "$(ls "$BPFFS" 2> /dev/null)" ]
	}
	check "$1" await 5 is_clean
}

# interfaces JQ_FILTER: of `status --json`, as one line
interfaces() {
	quietly_in server sluice status --json | jq -c "[.interfaces | sort_by(.ifindex)[] | $1]"
}

detach_all() {
	attempt server sluice detach --all
	nothing_is_left "detached everything: no program and no pin is left"
}

refused() {
	stat_of .counters.refused.ip_packets.packets
}

# ---- all or nothing, and programs of others

make_foreign() {
	cat > "$work/foreign.c" <<- END
		__attribute__((section("xdp"), used)) int foreign(void *context) { return 2; }
	END
	clang -O2 -g -target bpf -c "$work/foreign.c" -o "$work/foreign.o" || give_up "clang failed"
	bpftool prog load "$work/foreign.o" "$work/bpf/foreign" || give_up "no foreign program"
}

foreign_id() {
	ip -n "e2e_$$_server" -json link show s1 | jq '.[0].xdp.prog.id'
}

test_missing_interface() {
	config
	expect "a second interface that is not there: an error that says so, and what to look at" \
		1 "there is no interface nosuch" \
		server sluice attach --config "$work/sluice.yaml" s0 nosuch
	says "with what to look at" "-> .*ip -brief link"
	nothing_is_left "and nothing is left of the first one"
}

test_foreign() {
	local how mode id

	for how in xdpdrv xdpgeneric; do
		in_ns server bpftool net attach $how pinned "$work/bpf/foreign" dev s1
		id=$(foreign_id)
		for mode in native generic; do
			expect "a foreign program ($how) is not replaced with --mode $mode" 69 \
				"s1 is taken by the XDP program foreign \(id $id" \
				server sluice attach --config "$work/sluice.yaml" --mode $mode s0 s1
			nothing_is_left "$how, $mode: and nothing is left of the first interface"
			equal "$how, $mode: the foreign program is where it was" "$id" \
				"$(foreign_id)"
		done
		says "with a way out" "-> .*bpftool net show dev s1"
		says "with another" "--mode tc"
		expect "auto goes on to TC, beside it ($how), and says who is there" 0 \
			"passed over native.*: s1 is taken by the XDP program foreign \(id $id" \
			server sluice attach --config "$work/sluice.yaml" s0 s1
		equal "and is there" '[["s0","native"],["s1","tc"]]' "$(interfaces '[.name, .mode]')"
		equal "$how: the foreign program is where it was" "$id" "$(foreign_id)"
		detach_all
		attach --mode native s0 s1
		# shellcheck disable=SC2046 # the words of the command that it advises
		in_ns server $(grep -oE 'ip link set dev s1 xdp[a-z]* off' <<< "$output")
		equal "which takes off that program ($how)" off "$(xdp_on server s1)"
		quietly_in server ip link set dev s1 xdpgeneric off
	done
}

# A renewal that fails on its second interface leaves the configuration that was in force.
test_failed_renewal() {
	local id

	in_ns server bpftool net attach xdpdrv pinned "$work/bpf/foreign" dev s1
	config 10
	attach s0
	id=$(interfaces .program_id)
	config 20
	attach --mode native s0 s1
	equal "a renewal that cannot be done everywhere is refused" 69 "$status"
	equal "and the program before is in its place again" "$id" "$(interfaces .program_id)"
	equal "and the configuration before stays in force" 10 \
		"$(quietly_in server sluice status --json | jq .limits.per_ip.packets.burst)"
	equal "where it was" '[["s0",true]]' "$(interfaces '[.name, .attached]')"
	attempt server sluice detach --all
	equal "detaching leaves the foreign program alone" on "$(xdp_on server s1)"
	in_ns server ip link set dev s1 xdp off
	nothing_is_left "and takes off ours"
}

# ---- renewing

test_renewal() {
	config 10
	attach s0 s1
	equal "two interfaces are attached at once" '[["s0",true,"native"],["s1",true,"native"]]' \
		"$(interfaces '[.name, .attached, .mode]')"
	send_frames --kind udp --source 198.18.0.1 --packets 50
	equal "what is beyond the burst is refused" 40 "$(refused)"
	config 20
	attach s0
	says "attached again, it is renewed" "s0: renewed"
	equal "on the other interface it stays attached" '[["s0",true],["s1",true]]' \
		"$(interfaces '[.name, .attached]')"
	equal "what was counted stays counted" 40 "$(refused)"
	send_frames --kind udp --source 198.18.0.1 --packets 50
	equal "an address in debt stays in debt: of the new burst it gets the rest" 80 "$(refused)"
	expect "detaching one interface" 0 "s1: detached" server sluice detach s1
	equal "leaves the other" '[["s0",true]]' "$(interfaces '[.name, .attached]')"
	expect "where it is not attached, detaching says so" 69 "not attached" server sluice \
		detach s1
	says "and where to look" "-> .*sluice status"
	expect "detaching the last one" 0 "s0: detached" server sluice detach s0
	nothing_is_left "takes the maps with it"
}

test_two_at_once() {
	local first second failed=0

	config 10
	mkfifo "$work/keyboard"
	exec 4<> "$work/keyboard"
	start server sluice attach --config "$work/sluice.yaml" s0 --confirm 60s \
		<&4 > "$work/said" 2>&1
	first=$!
	await 10 grep -q "In force" "$work/said" || not_ok "attach --confirm asks"
	config 20
	expect "while one waits for its confirmation, another is kept out" 69 \
		"another sluice is at work" server sluice attach --config "$work/sluice.yaml" s0 s1
	echo >&4
	wait $first
	equal "the first can still be confirmed" 0 $?
	exec 4>&-
	equal "and is what is in force" "[[\"s0\",true]] 10" "$(interfaces '[.name, .attached]') $(
		quietly_in server sluice status --json | jq .limits.per_ip.packets.burst)"

	start server sluice attach --config "$work/sluice.yaml" s0 s1 > "$work/said" 2>&1
	first=$!
	start server sluice attach --config "$work/sluice.yaml" s1 s0 > "$work/said" 2>&1
	second=$!
	wait $first || failed=1
	wait $second || failed=1
	equal "two at once come one after the other" 0 $failed
	equal "and both interfaces are attached" '[["s0",true],["s1",true]]' \
		"$(interfaces '[.name, .attached]')"
	detach_all
}

test_confirm() {
	config 10
	expect "what nobody confirms in time is taken back" 1 "not confirmed in time" \
		server sluice attach --config "$work/sluice.yaml" s0 --confirm 1s
	nothing_is_left "wholly"
	attach s0
	config 20
	attach s0 s1 --confirm 1s
	equal "a renewal, too: the configuration before is in force again" 10 \
		"$(quietly_in server sluice status --json | jq .limits.per_ip.packets.burst)"
	is_off() {
		[ "$(xdp_on server s1)" = off ]
	}
	check "and only where it was" await 5 is_off
	note "[server] sluice attach s0 s1 --confirm 60s, and Enter"
	check "what is confirmed" quietly_in server sluice attach --config "$work/sluice.yaml" \
		s0 s1 --confirm 60s <<< ""
	equal "stays" '20 [["s0",true],["s1",true]]' "$(quietly_in server sluice status --json |
		jq .limits.per_ip.packets.burst) $(interfaces '[.name, .attached]')"
	detach_all
}

# Interfaces of two namespaces can have one number.
test_other_namespace() {
	config
	attach s0
	expect "an interface of another namespace is not taken for ours" 1 \
		"another network namespace" \
		client sluice attach --config "$work/sluice.yaml" c0
	says "but told to use pins of its own" "-> .*--bpffs"
	attempt client sluice detach c0
	equal "nor does detaching it take ours off" "1 on" "$status $(xdp_on server s0)"
	detach_all
}

# ---- detaching what is broken

test_detach() {
	local round

	expect "detach --all with nothing there is fine" 0 "" server sluice detach --all
	config
	for round in staging v99; do
		attach s0
		mkdir "$BPFFS/$round"
		bpftool prog load "$work/foreign.o" "$BPFFS/$round/link_7"
		expect "a leftover $round is in no way of attaching" 0 "renewed" \
			server sluice attach --config "$work/sluice.yaml" s0
		[ -d "$BPFFS/$round" ] || mkdir "$BPFFS/$round"
		detach_all
	done
	attach s0
	rm "$BPFFS/v2/counters"
	expect "with a map missing, status says what helps" 1 "-> .*sluice detach --all" \
		server sluice status
	expect "and so does attach" 1 "-> .*sluice detach --all" \
		server sluice attach --config "$work/sluice.yaml" s0
	detach_all
	expect "a second detach --all is fine" 0 "" server sluice detach --all
	expect "with nothing attached, status says what to do" 69 "-> .*sluice attach IFACE" \
		server sluice status
}

test_interface_gone() {
	config
	attach s0 s1
	in_ns client ip link del c1
	equal "an interface that is gone is not called attached" '[true,false]' \
		"$(interfaces .attached)"
	check "and the reason is given" jq -e \
		'any(.interfaces[]; .reason == "the interface is gone")' \
		<(quietly_in server sluice status --json)
	expect "people are told, too" 0 "not attached: the interface is gone" server sluice status
	make_link client c1 server s1
	attach s0 s1
	says "when it has come back, it can be attached again" "s1: attached"
	equal "and is; what is gone is forgotten" '[["s0",true],["s1",true]]' \
		"$(interfaces '[.name, .attached]')"
	detach_all
}

# ---- modes

test_modes() {
	config 10
	attach --mode generic s0
	equal "generic mode can be had on a veth" '["generic"]' "$(interfaces .mode)"
	send_frames --kind udp --source 198.18.0.1 --packets 50
	equal "and refuses as well" 40 "$(refused)"
	attach s0
	equal "renewed, it stays generic, with the program for one buffer" \
		'["generic sluice_xdp"]' \
		"$(interfaces '.mode + " " + .program')"
	send_frames --kind udp --source 198.18.0.1 --packets 50
	equal "and refuses" 90 "$(refused)"
	expect "native XDP cannot follow on generic without a gap, and is refused" 1 \
		"-> .*--mode tc, then --mode native; or sluice detach s0" \
		server sluice attach --config "$work/sluice.yaml" --mode native s0
	detach_all
	expect "lo has no native mode, and is told so" 1 "the driver of lo has no native XDP" \
		server sluice attach --config "$work/sluice.yaml" --mode native lo
	says "with what to do" "-> .*--mode "
	nothing_is_left "nothing is left of it"
	expect "auto goes on to TC there, and says why" 0 "lo: attached, tc mode" \
		server sluice attach --config "$work/sluice.yaml" lo
	says "and what was passed over" "passed over native.*no native XDP"
	detach_all
}

# jumbo BYTES: one UDP datagram to the protected port, from an address of the client's
jumbo() {
	quietly_in client "$python" -c 'import socket, sys
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x" * int(sys.argv[1]), ("192.0.2.2", 443))
' "$1"
}

test_jumbo() {
	ip -n "e2e_$$_server" link set s0 mtu 9000
	ip -n "e2e_$$_client" link set c0 mtu 9000
	config 10
	attach --mode native s0
	if [ "$status" = 0 ]; then
		says "MTU 9000: native, with frames in several buffers" "frames in several buffers"
		jumbo 8000
		equal "a jumbo frame is admitted, with its true length" \
			'{"packets":1,"bytes":8028}' \
			"$(stat_of .counters.admitted | jq -c .)"
		for _ in {1..10}; do
			jumbo 8000
		done
		equal "and refused beyond the limit" '{"packets":1,"bytes":8028}' \
			"$(stat_of .counters.refused.ip_packets | jq -c .)"
	else
		says "MTU 9000: a kernel that cannot says so, and what to do" \
			"MTU of s0 .* too large.*[[:space:]]*-> .*ip link set dev s0 mtu"
		skip "a jumbo frame is counted with its true length" "no fragments in this kernel"
	fi
	attempt server sluice detach --all
	attach --mode generic s0
	jumbo 8000
	equal "generic, too" '{"packets":1,"bytes":8028}' "$(stat_of .counters.admitted | jq -c .)"
	detach_all
}

# ---- where and by whom

test_no_bpffs() {
	local sluice=("$work/sluice" --bpffs)

	mkdir "$work/plain"
	expect "where there is no BPF file system: the cause" 1 "not on a BPF file system" server \
		"${sluice[@]}" "$work/plain/sluice" attach --config "$work/sluice.yaml" s0
	says "and the remedy" "-> .*mount -t bpf"
	equal "and nothing is made there" "" "$(ls "$work/plain")"
	expect "where there is no folder either" 1 "No such file" server \
		"${sluice[@]}" "$work/none/sluice" attach --config "$work/sluice.yaml" s0
	says "the same remedy" "-> .*mount -t bpf"
	expect "a relative path is refused" 1 "absolute path" server \
		"${sluice[@]}" plain attach --config "$work/sluice.yaml" s0
	nothing_is_left "nothing is attached by any of them"
}

as_nobody() {
	expect "without root, $1 says so, with status 77" 77 "-> run as root" server \
		setpriv --reuid 65534 --regid 65534 --clear-groups "$work/sluice" --bpffs "$BPFFS" \
		"$@"
}

test_nobody() {
	config
	as_nobody attach --config "$work/sluice.yaml" s0
	nothing_is_left "and attaches nothing"
	chmod 1777 "$work/bpf"
	as_nobody attach --config "$work/sluice.yaml" s0
	chmod 700 "$work/bpf"
	nothing_is_left "and leaves nothing where it may make folders"
	attach s0
	as_nobody status
	as_nobody stats
	as_nobody ip deny 198.18.0.1
	as_nobody detach s0
	as_nobody detach --all
	equal "and takes nothing off" '[["s0",true]]' "$(interfaces '[.name, .attached]')"
	detach_all
}

make_neighbours
make_link client c1 server s1
make_foreign
test_missing_interface
test_foreign
test_failed_renewal
test_renewal
test_two_at_once
test_confirm
test_other_namespace
test_detach
test_interface_gone
test_modes
test_jumbo
test_no_bpffs
test_nobody
finish
