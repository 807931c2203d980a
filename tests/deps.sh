#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Install the Debian packages that are missing, and say which. Does nothing if none is.
set -eu

build="gcc make pkg-config clang llvm libbpf-dev libelf-dev zlib1g-dev bpftool libyaml-dev libjansson-dev"
tests="git libcmocka-dev libclang-rt-14-dev clang-19 clang-format iproute2 iputils-ping ethtool nftables jq python3
	procps util-linux curl man-db"

missing=
for package in $build $tests; do
	state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
	[ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ]; then
	echo "These Debian packages are missing:$missing" >&2
	echo "Install them with: sudo make deps" >&2
	exit 77
fi
echo "Installing Debian packages:$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086 -- a list of names
apt-get install -y -qq --no-install-recommends $missing < /dev/null > /dev/null
