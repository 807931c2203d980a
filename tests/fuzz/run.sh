#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# run.sh SECONDS FUZZER...: run each fuzzer for so long, from a copy of its corpus, and say in TAP
# whether it found anything. Nothing is written into the tree; what a fuzzer has found stays in a
# temporary folder that is named.
set -u

if [ $# -lt 2 ]; then
	echo "usage: $0 SECONDS FUZZER..." >&2
	exit 2
fi
seconds=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
log=$work/log
number=0 bad=0
trap '[ $bad = 1 ] || rm -rf "$work"' EXIT

echo "1..$#"
for fuzzer in "$@"; do
	number=$((number + 1))
	name=${fuzzer##*/}
	corpus=$work/${name#fuzz_}
	mkdir "$corpus"
	[ ! -d "$here/corpus/${name#fuzz_}" ] || cp -r "$here/corpus/${name#fuzz_}/." "$corpus"
	echo "# $name: $(find "$corpus" -type f | wc -l) inputs to begin with"
	"$fuzzer" -max_total_time="$seconds" -print_final_stats=1 -artifact_prefix="$work/$name-" \
		"$corpus" 2>&1 < /dev/null | tee "$log" |
		grep --line-buffered -E '^#[0-9]+[[:space:]]+(INITED|pulse|DONE)'
	status=${PIPESTATUS[0]}
	executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
	if [ "$status" = 0 ] && [ "${executions:-0}" -gt 0 ]; then
		echo "ok $number - $name $seconds s, $executions executions"
		continue
	fi
	bad=1
	tail -n 40 "$log" | sed 's/^/# /'
	echo "# found in $work"
	echo "not ok $number - $name ended with status $status after ${executions:-0} executions"
done
exit $bad
