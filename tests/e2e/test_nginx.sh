#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# dist/nginx.conf in a real nginx: what sluiced refuses, its clients see as 429 with Retry-After, and
# what it admits is served.
#
#     curl ── 127.0.0.1:80 nginx ── 127.0.0.1:8080 (what is protected, in the same nginx)
#                            └ auth_request ── 127.0.0.1:4002 sluiced
# shellcheck source-path=SCRIPTDIR disable=SC2317 # functions are called by name
. "$(dirname "$0")/lib.sh"

if ! nginx=$(PATH=$PATH:/usr/sbin command -v nginx); then
	skip "nginx" "it is not installed (sudo make deps)"
	finish
fi
run=$work/run socket=$work/run/sluice.sock
mkdir "$run"
cp "$OUT/sluiced" "$work/sluiced"
make_ns host

write_config <<- END
	dataplane: off
	state: $run/state
	listen: {unix: $socket, tcp: null, http: "127.0.0.1:4002"}
	rate_limits:
	  per_ip: {rate: 0.001, burst: 100}
	  default: {rate: 0.001, burst: 5, max_body_bytes: 1000}
END

start_sluiced() {
	enter host "$work/sluiced" --config "$work/sluice.yaml"
	"${entering[@]}" 2>> "$run/log" 3>&- &
	daemon=$!
	await 10 is_ready || give_up "the daemon does not start" "$(cat "$run/log")"
}

is_ready() { quietly_in host curl -sf http://127.0.0.1:4002/readyz; }

# What is protected, where nginx may write, and more keys; the rest is as it is shipped.
cat > "$run/http" <<- END
	access_log off;
	client_body_temp_path $run/body; proxy_temp_path $run/proxy; fastcgi_temp_path $run/fastcgi;
	uwsgi_temp_path $run/uwsgi; scgi_temp_path $run/scgi;
	server {
		listen 127.0.0.1:8080;
		location / { return 200 "served\\n"; }
		location = /forbidden { return 403 "by itself\\n"; }
		location = /busy { return 429 "by itself\\n"; }
	}
END
printf '"%s" "%s";\n' another other bodies bodies many many point bad.tenant > "$run/keys"
sed "/^http {/r $run/http
	/the key of acme/r $run/keys" dist/nginx.conf > "$run/nginx.conf"

# ask KEY PATH [ARGUMENT…]: status, Retry-After and the body of the answer
ask() {
	quietly_in host curl -s -m 10 -o "$run/answer" -w '%{http_code} %header{retry-after}' \
		-H "X-Api-Key: $1" "${@:3}" "http://127.0.0.1$2" | sed 's/ $//'
	echo " $(tr '\n' ' ' < "$run/answer" | sed 's/<.*//; s/ $//')" | sed 's/ $//'
}

start_sluiced
check "nginx takes dist/nginx.conf as it is" in_ns host "$nginx" -t -e "$run/shipped.log" \
	-g "pid $run/shipped.pid;" -c "$PWD/dist/nginx.conf"
enter host "$nginx" -e "$run/nginx.log" -c "$run/nginx.conf" \
	-g "daemon off; pid $run/nginx.pid; error_log $run/nginx.log; user root; worker_processes 2;"
"${entering[@]}" 3>&- &
nginx_pid=$!
await 10 quietly_in host curl -s http://127.0.0.1:8080/ ||
	give_up "nginx does not start" "$(cat "$run/nginx.log")"

# ---- one tenant
for number in 1 2 3 4 5; do
	equal "hook $number of five is served" "200 served" "$(ask "the key of acme" /)"
done
refused=$(ask "the key of acme" /)
check "the sixth is a true 429 with Retry-After" grep -qE '^429 (1000|99[0-9])$' <<< "$refused"
equal "another tenant is served" "200 served" "$(ask another /)"
equal "the tenant is not what the client calls itself in the query" 429 \
	"$(ask "the key of acme" '/?tenant=another&mode=none' | cut -d' ' -f1)"
fields() {
	quietly_in host curl -s -o /dev/null -D - -H "X-Api-Key: $1" http://127.0.0.1/ |
		tr -d '\r' | grep -i '^ratelimit'
}
check "what is served says what is left" grep -q 'RateLimit: "hooks";r=3;t=' <<< "$(fields another)"
check "and so does what is refused" grep -q 'RateLimit: "hooks";r=0;t=' \
	<<< "$(fields "the key of acme")"
check "and by which policy" grep -q 'RateLimit-Policy: "hooks";q=5;w=5000' \
	<<< "$(fields "the key of acme")"
equal "an operator lifts it while all runs" set \
	"$("$work/sluice" --socket "$socket" tenant set acme --rate 1 --burst 100)"
equal "and the next is served" "200 served" "$(ask "the key of acme" /)"

# ---- bodies, and answers that are not ours
equal "a body of a thousand bytes is served" "200 served" \
	"$(head -c 1000 /dev/zero | ask bodies / --data-binary @-)"
equal "one more byte is a 413, with nothing to wait for" 413 \
	"$(head -c 1001 /dev/zero | ask bodies / --data-binary @- | tr -d '\n')"
equal "which has cost no hook" "200 served" "$(head -c 900 /dev/zero | ask bodies / -d @-)"
equal "a 403 of what is protected stays a 403" "403 by itself" "$(ask "the key of acme" /forbidden)"
equal "and a 429 of it stays its own" "429 by itself" "$(ask "the key of acme" /busy)"
equal "what is no tenant id is a 400" 400 "$(ask point / | tr -d '\n')"

# ---- many at once
many() {
	quietly_in host seq 40 | xargs -P 20 -I{} nsenter --net="$(ns_path host)" -- curl -s -m 20 \
		-o /dev/null -w '%{http_code} %header{retry-after}\n' -H "X-Api-Key: many" \
		http://127.0.0.1/ > "$run/many"
}
many
equal "forty at once on a burst of five: five are served" 5 "$(grep -c '^200' "$run/many")"
equal "and the others are refused, each with its wait" 35 \
	"$(grep -cE '^429 (1000|9[0-9][0-9])$' "$run/many")"
equal "no refusal leaves a line in nginx's log" "" "$(cat "$run/nginx.log")"
within "and nginx has kept its connections to sluiced, as many as it may" 1 \
	"$(quietly_in host ss -Htn state established '( sport = :4002 )' | wc -l)" 64

# ---- an address
for number in $(seq 60); do
	ask another / > "$run/last"
done
equal "an address that asks too much is refused whoever it is" "429" "$(cut -d' ' -f1 < "$run/last")"
check "and says so" grep -q 'RateLimit-Policy: "[^"]*";q=100;' <<< "$(fields "the key of acme")"
equal "another address is served" "200 served" "$(ask "the key of acme" / --interface 127.0.0.2)"
equal "which no X-Forwarded-For of the client's makes it" 429 \
	"$(ask "the key of acme" / -H 'X-Forwarded-For: 192.0.2.9' | cut -d' ' -f1)"

# ---- without sluiced
kill -9 $daemon
wait $daemon 2> /dev/null
equal "without sluiced nothing is let through" 500 \
	"$(ask "the key of acme" / --interface 127.0.0.3 | cut -d' ' -f1)"
start_sluiced
is_served() { [ "$(ask "the key of acme" / --interface 127.0.0.3)" = "200 served" ]; }
check "when it is back, so are the answers" await 20 is_served
kill $nginx_pid
wait $nginx_pid
kill $daemon
wait $daemon
equal "the daemon ends cleanly" 0 $?
finish
