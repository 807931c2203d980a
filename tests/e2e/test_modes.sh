#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The modes: the same limits in each of them, the ladder and why its rungs fail, from one mode to
# another while packets come, kernels that lack something, and interfaces that are refused. Beside
# programs of others: test_tc.sh and test_attach.sh.
#
#     client                  server
#    ┌──────┐      veth     ┌───────────────────────────────┐
#    │   c0 ├───────────────┤ s0 ◄── sluice ──► nftables    │
#    │   c1 ├───────────────┤ s1 ─ br0, mv0    lo           │
#    └──────┘      veth     └───────────────────────────────┘
# shellcheck source-path=SCRIPTDIR disable=SC2317 # functions are called by name
. "$(dirname "$0")/lib.sh"

# config BURST [PROTECTED]: one limit, of which nothing comes back while the test runs
config() {
	write_config <<- END
		protect: [${2:-udp/443}]
		rate_limits:
		  per_ip: {packets: {rate: 0.001, burst: $1}}
	END
}

attach() {
	attempt server sluice attach --config "$work/sluice.yaml" "$@"
}

# on_kernel LACKS ARGUMENT…: attach as on a kernel that lacks something, see older_kernel.c
on_kernel() {
	attempt server env LD_PRELOAD="$work/older_kernel.so" LACKS="$1" "$work/sluice" \
		--bpffs "$BPFFS" attach --config "$work/sluice.yaml" "${@:2}"
}

# interfaces JQ_FILTER: of `status --json`, as one line
interfaces() {
	quietly_in server sluice status --json | jq -c "[.interfaces | sort_by(.ifindex)[] | $1]"
}

refused() {
	stat_of .counters.refused.ip_packets.packets
}

admitted() {
	stat_of .counters.admitted.packets
}

detach_all() {
	attempt server sluice detach --all
	equal "detached: no pin is left" "0" "$status$(ls "$BPFFS" 2> /dev/null)"
}

# What has come through, counted behind XDP and TC alike.
count_behind() {
	quietly_in server nft -f - <<- END
		table netdev behind {
			counter through {}
			chain ingress {
				type filter hook ingress device $1 priority 0;
				ip saddr 198.18.0.0/15 counter name through
			}
		}
	END
}

behind() {
	quietly_in server nft --json list counters |
		jq -r '.nftables[].counter | select(.) | .packets'
}

forget_behind() {
	quietly_in server nft flush ruleset
}

# ---- the same limits in each mode

test_limits_of() {
	local mode

	for mode in native tc clsact generic; do
		config 100
		count_behind s0
		attach --mode $mode s0
		equal "$mode: attached" 0 "$status"
		send_frames --kind udp --source 198.18.4.1 --packets 2000
		send_frames --kind udp --source 198.18.4.2 --packets 60
		equal "$mode: of 2000 packets of an address 100 come through, of 60 all" 160 "$(behind)"
		equal "$mode: and that is what sluice counts" "160 1900" "$(admitted) $(refused)"
		forget_behind
		detach_all
	done
}

# udp COUNT ADDRESS, in the server
send_on_loopback() {
	quietly_in server "$python" -c 'import socket, sys
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(int(sys.argv[1])):
    sender.sendto(b"x" * 64, ("127.0.0.1", 443))' "$1"
}

test_loopback() {
	local mode

	for mode in auto generic clsact; do
		config 10
		attach --mode $mode lo
		[ $mode = auto ] || says "loopback, $mode: attached" "lo: attached"
		send_on_loopback 50
		equal "loopback, $mode: 10 of 50 are admitted" "10 40" "$(admitted) $(refused)"
		detach_all
	done
}

# What is sent to an address of the interface's own.
send_to() {
	ip -n "e2e_$$_client" neigh replace 192.0.2.2 lladdr "$(mac_of server "$1")" dev "$2"
	quietly_in client "$python" -c 'import socket, sys
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, sys.argv[1].encode())
for _ in range(50):
    sender.sendto(b"x" * 64, ("192.0.2.2", 443))' "$2"
}

# virtual DEVICE KIND: an interface on s1, alone and together with s1
virtual() {
	local device=$1 kind=$2 mode

	for mode in auto generic clsact; do
		config 10
		attach --mode $mode "$device"
		equal "$kind, $mode: attached" 0 "$status"
		[ $mode != auto ] || equal "$kind: auto finds a rung, and says what it passed over" \
			"tc native" "$(interfaces '.mode + " " + (.passed_over | split(" ")[0])' |
				jq -r '.[0]')"
		send_to "$device" c1
		equal "$kind, $mode: 10 of 50 are admitted" "10 40" "$(admitted) $(refused)"
		detach_all
	done
	expect "$kind: both it and what it stands on are refused, which would charge twice" 1 \
		"what comes in on s1 comes in on $device as well" \
		server sluice attach --config "$work/sluice.yaml" "$device" s1
	says "$kind: with the choice" "-> attach to s1, or to $device"
	attach s1
	expect "$kind: nor can it come to what is attached" 1 "-> sluice detach s1 first" \
		server sluice attach --config "$work/sluice.yaml" "$device"
	detach_all
}

test_virtual() {
	ip -n "e2e_$$_client" addr add 192.0.2.3/32 dev c1
	ip -n "e2e_$$_server" link add br0 type bridge
	ip -n "e2e_$$_server" link set br0 addrgenmode none up
	ip -n "e2e_$$_server" link set s1 master br0
	virtual br0 bridge
	ip -n "e2e_$$_server" link del br0
	if ip -n "e2e_$$_server" link add mv0 link s1 type macvlan mode bridge 2> /dev/null; then
		ip -n "e2e_$$_server" link set mv0 addrgenmode none up
		virtual mv0 macvlan
		ip -n "e2e_$$_server" link del mv0
	else
		skip "macvlan: 10 of 50 are admitted" "this kernel has no macvlan"
	fi
	ip -n "e2e_$$_client" neigh replace 192.0.2.2 lladdr "$(mac_of server s0)" dev c0
}

test_without_ethernet() {
	if ! ip -n "e2e_$$_server" tuntap add mode tun name tun0 2> /dev/null; then
		skip "an interface without Ethernet frames is refused" "this kernel has no tun"
		return
	fi
	config 10
	expect "an interface without Ethernet frames is refused" 1 "tun0 has no Ethernet frames" \
		server sluice attach --config "$work/sluice.yaml" s0 tun0
	equal "with all that were named" off "$(xdp_on server s0)"
	ip -n "e2e_$$_server" link del tun0
}

# ---- what is required

test_require() {
	config 10
	expect "lo is never native, and if that is required, refused" 1 \
		"the driver of lo has no native XDP" \
		server sluice attach --config "$work/sluice.yaml" --require native s0 lo
	equal "with all that were named" off "$(xdp_on server s0)"
	attach --require tc s0 lo
	equal "if TC is required, each takes the best that it can" '["tc","native"]' \
		"$(interfaces .mode)"
	detach_all
	attach --mode generic s0
	expect "what is attached by less is not enough" 1 "s0 is attached in generic mode already" \
		server sluice attach --config "$work/sluice.yaml" --require tc s0
	detach_all
	{
		cat "$work/sluice.yaml"
		echo 'interfaces: [{name: lo, require: native}]'
	} > "$work/more" && mv "$work/more" "$work/sluice.yaml"
	expect "the configuration can require it as well" 1 "no native XDP" \
		server sluice attach --config "$work/sluice.yaml"
	config 10
	expect "what a mode never is cannot be required of it" 2 "mode tc, which is never native" \
		server sluice attach --config "$work/sluice.yaml" --mode tc --require native s0
	expect "nor a mode that is no such thing" 2 "--require is native or tc, not generic" \
		server sluice attach --config "$work/sluice.yaml" --require generic s0
}

# ---- kernels that lack something

test_older_kernels() {
	local id

	cc -shared -fPIC -O2 -o "$work/older_kernel.so" tests/e2e/older_kernel.c ||
		give_up "cc failed"
	config 10
	on_kernel tcx --mode tc s0
	says "without tcx, TC is had by clsact" "s0: attached, tc mode, by clsact"
	says "with the reason" "passed over TC by tcx: this kernel has no tcx"
	equal "which status tells later, too" \
		'["clsact","tc","TC by tcx: this kernel has no tcx, which came with Linux 6.6"]' \
		"$(interfaces '.rung, .wanted, .passed_over')"
	expect "also to people" 0 "passed over TC by tcx: this kernel has no tcx" \
		server sluice status
	send_frames --kind udp --source 198.18.5.1 --packets 50
	equal "and limits" "10 40" "$(admitted) $(refused)"
	detach_all

	on_kernel frags s0
	says "without fragments, one buffer is what native mode takes" "s0: attached, native mode$"
	attach s0
	says "a kernel that has them gets them in place" "renewed, native mode, frames in several"
	on_kernel frags s0
	says "and back" "s0: renewed, native mode$"
	detach_all
	ip -n "e2e_$$_server" link set s0 mtu 9000
	ip -n "e2e_$$_client" link set c0 mtu 9000
	attach s0
	id=$(interfaces .program_id)
	on_kernel frags s0
	says "at MTU 9000 one buffer is not enough: refused, and the old program stays" \
		"the MTU of s0.*it keeps the program that it has"
	equal "it does" "1 $id" "$status $(interfaces .program_id)"
	detach_all
	on_kernel frags s0
	says "attached anew, auto goes on to TC, and says why" "s0: attached, tc mode"
	says "by the cause" "passed over native XDP: the MTU of s0"
	detach_all
	ip -n "e2e_$$_server" link set s0 mtu 1500
	ip -n "e2e_$$_client" link set c0 mtu 1500
}

# ---- from one mode to another

changes="tc generic tc native clsact native tc clsact native"

test_change() {
	local mode flood

	config 100
	count_behind s0
	attach --mode native s0
	start client flood --dev c0 --rate 20000 --seconds 60 --source 198.18.6.1 --kind udp \
		--json > "$work/flood.json"
	flood=$!
	has_begun() {
		[ "$(refused)" -gt 1000 ]
	}
	check "an address is refused" await 10 has_begun
	for mode in $changes; do
		attach --mode "$mode" s0
		says "changed to $mode while packets come" "s0: attached, .* in place of"
		equal "$mode: and what was before is gone" 1 "$(interfaces .rung | jq length)"
	done
	kill "$flood"
	wait "$flood" 2> /dev/null
	equal "not one packet came through that should not have" 100 "$(behind)"
	forget_behind
	detach_all
}

test_change_taken_back() {
	local before

	config 100
	attach --mode native s0
	before=$(interfaces '[.rung, .program_id]')
	expect "a change that nobody confirms" 1 "not confirmed in time" server sluice attach \
		--config "$work/sluice.yaml" --mode clsact s0 --confirm 1s
	equal "is taken back, with the program that was there" "$before" \
		"$(interfaces '[.rung, .program_id]')"
	start server sluice attach --config "$work/sluice.yaml" --mode tc s0 --confirm 60s \
		> "$work/said" 2>&1 < /dev/null
	await 10 grep -q "In force" "$work/said" || not_ok "attach --confirm asks"
	equal "while it waits, status shows the new mode" '[["tc",true]]' \
		"$(interfaces '[.mode, .attached]')"
	send_frames --kind udp --source 198.18.7.1 --packets 60
	equal "and no packet is charged twice" "60 0" "$(admitted) $(refused)"
	kill -9 $!
	wait $! 2> /dev/null
	is_before() {
		is_free && [ "$(interfaces '[.rung, .program_id]')" = "$before" ]
	}
	check "killed then, what was before is there again" await 10 is_before
	send_frames --kind udp --source 198.18.7.1 --packets 60
	equal "and limits" "100 20" "$(admitted) $(refused)"
	detach_all
}

# ---- packets that were put together on the way

transfer() {
	config 10000000 tcp/443
	sed -i 's/rate: 0.001/rate: 1000000/' "$work/sluice.yaml"
	attach --mode "$1" s0
	quietly_in client transfer.py give 192.0.2.2 443 50 || give_up "the transfer failed"
	stat_of '.counters.admitted | "\(.packets) \(.bytes)"'
	attempt server sluice detach --all
}

# about WHAT EXPECTED ACTUAL: within two in a hundred
about() {
	within "$1" "$(($2 * 98 / 100))" "$3" "$(($2 * 102 / 100))"
}

test_transfer() {
	local packets bytes mode counted

	start server transfer.py take 192.0.2.2 443 > "$work/taking"
	await 10 grep -q ready "$work/taking" || give_up "nobody takes"
	read -r packets bytes <<< "$(transfer native)"
	check "native: 50 MiB are 36208 segments at least, and their bytes" \
		[ "$packets" -ge 36208 ] && [ "$bytes" -gt $((52428800 + packets * 40)) ]
	for mode in tc clsact; do
		read -r -a counted <<< "$(transfer $mode)"
		note "$mode: ${counted[0]} packets, ${counted[1]} bytes"
		about "$mode: as many packets as in native mode" "$packets" "${counted[0]}"
		about "$mode: and as many bytes" "$bytes" "${counted[1]}"
	done
	read -r -a counted <<< "$(transfer generic)"
	note "generic: ${counted[0]} packets, ${counted[1]} bytes; native: $packets, $bytes"
	within "generic: packets that were put together count as one" 1 "${counted[0]}" \
		$((packets / 2))
}

make_neighbours
make_link client c1 server s1
test_limits_of
test_loopback
test_virtual
test_without_ethernet
test_require
test_older_kernels
test_change
test_change_taken_back
test_transfer
finish
