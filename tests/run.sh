#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Run the tiers named (or `all`), show what fails, and close with `N passed, N failed, N skipped`.
#
# Every test program speaks TAP: `ok`, `not ok`, `ok … # SKIP why`. A program that ends badly without
# a `not ok`, or that runs no test at all, counts as a failure; a skip is never counted as passed.
set -u

cd "$(dirname "$0")/.." || exit 1
OUT=${OUT:-build}
export OUT CMOCKA_MESSAGE_OUTPUT=TAP
passed=0 failed=0 skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# What did not hold, with what was said about it, and how it ended.
show_failures() {
	awk '/^ok / { said = ""; next }
	     { said = said $0 "\n" }
	     /^not ok / { printf "%s", said; said = "" }' "$log" | tail -n 200 | sed 's/^/    | /'
	echo "    | ..."
	tail -n 30 "$log" | sed 's/^/    | /'
}

# run NAME COMMAND...: run one test program and count what it says.
run() {
	local name=$1 start=$SECONDS status ok not_ok skip
	shift
	timeout --kill-after=10 "${TEST_SECONDS:-300}" "$@" > "$log" 2>&1 < /dev/null
	status=$?
	skip=$(grep -ciE '^ok .*# skip' "$log")
	ok=$(($(grep -c '^ok ' "$log") - skip))
	not_ok=$(grep -c '^not ok ' "$log")
	if [ $not_ok = 0 ] && { [ $status != 0 ] || [ $((ok + skip)) = 0 ]; }; then
		not_ok=1
		echo "not ok - $name ended with status $status after $ok tests" >> "$log"
	fi
	printf '%-34s %4d passed %3d failed %3d skipped  %4d s\n' \
		"$name" "$ok" "$not_ok" "$skip" $((SECONDS - start))
	[ $not_ok = 0 ] || show_failures
	[ $skip = 0 ] || grep -iE '^ok .*# skip' "$log" | sed 's/^/    /'
	passed=$((passed + ok)) failed=$((failed + not_ok)) skipped=$((skipped + skip))
}

tier_style() { run style tests/tidy/run.sh; }

tier_unit() {
	for program in "$OUT"/tests/unit/test_*; do
		[ -f "$program" ] && [ -x "$program" ] && run "unit/${program##*/test_}" "$program"
	done
}

tier_bpf() {
	for program in "$OUT"/tests/bpf/test_*; do
		[ -f "$program" ] && [ -x "$program" ] && run "bpf/${program##*/test_}" "$program"
	done
}

tier_e2e() {
	for script in tests/e2e/test_*.sh; do
		name=${script##*/test_}
		run "e2e/${name%.sh}" "$script"
	done
}

tier_build() {
	for script in tests/build/test_*.sh; do
		name=${script##*/test_}
		[ -x "$script" ] && TEST_SECONDS=600 run "build/${name%.sh}" "$script"
	done
}

# A machine that is emulated takes its time, and gives itself up before this does.
tier_kernel() {
	for script in tests/kernel/test_*.sh; do
		name=${script##*/test_}
		TEST_SECONDS=1000 run "kernel/${name%.sh}" "$script"
	done
}

# A short run of each fuzzer; `make fuzz` is the long one.
tier_fuzz() {
	for program in "$OUT"/tests/fuzz/fuzz_*; do
		[ -f "$program" ] && [ -x "$program" ] &&
			run "fuzz/${program##*/fuzz_}" tests/fuzz/run.sh 5 "$program"
	done
}

[ "$*" != all ] || set -- style unit bpf e2e kernel build fuzz
for tier in "$@"; do
	"tier_$tier"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] && [ $((passed + skipped)) -gt 0 ]
