#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# deps.sh run|test: install the Debian packages that are missing to build and show sluice, or to test
# and measure it as well, and say which. Does nothing if none is. Servers that come with the tests are
# installed without being started: the tests start their own.
set -eu

run="gcc make pkg-config clang llvm libbpf-dev libelf-dev zlib1g-dev bpftool libyaml-dev libjansson-dev
	libevent-dev libmicrohttpd-dev libsqlite3-dev libhiredis-dev libssl-dev
	iproute2 jq python3 procps util-linux"
tests="git libcmocka-dev libclang-rt-14-dev clang-19 clang-format iputils-ping ethtool nftables curl man-db
	redis-server redis-tools nginx-light wrk prometheus sqlite3 qemu-system-x86 busybox-static cpio"
# Where node comes from elsewhere it brings npm with it, and Debian's would be in its way.
command -v npm > /dev/null || tests="$tests nodejs npm"

case ${1:-test} in
run) wanted=$run ;;
test) wanted="$run $tests" ;;
*) echo "usage: $0 run|test" >&2; exit 2 ;;
esac

missing=
for package in $wanted; do
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
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
	trap 'rm -f $policy' EXIT
	printf '#!/bin/sh\nexit 101\n' > $policy
	chmod +x $policy
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086 -- a list of names
apt-get install -y -qq --no-install-recommends $missing < /dev/null > /dev/null
