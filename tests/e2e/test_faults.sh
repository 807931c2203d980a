#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What clients and disks do to a daemon: it answers others all the while, keeps what it has, and does
# not grow.
#
#     faults.py (a client at fault, and another one) ──┬── $run/sluice.sock ──┬── sluiced, in a
#                                                      └── 127.0.0.1:7379 ────┘   namespace
#                                          $disk, a file system of 1 MiB ───────┘
# shellcheck source-path=SCRIPTDIR disable=SC2317 # functions are called by name
. "$(dirname "$0")/lib.sh"

run=$work/run socket=$work/run/sluice.sock disk=$work/disk
mkdir "$run" "$disk"
cp "$OUT/sluiced" "$work/sluiced"
make_ns host
mount -t tmpfs -o size=1m,mode=700 tmpfs "$disk" || give_up "cannot mount a small file system"
trap 'umount -l "$disk"; clean_up' EXIT
# As many connections as the system lets us have, up to ten thousand, and some files beside them.
ulimit -n "$(ulimit -Hn)"
files=$(ulimit -n)
[ "$files" != unlimited ] || files=20000
many=$((files - 300 < 10000 ? files - 300 : 10000))

write_config <<- END
	dataplane: off
	state: $disk/state
	listen: {unix: $socket, tcp: "127.0.0.1:7379", http: "127.0.0.1:4002"}
	workers: 2
	rate_limits:
	  default: {rate: 0.001, burst: 2}
	  tenants: {free: {unlimited: true}, queued: {rate: 1, burst: 1, max_queue: 50}}
	admin:
	  tokens:
	    - name: ops
	      sha256: $(printf secret | sha256sum | cut -d' ' -f1)
	      scopes: [rate_limits:read, rate_limits:write]
END

# begin [COMMAND…]: start the daemon, by way of a command
begin() {
	enter host "$@" "$work/sluiced" --config "$work/sluice.yaml"
	"${entering[@]}" 2>> "$run/log" 3>&- &
	daemon=$!
	await 20 answers || give_up "the daemon does not answer" "$(cat "$run/log")"
}

end() {
	{
		kill "-$1" $daemon
		wait $daemon
	} 2> /dev/null
}

answers() { [ "$(redis-cli -s "$socket" PING 2> /dev/null)" = PONG ]; }
ask() { redis-cli -s "$socket" "$@" | tr '\n' ' ' | sed 's/ $//'; }
memory_mib() { awk '/^VmHWM/ { print int($2 / 1024) }' "/proc/$daemon/status"; }
open_files() { find "/proc/$daemon/fd" -mindepth 1 | wc -l; }

# fault DESCRIPTION FAULT PLACE [NUMBER]
fault() {
	local said

	said=$(quietly_in host timeout 300 "$python" tests/e2e/faults.py "${@:2}" 2> "$work/aside")
	note "$2 ${4:-}: $(tail -n 1 "$work/aside"), at most $(memory_mib) MiB so far"
	equal "$1" ok "$said"
}

# ---- clients

clients() {
	local before place

	begin
	before=$(open_files)
	for place in "$socket" 127.0.0.1:7379; do
		fault "who does not read its replies waits, and then has them all (${place##*/})" \
			slow_reader "$place"
	done
	fault "half a command is no hindrance, and answered when it is whole" half_a_command \
		"$socket" 1000
	fault "a million commands in a row have a million replies" pipeline "$socket" 1000000
	fault "and a fifth of them over TCP" pipeline 127.0.0.1:7379 200000
	fault "who has closed its half is answered" half_closed 127.0.0.1:7379 10000
	fault "512 MiB that are announced are refused at once" huge "$socket" 20
	fault "garbage harms nobody" garbage "$socket" 500
	fault "who is killed holds no leases" leases "$socket" 50
	fault "clients that come and go leave nothing behind" come_and_go 127.0.0.1:7379 3000
	fault "$many clients at once are served" connections "$socket" $many
	has_closed() { [ "$(open_files)" -le "$before" ]; }
	check "all their files are closed" await 20 has_closed
	check "the daemon is the same as before" answers
	# The most that one client's replies may take, twice over, beside what it begins with.
	within "its memory was bounded, MiB" 1 "$(memory_mib)" 400
}

http_clients() {
	quietly_in host "$python" - 127.0.0.1 4002 3>&- <<- 'END' > "$work/said" 2>&1
		import socket, sys, urllib.request
		place = (sys.argv[1], int(sys.argv[2]))
		whole = b"POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{"
		held = [socket.create_connection(place) for _ in range(500)]
		for at, one in enumerate(held):
		    one.sendall(whole[:3 + at % 60])
		for _ in range(20):
		    url = f"http://{place[0]}:{place[1]}/v1/check?tenant=free"
		    assert urllib.request.urlopen(url, timeout=30).status == 200
		print("ok")
	END
	equal "half requests over HTTP are no hindrance" ok "$(cat "$work/said")"
}

without_files() {
	end TERM
	begin prlimit --nofile=200
	quietly_in host "$python" -B - "$socket" $daemon 3>&- <<- 'END' > "$work/said" 2>&1
		import os, sys, time
		sys.path.insert(0, "tests/e2e")
		import resp
		def cpu_s():
		    with open(f"/proc/{sys.argv[2]}/stat") as file:
		        words = file.read().rpartition(")")[2].split()
		    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
		first = resp.Client(sys.argv[1], 30)
		assert first.ask("PING") == b"PONG"
		held = [resp.Client(sys.argv[1], 30) for _ in range(400)]
		for _ in range(100):
		    assert first.ask("TENANT.HIT", "free")[0] == 1
		before = cpu_s()
		time.sleep(1)
		assert cpu_s() - before < 0.5, "it spins"
		for one in held:
		    one.close()
		last = resp.Client(sys.argv[1], 30)
		assert last.ask("PING") == b"PONG"
		print("ok")
	END
	equal "when files run out, it serves whom it has, does not spin, and serves others later" \
		ok "$(cat "$work/said")"
	end TERM
}

# ---- the disk

limit() { echo "{\"rate\":$1,\"burst\":5}"; }

# No byte is left. A change that fails gives back what its log has taken, so before each of them.
fill() {
	until ! dd if=/dev/zero of="$disk/filler_$((fillers = ${fillers:-0} + 1))" bs=4k 2> /dev/null ||
		[ "$(df --output=avail "$disk" | tail -n 1)" = 0 ]; do
		:
	done
}

# is_unchanged DESCRIPTION [PREPARE]: an override that cannot be stored
is_unchanged() {
	local prepare=${2:-true}

	$prepare
	equal "$1: an override is refused" "ERR store_unavailable" \
		"$(ask OVERRIDE.SET acme "$(limit 9)" | cut -d: -f1)"
	$prepare
	equal "$1: and taking one away" "ERR store_unavailable" \
		"$(ask OVERRIDE.DEL acme | cut -d: -f1)"
	$prepare
	equal "$1: over HTTP it is a 503" "503" \
		"$(quietly_in host curl -s -o "$work/said" -w '%{http_code}' -X PUT -d "$(limit 9)" \
			-H 'Authorization: Bearer secret' \
			http://127.0.0.1:4002/v1/tenants/acme/rate-limit)"
	equal "$1: which says so" store_unavailable "$(jq -r .error "$work/said")"
	equal "$1: what was in force is" "1 override" \
		"$(ask TENANT.EFFECTIVE acme | jq -r '"\(.rate) \(.source)"')"
	equal "$1: nothing is in the audit" 1 "$("$work/sluice" --socket "$socket" audit --json |
		jq '.audit | length')"
	equal "$1: tenants are answered" "1 0 -1 ok 0" "$(ask TENANT.HIT free)"
}

disks() {
	begin
	equal "an override is stored" OK "$(ask OVERRIDE.SET acme "$(limit 1)")"
	is_unchanged "disk full" fill
	end KILL
	fill
	begin
	is_unchanged "started on a full disk" fill
	rm "$disk"/filler_*
	equal "with room again, overrides are stored again" OK "$(ask OVERRIDE.SET acme "$(limit 2)")"
	equal "and with one, its record" 2 "$("$work/sluice" --socket "$socket" audit --json |
		jq '.audit | length')"
	ask OVERRIDE.DEL acme > /dev/null
	end TERM
	rm -rf "$disk/state"
	begin
	equal "a new one is stored" OK "$(ask OVERRIDE.SET acme "$(limit 1)")"
	lock_database
	is_unchanged "locked by another"
	kill $locker
	wait $locker 2> /dev/null
	equal "let go of, it is stored" OK "$(ask OVERRIDE.SET acme "$(limit 2)")"
	end TERM
	mount -o remount,ro "$disk"
	expect "it does not start on a disk that it can only read, and says so" 1 \
		"$disk/state/sluice.db.*[Rr]ead-only.*->" host timeout 20 "$work/sluiced" \
		--config "$work/sluice.yaml"
	mount -o remount,rw "$disk"
	begin
	equal "with a disk it does, and has the override" "2 override" \
		"$(ask TENANT.EFFECTIVE acme | jq -r '"\(.rate) \(.source)"')"
	end TERM
}

# Somebody looks at the database with sqlite3, and holds it.
lock_database() {
	"$python" - "$disk/state/sluice.db" 3>&- <<- 'END' > "$work/locked" &
		import sqlite3, sys, time
		connection = sqlite3.connect(sys.argv[1], isolation_level=None)
		connection.execute("BEGIN IMMEDIATE")
		print("locked", flush=True)
		time.sleep(300)
	END
	locker=$!
	await 10 grep -q locked "$work/locked" || give_up "cannot lock the database"
}

command -v redis-cli > /dev/null || give_up "redis-cli is not installed (sudo make deps)"
clients
http_clients
without_files
disks
equal "nothing was to be warned of but what was done to it" "" \
	"$(grep -vE 'answers|ended|[Tt]oo many open files|incomplete request|sluice.db' "$run/log")"
check "and that in few words" test "$(wc -l < "$run/log")" -lt 100
finish
