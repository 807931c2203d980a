#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Rules by hand that end by themselves, with nothing running but the programs in the kernel; and
# lists of a hundred thousand prefixes.
#
#     client                          server
#    ┌──────────────┐     veth      ┌────────────────┐
#    │ flood ──► c0 ├───────────────┤ s0 ──► XDP     │
#    └──────────────┘               └────────────────┘
#
# Whether a rule is in force is asked of rules that last an hour; of those that last a second only
# that they end, whenever that is on a slow machine.
# shellcheck source-path=SCRIPTDIR disable=SC2317 # functions are called by name
. "$(dirname "$0")/lib.sh"

LISTED=100000

config() {
	write_config <<- END
		protect: [udp/443]
		deny: [203.0.113.0/24]
		rate_limits:
		  per_ip: {packets: {rate: 0.001, burst: 1000}}
	END
}

reasons() {
	stat_of '.counters | {admitted, exempt, deny: .refused.deny, ip: .refused.ip} |
		map_values(.packets) | tojson'
}

# fate ADDRESS: what becomes of a frame from there
fate() {
	local before after

	before=$(reasons)
	send_frames --kind udp --source "$1" --packets 1
	after=$(reasons)
	jq -nr --argjson before "$before" --argjson after "$after" \
		'$after | to_entries[] | select(.value > $before[.key]) | .key'
}

is_fate() {
	[ "$(fate "$1")" = "$2" ]
}

listed() {
	quietly_in server sluice ip list --json | jq -c "[.rules[] | select($1)]"
}

test_end() {
	expect "a rule that is to end says when" 0 "^198\.18\.1\.0/24: deny, ends in 60 min" \
		server sluice ip deny 198.18.1.0/24 --ttl 1h
	equal "it is in force" deny "$(fate 198.18.1.1)"
	check "the list says how long it has to go" jq -e \
		'length == 1 and .[0].by_hand and .[0].ends_in_s > 3000 and .[0].ends_in_s <= 3601' \
		<(listed '.prefix == "198.18.1.0/24"')
	expect "for people, too" 0 "198\.18\.1\.0/24 +deny +by hand +(60|59\.?[0-9]*) min" \
		server sluice ip list
	check "a rule that never ends has null there" jq -e '.[0].ends_in_s == null' \
		<(listed '.prefix == "203.0.113.0/24"')
	expect "ip show names its end" 0 "deny, by the rule for 198\.18\.1\.0/24 given by hand, ends in" \
		server sluice ip show 198.18.1.1
	expect "given again it gets the new end" 0 "ends in" \
		server sluice ip deny 198.18.1.0/24 --ttl 1s
	check "and ends, with no process of ours to see to it" await 30 is_fate 198.18.1.1 admitted
	equal "the list does not show it any more" '[]' "$(listed '.prefix == "198.18.1.0/24"')"
	check "nor does ip show" jq -e '.rule == "none" and .prefix == null' \
		<(quietly_in server sluice ip show 198.18.1.1 --json)
	expect "and it cannot be cleared" 1 "nothing was said by hand" \
		server sluice ip clear 198.18.1.0/24
}

# What has ended gives way to what is below: of the same prefix, and of a shorter one.
test_below() {
	expect "over a rule of the configuration" 0 "" \
		server sluice ip exempt 203.0.113.0/24 --ttl 1h
	expect "and within it" 0 "" server sluice ip limit 203.0.113.128/25 --packets 0.001:5 --ttl 1h
	equal "the longer one counts" admitted "$(fate 203.0.113.200)"
	expect "that one is to end" 0 "" \
		server sluice ip limit 203.0.113.128/25 --packets 0.001:5 --ttl 1s
	check "then the shorter one counts" await 30 is_fate 203.0.113.200 exempt
	expect "and this one" 0 "" server sluice ip exempt 203.0.113.0/24 --ttl 1s
	check "then the configuration's" await 30 is_fate 203.0.113.200 deny
	equal "which is all that is listed" '[["203.0.113.0/24","deny",true]]' \
		"$(listed true | jq -c 'map([.prefix, .rule, .in_force])')"
}

test_renewal() {
	local before after

	expect "a rule that is to end" 0 "" server sluice ip deny 198.18.2.0/24 --ttl 1h
	expect "and one that ends soon" 0 "" server sluice ip deny 198.18.3.0/24 --ttl 1s
	before=$(listed '.prefix == "198.18.2.0/24"' | jq '.[0].ends_in_s')
	check "which ends" await 30 is_fate 198.18.3.1 admitted
	attach_or_give_up s0
	equal "a new configuration keeps the rule" deny "$(fate 198.18.2.1)"
	after=$(listed '.prefix == "198.18.2.0/24"' | jq '.[0].ends_in_s')
	within "with its end" 1 "$after" "$before"
	equal "and brings none back that has ended" admitted "$(fate 198.18.3.1)"
	expect "it can be made to stay" 0 "deny$" server sluice ip deny 198.18.2.0/24
	check "then it has no end" jq -e '.[0].ends_in_s == null' \
		<(listed '.prefix == "198.18.2.0/24"')
	expect "and be cleared" 0 "cleared$" server sluice ip clear 198.18.2.0/24
}

test_misuse() {
	expect "no time at all is no ttl" 2 "ttl takes how long" \
		server sluice ip deny 198.18.1.0/24 --ttl 0s
	expect "nor is a number without a unit" 2 "ttl takes how long" \
		server sluice ip deny 198.18.1.0/24 --ttl 60
	expect "nor more than the clock holds" 2 "100 years" \
		server sluice ip deny 198.18.1.0/24 --ttl 90000d
	expect "clear takes none" 2 "clear takes no --ttl" \
		server sluice ip clear 198.18.1.0/24 --ttl 1h
	expect "limits go with limit only" 2 "--packets goes with limit only" \
		server sluice ip deny 198.18.1.0/24 --packets 1:1
	equal "and nothing came of it" '[]' "$(listed .by_hand)"
}

test_long_list() {
	"$python" - "$LISTED" >> "$work/sluice.yaml" <<- 'END'
		import sys
		print("exempt:")
		for number in range(int(sys.argv[1])):
		    print(f"  - 10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}")
	END
	expect "a rule by hand, for the one in the middle" 0 "" server sluice ip deny 10.0.200.7
	attach_or_give_up s0
	equal "$LISTED prefixes are in force: the first" exempt "$(fate 10.0.0.0)"
	equal "the last" exempt "$(fate 10.1.134.159)"
	equal "the one with a rule by hand" deny "$(fate 10.0.200.7)"
	equal "none beside" admitted "$(fate 10.1.134.160)"
	equal "all are listed" $((LISTED + 2)) "$(listed true | jq length)"
	config
	attach_or_give_up s0
	equal "without them in the configuration, they are gone" admitted "$(fate 10.0.0.0)"
	equal "and the rule by hand is not" deny "$(fate 10.0.200.7)"
}

make_ns client
make_ns server
make_link client c0 server s0
config
attach_or_give_up s0
test_end
test_below
test_renewal
test_misuse
test_long_list
finish
