# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""fetch.py ADDRESS PORT BYTES [SOURCE]: sends random bytes to serve.py over one TCP connection, and
reads them back. Succeeds if all of them came back right within a minute."""
import os
import socket
import sys
import threading

address, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
source = (sys.argv[4], 0) if len(sys.argv) > 4 else None
sent = os.urandom(count)
received = bytearray()
connection = socket.create_connection((address, port), timeout=60, source_address=source)


def send():
    connection.sendall(sent)
    connection.shutdown(socket.SHUT_WR)


sender = threading.Thread(target=send, daemon=True)
sender.start()
while piece := connection.recv(65536):
    received += piece
sys.exit(0 if bytes(received) == sent else f"{len(received)} of {count} bytes, or not the same")
