"""Sorting: one program a row. An element's key, made of its bits, and its place are one integer: a stable order."""

from __future__ import annotations

import torch

from tilewright.teacher import sizes
from tilewright.teacher.emit_rows import Launch, finish
from tilewright.teacher.emit_template import scalar_size
from tilewright.teacher.group import Group
from tilewright.teacher.ir import Template
from tilewright.teacher.sizes import Sizes
from tilewright.teacher.writer import Arg, Writer


def emit_sort(group: Group, table: Sizes) -> Launch:
    node: Template = group.nodes[0]  # type: ignore[assignment]
    x, (values, places) = node.views["x"].value, node.outs
    length, keep = node.attrs["length"], node.attrs["keep"]
    w = Writer(table, static=False)
    w.roles |= {id(x): "x"}
    w.names |= {"row", "col", "mask", "value", "bits", "key", "packed", "at", "kept"}
    n, k = scalar_size(w, "length", length), scalar_size(w, "keep", keep)
    block = "BLOCK"
    w.names.add(block)
    w.args.append(Arg(block, f"max(16, triton.next_power_of_2({sizes.text(length)}))", "constexpr"))
    w.line("row = tl.program_id(0).to(tl.int64)")
    w.line(f"col = tl.arange(0, {block})")
    w.line(f"mask = col < {n}")
    w.line(f"value = tl.load({w.pointer(x)} + row * {n} + col, mask=mask, other=0)")
    if x.dtype.is_floating_point:
        wide = "value" if x.dtype == torch.float32 else "value.to(tl.float32)"
        w.line(f"bits = {wide}.to(tl.int32, bitcast=True)")
        w.line("key = tl.where(value == 0.0, 0, bits ^ ((bits >> 31) & 0x7FFFFFFF))")
        w.line("key = tl.where(value != value, 0x7FFFFFFF, key)")
    else:
        w.line("key = value.to(tl.int32)")
    if node.attrs["descending"]:
        w.line("key = ~key")
    w.line("packed = (key.to(tl.int64) << 32) | col")
    w.line("packed = tl.sort(tl.where(mask, packed, 0x7FFFFFFFFFFFFFFF))")
    w.line("at = packed & 0xFFFFFFFF")
    w.line(f"kept = col < {k}")
    if places in group.stored:
        w.line(f"tl.store({w.pointer(places)} + row * {k} + col, at, mask=kept)")
    if values in group.stored:
        w.line(f"value = tl.load({w.pointer(x)} + row * {n} + at, mask=kept, other=0)")
        w.line(f"tl.store({w.pointer(values)} + row * {k} + col, value, mask=kept)")
    rows = table.product(values.shape[:-1])
    longest = max(table.of(length))
    warps = 4 if longest <= 1024 else 8 if longest <= 4096 else 16
    return finish(w, group, f"({sizes.text(rows)},)", f"{node.label}: one program a row.", {"num_warps": warps})
