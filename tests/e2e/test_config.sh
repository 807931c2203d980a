#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The command line and the configuration file, as wrong as they come: each is refused with its own
# exit status and a message that says where and what would be right, and changes nothing.
#
#     server
#    ┌───────────────────────────┐
#    │ s0 ◄── sluice             │
#    │  └──── veth ──── c0       │
#    └───────────────────────────┘
# shellcheck source-path=SCRIPTDIR disable=SC2317 # functions are called by name
. "$(dirname "$0")/lib.sh"

file=$work/wrong.yaml

generation() {
	quietly_in server sluice status --json | jq .generation
}

# refused NAME PATTERN: $file by the check and by attach, which both say FILE then PATTERN
refused() {
	local said before

	said=$("$work/sluice" config check "$file" 2>&1)
	status=$? output=$said
	if [ $status != 78 ] || ! grep -qE "^$file:$2" <<< "$said"; then
		not_ok "config check refuses $1" "expected status 78 and: $file:$2
got status $status and: $said"
		return
	fi
	before=$(generation)
	attempt server sluice attach s0 --config "$file" 3> /dev/null
	equal "config check and attach refuse $1, which changes nothing" "78 $before $said" \
		"$status $(generation) $output"
}

# wrong NAME PATTERN TEXT
wrong() {
	printf '%s' "$3" > "$file"
	refused "$1" "$2"
}

# of_limit NAME PATTERN LIMIT: a wrong limit of packets
of_limit() {
	wrong "$1" "1:[0-9]+: rate_limits\.per_ip\.packets$2" "rate_limits: {per_ip: {packets: $3}}"
}

test_files() {
	rm -f "$file"
	refused "a missing file" " does not exist"
	mkdir "$file"
	refused "a directory" " is a directory"
	rmdir "$file"
	wrong "an empty file" " is empty; write \{\}" ""
	cp "$work/sluice" "$file"
	refused "a binary file" "1:1: .*not a text file"
	truncate -s 100M "$file"
	refused "a huge file" " is larger than 16 MiB"
	printf 'dry_run: "\377"\n' > "$file"
	refused "what is not UTF-8" "1:11: is not UTF-8"
	printf 'dry_run: true\n\0' > "$file"
	refused "a zero byte" "2:1: .*not a text file"
}

# Wherever the example is cut off, it is right or refused, and never more than that.
test_truncated() {
	local length cut bad="" refusals=0

	length=$(stat -c %s dist/sluice.yaml)
	for ((cut = 1; cut < length; cut += 61)); do
		head -c $cut dist/sluice.yaml > "$file"
		output=$("$work/sluice" config check "$file" 2>&1)
		status=$?
		[ $status = 0 ] && continue
		refusals=$((refusals + 1))
		[ $status = 78 ] && grep -q "^$file" <<< "$output" && continue
		bad+="cut at $cut: status $status, $output
"
	done
	equal "the example cut off anywhere is right, or refused with a place" "" "$bad"
	check "and sometimes it is refused" [ $refusals -gt 0 ]
	wrong "a list that does not end" "1:[0-9]+: is not valid YAML" "protect: [tcp/443"
}

test_keys() {
	wrong "a duplicate key" "2:1: dry_run: is given twice; the first is on line 1" \
		"dry_run: true
dry_run: false"
	wrong "an unknown key" "1:1: per_ip: unknown key; allowed here: .*rate_limits" "per_ip: {}"
	wrong "a misspelt key, with what may be meant" \
		"1:24: rate_limits\.per_ip\.packet: unknown key, did you mean \"packets\"\?" \
		"rate_limits: {per_ip: {packet: {rate: 1, burst: 1}}}"
	wrong "a number for a list" "1:10: protect: must be a list such as .*, got \"5\"" \
		"protect: 5"
	wrong "a list for a map" "1:14: rate_limits: must be a map.*, got a list" "rate_limits: [1]"
	wrong "a word for a truth value" "1:10: dry_run: must be true or false, got \"yes\"" \
		"dry_run: yes"
	wrong "nothing for a value" "1:11: when_full: must be share, refuse or admit, got nothing" \
		"when_full: "
	wrong "a mode that there is not" \
		"1:31: interfaces\[0\]\.mode: must be auto, native, tc, clsact or generic" \
		"interfaces: [{name: s0, mode: fast}]"
	wrong "an interface without a name" "1:14: interfaces\[0\]: name is missing" \
		"interfaces: [{mode: auto}]"
	wrong "anchors and aliases" "1:10: protect: anchors are not supported" "protect: &x [all]"
	wrong "limits with nothing protected" "1:1: rate_limits: .*add for example .protect" \
		"rate_limits: {per_ip: {packets: {rate: 1, burst: 1}}}"
}

test_numbers() {
	of_limit "not a number" '\.rate: must be a number above 0, got "\.nan"' \
		"{rate: .nan, burst: 1}"
	of_limit "infinity" '\.rate: must be a number above 0, got "\.inf"' "{rate: .inf, burst: 1}"
	of_limit "a negative rate" '\.rate: must be a number above 0, got "-5"' \
		"{rate: -5, burst: 1}"
	of_limit "a rate of 0" '\.rate: must be a number above 0, got "0"' "{rate: 0, burst: 1}"
	of_limit "a rate that overflows" '\.rate: .*at most 100000000 per second, got "1e400"' \
		"{rate: 1e400, burst: 1}"
	of_limit "a rate out of range" '\.rate: .*at most 100000000 per second' \
		"{rate: 2e8, burst: 1}"
	of_limit "a burst that overflows" '\.burst: must be at most 4398046511104' \
		"{rate: 5, burst: 99999999999999999999999}"
	of_limit "a negative burst" '\.burst: must be a whole number of at least 1' \
		"{rate: 5, burst: -1}"
	of_limit "a fraction of a burst" '\.burst: must be a whole number' "{rate: 5, burst: 1.5}"
	of_limit "a burst longer than a bucket remembers, with the longest" \
		'\.burst: at this rate the burst can be at most [0-9]+, got 90000000' \
		"{rate: 5, burst: 90000000}"
	of_limit "a rate without a burst" ": burst is missing" "{rate: 5}"
	wrong "a burst of bytes that no packet fits in" \
		"1:[0-9]+: rate_limits\.node\.bytes\.burst: must be at least 1500 bytes" \
		"rate_limits: {node: {bytes: {rate: 1MB, burst: 1kB}}}"
	wrong "a port out of range" "1:11: protect\[0\]: ports go from 1 to 65535" \
		"protect: [tcp/70000]"
	wrong "an IPv6 prefix out of range" \
		"1:14: ipv6_prefix: must be a whole number from 48 to 128" \
		"ipv6_prefix: 20"
	wrong "bits beyond a prefix's length, with what may be meant" \
		"1:8: deny\[0\]: bits are set .*did you mean 10\.0\.0\.0/8\?" "deny: [10.1.0.0/8]"
	wrong "one prefix in two lists" \
		"2:8: deny: 10\.0\.0\.0/8 is given twice; the first is on line 1" \
		"exempt: [10.0.0.0/8]
deny: [10.0.0.0/8]"
}

# ---- the command line

# usage ARGUMENT…: refused with status 2, with how it should be
usage() {
	output=$("$work/sluice" --bpffs "$BPFFS" "$@" 2>&1)
	status=$?
	equal "sluice $* is refused with status 2" 2 $status
	says "and it says how to use it" 'usage:|--help|named twice'
}

test_usage() {
	usage
	usage nosuch
	usage --nosuch
	usage status --nosuch
	usage status extra
	usage stats --interval fast
	usage stats --interval
	usage top -n 0
	usage top -n many
	usage monitor -n -1
	usage attach s0 --mode fast --config "$work/sluice.yaml"
	usage attach --mode native --config "$work/sluice.yaml"
	usage attach s0 --confirm soon --config "$work/sluice.yaml"
	usage attach s0 --confirm 0s --config "$work/sluice.yaml"
	usage attach s0 --confirm 2h --config "$work/sluice.yaml"
	usage attach s0 s0 --config "$work/sluice.yaml"
	usage detach
	usage detach s0 --all
	usage config
	usage config check
	usage config check one two
	usage config nosuch "$work/sluice.yaml"
	usage ip
	usage ip show
	usage ip show 300.1.1.1
	usage ip show 192.0.2.0/24
	usage ip deny nothing
	usage ip deny 192.0.2.1/24
	usage ip limit 192.0.2.0/24
	usage ip limit 192.0.2.0/24 --packets 5
	usage ip limit 192.0.2.0/24 --packets 5:0
	usage ip limit 192.0.2.0/24 --packets nan:5
	usage ip limit 192.0.2.0/24 --bytes 1MB:100
	usage ip nosuch 192.0.2.0/24
	equal "none of it has changed anything" "1 0" "$(generation) $(
		quietly_in server sluice ip list --json | jq '.rules | length')"
}

test_help() {
	local command commands

	commands=$("$work/sluice" --help | awk '/^  [a-z]/ { print $1 }')
	check "--help lists the commands" [ "$(wc -w <<< "$commands")" -ge 8 ]
	for command in $commands; do
		expect "sluice $command --help" 0 "^usage: sluice $command" \
			server sluice "$command" --help 3> /dev/null
	done
	expect "sluice --version" 0 "^sluice [0-9.]+ \(map ABI [0-9]+\)" server "$work/sluice" \
		--version
	expect "the example is right" 0 "per_ip connections" server sluice config check \
		dist/sluice.yaml
	check "and as JSON" jq -e '.limits | length > 0' \
		<(quietly_in server sluice config check dist/sluice.yaml --json)
}

make_ns server
make_link server c0 server s0
write_config <<< "{}"
attach_or_give_up s0
test_files
test_truncated
test_keys
test_numbers
test_usage
test_help
finish
