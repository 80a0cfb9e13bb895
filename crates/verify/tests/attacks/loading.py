"""Programs and code: what a job may start, and what it gains by starting what it wrote itself."""

from __future__ import annotations

import ctypes
import glob
import os
import subprocess
import sys
from typing import Any

from tools import Attempts, Planted

SCRIPT = "import os; print(os.getuid()); [print(p, open(p).read(64)) for p in {paths}]"


def start(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    return done.stdout[:100]


def start_copy() -> str:
    """A program that lies in our own scratch."""
    with open("/usr/bin/env", "rb") as file, open("env", "wb") as copy:
        copy.write(file.read())
    return start("./env")


def under_loader(want: dict[str, Any], planted: Planted) -> list[str]:
    """The system's loader may be started, since the assembler needs it, and runs what we cannot: under our own
    sandbox."""
    loader = [*glob.glob("/lib64/ld-linux-*.so.*"), *glob.glob("/lib/ld-linux-*.so.*")][0]
    paths = list(want["paths"].values())
    command = [loader, os.path.realpath(sys.executable), "-I", "-c", SCRIPT.format(paths=paths)]
    done = subprocess.run(command, capture_output=True, check=False, timeout=20)
    return planted.found_in(done.stdout + done.stderr)


def load_copy() -> list[str]:
    """A library from the scratch is code like any other here: it must not be more."""
    import _ctypes

    with open(_ctypes.__file__, "rb") as file, open("library.so", "wb") as copy:
        copy.write(file.read())
    ctypes.CDLL(os.path.abspath("library.so"))
    return []


def attempts(want: dict[str, Any]) -> Attempts:
    planted = Planted(want)
    for program in ("/bin/sh", "/usr/bin/env", "/usr/bin/gcc", sys.executable):
        yield f"start {os.path.basename(program)}", lambda program=program: start(program, "--version")
    yield "start a copy", start_copy
    yield "shell!", lambda: _shell("true")
    if want["processes"]:
        yield "own loader", lambda: under_loader(want, planted)
    yield "own library", load_copy


def _shell(command: str) -> int:
    status = os.system(command)
    if status != 0:
        raise PermissionError(1, "no shell")
    return status
