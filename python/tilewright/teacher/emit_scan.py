"""Running sums and products."""

from __future__ import annotations

from typing import Any

from tilewright.teacher import ir, sizes
from tilewright.teacher.emit_rows import Launch, Layout, axis_name, decode, finish, identity, store
from tilewright.teacher.group import Group
from tilewright.teacher.ir import Scan
from tilewright.teacher.sizes import Sizes
from tilewright.teacher.writer import TL, Arg, Space, Writer, compute_dtype


def emit_scan(group: Group, table: Sizes, options: dict[str, Any]) -> Launch:
    """Along the last dimension in blocks with a carry; along another one, a lane for each line."""
    node: Scan = group.nodes[0]  # type: ignore[assignment]
    group.reduced = (node.dim,)
    group.shape = node.shape
    layout = Layout(group, table)
    w = Writer(table, static=len(layout.x) > 1 or len(layout.r) > 1)
    w.place = lambda lin, view, space: layout.place(lin, view.axes, "full")
    w.counts(node.terms())
    rows = table.product(s for _, s in layout.x)
    length = w.size(table.product(s for _, s in layout.r))
    last = not layout.x or not layout.r or layout.r[-1][0] > layout.x[-1][0]
    index: dict[int, str] = {}
    row = w.name("row")
    offset = layout.merged(layout.contiguous())
    dtype = compute_dtype(node.term.dtype)
    neutral = identity("sum" if node.kind == "cumsum" else "prod", dtype)
    sign = "+" if node.kind == "cumsum" else "*"
    if last:
        longest = max(table.of(table.product(s for _, s in layout.r)))
        block = w.constexpr("BLOCK", str(min(4096, max(16, 1 << (longest - 1).bit_length()))))
        w.line(f"{row} = tl.program_id(0).to(tl.int64)")
        decode(w, layout.x, row, axis_name, index)
        w.names |= {"carry", "col", "mask", "scanned"}
        w.line(f"carry = tl.sum(tl.full((1,), {neutral}, {TL[dtype]}), axis=0)")
        with w.block(f"for start in range(0, {length}, {block}):"):
            w.line(f"col = start + tl.arange(0, {block})")
            w.line(f"mask = col < {length}")
            space = Space(dict(index), "mask")
            decode(w, layout.r, "col", axis_name, space.index)
            text = w.term(node.term, space, neutral)
            if not isinstance(node.term, ir.Read) or node.term.view.guards:
                text = w.assign("value", f"tl.where(mask, {text}, {neutral})")
            w.line(f"scanned = tl.{node.kind}({text}, axis=0) {sign} carry")
            store(w, node.outs[0], w.lin(offset, space.index), "scanned", "mask")
            if sign == "+":
                w.line(f"carry += tl.sum({text}, axis=0)")
            else:
                w.line(f"carry = tl.sum(tl.where(tl.arange(0, {block}) == {block} - 1, scanned, 0.0), axis=0)")
        grid = f"({sizes.text(rows)},)"
    else:
        block = w.constexpr("BLOCK", "128")
        total = w.name("rows")
        w.args.append(Arg(total, rows, "size"))
        w.line(f"{row} = tl.program_id(0).to(tl.int64) * {block} + tl.arange(0, {block})")
        w.names |= {"mask", "carry", "step"}
        w.line(f"mask = {row} < {total}")
        decode(w, layout.x, row, axis_name, index)
        w.line(f"carry = tl.full(({block},), {neutral}, {TL[dtype]})")
        with w.block(f"for step in range({length}):"):
            space = Space(dict(index), "mask")
            decode(w, layout.r, "step", axis_name, space.index)
            w.line(f"carry = carry {sign} {w.term(node.term, space)}")
            store(w, node.outs[0], w.lin(offset, space.index), "carry", "mask")
        grid = f"(triton.cdiv({sizes.text(rows)}, 128),)"
    return finish(w, group, grid, f"{node.label}: {'blocks of a row with a carry' if last else 'one line a lane'}.")
