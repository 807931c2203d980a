# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""faults.py FAULT PLACE [NUMBER]: does to a RESP server what clients do to servers, while another
client goes on asking. Prints "ok" if what the fault's function says holds and the other client had an
answer to each of its questions; else what went wrong. PLACE: a Unix socket, or host:port.
"""
import os
import random
import signal
import socket
import sys
import threading
import time

sys.dont_write_bytecode = True
import resp  # noqa: E402

PATIENCE_S = 60
BROKEN = (EOFError, ConnectionError)
HIT = resp.encode("TENANT.HIT", "free")
ADMITTED = [1, 0, -1, b"ok", 0]


class Other:
    """Somebody else, who asks all the time and has to be answered."""

    def __init__(self, place):
        self.client = resp.Client(place, PATIENCE_S)
        self.answers = 0
        self.slowest_s = 0.0
        self.failed = None
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            while not self.stopped.is_set() or not self.answers:
                start = time.monotonic()
                if self.client.ask("TENANT.HIT", "free") != ADMITTED:
                    raise ValueError("not admitted")
                self.answers += 1
                self.slowest_s = max(self.slowest_s, time.monotonic() - start)
                time.sleep(0.002)
        except Exception as error:  # pylint: disable=broad-except
            self.failed = error

    def await_more(self, count=20):
        wanted, end = self.answers + count, time.monotonic() + PATIENCE_S
        while self.answers < wanted and not self.failed and time.monotonic() < end:
            time.sleep(0.002)
        if self.failed or self.answers < wanted:
            raise AssertionError(f"the other client is not served: {self.failed}")

    def stop(self):
        self.stopped.set()
        self.thread.join(PATIENCE_S)
        if self.failed:
            raise AssertionError(f"the other client: {self.failed}")


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def read_end(client):
    """All that comes until the server closes."""
    try:
        while True:
            client.fill()
    except BROKEN:
        return client.buffer


# ---- faults


def slow_reader(place, other, _):
    """Sends as long as it is read, reads nothing; then all its replies are there, in order."""
    client = resp.Client(place, PATIENCE_S)
    chunk = resp.encode("INFO") * 1000
    client.socket.setblocking(False)
    sent, idle_since = 0, time.monotonic()
    while sent < 256 << 20 and time.monotonic() < idle_since + 1:
        try:
            sent += client.socket.send(chunk[sent % len(chunk):])
            idle_since = time.monotonic()
        except BlockingIOError:
            time.sleep(0.01)
    expect(sent < 256 << 20, "it is read without end")
    other.await_more()
    client.socket.settimeout(PATIENCE_S)
    for _ in range(sent // len(resp.encode("INFO"))):
        expect(b"# Sluice" in client.read(), "that is no INFO")
    other.await_more()


def half_a_command(place, other, number):
    """Each of many stops within a command, and is answered when the rest comes."""
    clients = [resp.Client(place, PATIENCE_S) for _ in range(number)]
    for at, client in enumerate(clients):
        client.socket.sendall(HIT[:1 + at % (len(HIT) - 1)])
    other.await_more()
    for at, client in enumerate(clients):
        client.socket.sendall(HIT[1 + at % (len(HIT) - 1):])
        expect(client.read() == ADMITTED, "the rest is not answered")


def connections(place, other, number):
    """All are answered, and answered again while all are there."""
    clients = [resp.Client(place, PATIENCE_S) for _ in range(number)]
    for _ in range(2):
        for client in clients:
            client.socket.sendall(HIT)
        for client in clients:
            expect(client.read() == ADMITTED, "not answered")
    other.await_more()


def come_and_go(place, other, number):
    """With nothing said, with half a word said, with a reply on its way."""
    for at in range(number):
        client = resp.Client(place, PATIENCE_S)
        if at % 3:
            client.socket.sendall(HIT[:5] if at % 3 == 1 else HIT)
        client.close()
    other.await_more()


def pipeline(place, other, number):
    """So many commands are sent before the first reply is read; then each has its reply."""
    client = resp.Client(place, PATIENCE_S)
    client.socket.sendall(HIT * number)
    other.await_more()
    for _ in range(number):
        expect(client.read() == ADMITTED, "not answered")


def half_closed(place, _, number):
    """Who says that it sends no more still gets what it has asked for."""
    client = resp.Client(place, PATIENCE_S)
    client.socket.sendall(HIT * number)
    client.socket.shutdown(socket.SHUT_WR)
    for _ in range(number):
        expect(client.read() == ADMITTED, "not answered")
    expect(read_end(client) == b"", "more than was asked for")


def huge(place, other, number):
    """What announces more than is allowed is refused when it is announced."""
    for announced in (b"*2\r\n$10\r\nTENANT.HIT\r\n$536870912\r\n", b"*2\r\n$536870912\r\n",
                      b"*1073741824\r\n", b"*2147483648\r\n", b"*1\r\n$-7\r\n",
                      b"*2\r\n$10\r\nTENANT.HIT\r\n$9223372036854775808\r\n"):
        for _ in range(number):
            client = resp.Client(place, PATIENCE_S)
            client.socket.sendall(announced)
            expect(read_end(client).startswith(b"-ERR Protocol error"), repr(announced))
            client.close()
    # A line without an end is, too. It is read on for a moment, so that the error arrives.
    client, end = resp.Client(place, PATIENCE_S), time.monotonic() + PATIENCE_S
    try:
        while time.monotonic() < end:
            client.socket.sendall(b"A" * (1 << 20))
        raise AssertionError("a line is read without end")
    except ConnectionError:
        pass
    other.await_more()


def garbage(place, other, number):
    """Whatever is sent, the server stays."""
    draw = random.Random(7)
    beginnings = [b"", b"*3\r\n$", b"*1\r\n$4\r\n", b"$", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
                  b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\0" * 100, b"\r\n" * 1000,
                  HIT[:-1] + b"\0", "TENANT.HIT free\r\n".encode("utf-16")]
    for at in range(number):
        client = resp.Client(place, PATIENCE_S)
        try:
            client.socket.sendall(beginnings[at % len(beginnings)] +
                                  draw.randbytes(draw.randrange(4096)))
            client.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        read_end(client)
        client.close()
    other.await_more()


def leases(place, other, number):
    """They end with a client that is killed."""
    pid = os.fork()
    if pid == 0:
        client = resp.Client(place, PATIENCE_S)
        held = [client.ask("QUEUE.ACQUIRE", "queued", 1)[0] for _ in range(number)]
        os.kill(os.getpid(), signal.SIGKILL if sum(held) == number else signal.SIGTERM)
    _, status = os.waitpid(pid, 0)
    expect(os.WTERMSIG(status) == signal.SIGKILL, "it could not have them")
    client, end = resp.Client(place, PATIENCE_S), time.monotonic() + PATIENCE_S
    while b"leases:0\r" not in client.ask("INFO", "sluice"):
        expect(time.monotonic() < end, "they are still held")
        time.sleep(0.01)
    expect(client.ask("QUEUE.ACQUIRE", "queued", 1)[0] == 1, "their room is not free")
    other.await_more()


def main(fault, place, number="0"):
    other = Other(place)
    try:
        {function.__name__: function for function in (
            slow_reader, half_a_command, connections, come_and_go, pipeline, half_closed, huge,
            garbage, leases)}[fault](place, other, int(number))
        other.stop()
    except (AssertionError, OSError, EOFError, resp.ReplyError) as error:
        print(f"{type(error).__name__}: {error}")
        return
    print(f"the other client: {other.answers} answers, the slowest in "
          f"{other.slowest_s * 1000:.0f} ms", file=sys.stderr)
    print("ok")


main(*sys.argv[1:])
