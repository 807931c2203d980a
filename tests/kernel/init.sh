#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The first process of the kernel under test: mounts what there is to mount, runs the tests one after
# the other, and turns the machine off. What they say goes to the second serial port, between lines
# that say which test begins and how it ended; report.awk makes one report of it. In emulation all is
# ten to twenty times slower, so the longest tests repeat less (TEST_DIVISOR). The kernel gives its
# parameters as variables: TEST_DIVISOR, LEFT_OUT (tests of tests/bpf). No test may take more
# than TEST_SECONDS, which is there for those that hang.
# shellcheck shell=dash

export PATH=/usr/sbin:/usr/bin:/usr/lib/busybox HOME=/root TMPDIR=/tmp
/bin/busybox mkdir -p /usr/lib/busybox
/bin/busybox --install -s /usr/lib/busybox
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
ln -s /proc/self/fd /dev/fd
mount -t bpf bpf /sys/fs/bpf
mount -t tmpfs tmp /tmp
mount -t tmpfs run /run
exec < /dev/null > /dev/ttyS1 2>&1
stty -F /dev/ttyS1 raw
ip link set lo up
modprobe tun
cd /sluice || exit # which ends the machine

# run NAME COMMAND…
run() {
	name=$1
	shift
	echo "@begin $name"
	timeout -k 5 "${TEST_SECONDS:-300}" "$@" < /dev/null 2>&1
	echo "@end $name $? $(cut -d' ' -f1 /proc/uptime)"
}

echo "@kernel $(uname -r) $(uname -v)"
export CMOCKA_MESSAGE_OUTPUT=TAP TEST_DIVISOR OUT=build
run objects tests/kernel/objects.sh
run dataplane tests/kernel/dataplane.sh
for program in build/tests/bpf/test_*; do
	name=${program##*/test_}
	case " $LEFT_OUT " in
	*" $name "*) echo "@skip bpf/$name" ;;
	*) run "bpf/$name" "$program" ;;
	esac
done
echo "@over"
poweroff -f
