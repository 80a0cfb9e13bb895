"""What host code asks a compiled kernel: registers, shared memory, its code. Compiled for the target when asked."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from triton import knobs

if TYPE_CHECKING:
    from .launch import Kernel

_FROM_TRITON = ("metadata", "asm", "hash", "packed_metadata", "src", "metadata_group", "kernel")
_FIGURES = ("n_regs", "n_spills", "n_max_threads")


def figure(kernel: Kernel, name: str) -> Any:
    """An attribute of Triton's compiled kernel. Raises AttributeError for what it does not have."""
    if name not in _FROM_TRITON + _FIGURES:
        raise AttributeError(f"an emulated kernel has no attribute {name!r}")
    compiled = kernel.__dict__.get("_compiled")
    if compiled is None:
        fn = kernel._fn
        compiled = fn.compile(kernel._source, target=kernel._target, options=kernel._options.__dict__)
        kernel.__dict__["_compiled"] = compiled
    if name in _FROM_TRITON:
        return getattr(compiled, name)
    registers, stack = _resources(compiled)
    threads = 65536 // (max(registers + 7, 8) // 8 * 8) // 32 * 32
    return {"n_regs": registers, "n_spills": stack // 4, "n_max_threads": min(threads, 1024)}[name]


def _resources(compiled: Any) -> tuple[int, int]:
    """Registers a thread and bytes of its stack, in a cubin."""
    if "cubin" not in compiled.asm:
        return 0, 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(compiled.asm["cubin"])
        command = [knobs.nvidia.cuobjdump.path, "--dump-resource-usage", str(file)]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    registers, stack = re.search(r"REG:(\d+)", text), re.search(r"STACK:(\d+)", text)
    return int(registers[1]) if registers else 0, int(stack[1]) if stack else 0
