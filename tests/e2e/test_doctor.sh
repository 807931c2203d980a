#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# sluice doctor, on what can be made here: veths, a bridge, a macvlan, tun and tap, programs and filters
# of others, no rights, no BPF file system, little memory. What it foretells is held against what
# attaching comes to, and it must leave everything as it was. What cannot be made here (cards, bonds,
# other kernels) is judged by made-up facts in tests/unit/test_doctor*.c and test_obstacles.c.
# shellcheck source-path=SCRIPTDIR disable=SC2317,SC2016 # functions are called by name; inner shells
. "$(dirname "$0")/lib.sh"

# examine WHO… : doctor in the server's namespace, as JSON; $status and $work/doctor.json
examine() {
	note "[server] sluice doctor --json $*"
	quietly_in server sluice doctor --json --config "$work/sluice.yaml" "$@" \
		> "$work/doctor.json" 2> "$work/complaint" < /dev/null
	status=$?
}

# found DESCRIPTION LEVEL SUBJECT WHAT [REMEDY]: patterns of jq
found() {
	if jq -e --arg level "$2" --arg subject "$3" --arg what "$4" --arg remedy "${5:-}" '
		any(.findings[]; .level == $level and .subject == $subject and
			(.what | test($what)) and (.remedy | test($remedy)))' \
		"$work/doctor.json" > /dev/null; then
		ok "$1"
	else
		not_ok "$1" "no $2 of $3 like: $4 -> ${5:-}
$(jq -c '.findings[]' "$work/doctor.json") $(cat "$work/complaint")"
	fi
}

# works DESCRIPTION STATUS true|false
works() {
	equal "$1" "$2 $3" "$status $(jq .works "$work/doctor.json")"
}

in_server() {
	ip -n "e2e_$$_server" "$@" || give_up "ip $*"
}

# ---- what is there

make_interfaces() {
	make_neighbours
	in_server link add b0 type bridge
	in_server link set b0 up
	in_server link add p0 type veth peer name p1
	in_server link set p0 master b0
	in_server link set p0 up
	in_server link set p1 up
	in_server link add m0 link s0 type macvlan
	in_server link set m0 up
	in_server link add narrow numrxqueues 1 numtxqueues 1 type veth \
		peer name wide numrxqueues 2 numtxqueues 2
	in_server link set narrow up
	in_server link set wide up
	quietly_in server ip tuntap add t0 mode tun
	quietly_in server ip tuntap add tap0 mode tap
	in_server link set t0 up
	in_server link set tap0 up
	write_config <<- END
		protect: [udp/443]
		rate_limits:
		  per_ip: {packets: {rate: 100, burst: 100}}
	END
}

make_foreign() {
	cat > "$work/foreign.c" <<- END
		__attribute__((section("xdp"), used)) int foreign(void *context) { return 2; }
		__attribute__((section("tc"), used)) int foreign_tc(void *context) { return -1; }
	END
	clang -O2 -g -target bpf -c "$work/foreign.c" -o "$work/foreign.o" || give_up "clang failed"
	bpftool prog loadall "$work/foreign.o" "$work/bpf/foreign" || give_up "no foreign program"
}

# ---- it changes nothing

# All that a program of ours could have changed.
snapshot() {
	ip -n "e2e_$$_server" -json -details link show | jq -c '.[] | {ifname, ifindex, flags, mtu,
		master, xdp, promiscuity, num_tx_queues, gso_max_size}'
	ip -n "e2e_$$_server" -json addr show | jq -S 'map([.ifname, .addr_info[].local])'
	ls -lAR --time-style=full-iso "$work/bpf" # without .., which is where the test writes
	quietly_in server bpftool -j net show
	quietly_in server tc qdisc show
	quietly_in server tc filter show dev s0 ingress
	quietly_in server ethtool -k s0
	quietly_in server ethtool -l s0
	cat /proc/sys/net/core/bpf_jit_enable
	echo /var/run/netns/e2e_$$_*
}

test_changes_nothing() {
	snapshot > "$work/before"
	examine s0 b0 m0 narrow t0 tap0 lo
	snapshot > "$work/after"
	check "it changes nothing: links, programs, filters, offloads, queues, pins" \
		diff "$work/before" "$work/after"
	attempt server sluice attach --config "$work/sluice.yaml" s0
	snapshot > "$work/before"
	examine s0
	found "what is attached already is known as ours" ok s0 "sluice is attached"
	found "and in the folder of pins" ok bpffs "attached to 1 interface"
	works "and can be renewed" 0 true
	snapshot > "$work/after"
	check "nor does it change what is attached" diff "$work/before" "$work/after"
	attempt server sluice detach --all
}

# ---- the host

test_host() {
	examine s0
	works "on a veth it would work" 0 true
	found "the kernel loads all programs" ok kernel "loads all programs"
	found "the rights are there" ok privileges "has the capabilities"
	found "memory is there, and measured" ok memory "maps take [0-9.]+ MB"
	found "the clock is known, and measured" "$(jq -r \
		'.findings[] | select(.subject == "clock") | .level' "$work/doctor.json")" \
		clock "costs a program [0-9]+ ns, and the coarse clock [0-9]+ ns"
	found "pins can be made" ok bpffs "nothing is attached"
	check "every finding has its five members" jq -e \
		'all(.findings[]; keys == ["level", "remedy", "subject", "what", "why"])' \
		"$work/doctor.json"
	check "a warning or a failure says what to do" jq -e \
		'all(.findings[]; .level != "failure" and .level != "warning" or .remedy != "")' \
		"$work/doctor.json"
	expect "for people it ends with a summary" 0 "0 failures, .* ok: attaching would work" \
		server sluice doctor s0 --config "$work/sluice.yaml"
	expect "without an interface, those of the configuration are looked at" 1 \
		"there is no interface nosuch" server sluice doctor --config <(
			printf 'interfaces: [{name: nosuch}]\n')
	expect "a mode that there is not" 2 "auto, native, tc, clsact or generic" server sluice doctor \
		--mode fast s0
	expect "an address that is none" 2 "takes an address" server sluice doctor --ssh here s0
}

# ---- interfaces: what is foretold is what comes

# rung_of INTERFACE: that doctor foretells, in the words of attach's JSON
rung_of() {
	jq -r --arg name "$1" '.findings[] | select(.subject == $name) | .what |
		capture("^(?<rung>.*) would be used").rung |
		{ "native XDP with fragments": "native_frags", "native XDP": "native", "TC by tcx": "tcx",
		  "TC by clsact": "clsact", "generic XDP": "generic" }[.]' "$work/doctor.json"
}

# rung_got INTERFACE MODE: what attaching really comes to
rung_got() {
	attempt server sluice attach --json --config "$work/sluice.yaml" --mode "$2" "$1"
	[ "$status" != 0 ] || jq -r '.interfaces[0].rung' <<< "$output"
	quietly_in server sluice detach --all > /dev/null
}

test_foretelling() {
	local name mode foretold

	for mode in auto native tc clsact generic; do
		examine --mode $mode s0 b0 p0 m0 narrow wide tap0 lo
		for name in s0 b0 p0 m0 narrow wide tap0 lo; do
			foretold=$(rung_of $name)
			equal "$name, $mode: what is foretold is what comes (${foretold:-nothing})" \
				"$foretold" "$(rung_got $name $mode)"
		done
	done
	ip -n "e2e_$$_client" link set c0 mtu 9000
	in_server link set s0 mtu 9000
	examine --mode native s0
	foretold=$(rung_of s0)
	equal "s0 at MTU 9000: the same (${foretold:-nothing})" "$foretold" "$(rung_got s0 native)"
	in_server link set s0 mtu 1500
	ip -n "e2e_$$_client" link set c0 mtu 1500
}

test_interfaces() {
	examine --mode native narrow
	works "a veth that receives by fewer queues than its other end sends by" 1 false
	found "is told by how many" failure narrow "receives by 1 .* sends by 2" \
		"^ethtool -L wide tx 1$"
	# shellcheck disable=SC2046 # the words of the command that it advises
	in_ns server $(jq -r '.findings[] | select(.level == "failure") | .remedy' \
		"$work/doctor.json")
	examine --mode native narrow
	works "which helps" 0 true
	examine --mode native m0
	found "a macvlan is told where to attach instead" failure m0 "no native XDP .macvlan." \
		"interface below it .s0."
	examine --mode native b0
	found "a bridge, too" failure b0 "no native XDP .bridge." "its ports"
	examine p0
	found "a port of a bridge is known" note p0 "member of b0 .bridge."
	examine s0
	found "of a veth it is told what native XDP costs" note s0 "segmentation offload" "--mode tc"
	examine lo
	found "of the loopback, who is limited there" note lo "only what this host sends to itself"
	in_server link set wide down
	examine wide
	found "an interface that is down is told how to be set up" warning wide "is down" \
		"^ip link set dev wide up$"
	works "and is no failure" 0 true
	examine nosuch
	found "one that is not there is" failure nosuch "there is no interface nosuch" "ip -brief link"
	works "of all" 1 false
}

# A tun has no Ethernet header, and attach refuses it.
test_tun() {
	examine t0
	works "a tun would not work" 1 false
	found "since its packets have no Ethernet header" failure t0 "no Ethernet header .tun."
	expect "and attach says so as well" 1 "no Ethernet frames" server sluice attach \
		--config "$work/sluice.yaml" --mode generic t0
	attempt server sluice detach --all
	examine s0 m0
	works "two interfaces that get the same packets would not work together" 1 false
	found "as attach says" failure interfaces "comes in on m0 as well" "not to both"
}

# ---- others

test_others() {
	local id how

	for how in xdpdrv xdpgeneric; do
		in_ns server bpftool net attach $how pinned "$work/bpf/foreign/foreign" dev s0
		id=$(ip -n "e2e_$$_server" -json link show s0 | jq '.[0].xdp.prog.id')
		examine s0
		found "a program of others ($how) is named" warning s0 \
			"foreign .id $id, tag [0-9a-f]{16}, " "bpftool net show dev s0.*--mode tc"
		examine --mode native s0
		works "and is in the way of native XDP" 1 false
		found "with the command that takes it off" failure s0 "taken by the XDP program foreign" \
			"ip link set dev s0 $how off"
		examine --mode tc s0
		works "but not of TC" 0 true
		in_ns server ip link set dev s0 $how off
	done

	in_ns server tc qdisc add dev s0 clsact
	in_ns server tc filter add dev s0 ingress prio 7 bpf direct-action \
		object-pinned "$work/bpf/foreign/foreign_tc"
	examine s0
	found "a TC filter of others is named" note s0 "1 filter of TC .*: bpf .*foreign_tc.* at 7"
	works "and is in no way" 0 true
	in_ns server tc qdisc del dev s0 clsact

	if [ "$(quietly_in server tcx.py query s0)" = none ]; then
		skip "a tcx program of others is named" "this kernel has no tcx"
		return
	fi
	in_ns server tcx.py attach s0 "$work/bpf/foreign/foreign_tc" "$work/bpf/foreign_link" last
	examine s0
	found "a tcx program of others is named" note s0 "1 TC program .tcx. .*foreign_tc id "
	rm "$work/bpf/foreign_link"
}

# ---- rights and places

test_nobody() {
	note "[server] as nobody: sluice doctor s0"
	enter server setpriv --reuid 65534 --regid 65534 --clear-groups "$work/sluice" --bpffs "$BPFFS" \
		doctor --json --config "$work/sluice.yaml" s0
	"${entering[@]}" > "$work/doctor.json" 2> "$work/complaint"
	status=$?
	works "an ordinary user is told that it cannot be told" 77 false
	found "what is lacking" failure privileges "lacks CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON" "as root"
	found "the folder that could not be looked at" failure bpffs "Permission denied" "as root"
	found "and what could be looked at" ok s0 "native XDP"
	note "[server] as nobody: sluice doctor nosuch"
	enter server setpriv --reuid 65534 --regid 65534 --clear-groups "$work/sluice" --bpffs "$BPFFS" \
		doctor --json --config "$work/sluice.yaml" nosuch
	"${entering[@]}" > "$work/doctor.json" 2> "$work/complaint"
	status=$?
	works "what would not work anyway is told to anybody" 1 false
	note "[server] with three capabilities: sluice doctor s0"
	enter server setpriv --bounding-set -all,+bpf,+net_admin,+perfmon \
		--inh-caps -all "$work/sluice" --bpffs "$BPFFS" doctor --json \
		--config "$work/sluice.yaml" s0
	"${entering[@]}" > "$work/doctor.json" 2> "$work/complaint"
	status=$?
	works "with the three capabilities it would work" 0 true
	found "what takes a fourth is told" note kernel "was not tried" "root"
	found "and who then cannot be named" note privileges "by number only"
}

# in_place SCRIPT: doctor in a mount namespace that the script has changed
in_place() {
	note "[server] doctor s0, after: $1"
	quietly_in server unshare --mount --propagation private -- "$BASH" -c "$1"'
		exec "$0" --bpffs "$1" doctor --json --config "$2" s0' \
		"$work/sluice" "$BPFFS" "$work/sluice.yaml" > "$work/doctor.json" 2> "$work/complaint"
	status=$?
}

test_places() {
	in_place "umount '$work/bpf' &&"
	works "without a BPF file system it would not work" 1 false
	found "with how to mount one" failure bpffs "not on a BPF file system" \
		"mount -t bpf bpf /sys/fs/bpf"
	in_place "mount -o remount,bind,ro '$work/bpf' &&"
	works "nor on a read-only one" 1 false
	found "with what does that, and what helps" failure bpffs "is read-only" \
		"ReadWritePaths=/sys/fs/bpf"
	in_place "umount '$work/bpf' && rmdir '$work/bpf' &&"
	mkdir -p "$work/bpf"
	mountpoint -q "$work/bpf" || mount -t bpf -o mode=0700 bpf "$work/bpf"
	works "nor where there is no folder" 1 false
}

# A control group of the test's own, of the second version or else the first; $group, $limit.
make_group() {
	local second first

	second=$(findmnt --noheadings --output TARGET --types cgroup2 | head -n 1)
	first=$(findmnt --noheadings --output TARGET --types cgroup --options memory | head -n 1)
	if [ -n "$second" ] && grep -qw memory "$second/cgroup.subtree_control" 2> /dev/null; then
		group=$second/e2e_$$ limit=memory.max
	elif [ -n "$first" ]; then
		group=$first/e2e_$$ limit=memory.limit_in_bytes
	else
		return 1
	fi
	mkdir "$group" 2> /dev/null
}

test_memory() {
	local group limit

	if ! make_group; then
		skip "a memory group that leaves too little" "no control group can be made here"
		return
	fi
	echo 8M > "$group/$limit"
	note "[server] in a memory group of 8 MB: sluice doctor s0"
	enter server sluice doctor --json --config "$work/sluice.yaml" s0
	"$BASH" -c 'echo $$ > "$0/cgroup.procs" && exec "$@"' "$group" "${entering[@]}" \
		> "$work/doctor.json" 2> "$work/complaint"
	status=$?
	works "a memory group that leaves too little" 1 false
	found "is named, with what is needed" failure memory "need .* MB, .*e2e_$$" "MemoryMax="
	found "and what would not fit is not tried" note kernel "was not tried"
	echo 256M > "$group/$limit"
	"$BASH" -c 'echo $$ > "$0/cgroup.procs" && exec "$@"' "$group" "${entering[@]}" \
		> "$work/doctor.json" 2> "$work/complaint"
	status=$?
	works "one that leaves enough would do" 0 true
	found "and is held against what is needed" ok memory "the control group leaves 2"
	rmdir "$group"
}

# ---- a configuration

test_configuration() {
	in_server route add default via 192.0.2.1
	write_config <<- END
		protect: [tcp/443]
		deny: [192.0.2.0/24]
		rate_limits:
		  per_ip: {connections: {rate: 0.1, burst: 1}}
	END
	examine s0 --ssh 198.51.100.7
	works "who sits elsewhere is not cut off" 0 true
	found "and is told so" ok ssh "198.51.100.7 to port 22, is not limited"
	found "a gateway that would be refused is named" warning network \
		"gateway 192.0.2.1 would be refused" "^exempt: .192.0.2.1.$"
	found "our own address, too" warning network "own address 192.0.2.2 would be refused"
	found "how many addresses the table holds" warning capacity "104858 keep all 1048576 words"
	examine s0 --ssh 192.0.2.77
	works "who would be cut off is" 1 false
	found "and told by which rule" failure ssh "192.0.2.0/24 is under .deny" "exempt: .192.0.2.77."
	SSH_CONNECTION="192.0.2.78 50000 192.0.2.2 443" examine s0
	found "the session's own address is taken if none is given" failure ssh "192.0.2.78"
	write_config <<< 'protect: [all]
rate_limits: {per_ip: {packets: {rate: 9, burst: 9}}}'
	SSH_CONNECTION="198.51.100.7 50000 192.0.2.2 22" examine s0
	found "who would be limited is warned" warning ssh "covers port 22" "exempt: .198.51.100.7."
	works "but it would work" 0 true
	write_config <<< 'protect: [tcp/https]'
	examine s0
	works "a configuration that is wrong would not work" 1 false
	found "and is told where" failure configuration "sluice.yaml:1:.*protect" "config check"
	in_server route del default
}

# ---- what others have left

test_pins() {
	write_config <<< 'protect: [udp/443]'
	attempt server sluice attach --config "$work/sluice.yaml" s0 p0
	in_server link del p0
	examine s0
	found "a link whose interface is gone is told" note pins "is of an interface that is gone" "^rm "
	mkdir "$BPFFS/v99" "$BPFFS/staging"
	examine s0
	found "so is what another version left" warning pins "v99 is left of another version" \
		"^rm -r $BPFFS/v99$"
	found "and what an attach left" note pins "staging is left"
	works "none of it is in the way" 0 true
	jq -r '.findings[] | select(.subject == "pins") | .remedy | select(test("^rm "))' \
		"$work/doctor.json" > "$work/advice"
	while read -ra advice; do
		in_ns server "${advice[@]}"
	done < "$work/advice"
	rmdir "$BPFFS/staging"
	examine s0
	check "having done what it says, nothing is left to say" jq -e \
		'all(.findings[]; .subject != "pins")' "$work/doctor.json"
	mkfifo "$work/keyboard"
	exec 4<> "$work/keyboard"
	start server sluice attach --config "$work/sluice.yaml" s0 --confirm 60s \
		<&4 > "$work/said" 2>&1
	await 10 grep -q "In force" "$work/said" || not_ok "attach --confirm asks"
	examine s0
	found "who is at work there is named" note pins "sluice .process [0-9]+. is changing"
	echo >&4
	exec 4>&-
	wait $!
	attempt server sluice detach --all
}

make_interfaces
make_foreign
test_changes_nothing
test_host
test_foretelling
test_interfaces
test_tun
test_others
test_nobody
test_places
test_memory
test_configuration
test_pins
finish
