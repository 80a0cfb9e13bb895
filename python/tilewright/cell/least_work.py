"""What no program can do less of than this for one call of a reference: bytes that it must read, bytes that it must
write, and operations of a matrix product that it cannot leave out. Trusted code, part of the reference's process.

Nothing here is a list of known problems: it is found by trying.

- **Read.** A sector of 32 bytes of inputs and weights has to be read if, all others as they are, another value in it
  changes the result. Sectors are drawn at random and tried one by one; from the share that matter follows, with 99 %
  confidence, how many of all bytes do at least. Rows that a mask skips, columns that are sliced away and tables of
  which a few rows are looked up count for nothing; nor do sectors of zeros, which a program may know by the structure
  of the problem, and what is in the memory a second time: tied weights, equal inputs, half of a symmetric matrix.
- **Written.** Each byte of the result that nothing else tells: an axis along which all is equal may be expanded, a
  result may be a view of another. What the call changes in place counts as far as it is changed; what it returns of
  its inputs, not at all.
- **Operations.** Of one matrix product, the largest that stands these tests; all others may fold into each other. Its
  elements are no more than those of the results, and each of a random sample, changed by itself, changes the results: a
  mean over it, or x - x, does not need it. It equals no product before it. Its operands have no more elements than the
  inputs and weights, from which they could else be put together in cheaper ways. Products with zeros do not count, and
  where it is not shown that operands are of full rank, it counts in proportion. Convolutions and attention count for
  nothing: there are algorithms that do them with fewer operations.

A reference whose results vary from call to call has no least work that could be found so.
"""

from __future__ import annotations

import contextlib
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
RANK_SIDE = 2048
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

INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""By the bytes of an element."""

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
    written, elements = trial.written, trial.elements
    if not _same(first, trial.run()):
        return dict(NOTHING)
    generator = torch.Generator().manual_seed(seed)
    deadline = time.monotonic() + SECONDS
    total = sum(_told_by(flat) for flat in trial.flats)
    share = _needed_sectors(trial, first, generator, deadline)
    return {
        "read": int(total * share),
        "written": written,
        "flops": _needed_flops(trial, first, elements, generator, deadline + SECONDS),
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
        self.owned = {tensor.untyped_storage().data_ptr() for tensor in dense}
        # Changed in place, so that the call sees it: views that lie without gaps.
        self.flats = _distinct([tensor for tensor in dense if tensor.is_contiguous()])
        self.modified: list[tuple[torch.Tensor, torch.Tensor]] | None = None
        """What the call changes, and what it was."""
        self.written = 0
        """Bytes that a call has to write, once there was one."""
        self.elements = 0
        """Elements of its results and of what it changes."""

    @torch.no_grad()
    def run(self, mode: TorchDispatchMode | None = None) -> Results:
        """What one call gives; then everything is as before. Of inputs, it gives what it has changed there."""
        before = None if self.modified is None else [tensor.clone() for tensor, _ in self.modified]
        with mode or contextlib.nullcontext():
            output = self.call()
        leaves = [leaf.detach() for leaf in tree_flatten(output)[0] if isinstance(leaf, torch.Tensor)]
        fresh = [leaf for leaf in leaves if leaf.numel() > 0 and leaf.untyped_storage().data_ptr() not in self.owned]
        first = self.modified is None
        if self.modified is None:
            self.modified = [(tensor, start) for tensor, start in self.starts if not _same([tensor], [start])]
        # A part of them may have had another value before this call.
        before = before or [start for _, start in self.modified]
        changes = [_changed(tensor, was) for (tensor, _), was in zip(self.modified, before, strict=True)]
        if first:
            self._count(fresh, changes)
        # The next call may overwrite its results.
        kept = [*(result.clone() for result in fresh), *changes]
        for tensor, start in self.starts:
            tensor.copy_(start)
        return kept

    def _count(self, fresh: Results, changes: Results) -> None:
        self.written, self.elements = _needed_writes(fresh), sum(result.numel() for result in fresh)
        for change in changes:
            elements = int(change.any(1).sum())
            self.written += elements * change.shape[1]
            self.elements += elements


def _distinct(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """Tensors without what is in memory twice: of one storage the largest, of equal contents one."""
    found: dict[int, torch.Tensor] = {}
    for tensor in sorted(tensors, key=lambda tensor: -tensor.numel() * tensor.element_size()):
        key = tensor.untyped_storage().data_ptr()
        if key not in found and not any(_same([tensor], [other]) for other in found.values()):
            found[key] = tensor
    return list(found.values())


def _told_by(tensor: torch.Tensor) -> int:
    """Bytes of a tensor, half of them where it is a matrix that is its own transpose."""
    side = math.isqrt(tensor.numel())
    if side < 2 or side * side != tensor.numel():
        return tensor.nbytes
    matrix = _words(tensor).reshape(side, side, -1)
    return tensor.nbytes // 2 if torch.equal(matrix, matrix.transpose(0, 1)) else tensor.nbytes


def _needed_writes(results: Results) -> int:
    """Bytes of results that nothing else tells."""
    storages: dict[int, int] = {}
    seen: set[tuple[int, int]] = set()
    for result in results:
        words = _words(result)
        extents = [
            1 if size == 1 or torch.equal(words, words.narrow(axis, 0, 1).expand_as(words)) else size
            for axis, size in enumerate(words.shape)
        ]
        # A sum of whole numbers is the same in whatever order a view has them.
        if (key := (words.numel(), int(words.sum(dtype=torch.int64)))) in seen:
            continue
        seen.add(key)
        storage = result.untyped_storage()
        told = storages.get(storage.data_ptr(), 0) + math.prod(extents) * result.element_size()
        storages[storage.data_ptr()] = min(told, storage.nbytes())
    return sum(storages.values())


def _changed(tensor: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
    """The bytes of a tensor, a row an element, with zeros where it is what it was. For zeros that were something else,
    ones."""
    after, before = (_bits(one).view(-1, tensor.element_size()) for one in (tensor, start))
    differ = (after != before).any(1, keepdim=True)
    return torch.where(differ, after.clamp(min=1), 0)


def _words(tensor: torch.Tensor) -> torch.Tensor:
    """The same elements as integers, bit by bit; complex ones as pairs."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    return tensor.view(INTEGERS[tensor.element_size()])


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
    flats = [flat.view(-1) for flat in trial.flats]
    sizes = torch.tensor([float(flat.nbytes) for flat in flats], dtype=torch.float64)
    if sizes.sum() == 0:
        return 0.0
    hits = tries = 0
    while tries < SECTORS and (time.monotonic() < deadline or tries == 0):
        flat = flats[int(torch.multinomial(sizes, 1, generator=generator))]
        width = max(1, SECTOR // flat.element_size())
        start = int(torch.randint(0, flat.numel(), (1,), generator=generator)) // width * width
        others = torch.randint(0, flat.numel(), (OTHERS,), generator=generator).tolist()
        zeros = not bool(_bits(flat[start : start + width]).any())
        hits += not zeros and any(_changes(trial, first, flat, start, width, other) for other in others)
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


def _needed_flops(trial: _Trial, first: Results, elements: int, generator: torch.Generator, deadline: float) -> int:
    """Operations of the matrix product that needs the most of them; results and changes have so many elements."""
    given = sum(flat.numel() for flat in trial.flats)
    found: list[tuple[float, int, int]] = []
    seen: list[torch.Tensor] = []

    def visit(number: int, operands: tuple[torch.Tensor, torch.Tensor], result: torch.Tensor) -> None:
        repeated = any(result.shape == other.shape and torch.equal(result, other) for other in seen)
        seen.append(result)
        small = 0 < result.numel() <= elements and all(operand.numel() <= given for operand in operands)
        if not repeated and small and result.dtype.is_floating_point:
            found.append((_operations(*operands), number, result.numel()))

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


def _operations(first: torch.Tensor, second: torch.Tensor) -> float:
    """Multiplications and additions of a product, those with a zero left out."""
    columns, rows = (first != 0).sum(-2).double(), (second != 0).sum(-1).double()
    return 2.0 * float((columns * rows).sum())


def _rank_share(matrix: torch.Tensor, generator: torch.Generator) -> float:
    """What is known of a matrix's rank, over its smaller side: the rank of a random part, less the mean of its rows,
    which would hide all else in a matrix of positive numbers."""
    rows, cols = (torch.randperm(side, generator=generator)[:RANK_SIDE].to(matrix.device) for side in matrix.shape)
    part = matrix[rows][:, cols].to(torch.float32)
    part = part - part.mean(0)
    if not torch.isfinite(part).all():
        return 0.0
    # Their roots are the singular values.
    values = torch.linalg.eigvalsh(part @ part.T if part.shape[0] < part.shape[1] else part.T @ part)
    rank = int((values > RANK_TOLERANCE**2 * values.max()).sum()) if values.max() > 0 else 0
    return rank / min(matrix.shape)
