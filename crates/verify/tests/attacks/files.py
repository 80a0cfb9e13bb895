"""Files of others: the problem, the oracle's data, the cache, other jobs' scratch folders, the user's home."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any

from tools import Attempts, Planted, call

OWN = {"candidate.py", "data", "diagnostics.txt", "link", "mine"}
SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/proc", "/sys", "/dev")


def look(path: str) -> Any:
    """A file's head or a folder's names."""
    if os.path.isdir(path):
        return os.listdir(path)
    with open(path, "rb") as file:
        return file.read(64)


def write(path: str) -> str:
    target = os.path.join(path, "left-by-an-attack") if os.path.isdir(path) else path
    with open(target, "ab"):
        return target


def walk(planted: Planted, skipped: tuple[str, ...]) -> list[str]:
    """Planted things in any file that can be found from the root on, other than Python's and the system's."""
    found = set()
    for folder, folders, files in os.walk("/"):
        folders[:] = [name for name in folders if not os.path.join(folder, name).startswith(skipped)]
        for name in files:
            try:
                found.update(planted.found_in_file(os.path.join(folder, name)))
            except OSError:
                continue
    return sorted(found)


def through_link(path: str) -> Any:
    """A link in our scratch to a file of others."""
    if os.path.islink("link"):
        os.unlink("link")
    os.symlink(path, "link")
    return look("link")


def hard_link(path: str) -> None:
    os.link(path, "hard")


def rename_over(path: str) -> None:
    with open("mine", "w"):
        os.replace("mine", path)


def by_handle(path: str) -> int:
    """Around every path: a file's handle, as file servers use it."""
    handle = ctypes.create_string_buffer(b"\x80\0\0\0", 136)
    mount = ctypes.c_int()
    call("name_to_handle_at", -100, ctypes.c_char_p(path.encode()), handle, ctypes.byref(mount), 0)
    return call("open_by_handle_at", -100, handle, 0)


def attempts(want: dict[str, Any]) -> Attempts:
    planted = Planted(want)
    skipped = (*SYSTEM, *(os.path.realpath(path) for path in (sys.prefix, sys.base_prefix)), *want["readable"])
    yield "own walk", lambda: walk(planted, skipped)
    yield "own scratch", lambda: sorted(set(os.listdir(".")) - OWN)
    for name, path in want["paths"].items():
        yield f"read {name}!", lambda path=path: look(path)
        yield f"write {name}", lambda path=path: write(path)
        yield f"follow a link to {name}", lambda path=path: through_link(path)
        yield f"hard link to {name}", lambda path=path: hard_link(path)
        yield f"replace {name}", lambda path=path: rename_over(path)
        yield f"truncate {name}", lambda path=path: os.truncate(path, 0)
        yield f"handle of {name}", lambda path=path: by_handle(path)
        yield f"up and down to {name}", lambda path=path: look("../" * 20 + path.lstrip("/"))
        yield f"as root of {name}", lambda path=path: look("/proc/self/root" + path)
    for path in ("/etc/shadow", "/etc/passwd", "/root", "/home", "/var", "/tmp", "/run", "/dev/shm", "/sys/fs/cgroup"):
        yield f"read {path}", lambda path=path: look(path)
    for path in ("/usr/x", "/x", "/dev/shm/x", "/var/tmp/x", "/dev/x", "/proc/self/comm", "/proc/self/oom_score_adj"):
        yield f"write {path}", lambda path=path: write(path)
