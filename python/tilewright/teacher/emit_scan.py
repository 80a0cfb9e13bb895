"""Running sums, products, extremes and log-sum-exps."""

from __future__ import annotations

from typing import Any

from tilewright.teacher import ir, sizes
from tilewright.teacher.emit_rows import identity
from tilewright.teacher.group import Group
from tilewright.teacher.ir import Scan
from tilewright.teacher.launch import Launch, finish, store
from tilewright.teacher.layout import Layout, axis_name, decode
from tilewright.teacher.sizes import Sizes
from tilewright.teacher.writer import TL, Arg, Space, Writer, compute_dtype, simple

NEUTRAL = {"cumsum": "sum", "cumprod": "prod", "logcumsumexp": "max", "cummax": "max", "cummin": "min"}


class Running:
    """What a scan keeps, and how it is combined: one number, or the best one and its place."""

    def __init__(self, w: Writer, node: Scan) -> None:
        self.w, self.kind = w, node.kind
        self.dtype = compute_dtype(node.term.dtype)
        self.neutral = identity(NEUTRAL[node.kind], self.dtype)
        self.placed = node.kind in ("cummax", "cummin")
        self.helper = {"logcumsumexp": "log_add", "cummax": "later_max", "cummin": "later_min"}.get(node.kind, "")
        if self.helper:
            w.helpers.add(self.helper)
        w.libdevice |= node.kind == "logcumsumexp"
        w.names |= {"carry", "place", "scanned", "scanned_at", "lane_last"}

    def start(self, shape: str) -> None:
        """The carry: a scalar for rows, a lane for each line otherwise."""
        w = self.w
        if shape:
            w.line(f"carry = tl.full({shape}, {self.neutral}, {TL[self.dtype]})")
        else:
            w.line(f"carry = tl.sum(tl.full((1,), {self.neutral}, {TL[self.dtype]}), axis=0)")
        if self.placed:
            w.line(f"place = tl.zeros({shape}, tl.int64)" if shape else "place = tl.program_id(0).to(tl.int64) * 0")

    def combine(self, before: str, value: str) -> str:
        value = value if simple(value) or self.helper else f"({value})"
        if self.kind == "cumsum":
            return f"{before} + {value}"
        return f"{before} * {value}" if self.kind == "cumprod" else f"{self.helper}({before}, {value})"

    def block(self, text: str, block: str) -> None:
        """The running results of one block of a row, with what came before; the carry for the next."""
        w = self.w
        last = f"tl.arange(0, {block}) == {block} - 1"
        if self.placed:
            w.line(f"scanned, scanned_at = tl.associative_scan(({text}, col.to(tl.int64)), 0, {self.helper})")
            w.line(f"scanned, scanned_at = {self.helper}(carry, place, scanned, scanned_at)")
            w.line(f"lane_last = {last}")
            # Not by an extreme, which would leave out NaN.
            w.line("carry = tl.sum(tl.where(lane_last, scanned, 0), axis=0)")
            w.line("place = tl.sum(tl.where(lane_last, scanned_at, 0), axis=0)")
        elif self.kind == "logcumsumexp":
            w.line(f"scanned = log_add(carry, tl.associative_scan({text}, 0, log_add))")
            w.line(f"carry = tl.sum(tl.where({last}, scanned, 0.0), axis=0)")
        else:
            w.line(f"scanned = {self.combine(f'tl.{self.kind}({text}, axis=0)', 'carry')}")

    def advance(self, text: str, block: str) -> None:
        """The carry of sums and products, after the block's results are stored."""
        if self.kind == "cumsum":
            self.w.line(f"carry += tl.sum({text}, axis=0)")
        elif self.kind == "cumprod":
            self.w.line(f"carry = tl.sum(tl.where(tl.arange(0, {block}) == {block} - 1, scanned, 0), axis=0)")

    def step(self, text: str) -> None:
        """One element a lane."""
        if self.placed:
            self.w.line(f"carry, place = {self.helper}(carry, place, {text}, step)")
        else:
            self.w.line(f"carry = {self.combine('carry', text)}")


def emit_scan(group: Group, table: Sizes, options: dict[str, Any]) -> Launch:
    """Along the last dimension in blocks with a carry; along another one, a lane for each line."""
    node: Scan = group.nodes[0]  # type: ignore[assignment]
    group.reduced = (node.dim,)
    group.shape = node.shape
    layout = Layout(group, table)
    w = Writer(table, static=len(layout.x) > 1 or len(layout.r) > 1)
    w.place = lambda lin, view, space: layout.place(lin, view.axes, "full")
    w.counts(node.terms())
    running = Running(w, node)
    rows = table.product(s for _, s in layout.x)
    length = w.size(table.product(s for _, s in layout.r))
    last = not layout.x or not layout.r or layout.r[-1][0] > layout.x[-1][0]
    index: dict[int, str] = {}
    row = w.name("row")
    offset = layout.merged(layout.contiguous())

    def store_all(space: Space, *texts: str) -> None:
        for value, text in zip(node.outs, texts, strict=False):
            if value in group.stored:
                store(w, value, w.lin(offset, space.index), text, "mask")

    if last:
        longest = max(table.of(table.product(s for _, s in layout.r)))
        block = w.constexpr("BLOCK", str(min(4096, max(16, 1 << (longest - 1).bit_length()))))
        w.line(f"{row} = tl.program_id(0).to(tl.int64)")
        decode(w, layout.x, row, axis_name, index)
        w.names |= {"col", "mask"}
        running.start("")
        with w.block(f"for start in range(0, {length}, {block}):"):
            w.line(f"col = start + tl.arange(0, {block})")
            w.line(f"mask = col < {length}")
            # What does not change along a row is one number for it.
            space = Space(dict(index), "mask", parts=[Space(dict(index))])
            decode(w, layout.r, "col", axis_name, space.index)
            text = w.term(node.term, space, running.neutral)
            if not reads_along(w, node, layout.r, space):
                text = w.assign("value", f"tl.where(mask, {text}, {running.neutral})")
            running.block(text, block)
            store_all(space, "scanned", "scanned_at")
            running.advance(text, block)
        grid = f"({sizes.text(rows)},)"
    else:
        block = w.constexpr("BLOCK", "128")
        total = w.name("rows")
        w.args.append(Arg(total, rows, "size"))
        w.line(f"{row} = tl.program_id(0).to(tl.int64) * {block} + tl.arange(0, {block})")
        w.names |= {"mask", "step"}
        w.line(f"mask = {row} < {total}")
        decode(w, layout.x, row, axis_name, index)
        running.start(f"({block},)")
        with w.block(f"for step in range({length}):"):
            space = Space(dict(index), "mask")
            decode(w, layout.r, "step", axis_name, space.index)
            space.parts = [Space({axis: space.index[axis] for axis, _ in layout.r})]
            running.step(w.term(node.term, space))
            store_all(space, "carry", "place")
        grid = f"(triton.cdiv({sizes.text(rows)}, 128),)"
    return finish(w, group, grid, f"{node.label}: {'blocks of a row with a carry' if last else 'one line a lane'}.")


def reads_along(w: Writer, node: Scan, row: list[tuple[int, Any]], space: Space) -> bool:
    """Whether what is scanned is read as it is, by a load whose mask leaves neutral elements outside of the row."""
    if not isinstance(node.term, ir.Read) or node.term.view.guards:
        return False
    view = node.term.view
    return any(w.place(view.offset(), view, space).terms.get(axis, 0) != 0 for axis, _ in row)
