"""Kernels of element-wise groups: one element a lane."""

from __future__ import annotations

from typing import Any

from tilewright.teacher import sizes
from tilewright.teacher.group import Group
from tilewright.teacher.ir import Pointwise, Value
from tilewright.teacher.launch import Launch, describe, finish, store
from tilewright.teacher.layout import Layout, axis_name, decode, is_wide
from tilewright.teacher.sizes import Sizes
from tilewright.teacher.writer import Arg, Space, Writer


def emit_loop(group: Group, table: Sizes, options: dict[str, Any]) -> Launch:
    """One element a lane."""
    layout = Layout(group, table)
    writer = Writer(table, static=len(layout.x) > 1)
    space = Space({})
    writer.in_group = inline(group)
    writer.place = lambda lin, view, space: layout.place(lin, view.axes, "full")
    n = table.product(s for _, s in layout.x)
    block = writer.constexpr("BLOCK", str(options.get("loop_block", 1024)))
    total = writer.name("n_elements")
    writer.args.append(Arg(total, n, "size"))
    wide = ".to(tl.int64)" if is_wide(group, table) or len(layout.x) == 1 else ""
    i = writer.name("i")
    writer.line(f"{i} = tl.program_id(0){wide} * {block} + tl.arange(0, {block})")
    space.mask = writer.assign("mask", f"{i} < {total}")
    decode(writer, layout.x, i, axis_name, space.index)
    writer.counts([t for n in group.nodes for t in n.terms()])
    for value in group.stored:
        text = writer.term(value.node.term, space)
        store(writer, value, i, text, space.mask)
    grid = f"(triton.cdiv({sizes.text(n)}, {options.get('loop_block', 1024)}),)"
    return finish(writer, group, grid, f"{describe(group.nodes)}: one element a lane.")


def inline(group: Group) -> Any:
    """How a term reads values of its own group: by computing them in place."""

    def made(value: Value) -> Any:
        if not group.makes(value) or not isinstance(value.node, Pointwise):
            return None
        return lambda writer, term, space: writer.term(value.node.term, space)

    return made
