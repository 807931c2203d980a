#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sockets that a supervisor has opened: which server each is for, that they outlive the daemon, and
# what is refused. By systemd-socket-activate, if it is there, and by a supervisor of our own.
#
#     redis-cli ──► $run/handed.sock ─┐
#     redis-cli ──► 127.0.0.1:6380  ──┼── activate.py ── sluiced, again and again
#     curl      ──► 127.0.0.1:4002  ──┘
# shellcheck source-path=SCRIPTDIR disable=SC2317 # functions are called by name
. "$(dirname "$0")/lib.sh"

command -v redis-cli > /dev/null || give_up "redis-cli is not installed (sudo make deps)"
run=$work/run socket=$work/run/handed.sock
mkdir "$run"
cp "$OUT/sluiced" "$work/sluiced"
make_ns host

# config [UNIX [TCP [HTTP]]]
config() {
	write_config <<- END
		dataplane: off
		state: $run/state
		listen: {unix: ${1:-$run/own.sock}, tcp: ${2:-null}, http: ${3:-null}}
		workers: 2
		rate_limits:
		  default: {rate: 0.001, burst: 3}
	END
}

# supervise ARGUMENT…: of activate.py; the daemon's words go to $run/log
supervise() {
	: > "$run/log"
	start host activate.py "$@" -- "$work/sluiced" --config "$work/sluice.yaml" \
		> "$run/said" 2> "$run/log"
	supervisor=$!
}

dismiss() {
	kill "$supervisor"
	wait "$supervisor"
}

# daemon_is: its number
daemon_is() {
	pgrep -P "$supervisor" -x sluiced
}

has_ended() {
	[ "$(grep -c ended "$run/said")" = "$1" ]
}

pings() {
	[ "$(quietly_in host redis-cli "$@" PING 2> /dev/null)" = PONG ]
}

http() {
	quietly_in host curl -sf -m 10 "$@"
}

is_refused() {
	check "$1" await 20 has_ended 1
	check "and says why" grep -qE "$2" "$run/log"
	dismiss
	rm -f "$socket"
}

# ---- kinds, without names
config "$run/own.sock" "127.0.0.1:6380" "127.0.0.1:4003"
supervise "$socket" 127.0.0.1:6380 127.0.0.1:4002
check "RESP is answered on the Unix socket" await 20 pings -s "$socket"
check "and on TCP where listen.tcp says so" pings -p 6380
equal "HTTP on TCP elsewhere" ok "$(http http://127.0.0.1:4002/readyz)"
check "and not where listen.http says" bash -c "! curl -s http://127.0.0.1:4003/healthz"
check "nor is listen.unix opened" test ! -e "$run/own.sock"
check "the log says that they are inherited" grep -q 'answers on 2 inherited sockets' "$run/log"
equal "root may override on it" OK "$(redis-cli -s "$socket" OVERRIDE.SET acme \
	'{"rate":1,"burst":5}')"

# ---- they outlive the daemon
equal "it ends at SIGTERM" "" "$(kill "$(daemon_is)" 2>&1)"
check "cleanly" await 20 has_ended 1
check "the Unix socket stays" test -S "$socket"
redis-cli -s "$socket" TENANT.PEEK acme > "$run/answer" 3>&- &
asking=$!
quietly_in host curl -s -m 60 -o "$run/page" http://127.0.0.1:4002/healthz 3>&- &
kill -USR1 "$supervisor"
check "who asks while there is no daemon is answered by the next" await 20 is_over $asking
equal "with what that knows" 4 "$(sed -n 3p "$run/answer")"
check "over HTTP as well" await 20 grep -q ok "$run/page"
kill -KILL "$(daemon_is)"
check "kill -9 leaves them, too" await 20 has_ended 2
kill -USR1 "$supervisor"
check "and the next one answers" await 20 pings -s "$socket"
dismiss
check "the supervisor's socket is never taken away" test -S "$socket"
rm "$socket"

# ---- names
supervise --names http:resp "$socket" 127.0.0.1:4002
check "a name says more than the kind: HTTP on a Unix socket" \
	await 20 http --unix-socket "$socket" http://localhost/healthz
check "and RESP on TCP" pings -p 4002
check "what is not handed over is opened: listen.unix" pings -s "$run/own.sock"
kill "$(daemon_is)"
check "it ends" await 20 has_ended 1
check "its own socket goes with it" test ! -e "$run/own.sock"
check "the other stays" test -S "$socket"
dismiss
rm "$socket"
supervise --names sluiced.socket:sluiced.socket "$socket" 127.0.0.1:4002
check "the names that systemd gives of its own accord say nothing" await 20 pings -s "$socket"
equal "so kinds do" ok "$(http http://127.0.0.1:4002/healthz)"
dismiss
rm "$socket"

# ---- what is refused
supervise "datagram:$socket"
is_refused "a datagram socket is refused" 'descriptor 3.* is not a stream that listens.*ListenStream'
supervise "$socket" 127.0.0.1:4002 127.0.0.1:4005
is_refused "and a second one for HTTP" 'descriptors 4 and 5 are both for HTTP'
supervise --promise 5 "$socket"
is_refused "and what was promised and is not there" LISTEN_FDS
supervise --promise many "$socket"
is_refused "and a number that is none" LISTEN_FDS
LISTEN_FDS=1 LISTEN_PID=1 "$work/sluiced" --config "$work/sluice.yaml" 2> "$run/log" 3>&- &
check "sockets that are meant for another process are none of ours" await 20 pings -s "$run/own.sock"
kill $!
wait $!

# ---- systemd's own
if command -v systemd-socket-activate > /dev/null; then
	start host systemd-socket-activate --listen="$socket" --listen=127.0.0.1:4002 \
		"$work/sluiced" --config "$work/sluice.yaml" 2> "$run/log"
	activated=$!
	check "systemd-socket-activate listens" await 20 test -S "$socket"
	equal "the first question starts the daemon and is answered" PONG \
		"$(timeout 20 redis-cli -s "$socket" PING)"
	equal "the second socket is HTTP's" ok "$(http http://127.0.0.1:4002/readyz)"
	kill $activated
	wait $activated
	equal "it ends cleanly" 0 $?
	check "the socket stays" test -S "$socket"
else
	skip "by systemd-socket-activate" "systemd is not installed"
fi
if command -v systemd-analyze > /dev/null; then
	mkdir -p "$work/root/usr/local/sbin" "$work/root/etc/systemd/system" \
		"$work/root/usr/lib/systemd"
	cp -r /lib/systemd/system "$work/root/usr/lib/systemd"
	ln -s usr/lib "$work/root/lib"
	cp "$OUT/sluiced" "$OUT/sluice" "$work/root/usr/local/sbin"
	cp dist/sluiced.service dist/sluiced.socket "$work/root/etc/systemd/system"
	equal "systemd finds nothing wrong with the units" "" \
		"$(systemd-analyze verify --man=no --root="$work/root" sluiced.socket sluiced.service 2>&1 |
			grep -i sluice)"
else
	skip "the units, by systemd-analyze" "systemd is not installed"
fi
finish
