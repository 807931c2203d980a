#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Run the benchmarks: a line of JSON for each case as it comes, then a table of all for people, and
# one of latencies and of servers' CPU time where there are any. Progress goes to standard error.
# Nothing here passes or fails: the status is 0 unless a benchmark could not run. Names after the
# script's choose among them (bench_veth, bench_daemon …).
set -u

cd "$(dirname "$0")/../.." || exit 1
programs=${OUT:-build}/tests/bench
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
status=0

if [ "$(id -u)" != 0 ]; then
	echo "root is needed to load BPF programs; not run" >&2
	exit 1
fi
awk -v cpus="$(nproc)" '$1 > cpus / 4 {
	print "load average " $1 " on " cpus " CPUs: expect figures of a busy machine" }' \
	/proc/loadavg >&2

[ $# -gt 0 ] || set -- bench_insns bench_table bench_verdict bench_veth \
	$( (ls "$programs"; ls tests/bench | sed -n 's/\.sh$//p') |
		grep -E '^bench_[a-z]+$' | grep -vxE 'bench_(insns|table|verdict|veth)')
for name in "$@"; do
	program=$programs/$name
	[ -x "$program" ] || program=tests/bench/$name.sh
	"$program" | tee -a "$lines"
	if [ "${PIPESTATUS[0]}" != 0 ]; then
		echo "$name did not run to its end" >&2
		status=1
	fi
done

# One column a member; what a line has not is left empty.
tables='
function member(name,    found) {
	if (!match($0, "\"" name "\": (\"[^\"]*\"|[^,}]*)"))
		return ""
	found = substr($0, RSTART + length(name) + 4, RLENGTH - length(name) - 4)
	gsub(/"/, "", found)
	return found
}
function short(number) {
	if (number == "")
		return ""
	number += 0
	if (number >= 1e6)
		return sprintf("%.2f M", number / 1e6)
	return number >= 1e4 ? sprintf("%.1f k", number / 1e3) : number
}
'
awk "$tables"'
BEGIN {
	format = "%-52s %10s %-13s %-26s %10s %8s %8s  %s\n"
	printf "\n" format, "case", "figure", "unit", "peer", "figure", "ratio", "mark", "reached"
}
{
	reached = member("reached")
	printf format, member("case"), short(member("figure")), member("unit"), member("peer"),
		short(member("peer_figure")), member("ratio"), member("mark"),
		reached == "true" ? "yes" : reached == "false" ? "no" : ""
}' "$lines"
awk "$tables"'
BEGIN {
	format = "%-52s %9s %9s %12s %-26s %9s %9s %12s\n"
}
member("p50_ms") != "" {
	if (!lines++)
		printf "\n" format, "case", "p50 ms", "p99 ms", "CPU us each", "peer", "p50 ms",
			"p99 ms", "CPU us each"
	printf format, member("case"), member("p50_ms"), member("p99_ms"), member("cpu_us"),
		member("peer"), member("peer_p50_ms"), member("peer_p99_ms"), member("peer_cpu_us")
}' "$lines"
exit $status
