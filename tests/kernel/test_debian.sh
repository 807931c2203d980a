#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The data plane on another kernel than the running one: Debian's stock kernel boots under qemu, in
# software, with what was built and its tests in an initramfs. Two serial lines come out: what the
# kernel says, shown only if something fails, and what the tests say.
#
#     this machine                        qemu
#    ┌──────────────────────┐    ttyS0   ┌──────────────────────────────────────┐
#    │ console.log ◄────────┼────────────┤ Debian's kernel                      │
#    │ report.awk ◄── words ┼────ttyS1───┤ init.sh: objects, dataplane, bpf     │
#    └──────────────────────┘            └──────────────────────────────────────┘
#
# KERNEL_PACKAGE: another package than the one for clouds. TEST_DIVISOR: how many times less often than
# usual the longest tests repeat what they do. MACHINE_SECONDS: when the machine is given up.
set -u -o pipefail
cd "$(dirname "$0")/../.." || exit 1
export OUT=${OUT:-build}
# Tests of tests/bpf that do not, and why.
left_out=collateral
left_out_why="it counts what the hash does, which is the same on every kernel, for minutes"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

skip() {
	echo "ok 1 - the data plane on Debian's stock kernel # SKIP $1"
	echo 1..1
	exit 0
}

[ "$(uname -m)" = x86_64 ] || skip "the machine that is emulated is an x86-64 one"
for program in qemu-system-x86_64 busybox cpio; do
	command -v $program > /dev/null || skip "$program is not installed (sudo make deps)"
done
kernel=$(tests/kernel/fetch.sh "$OUT/kernel") || skip "$kernel"
: > "$work/initramfs"
if ! tests/kernel/image.sh "$kernel" "$work/initramfs" > "$work/log" 2>&1; then
	sed 's/^/# /' "$work/log"
	echo "not ok 1 - an initramfs can be made"
	exit 1
fi

start=$SECONDS
parameters="LEFT_OUT=\"$left_out\" TEST_DIVISOR=${TEST_DIVISOR:-4}"
# KVM hangs on some hosts that are virtual themselves, and would show nothing more.
timeout --kill-after=5 "${MACHINE_SECONDS:-900}" qemu-system-x86_64 -accel tcg,thread=multi -cpu max \
	-smp 2 -m 1024 -nodefaults -display none -no-reboot -kernel "$kernel/vmlinuz" \
	-initrd "$work/initramfs" -serial "file:$work/console.log" -serial "file:$work/words" \
	-append "console=ttyS0 loglevel=4 panic=-1 $parameters" < /dev/null > "$work/log" 2>&1
status=$?
touch "$work/words" "$work/console.log"
awk -v left_out_why="$left_out_why" -f tests/kernel/report.awk "$work/words"
failed=$?
echo "# $(basename "$kernel"), booted, tested and turned off in $((SECONDS - start)) s"
if [ $failed != 0 ] || [ $status != 0 ]; then
	echo "# qemu ended with status $status; the kernel's last words:"
	tail -n 20 "$work/log" "$work/console.log" | sed 's/^/# /'
fi
exit $failed
