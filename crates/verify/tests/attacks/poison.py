"""Leaves something for the next candidate: in Python's packages, in caches, in modules, in threads that live on."""

from __future__ import annotations

import contextlib
import glob
import importlib.util
import os
import pwd
import sys
from typing import Any

from tools import Attempts


def write(path: str) -> str:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "ab") as file:
        file.write(b"raise SystemExit('poisoned')\n")
    return path


def places() -> dict[str, str]:
    """Files that the next candidate's process, or the zygote, would read."""
    packages = {name: os.path.dirname(sys.modules[name].__file__) for name in ("os", "json")}
    for name in ("torch", "triton", "tilewright"):
        spec = importlib.util.find_spec(name)
        # Our own package is kept out of sight while a file runs, but its folder is on the path all the same.
        folders = [os.path.dirname(spec.origin)] if spec else [os.path.join(root, name) for root in sys.path]
        for folder in filter(os.path.isdir, folders):
            packages[name] = folder
    found = {}
    for name, folder in packages.items():
        found[f"{name} module"] = os.path.join(folder, "__init__.py")
        found[f"{name} bytecode"] = os.path.join(folder, "__pycache__", "__init__.cpython-311.pyc")
        found[f"{name} new module"] = os.path.join(folder, "poison.py")
    packages_folder = os.path.dirname(packages["torch"])
    found["start-up file"] = os.path.join(packages_folder, "poison.pth")
    found["customisation"] = os.path.join(packages_folder, "sitecustomize.py")
    found["loader's list"] = "/etc/ld.so.preload"
    # The home of the machine's first user: HOME is the job's own scratch folder.
    found["home cache"] = os.path.join(pwd.getpwuid(0).pw_dir, ".triton/cache/x/kernel.cubin")
    found["shared cache"] = "/tmp/torchinductor_root/x"
    for number, tool in enumerate(glob.glob(os.path.join(packages["triton"], "backends/nvidia/bin/*"))[:2]):
        found[f"tool {number}"] = tool
    return found


def patch_everything() -> list[str]:
    """Changes that must die with this process: the next candidate is forked from the zygote, not from here."""
    import torch
    import triton

    torch.empty_like = torch.Tensor.__add__ = triton.cdiv = None
    sys.modules["math"] = None
    with contextlib.suppress(OSError):
        with open(os.path.expanduser("~/poison"), "w") as file:
            file.write("x")
        os.makedirs(os.environ.get("TRITON_CACHE_DIR", "triton"), exist_ok=True)
    return []


def live_on() -> list[str]:
    """A process that outlives this job, answers in its name and writes to its folder."""
    with contextlib.suppress(OSError):
        if os.fork() == 0:
            with contextlib.suppress(OSError):
                os.fork()
            while True:
                with contextlib.suppress(OSError):
                    os.write(3, b"\x02\x00\x00\x00{}")
                with open("alive", "a") as file:
                    file.write("x")
    return []


def attempts(want: dict[str, Any]) -> Attempts:
    for name, path in places().items():
        yield f"write {name}", lambda path=path: write(path)
    yield "cache of kernels", lambda: write(os.path.join(want["paths"]["cache"], "v1", "entries", "00", "0" * 64))
    yield "own patches", patch_everything
    yield "own survivor", live_on
