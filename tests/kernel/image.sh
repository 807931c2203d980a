#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# image.sh KERNEL FILE: make FILE, an initramfs for the kernel that lies in the folder KERNEL (see
# fetch.sh): its modules, this machine's programs that the tests call, with their libraries, what was
# built, the tests, and init.sh as the first process. Busybox stands in for the programs that are not
# named here.
set -eu -o pipefail

kernel=$(realpath "$1") file=$(realpath "$2")
cd "$(dirname "$0")/../.."
OUT=${OUT:-build} PATH=$PATH:/usr/sbin:/sbin
programs="bash ip tc bpftool jq nsenter unshare ethtool flock mawk grep sed timeout"
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

# put FILE [AS]: with the libraries that it names
put() {
	local library

	install -D -m 755 "$1" "$root/${2:-$1}"
	# Not a program, or one without libraries: nothing.
	{ ldd "$1" 2> /dev/null || true; } | tr -s ' \t' '\n' | sed -n '/^\//p' |
		while read -r library; do
			[ -e "$root/$library" ] || install -D -m 755 "$library" "$root/$library"
		done
}

make_folders() {
	local folder

	for folder in bin sbin lib lib64; do
		mkdir -p "$root/usr/$folder"
		ln -s "usr/$folder" "$root/$folder"
	done
	mkdir -p "$root"/{dev,etc,proc,sys,run,tmp,root} "$root/var/lib"
	ln -s ../run "$root/var/run"
	grep -E '^(root|nobody):' /etc/passwd > "$root/etc/passwd"
	grep -E '^(root|nogroup):' /etc/group > "$root/etc/group"
}

put_programs() {
	local program

	for program in $programs; do
		put "$(command -v "$program")" "/usr/bin/$program"
	done
	ln -s mawk "$root/usr/bin/awk"
	put "$(command -v busybox)" /usr/bin/busybox
	ln -s ../bin/busybox "$root/usr/sbin/modprobe" # which the kernel itself calls
}

put_built() {
	local program

	for program in "$OUT"/{sluice,sluiced} "$OUT"/tests/bench/{bench_insns,flood} \
		"$OUT"/tests/bpf/test_*; do
		[ ! -x "$program" ] || put "$program" "/sluice/build/${program#"$OUT/"}"
	done
	install -D -m 644 "$OUT/gen/sluice.bpf.o" "$root/sluice/build/gen/sluice.bpf.o"
	mkdir -p "$root/sluice/tests"
	cp -r tests/e2e tests/kernel "$root/sluice/tests/"
	install -D -m 644 tests/bench/insns.txt "$root/sluice/tests/bench/insns.txt"
	install -m 755 tests/kernel/init.sh "$root/init"
}

make_folders
put_programs
put_built
cp -r "$kernel/lib/modules" "$root/usr/lib/"
busybox depmod -b "$root" "$(basename "$kernel"/lib/modules/*)"
(cd "$root" && find . | cpio -o -H newc --quiet) > "$file"
