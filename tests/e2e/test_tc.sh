#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# TC beside others: tcx and clsact, programs of others before and after ours, filters that somebody
# has deleted, and detaching when the pins do not tell any more. The modes themselves: test_modes.sh.
#
#     client                 server
#    ┌──────┐     veth     ┌─────────────────────────────────────────────┐
#    │   c0 ├──────────────┤ s0 ─► tcx: … sluice … ─► clsact: … sluice … │
#    │   c1 ├──────────────┤ s1                                          │
#    └──────┘     veth     └─────────────────────────────────────────────┘
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

# interfaces JQ_FILTER: of `status --json`, as one line
interfaces() {
	quietly_in server sluice status --json | jq -c "[.interfaces | sort_by(.ifindex)[] | $1]"
}

refused() {
	stat_of .counters.refused.ip_packets.packets
}

tcx_on() {
	quietly_in server tcx.py query "$1"
}

# Names of the filters' programs under clsact, in order.
filters_on() {
	quietly_in server tc -json filter show dev "$1" ingress |
		jq -r '[.[] | select(.options.bpf_name) | .options.bpf_name | split(":")[0]] | join(" ")'
}

# nothing_is_left DESCRIPTION
nothing_is_left() {
	check "$1" is_clean
}

is_clean() {
	local device

	[ -z "$(ls "$BPFFS" 2> /dev/null)" ] || return
	for device in s0 s1 lo; do
		[ "$(xdp_on server "$device")" = off ] || return
		[[ "$(tcx_on "$device") $(filters_on "$device")" != *sluice* ]] || return
	done
}

detach_all() {
	attempt server sluice detach --all
	nothing_is_left "detached everything: no program and no pin is left"
}

# fifty_from SOURCE: packets to the protected port
fifty_from() {
	send_frames --kind udp --source "$1" --packets 50
}

declare -A map_of

# ---- programs of others: each counts what it sees of the protected port

make_foreign() {
	local name

	cat > "$work/foreign.c" <<- END
		#include <linux/bpf.h>
		#include <bpf/bpf_helpers.h>
		struct {
			__uint(type, BPF_MAP_TYPE_ARRAY);
			__uint(max_entries, 1);
			__type(key, __u32);
			__type(value, __u64);
		} seen SEC(".maps");
		SEC("tc") int foreign(struct __sk_buff *context)
		{
			__u32 key = 0;
			__u64 *count = bpf_map_lookup_elem(&seen, &key);
			__be16 port = 0;

			if (!count || bpf_skb_load_bytes(context, 36, &port, 2))
				return -1;
			if (port == __builtin_bswap16(443))
				__sync_fetch_and_add(count, 1);
			return -1;
		}
		char foreign_license[] SEC("license") = "GPL";
	END
	clang -O2 -g -target bpf -idirafter "/usr/include/$(uname -m)-linux-gnu" \
		-c "$work/foreign.c" -o "$work/foreign.o" || give_up "clang failed"
	for name in before after; do
		bpftool prog load "$work/foreign.o" "$work/bpf/$name" || give_up "no foreign program"
		map_of[$name]=$(bpftool -j prog show pinned "$work/bpf/$name" | jq '.map_ids[0]')
	done
}

# seen before|after: how many packets that program has seen since it was asked
seen() {
	bpftool -j map dump id "${map_of[$1]}" | jq '.[0].formatted.value'
	bpftool map update id "${map_of[$1]}" key 0 0 0 0 value 0 0 0 0 0 0 0 0
}

seen_by_both() {
	echo "$(seen before) $(seen after)"
}

test_among_filters() {
	in_ns server tc qdisc add dev s0 clsact
	in_ns server tc filter add dev s0 ingress pref 10 bpf da \
		object-pinned "$work/bpf/before"
	in_ns server tc filter add dev s0 ingress pref 49000 bpf da \
		object-pinned "$work/bpf/after"
	config 10
	attach --mode clsact s0
	says "clsact can be had by name" "s0: attached, tc mode, by clsact"
	equal "it stands between filters of others, by its priority" "before sluice_tc after" \
		"$(filters_on s0)"
	seen_by_both > /dev/null
	fifty_from 198.18.1.1
	equal "who stands before us sees all, who stands after us what is not refused" "50 10" \
		"$(seen_by_both)"
	attach --mode clsact s0
	says "renewed, it is replaced in place" "s0: renewed, tc mode, by clsact"
	equal "once" "before sluice_tc after" "$(filters_on s0)"
	fifty_from 198.18.1.1
	equal "and goes on" "50 0" "$(seen_by_both)"
	detach_all
	equal "detached, the filters of others are where they were" "before after" \
		"$(filters_on s0)"
	fifty_from 198.18.1.1
	equal "and see all" "50 50" "$(seen_by_both)"
	in_ns server tc qdisc del dev s0 clsact
	attach --mode clsact s0
	attempt server sluice detach s0
	equal "a clsact of our own making stays as well, for who may use it by now" clsact \
		"$(quietly_in server tc -json qdisc show dev s0 | jq -r '.[].kind' | grep clsact)"
	in_ns server tc qdisc del dev s0 clsact
}

test_among_tcx() {
	if [ "$(tcx_on s0)" = none ]; then
		skip "sluice stands first among programs of tcx" "this kernel has no tcx"
		return
	fi
	in_ns server tcx.py attach s0 "$work/bpf/after" "$work/bpf/after_link" last
	config 10
	attach --mode tc s0
	says "tcx is what mode tc takes first" "s0: attached, tc mode, by tcx"
	equal "before programs that are there" "sluice_tc foreign" "$(tcx_on s0)"
	in_ns server tcx.py attach s0 "$work/bpf/before" "$work/bpf/before_link" first
	seen_by_both > /dev/null
	fifty_from 198.18.1.2
	equal "who puts himself before us sees all, who stands after us what is not refused" \
		"50 10" "$(seen_by_both)"
	attach s0
	says "renewed, it is replaced in place" "s0: renewed, tc mode, by tcx"
	equal "where it stood" "foreign sluice_tc foreign" "$(tcx_on s0)"
	rm "$work/bpf/before_link" "$work/bpf/after_link"
	in_ns server tc qdisc add dev s0 clsact
	in_ns server tc filter add dev s0 ingress bpf da object-pinned "$work/bpf/after"
	seen_by_both > /dev/null
	fifty_from 198.18.1.3
	equal "what tcx does not refuse goes on to the filters under clsact" "0 10" "$(seen_by_both)"
	detach_all
	in_ns server tc qdisc del dev s0 clsact
}

# A filter of others in our very place: then there is no TC for us by clsact.
test_taken_place() {
	in_ns server tc qdisc add dev s0 clsact
	in_ns server tc filter add dev s0 ingress pref 79 handle 0x511ce bpf da \
		object-pinned "$work/bpf/before"
	config
	expect "a filter of others in our place is not replaced" 69 "a TC filter of others" \
		server sluice attach --config "$work/sluice.yaml" --mode clsact s0
	says "with what to look at" "-> .*tc filter show dev s0 ingress"
	equal "and stays" before "$(filters_on s0)"
	attempt server sluice detach --all
	equal "nor does detaching take it off" before "$(filters_on s0)"
	in_ns server tc qdisc del dev s0 clsact
	nothing_is_left "and nothing of ours is left"
}

# ---- filters that somebody has deleted, and other namespaces

test_deleted_filter() {
	config 10
	attach --mode clsact s0
	fifty_from 198.18.2.1
	in_ns server tc filter del dev s0 ingress pref 79
	equal "a filter that somebody deleted is not called attached" '[["s0",false]]' \
		"$(interfaces '[.name, .attached]')"
	expect "and the reason is given" 0 "s0 +not attached: somebody has taken the program off" \
		server sluice status
	attach s0
	equal "attached again, it is" '[["s0",true]]' "$(interfaces '[.name, .attached]')"
	fifty_from 198.18.2.1
	equal "and what was owed is owed" 90 "$(refused)"
	detach_all
	attach --mode clsact s0
	in_ns server tc qdisc del dev s0 clsact
	attach --mode clsact s0
	equal "the same if the whole clsact was deleted" '[["s0",true,"clsact"]]' \
		"$(interfaces '[.name, .attached, .rung]')"
	in_ns server tc qdisc del dev s0 clsact
	expect "and detaching what is off already is fine" 0 "s0: detached" server sluice detach s0
	nothing_is_left "wholly"
}

test_other_namespace() {
	config
	attach --mode clsact s0
	expect "a filter of another namespace is not taken for ours" 1 "another network namespace" \
		client sluice attach --config "$work/sluice.yaml" c0
	attempt client sluice detach c0
	equal "nor does detaching there take it off" "1 sluice_tc" "$status $(filters_on s0)"
	expect "detach --all from there says what it cannot reach, and keeps the pin" 1 \
		"clsact_.* is of another network namespace" client sluice detach --all
	says "and what to do" "-> .*detach in that one"
	detach_all
}

# ---- detaching what is broken

# broken WHAT COMMAND…: attach by clsact and XDP, break it, detach
broken() {
	local what=$1

	shift
	config
	attach --mode clsact s0
	attach --mode native s1
	"$@"
	attempt server sluice detach --all
	equal "$what: detach --all succeeds" 0 "$status"
	nothing_is_left "$what: and takes off all"
	attempt server sluice detach --all
	attach --mode clsact s0
	attach --mode native s1
	"$@"
	attempt server sluice detach s0
	equal "$what: detach s0 succeeds" 0 "$status"
	equal "$what: and takes it off" "" "$(filters_on s0)"
	detach_all
}

remove_pins() {
	rm -r "$BPFFS"
}

move_pins() {
	mv "$BPFFS/v2" "$BPFFS/elsewhere"
}

remove_maps() {
	rm "$BPFFS"/v2/{config,counters,interfaces}
}

remove_filter_pin() {
	rm "$BPFFS"/v2/clsact_*
}

test_detach_broken() {
	broken "pins removed by hand" remove_pins
	broken "maps missing" remove_maps
	broken "the filter's pin missing" remove_filter_pin
}

# What was moved within our own folder is found, too; the pins themselves are whoever moved them's.
test_moved_pins() {
	config
	attach --mode clsact s0
	attach --mode native s1
	move_pins
	attempt server sluice detach --all
	equal "pins moved: programs are taken off all the same" "0  off" \
		"$status $(filters_on s0) $(xdp_on server s1)"
	rm -r "$BPFFS/elsewhere"
	rmdir "$BPFFS"
	nothing_is_left "and nothing is left when they are removed"
}

# After `rm -r` of the pins a filter still refuses, by limits that nobody can see any more.
test_attach_over_stray() {
	local mode

	for mode in clsact native; do
		config 10
		attach --mode clsact s0
		fifty_from 198.18.3.1
		remove_pins
		attach --mode $mode s0
		equal "attached anew in mode $mode, what was astray is gone" \
			"$([ $mode = clsact ] && echo sluice_tc)" "$(filters_on s0)"
		fifty_from 198.18.3.1
		equal "and the new limits are the only ones" "40 10" \
			"$(refused) $(stat_of .counters.admitted.packets)"
		detach_all
	done
}

# Another sluice, with pins of its own, in the same namespace.
test_two_folders() {
	local other=$work/bpf/other

	config
	attempt server "$work/sluice" --bpffs "$other" attach --config "$work/sluice.yaml" \
		--mode clsact s1
	attach --mode clsact s0
	attempt server sluice detach --all
	equal "detach --all leaves what other pins hold" "0 sluice_tc" "$status $(filters_on s1)"
	expect "detaching that one by name says whose it is" 69 "s1 is held by the pins in $other" \
		server sluice detach s1
	says "and what to do" "-> .*--bpffs"
	expect "nor is it replaced" 69 "a TC filter of others" \
		server sluice attach --config "$work/sluice.yaml" --mode clsact s1
	equal "it is where it was" sluice_tc "$(filters_on s1)"
	attempt server "$work/sluice" --bpffs "$other" detach --all
	nothing_is_left "with its own pins named, it goes"
}

make_neighbours
make_link client c1 server s1
make_foreign
test_among_filters
test_among_tcx
test_taken_place
test_deleted_filter
test_other_namespace
test_detach_broken
test_moved_pins
test_attach_over_stray
test_two_folders
finish
