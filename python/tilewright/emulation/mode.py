"""Torch calls under emulation: devices are redirected to the CPU, and fresh memory is poisoned.

A storage that a GPU would hold is remembered as such, so that tensors answer `.device` and `.is_cuda` as their users
expect, and `.cuda()` and `.cpu()` copy where they would copy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from .storage import Storages

CPU = torch.device("cpu")
CUDA = torch.device("cuda", 0)

_FRESH = {
    torch.empty,
    torch.empty_like,
    torch.empty_strided,
    torch.empty_permuted,
    torch.Tensor.new_empty,
    torch.Tensor.new_empty_strided,
}
_MOVES = {torch.Tensor.to, torch.Tensor.cuda, torch.Tensor.cpu, torch.as_tensor, torch.asarray}


class FreshMode(TorchFunctionMode):
    """Poisons memory that torch gives out unwritten."""

    def __init__(self, storages: Storages) -> None:
        super().__init__()
        self._storages = storages

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func in _FRESH:
            self._storages.fresh(result)
        elif func is torch.Tensor.data_ptr:
            self._storages.expose(args[0])
        return result


class DeviceMode(TorchFunctionMode):
    """Keeps on the CPU what is meant for a GPU, and poisons fresh memory."""

    def __init__(self, storages: Storages) -> None:
        super().__init__()
        self._storages = storages
        self.default = CPU
        """Of `torch.set_default_device`."""
        self._answers: dict[Any, Callable[..., Any]] = {
            torch.Tensor.is_cuda.__get__: lambda tensor, *_: self.is_cuda(tensor),
            torch.Tensor.is_cpu.__get__: lambda tensor, *_: tensor.device.type == "cpu" and not self.is_cuda(tensor),
            torch.Tensor.device.__get__: lambda tensor, *_: CUDA if self.is_cuda(tensor) else tensor.device,
            torch.Tensor.get_device: lambda tensor: 0 if self.is_cuda(tensor) else -1,
            torch.Tensor.pin_memory: lambda tensor, *_: tensor,
            torch.Tensor.is_pinned: lambda tensor, *_: False,
            torch.Tensor.record_stream: lambda tensor, stream: None,
            torch.Tensor.data_ptr: self._data_ptr,
        }

    def is_cuda(self, tensor: torch.Tensor) -> bool:
        """Whether a GPU would hold this tensor. What torch made unseen, such as gradients, it would."""
        if tensor.device.type != "cpu":
            return False
        facts = self._storages.find(tensor)
        return facts is None or facts.cuda

    def _data_ptr(self, tensor: torch.Tensor) -> int:
        self._storages.expose(tensor)
        return tensor.data_ptr()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        answer = self._answers.get(func)
        if answer is not None:
            return answer(*args, **kwargs)
        wanted, call = None, func
        if func is torch.Tensor.cuda:
            wanted, call, args, kwargs = CUDA, torch.Tensor.cpu, args[:1], {}
        elif func is torch.Tensor.cpu:
            wanted = CPU
        elif func in _MOVES or "device" in kwargs:
            wanted, args, kwargs = _redirect(func, args, kwargs)
        if kwargs.get("pin_memory"):
            kwargs = {**kwargs, "pin_memory": False}
        result = call(*args, **kwargs)
        if func in _FRESH:
            self._storages.fresh(result)
        given = list(_tensors(args))
        cuda = self._place(wanted, given)
        for tensor in _tensors((result,)):
            self._mark(tensor, cuda)
            if func in _MOVES and self.is_cuda(tensor) != cuda:
                # On a GPU this would be a copy.
                result = tensor.clone()
                self._set(result, cuda)
        return result

    def _place(self, wanted: torch.device | None, given: list[torch.Tensor]) -> bool:
        """Whether a GPU would hold the result of a call."""
        if wanted is not None:
            return wanted.type == "cuda"
        if given:
            return any(self.is_cuda(tensor) for tensor in given)
        return self.default.type == "cuda"

    def _mark(self, tensor: torch.Tensor, cuda: bool) -> None:
        if tensor.device.type == "cpu" and self._storages.find(tensor) is None:
            self._set(tensor, cuda)

    def _set(self, tensor: torch.Tensor, cuda: bool) -> None:
        facts = self._storages.of(tensor)
        if facts is not None:
            facts.cuda = cuda


def _redirect(func: Any, args: Any, kwargs: Any) -> tuple[torch.device | None, Any, Any]:
    """The device that the call asks for, and its arguments with the CPU in place of a GPU."""
    wanted = None
    if "device" in kwargs and kwargs["device"] is not None:
        wanted = as_device(kwargs["device"])
        kwargs = {**kwargs, "device": on_cpu(wanted)}
    elif func in _MOVES:
        args = list(args)
        for at, arg in enumerate(args[1:], 1):
            if isinstance(arg, (torch.device, str, int)) and not isinstance(arg, bool):
                wanted = as_device(arg)
                args[at] = on_cpu(wanted)
                break
    return wanted, args, kwargs


def as_device(device: Any) -> torch.device:
    """A device as torch understands it where a GPU is there: an integer names one."""
    return torch.device("cuda", device) if isinstance(device, int) else torch.device(device)


def on_cpu(device: torch.device) -> torch.device:
    """The device where tensors really are."""
    return CPU if device.type == "cuda" else device


def _tensors(values: Any) -> Any:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from _tensors(value)
