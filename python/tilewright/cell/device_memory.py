"""Memory of a GPU that other processes may map: allocated through the driver, never by torch's allocator.

A handle of the driver exposes the whole allocation that it is of, and the driver puts small allocations together into
one of `GRAIN` bytes. So memory that is given out comes in allocations of whole grains that hold nothing else.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

import torch

GRAIN = 2 << 20
"""Bytes in which the driver gives out memory."""
HANDLE_BYTES = 64
LAZY_PEER_ACCESS = 1


class DriverError(Exception):
    """The driver refused; the text names the call and its error."""


class _Handle(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char * HANDLE_BYTES)]


class _Driver:
    """The few calls that are needed, in the context that torch uses."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        pointer, size = ctypes.c_uint64, ctypes.c_size_t
        signatures: dict[str, list[Any]] = {
            "cuMemAlloc_v2": [ctypes.POINTER(pointer), size],
            "cuMemFree_v2": [pointer],
            "cuIpcGetMemHandle": [ctypes.POINTER(_Handle), pointer],
            "cuIpcOpenMemHandle_v2": [ctypes.POINTER(pointer), _Handle, ctypes.c_uint],
            "cuIpcCloseMemHandle": [pointer],
            "cuModuleLoadData": [ctypes.POINTER(ctypes.c_void_p), ctypes.c_char_p],
            "cuModuleGetFunction": [ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p, ctypes.c_char_p],
            "cuLaunchKernel": [ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3],
        }
        for name, arguments in signatures.items():
            function = getattr(self.library, name)
            function.argtypes, function.restype = arguments, ctypes.c_int

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the driver. Raises `DriverError`."""
        if result := getattr(self.library, name)(*arguments):
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(result, ctypes.byref(text))
            raise DriverError(f"{name}: {(text.value or b'an unknown error').decode()}")


_driver: _Driver | None = None


def driver() -> _Driver:
    """The driver, loaded when first needed."""
    global _driver
    if _driver is None:
        _driver = _Driver()
    return _driver


class _Bytes:
    """Device memory as torch takes it in without a copy."""

    def __init__(self, address: int, nbytes: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (address, False),
            "strides": None,
            "version": 3,
        }


def tensor_at(address: int, nbytes: int, device: str) -> torch.Tensor:
    """A tensor of bytes over memory that the caller keeps alive, of a storage of its own."""
    return torch.as_tensor(_Bytes(address, nbytes), device=device)


class Slab:
    """An allocation of its own, with a handle for other processes. On a CPU, plain memory without one."""

    def __init__(self, nbytes: int, device: str) -> None:
        """At least one grain."""
        self.nbytes = max(-(-nbytes // GRAIN), 1) * GRAIN
        self.used = 0
        if not device.startswith("cuda"):
            self.handle: list[int] = []
            self.data = torch.empty(self.nbytes, dtype=torch.uint8)
            return
        torch.cuda.current_stream(device).synchronize()
        address = ctypes.c_uint64()
        try:
            driver().call("cuMemAlloc_v2", ctypes.byref(address), self.nbytes)
        except DriverError:
            # Torch keeps what it has freed.
            torch.cuda.empty_cache()
            driver().call("cuMemAlloc_v2", ctypes.byref(address), self.nbytes)
        weakref.finalize(self, driver().library.cuMemFree_v2, address)
        handle = _Handle()
        driver().call("cuIpcGetMemHandle", ctypes.byref(handle), address)
        self.handle = list(bytes(handle))
        self.data = tensor_at(address.value, self.nbytes, device)

    def take(self, nbytes: int) -> tuple[int, torch.Tensor] | None:
        """Bytes that nobody has, with their offset; None where there are not enough."""
        start = -(-self.used // 256) * 256
        if start + nbytes > self.nbytes:
            return None
        self.used = start + nbytes
        return start, self.data[start : start + nbytes]


class Mapping:
    """Another process's allocation, mapped while the `with` lasts: no tensor over it may outlive that."""

    def __init__(self, handle: list[int], nbytes: int, device: str) -> None:
        """`nbytes` is the allocation's size as its owner tells it."""
        self.handle, self.nbytes, self.device = handle, nbytes, device
        self.address = ctypes.c_uint64()

    def __enter__(self) -> torch.Tensor:
        handle = _Handle.from_buffer_copy(bytes(self.handle))
        driver().call("cuIpcOpenMemHandle_v2", ctypes.byref(self.address), handle, LAZY_PEER_ACCESS)
        return tensor_at(self.address.value, self.nbytes, self.device)

    def __exit__(self, *_: object) -> None:
        torch.cuda.synchronize(self.device)
        driver().call("cuIpcCloseMemHandle", self.address)
