# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A client of RESP2 as small as it can be, that also sends what no client should."""
import socket


class ReplyError(Exception):
    """An error reply."""


class Client:
    """place: the path of a Unix socket, or host:port. Everything waits for patience_s at most."""

    def __init__(self, place, patience_s=60):
        if place.startswith("/"):
            self.socket = socket.socket(socket.AF_UNIX)
            address = place
        else:
            self.socket = socket.socket(socket.AF_INET)
            address = (place.rsplit(":", 1)[0], int(place.rsplit(":", 1)[1]))
        self.socket.settimeout(patience_s)
        self.socket.connect(address)
        self.buffer = b""

    def fill(self):
        piece = self.socket.recv(1 << 16)
        if not piece:
            raise EOFError("the server has closed the connection")
        self.buffer += piece

    def read_line(self):
        while b"\r\n" not in self.buffer:
            self.fill()
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def read(self):
        """One reply: int, bytes, None or a list. An error is raised."""
        line = self.read_line()
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise ReplyError(rest.decode("utf-8", "replace"))
        if kind == b"+":
            return rest
        if kind == b":":
            return int(rest)
        if kind == b"*":
            return [self.read() for _ in range(int(rest))]
        if kind != b"$":
            raise ValueError(f"no reply: {line!r}")
        if int(rest) < 0:
            return None
        while len(self.buffer) < int(rest) + 2:
            self.fill()
        value, self.buffer = self.buffer[:int(rest)], self.buffer[int(rest) + 2:]
        return value

    def ask(self, *words):
        self.socket.sendall(encode(*words))
        return self.read()

    def close(self):
        self.socket.close()


def encode(*words):
    out = b"*%d\r\n" % len(words)
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode()
        out += b"$%d\r\n%s\r\n" % (len(word), word)
    return out
