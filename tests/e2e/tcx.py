# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""tcx.py query DEVICE: the names of the programs that stand there, in order, on one line.
tcx.py attach DEVICE PROGRAM LINK first|last: attach a pinned program, and pin the link.

By the system call itself: neither ip nor bpftool of Debian 12 knows tcx. Says `none` where the
kernel does not, either."""
import ctypes
import os
import platform
import socket
import struct
import sys

CALL = {"x86_64": 321, "aarch64": 280}[platform.machine()]
OBJ_PIN, OBJ_GET, PROG_GET_FD_BY_ID, OBJ_GET_INFO, PROG_QUERY, LINK_CREATE = 6, 7, 13, 15, 16, 28
TCX_INGRESS, BEFORE, MOST, NAME_AT = 46, 1 << 3, 64, 64

libc = ctypes.CDLL(None, use_errno=True)


def bpf(command, *words):
    """One call; its attributes as (format, value)…, packed in order."""
    attributes = ctypes.create_string_buffer(
        struct.pack("=" + "".join(form for form, _ in words), *(value for _, value in words)), 128)
    result = libc.syscall(CALL, command, attributes, len(attributes))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result, attributes.raw


def address(buffer):
    return ctypes.addressof(buffer)


def path_buffer(path):
    return ctypes.create_string_buffer(os.fsencode(path))


def name_of(number):
    info = ctypes.create_string_buffer(256)
    fd, _ = bpf(PROG_GET_FD_BY_ID, ("I", number))
    bpf(OBJ_GET_INFO, ("I", fd), ("I", len(info)), ("Q", address(info)))
    os.close(fd)
    return info.raw[NAME_AT:NAME_AT + 16].split(b"\0")[0].decode()


def query(device):
    ids = (ctypes.c_uint32 * MOST)()
    _, answer = bpf(PROG_QUERY, ("I", socket.if_nametoindex(device)), ("I", TCX_INGRESS), ("I", 0),
                    ("I", 0), ("Q", address(ids)), ("I", MOST))
    count = struct.unpack_from("=I", answer, 24)[0]
    print(*[name_of(number) for number in ids[:count]])


def attach(device, program, link, where):
    path = path_buffer(program)
    fd, _ = bpf(OBJ_GET, ("Q", address(path)))
    fd, _ = bpf(LINK_CREATE, ("I", fd), ("I", socket.if_nametoindex(device)), ("I", TCX_INGRESS),
                ("I", BEFORE if where == "first" else 0))
    path = path_buffer(link)
    bpf(OBJ_PIN, ("Q", address(path)), ("I", fd))


try:
    {"query": query, "attach": attach}[sys.argv[1]](*sys.argv[2:])
except OSError as error:
    if error.errno != 22 or sys.argv[1] != "query":
        raise
    print("none")
