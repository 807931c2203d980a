#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A configuration comes into force whole, in the kernel and in the daemon, or not at all: reloads that
# fail in the one, in the other and in the HTTP server, and a start that cannot listen.
#
#     client                server
#    ┌──────┐     veth     ┌───────────────────────────────────────────┐
#    │   c0 ├──────────────┤ s0 ◄ XDP    sluiced   0.0.0.0:4002        │
#    │   c1 ├──────────────┤ s1 ◄ somebody else's  127.0.0.1:6380 taken│
#    └──────┘              └───────────────────────────────────────────┘
# shellcheck source-path=SCRIPTDIR disable=SC2317 # functions are called by name
. "$(dirname "$0")/lib.sh"

run=$work/run
mkdir "$run"
cp "$OUT/sluiced" "$work/sluiced"
make_ns client
make_ns server
make_link client c0 server s0
make_link client c1 server s1
printf '__attribute__((section("xdp"), used)) int foreign(void *context) { return 2; }\n' \
	> "$work/foreign.c"
clang -O2 -g -target bpf -c "$work/foreign.c" -o "$work/foreign.o" || give_up "clang failed"
bpftool prog load "$work/foreign.o" "$work/bpf/foreign" || give_up "no foreign program"
quietly_in server bpftool net attach xdp pinned "$work/bpf/foreign" dev s1 || give_up "no foreign program"

hash_of() {
	printf %s "$1" | sha256sum | cut -d' ' -f1
}

# config N: each part of it says N, so that each can be seen to be of the same one
config() {
	write_config <<- END
		interfaces: [{name: s0, mode: auto}]
		bpffs: $BPFFS
		state: $run/state
		listen: {unix: $run/sock, tcp: null, http: "0.0.0.0:4002"}
		workers: 1
		tenant_slots: 1024
		protect: [tcp/443]
		rate_limits:
		  per_ip: {packets: {rate: 1000, burst: 1000$1}, hooks: {rate: 0.001, burst: $1}}
		  default: {rate: 0.001, burst: $1}
		admin:
		  tokens:
		    - {name: ops, sha256: $(hash_of "token$1"), scopes: [rate_limits:read]}
	END
}

begin() {
	enter server "$work/sluiced" --config "$work/sluice.yaml"
	"${entering[@]}" 2>> "$run/log" 3>&- &
	daemon=$!
	await 20 quietly_in server curl -sf http://127.0.0.1:4002/healthz ||
		give_up "the daemon does not answer" "$(cat "$run/log")"
}

cli() {
	quietly_in server sluice --socket "$run/sock" "$@"
}

ask() {
	redis-cli -s "$run/sock" "$@" | tr '\n' ' ' | sed 's/ $//'
}

# in_force: what each part says: the kernel, tenants, hooks of addresses, tokens of HTTP and of RESP.
# A bucket that nobody has asked for yet shows the burst.
in_force() {
	local number http='' resp='' name=new$RANDOM$RANDOM

	for number in 1 2 3; do
		[ "$(quietly_in server curl -s -o /dev/null -w '%{http_code}' \
			-H "Authorization: Bearer token$number" \
			http://127.0.0.1:4002/v1/rate-limits)" != 200 ] || http+=$number
		[ "$(ask AUTH "token$number")" != OK ] || resp+=$number
	done
	echo "kernel $(cli status --json | jq -r '.limits.per_ip.packets.burst - 10000')" \
		"tenants $(ask TENANT.PEEK "$name" | awk '{ print $3 + 1 }')" \
		"http $http resp $resp"
}

all_are() {
	echo "kernel $1 tenants $1 http $1 resp $1"
}

is_all() {
	[ "$(in_force)" = "$(all_are "$1")" ]
}

generation() {
	cli status --json | jq .generation
}

hooks_of() {
	local count=0

	while [ "$(ask EDGE.PREREAD "$1" hook | cut -d' ' -f1)" = 1 ]; do
		count=$((count + 1))
	done
	echo $count
}

# is_refused DESCRIPTION PATTERN: a reload; nothing has changed
is_refused() {
	local before

	before=$(in_force)
	expect "$1" 1 "$2" server sluice --socket "$run/sock" reload
	equal "and nothing has changed" "$before" "$(in_force)"
	check "the log says that the old one stays" grep -qE "old configuration stays in force: .*$2" \
		"$run/log"
	: > "$run/log"
}

config 1
begin
equal "the start puts all of a configuration in force" "$(all_are 1)" "$(in_force)"
equal "hooks of addresses, too" 1 "$(hooks_of 198.51.100.1)"
config 2
check "a reload is taken" cli reload
equal "and puts all of another in force" "$(all_are 2)" "$(in_force)"
equal "hooks of addresses, too" 2 "$(hooks_of 198.51.100.2)"

# ---- what fails in one part only
config 3
sed -i '/^admin/,$d; s/0\.0\.0\.0:4002/127.0.0.1:4002/' "$work/sluice.yaml"
is_refused "HTTP, open to all, will not be without tokens" 'without admin.tokens'
config 3
sed -i 's/^interfaces.*/interfaces: [{name: s0, mode: auto}, {name: s1, mode: native}]/' "$work/sluice.yaml"
is_refused "an interface that bears somebody else's program" 's1'
equal "which it still does" foreign "$(ip -n "e2e_$$_server" -json link show s1 | jq -r .[0].xdp.prog.name)"
config 3
sed -i 's/name: s0, mode: auto/name: later/' "$work/sluice.yaml"
check "an interface that is not there yet is no reason" cli reload
equal "all of the configuration is in force where it is attached" "$(all_are 3)" "$(in_force)"
check "and the log says what is missing" grep -q "there is no interface later; it is attached when it comes" \
	"$run/log"
config 2
check "back" cli reload
: > "$run/log"
config 3
echo 'nonsense: 1' >> "$work/sluice.yaml"
is_refused "a file with a mistake" 'sluice.yaml:[0-9]+:.*nonsense'
config 3
flock --no-fork --exclusive "$BPFFS" sleep 60 3>&- &
await 10 bash -c "! flock --nonblock '$BPFFS' true"
is_refused "another sluice that does not end its work" 'another sluice is at work'
kill $!
{ wait $!; } 2> /dev/null
before=$(generation)
check "set an override meanwhile" cli tenant set globex --rate 1 --burst 77
check "then the same file is taken" cli reload
equal "whole" "$(all_are 3)" "$(in_force)"
check "in the kernel as another configuration" test "$(generation)" -gt "$before"
equal "overrides stay" "1 0 76 ok 0" "$(ask TENANT.HIT globex)"

# ---- what takes a restart
config 3
sed -i "s|^bpffs.*|bpffs: $work/bpf/other|; s/tenant_slots: 1024/tenant_slots: 2048/" "$work/sluice.yaml"
check "a reload with another folder of pins is taken" cli reload
check "and says what takes a restart" grep -q 'another .bpffs. than at the start' "$run/log"
check "each" grep -q 'another .tenant_slots.' "$run/log"
check "nothing is pinned in that folder" test ! -e "$work/bpf/other"

# ---- SIGHUPs and commands at the same time
config 1
for _ in 1 2 3 4 5; do
	kill -HUP $daemon
	cli reload > /dev/null 2>&1 &
	cli reload > /dev/null 2>&1 &
	wait $!
done
check "many reloads at once end with what the file says" await 20 is_all 1
kill $daemon
wait $daemon
equal "it ends cleanly" 0 $?

# ---- a start that cannot listen
start server serve.py 127.0.0.1 6380 > "$work/said"
await 20 grep -q ready "$work/said" || give_up "nothing listens"
before=$(generation)
config 2
sed -i 's/tcp: null/tcp: "127.0.0.1:6380"/' "$work/sluice.yaml"
expect "where somebody else listens it does not start" 1 'cannot listen on 127.0.0.1:6380' server \
	"$work/sluiced" --config "$work/sluice.yaml"
equal "and leaves the limits of packets as they were" 1 \
	"$(cli status --json | jq -r '.limits.per_ip.packets.burst - 10000')"
quietly_in server sluice detach --all > /dev/null
expect "the same where nothing was attached" 1 'cannot listen on 127.0.0.1:6380' server \
	"$work/sluiced" --config "$work/sluice.yaml"
equal "nothing is attached then" off "$(xdp_on server s0)"
check "nor pinned but debts" test "$(ls "$BPFFS")" = daemon
finish
