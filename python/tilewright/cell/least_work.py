"""What no program can do less of than this for one call of a reference: bytes that it must read, bytes that it must
write, and operations of a matrix product that it cannot leave out. Trusted code, part of the reference's process.

Nothing here is a list of known problems: it is found by trying.

- **Read.** A sector of 32 bytes of inputs and weights has to be read if, all others as they are, another value in it
  changes the result. Sectors are drawn at random and tried one by one; from the share that matter follows, with 99 %
  confidence, how many of all bytes do at least. Rows that a mask skips, columns that are sliced away and tables of
  which a few rows are looked up count for nothing.
- **Written.** Each byte of the result.
- **Operations.** Of one matrix product, the largest that stands these tests; all others may fold into each other. Its
  elements are no more than those of the results, and each of a random sample, changed by itself, changes the results: a
  mean over it, or x - x, does not need it. It equals no product before it. Its operands are of full rank; where they
  are not, it counts in proportion. Convolutions and attention count for nothing: there are algorithms that do them with
  fewer operations.

A reference whose results vary from call to call has no least work that could be found so.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

SECTOR = 32
"""Bytes that a device reads at least at once."""
SECTORS = 96
"""Sectors that are tried."""
OTHERS = 3
"""Other values that a sector gets, at most."""
ELEMENTS = 24
"""Elements of a matrix product that are tried."""
DOUBT = 0.01
"""Odds that a share is smaller than is said."""
SECONDS = 1.5
"""Time for trying; what was not tried does not count."""
RANK_SIDE = 512
"""Rows and columns at most of the part of an operand whose rank is found."""
RANK_TOLERANCE = 0.02
"""Singular values below this share of the largest are noise: operands are often rounded to half precision."""

NOTHING = {"read": 0, "written": 0, "flops": 0}
PRODUCTS = {
    torch.ops.aten.mm.default: (0, 1),
    torch.ops.aten.bmm.default: (0, 1),
    torch.ops.aten.addmm.default: (1, 2),
    torch.ops.aten.baddbmm.default: (1, 2),
}
"""Matrix products, with the positions of their two operands."""

Results = list[torch.Tensor]

Visit = Callable[[int, tuple[torch.Tensor, torch.Tensor], torch.Tensor], None]
"""Sees the number of a product, its operands and its result."""


def least_work(call: Callable[[], Any], tensors: list[torch.Tensor], seed: int = 0) -> dict[str, int]:
    """Least bytes read and written, and least operations, of one call.

    `call` runs the reference on `tensors`, its inputs and its state, which are put back after each call; those of them
    that it modifies are results, too. Answers `{"read", "written", "flops"}`, zeros where nothing could be found.
    """
    try:
        return _least_work(_Trial(call, tensors), seed)
    except RuntimeError:
        # Not enough memory to try, or a reference that does not stand being watched.
        return dict(NOTHING)


def _least_work(trial: _Trial, seed: int) -> dict[str, int]:
    first = trial.run()
    if not _same(first, trial.run()):
        return dict(NOTHING)
    generator = torch.Generator().manual_seed(seed)
    storages = {result.untyped_storage().data_ptr(): result.untyped_storage().nbytes() for result in first}
    deadline = time.monotonic() + SECONDS
    total = sum(tensor.numel() * tensor.element_size() for tensor in trial.flats)
    share = _needed_sectors(trial, first, generator, deadline)
    return {
        "read": int(total * share),
        "written": sum(storages.values()),
        "flops": _needed_flops(trial, first, generator, deadline + SECONDS),
    }


def at_least(hits: int, tries: int) -> float:
    """The share of all that is hit at least, when `hits` of `tries` random ones were: the lower end of a one-sided
    interval by Clopper and Pearson."""
    if hits == 0:
        return 0.0
    low, high = 0.0, hits / tries
    for _ in range(60):
        middle = (low + high) / 2
        odds = sum(math.comb(tries, k) * middle**k * (1 - middle) ** (tries - k) for k in range(hits, tries + 1))
        low, high = (middle, high) if odds < DOUBT else (low, middle)
    return low


class _Trial:
    """Calls of the reference, each from the same start."""

    def __init__(self, call: Callable[[], Any], tensors: list[torch.Tensor]) -> None:
        self.call = call
        dense = [tensor.detach() for tensor in tensors if tensor.numel() > 0]
        self.starts = [(tensor, tensor.clone()) for tensor in dense]
        # Changed in place, so that the call sees it: views that lie without gaps.
        self.flats = [tensor.view(-1) for tensor in dense if tensor.is_contiguous()]
        self.modified: list[torch.Tensor] | None = None

    @torch.no_grad()
    def run(self, mode: TorchDispatchMode | None = None) -> Results:
        """What one call gives; then everything is as before."""
        if mode is None:
            output = self.call()
        else:
            with mode:
                output = self.call()
        results = [leaf for leaf in tree_flatten(output)[0] if isinstance(leaf, torch.Tensor)]
        if self.modified is None:
            self.modified = [tensor for tensor, start in self.starts if not _same([tensor], [start])]
        # Results may be inputs themselves, or what the next call overwrites.
        kept = [result.detach().clone() for result in (*results, *self.modified)]
        for tensor, start in self.starts:
            tensor.copy_(start)
        return kept


def _same(first: Results, second: Results) -> bool:
    """Bit for bit, NaN as any other value."""
    return len(first) == len(second) and all(
        a.shape == b.shape and torch.equal(_bits(a), _bits(b)) for a, b in zip(first, second, strict=True)
    )


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a tensor."""
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def _needed_sectors(trial: _Trial, first: Results, generator: torch.Generator, deadline: float) -> float:
    """The share of sectors that have to be read, at least."""
    sizes = torch.tensor([float(flat.numel() * flat.element_size()) for flat in trial.flats], dtype=torch.float64)
    if sizes.sum() == 0:
        return 0.0
    hits = tries = 0
    while tries < SECTORS and (time.monotonic() < deadline or tries == 0):
        flat = trial.flats[int(torch.multinomial(sizes, 1, generator=generator))]
        width = max(1, SECTOR // flat.element_size())
        start = int(torch.randint(0, flat.numel(), (1,), generator=generator)) // width * width
        others = torch.randint(0, flat.numel(), (OTHERS,), generator=generator).tolist()
        hits += any(_changes(trial, first, flat, start, width, other) for other in others)
        tries += 1
    return at_least(hits, tries)


def _changes(trial: _Trial, first: Results, flat: torch.Tensor, start: int, width: int, other: int) -> bool:
    """Whether other values in a part of a tensor change the results. They are those of another part of it: what is an
    index somewhere stays one, since one that leads astray would end the process."""
    part, donor = flat[start : start + width], flat[other : other + width]
    part[: donor.numel()] = donor.clone()[: part.numel()]
    try:
        return not _same(first, trial.run())
    except RuntimeError:
        # Not to the liking of an operation: no proof of anything.
        for tensor, before in trial.starts:
            tensor.copy_(before)
        return False


class _Products(TorchDispatchMode):
    """Sees the matrix products of a call in their order, and may change an element of one."""

    def __init__(self, visit: Visit) -> None:
        super().__init__()
        self.visit, self.count = visit, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func in PRODUCTS:
            first, second = PRODUCTS[func]
            number, self.count = self.count, self.count + 1
            self.visit(number, (args[first], args[second]), result)
        return result


def _needed_flops(trial: _Trial, first: Results, generator: torch.Generator, deadline: float) -> int:
    """Operations of the matrix product that needs the most of them."""
    available = sum(result.numel() for result in first)
    found: list[tuple[float, int, int]] = []
    seen: list[torch.Tensor] = []

    def visit(number: int, operands: tuple[torch.Tensor, torch.Tensor], result: torch.Tensor) -> None:
        repeated = any(result.shape == other.shape and torch.equal(result, other) for other in seen)
        seen.append(result)
        if not repeated and 0 < result.numel() <= available and result.dtype.is_floating_point:
            flops = 2.0 * result.numel() * operands[0].shape[-1]
            found.append((flops, number, result.numel()))

    trial.run(_Products(visit))
    seen.clear()
    best = 0.0
    for flops, number, numel in sorted(found, reverse=True):
        if flops <= best or time.monotonic() > deadline:
            break
        rank = _rank_of(trial, number, generator)
        hits = tries = 0
        while tries < ELEMENTS and (tries == 0 or time.monotonic() < deadline):
            at = int(torch.randint(0, numel, (1,), generator=generator))
            hits += any(not _same(first, trial.run(_Products(_changing(number, at, sign)))) for sign in (1, -1))
            tries += 1
        best = max(best, flops * rank * at_least(hits, tries))
    return int(best)


def _changing(number: int, at: int, sign: int) -> Visit:
    """Makes one element of one product larger, or smaller, than all others."""

    def visit(count: int, operands: tuple[torch.Tensor, torch.Tensor], result: torch.Tensor) -> None:
        del operands
        if count == number and result.is_contiguous():
            result.view(-1)[at] = sign * (2 * result.abs().max() + 1)

    return visit


def _rank_of(trial: _Trial, number: int, generator: torch.Generator) -> float:
    """The rank of a product's operands as a share of what it could be, the smaller of the two."""
    ranks = [1.0]

    def visit(count: int, operands: tuple[torch.Tensor, torch.Tensor], result: torch.Tensor) -> None:
        del result
        if count == number:
            ranks.extend(_rank_share(operand[0] if operand.dim() == 3 else operand, generator) for operand in operands)

    trial.run(_Products(visit))
    return min(ranks)


def _rank_share(matrix: torch.Tensor, generator: torch.Generator) -> float:
    """The rank of a random part of a matrix, over its smaller side."""
    rows, cols = (torch.randperm(side, generator=generator)[:RANK_SIDE].to(matrix.device) for side in matrix.shape)
    part = matrix[rows][:, cols].to(torch.float32).cpu()
    if not torch.isfinite(part).all():
        return 0.0
    values = torch.linalg.svdvals(part)
    return float((values > RANK_TOLERANCE * values.max()).sum()) / len(values) if values.max() > 0 else 0.0
