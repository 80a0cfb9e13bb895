"""Reductions with few, long rows: parts of a row in one kernel, their combination and what follows in a second one.

No atomics: the order of additions, and so the result, is the same in every run.
"""

from __future__ import annotations

import sympy

from tilewright.teacher import sizes
from tilewright.teacher.emit_rows import Rows, identity
from tilewright.teacher.ir import Reduce, Value
from tilewright.teacher.launch import Launch, describe, finish, label_of, store
from tilewright.teacher.writer import compute_dtype


def emit_split(first: Rows) -> list[Launch]:
    group, table = first.group, first.table
    rows = table.of(first.nx)[0]
    length = table.of(first.nr)[0]
    first.persistent = False
    if first.form != "tile" or (first.layout.x and first.layout.x[-1][0] < first.layout.r[-1][0]):
        first.form, first.block_x, first.block_r = "rows", 1, 2048
    else:
        first.block_x, first.block_r = 64, 32
    programs = -(-rows // first.block_x)
    parts = 2
    while parts < 512 and parts * programs < 1024 and length * first.block_x // (2 * parts) >= 8192:
        parts *= 2
    partial = partial_kernel(first, parts)
    reductions = [n for n in group.nodes if isinstance(n, Reduce)]
    second = Rows(group, table, first.options)
    second.form, second.persistent, second.block_x, second.block_r = "rows", False, 1, first.block_r
    return [partial, final_kernel(second, first, reductions, parts)]


def partial_kernel(rows: Rows, parts: int) -> Launch:
    """Each program reduces one part of a row."""
    w = rows.writer
    rows.open()
    rows.prepare_space()
    count = w.constexpr("PARTS", str(parts))
    w.names |= {"part", "chunk", "begin", "stop"}
    w.line("part = tl.program_id(1)")
    w.line(f"chunk = tl.cdiv(tl.cdiv({rows.length}, {count}), {rows.block}) * {rows.block}")
    w.line("begin = part * chunk")
    w.line(f"stop = tl.minimum({rows.length}, begin + chunk)")
    rows.bounds = lambda: ("begin", "stop")  # type: ignore[method-assign]
    rows.present = "tl.maximum(stop - begin, 1)"
    reductions = [n for n in rows.group.nodes if isinstance(n, Reduce)]
    state = [(n, rows.start(n)) for n in reductions]
    with rows.loop() as (space, step):
        for node, names in state:
            rows.step(node, names, space, step)
    rows.partials = {}
    offset = f"{rows.row} * {count} + part"
    fresh = []
    for node, names in state:
        rows.end(node, names)
        texts = [rows.row_values[id(out)] for out in node.outs]
        if node.kind.startswith("arg"):
            texts.insert(0, rows.best[id(node)])
        values = []
        for at, text in enumerate(texts):
            dtype = (
                node.term.dtype
                if node.kind.startswith("arg") and at == 0
                else node.outs[min(at, len(node.outs) - 1)].dtype
            )
            name = f"partial_{node.outs[min(at, len(node.outs) - 1)].name}"
            value = Value(name, (rows.nx, sympy.Integer(parts)), dtype, "temp")
            store(w, value, offset, text, rows.x_mask)
            values.append(value)
        rows.partials[id(node)] = values
        fresh += values
    programs = sizes.text(rows.nx) if rows.form == "rows" else f"triton.cdiv({sizes.text(rows.nx)}, {rows.block_x})"
    body = w.text("{name}", f"{describe(reductions)}: one part of a row a program.")
    grid = f"({programs}, {parts})"
    return Launch(w, body, label_of(reductions) + "_parts", grid, {"num_warps": rows.warps()}, fresh)


def final_kernel(rows: Rows, first: Rows, reductions: list[Reduce], parts: int) -> Launch:
    """One program a row combines its parts."""
    w = rows.writer
    rows.open()
    rows.prepare_space()
    count = w.constexpr("PARTS", str(parts))
    w.names |= {"part", "chunk", "counts"}
    w.line(f"part = tl.arange(0, {count})")
    if any(n.kind == "moments" for n in reductions):
        w.line(f"chunk = tl.cdiv(tl.cdiv({rows.length}, {count}), {rows.block}) * {rows.block}")
        w.line(f"counts = tl.minimum(tl.maximum({rows.length} - part * chunk, 0), chunk)")
    for node in reductions:
        combine(rows, node, first.partials[id(node)], count)
    for node in rows.group.row_nodes:
        rows.row_term(node)
    for value in rows.group.stored:
        store(w, value, rows.row if rows.layout.x else "0", rows.row_values[id(value)], "")
    doc = f"{describe(rows.group.nodes)}: combines the parts of a row."
    return finish(w, rows.group, f"({sizes.text(rows.nx)},)", doc, {"num_warps": 4})


def combine(rows: Rows, node: Reduce, values: list[Value], count: str) -> None:
    """The result of a row from the results of its parts."""
    w = rows.writer
    texts = []
    for value in values:
        text = f"tl.load({w.pointer(value)} + {rows.row} * {count} + part)"
        if value.dtype != compute_dtype(value.dtype):
            text += ".to(tl.float32)"
        texts.append(w.assign(value.name, text))
    out = node.outs[0]
    if node.kind == "moments":
        mean, squares = texts
        total = w.assign(out.name, f"tl.sum({mean} * counts, axis=0) / {rows.length}")
        gap = w.assign("gap", f"{mean} - {total}")
        both = w.assign(node.outs[1].name, f"tl.sum({squares} + counts * {gap} * {gap}, axis=0)")
        rows.row_values[id(out)], rows.row_values[id(node.outs[1])] = total, both
        return
    if node.kind.startswith("arg"):
        best = w.assign("top", f"tl.{node.kind[3:]}({texts[0]}, axis=0)")
        at = f"tl.min(tl.where({texts[0]} == {best}, {texts[1]}, {rows.length}), axis=0)"
        rows.row_values[id(out)] = w.assign(out.name, at)
        return
    text = texts[0] if node.kind not in ("any", "all") else f"{texts[0]}.to(tl.int32)"
    rows.row_values[id(out)] = w.assign(out.name, rows.fold(node, text, "axis=0"))


__all__ = ["emit_split", "identity"]
