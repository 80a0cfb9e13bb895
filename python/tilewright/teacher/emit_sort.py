"""Sorting: one program a row. An element's key, made of its bits, and its place are one integer: a stable order."""

from __future__ import annotations

from typing import Any

import torch

from tilewright.teacher import sizes
from tilewright.teacher.emit_template import scalar_size
from tilewright.teacher.group import Group
from tilewright.teacher.ir import Template
from tilewright.teacher.launch import Launch, finish
from tilewright.teacher.sizes import Size, Sizes
from tilewright.teacher.writer import Arg, Writer


def emit_sort(group: Group, table: Sizes) -> Launch:
    node: Template = group.nodes[0]  # type: ignore[assignment]
    x, (values, places) = node.views["x"].value, node.outs
    length, keep = node.attrs["length"], node.attrs["keep"]
    few = is_few(keep, length, table)
    w = Writer(table, static=False)
    w.roles |= {id(x): "x"}
    w.names |= {"row", "col", "mask", "value", "bits", "key", "packed", "at", "place", "kept", "BLOCK", "KEEP"}
    n, k = scalar_size(w, "length", length), scalar_size(w, "keep", keep)
    w.args.append(Arg("BLOCK", f"max(16, triton.next_power_of_2({sizes.text(length)}))", "constexpr"))
    w.line("row = tl.program_id(0).to(tl.int64)")
    w.line("col = tl.arange(0, BLOCK)")
    w.line(f"mask = col < {n}")
    w.line(f"value = tl.load({w.pointer(x)} + row * {n} + col, mask=mask, other=0)")
    bits = key_lines(w, x.dtype, node.attrs["descending"])
    most = hex(2 ** (2 * bits - 1) - 1)
    w.line(f"packed = (key.to(tl.int{2 * bits}) << {bits}) | col")
    w.line(f"packed = tl.where(mask, packed, {most})")
    if few:
        w.args.append(Arg("KEEP", f"max(2, triton.next_power_of_2({sizes.text(keep)}))", "constexpr"))
        w.line("packed = ~tl.topk(~packed, KEEP)")
        w.line("place = tl.arange(0, KEEP)")
    else:
        w.line("packed = tl.sort(packed)")
        w.line("place = col")
    w.line(f"at = packed & {hex(2**bits - 1)}")
    w.line(f"kept = place < {k}")
    if places in group.stored:
        w.line(f"tl.store({w.pointer(places)} + row * {k} + place, at, mask=kept)")
    if values in group.stored:
        w.line(f"value = tl.load({w.pointer(x)} + row * {n} + at, mask=kept, other=0)")
        w.line(f"tl.store({w.pointer(values)} + row * {k} + place, value, mask=kept)")
    rows = table.product(values.shape[:-1])
    longest = max(table.of(length))
    warps = 4 if longest <= 1024 else 8 if longest <= 4096 else 16
    return finish(w, group, f"({sizes.text(rows)},)", f"{node.label}: one program a row.", {"num_warps": warps})


def is_few(keep: Size, length: Size, table: Sizes) -> bool:
    """Whether the first ones cost less to find than all to sort: half of a row at most, by the default case."""
    return 2 * (1 << (table.of(keep)[0] - 1).bit_length()) <= 1 << (table.of(length)[0] - 1).bit_length()


def key_lines(w: Any, dtype: torch.dtype, descending: bool) -> int:
    """Lines that make signed integers in the order of the elements, NaN last and zeros equal; their bits. A row has
    fewer elements than half of what as many bits count."""
    bits = 16 if dtype.itemsize <= 2 else 32
    if dtype.is_floating_point:
        most = hex(2 ** (bits - 1) - 1)
        w.line(f"bits = value.to(tl.int{bits}, bitcast=True)")
        w.line(f"key = tl.where(value == 0.0, 0, bits ^ ((bits >> {bits - 1}) & {most}))")
        w.line(f"key = tl.where(value != value, {most}, key)")
    else:
        w.line(f"key = value.to(tl.int{bits})")
    if descending:
        w.line("key = ~key")
    return bits
