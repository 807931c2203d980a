#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What the daemon answers in a second, beside redis-server and nginx, and what a tenant takes of its
# memory. The generator is the same on both sides (redis-benchmark on Unix sockets, wrk on
# loopback), runs take turns, and the middle one counts. A line of JSON for each case, as the
# programs print it (lib/report.h), with the middle percentiles in milliseconds, and with the CPU
# time that the server took for each request in microseconds: where it is the generator that limits,
# that tells more.
#
#     redis-benchmark -c 50 ──┬── sluice.sock ── sluiced ───┐
#     wrk -t1 -c50 ───────────┼── 127.0.0.1:… ──────────────┘
#                             ├── redis.sock ── redis-server (PING, gcra.lua)
#                             └── 127.0.0.1:… ── nginx (limit_req)
#
# One worker on each side, since one CPU is the generator's. WORKERS=n tries others.
#
# Everything runs in a folder of its own, on sockets and ports of its own, and ends by its pid. No
# privileges are needed.
set -u

cd "$(dirname "$0")/../.." || exit 1
bench=$PWD/tests/bench
OUT=${OUT:-build}
work=$(mktemp -d "${TMPDIR:-/tmp}/sluice-bench.XXXXXX") || exit 1
pids=()

TENANTS=100000
CONNECTIONS=50
WORKERS=${WORKERS:-1}
# Short runs, many of them: what else the machine does comes and goes.
ROUNDS=${ROUNDS:-9}
HTTP_ROUNDS=${HTTP_ROUNDS:-5}
# Of one hit, so that a tenant's debt lasts until about its next one, and none is refused.
RATE=1 BURST=1000

say() { echo "$*" >&2; }
give_up() {
	say "daemon: could not run: $*"
	exit 1
}

stop() {
	local pid

	for pid in "${pids[@]}"; do
		kill "$pid" 2> /dev/null && wait "$pid" 2> /dev/null
	done
	rm -rf "$work"
}
trap stop EXIT

PATH=$PATH:/usr/sbin
for tool in redis-server redis-benchmark redis-cli nginx wrk curl; do
	command -v "$tool" > /dev/null || give_up "there is no $tool (sudo make deps)"
done

# ---- servers

await() { # WHAT COMMAND…: until it succeeds
	local what=$1

	shift
	for _ in $(seq 200); do
		"$@" > /dev/null 2>&1 && return
		sleep 0.05
	done
	give_up "$what does not answer: $(tail -n 3 "$work"/*.log 2> /dev/null)"
}

answers() { [ "$(redis-cli -s "$1" PING)" = PONG ]; }
listens() { (exec 3<> "/dev/tcp/127.0.0.1/$1"); }

free_port() {
	local port

	for _ in $(seq 100); do
		port=$((RANDOM % 10000 + 20000))
		if ! listens "$port" 2> /dev/null; then
			echo "$port"
			return
		fi
	done
}

start_sluiced() { # NAME SLOTS RATE HTTP: its pid becomes $started
	cat > "$work/$1.yaml" <<-YAML
	dataplane: off
	state: $work/$1.state
	listen: {unix: $work/$1.sock, http: $4}
	tenant_slots: $2
	workers: $WORKERS
	rate_limits:
	  default: {rate: $3, burst: $BURST}
	  tenants: {strict: {rate: 0.001, burst: 1}}
	YAML
	"$OUT/sluiced" --config "$work/$1.yaml" 2> "$work/$1.log" &
	started=$!
	pids+=("$started")
	await sluiced answers "$work/$1.sock"
}

start_redis() { # NAME
	redis-server --port 0 --unixsocket "$work/$1.sock" --save '' --appendonly no --dir "$work" \
		--daemonize no > "$work/$1.log" 2>&1 &
	started=$!
	pids+=("$started")
	await redis-server answers "$work/$1.sock"
}

# An image of one pixel, from memory: `return` would answer before the limit is asked. limit_req
# takes whole requests a second or a minute.
start_nginx() { # PORT
	cat > "$work/nginx.conf" <<-CONF
	daemon off;
	worker_processes 1;
	pid $work/nginx.pid;
	error_log $work/nginx.log crit;
	events { worker_connections 1024; }
	http {
		access_log off;
		keepalive_requests 1000000000;
		client_body_temp_path $work/nginx.body;
		proxy_temp_path $work/nginx.proxy;
		fastcgi_temp_path $work/nginx.fastcgi;
		uwsgi_temp_path $work/nginx.uwsgi;
		scgi_temp_path $work/nginx.scgi;
		limit_req_zone \$arg_tenant zone=tenants:64m rate=${RATE}r/s;
		limit_req_zone \$arg_tenant zone=strict:1m rate=1r/m;
		server {
			listen 127.0.0.1:$1;
			location /check { limit_req zone=tenants burst=$BURST nodelay; empty_gif; }
			location /strict { limit_req zone=strict; empty_gif; }
		}
	}
	CONF
	nginx -p "$work" -e "$work/nginx.log" -c "$work/nginx.conf" > /dev/null 2>&1 &
	started=$!
	pids+=("$started")
	await nginx listens "$1"
}

# Of all threads, and of the only worker that nginx has.
cpu_ns() { # PID
	local pid

	for pid in "$1" $(cat "/proc/$1/task/$1/children" 2> /dev/null); do
		cat "/proc/$pid"/task/*/schedstat
	done | awk '{ ns += $1 } END { printf "%.0f", ns }'
}

# ---- runs: a line each in $work/NAME.runs, of rate, p50, p99, CPU µs a request

record() { # NAME CPU_NS_BEFORE CPU_NS_AFTER REQUESTS RATE P50 P99
	echo "$5 $6 $7 $(awk "BEGIN { print ($3 - $2) / 1000 / ${4:-1} }")" >> "$work/$1.runs"
}

resp() { # NAME PID SOCKET DEPTH REQUESTS COMMAND…
	local name=$1 pid=$2 socket=$3 depth=$4 requests=$5 before figures

	shift 5
	before=$(cpu_ns "$pid")
	# "command","rps","avg","min","p50","p95","p99","max"
	figures=$(redis-benchmark -s "$work/$socket.sock" -c $CONNECTIONS -P "$depth" -n "$requests" \
		-r $TENANTS --csv "$@" 2> /dev/null | tail -n 1 |
		awk -F'","' '{ print $(NF - 6), $(NF - 3), $(NF - 1) }')
	# Three figures.
	# shellcheck disable=SC2086
	record "$name" "$before" "$(cpu_ns "$pid")" "$requests" $figures
}

http() { # NAME PID URL START
	local before figures

	before=$(cpu_ns "$2")
	figures=$(wrk -t1 -c$CONNECTIONS -d1s -s "$bench/check.lua" "$3" -- "$4" | tail -n 1)
	# Five figures.
	# shellcheck disable=SC2086
	set -- "$1" "$2" "$before" $figures
	[ "$7" = 0 ] || say "daemon: $7 of $8 requests of $1 were not admitted"
	record "$1" "$3" "$(cpu_ns "$2")" "$8" "$4" "$5" "$6"
}

# ---- figures

middle() { # NAME COLUMN
	cut -d' ' -f"$2" "$work/$1.runs" | sort -g | awk '{ v[NR] = $1 } END { print v[int(NR / 2) + 1] }'
}

# As report_print() has it. A comparison may be without mark, a figure without peer.
report() { # CASE UNIT FIGURE MARK [PEER PEER_FIGURE [MORE]]
	awk -v name="$1" -v unit="$2" -v figure="$3" -v mark="$4" -v peer="${5:-}" \
		-v peer_figure="${6:-0}" -v more="${7:-}" '
	BEGIN {
		value = figure + 0
		printf "{\"case\": \"%s\", \"figure\": %.6g, \"unit\": \"%s\"", name, figure, unit
		if (peer != "") {
			value = peer_figure > 0 ? figure / peer_figure : 0
			printf ", \"peer\": \"%s\", \"peer_figure\": %.6g, \"ratio\": %.3g",
				peer, peer_figure, value
		}
		if (mark != "") {
			split(mark, part, " ")
			reached = part[1] == "<=" ? value <= part[2] + 0 : value >= part[2] + 0
			printf ", \"mark\": \"%s\", \"reached\": %s", mark, reached ? "true" : "false"
		}
		print more "}"
	}'
}

compare() { # CASE UNIT NAME MARK PEER PEER_NAME
	report "$1" "$2" "$(middle "$3" 1)" "$4" "$5" "$(middle "$6" 1)" "$(
		printf ', "p50_ms": %.3f, "p99_ms": %.3f, "cpu_us": %.2f' \
			"$(middle "$3" 2)" "$(middle "$3" 3)" "$(middle "$3" 4)"
		printf ', "peer_p50_ms": %.3f, "peer_p99_ms": %.3f, "peer_cpu_us": %.2f' \
			"$(middle "$6" 2)" "$(middle "$6" 3)" "$(middle "$6" 4)")"
}

expect() { # WHAT WANTED GOT: figures of what does something else are worth nothing
	[ "$2" = "$3" ] || give_up "$1: expected $2, got $3"
}

# ---- RESP

measure_resp() {
	local sluiced=$1 redis=$2 script lua hit=(TENANT.HIT t__rand_int__)

	script=$(redis-cli -s "$work/redis.sock" SCRIPT LOAD "$(cat "$bench/gcra.lua")")
	lua=(EVALSHA "$script" 1 t__rand_int__ $((1000000 / RATE)) "$BURST")
	expect "sluiced admits" 1 "$(redis-cli -s "$work/sluice.sock" TENANT.HIT first | head -n 1)"
	expect "the script admits" 1 \
		"$(redis-cli -s "$work/redis.sock" "${lua[@]}" | head -n 1)"
	expect "the script refuses" 0 "$(for _ in 1 2; do
		redis-cli -s "$work/redis.sock" EVALSHA "$script" 1 strict 1000000000 1 | head -n 1
	done | tail -n 1)"

	say "daemon: TENANT.HIT"
	# Once for nothing: the buckets are there then, and memory is warm.
	resp warm "$sluiced" sluice 16 500000 "${hit[@]}"
	for _ in $(seq "$ROUNDS"); do
		resp hit1 "$sluiced" sluice 1 50000 "${hit[@]}"
		resp ping1 "$redis" redis 1 50000 PING
	done
	for _ in $(seq "$ROUNDS"); do
		resp hit16 "$sluiced" sluice 16 500000 "${hit[@]}"
		resp ping16 "$redis" redis 16 500000 PING
		resp lua16 "$redis" redis 16 50000 "${lua[@]}"
	done
	expect "hits that were refused" 0 "$(redis-cli -s "$work/sluice.sock" INFO |
		grep -c 'tenant_hit_\(rate_limited\|table_full\)')"
	compare "TENANT.HIT, 100 k tenants, no pipelining" hits/s hit1 ">= 1" "redis PING" ping1
	compare "TENANT.HIT, 100 k tenants, pipeline 16" hits/s hit16 ">= 8" "redis Lua GCRA" lua16
	compare "TENANT.HIT, 100 k tenants, pipeline 16" hits/s hit16 ">= 0.8" "redis PING" ping16
}

# ---- HTTP

status_of() { curl -s -o "$work/body" -w '%{http_code}' "$1"; }

measure_http() {
	local sluiced=$1 nginx=$2 sluiced_url=http://127.0.0.1:$3/v1/check
	local nginx_url=http://127.0.0.1:$4/check round

	expect "sluiced admits" 200 "$(status_of "$sluiced_url?tenant=first")"
	expect "sluiced refuses" 429 "$(status_of "$sluiced_url?tenant=strict" > /dev/null
		status_of "$sluiced_url?tenant=strict")"
	expect "nginx admits" 200 "$(status_of "$nginx_url?tenant=first")"
	expect "nginx refuses" 503 "$(status_of "${nginx_url/check/strict}?tenant=a" > /dev/null
		status_of "${nginx_url/check/strict}?tenant=a")"

	say "daemon: /v1/check"
	http warm "$sluiced" "$sluiced_url" 0
	http warm "$nginx" "$nginx_url" 0
	for round in $(seq "$HTTP_ROUNDS"); do
		http check "$sluiced" "$sluiced_url" "0.$round"
		http nginx "$nginx" "$nginx_url" "0.$round"
	done
	compare "/v1/check over HTTP, 100 k tenants" requests/s check ">= 1" "nginx limit_req" nginx
}

# ---- memory

rss_bytes() { awk '/^VmRSS/ { printf "%.0f", $2 * 1024 }' "/proc/$1/status"; }
tenants_of() {
	redis-cli -s "$work/$1.sock" INFO | tr -d '\r' | awk -F: '$1 == "tenants" { print $2 }'
}

# A million ids, each once, all in debt until the end; in one connection.
# shellcheck disable=SC2016
hit_format='*2\r\n$10\r\nTENANT.HIT\r\n$13\r\nt%012d\r\n'
# shellcheck disable=SC2016
set_format='*5\r\n$3\r\nSET\r\n$13\r\nt%012d\r\n$16\r\n1700000000000000\r\n'\
'$2\r\nPX\r\n$7\r\n1000000\r\n'
fill() { # SOCKET FORMAT
	awk -v format="$2" 'BEGIN { for (i = 0; i < 1000000; i++) printf format, i }' |
		redis-cli -s "$work/$1.sock" --pipe > /dev/null
}

# With a million tenants less without, divided by those it holds; their keys are 13 bytes.
measure_memory() { # SLOTS EMPTY_BYTES: the figure becomes $tenant_bytes
	local sluiced tenants

	start_sluiced "memory$1" "$1" 0.001 null
	sluiced=$started
	fill "memory$1" "$hit_format"
	tenants=$(tenants_of "memory$1")
	tenant_bytes=$(awk "BEGIN { print ($(rss_bytes "$sluiced") - $2) / $tenants }")
	kill "$sluiced" && wait "$sluiced"
	say "daemon: $tenants of 1000000 tenants found room in $1 slots"
	report "RSS a tenant, a million for $1 slots" B "$tenant_bytes" "<= 77"
}

# What the script leaves for each: its TAT, with a time to live.
measure_redis_memory() {
	local empty

	start_redis peer
	empty=$(rss_bytes "$started")
	fill peer "$set_format"
	expect "keys in redis-server" 1000000 "$(redis-cli -s "$work/peer.sock" DBSIZE)"
	report "RSS a tenant, a million for 1048576 slots" B "$tenant_bytes" "" "redis Lua GCRA" \
		"$(awk "BEGIN { print ($(rss_bytes "$started") - $empty) / 1000000 }")"
}

sluiced_port=$(free_port) nginx_port=$(free_port)
start_sluiced sluice 131072 $RATE "127.0.0.1:$sluiced_port"
sluiced=$started
start_redis redis
redis=$started
start_nginx "$nginx_port"
nginx=$started
measure_resp "$sluiced" "$redis"
measure_http "$sluiced" "$nginx" "$sluiced_port" "$nginx_port"
say "daemon: memory"
start_sluiced empty 1024 $RATE null
empty_bytes=$(rss_bytes "$started")
measure_memory 2097152 "$empty_bytes"
measure_memory 1048576 "$empty_bytes"
measure_redis_memory
