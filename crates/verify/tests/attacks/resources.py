"""Fills the disk, memory and the table of processes, each up to what the limits let it have."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from tools import Attempts

MANY = 400


def fill_disk() -> list[int]:
    """MiB written over many files, where they are more than the limit of 256."""
    written = 0
    block = bytes(1 << 20)
    with contextlib.suppress(OSError):
        for number in range(MANY):
            with open(f"block{number % 16}", "ab", buffering=0) as file:
                written += file.write(block) >> 20
    for number in range(16):
        with contextlib.suppress(OSError):
            os.unlink(f"block{number}")
    return [written] if written > 256 else []


def fill_folders() -> list[int]:
    """Files, where they are more than a file system of the job's own holds."""
    made = 0
    with contextlib.suppress(OSError):
        os.mkdir("many")
        for made in range(40_000):
            os.close(os.open(f"many/{made}", os.O_CREAT | os.O_WRONLY))
    return [made] if made > 16_384 else []


def fill_descriptors() -> list[int]:
    kept = []
    with contextlib.suppress(OSError):
        while len(kept) < 5000:
            kept.append(os.dup(0))
    made = len(kept)
    for fd in kept:
        os.close(fd)
    return [made] if made > 256 else []


def fill_processes() -> list[int]:
    made = 0
    with contextlib.suppress(OSError):
        for _ in range(MANY):
            if os.fork() == 0:
                with contextlib.suppress(OSError):
                    os.setsid()
                os.read(os.pipe()[0], 1)
                os._exit(0)
            made += 1
    return [made] if made > 64 else []


def attempts(want: dict[str, Any]) -> Attempts:
    yield "own disk", fill_disk
    yield "own descriptors", fill_descriptors
    yield "own files", fill_folders
    yield "own processes", fill_processes
