"""Memory and processes of others: the zygote, the parent with the oracle's data, the candidate next door."""

from __future__ import annotations

import ctypes
import glob
import os
from typing import Any

from tools import CHUNK, Attempts, Planted, call

ATTACH, SEIZE = 16, 0x4206


class Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def own_memory(planted: Planted) -> list[str]:
    """What the fork has left in this process of anything that others hold."""
    found = set()
    with open("/proc/self/maps") as maps:
        regions = [line.split() for line in maps if " rw-p " in line]
    for span, *_ in regions:
        start, end = (int(part, 16) for part in span.split("-"))
        for at in range(start, end, CHUNK - 64):
            found.update(planted.found_in(ctypes.string_at(at, min(CHUNK, end - at))))
    return sorted(found)


def read_remote(pid: int, write: bool = False) -> int:
    """A word of another process, at an address that the fork has made the same in both."""
    buffer = ctypes.create_string_buffer(8)
    here = Vector(ctypes.addressof(buffer), 8)
    there = Vector(ctypes.cast(ctypes.pythonapi.Py_GetVersion, ctypes.c_void_p).value, 8)
    name = "process_vm_writev" if write else "process_vm_readv"
    return call(name, pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)


def others() -> list[str]:
    """Processes to be seen that are not this one."""
    own = {"self", "thread-self", str(os.getpid())}
    return [name for name in os.listdir("/proc") if name.isdigit() and name not in own]


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(64)


def attempts(want: dict[str, Any]) -> Attempts:
    planted = Planted(want)
    if want["place"] == "import":  # what the fork leaves is the same everywhere, and takes a second to search
        yield "own memory", lambda: own_memory(planted)
    yield "own see others!", others
    yield "own mem file", lambda: planted.found_in(read("/proc/self/mem"))
    for who, pid in want["pids"].items():
        for name in ("mem", "environ", "maps", "cmdline", "stack", "syscall"):
            mark = "!" if (who, name) == ("parent", "cmdline") else ""
            yield f"{who} {name}{mark}", lambda pid=pid, name=name: read(f"/proc/{pid}/{name}")
        for name in ("fd", "task", "map_files", "root/", "cwd/"):
            yield f"{who} {name}", lambda pid=pid, name=name: os.listdir(f"/proc/{pid}/{name}")
        yield f"{who} read remotely", lambda pid=pid: read_remote(pid)
        yield f"{who} write remotely", lambda pid=pid: read_remote(pid, write=True)
        yield f"{who} attach", lambda pid=pid: call("ptrace", ATTACH, pid, 0, 0)
        yield f"{who} seize", lambda pid=pid: call("ptrace", SEIZE, pid, 0, 0)
        yield f"{who} pidfd!", lambda pid=pid: call("pidfd_open", pid, 0)
        yield f"{who} take descriptor", lambda pid=pid: call("pidfd_getfd", call("pidfd_open", pid, 0), 0, 0)
        yield f"{who} compare", lambda pid=pid: call("kcmp", os.getpid(), pid, 0, 0, 0)
        yield f"{who} move pages", lambda pid=pid: call("move_pages", pid, 0, None, None, None, 0)
    yield "own tracing", lambda: ["traced"] if _can_be_traced() else []
    yield "kernel memory", lambda: read("/proc/kcore")
    yield "device memory", lambda: read("/dev/mem")
    yield "core dumps of others", lambda: glob.glob("/var/crash/*")[0] if os.listdir("/var/crash") else None


def _can_be_traced() -> bool:
    """Being traced would let a child of ours answer in our place after our death."""
    try:
        call("ptrace", 0, 0, 0, 0)
    except OSError:
        return False
    return True
