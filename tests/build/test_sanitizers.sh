#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The unit tests under ASan and UBSan, and those with threads under TSan.
set -u
cd "$(dirname "$0")/../.." || exit 1
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export CMOCKA_MESSAGE_OUTPUT=TAP
number=0 bad=0

tap() {
	local status=$1
	shift
	number=$((number + 1))
	if [ "$status" = 0 ]; then
		echo "ok $number - $*"
	else
		sed 's/^/# /' "$log" | tail -n 40
		echo "not ok $number - $*"
		bad=1
	fi
}

# check SANITIZERS TEST...
check() {
	local sanitizers=$1 out=build/san-${1//,/-}
	shift
	for name in "$@"; do
		make -j"$(nproc)" SAN="$sanitizers" "$out/tests/unit/$name" > "$log" 2>&1 &&
			"$out/tests/unit/$name" > "$log" 2>&1
		tap $? "$name under $sanitizers"
	done
}

all=()
for source in tests/unit/test_*.c; do
	name=${source##*/}
	all+=("${name%.c}")
done
check address,undefined "${all[@]}"
check thread test_table test_address_memory test_address_table test_buckets_races test_cell_table \
	test_engine_races test_http_late test_http_server test_leases test_limits test_overrides \
	test_resp_faults test_resp_server test_resp_stress
echo "1..$number"
exit $bad
