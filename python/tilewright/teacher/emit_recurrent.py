"""Kernels of recurrent layers: the first state, and one step of all gates with the state's products."""

from __future__ import annotations

from typing import Any

import torch

from tilewright.teacher import sizes
from tilewright.teacher.emit_template import added, form_text, precision
from tilewright.teacher.group import Group
from tilewright.teacher.ir import Template, Value, View
from tilewright.teacher.launch import Launch
from tilewright.teacher.sizes import Sizes
from tilewright.teacher.writer import Writer

NAMES = {
    "lstm": ("input_gate", "forget_gate", "candidate", "output_gate"),
    "gru": ("reset", "update", "candidate"),
    "rnn_tanh": ("next",),
    "rnn_relu": ("next",),
}


def emit_recurrent(group: Group, table: Sizes, options: dict[str, Any]) -> list[Launch]:
    node: Template = group.nodes[0]  # type: ignore[assignment]
    starts = [
        start_kernel(node, table, node.views[name], out)
        for name, out in zip(("start", "start_cell"), node.outs, strict=False)
    ]
    return [*starts, step_kernel(node, table, options)]


def start_kernel(node: Template, table: Sizes, view: View, out: Value) -> Launch:
    """Copies the first state to the first place of the sequence of states."""
    w = Writer(table, static=False)
    w.names |= {"row", "col", "mask", "value"}
    batch, width = node.attrs["batch"], node.attrs["width"]
    block = w.constexpr("BLOCK", "256")
    w.roles[id(view.value)], w.roles[id(out)] = "start", "states"
    source = w.pointer(view.value)
    target = w.pointer(out)
    w.line("row = tl.program_id(0)")
    w.line(f"col = tl.program_id(1) * {block} + tl.arange(0, {block})")
    w.line(f"mask = col < {w.size(width)}")
    offset = view.offset()
    rows, cols = form_text(w, view.axes[0], offset, "row", "at"), form_text(w, view.axes[1], offset, "col", "at")
    from tilewright.teacher.ir import Lin

    const = w.lin(Lin({}, offset.const), {})
    zero = "" if cols else "col * 0"
    w.line(f"value = tl.load({added(source, const, rows, cols, zero)}, mask=mask)")
    w.line(f"tl.store({target} + row * {w.size(width)} + col, value, mask=mask)")
    body = w.text("{name}", "The state before the first step.")
    grid = f"({sizes.text(batch)}, triton.cdiv({sizes.text(width)}, 256))"
    return Launch(w, body, f"{node.attrs['kind']}_start", grid, {}, [out])


def step_kernel(node: Template, table: Sizes, options: dict[str, Any]) -> Launch:
    kind, names = node.attrs["kind"], NAMES[node.attrs["kind"]]
    w = Writer(table, static=False)
    w.names |= {
        "row", "col", "row_mask", "col_mask", "tile_mask", "inner", "inner_mask", "h", "start", "step", "old", "new",
        "cell", "previous", "weights", *names, *(f"{n}_in" for n in names),
    }  # fmt: skip
    states, gates, weight = node.outs[0], node.views["gates"], node.views["weight"]
    batch, width = node.attrs["batch"], node.attrs["width"]
    w.roles |= {id(gates.value): "gates", id(weight.value): "weight", id(states): "states"}
    dtype = states.dtype
    b, h = max(table.of(batch)), max(table.of(width))
    rows = min(32, max(16, 1 << (b - 1).bit_length()))
    cols, inner = min(32, max(16, 1 << (h - 1).bit_length())), min(64, max(16, 1 << (h - 1).bit_length()))
    for name, value in (("BLOCK_B", rows), ("BLOCK_H", cols), ("BLOCK_K", inner)):
        w.constexpr(name, str(value))
    step = w.number("step")
    ps, pg, pw = w.pointer(states), w.pointer(gates.value), w.pointer(weight.value)
    sb, sh = w.size(batch), w.size(width)
    w.line("row = tl.program_id(0) * BLOCK_B + tl.arange(0, BLOCK_B)")
    w.line("col = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)")
    w.line(f"row_mask = row < {sb}")
    w.line(f"col_mask = col < {sh}")
    w.line("tile_mask = row_mask[:, None] & col_mask[None, :]")
    w.line(f"previous = {ps} + {step} * {sb} * {sh}")
    for name in names:
        w.line(f"{name} = tl.zeros((BLOCK_B, BLOCK_H), dtype=tl.float32)")
    with w.block(f"for start in range(0, {sh}, BLOCK_K):"):
        w.line("inner = start + tl.arange(0, BLOCK_K)")
        w.line(f"inner_mask = inner < {sh}")
        place = f"previous + row[:, None] * {sh} + inner[None, :]"
        w.line(f"h = tl.load({place}, mask=row_mask[:, None] & inner_mask[None, :], other=0.0)")
        for at, name in enumerate(names):
            line = "col[None, :]" if at == 0 else f"({sh if at == 1 else f'{at} * {sh}'} + col[None, :])"
            where = f"{pw} + {line} * {sh} + inner[:, None]"
            w.line(f"weights = tl.load({where}, mask=inner_mask[:, None] & col_mask[None, :], other=0.0)")
            w.line(f"{name} = tl.dot(h, weights, {name}{precision(dtype, options)})")
    wide = ".to(tl.float32)" if dtype in (torch.float16, torch.bfloat16) else ""
    if "bias" in node.views:
        pb = w.pointer(node.views["bias"].value)
        for at, name in enumerate(names):
            shift = "" if at == 0 else f" + {sh if at == 1 else f'{at} * {sh}'}"
            w.line(f"{name} += tl.load({pb}{shift} + col, mask=col_mask, other=0.0){wide}[None, :]")
    offset = gates.offset()
    from tilewright.teacher.ir import Lin

    for at, name in enumerate(names):
        unit = "col[None, :]" if at == 0 else f"({sh if at == 1 else f'{at} * {sh}'} + col[None, :])"
        parts = [
            w.lin(Lin({}, offset.const), {}),
            form_text(w, gates.axes[0], offset, "row[:, None]", "at"),
            form_text(w, gates.axes[1], offset, f"{step}", "at"),
            form_text(w, gates.axes[2], offset, unit, "at"),
        ]
        w.line(f"{name}_in = tl.load({added(pg, *parts)}, mask=tile_mask, other=0.0){wide}")
    here = f"row[:, None] * {sh} + col[None, :]"
    cell_lines(w, kind, here, node, wide, step, sb, sh)
    w.line(f"tl.store(previous + {sb} * {sh} + {here}, new, mask=tile_mask)")
    body = w.text("{name}", f"{kind}: one step; reads state `step` and writes state `step + 1`.")
    grid = f"(triton.cdiv({sizes.text(batch)}, {rows}), triton.cdiv({sizes.text(width)}, {cols}))"
    loop = f"for step in range({sizes.text(node.attrs['time'])}):"
    return Launch(w, body, f"{kind}_step", grid, {"num_warps": 4}, [], loop=loop)


def cell_lines(w: Writer, kind: str, here: str, node: Template, wide: str, step: str, sb: str, sh: str) -> None:
    """The gates' arithmetic."""
    if kind == "lstm":
        w.libdevice = True
        w.roles[id(node.outs[1])] = "cells"
        w.names.add("old_cell")
        pc = w.pointer(node.outs[1])
        w.line(f"old_cell = {pc} + {step} * {sb} * {sh} + {here}")
        w.line("keep = tl.sigmoid(forget_gate_in + forget_gate)")
        w.line("add = tl.sigmoid(input_gate_in + input_gate) * libdevice.tanh(candidate_in + candidate)")
        w.line(f"cell = keep * tl.load(old_cell, mask=tile_mask, other=0.0){wide} + add")
        w.line(f"tl.store(old_cell + {sb} * {sh}, cell, mask=tile_mask)")
        w.line("new = tl.sigmoid(output_gate_in + output_gate) * libdevice.tanh(cell)")
    elif kind == "gru":
        w.libdevice = True
        w.line(f"old = tl.load(previous + {here}, mask=tile_mask, other=0.0){wide}")
        w.line("reset = tl.sigmoid(reset_in + reset)")
        w.line("update = tl.sigmoid(update_in + update)")
        w.line("candidate = libdevice.tanh(candidate_in + reset * candidate)")
        w.line("new = (1.0 - update) * candidate + update * old")
    elif kind == "rnn_tanh":
        w.libdevice = True
        w.line("new = libdevice.tanh(next_in + next)")
    else:
        w.line("new = tl.maximum(next_in + next, 0.0, propagate_nan=tl.PropagateNan.ALL)")
