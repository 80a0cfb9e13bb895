"""What the two compile handlers share: a Triton with fixed knobs, targets, options and error documents.

Importing this module fixes the environment *before* Triton is imported, since Triton and its native
library read some knobs once, at import.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import traceback
from collections.abc import Iterator
from types import CodeType
from typing import Any

_KNOBS = re.compile(
    r"TRITON_|MLIR_|LLVM_|AMDGCN_|NVPTX_|DISABLE_|ENABLE_|ALLOW_|PTXAS_OPTIONS$|USE_IR_LOC$|SWAP_|PROTON_"
)


def fix_environment() -> None:
    """Remove every variable that changes what Triton's compiler does; compile with one thread."""
    for name in [name for name in os.environ if _KNOBS.match(name)]:
        del os.environ[name]
    os.environ["MLIR_DISABLE_MULTITHREADING"] = "1"


fix_environment()

from triton import knobs  # noqa: E402
from triton._C.libtriton import ir  # noqa: E402
from triton.backends.compiler import BaseBackend, GPUTarget  # noqa: E402
from triton.compiler.compiler import make_backend  # noqa: E402

SOURCE_NAME = "candidate.py"
"""The name that the candidate's source has in locations and tracebacks, whatever file it came from."""

OPTIONS = (
    "num_warps",
    "num_stages",
    "num_ctas",
    "maxnreg",
    "enable_fp_fusion",
    "launch_cooperative_grid",
    "launch_pdl",
)


def warm() -> None:
    """Do in the zygote what every compile would otherwise repeat: load backends and dialects, ask ptxas its version."""
    for target in (GPUTarget("cuda", 80, 32), GPUTarget("cuda", 100, 32), GPUTarget("hip", "gfx942", 64)):
        backend = make_backend(target)
        options = backend.parse_options({})
        backend.get_codegen_implementation(options)
        backend.get_module_map()
        context = ir.context()
        ir.load_dialects(context)
        backend.load_dialects(context)
        del context
    # Each asks the tool for its version in a process of its own, and remembers the answer.
    _ = knobs.nvidia.ptxas, knobs.nvidia.ptxas_blackwell


def gpu_target(target: dict[str, Any]) -> GPUTarget:
    """Triton's form of a contract `Target`."""
    arch = target["arch"]
    return GPUTarget(target["backend"], int(arch) if target["backend"] == "cuda" else arch, int(target["warp_size"]))


def parse_options(backend: BaseBackend, options: dict[str, Any]) -> Any:
    """The backend's options from a contract `LaunchOptions`. Raises `ValueError` for any other option."""
    if unknown := sorted(set(options) - set(OPTIONS)):
        raise ValueError(f"launch options {', '.join(unknown)} are not allowed")
    parsed = backend.parse_options({name: value for name, value in options.items() if value is not None})
    # Triton read this default when it was imported, perhaps before the environment was fixed.
    return dataclasses.replace(parsed, ptx_options=None) if hasattr(parsed, "ptx_options") else parsed


def error(
    kind: str, exception: BaseException, *, message: str | None = None, line: int | None = None
) -> dict[str, Any]:
    """An error document; the line defaults to the innermost frame in the candidate's file."""
    frames = [
        frame
        for frame in traceback.extract_tb(exception.__traceback__)
        if frame.filename == SOURCE_NAME and frame.lineno is not None
    ]
    if line is None and frames:
        line = frames[-1].lineno
    return {
        "error": {
            "kind": kind,
            "type": type(exception).__name__,
            "message": _short(str(exception) if message is None else message),
            "line": line,
            "traceback": "\n".join(f"line {frame.lineno}, in {frame.name}" for frame in frames[-20:]),
        }
    }


def _short(text: str, limit: int = 4000) -> str:
    text = text.strip()
    return text if len(text) <= limit else f"{text[: limit // 2]}\n…\n{text[-limit // 2 :]}"


class Diagnostics:
    """What the native compiler printed to the standard error: MLIR reports the reason for a failure only there."""

    _ERROR = re.compile(r'^(?:loc\()?"?([\w./<>-]+)"?:(\d+):(\d+)\)?: error: (.*)$', re.MULTILINE)

    def __init__(self) -> None:
        self.text = ""

    def first_error(self) -> tuple[str | None, int | None, str | None]:
        """File, line and message of the first error; None for what is not known."""
        if match := self._ERROR.search(self.text):
            return match[1], int(match[2]), match[4]
        if match := re.search(r"error: (.*)", self.text):
            return None, None, match[1]
        return None, None, None


@contextlib.contextmanager
def captured_diagnostics(scratch: str) -> Iterator[Diagnostics]:
    """Redirect file descriptor 2 into a scratch file for the duration."""
    found = Diagnostics()
    path = os.path.join(scratch, "diagnostics.txt")
    saved = os.dup(2)
    with open(path, "w+b") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield found
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            file.seek(0)
            found.text = file.read(1 << 16).decode("utf-8", "replace")
    os.unlink(path)


def compile_source(source: str) -> CodeType:
    """The candidate's (or kernel-only) source as code under [`SOURCE_NAME`], readable by `inspect`."""
    import linecache

    # Without a modification time, linecache never looks for a file of this name.
    linecache.cache[SOURCE_NAME] = (len(source), None, source.splitlines(keepends=True), SOURCE_NAME)
    return compile(source, SOURCE_NAME, "exec", dont_inherit=True)
