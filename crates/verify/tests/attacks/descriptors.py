"""Inherited descriptors: what they are, what can be read from them, who is at the other end."""

from __future__ import annotations

import fcntl
import os
import socket
import stat
import struct
import termios
from typing import Any

from tools import Attempts, Planted

JOB = 3


def numbers() -> list[int]:
    """Open descriptors that a child should not have: not nothing, the output pipe twice and the job's socket."""
    found = []
    for fd in range(4096):
        try:
            os.fstat(fd)
        except OSError:
            continue
        if fd > JOB and not ours(fd):
            found.append(fd)
    return found


def ours(fd: int) -> bool:
    """Whether it is a file of the job's own, such as the one that catches a compiler's complaints, or its output."""
    return os.readlink(f"/proc/self/fd/{fd}").startswith(os.getcwd()) or os.path.samestat(os.fstat(fd), os.fstat(1))


def kinds() -> list[str]:
    """What the four are, where they are not what they should be."""
    wanted = [stat.S_IFCHR, stat.S_IFIFO, stat.S_IFIFO, stat.S_IFSOCK]
    return [f"{fd}" for fd in range(4) if stat.S_IFMT(os.fstat(fd).st_mode) != wanted[fd] and not ours(fd)]


def read_back(fd: int, planted: Planted) -> list[str]:
    """What was printed by us or by others."""
    os.set_blocking(fd, False)
    return planted.found_in(os.read(fd, 4096))


def peer() -> list[int]:
    """Number of the process at the other end, if we can tell."""
    with socket.socket(fileno=os.dup(JOB)) as job:
        pid = struct.unpack("iii", job.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    return [pid] if pid > 0 else []


def waiting(planted: Planted) -> list[str]:
    """A second request, or one of another job, that waits in the socket."""
    with socket.socket(fileno=os.dup(JOB)) as job:
        try:
            return [*planted.found_in(job.recv(1 << 20, socket.MSG_DONTWAIT)), "something"]
        except BlockingIOError:
            return []


def reopen(fd: int, planted: Planted) -> list[str]:
    """The same thing, opened anew for reading: rights of the original do not count."""
    return read_back(os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_NONBLOCK), planted)


def attempts(want: dict[str, Any]) -> Attempts:
    planted = Planted(want)
    yield "own numbers", numbers
    yield "own kinds", kinds
    yield "own peer", peer
    yield "own requests", lambda: waiting(planted)
    for fd in (1, 2):
        yield f"own output {fd}", lambda fd=fd: read_back(fd, planted)
        yield f"own output {fd} anew", lambda fd=fd: reopen(fd, planted)
    yield "reopen the job", lambda: reopen(JOB, planted)
    yield "type into a terminal", lambda: fcntl.ioctl(0, termios.TIOCSTI, b"x")
    yield "controlling terminal", lambda: os.open("/dev/tty", os.O_RDWR)
    yield "folder above", lambda: os.open("/proc/self/fd/0/..", os.O_RDONLY | os.O_DIRECTORY)
