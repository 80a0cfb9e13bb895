"""Channels to other processes: sockets, shared memory, queues, locks and notices on files that all jobs can read."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import socket
import struct
from typing import Any

from tools import Attempts, call, libc

SHARED = os.__file__
IN_ALL, NOTIFY_ACCESS = 0xFFF, 1


def connect(family: int, address: Any) -> str:
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.settimeout(2)
        client.connect(address)
        return "connected"


def send(family: int, address: Any) -> int:
    with socket.socket(family, socket.SOCK_DGRAM) as client:
        return client.sendto(b"x", address)


def shared_object(name: str) -> str:
    with open("/dev/shm/" + name, "xb"):
        pass
    os.unlink("/dev/shm/" + name)
    return name


def watch(path: str) -> int:
    fd = libc.inotify_init1(0)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "inotify")
    watched = libc.inotify_add_watch(fd, path.encode(), IN_ALL)
    if watched < 0:
        raise OSError(ctypes.get_errno(), "inotify")
    return watched


def lock(how: str) -> str:
    """A lock or lease on a library that every job reads."""
    with open(SHARED, "rb") as file:
        match how:
            case "flock":
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            case "lockf":
                fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            case "open file description":
                fcntl.fcntl(file, 37, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0))
            case "lease":
                fcntl.fcntl(file, 1024, fcntl.F_RDLCK)
    return how


def notices() -> int:
    folder = os.open(os.path.dirname(SHARED), os.O_RDONLY)
    return fcntl.fcntl(folder, 1026, NOTIFY_ACCESS)


def map_shared(flags: int) -> str:
    with mmap.mmap(-1, 4096, flags=flags):
        return "mapped"


def attempts(want: dict[str, Any]) -> Attempts:
    yield "tcp!", lambda: connect(socket.AF_INET, ("127.0.0.1", want["port"]))
    yield "tcp 6", lambda: connect(socket.AF_INET6, ("::1", want["port"]))
    yield "tcp to the world", lambda: connect(socket.AF_INET, ("192.0.2.1", 80))
    yield "abstract socket!", lambda: connect(socket.AF_UNIX, "\0" + want["abstract"])
    yield "named socket!", lambda: connect(socket.AF_UNIX, want["socket"])
    yield "udp", lambda: send(socket.AF_INET, ("127.0.0.1", want["port"]))
    yield "netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    yield "vsock", lambda: connect(socket.AF_VSOCK, (2, 1))
    yield "packets", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    yield "kernel crypto", lambda: socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET, 0)
    yield "shared object", lambda: shared_object("tilewright-attack")
    yield "shared memory", lambda: call("shmget", 0x7411, 4096, 0o1666)
    yield "message queue", lambda: call("msgget", 0x7411, 0o1666)
    yield "semaphores", lambda: call("semget", 0x7411, 1, 0o1666)
    yield "posix queue", lambda: call("mq_open", ctypes.c_char_p(b"tilewright"), 0o102, 0o600, None)
    yield "memory file!", lambda: call("memfd_create", ctypes.c_char_p(b"x"), 0)
    yield "secret memory file", lambda: call("memfd_secret", 0)
    yield "shared mapping!", lambda: map_shared(mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
    yield "named pipe", lambda: os.mkfifo("pipe")
    yield "device", lambda: os.mknod("null", 0o20666, os.makedev(1, 3))
    yield "watch a shared folder!", lambda: watch(os.path.dirname(SHARED))
    for how in ("flock", "lockf", "open file description"):
        yield f"lock by {how}!", lambda how=how: lock(how)
    yield "lease", lambda: lock("lease")
    yield "notices", notices
    yield "key", lambda: call("add_key", ctypes.c_char_p(b"user"), ctypes.c_char_p(b"x"), ctypes.c_char_p(b"y"), 1, -3)
    yield "keyring", lambda: call("keyctl", 0, -3, 1)
