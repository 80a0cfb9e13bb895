"""Tilewright: from a PyTorch module to a Triton kernel that can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .emulation import Emulation, KernelFault, KernelFaultWarning, Unsupported, emulate

__version__ = "0.1.0"
__all__ = ["Emulation", "KernelFault", "KernelFaultWarning", "Unsupported", "emulate"]


def __getattr__(name: str) -> Any:
    # The emulator imports torch and Triton, which few users of this package need.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import emulation

    return getattr(emulation, name)
