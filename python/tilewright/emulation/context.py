"""The context in which Triton kernels run in the emulator."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

from tilewright.cell.trace_device import device_properties

from . import device
from .errors import KernelFault, Unsupported
from .mode import DeviceMode, FreshMode
from .patches import Patches
from .storage import Storages

_active: list[Emulation] = []


def current() -> Emulation:
    """The innermost emulation that is on. Raises RuntimeError outside of all."""
    if not _active:
        raise RuntimeError("no emulation is on: use `with tilewright.emulate():`")
    return _active[-1]


def is_on() -> bool:
    """Whether there is an emulation."""
    return bool(_active)


@dataclass
class Record:
    """What happened within an emulation."""

    launches: Counter[str] = field(default_factory=Counter)
    """By kernel."""
    costs: dict[str, Counter[str]] = field(default_factory=dict)
    """Sums of the emulator's counts, by kernel: see `Emulation.record`."""
    faults: list[KernelFault] = field(default_factory=list)
    unsupported: list[Unsupported] = field(default_factory=list)


class Emulation(contextlib.ContextDecorator):
    """Made by [`tilewright.emulate`]: a context manager that can be used again and again, also as a decorator."""

    def __init__(
        self,
        *,
        target: str = "sm_90",
        cuda: bool = False,
        on_fault: Literal["raise", "warn", "ignore"] = "raise",
        autotune: Literal["first", "all"] = "first",
        sanitise: bool = True,
        reverse: bool = False,
        threads: int = 0,
        timeout: float | None = None,
    ) -> None:
        if on_fault not in ("raise", "warn", "ignore"):
            raise ValueError(f"on_fault is raise, warn or ignore, not {on_fault!r}")
        if autotune not in ("first", "all"):
            raise ValueError(f"autotune is first or all, not {autotune!r}")
        arch = target.removeprefix("sm_")
        backend = "hip" if arch.startswith("gfx") else "cuda"
        self._target = {"backend": backend, "arch": arch, "warp_size": 64 if backend == "hip" else 32}
        self._properties = device_properties(self._target)
        self.cuda, self.on_fault, self.autotune = cuda, on_fault, autotune
        self.options = {
            "sanitise": sanitise,
            "reverse": reverse,
            "go_on": on_fault != "raise",
            "threads": threads,
            "seconds": timeout,
        }
        """Of each launch."""
        self.device = f"tilewright {arch}"
        """Under which Triton keeps kernels that are compiled for the emulator."""
        self.record = Record()
        self.storages = Storages()
        self.mode = DeviceMode(self.storages) if cuda else FreshMode(self.storages)
        self._exits: list[contextlib.ExitStack] = []

    def __enter__(self) -> Emulation:
        with contextlib.ExitStack() as stack:
            patches = Patches()
            stack.callback(patches.restore)
            driver = device.EmulatedDriver(self._target, self._properties, self.cuda)
            device.install_triton(self, patches, driver)
            if self.cuda:
                device.install_cuda(self, patches, self._properties)
            stack.enter_context(self.mode)
            _active.append(self)
            stack.callback(_active.pop)
            self._exits.append(stack.pop_all())
        return self

    def __exit__(self, *exc: Any) -> None:
        self._exits.pop().close()

    def note_launch(self, kernel: Any, report: dict[str, int] | None) -> None:
        self.record.launches[kernel.name] += 1
        if report is not None:
            self.record.costs.setdefault(kernel.name, Counter()).update(report)

    def note_fault(self, fault: KernelFault) -> None:
        self.record.faults.append(fault)

    def note_unsupported(self, refused: Unsupported) -> None:
        self.record.unsupported.append(refused)
