"""Tilewright: from a PyTorch module to a Triton kernel that can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .emulation import Emulation, KernelFault, KernelFaultWarning, Unsupported, emulate
    from .generation import GenerationError, KernelLLM, generate_raw, generate_triton, stream, stream_raw

__version__ = "0.1.0"
_EMULATION = ("Emulation", "KernelFault", "KernelFaultWarning", "Unsupported", "emulate")
__all__ = [
    "Emulation",
    "GenerationError",
    "KernelFault",
    "KernelFaultWarning",
    "KernelLLM",
    "Unsupported",
    "emulate",
    "generate_raw",
    "generate_triton",
    "stream",
    "stream_raw",
]


def __getattr__(name: str) -> Any:
    # The emulator imports torch and Triton, which few users of this package need.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _EMULATION:
        from . import emulation

        return getattr(emulation, name)
    from . import generation

    return getattr(generation, name)
