# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""killed.py [--children] CALLS COMMAND…: runs a command and kills it with SIGKILL as it enters
its CALLS-th system call, which is then not carried out; 0: never. --children: its children, too.
Prints how many calls it has entered. Which moments are tried depends so on what the program does,
not on how fast the machine is."""
import ctypes
import os
import signal
import sys

TRACEME, SYSCALL, SETOPTIONS = 0, 24, 0x4200
OPTION_TRACESYSGOOD, OPTION_EXITKILL = 1, 1 << 20

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request, pid, data=0):
    if libc.ptrace(request, pid, None, ctypes.c_void_p(data)) < 0:
        raise OSError(ctypes.get_errno(), "ptrace")


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def run(calls, command, and_children):
    pid = os.fork()
    if pid == 0:
        ptrace(TRACEME, 0)
        os.execvp(command[0], command)
    os.waitpid(pid, 0)  # stopped by its exec
    ptrace(SETOPTIONS, pid, OPTION_TRACESYSGOOD | OPTION_EXITKILL)
    entered, inside, passed_on = 0, False, 0
    while True:
        ptrace(SYSCALL, pid, passed_on)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSTOPPED(status):
            return entered
        passed_on = 0
        if os.WSTOPSIG(status) != signal.SIGTRAP | 0x80:
            passed_on = os.WSTOPSIG(status)
            continue
        inside = not inside
        entered += inside
        if inside and entered == calls:
            for victim in children_of(pid) if and_children else []:
                os.kill(victim, signal.SIGKILL)
            os.kill(pid, signal.SIGKILL)


words = sys.argv[1:]
with_children = words[0] == "--children"
words = words[with_children:]
print(run(int(words[0]), words[1:], with_children))
