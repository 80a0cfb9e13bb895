"""What one trace writes down: storages, buffers, steps and findings of a plan.

A `World` lives as long as one `ModelNew`: it knows which storages are inputs, weights or constants. A `Recorder`
lives for one call of `forward` and turns what it is told into the JSON form of `tilewright_contract::Plan`.

What it is told goes to the native ledger at once, as text: a file that reaches the recorder can add to that, but can
take nothing back.
"""

from __future__ import annotations

import bisect
import json
import math
import random
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from tilewright import _core

MAX_STEPS = 100_000
MAX_FINDINGS = 200
LITERAL_LIMIT = 1024

_NAMES = (
    *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64"),
)
DTYPES: dict[torch.dtype, str] = {getattr(torch, name): name for name in _NAMES}
"""The contract's dtypes, by torch's."""

_disable_torch_function = torch._C.DisableTorchFunction
_untyped_storage = torch.Tensor.untyped_storage
_stride = torch.Tensor.stride
_offset = torch.Tensor.storage_offset


class TraceEnd(BaseException):
    """Stops a trace where it cannot go on; not an `Exception`, so that a candidate's `except` does not hide it."""


def storage_of(tensor: torch.Tensor) -> torch.UntypedStorage:
    """The tensor's storage, whatever torch-function modes the candidate has pushed."""
    with _disable_torch_function():
        return _untyped_storage(tensor)


_write, _write_once, _read = _core.write_record, _core.write_once, _core.read_record
_dumps, _loads = json.JSONEncoder(allow_nan=False).encode, json.loads


def write_finding(rule: str, tier: str, message: str, line: int, help: str | None = None) -> None:
    """Adds a finding to the call of `forward` under way (or to none), once."""
    finding = {"rule": rule, "tier": tier, "message": message[:500], "line": line}
    if help:
        finding["help"] = help
    _write_once("finding", _dumps(finding), MAX_FINDINGS)


def findings_of(record: int) -> list[dict[str, Any]]:
    """The findings of a record; those of number 0 were seen outside of every call of `forward`."""
    return [_loads(text) for text in _read(record, "finding")]


def number(value: Any) -> Any:
    """A Python number as `tilewright_contract::Number`."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**64:
        raise OverflowError(f"{value} does not fit 64 bits")
    if not isinstance(value, (bool, int, float)):
        raise TypeError(f"{type(value).__name__} is not a real number")
    return value


def view_of(tensor: torch.Tensor) -> dict[str, Any]:
    """The tensor's layout as `tilewright_contract::View`. Raises `KeyError` for a dtype that the contract lacks."""
    with _disable_torch_function():
        size = tensor.dtype.itemsize
        return {
            "dtype": DTYPES[tensor.dtype],
            "shape": [int(n) for n in tensor.shape],
            "strides": [int(n) for n in _stride(tensor)],
            "offset": int(_offset(tensor)) * size,
        }


def is_whole(view: dict[str, Any], nbytes: int) -> bool:
    """Whether a view is contiguous and covers its storage exactly."""
    size = getattr(torch, view["dtype"]).itemsize
    want, strides = 1, []
    for extent in reversed(view["shape"]):
        strides.append(want)
        want *= max(extent, 1)
    contiguous = all(
        s == w or n == 1 for s, w, n in zip(view["strides"], reversed(strides), view["shape"], strict=True)
    )
    return contiguous and view["offset"] == 0 and math.prod(view["shape"]) * size == nbytes


def broadcast(view: dict[str, Any], shape: list[int]) -> dict[str, Any]:
    """The view expanded to `shape` by strides of 0, as torch broadcasts."""
    lead = len(shape) - len(view["shape"])
    strides = [0] * lead + [
        0 if have == 1 and want != 1 else stride
        for have, want, stride in zip(view["shape"], shape[lead:], view["strides"], strict=True)
    ]
    return {**view, "shape": list(shape), "strides": strides}


@dataclass
class Source:
    """Where a tensor that exists before `forward` gets its contents: a contiguous value, and the tensor it fills."""

    source: dict[str, Any]
    value: dict[str, Any]
    nbytes: int
    view: dict[str, Any]


@dataclass
class World:
    """Storages that exist before `forward` runs, by the address of their `StorageImpl`."""

    inputs: dict[int, int] = field(default_factory=dict)
    sources: dict[int, list[Source]] = field(default_factory=dict)
    keep: dict[int, torch.UntypedStorage] = field(default_factory=dict)

    def hold(self, storage: torch.UntypedStorage) -> int:
        """Keeps the storage alive, so that its address stays its name."""
        key = storage._cdata
        self.keep[key] = storage
        return key


class Recorder:
    """Collects one plan. While it is open, everything that is seen belongs to it."""

    def __init__(self, world: World, session: Any, outside: bool = False) -> None:
        self.world = world
        self.session = session
        self.outside = outside
        """Whether this is no call of `forward`: what is recorded is thrown away."""
        self.record = 0 if outside else _core.open_record()
        self.buffers: list[torch.UntypedStorage | int] = []
        self.choices: dict[str, int] = {}
        """How many configurations each autotuner has under each key, in the order of the plan's choices."""
        self.seeds: dict[int, dict[str, Any]] = {}
        self.made: dict[int, StorageWeakRef] = {}
        """Storages that ops of this call made, by their address."""
        self._steps = 0
        self._spec_index: dict[int, int] = {}
        self._spec_names: dict[str, int] = {}
        self._index: dict[int, int] = {}
        self._known: set[int] = set()
        self._drawn: dict[int, tuple[int, int]] = {}
        self._keep: list[torch.UntypedStorage] = []

    def close(self) -> None:
        """Ends the call of `forward`."""
        _core.close_record(self.record)

    def write(self, kind: str, entry: Any) -> None:
        if not self.outside:
            _write(kind, _dumps(entry))

    def entries(self, kind: str) -> list[Any]:
        return [_loads(text) for text in _read(self.record, kind)]

    # findings ---------------------------------------------------------------------------------------------------

    def find(self, rule: str, tier: str, message: str, line: int | None = None, help: str | None = None) -> None:
        """Adds a finding once; `line` defaults to the candidate's innermost frame."""
        write_finding(rule, tier, message, self.line() if line is None else line, help)

    @property
    def findings(self) -> list[dict[str, Any]]:
        return findings_of(self.record)

    def line(self) -> int:
        return self.session.source.line()

    # storages ---------------------------------------------------------------------------------------------------

    def adopt(self, tensor: torch.Tensor) -> None:
        """Remembers the storage of a tensor that a recorded op made."""
        storage = storage_of(tensor)
        if storage._cdata not in self._known:
            self._known.add(storage._cdata)
            self._keep.append(storage)
            self.made[storage._cdata] = StorageWeakRef(storage)

    def knows(self, tensor: torch.Tensor) -> bool:
        key = storage_of(tensor)._cdata
        return key in self._known or key in self.world.inputs or key in self.world.sources

    def buffer(self, tensor: torch.Tensor) -> int:
        """Index of the tensor's storage in the plan."""
        return self.buffer_of(storage_of(tensor))

    def buffer_of(self, storage: torch.UntypedStorage) -> int:
        """Index of a storage in the plan."""
        key = storage._cdata
        if key in self._index:
            return self._index[key]
        self._keep.append(storage)
        if key in self.world.inputs:
            return self._add(key, storage, {"kind": "input", "index": self.world.inputs[key]})
        sources = self.world.sources.get(key)
        if key in self.session.tainted and not any(s.source["kind"] == "state" for s in sources or ()):
            self.find("outside-forward", "untraceable", "a kernel that ran outside of forward was given this tensor")
        if sources:
            return self._add_source(key, storage, sources)
        if key not in self._known and not self.outside:
            self.find(
                "unknown-storage",
                "proof",
                "this tensor's memory comes from no input, parameter or step that the trace saw",
                help="Make tensors in forward or in __init__ with torch.empty, torch.zeros or the like.",
            )
        return self._add(key, storage, {"kind": "scratch"})

    def _add(self, key: int | None, storage: torch.UntypedStorage | int, source: dict[str, Any]) -> int:
        index = len(self.buffers)
        self.buffers.append(storage)
        self.write("buffer", source)
        if key is not None:
            self._index[key] = index
        return index

    def _add_source(self, key: int, storage: torch.UntypedStorage, sources: list[Source]) -> int:
        """What is there before: its buffer itself where the layout is plain, else a copy into the tensor's layout."""
        nbytes = storage.nbytes()
        for source in sources:
            plain = is_whole(source.view, nbytes) and is_whole(source.value, source.nbytes)
            if plain and source.value["dtype"] == source.view["dtype"]:
                return self._add(key, storage, source.source)
        index = self._add(key, storage, {"kind": "scratch"})
        for source in sources:
            origin = self._add(None, source.nbytes, source.source)
            src, dst = {"buffer": origin, **source.value}, {"buffer": index, **source.view}
            self.write("prelude", {"op": "copy", "src": src, "dst": dst, "line": 0})
        return index

    def ref(self, tensor: torch.Tensor) -> dict[str, Any]:
        """The tensor as `tilewright_contract::TensorRef`."""
        try:
            view = view_of(tensor)
        except KeyError:
            self.find("dtype", "unsupported", f"tensors of {tensor.dtype} are not supported")
            raise TraceEnd from None
        self.check_fits(view, storage_of(tensor).nbytes())
        return {"buffer": self.buffer(tensor), **view}

    def check_fits(self, view: dict[str, Any], nbytes: int) -> None:
        """Ends the trace where a view or a tensor descriptor reaches outside its memory."""
        low = high = view["offset"]
        size = getattr(torch, view["dtype"]).itemsize
        for extent, stride in zip(view["shape"], view["strides"], strict=True):
            if extent == 0:
                return
            reach = (extent - 1) * stride * size
            low, high = low + min(reach, 0), high + max(reach, 0)
        if low < 0 or high + size > nbytes:
            self.find("out-of-bounds-view", "proof", f"a view reaches outside its memory of {nbytes} bytes")
            raise TraceEnd

    # steps ------------------------------------------------------------------------------------------------------

    def step(self, step: dict[str, Any]) -> None:
        if self._steps >= MAX_STEPS:
            self.find("too-many-steps", "untraceable", f"forward makes more than {MAX_STEPS} steps")
            raise TraceEnd
        step["line"] = self.line()
        self.session.streams.note(self, step["line"])
        self._steps += 1
        self.write("step", step)

    def copy(self, src: torch.Tensor, dst: torch.Tensor) -> None:
        """`dst = src`, broadcast and converted to dst's dtype."""
        target = self.ref(dst)
        origin = self.ref(src)
        view = broadcast({k: v for k, v in origin.items() if k != "buffer"}, target["shape"])
        self.step({"op": "copy", "src": {"buffer": origin["buffer"], **view}, "dst": target})
        self._overwritten(dst)

    def fill(self, dst: torch.Tensor, value: Any) -> None:
        self.step({"op": "fill", "dst": self.ref(dst), "value": number(value)})
        self._overwritten(dst)

    def iota(self, dst: torch.Tensor, start: Any, step: Any) -> None:
        self.step({"op": "iota", "dst": self.ref(dst), "start": number(start), "step": number(step)})
        self._overwritten(dst)

    def literal(self, dst: torch.Tensor, values: list[Any]) -> None:
        """A tensor written as numbers in the file."""
        if len(values) > LITERAL_LIMIT:
            self.find(
                "large-literal",
                "proof",
                f"a tensor of {len(values)} numbers is written into the file (at most {LITERAL_LIMIT})",
            )
            return
        if any(type(v) is int and v > 2**40 and self.session.addresses.find(v) for v in values):
            self.find(
                "raw-pointer",
                "untraceable",
                "the file puts addresses of tensors into a tensor, which a plan cannot hold",
                help="Pass the tensors as arguments of the kernel, in a tuple if there are many.",
            )
            raise TraceEnd
        self.step({"op": "literal", "dst": self.ref(dst), "values": [number(v) for v in values]})
        self._overwritten(dst)

    def random(self, dst: torch.Tensor, distribution: dict[str, Any]) -> None:
        self.step({"op": "random", "dst": self.ref(dst), "distribution": distribution})
        self._overwritten(dst)
        if distribution["kind"] == "randint" and dst.numel() == 1:
            self._drawn[storage_of(dst)._cdata] = (distribution["low"], distribution["high"])

    def written(self, dst: torch.Tensor) -> None:
        """An op or a launch wrote to the tensor in a way that no step describes."""
        self._overwritten(dst)
        if self.outside:
            storage = storage_of(dst)
            self.session.tainted[storage._cdata] = storage

    def _overwritten(self, dst: torch.Tensor) -> None:
        if self._drawn:
            self._drawn.pop(storage_of(dst)._cdata, None)

    def seed_value(self, tensor: torch.Tensor) -> int | None:
        """A stand-in for `torch.randint(...).item()`: the value that marks the seed, or None if it is not one."""
        drawn = self._drawn.get(storage_of(tensor)._cdata)
        if drawn is None:
            return None
        low, high = drawn
        span = high - low
        if span < 1 << 16:
            return None  # too small a range to know the number again when it reaches a launch
        # Odd and in the upper half: typed like most draws, and not specialised on divisibility.
        value = high - 1 - self.session.rng.randrange(max(span // 2, 1))
        if value % 2 == 0 and value > low:
            value -= 1
        self.seeds[value] = {"kind": "seed", "index": len(self.seeds), "low": low, "high": high}
        return value

    def kernel(self, spec: dict[str, Any]) -> int:
        """Index of the specialisation in the plan."""
        if id(spec) not in self._spec_index:
            # By text: Python takes True and 1 for equal, Triton and we do not.
            known = len(self._spec_names)
            index = self._spec_names.setdefault(repr(spec), known)
            if index == known:
                self.write("kernel", spec)
            self._spec_index[id(spec)] = index
        return self._spec_index[id(spec)]

    # pointers ---------------------------------------------------------------------------------------------------

    def pointer_at(self, address: int) -> dict[str, Any] | None:
        """The argument that an integer stands for if `data_ptr()` gave it out (plus an offset inside the storage)."""
        found = self.session.addresses.find(address)
        if found is None:
            return None
        ref, offset = found
        # One that this call made is taken from where it is kept: a new reference to it would keep it alive for good.
        storage = next((s for s in self._keep if s._cdata == ref.cdata), None)
        if storage is None:
            storage = torch.UntypedStorage._new_with_weak_ptr(ref.cdata)
        if storage is None:
            return None
        return {"kind": "pointer", "buffer": self.buffer_of(storage), "offset": offset}

    # result -----------------------------------------------------------------------------------------------------

    def plan(self) -> dict[str, Any]:
        """The plan as JSON."""
        sizes = [s if isinstance(s, int) else s.nbytes() for s in self.buffers]
        sources = self.entries("buffer")
        return {
            "schema": "tilewright.plan/1",
            "buffers": [{"nbytes": n, "source": source} for n, source in zip(sizes, sources, strict=True)],
            "kernels": self.entries("kernel"),
            "steps": self.entries("prelude") + self.entries("step"),
            "output": (self.entries("output") or [{"kind": "none"}])[0],
            "choices": self.entries("choice"),
            "regime": None,
            "findings": self.findings,
        }


class Addresses:
    """Gives storages pretend device addresses: unique, aligned to 512 bytes as CUDA's allocator does, never twice.

    Storages are held weakly: a file that keeps one must be the only reason that it lives on. A weak reference keeps
    the `StorageImpl` from being another storage's.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._next = 0x7F00_0000_0000 + rng.randrange(1 << 20) * 512
        self._by_key: dict[int, int] = {}
        self._starts: list[int] = []
        self._sizes: list[int] = []
        self._storages: list[StorageWeakRef] = []

    def of(self, storage: torch.UntypedStorage) -> int:
        key = storage._cdata
        if key not in self._by_key:
            self._by_key[key] = self._next
            self._starts.append(self._next)
            self._sizes.append(storage.nbytes())
            self._storages.append(StorageWeakRef(storage))
            self._next += (storage.nbytes() // 512 + 1 + self._rng.randrange(1 << 16)) * 512
        return self._by_key[key]

    def find(self, address: int) -> tuple[StorageWeakRef, int] | None:
        """The storage that an address lies in (or just behind), and the byte offset there."""
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0 or address - self._starts[at] > self._sizes[at]:
            return None
        return self._storages[at], address - self._starts[at]
