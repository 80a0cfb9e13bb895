"""Python values with tensors in them, as contract `Value` documents over storages; and the data file.

Inputs are kept as whole storages, so that strided, overlapping and shared tensors keep their layout.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, BinaryIO

import torch

DTYPES: dict[torch.dtype, str] = {
    getattr(torch, name): name
    for name in (
        *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
        *("float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64"),
    )
}
NAMES: dict[str, torch.dtype] = {name: dtype for dtype, name in DTYPES.items()}

ALIGNMENT = 64
"""Bytes to which every blob in the data file is aligned."""


class UnsupportedValue(Exception):
    """A value that no contract document can hold."""


def dtype_name(tensor: torch.Tensor) -> str:
    """Contract name of a tensor's dtype. Raises `UnsupportedValue` for complex, quantised and sparse tensors."""
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.dtype not in DTYPES:
        kind = tensor.dtype if tensor.layout is torch.strided else tensor.layout
        raise UnsupportedValue(f"tensors of {kind} are not supported")
    return DTYPES[tensor.dtype]


def number(value: bool | int | float) -> bool | int | float | str:
    """A number in JSON: non-finite floats are strings."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def encode(value: Any, tensor: Callable[[torch.Tensor, str], dict[str, Any]], path: str = "") -> dict[str, Any]:
    """A contract `Value`; `tensor` turns each tensor, given its path, into the fields of a `TensorRef`."""
    if isinstance(value, torch.Tensor):
        return {"kind": "tensor", **tensor(value, path)}
    if value is None:
        return {"kind": "none"}
    if isinstance(value, (bool, int, float)):
        if isinstance(value, int) and not -(2**63) <= value < 2**64:
            raise UnsupportedValue(f"the number {value} does not fit in 64 bits")
        return {"kind": "number", "value": number(value)}
    if isinstance(value, str):
        return {"kind": "str", "value": value}
    if isinstance(value, (torch.dtype, torch.device)):
        return {"kind": "torch", "value": str(value)}
    if isinstance(value, (list, tuple)):
        items = [encode(item, tensor, f"{path}[{i}]") for i, item in enumerate(value)]
        return {"kind": "tuple" if isinstance(value, tuple) else "list", "items": items}
    if isinstance(value, dict):
        return {
            "kind": "dict",
            "items": [[_key(k), encode(v, tensor, f"{path}[{_quoted(k)}]")] for k, v in value.items()],
        }
    if hasattr(value, "item") and type(value).__module__ == "numpy":
        return encode(value.item(), tensor, path)
    raise UnsupportedValue(f"a value of type {type(value).__name__} is not supported")


OUTPUT = "output of forward"
"""The key of what `forward` returns, in the result of a call that gives gradients too."""


def result_path(path: str) -> str:
    """What a place in a result is called: `output[0]`; of a call that gives gradients, `output[0]` or `grad NAME`."""
    if path.startswith('["grad ') and path.endswith('"]'):
        # Of a tensor, so that nothing follows: the key as `_quoted` has it.
        return path[2:-2].replace('\\"', '"').replace("\\\\", "\\")
    return "output" + path.removeprefix(f'["{OUTPUT}"]')


def same_layout(first: Any, second: Any) -> bool:
    """Whether two argument documents are the same but for what plain numbers of one type are."""
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(same_layout(a, b) for a, b in zip(first, second, strict=True))
    if isinstance(first, dict) and isinstance(second, dict) and first.get("kind") == second.get("kind"):
        if first["kind"] == "number":
            plain = type(first["value"]) in (int, float) and type(first["value"]) is type(second["value"])
            return plain or first == second
        if "items" in first:
            return same_layout(first["items"], second["items"])
    return first == second


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise UnsupportedValue(f"a dict with the key {key!r} is not supported: keys are strings")
    return key


def _quoted(key: Any) -> str:
    escaped = str(key).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def contiguous_strides(shape: list[int]) -> list[int]:
    """Strides of a row-major tensor, as the contract's `View::contiguous` has them."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 1, 0, -1):
        strides[axis - 1] = strides[axis] * max(shape[axis], 1)
    return strides


class Storages:
    """The distinct storages under a set of arguments, each as a flat tensor of its first user's dtype."""

    def __init__(self) -> None:
        self.flats: list[torch.Tensor] = []
        self._index: dict[int, int] = {}

    def add(self, tensor: torch.Tensor, _path: str = "") -> dict[str, Any]:
        """`TensorRef` fields of a tensor, whose storage is taken in if it is new."""
        name = dtype_name(tensor)
        tensor = tensor.detach()
        storage = tensor.untyped_storage()
        index = self._index.get(storage._cdata)
        if index is None:
            index = self._index[storage._cdata] = len(self.flats)
            whole = storage.nbytes() % tensor.element_size() == 0
            dtype = tensor.dtype if whole else torch.uint8
            count = storage.nbytes() // dtype.itemsize
            self.flats.append(torch.empty(0, dtype=dtype, device=tensor.device).set_(storage, 0, (count,), (1,)))
        return {
            "buffer": index,
            "dtype": name,
            "shape": list(tensor.shape),
            "strides": list(tensor.stride()),
            "offset": tensor.storage_offset() * tensor.element_size(),
        }


def widened(flats: list[torch.Tensor]) -> list[torch.Tensor]:
    """Copies of the storages with every floating one in float64."""
    return [flat.to(torch.float64) if flat.is_floating_point() else flat.clone() for flat in flats]


def decode(value: dict[str, Any], flats: list[torch.Tensor]) -> Any:
    """The Python value of a document over these storages, which may be wider than the document says."""
    match value["kind"]:
        case "tensor":
            return _view(value, flats[value["buffer"]])
        case "none":
            return None
        case "number":
            plain = value["value"]
            return float(plain) if isinstance(plain, str) else plain
        case "str":
            return value["value"]
        case "torch":
            text = value["value"]
            return getattr(torch, text[6:]) if text.startswith("torch.") else torch.device(text)
        case "list":
            return [decode(item, flats) for item in value["items"]]
        case "tuple":
            return tuple(decode(item, flats) for item in value["items"])
        case _:
            return {key: decode(item, flats) for key, item in value["items"]}


def _view(ref: dict[str, Any], flat: torch.Tensor) -> torch.Tensor:
    dtype = NAMES[ref["dtype"]]
    offset = ref["offset"] // dtype.itemsize
    if flat.dtype != dtype and not (flat.dtype == torch.float64 and dtype.is_floating_point):
        flat = flat.view(dtype)
    return flat.as_strided(ref["shape"], ref["strides"], offset)


def tensor_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor's elements in logical order as bytes on the CPU."""
    return raw_bytes(tensor.cpu())


def raw_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor's elements in logical order as bytes, where it is."""
    dense = tensor.detach().contiguous()
    # Of a single element, "contiguous" may still say another stride.
    return dense.as_strided((dense.numel(),), (1,)).view(torch.uint8)


class DataFile:
    """The oracle's data file: blobs, each at a multiple of [`ALIGNMENT`] bytes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._end = 0

    def write(self, tensor: torch.Tensor) -> dict[str, int]:
        """Append a tensor's elements in logical order; the `Blob` where they lie."""
        data = tensor_bytes(tensor)
        padding = -self._end % ALIGNMENT
        self._file.write(bytes(padding))
        offset = self._end + padding
        self._file.write(memoryview(data.numpy()))
        self._end = offset + data.numel()
        return {"offset": offset, "nbytes": data.numel()}

    share = write
    """For inputs and weights, which a store on a GPU keeps apart from results."""


def read_blob(path: str, blob: dict[str, int], dtype: torch.dtype) -> torch.Tensor:
    """A blob of a data file as a flat, writable tensor on the CPU."""
    if blob["nbytes"] == 0:
        return torch.empty(0, dtype=dtype)
    with open(path, "rb") as file:
        file.seek(blob["offset"])
        data = bytearray(file.read(blob["nbytes"]))
    return torch.frombuffer(data, dtype=torch.uint8).view(dtype)
