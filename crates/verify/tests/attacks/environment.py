"""The environment and command lines of the processes above, and what the fork has left of them here."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any

from tools import Attempts, Planted

KNOWN = {
    "PATH", "LANG", "HOME", "TMPDIR", "TRITON_HOME", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "OMP_NUM_THREADS",
    "MLIR_DISABLE_MULTITHREADING", "LC_CTYPE", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
}  # fmt: skip


def libc_environment() -> list[bytes]:
    """Variables as C sees them, which Python's own copy need not show."""
    pointer = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    found = []
    while pointer and pointer[len(found)]:
        found.append(pointer[len(found)])
    return found


def first_block() -> bytes:
    """Arguments and variables that this process, or the one it was forked from, was started with."""
    with open("/proc/self/environ", "rb") as environ, open("/proc/self/cmdline", "rb") as line:
        return environ.read() + line.read()


def attempts(want: dict[str, Any]) -> Attempts:
    planted = Planted(want)
    yield "own variables!", lambda: planted.found_in("\n".join(map(str, os.environ.items())).encode())
    yield "own unexpected variables", lambda: sorted(set(os.environ) - KNOWN)
    yield "own variables in C!", lambda: planted.found_in(b"\n".join(libc_environment()))
    yield "own first variables!", lambda: planted.found_in(first_block())
    yield "own arguments", lambda: planted.found_in("\n".join(sys.argv + sys.orig_argv).encode())
    yield "own host name", lambda: [name for name in (os.uname().nodename,) if name == want["host"]]
