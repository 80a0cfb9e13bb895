"""Kernels of products, convolutions, attention and scans, with element-wise epilogues on the tile in registers."""

from __future__ import annotations

from typing import Any

import torch

from tilewright.teacher import ir, sizes
from tilewright.teacher.device import device_of
from tilewright.teacher.group import Group
from tilewright.teacher.ir import Lin, Pointwise, Scan, Template, Value, View
from tilewright.teacher.launch import Launch, finish, store
from tilewright.teacher.layout import Layout, decode, is_wide
from tilewright.teacher.sizes import Size, Sizes, Unsupported
from tilewright.teacher.writer import Arg, Space, Writer, compute_dtype


def emit(group: Group, table: Sizes, options: dict[str, Any]) -> list[Launch]:
    node = group.nodes[0]
    if isinstance(node, Scan):
        from tilewright.teacher.emit_scan import emit_scan

        return [emit_scan(group, table, options)]
    assert isinstance(node, Template)
    if node.kind == "matmul":
        from tilewright.teacher.emit_matmul import emit_matmul

        return [emit_matmul(group, table, options)]
    if node.kind == "conv":
        from tilewright.teacher.emit_conv import emit_conv

        return [emit_conv(group, table, options)]
    if node.kind == "conv_transpose":
        from tilewright.teacher.emit_conv import emit_conv_transpose

        return [emit_conv_transpose(group, table, options)]
    if node.kind == "attention":
        from tilewright.teacher.emit_attention import emit_attention

        return [emit_attention(group, table, options)]
    if node.kind == "recurrent":
        from tilewright.teacher.emit_recurrent import emit_recurrent

        return emit_recurrent(group, table, options)
    if node.kind == "scatter_add":
        from tilewright.teacher.emit_scatter import emit_scatter_add

        return emit_scatter_add(group, table)
    if node.kind == "sort":
        from tilewright.teacher.emit_sort import emit_sort

        return [emit_sort(group, table)]
    raise Unsupported(f"no template {node.kind}")


class TileLayout(Layout):
    """Dimensions of a template's result: merged only inside of each of its dimensions."""

    def merge(self) -> None:
        forms = self.forms()
        self.lists: list[list[tuple[int, Size]]] = []
        rest = list(self.all)
        for size in reversed(self.group.nodes[0].outs[0].shape):
            mine: list[tuple[int, Size]] = []
            step = ir.ONE
            while not self.table.same(step, size):
                key, extent = rest.pop()
                mine.insert(0, (key, extent))
                step = step * extent
            self.lists.insert(0, mine)
        for dims in self.lists:
            at = 0
            while at + 1 < len(dims):
                (outer, size_outer), (inner, size_inner) = dims[at], dims[at + 1]
                if all(self.follows(f, outer, inner, size_inner) for f in forms):
                    self.dropped[outer] = inner
                    dims[at : at + 2] = [(inner, size_outer * size_inner)]
                else:
                    at += 1


class Tile:
    """A tile kernel being written: the template computes `acc`, this writes what follows."""

    def __init__(self, group: Group, table: Sizes, options: dict[str, Any], static: bool) -> None:
        self.group, self.table, self.options = group, table, options
        self.node: Template = group.nodes[0]  # type: ignore[assignment]
        self.layout = TileLayout(group, table)
        self.writer = Writer(table, static)
        self.writer.in_group = self.in_group
        self.writer.place = lambda lin, view, space: self.layout.place(lin, view.axes, "full")
        self.acc = "acc"
        self.tile_axes = ["row[:, None]", "col[None, :]"]
        self.wide = ".to(tl.int64)" if is_wide(group, table) else ""
        for role, view in self.node.views.items():
            self.writer.roles[id(view.value)] = role if role not in ("a", "b") else operand_role(view.value, role)

    def in_group(self, value: Value) -> Any:
        if not self.group.makes(value):
            return None
        if value.node is self.node:
            return lambda writer, term, space: self.acc
        if isinstance(value.node, Pointwise):
            return lambda writer, term, space: writer.term(value.node.term, space)
        return None

    def epilogue(self, base: list[str], masks: list[tuple[set[int], str]], mask: str) -> None:
        """Writes everything after the accumulator. `base` has the index of each dimension of the result; `masks` those
        of loads that depend on some of these dimensions only, smaller sets first."""
        w = self.writer
        space = Space({}, mask, "full")
        owner: dict[int, int] = {}
        for d, dims in enumerate(self.layout.lists):
            decode(w, dims, base[d], lambda at, n: f"part_{at}", space.index)
            owner |= dict.fromkeys([k for k, _ in dims], d)
        for dims, condition in masks:
            index = {k: t for k, t in space.index.items() if owner[k] in dims}
            space.parts.append(Space(index, condition, "full"))
        w.counts([t for n in self.group.nodes for t in n.terms()])
        offset = self.layout.merged(self.layout.contiguous())
        for value in self.group.stored:
            text = self.acc if value.node is self.node else w.term(value.node.term, space)
            place = w.lin(offset, space.index)
            for axis in self.tile_axes:
                if (
                    axis[axis.index("[") :] not in place
                ):  # an axis of one element: the addresses are a block all the same
                    place = f"{place} + {axis} * 0"
            store(w, value, place, text, mask)

    def done(self, grid: str, doc: str, options: dict[str, Any]) -> Launch:
        return finish(self.writer, self.group, grid, doc, options)


def operand_role(value: Value, role: str) -> str:
    """`weight` stays `weight`; results of other kernels get the operand's letter."""
    import re

    name = re.sub(r"_\d+$", "", value.name)
    return name if value.origin in ("input", "state") else role


def axis_form(writer: Writer, view: View, axis: int, index: str, names: str) -> str:
    """The offset that one axis of an operand adds, for an index along it."""
    offset = view.offset()
    return form_text(writer, view.axes[axis], offset, index, names)


def form_text(writer: Writer, atoms: list[ir.Atom], offset: Lin, index: str, names: str) -> str:
    table = writer.table
    merged: list[tuple[Size, Size]] = []  # (extent, stride), outer to inner
    for atom in atoms:
        stride = offset.terms.get(atom, ir.ZERO)
        if merged and table.of(merged[-1][1]) == table.of(stride * atom.size):
            merged[-1] = (merged[-1][0] * atom.size, stride)
        else:
            merged.append((atom.size, stride))
    if not merged:
        return ""
    dims = list(enumerate(size for size, _ in merged))
    index_of: dict[int, str] = {}
    decode(writer, dims, index, lambda at, n: f"{names}_{at}", index_of)
    return writer.lin(Lin({k: s for k, (_, s) in enumerate(merged) if s != 0}), index_of).removeprefix("0")


def added(*parts: str) -> str:
    """A sum of offsets, empty ones left out."""
    return " + ".join(p for p in parts if p and p != "0")


def precision(dtype: torch.dtype, options: dict[str, Any]) -> str:
    """The `input_precision` of a product of floats."""
    usual = "bf16x6" if device_of(options).bf16 else "ieee"
    return f', input_precision="{options.get("precision", usual)}"' if dtype == torch.float32 else ""


def accumulator(dtype: torch.dtype) -> str:
    if dtype == torch.float64:
        return "tl.float64"
    return "tl.float32" if dtype.is_floating_point else "tl.int32"


def scalar_size(writer: Writer, wish: str, size: Size) -> str:
    """A size as an argument of its own, or its number."""
    if size.is_Integer:
        return str(size)
    if size.is_Symbol:
        return writer.symbol(size)
    for arg in writer.args:
        if arg.kind == "size" and arg.host == size:
            return arg.name
    name = writer.name(wish)
    writer.args.append(Arg(name, size, "size"))
    return name


__all__ = ["Tile", "TileLayout", "compute_dtype", "sizes"]
