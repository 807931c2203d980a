#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What `make uninstall` does before it removes files: nothing of sluice runs any more, no program is
# attached, no pin is left. Works also if the installed programs are broken or gone, since then
# nobody would be left who could take off what they have attached.
#
#     dist/uninstall.sh PREFIX            as root
#     dist/uninstall.sh --purge PREFIX    also what the operator wrote and the daemon has kept
set -u

purge=
if [ "${1:-}" = --purge ]; then
	purge=yes
	shift
fi
prefix=$1
config=/etc/sluice/sluice.yaml state=/var/lib/sluice run=/run/sluice
# As in user/dataplane/clsact.h.
priority=79 handle=0x511ce
failed=0

say() {
	echo "uninstall: $*"
}

# of KEY DEFAULT: what the configuration says on a line of its own
of() {
	value=$(sed -n "s/^$1:[[:space:]]*\([^[:space:]#]*\).*/\1/p" "$config" 2> /dev/null | tail -n 1)
	echo "${value:-$2}"
}

# ---- the daemon

stop_service() {
	[ -d /run/systemd/system ] || return 0
	for unit in sluiced.socket sluiced.service sluice.service; do
		systemctl cat $unit > /dev/null 2>&1 || continue
		say "stopping and disabling $unit"
		systemctl disable --now $unit
	done
}

# Those that run this very file, in whatever namespace they see it, or the one that was in its place.
running() {
	local process here

	here=$(readlink /proc/self/ns/mnt)
	for process in /proc/[0-9]*; do
		if [ "$process/exe" -ef "$prefix/sbin/sluiced" ] ||
			{ [ "$(readlink "$process/exe")" = "$prefix/sbin/sluiced (deleted)" ] &&
				[ "$(readlink "$process/ns/mnt")" = "$here" ]; }; then
			echo "${process#/proc/}"
		fi
	done
}

stop_others() {
	for pid in $(running); do
		say "ending sluiced (process $pid)"
		kill "$pid"
	done
	tries=0
	while [ -n "$(running)" ] && [ $tries -lt 150 ]; do
		sleep 0.1
		tries=$((tries + 1))
	done
	for pid in $(running); do
		say "process $pid does not end: kill -9 $pid"
		failed=1
	done
}

# ---- the programs

# Filters of clsact outlive their pins. Only ours: by its place and by its program.
remove_filters() {
	command -v tc > /dev/null || return 0
	for device in $(ip -o link show 2> /dev/null | sed 's/^[0-9]*: \([^:@]*\).*/\1/'); do
		tc filter show dev "$device" ingress pref $priority 2> /dev/null |
			grep -q 'sluice_tc' || continue
		say "removing the filter of $device"
		tc filter del dev "$device" ingress pref $priority handle $handle bpf
	done
}

# detach PINS: by the program, or by hand
detach() {
	if [ -x "$prefix/sbin/sluice" ] && "$prefix/sbin/sluice" --bpffs "$1" detach --all; then
		[ -e "$1" ] || return 0
	fi
	[ -e "$1" ] || return 0
	say "removing the pins in $1 by hand"
	rm -rf "$1"
	[ -e "$1" ] || return 0
	say "cannot remove $1"
	failed=1
}

# ---- what was written

remove_or_name() {
	[ -e "$1" ] || return 0
	if [ "$purge" ]; then
		say "removing $1 ($2)"
		rm -rf "$1"
	else
		say "$1 stays ($2); make purge removes it"
	fi
}

other_pins=$(of bpffs /sys/fs/bpf/sluice)
other_state=$(of state $state)
stop_service
stop_others
detach /sys/fs/bpf/sluice
[ "$other_pins" = /sys/fs/bpf/sluice ] || detach "$other_pins"
remove_filters
rm -rf $run
remove_or_name $state "overrides and audit of the daemon"
[ "$other_state" = $state ] || [ ! -e "$other_state" ] ||
	say "$other_state stays (overrides and audit of the daemon); remove it yourself"
remove_or_name /etc/sluice "the configuration"
exit $failed
