"""What every attack needs: raw system calls, the hunt for planted bytes, and the report.

An attack is a file with a function `attempts(want)` that yields pairs of a name and an action. `want` says where the
test has planted what. How a name reads decides what the test demands of the action in a cell:
- `own …` may succeed, and then must have found nothing (`[]`);
- any other must be refused by the system.
A name that ends with `!` must succeed where there is no cell, which shows that the attack is one.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
from collections.abc import Callable, Iterator
from typing import Any

Attempts = Iterator[tuple[str, Callable[[], Any]]]

libc = ctypes.CDLL(None, use_errno=True)
MARK = "\n@@report "
CHUNK = 8 << 20

# Numbers on x86-64.
CALLS = {
    "mmap": 9, "shmget": 29, "ptrace": 101, "setsid": 112, "personality": 135, "setpriority": 141, "mlock": 149,
    "pivot_root": 155, "modify_ldt": 154, "mount": 165, "reboot": 169, "iopl": 172, "init_module": 175,
    "sched_setaffinity": 203, "io_setup": 206, "mq_open": 240, "kexec_load": 246, "add_key": 248, "request_key": 249,
    "keyctl": 250, "ioprio_set": 251, "unshare": 272, "move_pages": 279, "signalfd": 282, "perf_event_open": 298,
    "fanotify_init": 300, "prlimit64": 302, "name_to_handle_at": 303, "open_by_handle_at": 304, "setns": 308,
    "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "memfd_create": 319, "bpf": 321, "execveat": 322,
    "userfaultfd": 323, "msgget": 68, "semget": 64, "clone": 56, "rt_sigqueueinfo": 129, "tgkill": 234,
    "pidfd_send_signal": 424, "io_uring_setup": 425, "open_tree": 428, "move_mount": 429, "fsopen": 430,
    "pidfd_open": 434, "clone3": 435, "openat2": 437, "pidfd_getfd": 438, "process_madvise": 440,
    "mount_setattr": 442, "quotactl_fd": 443, "memfd_secret": 447, "fchmodat2": 452, "setxattrat": 463,
    "open_tree_attr": 467, "file_setattr": 469,
}  # fmt: skip


def call(name: str, *arguments: Any) -> int:
    """A raw system call; whole numbers are passed as such, all else as ctypes has it."""
    ctypes.set_errno(0)
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = libc.syscall(ctypes.c_long(CALLS[name]), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result


class Planted:
    """The bytes to look for, kept in halves, so that a search of our own memory does not find the search."""

    def __init__(self, want: dict[str, Any]) -> None:
        halves = want["canaries"]
        self.halves = {name: (bytes.fromhex(first), bytes.fromhex(rest)) for name, (first, rest) in halves.items()}

    def found_in(self, data: bytes | bytearray) -> list[str]:
        """Names of the planted things that lie in the data."""
        return [name for name, (first, rest) in self.halves.items() if _follows(data, first, rest)]

    def found_in_file(self, path: str) -> list[str]:
        """The same for the head of a file."""
        with open(path, "rb") as file:
            return self.found_in(file.read(CHUNK))


def _follows(data: bytes | bytearray, first: bytes, rest: bytes) -> bool:
    at = data.find(first)
    while at >= 0:
        if data[at + len(first) : at + len(first) + len(rest)] == rest:
            return True
        at = data.find(first, at + 1)
    return False


def run(attempts: Callable[[dict[str, Any]], Attempts], want: dict[str, Any], confined: bool = True) -> None:
    """Make every attempt and print what came of it. Unconfined, only those that cannot do harm."""
    report = {}
    for name, action in attempts(want):
        if confined or name.endswith("!"):
            report[name] = outcome(action)
    os.write(1, (MARK + json.dumps(report) + "\n").encode())


def outcome(action: Callable[[], Any]) -> str:
    """What became of an action: `done: …`, or the name of the error."""
    try:
        result = action()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, f"{type(error).__name__}: {error}")
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return f"done: {result!r}"[:400]
