"""`ModelNew` and its tensors: the signature's values as Python objects, tensors by attribute path, weights by name."""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from .trace_record import DTYPES, Source, World, is_whole, storage_of, view_of
from .trace_source import MODULE

MAX_DEPTH = 8
MAX_TENSORS = 20_000


# values -------------------------------------------------------------------------------------------------------------


def decode(value: dict[str, Any], tensors: Any) -> Any:
    """A `tilewright_contract::Value` as Python object; `tensors` makes the tensor of a `TensorRef`."""
    kind = value["kind"]
    if kind == "none":
        return None
    if kind == "tensor":
        return tensors(value)
    if kind == "number":
        number = value["value"]
        return float(number) if isinstance(number, str) else number
    if kind == "str":
        return value["value"]
    if kind == "torch":
        name = value["value"]
        if name.startswith("torch."):
            return getattr(torch, name.removeprefix("torch."))
        return torch.device(name)
    if kind == "list":
        return [decode(item, tensors) for item in value["items"]]
    if kind == "tuple":
        return tuple(decode(item, tensors) for item in value["items"])
    if kind == "dict":
        return {key: decode(item, tensors) for key, item in value["items"]}
    raise ValueError(f"unknown kind of value: {kind}")


def input_tensor(ref: dict[str, Any], base: torch.Tensor) -> torch.Tensor:
    """The view that a `TensorRef` describes of `base`, a one-dimensional uint8 tensor over the whole storage."""
    dtype = getattr(torch, ref["dtype"])
    size = dtype.itemsize
    usable = base.numel() // size * size
    typed = base[:usable].view(dtype)
    return torch.as_strided(typed, ref["shape"], ref["strides"], ref["offset"] // size)


class Inputs:
    """Fresh input tensors of a case signature on the device; tensors of one buffer share a storage."""

    def __init__(self, signature: dict[str, Any], device: torch.device) -> None:
        self._buffers = signature["buffers"]
        self._device = device
        self._made: dict[int, torch.Tensor] = {}
        self.storages: dict[int, int] = {}
        self.sources: dict[int, list[Source]] = {}
        """Of tensors that hold an input in another layout than the signature's."""
        self.keep: list[torch.UntypedStorage] = []

    def tensor(self, ref: dict[str, Any]) -> torch.Tensor:
        index = ref["buffer"]
        nbytes = self._buffers[index]
        dtype = getattr(torch, ref["dtype"])
        if index not in self._made and is_whole(ref, nbytes):
            made = torch.empty(ref["shape"], dtype=dtype, device=self._device)
            self._note(index, made)
            return made
        if index not in self._made:
            self._note(index, torch.empty(nbytes, dtype=torch.uint8, device=self._device))
        made = self._made[index]
        if made.dtype != torch.uint8 or made.dim() != 1:
            made = made.view(-1).view(torch.uint8) if made.dim() else made.view(1).view(torch.uint8)
        return input_tensor(ref, made).detach()

    def relaid(self, ref: dict[str, Any], tensor: torch.Tensor, axes: Sequence[int] = ()) -> None:
        """Has `tensor`, a fresh one, hold what the signature describes as `ref`. Along `axes` it has one place for all
        elements, which are equal."""
        view = view_of(tensor)
        strides = [0 if axis in axes else stride for axis, stride in enumerate(ref["strides"])]
        shape = [1 if axis in axes else extent for axis, extent in enumerate(ref["shape"])]
        value = {"dtype": ref["dtype"], "shape": shape, "strides": strides, "offset": ref["offset"]}
        source = Source(
            {"kind": "input", "index": ref["buffer"]}, value, self._buffers[ref["buffer"]], {**view, "shape": shape}
        )
        storage = storage_of(tensor)
        self.sources[storage._cdata] = [source]
        self.keep.append(storage)

    def _note(self, index: int, tensor: torch.Tensor) -> None:
        self._made[index] = tensor
        storage = storage_of(tensor)
        self.storages[storage._cdata] = index
        self.keep.append(storage)


# tensors of a module ------------------------------------------------------------------------------------------------

_MODULE_FIELDS = set(torch.nn.Module().__dict__)


def tensors_of(module: torch.nn.Module, namespace: dict[str, Any]) -> Iterator[tuple[str, torch.Tensor, bool]]:
    """Every tensor that the module or the file's globals hold: (attribute path, tensor, whether it is in state_dict).

    Parameters and buffers keep their `state_dict` names (`blocks.0.weight`), other attributes read as Python
    (`scale`, `tables[1]`, `cache["w"]`), and globals of the file start with `::`.
    """
    seen: set[int] = set()
    count = 0
    for found in _walk_module(module, "", seen, 0):
        count += 1
        if count > MAX_TENSORS:
            return
        yield found
    for name, value in list(namespace.items()):
        if name.startswith("__"):
            continue
        for path, tensor in _walk(value, f"::{name}", seen, 0):
            count += 1
            if count > MAX_TENSORS:
                return
            yield path, tensor, False


def _walk_module(
    module: torch.nn.Module, prefix: str, seen: set[int], depth: int
) -> Iterator[tuple[str, torch.Tensor, bool]]:
    if depth > MAX_DEPTH or id(module) in seen:
        return
    seen.add(id(module))
    fields = getattr(module, "__dict__", {})
    transient = fields.get("_non_persistent_buffers_set", ())
    for group in ("_parameters", "_buffers"):
        for name, tensor in dict(fields.get(group, {})).items():
            if isinstance(tensor, torch.Tensor):
                yield prefix + name, tensor, group == "_parameters" or name not in transient
    for name, child in dict(fields.get("_modules", {})).items():
        if isinstance(child, torch.nn.Module):
            yield from _walk_module(child, f"{prefix}{name}.", seen, depth + 1)
    for name, value in list(fields.items()):
        if name not in _MODULE_FIELDS:
            for path, tensor in _walk(value, prefix + name, seen, depth + 1):
                yield path, tensor, False


def _walk(value: Any, path: str, seen: set[int], depth: int) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield path, value
        return
    if depth > MAX_DEPTH or value is None or isinstance(value, (str, bytes, int, float, types.ModuleType)):
        return
    if isinstance(value, torch.nn.Module):
        for name, tensor, _ in _walk_module(value, f"{path}.", seen, depth):
            yield name, tensor
        return
    if id(value) in seen:
        return
    if isinstance(value, (list, tuple)):
        seen.add(id(value))
        for i, item in enumerate(value):
            yield from _walk(item, f"{path}[{i}]", seen, depth + 1)
    elif isinstance(value, dict):
        seen.add(id(value))
        for key, item in list(value.items()):
            if isinstance(key, (str, int)):
                yield from _walk(item, f"{path}[{key!r}]".replace("'", '"'), seen, depth + 1)
    elif isinstance(value, types.SimpleNamespace) or getattr(type(value), "__module__", None) == MODULE:
        seen.add(id(value))
        for name, item in list(getattr(value, "__dict__", {}).items()):
            yield from _walk(item, f"{path}.{name}", seen, depth + 1)
    elif isinstance(value, type) and value.__module__ == MODULE:
        seen.add(id(value))
        for name, item in list(value.__dict__.items()):
            if not name.startswith("__"):
                yield from _walk(item, f"{path}.{name}", seen, depth + 1)


def bind_state(module: torch.nn.Module, namespace: dict[str, Any], signature: dict[str, Any]) -> dict[str, Any]:
    """Says for each tensor of the module where its contents come from.

    Names of the signature's state with the right shape are the reference's weights (cast to the candidate's dtype as
    `load_state_dict` casts); everything else is a constant, whose contents the init job makes.

    Returns `{"world", "missing", "extra"}`: names of the state that the module lacks (or has in another shape), and
    names that only the module has.
    """
    world = World()
    wanted = {entry["name"]: entry for entry in signature["state"]}
    bound: set[str] = set()
    extra: list[str] = []
    for path, tensor, in_state in tensors_of(module, namespace):
        storage = storage_of(tensor)
        if tensor.dtype not in DTYPES:
            continue
        key = world.hold(storage)
        view = view_of(tensor)
        entry = wanted.get(path) if in_state else None
        if entry is not None and list(entry["shape"]) == view["shape"]:
            bound.add(path)
            value = {k: entry[k] for k in ("dtype", "shape", "strides", "offset")}
            size = getattr(torch, entry["dtype"]).itemsize
            source = Source({"kind": "state", "name": path}, value, _numel(view) * size, view)
        else:
            if in_state:
                extra.append(path)
            value = {**view, "strides": _contiguous(view["shape"]), "offset": 0}
            size = tensor.dtype.itemsize
            source = Source({"kind": "constant", "path": path}, value, _numel(view) * size, view)
        world.sources.setdefault(key, []).append(source)
    for key, sources in world.sources.items():
        world.sources[key] = _deciding(sources, world.keep[key].nbytes())
    return {"world": world, "missing": [n for n in wanted if n not in bound], "extra": extra}


def _deciding(sources: list[Source], nbytes: int) -> list[Source]:
    """Of several tensors over one storage, those that say what is in it, in the order of writing."""
    state = [s for s in sources if s.source["kind"] == "state"]
    whole = [s for s in state if s.view["offset"] == 0 and _numel(s.view) * _size(s.view) == nbytes]
    if whole:
        return whole[-1:]  # tied weights: load_state_dict's last write stays
    constants = [s for s in sources if s.source["kind"] == "constant"]
    covering = [s for s in constants if is_whole(s.view, nbytes)] or [
        s for s in constants if _numel(s.view) * _size(s.view) == nbytes
    ]
    return (covering[:1] or constants) + state


def _numel(view: dict[str, Any]) -> int:
    numel = 1
    for extent in view["shape"]:
        numel *= extent
    return numel


def _size(view: dict[str, Any]) -> int:
    return getattr(torch, view["dtype"]).itemsize


def _contiguous(shape: list[int]) -> list[int]:
    strides, want = [], 1
    for extent in reversed(shape):
        strides.append(want)
        want *= max(extent, 1)
    return strides[::-1]
