"""The dimensions of a group of nodes, and indices taken apart into them."""

from __future__ import annotations

from typing import Any

from tilewright.teacher import ir
from tilewright.teacher.group import Dims, Group, boundaries, cut_dims, dims_of
from tilewright.teacher.ir import Lin, Reduce
from tilewright.teacher.sizes import Size, Sizes
from tilewright.teacher.writer import Writer, atoms_to_dims, placed

WIDE = 2**31 - 2**22


class Layout:
    """The dimensions of a group, kept (X) and reduced (R), merged where no access tells them apart."""

    def __init__(self, group: Group, table: Sizes) -> None:
        self.group, self.table = group, table
        dims = dims_of(group, group.nodes, table)
        dims = self.lift_rows(dims)
        self.all = list(enumerate(dims.sizes))
        self.flags = dims.reduced
        self.x = [(k, s) for k, s in self.all if not self.flags[k]]
        self.r = [(k, s) for k, s in self.all if self.flags[k]]
        self.dropped: dict[int, int] = {}
        self.merge()

    def lift_rows(self, dims: Dims) -> Dims:
        """Cuts kept dimensions further where a node on rows needs it."""
        cuts: dict[tuple[int, ...], Size] = {}
        for node in self.group.row_nodes:
            for term in node.terms():
                for read in ir.reads(term):
                    extents = [a.size for axis in read.view.axes for a in axis]
                    cuts |= boundaries(extents, self.table)
        if not cuts:
            return dims
        kept = [s for s, r in zip(dims.sizes, dims.reduced, strict=True) if not r]
        mine = boundaries(kept, self.table)
        fine = cut_dims(cuts | mine, self.table, [])
        pieces = list(fine.sizes)
        result, flags = [], []
        for size, reduced in zip(dims.sizes, dims.reduced, strict=True):
            if reduced:
                result.append(size)
                flags.append(True)
                continue
            step = ir.ONE
            while not self.table.same(step, size):
                piece = pieces.pop(0)
                step = step * piece
                result.append(piece)
                flags.append(False)
        return Dims(result, flags)

    def forms(self) -> list[Lin]:
        """Every linear form of the group's accesses, over unmerged dimensions."""
        found = []
        for node in self.group.nodes:
            level = "row" if self.group.level(node) == "row" and not isinstance(node, Reduce) else "full"
            for term in node.terms():
                for read in ir.reads(term):
                    if self.group.makes(read.view.value):
                        continue
                    atoms = self.atoms(read.view.axes, level)
                    view = read.view
                    lins = [view.offset() if view.value.origin != "iota" else view.index[0]]
                    lins += [g.lin for g in view.guards]
                    found += [placed(lin, atoms) for lin in lins]
        for value in self.group.stored:
            if self.group.level(value.node) == "full":
                found.append(self.contiguous())
        return found

    def contiguous(self) -> Lin:
        """Offset of an element of the whole domain."""
        lin, step = Lin(), ir.ONE
        for key, size in reversed(self.all):
            lin = lin.plus(Lin({key: step}))
            step = step * size
        return lin

    def atoms(self, axes: Any, level: str) -> dict[ir.Atom, Lin]:
        return atoms_to_dims(axes, self.all if level == "full" else self.x_all, self.table)

    @property
    def x_all(self) -> list[tuple[int, Size]]:
        return [(k, s) for k, s in self.all if not self.flags[k]]

    def merge(self) -> None:
        forms = self.forms()
        for dims in (self.x, self.r):
            at = 0
            while at + 1 < len(dims):
                (outer, size_outer), (inner, size_inner) = dims[at], dims[at + 1]
                if all(self.follows(f, outer, inner, size_inner) for f in forms):
                    self.dropped[outer] = inner
                    dims[at : at + 2] = [(inner, size_outer * size_inner)]
                else:
                    at += 1

    def follows(self, lin: Lin, outer: int, inner: int, size: Size) -> bool:
        a, b = lin.terms.get(outer, ir.ZERO), lin.terms.get(inner, ir.ZERO)
        return self.table.of(a) == self.table.of(b * size)

    def place(self, lin: Lin, axes: Any, level: str) -> Lin:
        """A form over a view's atoms as one over merged dimensions."""
        return self.merged(placed(lin, self.atoms(axes, level)))

    def merged(self, lin: Lin) -> Lin:
        return Lin({k: c for k, c in lin.terms.items() if k not in self.dropped}, lin.const)


def decode(writer: Writer, dims: list[tuple[int, Size]], linear: str, names: Any, index: dict[int, str]) -> None:
    """Lines that take a linear index apart."""
    if not dims:
        return
    if len(dims) == 1:
        index[dims[0][0]] = linear
        return
    step = ir.ONE
    for at in range(len(dims) - 1, -1, -1):
        key, size = dims[at]
        text = linear if step == 1 else f"{linear} // {writer.size(step)}"
        if at:
            text = f"{text} % {writer.size(size)}"
        index[key] = writer.assign(names(at, len(dims)), text)
        step = step * size


def axis_name(at: int, count: int) -> str:
    return ("outer", "middle", "inner")[at + 3 - count] if count <= 3 else f"i{at}"


def is_wide(group: Group, table: Sizes) -> bool:
    values = [*table.of(group.flat)]
    for node in group.nodes:
        for value in node.inputs():
            values += table.of(value.numel())
    return max(values) > WIDE
