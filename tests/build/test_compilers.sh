#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The programs built by each clang, taken by this kernel's verifier, and compare-and-swap in them.
set -u
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d)
mkdir "$work/bpf"
mount -t bpf bpf "$work/bpf"
trap 'umount "$work/bpf"; rm -rf "$work"' EXIT
number=0 bad=0

tap() {
	local status=$1
	shift
	number=$((number + 1))
	if [ "$status" = 0 ]; then
		echo "ok $number - $*"
	else
		sed 's/^/# /' "$work/log" | tail -n 20
		echo "not ok $number - $*"
		bad=1
	fi
}

for clang in clang-14 clang-19; do
	if ! command -v $clang > /dev/null; then
		number=$((number + 1))
		echo "ok $number - $clang # SKIP $clang is not installed (sudo make deps)"
		continue
	fi
	make OUT="$work/$clang" CLANG=$clang "$work/$clang/gen/sluice.bpf.o" > "$work/log" 2>&1 &&
		! grep -qi warning "$work/log"
	tap $? "$clang builds the programs without a warning"
	mkdir "$work/bpf/$clang"
	bpftool prog loadall "$work/$clang/gen/sluice.bpf.o" "$work/bpf/$clang" > "$work/log" 2>&1
	tap $? "the verifier takes what $clang made"
	objdump=$(command -v "llvm-objdump-${clang#clang-}" llvm-objdump | head -n 1)
	"$objdump" -d "$work/$clang/gen/sluice.bpf.o" > "$work/log" 2>&1
	grep -qE 'cmpxchg_64|lock.*cmpxchg' "$work/log"
	tap $? "$clang made compare-and-swap of 64 bits"
done
echo "1..$number"
exit $bad
