"""What the target device looks like to a candidate that is traced on a machine without one.

Figures are the ones that torch and Triton report on that hardware.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from triton.backends.compiler import GPUTarget


@dataclass(frozen=True)
class DeviceProperties:
    """The fields of `torch.cuda.get_device_properties`. Sizes in bytes, rates in kHz."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    shared_memory_per_block_optin: int
    shared_memory_per_multiprocessor: int
    L2_cache_size: int
    max_threads_per_multi_processor: int = 2048
    warp_size: int = 32
    regs_per_multiprocessor: int = 65536
    shared_memory_per_block: int = 49152
    max_threads_per_block: int = 1024
    clock_rate: int = 1_980_000
    memory_clock_rate: int = 3_201_000
    memory_bus_width: int = 5120
    is_integrated: int = 0
    is_multi_gpu_board: int = 0
    gcnArchName: str = ""
    pci_bus_id: int = 25
    pci_device_id: int = 0
    pci_domain_id: int = 0
    uuid: str = "5b9c7f3a-1d42-8e60-a7f4-2c0d9e81b356"


DEVICES: dict[str, DeviceProperties] = {
    "80": DeviceProperties("NVIDIA A100-SXM4-80GB", 8, 0, 85_097_971_712, 108, 166_912, 167_936, 41_943_040),
    "86": DeviceProperties(
        "NVIDIA A10G", 8, 6, 23_836_033_024, 80, 101_376, 102_400, 6_291_456, max_threads_per_multi_processor=1536
    ),
    "89": DeviceProperties(
        "NVIDIA L4", 8, 9, 23_669_833_728, 58, 101_376, 102_400, 50_331_648, max_threads_per_multi_processor=1536
    ),
    "90": DeviceProperties("NVIDIA H200", 9, 0, 150_109_880_320, 132, 232_448, 233_472, 62_914_560),
    "100": DeviceProperties("NVIDIA B200", 10, 0, 191_514_804_224, 148, 232_448, 233_472, 132_644_864),
    "120": DeviceProperties(
        "NVIDIA RTX PRO 6000 Blackwell Server Edition",
        12,
        0,
        101_975_130_112,
        188,
        101_376,
        102_400,
        134_217_728,
        max_threads_per_multi_processor=1536,
    ),
    "gfx942": DeviceProperties(
        "AMD Instinct MI300X",
        9,
        4,
        206_141_652_992,
        304,
        65_536,
        65_536,
        4_194_304,
        warp_size=64,
        gcnArchName="gfx942:sramecc+:xnack-",
    ),
}


OTHER_DEVICES = (
    DEVICES["80"],
    DeviceProperties(
        "Orin", 8, 7, 65_892_769_792, 16, 166_912, 167_936, 4_194_304, max_threads_per_multi_processor=1536
    ),
    DEVICES["100"],
    DeviceProperties("NVIDIA Tegra", 5, 3, 4_156_665_856, 1, 49_152, 65_536, 262_144),
    DeviceProperties("NVIDIA Graphics Device", 13, 0, 1 << 40, 1 << 16, 232_448, 233_472, 1 << 28),
)
"""Devices that a plan is traced for besides the target, to see what it takes from the device. The last two are the
ends of what may exist: they reach branches on how many multiprocessors there are."""


class UnknownTarget(ValueError):
    """The target's figures are not in `DEVICES`."""


def device_properties(target: dict[str, Any]) -> DeviceProperties:
    try:
        return DEVICES[target["arch"]]
    except KeyError:
        raise UnknownTarget(
            f"no device of architecture {target['arch']} is known; known: {', '.join(DEVICES)}"
        ) from None


@dataclass
class Card:
    """The device as the file sees it in the trace under way: the target, or, to see whether a plan depends on it,
    another one."""

    properties: DeviceProperties
    index: int = 0
    count: int = 1
    asked: bool = False
    """Whether the file has asked what kind of device it is."""

    @property
    def device(self) -> torch.device:
        return torch.device("cuda", self.index)

    def figures(self) -> DeviceProperties:
        """What the device is, for the file."""
        self.asked = True
        return self.properties


class DriverUtils:
    """The part of Triton's driver utilities that host code asks."""

    def __init__(self, properties: DeviceProperties) -> None:
        self._properties = properties

    def get_device_properties(self, device: int) -> dict[str, int]:
        p = self._properties
        return {
            "max_shared_mem": p.shared_memory_per_block_optin,
            "max_num_regs": p.regs_per_multiprocessor,
            "multiprocessor_count": p.multi_processor_count,
            "warpSize": p.warp_size,
            "sm_clock_rate": p.clock_rate,
            "mem_clock_rate": p.memory_clock_rate,
            "mem_bus_width": p.memory_bus_width,
        }


class Driver:
    """A Triton driver for a device that is not here."""

    def __init__(self, target: dict[str, Any], properties: DeviceProperties) -> None:
        arch = int(target["arch"]) if target["backend"] == "cuda" else target["arch"]
        self._target = GPUTarget(target["backend"], arch, target["warp_size"])
        self._properties = properties
        self.utils = DriverUtils(properties)

    def get_current_target(self) -> GPUTarget:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        pass

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        return (self._properties.major, self._properties.minor)

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        return torch.cuda

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        return torch.empty(1, dtype=torch.int32, device="cuda")

    def clear_cache(self, cache: torch.Tensor) -> None:
        pass

    def get_benchmarker(self) -> Any:
        from triton.testing import do_bench

        return do_bench


class CardUtils(DriverUtils):
    """The utilities of a driver that answers for a card."""

    def __init__(self, card: Card) -> None:
        self._card = card

    def get_device_properties(self, device: int) -> dict[str, int]:
        self._properties = self._card.figures()
        return super().get_device_properties(device)


class CardDriver(Driver):
    """A driver whose answers to the file are the card's; Triton itself always hears of the target.

    `asked_by_file` says whether the file asks, and not a library.
    """

    def __init__(self, target: dict[str, Any], card: Card, asked_by_file: Callable[[], bool]) -> None:
        super().__init__(target, card.properties)
        self.utils = CardUtils(card)
        self._card, self._asked_by_file = card, asked_by_file

    def get_current_target(self) -> GPUTarget:
        if not self._asked_by_file() or self._target.backend != "cuda":
            return self._target
        figures = self._card.figures()
        return GPUTarget("cuda", figures.major * 10 + figures.minor, figures.warp_size)

    def get_current_device(self) -> int:
        return self._card.index if self._asked_by_file() else 0

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        figures = self._card.figures()
        return (figures.major, figures.minor)

    def get_active_torch_device(self) -> torch.device:
        return self._card.device
