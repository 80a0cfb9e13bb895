"""Signals to others, ways to have the kernel send them, and other people's limits and schedules."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
from typing import Any

from tools import Attempts, call

SIGKILL = int(signal.SIGKILL)
F_SETOWN, F_SETSIG = 8, 10


def owned_by(pid: int) -> str:
    """Input on a descriptor sends its owner a signal of our choice."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        fcntl.fcntl(ours, F_SETOWN, pid)
        fcntl.fcntl(ours, F_SETSIG, SIGKILL)
        flags = fcntl.fcntl(ours, fcntl.F_GETFL)
        fcntl.fcntl(ours, fcntl.F_SETFL, flags | os.O_ASYNC)
        theirs.send(b"x")
    return "sent"


def attempts(want: dict[str, Any]) -> Attempts:
    information = ctypes.create_string_buffer(128)
    mask = ctypes.c_ulong(1)
    limit = (ctypes.c_ulong * 2)(1, 1)
    for who, pid in want["pids"].items():
        yield f"{who} exists!", lambda pid=pid: os.kill(pid, 0)
        yield f"{who} kill", lambda pid=pid: os.kill(pid, SIGKILL)
        yield f"{who} stop", lambda pid=pid: os.kill(pid, signal.SIGSTOP)
        yield f"{who} kill group", lambda pid=pid: os.killpg(pid, SIGKILL)
        yield f"{who} kill thread", lambda pid=pid: call("tgkill", pid, pid, SIGKILL)
        yield f"{who} queue", lambda pid=pid: call("rt_sigqueueinfo", pid, SIGKILL, information)
        yield (
            f"{who} kill by descriptor",
            lambda pid=pid: call("pidfd_send_signal", call("pidfd_open", pid, 0), SIGKILL, None, 0),
        )
        yield f"{who} own descriptor", lambda pid=pid: owned_by(pid)
        yield f"{who} limit", lambda pid=pid: call("prlimit64", pid, 0, ctypes.byref(limit), None)
        yield f"{who} pin", lambda pid=pid: call("sched_setaffinity", pid, 8, ctypes.byref(mask))
        yield f"{who} slow down", lambda pid=pid: call("setpriority", 0, pid, 19)
        yield f"{who} idle disk", lambda pid=pid: call("ioprio_set", 1, pid, 3 << 13)
    # To parent 0, which is nobody, and to everybody else: nobody is there.
    yield "everyone", lambda: os.kill(-1, SIGKILL)
    yield "speed up", lambda: call("setpriority", 0, 0, -20)
    yield "new session", lambda: call("setsid")
    yield "new group", lambda: os.setpgid(0, 0)
