#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# From one map version to another and back, under floods, killed at any moment, and with what cannot be
# carried over. The other versions are real builds of this tree:
#
#     earlier   version - 1, otherwise the same
#     later     version + 1, with a longer counter
#     foreign   version + 2, with buckets of another format and longer prefix entries
#
# SLUICE_BUILDS=DIR keeps them, to be used again. STEP as in test_killed.sh.
# shellcheck source-path=SCRIPTDIR disable=SC2317 # functions are called by name
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/flooded.sh"

STEP=${STEP:-80}
builds=${SLUICE_BUILDS:-$work/builds}
version=$(sed -n 's/.*SLUICE_ABI_VERSION = \([0-9]*\),/\1/p' include/sluice/abi.h)
earlier=$((version - 1)) later=$((version + 1)) foreign=$((version + 2))

# build NAME VERSION SED_SCRIPT: of this tree, changed
build() {
	local folder=$builds/$1

	[ ! -x "$folder/build/sluiced" ] || return 0
	mkdir -p "$folder"
	cp -r Makefile bpf user include vmlinux "$folder"
	sed -i "s/SLUICE_ABI_VERSION = $version,/SLUICE_ABI_VERSION = $2,/; $3" \
		"$folder/include/sluice/abi.h"
	make -C "$folder" CFLAGS=-O0 OUT=build > "$work/build.log" 2>&1 ||
		give_up "cannot build $1: $(tail -n 20 "$work/build.log")"
}

# by NAME ARGUMENT…: that build's command, in the server
by() {
	local which=$builds/$1/build/sluice

	[ "$1" != this ] || which=$work/sluice
	shift
	quietly_in server "$which" --bpffs "$BPFFS" "$@"
}

# attach NAME [ARGUMENT…]
attach() {
	note "[server] sluice ($1) attach ${*:2}"
	output=$(by "$1" attach --config "$work/sluice.yaml" "${@:2}" 2>&1 < /dev/null)
	status=$?
}

detach_all() {
	by this detach --all > /dev/null
	is_clean() {
		[ -z "$(ls "$BPFFS" 2> /dev/null)" ] && [ "$(xdp_on server s0)" = off ]
	}
	await 5 is_clean || give_up "something is left: $(find "$BPFFS")"
}

program_on() {
	ip -n "e2e_$$_server" -json link show "$1" | jq '.[0].xdp.prog.id // 0'
}

folders() {
	find "$BPFFS" -mindepth 1 -maxdepth 1 -printf '%f ' 2> /dev/null | sed 's/ $//'
}

# ---- under floods

# through_versions DESCRIPTION NAME…: each step names one interface only; the others go with it.
through_versions() {
	local name

	for name in "${@:2}"; do
		attach "$name" s0
		equal "$1: to $name, under floods" 0 "$status"
		says "$1: with debts" "debts of addresses and node are kept"
		sleep 0.3
	done
}

test_addresses_under_flood() {
	address_limits | write_config
	attach earlier s0 s1 s2
	start_honest
	start_floods one
	through_versions addresses this later this earlier this later earlier
	sleep 0.5
	stop_floods
	check_floods addresses
	check_honest addresses
	detach_all
}

# mode MODE RUNG
test_mode_under_flood() {
	local mode=$1

	address_limits | write_config
	attach earlier --mode "$mode" s0 s1 s2
	if [ "$status" != 0 ]; then
		skip "$mode: from version to version" "not to be had here: $output"
		detach_all
		return
	fi
	start_honest
	start_floods one
	through_versions "$mode" this later earlier this
	equal "$mode: by the same rung as before" "$2 $2 $2" \
		"$(by this status --json | jq -r '[.interfaces[].rung] | join(" ")')"
	stop_floods
	check_floods "$mode"
	check_honest "$mode"
	detach_all
}

test_node_under_flood() {
	node_limits $node_rate $node_burst | write_config
	attach earlier s0 s1 s2
	start_honest
	start_floods random
	through_versions node this later this earlier this later earlier
	stop_floods
	check_node node
	check_honest node
	detach_all
}

# ---- what goes over

# A debt that does not pass while the test goes on.
lasting_limits() {
	address_limits 0.00001 20
}

test_what_goes_over() {
	lasting_limits | write_config
	attach earlier s0 s1
	by earlier ip deny 203.0.113.0/24 > /dev/null
	by earlier ip deny 203.0.114.0/24 --ttl 1h > /dev/null
	send_frames --kind ack --source 198.18.0.1 --packets 50
	equal "before: the burst of an address is spent" 30 "$(by earlier stats --json |
		jq .counters.refused.ip_packets.packets)"
	expect "status says that another version is attached" 69 \
		"nothing is attached by this sluice \(version $version of the maps\), but s[01], s[01] by version $earlier" \
		server sluice status
	says "and what to do" "-> sluice attach takes over without a gap"
	attach this s1
	says "taken over: both, though one is named" "s0: taken over, native"
	says "the one that is named" "s1: taken over, native"
	says "with the rules by hand" "rules by hand: 2 carried over"
	says "it is said what begins anew" "counters and offenders begin anew"
	equal "the old set is gone" "v$version" "$(folders)"
	send_frames --kind ack --source 198.18.0.1 --packets 50
	equal "an address in debt stays in debt" 50 "$(stat_of .counters.refused.ip_packets.packets)"
	send_frames --kind ack --source 203.0.113.9 --packets 5
	equal "rules by hand go on" 5 "$(stat_of .counters.refused.deny.packets)"
	# A rule ends on a whole second, up to one late.
	within "with their end" 3000 "$(by this ip list --json | jq -r \
		'.rules[] | select(.prefix == "203.0.114.0/24") | .ends_in_s')" 3601
	by this detach s0 > /dev/null
	attach later s1 --json
	equal "JSON says it, too" "$version true 2" "$(jq -r '.taken_over |
		"\(.version) \(.keeps_debts) \(.rules)"' <<< "$output")"
	equal "what was detached before is not taken over" off "$(xdp_on server s0)"
	equal "an interface of another version can be detached" 0 \
		"$(by this detach s1 > /dev/null; echo $?)"
	equal "and with the last one its set goes" "" "$(folders)"
}

# ---- what cannot

# A tcx link, and a filter, which has no link.
test_traffic_control() {
	lasting_limits | write_config
	attach earlier --mode tc s0
	attach earlier --mode clsact s1
	send_frames --kind ack --source 198.18.0.1 --packets 50
	attach this s0
	says "TC: a link or a filter is taken over" "s0: taken over, tc mode"
	says "TC: and the filter of an interface that is not named" "s1: taken over, tc mode, by clsact"
	equal "TC: the old set is gone" "v$version" "$(folders)"
	equal "TC: each is held once" "s0 true s1 true" "$(by this status --json | jq -r \
		'[.interfaces | sort_by(.name)[] | "\(.name) \(.attached)"] | join(" ")')"
	send_frames --kind ack --source 198.18.0.1 --packets 50
	equal "TC: an address in debt stays in debt" 50 \
		"$(stat_of .counters.refused.ip_packets.packets)"
	attach earlier s0 s1 --mode native
	equal "TC: from version to version and from mode to mode at once" "0 v$earlier on" \
		"$status $(folders) $(xdp_on server s1)"
	send_frames --kind ack --source 198.18.0.1 --packets 50
	equal "TC: in debt still" 50 "$(by earlier stats --json |
		jq .counters.refused.ip_packets.packets)"
	by earlier detach --all > /dev/null
	equal "TC: and no filter is left" "" "$(quietly_in server tc filter show dev s1 ingress)"
	detach_all
}

test_foreign_format() {
	local id

	lasting_limits | write_config
	attach this s0 s1
	by this ip deny 203.0.113.0/24 > /dev/null
	by this ip exempt 203.0.114.0/24 > /dev/null
	send_frames --kind ack --source 198.18.0.1 --packets 50
	attach foreign s0 s1
	equal "a later version that cannot read the buckets takes over without a gap" 0 "$status"
	says "and says that debts are gone" "its debts cannot be read: addresses and node begin without"
	says "and names the rules by hand that are lost" \
		"0 carried over, 2 lost, to be said anew: 203.0.11[34].0/24, 203.0.11[34].0/24"
	equal "it is in force" "v$foreign" "$(folders)"
	id=$(program_on s0)
	attach this s0 s1
	equal "an earlier version that cannot read the buckets is refused" 1 "$status"
	says "with the reason" "a later sluice is attached \(version $foreign of the maps"
	says "and the way out" "-> .*sluice detach --all"
	equal "and what was there stays in force" "$id v$foreign" "$(program_on s0) $(folders)"
	detach_all
}

test_broken() {
	lasting_limits | write_config
	attach earlier s0
	rm "$BPFFS/v$earlier/config" "$BPFFS/v$earlier/node_buckets"
	attach this s0
	equal "a set that is half gone is taken over" "0 v$version" "$status $(folders)"
	says "without its debts" "its debts cannot be read"
	detach_all
}

# ---- failures

make_foreign_program() {
	cat > "$work/other.c" <<- END
		__attribute__((section("xdp"), used)) int other(void *context) { return 2; }
	END
	clang -O2 -g -target bpf -c "$work/other.c" -o "$work/other.o" || give_up "clang failed"
	bpftool prog load "$work/other.o" "$work/bpf/other" || give_up "no other program"
}

test_failure() {
	local id

	make_foreign_program
	in_ns server bpftool net attach xdpdrv pinned "$work/bpf/other" dev s2
	lasting_limits | write_config
	attach earlier s0 s1
	send_frames --kind ack --source 198.18.0.1 --packets 50
	id=$(program_on s0)
	attach this --mode native s0 s2
	equal "a take-over that fails at another interface fails" 69 "$status"
	equal "and leaves the earlier version, wholly" "$id v$earlier" "$(program_on s0) $(folders)"
	attach this s0 s1 --confirm 1s
	says "one that nobody confirms is taken back" "not confirmed in time"
	equal "to the earlier version, wholly" "$id v$earlier" "$(program_on s0) $(folders)"
	send_frames --kind ack --source 198.18.0.1 --packets 50
	equal "which goes on with the debts there are" 80 "$(by earlier stats --json |
		jq .counters.refused.ip_packets.packets)"
	in_ns server ip link set dev s2 xdp off
	detach_all
}

# ---- killed

pins() {
	find "$BPFFS" -name "$1" 2> /dev/null | wc -l
}

state() {
	local on=other

	case $(program_on s0) in
	"$old_program") on=earlier ;;
	0) on=none ;;
	esac
	echo "$on, $(folders), links $(pins 'link_*'), kept $(pins 'before_*')"
}

is_state() {
	local wanted

	is_free || return 1
	seen=$(state)
	for wanted in "$@"; do
		[ "$seen" != "$wanted" ] || return 0
	done
	return 1
}

begin() {
	! is_state "$before" || return 0
	detach_all
	by earlier attach --config "$work/sluice.yaml" s0 s1 > /dev/null || give_up "no earlier version"
	old_program=$(program_on s0)
	send_frames --kind ack --source 198.18.0.1 --packets 50 3> /dev/null
}

in_debt() {
	local name=this

	[ "$seen" = "$after" ] || name=earlier
	by $name ip show 198.18.0.1 --json | jq -e '.meters.packets.debt > 5' > /dev/null
}

take_over_killed() {
	quietly_in server killed.py "$@" "$work/sluice" --bpffs "$BPFFS" attach \
		--config "$work/sluice.yaml" s0 2>&1 < /dev/null
}

test_killed() {
	local calls call seen bad="" old_program=0 olds=0 news=0
	local before="earlier, v$earlier, links 2, kept 0" after="other, v$version, links 2, kept 0"

	lasting_limits | write_config
	begin
	calls=$(take_over_killed 0 | tail -n 1)
	check "undisturbed, it ends with the new one" await 5 is_state "$after"
	for ((call = 1 + RANDOM % STEP; call <= calls; call += STEP)); do
		begin
		take_over_killed "$call" > "$work/said"
		await 10 is_state "$before" "$after" || bad+="call $call: $seen
$(cat "$work/said")
"
		in_debt || bad+="call $call: the debt is forgotten
"
		[ "$seen" != "$before" ] || olds=$((olds + 1))
		[ "$seen" != "$after" ] || news=$((news + 1))
	done
	note "of $calls calls, killed at each ${STEP}th: $olds times the old one, $news times the new one"
	equal "killed at any moment, it leaves the old one or the new one, with its debts" "" "$bad"
	check "among them the old one" [ $olds -gt 0 ]
	detach_all
}

# Together with its guard: packets are limited all the same, and any later attach puts it in order.
test_guard_killed() {
	local calls call seen bad="" old_program=0 mended=0 name
	local before="earlier, v$earlier, links 2, kept 0" after="other, v$version, links 2, kept 0"

	begin
	calls=$(take_over_killed 0 | tail -n 1)
	for ((call = calls / 2 + RANDOM % STEP; call <= calls; call += STEP)); do
		begin
		take_over_killed --children "$call" > "$work/said"
		await 10 is_free
		[ "$(xdp_on server s0) $(xdp_on server s1)" = "on on" ] || bad+="call $call: off
"
		name=this
		[ $((mended % 2)) = 0 ] || name=earlier
		by $name attach --config "$work/sluice.yaml" s0 > "$work/said" 2>&1
		seen=$(state)
		case $name,$seen in
		"this,$after" | earlier,*", v$earlier, links 2, kept 0") ;;
		*) bad+="call $call, attached by $name: $seen
$(cat "$work/said")
" ;;
		esac
		by $name ip show 198.18.0.1 --json | jq -e '.meters.packets.debt > 5' > /dev/null ||
			bad+="call $call, $name: the debt is forgotten
"
		mended=$((mended + 1))
	done
	note "mended $mended times"
	equal "killed together with its guard, it limits; an attach by either version mends it" "" "$bad"
	detach_all
}

# ---- the daemon

# start_daemon BUILD
start_daemon() {
	local program=$builds/$1/build/sluiced

	[ "$1" != this ] || program=$OUT/sluiced
	start server "$program" --config "$work/sluice.yaml" 2> "$work/daemon.log"
	daemon=$!
	await 20 grep -q "answers on" "$work/daemon.log" || give_up "$(cat "$work/daemon.log")"
}

# hook ADDRESS: whether a request may be read
hook() {
	redis-cli -s "$work/sluice.sock" EDGE.PREREAD "$1" source | head -n 1
}

test_daemon() {
	local daemon

	{
		lasting_limits | sed 's/per_ip: {/&hooks: {rate: 0.00001, burst: 2}, /'
		echo "interfaces: [{name: s0}]"
		echo "bpffs: $BPFFS"
		echo "state: $work/state"
		echo "listen: {unix: $work/sluice.sock, http: null}"
	} | write_config
	start_daemon earlier
	attach earlier s1
	send_frames --kind ack --source 198.18.0.1 --packets 50
	sleep 1.5 # the daemon looks for its maps once a second
	equal "an address has two requests" "1 1 0" \
		"$(hook 198.51.100.1) $(hook 198.51.100.1) $(hook 198.51.100.1)"
	kill -9 "$daemon"
	wait "$daemon" 2> /dev/null
	start_daemon this
	output=$(cat "$work/daemon.log")
	says "a daemon takes over at its start, and says so" \
		"taken over from version $earlier of the maps: debts of addresses and node are kept"
	says "also what its configuration does not name" "s1: taken over"
	equal "and the old set is gone" "daemon v$version" \
		"$(folders | tr ' ' '\n' | sort | paste -sd' ')"
	send_frames --kind ack --source 198.18.0.1 --packets 50
	equal "an address in debt stays in debt" 50 "$(stat_of .counters.refused.ip_packets.packets)"
	equal "for its requests, too" 0 "$(hook 198.51.100.1)"
	sleep 1.5
	equal "also after a while" "0 1" "$(hook 198.51.100.1) $(hook 198.51.100.2)"
	kill -TERM "$daemon"
	wait "$daemon"
	detach_all
}

RANDOM=${SEED:-$$}
build earlier $earlier ""
build later $later 's/^\t__u64 would_bytes;$/&\n\t__u64 later[2];/
	s/sizeof(struct counter) == 32/sizeof(struct counter) == 48/'
build foreign $foreign 's/SLUICE_BUCKET_FORMAT = 1,/SLUICE_BUCKET_FORMAT = 1000,/
	/^struct prefix_entry {/,/^}/s/^}/\t__u64 later;\n}/
	/sizeof(struct prefix_entry)/d'
make_flooded
test_addresses_under_flood
test_mode_under_flood tc tcx
test_mode_under_flood clsact clsact
test_node_under_flood
test_what_goes_over
test_traffic_control
test_foreign_format
test_broken
test_failure
test_killed
test_guard_killed
test_daemon
finish
