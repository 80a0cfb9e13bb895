"""What the emulator says of a kernel."""

from __future__ import annotations

import linecache
from typing import Any


class KernelFault(Exception):
    """A kernel does what no kernel may do, such as reading past the end of a tensor.

    kind: `out-of-bounds`, `misaligned`, `promise`, `race`, `uninitialised`, `overflow`, `division-by-zero`, `assert`,
    `deadlock` or `timeout`. file, line: where in the kernel's source (line 0: unknown). program: coordinates in the
    grid, or None.
    """

    __module__ = "tilewright"

    def __init__(self, kernel: str, file: str, finding: dict[str, Any], grid: tuple[int, int, int]) -> None:
        self.kind: str = finding["kind"]
        self.kernel = kernel
        self.file = file
        self.line: int = finding["line"]
        self.program: tuple[int, int, int] | None = tuple(finding["program"]) if finding["program"] else None
        self.message: str = finding["message"]
        self.grid = grid
        super().__init__(f"kernel {kernel}, grid {grid}: {self.message}{_quote(file, self.line)}")


class Unsupported(Exception):
    """The emulator does not execute an operation of a kernel: its lack, not the kernel's mistake.

    operation: its name in Triton IR. file, line: where in the kernel's source (line 0: unknown).
    """

    __module__ = "tilewright"

    def __init__(self, kernel: str, file: str, operation: str, line: int, why: str) -> None:
        self.kernel, self.file, self.operation, self.line, self.why = kernel, file, operation, line, why
        super().__init__(f"kernel {kernel}: {operation} is not supported: {why}{_quote(file, line)}")


class KernelFaultWarning(UserWarning):
    """A `KernelFault` under `on_fault="warn"`."""

    __module__ = "tilewright"


def _quote(file: str, line: int) -> str:
    """The line of source, on lines of its own."""
    text = linecache.getline(file, line).strip() if line else ""
    return f"\n  {file}:{line}: {text}" if line else f"\n  {file}"
