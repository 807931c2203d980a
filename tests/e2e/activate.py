# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""activate.py [--names A:B…] [--promise N] LISTEN… -- COMMAND…: a supervisor that opens sockets and
hands them to the command it runs, from descriptor 3 on. LISTEN is a path, ADDRESS:PORT, or
datagram:PATH. When the command ends its status is printed, and the sockets stay open: SIGUSR1 runs it
again, SIGTERM ends it and us. --promise: say that there are so many, whatever there are."""
import os
import signal
import socket
import sys


def open_socket(where):
    if where.startswith("datagram:"):
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        opened.bind(where.removeprefix("datagram:"))
        return opened
    if where.startswith("/"):
        opened = socket.socket(socket.AF_UNIX)
        opened.bind(where)
    else:
        address, port = where.rsplit(":", 1)
        opened = socket.socket(socket.AF_INET)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((address, int(port)))
    opened.listen(64)
    return opened


def run(command, opened, environment):
    pid = os.fork()
    if pid:
        return pid
    # Out of the way first: one of them may be where another has to go.
    high = [os.dup2(one.fileno(), 100 + at) for at, one in enumerate(opened)]
    for at, number in enumerate(high):
        os.dup2(number, 3 + at)
        os.close(number)
    os.environ.update(environment, LISTEN_PID=str(os.getpid()))
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.execvp(command[0], command)


def main(words):
    names, promised = None, None
    while words[0].startswith("--"):
        if words[0] == "--names":
            names = words[1]
        else:
            promised = words[1]
        words = words[2:]
    split = words.index("--")
    opened = [open_socket(where) for where in words[:split]]
    command = words[split + 1:]
    environment = {"LISTEN_FDS": promised or str(len(opened))}
    if names is not None:
        environment["LISTEN_FDNAMES"] = names
    signals = {signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    pid = run(command, opened, environment)
    while True:
        number = signal.sigwait(signals)
        if number == signal.SIGUSR1 and not pid:
            pid = run(command, opened, environment)
        elif number == signal.SIGTERM:
            if pid:
                os.kill(pid, signal.SIGTERM)
                os.waitpid(pid, 0)
            return
        elif number == signal.SIGCHLD and pid and os.waitpid(pid, os.WNOHANG)[0] == pid:
            pid = 0
            print("ended", flush=True)


main(sys.argv[1:])
