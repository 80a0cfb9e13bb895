"""Triton kernels in the user's own process, run by the emulator on CPU tensors: see docs/guide/testing.md.

The process is the user's and so is the code in it: nothing here is confined, and nothing judges it. Verdicts about code
that is not trusted come from `tilewright verify`.
"""

from __future__ import annotations

from typing import Any

from .context import Emulation
from .errors import KernelFault, KernelFaultWarning, Unsupported

__all__ = ["Emulation", "KernelFault", "KernelFaultWarning", "Unsupported", "emulate"]


def emulate(**options: Any) -> Emulation:
    return Emulation(**options)
