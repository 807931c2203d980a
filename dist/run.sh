#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# sudo make run: the main job, on two network namespaces and a veth pair made for it.
#
#      world                                        server
#   198.18.0.2  an honest client  ──┐
#   198.18.10.1 a flood           ──┼── out ═══ in ── sluice (native XDP) ── 198.18.0.1, HTTP on 443
#   anywhere    a larger flood    ──┘
#
# Everything is taken away again at the end, on an error and on Ctrl-C. With IFACE=eth0 it attaches to
# that interface of the machine instead, and takes it back unless Enter is pressed within 30 seconds.
set -eu

cd "$(dirname "$0")/.."
SLUICE=build/sluice
SLUICED=build/sluiced
FLOOD=build/tests/bench/flood
[ "$(id -u)" = 0 ] || { echo "make run loads a program into the kernel: use sudo make run" >&2; exit 77; }

if [ -n "${IFACE:-}" ]; then
	config=${CONFIG:-dist/sluice.yaml}
	echo "Attaching to $IFACE with $config. It limits what that file protects, nothing else."
	$SLUICE attach "$IFACE" --config "$config" --confirm "${CONFIRM:-30s}"
	$SLUICE status
	echo "See docs/operations.md. To take it off: $SLUICE detach $IFACE"
	exit 0
fi

id=$$
server=sluice-server-$id world=sluice-world-$id
work=$(mktemp -d)
bpffs=$work/bpf
jobs_to_end=()

clean_up() {
	trap - EXIT
	trap '' INT TERM # a second Ctrl-C must not cut this short
	set +e
	for job in "${jobs_to_end[@]}"; do kill "$job"; wait "$job"; done 2> /dev/null
	in_server $SLUICE --bpffs "$bpffs/sluice" detach --all > /dev/null 2>&1 || true
	ip netns del "$server" 2>/dev/null || true
	ip netns del "$world" 2>/dev/null || true
	umount "$bpffs" 2>/dev/null || true
	rm -rf "$work"
}
trap clean_up EXIT
trap 'echo; echo "Interrupted: cleaning up."; exit 130' INT TERM

# nsenter becomes the command it runs, so that the number of a background job is the command's own.
server_ns=(nsenter "--net=/var/run/netns/$server")
world_ns=(nsenter "--net=/var/run/netns/$world")
in_server() { "${server_ns[@]}" "$@"; }
in_world() { "${world_ns[@]}" "$@"; }
sluice() { in_server $SLUICE --bpffs "$bpffs/sluice" "$@"; }
step() { printf '\n\033[1m== %s\033[0m\n' "$*" | { [ -t 1 ] && cat || sed 's/\x1b\[[0-9;]*m//g'; }; }
show() { echo "\$ sluice $*"; sluice "$@"; }

make_network() {
	mkdir "$bpffs"
	mount -t bpf bpf "$bpffs"
	ip netns add "$server"
	ip netns add "$world"
	ip link add in netns "$server" type veth peer name out netns "$world"
	in_server ip link set lo up
	in_server ip addr add 198.18.0.1/15 dev in
	in_server ip link set in up
	in_world ip addr add 198.18.0.2/15 dev out
	in_world ip link set out up
}

write_config() {
	cat > "$work/sluice.yaml" <<-YAML
	protect: [tcp/443]
	rate_limits:
	  per_ip:
	    connections: {rate: 20, burst: 40}
	    packets: {rate: 2000, burst: 4000}
	  node:
	    connections: {rate: 2000, burst: 4000}
	YAML
	sed 's/^/    /' "$work/sluice.yaml"
}

# A web server, and a client that keeps one connection and asks twenty times a second.
start_honest_pair() {
	"${server_ns[@]}" python3 -c '
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Length", "3"); self.end_headers()
        self.wfile.write(b"ok\n")
    def log_message(self, *arguments): pass
http.server.ThreadingHTTPServer(("198.18.0.1", 443), Handler).serve_forever()' &
	jobs_to_end+=($!)
	echo 0 > "$work/served"
	"${world_ns[@]}" python3 -c '
import http.client, os, sys, time
served, connection = 0, None
while True:
    try:
        if connection is None:
            connection = http.client.HTTPConnection("198.18.0.1", 443, timeout=2)
        connection.request("GET", "/"); connection.getresponse().read(); served += 1
    except Exception:
        connection = None
    with open(sys.argv[1] + ".new", "w") as file: file.write("%d\n" % served)
    os.rename(sys.argv[1] + ".new", sys.argv[1])
    time.sleep(0.05)' "$work/served" &
	jobs_to_end+=($!)
	for _ in $(seq 100); do
		[ "$(cat "$work/served")" -gt 2 ] && return
		sleep 0.1
	done
	echo "the honest client was never served" >&2
	exit 1
}

totals() {
	sluice stats --json | jq -r '.counters | [.admitted.packets, .refused.ip_connections.packets,
		.refused.ip_packets.packets, .refused.node_connections.packets, .exempt.packets,
		.refused.deny.packets] | @tsv'
}

# watch SECONDS: one line a second of what is new.
watch() {
	local before after served then
	printf '%10s %15s %11s %17s %9s %9s %18s\n' admitted/s ip_connections/s ip_packets/s \
		node_connections/s exempt/s deny/s 'honest client'
	read -r -a before <<< "$(totals)"
	then=$(cat "$work/served")
	for _ in $(seq "$1"); do
		sleep 1
		read -r -a after <<< "$(totals)"
		served=$(cat "$work/served")
		printf '%10d %15d %11d %17d %9d %9d %10d served\n' $((after[0] - before[0])) \
			$((after[1] - before[1])) $((after[2] - before[2])) $((after[3] - before[3])) \
			$((after[4] - before[4])) $((after[5] - before[5])) $((served - then))
		before=("${after[@]}") then=$served
	done
}

# flood SECONDS OPTION...: SYNs to port 443, a million a second.
flood() {
	local seconds=$1
	shift
	"${world_ns[@]}" $FLOOD --dev out --seconds "$seconds" --destination 198.18.0.1 --kind syn \
		--rate 1000000 "$@" > "$work/flood" 2>&1 &
	flooding=$!
	jobs_to_end+=("$flooding")
}

start_daemon() {
	"${server_ns[@]}" $SLUICED --config "$work/daemon.yaml" &
	daemon=$!
	jobs_to_end+=("$daemon")
	for _ in $(seq 100); do
		sluice --socket "$work/sluice.sock" tenant list > /dev/null 2>&1 && return
		sleep 0.1
	done
	echo "the daemon does not answer" >&2
	exit 1
}

ask_daemon() {
	echo "\$ sluice $*"
	sluice --socket "$work/sluice.sock" "$@"
}

ended() { wait "$flooding" || true; sed 's/^/flood: /' "$work/flood"; }

step "A network of its own: namespaces $world and $server, joined by a veth pair"
make_network
step "The configuration: 20 new connections a second for each address, 2000 for the node"
write_config
show attach in --config "$work/sluice.yaml" --mode native
start_honest_pair
step "An honest client: one connection, twenty requests a second"
watch 2

step "A flood of a million SYNs a second from one address"
flood 5 --source 198.18.10.1
watch 3
step "That address while it floods, and the same word by bpftool"
show ip show 198.18.10.1
lookup=$(sluice ip show 198.18.10.1 --json | jq -r .bpftool)
echo "\$ $lookup"
in_server $lookup
ended
step "The same from a thousand addresses"
flood 4 --sources 1000 --source-base 198.19.16.0/20
watch 3
ended
step "The same, every packet from a new address: now the node's limit holds"
flood 4 --sources random
watch 3
ended

step "Who was refused"
show top -n 3
step "The first lines of a map, by bpftool"
echo "\$ bpftool map dump pinned $bpffs/sluice/v2/offenders"
in_server bpftool map dump pinned "$bpffs/sluice/v2/offenders" > "$work/dump"
head -n 16 "$work/dump"

step "Exempt the flooding address: it is not charged any more"
show ip exempt 198.18.10.1
flood 3 --source 198.18.10.1
watch 2
ended
step "Deny its whole network instead: always refused"
show ip clear 198.18.10.1
show ip deny 198.18.10.0/24
flood 3 --source 198.18.10.1
watch 2
ended

step "The daemon: tenants, after a request has proved who it is. Two hooks at once, one in ten seconds"
cat > "$work/daemon.yaml" <<-YAML
	bpffs: $bpffs/sluice
	state: $work/state
	listen: {unix: $work/sluice.sock, http: null}
	rate_limits:
	  default: {rate: 0.1, burst: 2}
YAML
sed 's/^/    /' "$work/daemon.yaml"
start_daemon
for _ in 1 2 3; do ask_daemon tenant hit acme || true; done
step "An override lifts it while the daemon runs, and the audit knows who did it"
ask_daemon tenant set acme --rate 100 --burst 200 --ttl 1h
ask_daemon tenant hit acme
ask_daemon audit
step "Debts outlive the daemon: globex spends its burst, then kill -9, then it asks again"
for _ in 1 2; do ask_daemon tenant hit globex || true; done
kill -9 "$daemon"
wait "$daemon" 2> /dev/null || true
start_daemon
ask_daemon tenant hit globex || true
echo "\$ bpftool map dump pinned $bpffs/sluice/daemon/tenants   (the slots that are in use)"
in_server bpftool -j map dump pinned "$bpffs/sluice/daemon/tenants" |
	jq -c '.[].formatted.value | select(.hash > 1) | {tat, hash}'
kill "$daemon"

step "In sum"
show status
show stats
step "Taking it off, and everything else away"
show detach in
