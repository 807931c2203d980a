#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Clients that were written for Redis, as they come and without special settings: the current ioredis
# and redis from npm (clients.js), redis-cli and redis-benchmark; over TCP and the Unix socket, in
# RESP2 and RESP3.
#
#     node, redis-cli, redis-benchmark ──┬── $run/sluice.sock ──┬── sluiced (nobody), in a namespace
#                                        └── 127.0.0.1:7379 ────┘
# shellcheck source-path=SCRIPTDIR disable=SC2317 # functions are called by name
. "$(dirname "$0")/lib.sh"

run=$work/run socket=$work/run/sluice.sock
mkdir "$run" && chown nobody "$run"
cp "$OUT/sluiced" "$work/sluiced"
make_ns host

# start_daemon: it stays the same after a kill, but for its debts.
start_daemon() {
	enter host setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all \
		--no-new-privs "$work/sluiced" --config "$work/sluice.yaml"
	"${entering[@]}" 2>> "$run/log" 3>&- &
	daemon=$!
	await 10 answers || give_up "the daemon does not answer" "$(cat "$run/log")"
}

answers() {
	[ "$(redis-cli -s "$socket" PING)" = PONG ]
}

write_config <<- END
	dataplane: off
	state: $run/state
	listen: {unix: $socket, tcp: "127.0.0.1:7379", http: null}
	workers: 2
	rate_limits:
	  default: {rate: 0.001, burst: 2, max_queue: 1}
	  tenants: {free: {unlimited: true}}
	routes: {trusted_proxies: [10.0.0.0/8]}
END
start_daemon

# ---- npm

expected='first: [1,0,1,"ok",0]
batch: [[1,0,0,"ok",0],[1,0,0,"ok",0],"ERR invalid_tenant"]
refused: [0,true,0,"rate_limited"]
error: "ERR invalid_tenant"
null: null
preread: [1,0,-1,"ok","192.0.2.7"]
throttle: [0,16,15,-1,2]
lease: [1,0,0,"ok"]
no more: [0,1000,0,"tenant_overload"]
after it broke off: [1,0,0,"ok"]
of five thousand: 2
info: true'

# install: into a folder that goes with the test. Prints why not.
install() {
	if ! command -v node > /dev/null || ! command -v npm > /dev/null; then
		echo "node or npm is not installed"
		return 1
	fi
	mkdir "$work/npm"
	timeout 120 npm install --prefix "$work/npm" --no-audit --no-fund --no-save \
		--fetch-retries 1 --fetch-timeout 20000 ioredis redis > "$work/npm/log" 2>&1 ||
		{ echo "npm install: $(grep -m 1 . "$work/npm/log")" && return 1; }
}

if why_not=$(install); then
	for library in ioredis redis; do
		note "$library $(jq -r .version "$work/npm/node_modules/$library/package.json")"
		for where in "$socket" 127.0.0.1:7379; do
			for protocol in "as it comes" 2 3; do
				runs=$((${runs:-0} + 1))
				equal "$library, RESP: $protocol, ${where##*/}" "$expected" \
					"$(quietly_in host timeout 60 node tests/e2e/clients.js \
						"$work/npm" $library "$where" "$protocol" client$runs 2>&1)"
			done
		done
	done
else
	skip "ioredis and redis from npm" "$why_not"
fi

# ---- what comes with Redis

if command -v redis-cli > /dev/null; then
	in_cli() { quietly_in host redis-cli "$@" 2>&1 | tr '\n' ' ' | sed 's/ $//'; }
	equal "redis-cli" "1 0 1 ok 0" "$(in_cli -p 7379 TENANT.HIT cli)"
	equal "redis-cli -3" "1 0 0 ok 0" "$(in_cli -3 -p 7379 TENANT.HIT cli)"
	equal "redis-cli -3 on the Unix socket, where a map is one" 3 \
		"$(in_cli -3 --json -s "$socket" HELLO 3 | jq .proto)"
	equal "redis-cli --json" '[1,0,-1,"ok",0]' "$(in_cli -3 --json -p 7379 TENANT.HIT free)"
	equal "redis-cli -r repeats" "5" \
		"$(quietly_in host redis-cli -r 5 -p 7379 TENANT.HIT free | grep -c ok)"
	equal "redis-cli reads commands from a file" "PONG 1 0 -1 ok 0" \
		"$(printf 'PING\nTENANT.HIT free\n' | in_cli -p 7379)"
	equal "redis-cli --pipe sends in bulk" "errors: 0, replies: 1000" \
		"$(yes "$(printf '*2\r\n\x2410\r\nTENANT.HIT\r\n\x244\r\nfree\r')" | head -n 5000 |
			quietly_in host redis-cli -p 7379 --pipe | tail -n 1)"
	equal "redis-cli shows an error as one" "ERR invalid_tenant" \
		"$(in_cli -p 7379 TENANT.HIT bad.tenant | cut -d: -f1)"
else
	skip "redis-cli" "it is not installed (sudo make deps)"
fi

# benchmark NAME ARGUMENT…: it ends well, and has had an answer to each.
benchmark() {
	attempt host timeout 120 redis-benchmark -q -n 20000 -c 20 "${@:2}"
	if [ "$status" = 0 ] && grep -q 'requests per second' <<< "${output//$'\r'/$'\n'}" &&
		! grep -qi error <<< "$output"; then
		ok "redis-benchmark $1"
	else
		not_ok "redis-benchmark $1" "$output"
	fi
}

if command -v redis-benchmark > /dev/null; then
	before=$(redis-cli -s "$socket" INFO | tr -d '\r' | sed -n 's/^tenant_hit_ok://p')
	benchmark "over TCP" -p 7379 TENANT.HIT free
	benchmark "on the Unix socket, RESP3, pipelined" -3 -P 16 -s "$socket" TENANT.HIT free
	equal "each of its questions was answered, and counted" 40000 \
		"$(($(redis-cli -s "$socket" INFO | tr -d '\r' | sed -n 's/^tenant_hit_ok://p') - before))"
	benchmark "with keys at random" -p 7379 -r 100000 TENANT.HIT t__rand_int__
	benchmark "with its own PING" -p 7379 -t ping_mbulk,ping_inline
else
	skip "redis-benchmark" "it is not installed (sudo make deps)"
fi

# ---- a client that stays while the daemon dies

if [ -d "$work/npm/node_modules/ioredis" ]; then
	cat > "$work/npm/stays.js" <<- 'END'
		const client = new (require('ioredis').Redis)(process.argv[2]);
		client.on('error', () => {});
		let answers = 0;
		async function ask() {
			const [admitted] = await client.call('TENANT.HIT', 'free');
			if (admitted && ++answers && process.argv[3] !== undefined)
				require('fs').writeFileSync(process.argv[3], String(answers));
			setTimeout(ask, 5);
		}
		ask();
	END
	node "$work/npm/stays.js" "$socket" "$work/answers" 3>&- &
	client=$!
	has_answers() { [ "$(cat "$work/answers")" -gt "$1" ]; }
	await 20 has_answers 10 || not_ok "ioredis asks"
	kill -9 $daemon
	wait $daemon 2> /dev/null
	start_daemon
	seen=$(cat "$work/answers")
	check "ioredis connects again by itself when the daemon was killed" \
		await 30 has_answers "$((seen + 10))"
	kill $client
	wait $client 2> /dev/null
fi
kill $daemon
wait $daemon
equal "the daemon ends cleanly" 0 $?
finish
