#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The daemon as an ordinary user runs it, without BPF and without any capability: a real Redis client
# on its Unix socket and on loopback, operators through the command, kill -9, bad files.
#
#     redis-cli ──┐
#     sluice ─────┼── $work/run/sluice.sock ── sluiced (nobody) ── $work/run/state/sluice.db
#     redis-cli ──┘   127.0.0.1:$port (AUTH)
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

command -v redis-cli > /dev/null || give_up "redis-cli is not installed (sudo make deps)"
run=$work/run socket=$work/run/sluice.sock config=$work/run/sluice.yaml
cp "$OUT/sluiced" "$work/sluiced"
mkdir "$run" && chown nobody "$run"
make_ns host

write_config() {
	cat > "$config" <<-YAML
	dataplane: off
	state: $run/state
	listen: {unix: $socket, tcp: "127.0.0.1:7379", http: null}
	workers: 2
	rate_limits:
	  per_ip: {rate: 1, burst: 3}
	  node: {hooks: {rate: 100, burst: 1000}}
	  default: {rate: 0.001, burst: 2}
	  tenants:
	    acme: {rate: 0.001, burst: 3, bytes_per_second: 1, burst_bytes: 1000, max_body_bytes: 5000, max_queue: 2}
	    free: {unlimited: true}
	  sources: {default: {bytes_per_second: 1000}}
	routes: {trusted_proxies: [10.0.0.0/8]}
	admin:
	  tokens:
	    - {name: ops, sha256: $(printf secret | sha256sum | cut -d' ' -f1), scopes: [rate_limits:write]}
	$*
	YAML
	chmod 644 "$config"
}

start() {
	nsenter --net="$(ns_path host)" -- setpriv --reuid=65534 --regid=65534 --clear-groups \
		--bounding-set=-all --no-new-privs "$work/sluiced" --config "$config" 2>> "$run/log" &
	daemon=$!
	for _ in $(seq 200); do
		[ "$(redis-cli -s "$socket" PING 2> /dev/null)" = PONG ] && return
		sleep 0.05
	done
	give_up "the daemon does not answer" "$(cat "$run/log")"
}

stop() {
	kill "-$1" $daemon
	wait $daemon
}

ask() { redis-cli -s "$socket" "$@" | tr '\n' ' ' | sed 's/ $//'; }
over_tcp() { nsenter --net="$(ns_path host)" -- redis-cli -p 7379 "$@" 2>&1 | tr '\n' ' ' | sed 's/ $//'; }
cli() { "$work/sluice" --socket "$socket" "$@"; }

write_config
start
ok "an ordinary user without capabilities starts it"

# ---- tenants
equal "the first hook is admitted" "1 0 1 ok 0" "$(ask TENANT.HIT globex)"
equal "the last one of the burst" "1 0 0 ok 0" "$(ask TENANT.HIT globex)"
equal "one more is refused, and told how long to wait" "0 rate_limited" \
	"$(ask TENANT.HIT globex | awk '{ print $1, $4 }')"
within "which is at most one interval" 999000 "$(ask TENANT.PEEK globex | awk '{ print $2 }')" 1000000
equal "a tenant of its own entry has its own burst" "1 0 2 ok 0" "$(ask TENANT.HIT acme 100)"
equal "a body over max_body_bytes can never be sent" "0 -1 -1 too_large -1" \
	"$(ask TENANT.HIT acme 5001)"
equal "bytes refuse after the hook is spent" "0 bytes_limited" \
	"$(ask TENANT.HIT acme 950 | awk '{ print $1, $4 }')"
equal "which leaves one hook" "1 0 0 ok 0" "$(ask TENANT.PEEK acme)"
equal "an unlimited tenant is not limited" "1 0 -1 ok 0" "$(ask TENANT.HIT free 1000000000)"
equal "a refund gives back" "OK" "$(ask TENANT.REFUND globex 2)"
equal "so that hooks are admitted again" "1 0 1 ok 0" "$(ask TENANT.HIT globex)"
equal "what is no tenant id is an error, not a refusal" "ERR" \
	"$(ask TENANT.HIT bad.tenant | cut -d' ' -f1)"
equal "the body limit is told" "5000" "$(ask TENANT.BODYLIMIT acme)"

# ---- the queue: leases end with their connection
equal "leases up to max_queue, then overload; a new connection finds the share free" \
	"1 1 0 tenant_overload 1" \
	"$(printf '%s\n' 'QUEUE.ACQUIRE acme 10' 'QUEUE.ACQUIRE acme 10' 'QUEUE.ACQUIRE acme 10' |
		redis-cli -s "$socket" | awk 'NR % 5 == 1 { printf "%s ", $1 } NR == 14 { printf "%s ", $1 }'
	redis-cli -s "$socket" QUEUE.ACQUIRE acme 10 | head -n 1)"

# ---- before the body is read
equal "a client's hooks are charged to its own address behind the proxy" "1 0 -1 ok 203.0.113.9" \
	"$(ask EDGE.PREREAD 10.0.0.1 hook XFF 203.0.113.9)"
ask EDGE.PREREAD 203.0.113.9 hook > /dev/null
ask EDGE.PREREAD 203.0.113.9 hook > /dev/null
equal "and refused by it" "0 ip" "$(ask EDGE.PREREAD 203.0.113.9 hook | awk '{ print $1, $4 }')"
equal "a source's declared bytes are held to its rate" "0 source" \
	"$(ask EDGE.PREREAD 203.0.113.10 big BYTES 1000 > /dev/null
	ask EDGE.PREREAD 203.0.113.10 big BYTES 900 | awk '{ print $1, $4 }')"
equal "an address that cannot be read is an error, never the proxy's" "ERR" \
	"$(ask EDGE.PREREAD 10.0.0.1 hook XFF nonsense | cut -d' ' -f1)"

# ---- CL.THROTTLE
equal "CL.THROTTLE answers as redis-cell does" "0 16 15 -1 2" "$(ask CL.THROTTLE user123 15 30 60)"
equal "and is not fooled by a high rate" "0 11 10 -1 1" "$(ask CL.THROTTLE fast 10 2000000 1)"
equal "nor crashed by a key of any bytes" "0 1 0 -1 1" \
	"$(ask CL.THROTTLE $'\xff\xfe' 0 1 1)"

# ---- overrides and their audit
equal "root may override over the Unix socket" "set" "$(cli tenant set globex --rate 0.001 --burst 5)"
equal "which forgets the debt" "1 0 4 ok 0" "$(ask TENANT.HIT globex)"
equal "and is shown as an override" "override" "$(cli tenant show globex --json | jq -r .source)"
equal "TCP may not without AUTH" "NOPERM" \
	"$(over_tcp OVERRIDE.SET globex '{"rate":1,"burst":1}' | cut -d' ' -f1)"
equal "nor with a wrong token" "WRONGPASS" "$(over_tcp AUTH wrong | cut -d' ' -f1)"
equal "with the right one it may" "OK OK" \
	"$(printf '%s\n' 'AUTH secret' 'OVERRIDE.SET initech "{\"rate\":1,\"burst\":7}"' |
		nsenter --net="$(ns_path host)" -- redis-cli -p 7379 | tr '\n' ' ' | sed 's/ $//')"
equal "the audit knows both, newest first" "token:ops peer:0" \
	"$(cli audit --json | jq -r '.audit[] | "\(.actor_kind):\(.actor | split(":")[0])"' |
		tr '\n' ' ' | sed 's/ $//')"
check "a limit that is wrong is refused with the reason" bash -c \
	"'$work/sluice' --socket '$socket' tenant set x --rate 0 --burst 1 2>&1 |
		grep -q 'rate must be a number greater than 0, got 0'"

stop KILL
start
equal "after kill -9 the override is there" "override" \
	"$(cli tenant show globex --json | jq -r .source)"
equal "and so is its record" "2" "$(cli audit --json | jq '.audit | length')"
equal "unset brings the configuration back" "unset" "$(cli tenant unset globex)"
equal "once" "1" "$(cli tenant unset globex > /dev/null 2>&1; echo $?)"

# ---- reload
write_config "nonsense: 1"
kill -HUP $daemon
for _ in $(seq 100); do
	grep -q 'stays in force' "$run/log" && break
	sleep 0.05
done
check "a bad file leaves the old configuration in force and says where it is wrong" \
	grep -q "sluice.yaml:.*nonsense.*" "$run/log"
equal "reload by command says so as well" "1" "$(cli reload > /dev/null 2>&1; echo $?)"
write_config
sed -i 's/burst: 2}/burst: 9}/' "$config"
equal "a good one is put in force" "the configuration is in force" "$(cli reload)"
equal "at once" "1 0 8 ok 0" "$(ask TENANT.HIT newcomer)"

# ---- many tenants
many() {
	awk 'BEGIN { for (i = 0; i < 12000; i++) printf "    many%d: {rate: 1, burst: 1}\n", i }'
}

write_config
many > "$run/many"
sed -i "/^    free:/r $run/many" "$config"
cli reload > /dev/null
equal "all of twelve thousand tenants are listed, page by page" \
	"$({
		printf '%s\n' acme free initech
		awk '{ print $1 }' "$run/many" | tr -d ':'
	} | LC_ALL=C sort | sha256sum)" \
	"$(cli tenant list --json | jq -r '.tenants[].tenant' | sha256sum)"
equal "for people with one head" "1 12003" "$(cli tenant list | awk '
	$1 == "tenant" { heads++ } $2 != "from" && $1 != "(any" { rows++ } END { print heads, rows }')"
write_config
cli reload > /dev/null

# ---- load
check "redis-benchmark runs unchanged" redis-benchmark -s "$socket" -n 20000 -c 20 -P 8 -q \
	TENANT.HIT free
equal "200 hits on a burst of 50 admit 50" "50" \
	"$(cli tenant set rush --rate 0.001 --burst 50 > /dev/null
	for _ in $(seq 8); do
		yes 'TENANT.HIT rush' | head -n 25 | redis-cli -s "$socket" &
	done | grep -c '^ok$\|"ok"')"
stop TERM
equal "SIGTERM ends it cleanly" "0" "$?"
check "and takes its socket away" test ! -e "$socket"

# ---- what refuses to start
printf 'not a database, but long enough to be looked at as one' > "$run/state/sluice.db"
rm -f "$run/state/sluice.db-wal" "$run/state/sluice.db-shm"
setpriv --reuid=65534 --regid=65534 --clear-groups "$work/sluiced" --config "$config" 2> "$run/refusal"
equal "a database that cannot be read refuses to start" "1" "$?"
check "and says which" grep -q sluice.db "$run/refusal"
equal "a configuration that is wrong exits 78" "78" \
	"$(echo 'rate_limits: {default: {rate: 0}}' > "$config"
	"$work/sluiced" --config "$config" 2> /dev/null; echo $?)"
finish
