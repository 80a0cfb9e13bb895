"""Scattered writes and additions: the base is copied, then a lane for each element of the source, by atomics."""

from __future__ import annotations

from tilewright.teacher import ir, sizes
from tilewright.teacher.emit_template import added, form_text
from tilewright.teacher.group import Group
from tilewright.teacher.ir import Template
from tilewright.teacher.launch import Launch
from tilewright.teacher.layout import axis_name, decode
from tilewright.teacher.sizes import Sizes
from tilewright.teacher.writer import Arg, Writer


def emit_scatter_add(group: Group, table: Sizes) -> list[Launch]:
    node: Template = group.nodes[0]  # type: ignore[assignment]
    return [copy_kernel(node, table), add_kernel(node, table)]


def opened(node: Template, table: Sizes, total: ir.Size) -> tuple[Writer, str]:
    """A kernel of one element a lane."""
    w = Writer(table, static=True)
    w.names |= {"i", "mask", "value", "at"}
    block = w.constexpr("BLOCK", "1024")
    name = w.name("n_elements")
    w.args.append(Arg(name, total, "size"))
    w.line(f"i = tl.program_id(0).to(tl.int64) * {block} + tl.arange(0, {block})")
    w.line(f"mask = i < {name}")
    return w, f"(triton.cdiv({sizes.text(total)}, 1024),)"


def copy_kernel(node: Template, table: Sizes) -> Launch:
    base, out = node.views["base"].value, node.outs[0]
    total = base.numel()
    w, grid = opened(node, table, total)
    w.roles |= {id(base): "base", id(out): "out"}
    w.line(f"value = tl.load({w.pointer(base)} + i, mask=mask)")
    w.line(f"tl.store({w.pointer(out)} + i, value, mask=mask)")
    return Launch(w, w.text("{name}", "What the additions start from."), f"{node.label}_start", grid, {}, [out])


def add_kernel(node: Template, table: Sizes) -> Launch:
    source, index, out = node.views["source"].value, node.views["index"], node.outs[0]
    shape, dim = node.attrs["shape"], node.attrs["dim"]
    total = table.product(shape)
    w, grid = opened(node, table, total)
    w.roles |= {id(source): "source", id(index.value): "index", id(out): "out"}
    places: dict[int, str] = {}
    decode(w, list(enumerate(shape)), "i", axis_name, places)
    offset = index.offset()
    parts = [form_text(w, index.axes[d], offset, places[d], "part") for d in range(len(shape))]
    pointer = added(w.pointer(index.value), w.lin(ir.Lin({}, offset.const), {}), *parts)
    w.line(f"at = tl.load({pointer}, mask=mask, other=0)" if any(parts) else f"at = tl.load({pointer})")
    w.line(f"value = tl.load({w.pointer(source)} + i, mask=mask, other=0)")
    steps = out.strides()
    target = [
        ("at" if d == dim else places[d]) + ("" if steps[d] == 1 else f" * {w.size(steps[d])}")
        for d in range(len(shape))
    ]
    zero = "" if any(parts) or len(shape) > 1 else "i * 0"
    call = "tl.store" if node.attrs["mode"] == "store" else f"tl.atomic_{node.attrs['mode']}"
    w.line(f"{call}({added(w.pointer(out), *target, zero)}, value, mask=mask)")
    return Launch(w, w.text("{name}", f"{node.label}: one element of the source a lane."), node.label, grid)
