# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""requests.py ADDRESS PORT: an honest client. Over one TCP connection it asks serve.py, waits for the
answer, pauses 5 ms, and asks again, until SIGTERM. Then it closes and prints how many were answered
and how long the slowest took. An answer that is wrong, or that does not come within a minute, ends it
with an error."""
import os
import signal
import socket
import sys
import time

stopped = []
signal.signal(signal.SIGTERM, lambda number, frame: stopped.append(number))
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=60)
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
answered, slowest_s = 0, 0.0
while not stopped:
    asked = os.urandom(64)
    start = time.monotonic()
    connection.sendall(asked)
    answer = b""
    while len(answer) < len(asked):
        piece = connection.recv(len(asked) - len(answer))
        if not piece:
            sys.exit(f"closed after {answered} requests")
        answer += piece
    if answer != asked:
        sys.exit(f"a wrong answer after {answered} requests")
    answered += 1
    slowest_s = max(slowest_s, time.monotonic() - start)
    time.sleep(0.005)
connection.close()
print(f"{answered} {slowest_s:.3f}")
