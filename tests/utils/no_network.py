"""Run a program that the kernel ends when it opens a socket to a network: `python no_network.py PROGRAM ARGUMENTS...`

A seccomp filter (Linux; include/uapi/linux/seccomp.h and filter.h) holds for native code and for every thread and child
too, where Python's audit hooks see only Python. Sockets of this machine alone (AF_UNIX) stay allowed.
"""

import ctypes
import os
import platform
import socket
import struct
import sys

SOCKET = {"x86_64": 41, "aarch64": 198}.get(platform.machine(), -1)  # number of the system call
SUPPORTED = sys.platform == "linux" and SOCKET >= 0
LOAD, IS, RETURN = 0x20, 0x15, 0x06
NUMBER, FIRST_ARGUMENT = 0, 16  # offsets in struct seccomp_data
ALLOW, KILL = 0x7FFF0000, 0x80000000
STEPS = (
    (LOAD, 0, 0, NUMBER),
    (IS, 0, 3, SOCKET),  # another call: on to ALLOW
    (LOAD, 0, 0, FIRST_ARGUMENT),
    (IS, 2, 0, int(socket.AF_INET)),
    (IS, 1, 0, int(socket.AF_INET6)),
    (RETURN, 0, 0, ALLOW),
    (RETURN, 0, 0, KILL),
)
NO_NEW_PRIVILEGES, SET_SECCOMP, FILTER = 38, 22, 2


class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def forbid() -> None:
    """From here on this process may open no socket to a network."""
    code = b"".join(struct.pack("HBBI", *step) for step in STEPS)
    steps = ctypes.create_string_buffer(code, len(code))
    program = Program(len(STEPS), ctypes.addressof(steps))
    libc = ctypes.CDLL(None, use_errno=True)
    for call in ((NO_NEW_PRIVILEGES, 1, 0, 0, 0), (SET_SECCOMP, FILTER, ctypes.byref(program), 0, 0)):
        if libc.prctl(*call):
            raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    forbid()
    os.execv(sys.argv[1], sys.argv[1:])
