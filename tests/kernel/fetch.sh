#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# fetch.sh DIR: have Debian's stock kernel for clouds lie in DIR, unpacked and not installed, and say
# where: a folder named as its package, with vmlinuz and lib/modules. What lies there already is not
# fetched again; where Debian's archive cannot be asked, the newest that lies there is taken. Status 1,
# with the reason on standard output, if there is none to be had. KERNEL_PACKAGE names another.
set -u -o pipefail

mkdir -p "$1" && cd "$1" || exit 1
meta=linux-image-cloud-amd64
log=$(mktemp)
trap 'rm -rf "$log" fetching' EXIT

# The package of the kernel itself, which the one for clouds depends on.
find_package() {
	package=${KERNEL_PACKAGE:-$(apt-cache depends $meta 2> /dev/null |
		awk '$1 == "Depends:" && $2 ~ /^linux-image-[0-9]/ { print $2; exit }')}
	[ -n "$package" ]
}

download() {
	(cd fetching && apt-get < /dev/null -o APT::Sandbox::User=root download "$package") > "$log" 2>&1
}

# Modules: what virtual interfaces and traffic control need.
unpack() {
	dpkg-deb --fsys-tarfile fetching/*.deb | tar -x -C fetching --wildcards \
		'./boot/vmlinuz-*' '*/modules.builtin*' '*/modules.order' \
		'*/kernel/net/sched/*' '*/kernel/drivers/net/veth.ko*' '*/kernel/drivers/net/tun.ko*' \
		> "$log" 2>&1 && mv fetching/boot/vmlinuz-* fetching/vmlinuz &&
		rm -r fetching/*.deb fetching/boot
}

# The lists of packages may be missing or too old.
update() {
	[ "$(id -u)" = 0 ] && apt-get update -qq > "$log" 2>&1
}

fall_back() {
	local kept

	kept=$(find . -mindepth 2 -maxdepth 2 -name vmlinuz -printf '%T@ %h\n' | sort -n | tail -n 1)
	if [ -z "$kept" ]; then
		echo "$1$(sed -n '/^E: /{s/^E: /: /p;q}' "$log")"
		exit 1
	fi
	realpath "${kept#* }"
	exit 0
}

if ! command -v apt-get > /dev/null || ! command -v dpkg-deb > /dev/null; then
	fall_back "no apt-get to fetch Debian's kernel with"
fi
find_package || { update && find_package; } || fall_back "apt knows no package $meta"
if [ ! -e "$package/vmlinuz" ]; then
	rm -rf fetching "$package" && mkdir fetching
	download || { update && find_package && download; } ||
		fall_back "the package $package cannot be downloaded"
	unpack || fall_back "the package $package cannot be unpacked"
	mv fetching "$package" || exit 1
fi
realpath "$package"
