"""Compares many tensors at once, by the kernels of `figures`: a few launches and one wait, whatever their number.

What it gives is what `scan` gives. What it does not do is left to `scan`: references that are not finite, dtypes
without a kernel, results that are not finite.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tilewright.cell import scan
from tilewright.cell.device_memory import driver
from tilewright.cell.oracle_reference import equal_bits
from tilewright.cell.oracle_values import raw_bytes

BLOCK = 256
"""Elements that a program looks at together."""
WORK = 8192
"""Elements of a program at least."""
WORDS = 2048
"""Words that a program compares bit by bit."""
FIELDS = 16
RULES = {"mere_mare": 1, "mere_mare_truncated": 2, "scaled_rms": 3}
TOLERANCES = ("rtol", "atol", "atol_scaled", "rms_tol")
Launch = Callable[[Sequence[int], Sequence[Any]], None]
"""Puts a kernel into the current stream: its grid, and its arguments, of which tensors stand for their addresses."""


def kernel_name(dtype: str, wide: bool, rule: str) -> str:
    """What the kernel of `figures` for these is called."""
    return f"figures {dtype} {'wide' if wide else 'own'} {RULES.get(rule, 0)}"


@dataclass
class Entry:
    """A tensor to be compared under a profile."""

    kernel: str
    reference: scan.Reference
    got: torch.Tensor
    addresses: list[int]
    limits: list[float]


@dataclass
class Known:
    """What of an entry depends on the reference and the profile alone."""

    addresses: list[int]
    limits: list[float]
    keep: list[torch.Tensor]
    """What lies there."""


def _known(reference: scan.Reference, profile: dict[str, Any]) -> Known:
    tolerance = scan.tolerance_of(profile, reference.dtype)
    key = (profile["rule"], *tolerance.values())
    if key not in reference.known:
        limits = scan.Limits(profile["rule"], tolerance, reference)
        golden = {"native": reference.native, "float64": reference.float64}.get(reference.golden)
        golden = reference.rounded() if golden is None else golden
        scales = reference.scales_under(limits) if reference.grouped else reference.native
        float64 = 0 if reference.float64 is None else reference.float64.data_ptr()
        addresses = [reference.native.data_ptr(), golden.data_ptr(), scales.data_ptr(), float64]
        numbers = [*(limits.t[name] for name in TOLERANCES), limits.quantum, limits.tiny]
        numbers += [limits.t[name] for name in ("mean_rel", "small_threshold", "small_error")]
        reference.known[key] = Known(addresses, numbers, [golden, scales])
    return reference.known[key]


Later = Callable[[], Any]
"""An answer, to be had once the comparison has run."""


class Comparison:
    """Tensors that are compared together."""

    def __init__(self, kernels: dict[str, Launch], device: str) -> None:
        """Nothing yet; `kernels` by the names that `kernel_name` gives them, and `differ`."""
        self.kernels, self.device = kernels, device
        self.pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.few: list[torch.Tensor] = []
        self.entries: list[Entry] = []
        self.equals: list[bool] = []
        self.bytes: list[list[int]] = []
        self.found: dict[int, dict[str, Any] | None] = {}

    def equal(self, first: torch.Tensor, second: torch.Tensor) -> Later:
        """Whether the bytes of two flat tensors are equal."""
        fits = first.numel() == second.numel() and first.data_ptr() % 8 == 0 and second.data_ptr() % 8 == 0
        if "differ" not in self.kernels or not fits:
            return lambda: equal_bits(first, second)
        self.pairs.append((first, second))
        number = len(self.pairs) - 1
        return lambda: self.equals[number]

    def read(self, raw: torch.Tensor) -> Later:
        """A few bytes."""
        self.few.append(raw)
        number = len(self.few) - 1
        return lambda: self.bytes[number]

    def exact(self, native: torch.Tensor, got: torch.Tensor, float64: torch.Tensor | None) -> Later:
        """Figures of a flat tensor of which every bit must be equal."""
        equal = self.equal(raw_bytes(native), raw_bytes(got))
        return lambda: scan.equal_figures(native) if equal() else scan.exact(native, got, float64)

    def figures(self, reference: scan.Reference, got: torch.Tensor, profile: dict[str, Any]) -> Later:
        """Figures of a flat tensor under a profile."""
        name = kernel_name(scan.dtype_name(reference.dtype), reference.golden == "float64", profile["rule"])
        if name not in self.kernels or not reference.plain or got.numel() == 0:
            return lambda: scan.scan(reference, got, profile)
        known = _known(reference, profile)
        self.entries.append(Entry(name, reference, got, [*known.addresses, got.data_ptr()], known.limits))
        number = len(self.entries) - 1
        # Where a result is not finite, torch tells what it may be.
        return lambda: self.found[number] or scan.scan(reference, got, profile)

    def run(self) -> None:
        """Find all answers that were asked for."""
        classes: dict[tuple[str, scan.Groups], list[int]] = {}
        for at, entry in enumerate(self.entries):
            classes.setdefault((entry.kernel, entry.reference.groups), []).append(at)
        parts = [self._run_pairs(), *self.few, *(self._run_class(numbers) for numbers in classes.values())]
        # The one place where the device is waited for.
        numbers = iter(torch.cat([part.flatten().double() for part in parts]).tolist())
        self.equals = [number == 0.0 for number in itertools.islice(numbers, len(self.pairs))]
        self.bytes = [[int(byte) for byte in itertools.islice(numbers, raw.numel())] for raw in self.few]
        for at in itertools.chain.from_iterable(classes.values()):
            self.found[at] = _figures(self.entries[at], list(itertools.islice(numbers, FIELDS)))

    def _run_pairs(self) -> torch.Tensor:
        out = torch.zeros(len(self.pairs), dtype=torch.int32, device=self.device)
        # Of a launch, the largest pair decides how many programs each has.
        sizes = [first.numel() for first, _ in self.pairs]
        start, order = 0, sorted(range(len(sizes)), key=sizes.__getitem__)
        for _, group in itertools.groupby(order, key=lambda at: sizes[at].bit_length()):
            pairs = [self.pairs[at] for at in group]
            table = self._table([(first.data_ptr(), second.data_ptr(), first.numel()) for first, second in pairs])
            most = max(first.numel() for first, _ in pairs)
            grid = (max(-(-(most // 8) // WORDS), 1), len(pairs))
            self.kernels["differ"](grid, (table, out[start:]))
            start += len(pairs)
        back = sorted(range(len(order)), key=order.__getitem__)
        return out[torch.tensor(back, dtype=torch.int64, device=self.device)]

    def _run_class(self, numbers: list[int]) -> torch.Tensor:
        """The figures of entries that one launch takes."""
        entries = [self.entries[at] for at in numbers]
        groups = entries[0].reference.groups
        per = max(WORK // max(groups.row // groups.parts, 1), 1)
        programs = -(-groups.count // per)
        out = torch.empty(len(entries), programs, FIELDS, dtype=torch.float64, device=self.device)
        table = self._table([entry.addresses for entry in entries])
        limits = torch.tensor([entry.limits for entry in entries], dtype=torch.float64).to(self.device)
        arguments = (table, limits, None, None, out, groups.row, groups.parts, groups.count, per)
        self.kernels[entries[0].kernel]((programs, len(entries)), arguments)
        return _joined(out)

    def _table(self, rows: list[Any]) -> torch.Tensor:
        return torch.tensor(rows, dtype=torch.int64).to(self.device)


def _joined(parts: torch.Tensor) -> torch.Tensor:
    """The figures of tensors from those of their programs."""
    sums, most = parts[:, :, :6].sum(1), parts[:, :, 6:8].amax(1)

    def best(column: int) -> torch.Tensor:
        # The first of the largest, as `scan` has it.
        at = parts[:, :, column].argmax(1)
        return parts.gather(1, at[:, None, None].expand(-1, 1, FIELDS))[:, 0]

    worst, group = best(8), best(10)
    return torch.cat([sums, most, worst[:, 8:10], group[:, 10:12], worst[:, 12:]], 1)


def _figures(entry: Entry, row: Sequence[float]) -> dict[str, Any] | None:
    """As `scan.scan` gives them, with the bytes of the worst element."""
    odd, outside, matched, relative, squares, golden, max_abs, max_rel, worst, place, group, which, *element = row
    if odd:
        return None
    reference = entry.reference
    floats = {"relative": relative, "squares": squares, "golden": golden, "max_abs": max_abs, "max_rel": max_rel}
    native, float64, got = element[:3]
    return {
        **dict.fromkeys(("elements", "finite"), reference.groups.total),
        **dict.fromkeys(("pattern", "extra_nan", "extra_inf", "both_nan"), 0),
        "mismatched": int(outside),
        "matched": int(matched),
        **{name: repr(value) for name, value in floats.items()},
        "worst": [repr(worst), int(place)],
        "group": [repr(group), int(which)] if reference.grouped else None,
        "unit": repr(reference.unit),
        "element": {
            "native": _raw(native, reference.dtype),
            "float64": None if reference.float64 is None else _raw(float64, torch.float64),
            "got": _raw(got, reference.dtype),
        },
    }


def _raw(value: float, dtype: torch.dtype) -> list[int]:
    """The bytes of a value that the dtype holds."""
    if dtype == torch.bfloat16:
        return list(struct.pack("<f", value)[2:])
    return list(struct.pack({torch.float16: "<e", torch.float32: "<f"}.get(dtype, "<d"), value))


class Loaded:
    """A compiled kernel, launched through the driver."""

    def __init__(self, doc: dict[str, Any]) -> None:
        """Of `{image: hex, entry, threads, shared}`."""
        self.driver, self.threads, self.shared = driver(), doc["threads"], doc["shared"]
        self.image = bytes.fromhex(doc["image"])
        module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        self.driver.call("cuModuleLoadData", ctypes.byref(module), self.image)
        self.driver.call("cuModuleGetFunction", ctypes.byref(self.function), module, doc["entry"].encode())

    def __call__(self, grid: Sequence[int], arguments: Sequence[Any]) -> None:
        """Put a launch into the current stream."""
        # Triton's kernels end with two pointers to scratch memory, which these do not use.
        words = [ctypes.c_int64(_word(argument)) for argument in (*arguments, 0, 0)]
        pointers = (ctypes.c_void_p * len(words))(*(ctypes.addressof(word) for word in words))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        x, y = grid
        shape = (x, y, 1, self.threads, 1, 1, self.shared)
        self.driver.call("cuLaunchKernel", self.function, *shape, stream, pointers, None)


def _word(argument: Any) -> int:
    if argument is None:
        return 0
    return argument.data_ptr() if isinstance(argument, torch.Tensor) else int(argument)
