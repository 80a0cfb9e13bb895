"""Triton kernels in the user's own process, run by the emulator on CPU tensors: see docs/testing.md.

The process is the user's and so is the code in it: nothing here is confined, and nothing judges it. Verdicts about code
that is not trusted come from `tilewright verify`.
"""

from __future__ import annotations

from typing import Literal

from .context import Emulation
from .errors import KernelFault, KernelFaultWarning, Unsupported

__all__ = ["Emulation", "KernelFault", "KernelFaultWarning", "Unsupported", "emulate"]


def emulate(
    *,
    target: str = "sm_90",
    cuda: bool = False,
    on_fault: Literal["raise", "warn", "ignore"] = "raise",
    autotune: Literal["first", "all"] = "first",
    sanitise: bool = True,
    reverse: bool = False,
    threads: int = 0,
    timeout: float | None = None,
) -> Emulation:
    """A context (or decorator) in which Triton kernels run in the emulator, on tensors of the CPU.

    target: the GPU that kernels are compiled for, such as `sm_90` or `gfx942`.
    cuda: `"cuda"` is a device that is there, whose tensors are kept on the CPU; torch answers as on the target.
    on_fault: what a kernel's fault does: raise KernelFault, warn with KernelFaultWarning, or nothing. With the last two
    the launch goes on: an access out of bounds is left out.
    autotune: whether the first configuration of an autotuned kernel is run, or each of them before the first is chosen.
    sanitise: look for races and for what depends on memory that nothing wrote. Bounds are checked in any case.
    reverse: start the last program of a grid first.
    threads: programs that run beside each other at most; 0: as many as there are cores. Results do not depend on it.
    timeout: seconds that a launch may take; then it raises KernelFault.

    Kernels raise KernelFault, Unsupported for an operation that the emulator lacks, and what Triton raises for those
    that do not compile. Raises ValueError for a target or an option that is not known.
    """
    return Emulation(
        target=target,
        cuda=cuda,
        on_fault=on_fault,
        autotune=autotune,
        sanitise=sanitise,
        reverse=reverse,
        threads=threads,
        timeout=timeout,
    )
