"""What is known of the memory behind tensors: on which device it would be, and what nothing has written yet."""

from __future__ import annotations

import ctypes

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from tilewright import _core


class Facts:
    """Of one storage."""

    __slots__ = ("cuda", "reference", "written")

    def __init__(self, storage: torch.UntypedStorage) -> None:
        self.reference = StorageWeakRef(storage)
        """Keeps the storage's identity from being given to another, not the storage."""
        self.cuda = True
        """Whether a GPU would hold it."""
        self.written: bytearray | None = None
        """One byte for each, 0 where nothing has written it; None if all is written."""


class Storages:
    """Facts by storage. What nothing is known of was made by torch itself, in computing gradients for example."""

    def __init__(self) -> None:
        self._facts: dict[int, Facts] = {}
        self._sweep_at = 1024
        self._exposed: dict[int, tuple[StorageWeakRef, int, int]] = {}

    def find(self, tensor: torch.Tensor) -> Facts | None:
        """What is known, if anything. Tensors without a storage have no facts."""
        try:
            return self._facts.get(tensor.untyped_storage()._cdata)
        except (NotImplementedError, RuntimeError):
            return None

    def of(self, tensor: torch.Tensor) -> Facts | None:
        """What is known, to be filled in; None for tensors without a storage."""
        try:
            storage = tensor.untyped_storage()
        except (NotImplementedError, RuntimeError):
            return None
        facts = self._facts.get(storage._cdata)
        if facts is None:
            self._sweep()
            facts = self._facts[storage._cdata] = Facts(storage)
        return facts

    def fresh(self, tensor: torch.Tensor) -> None:
        """Nothing has written this storage: fills it with poison, so that what is written shows."""
        facts = self.of(tensor)
        if facts is None or tensor.device.type != "cpu":
            return
        storage = tensor.untyped_storage()
        if storage.nbytes() > 0:
            _core.poison(memory(storage))
            facts.written = bytearray(storage.nbytes())

    def expose(self, tensor: torch.Tensor) -> None:
        """The program asked for the address, and may give it to a kernel as a number."""
        storage = tensor.untyped_storage()
        if tensor.device.type == "cpu" and storage.nbytes() > 0:
            self._exposed[storage._cdata] = StorageWeakRef(storage), storage.data_ptr(), storage.nbytes()

    def written(self, key: int) -> bytearray | None:
        """Which bytes of a storage are written, by its identity."""
        facts = self._facts.get(key)
        return facts.written if facts else None

    def exposed(self) -> dict[int, tuple[int, int]]:
        """First address and length of the storages whose address is known, by their identity."""
        self._exposed = {key: it for key, it in self._exposed.items() if not it[0].expired()}
        return {key: (address, length) for key, (_, address, length) in self._exposed.items()}

    def _sweep(self) -> None:
        if len(self._facts) < self._sweep_at:
            return
        self._facts = {key: facts for key, facts in self._facts.items() if not facts.reference.expired()}
        self._sweep_at = max(1024, 2 * len(self._facts))


def memory(storage: torch.UntypedStorage) -> memoryview:
    """The bytes of a storage in host memory, by Python's buffer protocol. Valid while the storage lives."""
    return memory_at(storage.data_ptr(), storage.nbytes())


def memory_at(address: int, length: int) -> memoryview:
    """The bytes at an address, which must be valid while they are used."""
    return memoryview((ctypes.c_ubyte * length).from_address(address)).cast("B")
