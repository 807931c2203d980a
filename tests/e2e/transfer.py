# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""transfer.py take ADDRESS PORT: take one TCP connection after another and read it to its end; prints
"ready" when it listens. transfer.py give ADDRESS PORT MEBIBYTES: send so much, and wait until it was
read."""
import socket
import sys

where, size = (sys.argv[2], int(sys.argv[3])), 1 << 20


def take():
    listener = socket.create_server(where)
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        with connection:
            while connection.recv(size):
                pass


def give():
    with socket.create_connection(where) as connection:
        for _ in range(int(sys.argv[4])):
            connection.sendall(bytes(size))
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)


{"take": take, "give": give}[sys.argv[1]]()
