# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""serve.py ADDRESS PORT: a TCP server that sends back what it is sent, one connection after
another, until it is killed. Prints "ready" when it listens."""
import socket
import sys

family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
listener = socket.socket(family, socket.SOCK_STREAM)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind((sys.argv[1], int(sys.argv[2])))
listener.listen(16)
print("ready", flush=True)
while True:
    connection, _ = listener.accept()
    with connection:
        while piece := connection.recv(65536):
            connection.sendall(piece)
