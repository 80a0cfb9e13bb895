"""Reductions over pairs of rows, as distances are: a block of rows of one tensor with a block of those of another.

Each element of both is read once for a block of pairs, where a row kernel would read it once for each pair.
"""

from __future__ import annotations

from typing import Any

from tilewright.teacher import ir, sizes
from tilewright.teacher.emit_rows import Rows
from tilewright.teacher.group import Group
from tilewright.teacher.ir import Random, Reduce, Term, children
from tilewright.teacher.launch import Launch, describe, finish
from tilewright.teacher.layout import axis_name, decode, is_wide
from tilewright.teacher.sizes import Size, Sizes
from tilewright.teacher.writer import Arg, Space

ROWS, INNER = 32, 16
"""Rows of each tensor, and elements of each, that a program holds at a time."""
MOST_BATCHES = 65535


class Pairs(Rows):
    """A kernel for pairs: kept dimensions are batches, rows of the one tensor, and rows of the other."""

    def choose(self) -> None:
        self.form, self.persistent = "tile", False
        self.block_x, self.block_r = ROWS * ROWS, INNER

    def fits(self) -> bool:
        """Whether each element that is reduced is read along one of the two, both long enough to gain by it."""
        layout, table = self.layout, self.table
        if self.group.split or len(layout.x) < 2 or len(layout.r) != 1:
            return False
        (i, rows), (j, others) = layout.x[-2:]
        batches = table.product(s for _, s in layout.x[:-2])
        least = self.options.get("pairs", 64)
        if min(table.of(rows)[0], table.of(others)[0], table.of(self.nr)[0]) < least:
            return False
        if max(table.of(batches)) > MOST_BATCHES or any(self.group.level(v.node) == "full" for v in self.group.stored):
            return False
        if any(n.kind not in ("sum", "max", "min") or self.levels[id(n)] for n in self.reductions()):
            return False
        return self.sides() == {i, j}

    def reductions(self) -> list[Reduce]:
        return [n for n in self.group.nodes if isinstance(n, Reduce)]

    def sides(self) -> set[int]:
        """Which of the two dimensions elements are read along; empty if some are along both."""
        (i, _), (j, _) = self.layout.x[-2:]
        r = self.layout.r[0][0]
        found: set[int] = set()
        for node in self.group.nodes:
            if self.group.level(node) == "row" and not isinstance(node, Reduce):
                continue
            for term in node.terms():
                if ir.gathers(term) or draws(term):
                    return set()
                for read in ir.reads(term):
                    view = read.view
                    if self.group.makes(view.value):
                        continue
                    lin = view.offset() if view.value.origin != "iota" else view.index[0]
                    keys = {k for k, c in self.layout.place(lin, view.axes, "full").terms.items() if c != 0}
                    if view.guards or {i, j} <= keys:
                        return set()
                    found |= keys & {i, j} if r in keys else set()
        return found

    def emit(self) -> list[Launch]:
        self.open()
        self.prepare_space()
        self.level_pass(0, None)
        (_, rows), (_, others) = self.layout.x[-2:]
        batches = self.table.product(s for _, s in self.layout.x[:-2])
        grid = f"triton.cdiv({sizes.text(rows)}, {ROWS}) * triton.cdiv({sizes.text(others)}, {ROWS})"
        grid = f"({grid},)" if self.table.is_one(batches) else f"({grid}, {sizes.text(batches)})"
        doc = f"{describe(self.group.nodes)}: a block of pairs of rows a program."
        return [finish(self.writer, self.group, grid, doc, {"num_warps": 8})]

    def open(self) -> None:
        w, layout = self.writer, self.layout
        w.in_group = self.in_group
        w.row_level = lambda v: self.group.makes(v) and self.group.level(v.node) == "row"
        w.place = lambda lin, view, space: layout.place(lin, view.axes, space.level)
        w.counts([t for n in self.group.nodes for t in n.terms()])
        wide = ".to(tl.int64)" if is_wide(self.group, self.table) else ""
        (i, rows), (j, others) = layout.x[-2:]
        self.x_index: dict[int, str] = {}
        self.block = w.constexpr("BLOCK", str(INNER))
        w.constexpr("BLOCK_ROWS", str(ROWS))
        n, m = self.count("rows", rows), self.count("others", others)
        blocks = w.assign("blocks", f"tl.cdiv({m}, BLOCK_ROWS)")
        at = "tl.arange(0, BLOCK_ROWS)"
        one = w.assign("row", f"(tl.program_id(0) // {blocks}){wide} * BLOCK_ROWS + {at}[:, None, None]")
        other = w.assign("other", f"(tl.program_id(0) % {blocks}){wide} * BLOCK_ROWS + {at}[None, :, None]")
        self.x_index |= {i: one, j: other}
        self.masks = {i: w.assign("row_mask", f"{one} < {n}"), j: w.assign("other_mask", f"{other} < {m}")}
        self.x_mask = w.assign("pair_mask", f"{self.masks[i]} & {self.masks[j]}")
        self.row = f"{one} * {m} + {other}"
        if len(layout.x) > 2:
            batch = w.assign("batch", f"tl.program_id(1){wide}")
            decode(w, layout.x[:-2], batch, axis_name, self.x_index)
            self.row = f"({batch} * {n} + {one}) * {m} + {other}"
        self.lane = f"tl.arange(0, {self.block})[None, None, :]"
        self.length = w.size(self.nr)
        w.names.add("EVEN")
        w.args.append(Arg("EVEN", f"{sizes.atomic(self.nr)} % {INNER} == 0", "constexpr"))

    def count(self, wish: str, size: Size) -> str:
        """An extent as an argument of its own."""
        name = self.writer.name(wish)
        self.writer.args.append(Arg(name, size, "size"))
        return name

    def element_space(self, start: str | None = None) -> Space:
        w, row = self.writer, self.rows_space
        r = self.layout.r[0][0]
        col = w.assign("col", f"{start} + {self.lane}")
        mask = w.assign("mask", f"({col} < {self.length}) | EVEN")
        space = Space({**self.x_index, r: col}, mask, "full")
        space.parts = [Space(row.index, row.mask, "row", [], dict(row.cache))]
        for key, inside in self.masks.items():
            others = set(self.masks) - {key}
            index = {k: text for k, text in space.index.items() if k not in others}
            space.parts.append(Space(index, f"{inside} & {mask}", "full"))
        return space

    def axis(self) -> str:
        return "axis=2, keep_dims=True"

    def shape(self) -> str:
        return f"(BLOCK_ROWS, BLOCK_ROWS, {self.block})"


def draws(term: Term) -> bool:
    """Whether random numbers are drawn."""
    return isinstance(term, Random) or any(draws(child) for child in children(term))


def emit_pairs(group: Group, table: Sizes, options: dict[str, Any]) -> list[Launch] | None:
    """The kernel, or None where a group is no reduction over pairs of rows."""
    pairs = Pairs(group, table, options)
    return pairs.emit() if pairs.fits() else None
