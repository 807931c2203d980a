#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# docs/protocol.md: every example in it is run against a fresh daemon on the configuration that stands
# there, and every command and route has one. Daemon and client are an ordinary user without
# capabilities.
#
#                                  ┌── $run/sluice.sock ──┐
#     protocol_examples.py (nobody)┼── 127.0.0.1:6380 ────┼── sluiced (nobody), in a namespace
#                                  └── 127.0.0.1:4002 ────┘
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

run=$work/run document=$work/run/protocol.md
mkdir "$run" && chown nobody "$run"
# Copies: that user may not be able to look into the checkout.
cp "$OUT/sluiced" "$work/sluiced"
cp docs/protocol.md tests/e2e/protocol_examples.py "$run" && chmod -R a+rX "$run"
make_ns host
nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all --no-new-privs)

examples() {
	quietly_in host "${nobody[@]}" "$python" -B "$run/protocol_examples.py" "$@"
}

examples block yaml "$document" |
	sed "s|/run/sluice/|$run/|; s|/var/lib/sluice|$run/state|" > "$run/sluice.yaml"
# With enter and not quietly_in, $! is the daemon's number and not a shell's.
enter host "${nobody[@]}" "$work/sluiced" --config "$run/sluice.yaml"
"${entering[@]}" 2> "$run/log" 3>&- &
daemon=$!
await 10 test -S "$run/sluice.sock" || give_up "the daemon does not start" "$(cat "$run/log")"
await 10 quietly_in host curl -sf http://127.0.0.1:4002/readyz ||
	give_up "the daemon is not ready" "$(cat "$run/log")"

while IFS=$'\t' read -r verdict name why; do
	if [ "$verdict" = ok ]; then
		ok "docs/protocol.md, $name"
	else
		not_ok "docs/protocol.md, $name" "$(printf '%b' "$why")"
	fi
done < <(examples run "$document" "$run/sluice.sock")
[ "$tests" -gt 0 ] || not_ok "docs/protocol.md has examples"

# ---- nginx, as it is set up there
write_nginx() {
	cat <<-NGINX
	daemon off;
	master_process off;
	pid $run/nginx.pid;
	error_log $run/nginx.log;
	events {}
	http {
	access_log off;
	client_body_temp_path $run/body; proxy_temp_path $run/proxy; fastcgi_temp_path $run/fastcgi;
	uwsgi_temp_path $run/uwsgi; scgi_temp_path $run/scgi;
	map \$http_x_demo \$tenant { default \$http_x_demo; }
	server { listen 127.0.0.1:8080; location / { return 200 "served\n"; } }
	$(examples block nginx "$document" | sed 's/^server {/&\n    listen 127.0.0.1:8000;/')
	}
	NGINX
}

# ask_nginx TENANT [ARGUMENT…]: status and Retry-After
ask_nginx() {
	quietly_in host curl -s -m 10 -o "$run/answer" -w '%{http_code} %header{retry-after}' \
		-H "X-Demo: $1" "${@:2}" http://127.0.0.1:8000/
}

if command -v nginx > /dev/null; then
	write_nginx > "$run/nginx.conf"
	enter host "${nobody[@]}" "$(command -v nginx)" -e "$run/nginx.log" -c "$run/nginx.conf"
	"${entering[@]}" 3>&- &
	nginx=$!
	await 10 quietly_in host curl -s http://127.0.0.1:8000/ || note "$(cat "$run/nginx.log")"
	equal "nginx serves what is admitted" "200 " "$(ask_nginx stark)"
	equal "and what it served is the server's" "served" "$(cat "$run/answer")"
	equal "up to the burst" "200 " "$(ask_nginx stark)"
	check "then its client gets a true 429 with Retry-After" \
		grep -qE '^429 (1000|9[0-9]{2})$' <<< "$(ask_nginx stark)"
	equal "a body over max_body_bytes gets 413" "413 " \
		"$(head -c 6000 /dev/zero | ask_nginx acme --data-binary @-)"
else
	skip "nginx, as it is set up there" "nginx is not installed"
fi

# ---- nothing is left out
equal "each command has an example" "" \
	"$(comm -13 <(examples commands "$document" | sort -u) \
		<(redis-cli -s "$run/sluice.sock" COMMAND LIST | grep -vE '^(host:|post)$' | sort -u))"
# The first two columns of the table, as "GET /v1/check"
routes=$(sed -nE 's|^\t\{ "([A-Z]+)", ("/[^"]*"\|tenants_path), .*|\1 \2|p' user/server/http_routes.c |
	sed 's|tenants_path|/v1/tenants/{tenant}/rate-limit|' | tr -d '"' | sort -u)
check "the table of routes is found" test "$(wc -l <<< "$routes")" -ge 11
equal "each route has an example" "" "$(comm -13 <(examples routes "$document" | sort -u) <(echo "$routes"))"
equal "the daemon has had nothing to complain about" "" "$(grep -vE 'answers|is in force' "$run/log")"

kill $daemon
wait $daemon
equal "it ends cleanly" 0 $?
if [ -n "${nginx:-}" ]; then
	equal "without it nginx answers 500" "500 " "$(ask_nginx stark)"
	kill "$nginx"
	wait "$nginx"
fi
finish
