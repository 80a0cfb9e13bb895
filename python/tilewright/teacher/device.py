"""What the choice of tiles asks of a device: how many programs fill it, and how much one may keep in shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Device:
    """`processors`: multiprocessors of the largest card of an architecture; `shared`: bytes for one program."""

    processors: int
    shared: int
    bf16: bool = True
    """Whether its tensor cores multiply bf16."""
    block_copies: bool = False
    """Whether it copies blocks by descriptors on its own."""

    def stages(self, wanted: int, rows: int, cols: int, inner: int, size: int) -> int:
        """As many blocks of both operands, of elements of `size` bytes, as fit, but two at least."""
        block = (rows + cols) * inner * size
        return max(2, min(wanted, self.shared // max(block, 1)))


KIB = 1024
DEVICES = {
    "sm_70": Device(80, 96 * KIB, bf16=False),
    "sm_75": Device(72, 64 * KIB, bf16=False),
    "sm_80": Device(108, 163 * KIB),
    "sm_86": Device(84, 99 * KIB),
    "sm_87": Device(16, 163 * KIB),
    "sm_89": Device(142, 99 * KIB),
    "sm_90": Device(132, 227 * KIB, block_copies=True),
    "sm_100": Device(148, 227 * KIB, block_copies=True),
    "sm_103": Device(148, 227 * KIB, block_copies=True),
    "sm_120": Device(170, 99 * KIB, block_copies=True),
    "sm_121": Device(48, 99 * KIB, block_copies=True),
    "gfx90a": Device(110, 64 * KIB),
    "gfx942": Device(304, 64 * KIB),
    "gfx950": Device(256, 160 * KIB),
}
"""NVIDIA: CUDA C++ programming guide, table of compute capabilities (shared memory a block), and the data sheets of the
cards; AMD: the LDS of a work-group in the instruction set manuals."""


def device_of(options: dict[str, Any]) -> Device:
    """The device that options name by its architecture, `90`, `sm_90` or `sm_90a`; an H100 or H200 without one."""
    arch = str(options.get("arch", ""))
    if not arch.startswith("gfx"):
        arch = "sm_" + arch.removeprefix("sm_").rstrip("af")
    return DEVICES.get(arch, DEVICES["sm_90"])
