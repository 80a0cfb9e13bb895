"""Convolutions as implicit products: rows are output pixels of the whole batch, columns output channels."""

from __future__ import annotations

from typing import Any

import torch

from tilewright.teacher import ir, sizes
from tilewright.teacher.device import device_of
from tilewright.teacher.emit_matmul import wrap, zero
from tilewright.teacher.emit_template import Tile, accumulator, precision
from tilewright.teacher.group import Group
from tilewright.teacher.launch import Launch
from tilewright.teacher.layout import decode
from tilewright.teacher.sizes import Size, Sizes

AXES = ("z", "y", "x")


def conv_tile(pixels: int, outputs: int, inner: int, dtype: torch.dtype, options: dict[str, Any]) -> tuple[int, ...]:
    """Pixels, output channels and inner size of a tile; warps; stages."""
    if "conv_tile" in options:
        p, o, k, warps, stages = options["conv_tile"]
    elif dtype in (torch.float16, torch.bfloat16):
        p, o, k, warps, stages = 128, 128, 64, 8, 3
    else:
        # An inner block that the taps fill badly costs more than a small one.
        k = 64 if -(-inner // 64) * 64 < 1.15 * inner else 32
        p, o, warps, stages = 128, 64 if outputs <= 64 else 128, 8, 2
        # Blocks of weights cost more than those of pixels, which are larger then: a block of 128 outputs would be
        # no smaller a waste for 96 of them.
        if k == 32 and outputs <= 96 and pixels >= 256 * 2 * device_of(options).processors:
            p, o, stages = 256, 64, 3
    o = min(o, max(16, 1 << (outputs - 1).bit_length()))
    k = min(k, max(16, 1 << (inner - 1).bit_length()))
    device = device_of(options)
    while p > 32 and -(-pixels // p) * -(-outputs // o) < device.processors:
        p //= 2
    if p * o <= 64 * 32:
        warps = 4
    return p, o, k, warps, device.stages(stages, p, o, k, dtype.itemsize)


class Conv:
    """What both directions have in common."""

    def __init__(self, group: Group, table: Sizes, options: dict[str, Any]) -> None:
        self.tile = Tile(group, table, options, static=True)
        self.w, self.table, self.options = self.tile.writer, table, options
        self.node = self.tile.node
        attrs = self.node.attrs
        self.rank: int = attrs["rank"]
        self.tile.tile_axes = ["pixel[:, None]", "channel[None, :]"]
        self.axes = AXES[3 - self.rank :]
        self.x, self.weight = self.node.views["x"].value, self.node.views["weight"].value
        self.stride, self.padding, self.dilation = attrs["stride"], attrs["padding"], attrs["dilation"]
        self.kernel, self.groups, self.each = attrs["kernel"], attrs["groups"], attrs["each"]
        self.out = self.node.outs[0]
        self.size_in = list(attrs.get("size_in", self.node.views["x"].shape[2:]))
        self.size_out = list(self.out.shape[2:])
        self.batch, self.channels_in = self.node.views["x"].shape[:2]
        self.channels_out = self.out.shape[1]
        self.per_group = table.quotient(self.channels_out, self.groups)
        self.dtype = self.x.dtype
        self.taps = table.product(self.kernel)
        self.grouped = not table.is_one(self.groups)
        self.w.names |= {
            "pixel", "pixel_mask", "channel", "channel_mask", "out_channel", "sample", "acc", "tap", "c", "c_mask",
            "start", "x", "y", "z", "inside", "weight", "image", "group", "k", "taps", "values",
            *(f"{a}_{s}" for a in AXES for s in ("out", "in", "tap", "phase", "first", "low")),
        }  # fmt: skip

    def open(self, extents: list[Size], outputs: str = "channel") -> None:
        """Index lines: which pixels and channels."""
        w, tile = self.w, self.tile
        w.pointer(self.x)
        w.pointer(self.weight)
        total = self.table.product([self.batch, *extents])
        w.line(f"pixel = {wrap('tl.program_id(0) * BLOCK_P + tl.arange(0, BLOCK_P)', tile.wide)}")
        w.line(f"pixel_mask = pixel < {w.size(total)}")
        names = ["sample", *(f"{a}_out" for a in self.axes)]
        index: dict[int, str] = {}
        decode_named(w, [self.batch, *extents], "pixel", names, index)
        self.sample = index[0]
        self.place = [index[i + 1] for i in range(self.rank)]
        w.line(f"{outputs} = tl.program_id(1) * BLOCK_O + tl.arange(0, BLOCK_O)")
        w.line(f"channel_mask = {outputs} < {w.size(self.per_group)}")

    def finish_tile(self, base: list[str], axis_masks: str = "") -> None:
        w = self.w
        w.names.add("tile_mask")
        mask = "pixel_mask[:, None] & channel_mask[None, :]"
        w.line(f"tile_mask = {mask}{axis_masks}")
        masks = [({1}, "channel_mask[None, :]"), ({0, *range(2, 2 + self.rank)}, "pixel_mask[:, None]")]
        self.tile.epilogue(base, masks, "tile_mask")


def decode_named(w: Any, extents: list[Size], linear: str, names: list[str], index: dict[int, str]) -> None:
    """Takes a linear index apart under given names."""
    step = ir.ONE
    for at in range(len(extents) - 1, -1, -1):
        if extents[at] == 1:
            index[at] = "0"
            continue
        text = linear if step == 1 else f"{linear} // {w.size(step)}"
        if at and any(e != 1 for e in extents[:at]):
            text = f"{text} % {w.size(extents[at])}"
        w.line(f"{names[at]} = {text}")
        index[at] = names[at]
        step = step * extents[at]


def scaled(text: str, factor: str) -> str:
    """A product without factors of one."""
    if factor == "1" or text == "0":
        return text
    return f"{text} * {factor}"


def vector(text: str, suffix: str) -> str:
    """A block with its new axis; a scalar as it is."""
    return text if text == "0" else text + suffix


def emit_conv(group: Group, table: Sizes, options: dict[str, Any]) -> Launch:
    conv = Conv(group, table, options)
    w, rank = conv.w, conv.rank
    each = table.of(conv.each)[0]
    pixels = table.of(table.product([conv.batch, *conv.size_out]))[0]
    # With three axes, taking an inner index apart costs more than blocks that only hold channels, if these fill them.
    flat = options.get("flat_taps", rank < 3 or each < 16) and table.of(conv.taps)[0] > 1
    inner = table.of(conv.each * conv.taps)[0] if flat else each
    p, o, k, warps, stages = conv_tile(pixels, table.of(conv.per_group)[0], inner, conv.dtype, options)
    for name, value in (("BLOCK_P", p), ("BLOCK_O", o), ("BLOCK_C", k)):
        w.constexpr(name, str(value))
    conv.open(conv.size_out)
    channel_in, channel_out = "", "channel"
    if conv.grouped:
        w.line("group = tl.program_id(2)")
        w.line(f"out_channel = group * {w.size(conv.per_group)} + channel")
        channel_in, channel_out = f"group * {w.size(conv.each)}", "out_channel"
    for i, axis in enumerate(conv.axes):
        start = scaled(conv.place[i], w.size(conv.stride[i]))
        pad = w.size(conv.padding[i])
        w.line(f"{axis}_first = {start}" + ("" if pad == "0" else f" - {pad}"))
    image = table.product(conv.size_in)
    steps = inner_steps(conv.size_in, table)
    x_base = f"sample * {w.size(conv.channels_in * image)}" if conv.sample != "0" else "0"
    if channel_in:
        x_base = f"{x_base} + ({channel_in}) * {w.size(image)}"
    w.line(f"image = x_ptr + {x_base}")
    w.line(f"acc = tl.zeros((BLOCK_P, BLOCK_O), dtype={accumulator(conv.dtype)})")
    body = conv_flat if flat else conv_taps
    body(conv, image, steps, channel_out)
    base = [vector(conv.sample, "[:, None]"), f"{channel_out}[None, :]"]
    base += [vector(conv.place[i], "[:, None]") for i in range(rank)]
    conv.finish_tile(base)
    total = table.product([conv.batch, *conv.size_out])
    grid = f"(triton.cdiv({sizes.text(total)}, {p}), triton.cdiv({sizes.text(conv.per_group)}, {o})"
    grid += f", {sizes.text(conv.groups)})" if conv.grouped else ")"
    names = ", ".join(dict.fromkeys(node.label for node in group.nodes))
    doc = (
        f"{names}: BLOCK_P output pixels of the batch by BLOCK_O output channels a program, an implicit matrix product."
    )
    return conv.tile.done(grid, doc, {"num_warps": warps, "num_stages": stages})


def inner_steps(extents: list[Size], table: Sizes) -> list[Size]:
    """Strides of the spatial dimensions."""
    return [table.product(extents[i + 1 :]) for i in range(len(extents))]


def tap_lines(conv: Conv, tap: str) -> list[str]:
    """The tap's position along each axis."""
    w, names = conv.w, []
    step = ir.ONE
    for i in range(conv.rank - 1, -1, -1):
        if conv.kernel[i] == 1:
            names.insert(0, "0")
            continue
        text = tap if step == 1 else f"{tap} // {w.size(step)}"
        if any(k != 1 for k in conv.kernel[:i]):
            text = f"{text} % {w.size(conv.kernel[i])}"
        name = f"{conv.axes[i]}_tap"
        if text != name:
            w.line(f"{name} = {text}")
        names.insert(0, name)
        step = step * conv.kernel[i]
    return names


def conv_taps(conv: Conv, image: Size, steps: list[Size], channel_out: str) -> None:
    """One product for each tap and block of input channels."""
    w, dtype = conv.w, conv.dtype
    many = conv.taps != 1
    if many:
        w.line(f"for tap in range({w.size(conv.taps)}):")
        w.indent += 1
    taps = tap_lines(conv, "tap") if many else ["0"] * conv.rank
    inside, offset = [], []
    for i, axis in enumerate(conv.axes):
        shift = scaled(taps[i], w.size(conv.dilation[i]))
        w.line(f"{axis} = {axis}_first" + ("" if shift == "0" else f" + {shift}"))
        inside.append(f"({axis} >= 0) & ({axis} < {w.size(conv.size_in[i])})")
        offset.append(scaled(axis, w.size(steps[i])))
    w.line(f"inside = pixel_mask & {' & '.join(inside)}")
    with w.block(f"for start in range(0, {w.size(conv.each)}, BLOCK_C):"):
        w.line("c = start + tl.arange(0, BLOCK_C)")
        w.line(f"c_mask = c < {w.size(conv.each)}")
        place = f"(image + {' + '.join(offset)})[:, None] + c[None, :] * {w.size(image)}"
        w.line(f"values = tl.load({place}, mask=inside[:, None] & c_mask[None, :], other={zero(dtype)})")
        row = f"{channel_out}[None, :] * {w.size(conv.each)} + c[:, None]"
        where = f"weight_ptr + ({row}) * {w.size(conv.taps)} + tap" if many else f"weight_ptr + {row}"
        w.line(f"weight = tl.load({where}, mask=c_mask[:, None] & channel_mask[None, :], other={zero(dtype)})")
        w.line(dot(conv))
    if many:
        w.indent -= 1


def dot(conv: Conv) -> str:
    if conv.dtype == torch.float64:
        return "acc += tl.sum(values[:, :, None] * weight[None, :, :], axis=1)"
    return f"acc = tl.dot(values, weight, acc{precision(conv.dtype, conv.options)})"


def conv_flat(conv: Conv, image: Size, steps: list[Size], channel_out: str) -> None:
    """Input channels and taps as one inner dimension, in the order of the weight's memory."""
    w, dtype = conv.w, conv.dtype
    depth = w.size(conv.each * conv.taps)
    with w.block(f"for start in range(0, {depth}, BLOCK_C):"):
        w.line("k = start + tl.arange(0, BLOCK_C)")
        w.line(f"c = k // {w.size(conv.taps)}")
        w.line(f"tap = k % {w.size(conv.taps)}")
        taps = tap_lines(conv, "tap")
        inside, offset = [], []
        for i, axis in enumerate(conv.axes):
            shift = scaled(vector(taps[i], "[None, :]"), w.size(conv.dilation[i]))
            w.line(f"{axis} = {axis}_first[:, None]" + ("" if shift == "0" else f" + {shift}"))
            inside.append(f"({axis} >= 0) & ({axis} < {w.size(conv.size_in[i])})")
            offset.append(scaled(axis, w.size(steps[i])))
        w.line(f"inside = pixel_mask[:, None] & (k < {depth})[None, :] & {' & '.join(inside)}")
        place = f"image[:, None] + c[None, :] * {w.size(image)} + {' + '.join(offset)}"
        if conv.sample == "0":
            place = place.replace("image[:, None]", "image")
        w.line(f"values = tl.load({place}, mask=inside, other={zero(dtype)})")
        where = f"weight_ptr + {channel_out}[None, :] * {depth} + k[:, None]"
        w.line(f"weight = tl.load({where}, mask=(k < {depth})[:, None] & channel_mask[None, :], other={zero(dtype)})")
        w.line(dot(conv))


# transposed -------------------------------------------------------------------------------------------------------


def emit_conv_transpose(group: Group, table: Sizes, options: dict[str, Any]) -> Launch:
    """Gather form: an output pixel collects the inputs that would scatter to it.

    With a stride, only every stride-th tap reaches a given pixel. Programs therefore work on pixels of one phase
    (position modulo stride), for which the taps that count are the same.
    """
    conv = Conv(group, table, options)
    w = conv.w
    phased = [
        s if all(v == 1 for v in table.of(d)) else ir.ONE for s, d in zip(conv.stride, conv.dilation, strict=True)
    ]
    extents = [ceil_div(size, phase, table) for size, phase in zip(conv.size_out, phased, strict=True)]
    pixels = table.of(table.product([conv.batch, *extents]))[0]
    p, o, k, warps, stages = conv_tile(
        pixels * table.of(table.product(phased))[0],
        table.of(conv.per_group)[0],
        table.of(conv.each)[0],
        conv.dtype,
        options,
    )
    if "conv_tile" not in options and conv.dtype == torch.float32 and p >= 128:
        p, k, warps, stages = 256, min(k, 32), 4 if o <= 16 else 8, 2
    for name, value in (("BLOCK_P", p), ("BLOCK_O", o), ("BLOCK_C", k)):
        w.constexpr(name, str(value))
    conv.open(extents)
    phases = table.product(phased)
    third = phases != 1 or conv.grouped
    channel_out, channel_in = "channel", ""
    if third:
        w.names.add("unit")
        w.line("unit = tl.program_id(2)")
    if conv.grouped:
        w.line(f"group = unit // {w.size(phases)}" if phases != 1 else "group = unit")
        w.line(f"out_channel = group * {w.size(conv.per_group)} + channel")
        channel_out, channel_in = "out_channel", f"group * {w.size(conv.each)}"
    places, bounds = phase_lines(conv, phased)
    image = table.product(conv.size_in)
    x_base = f"sample * {w.size(conv.channels_in * image)}" if conv.sample != "0" else "0"
    w.line(f"image = x_ptr + {x_base}")
    w.line(f"acc = tl.zeros((BLOCK_P, BLOCK_O), dtype={accumulator(conv.dtype)})")
    transpose_taps(conv, phased, places, image, channel_in)
    base = [vector(conv.sample, "[:, None]"), f"{channel_out}[None, :]"]
    base += [vector(place, "[:, None]") for place in places]
    conv.finish_tile(base, "".join(f" & {b}" for b in bounds))
    total = table.product([conv.batch, *extents])
    grid = f"(triton.cdiv({sizes.text(total)}, {p}), triton.cdiv({sizes.text(conv.per_group)}, {o})"
    grid += f", {sizes.text(phases * conv.groups)})" if third else ")"
    names = ", ".join(dict.fromkeys(node.label for node in group.nodes))
    doc = f"{names}: output pixels of one phase of the stride gather the inputs that reach them."
    return conv.tile.done(grid, doc, {"num_warps": warps, "num_stages": stages})


def ceil_div(a: Size, b: Size, table: Sizes) -> Size:
    if b == 1:
        return a
    return table.derive("steps", sizes.FloorDiv(a + b - 1, b))


def phase_lines(conv: Conv, phased: list[Size]) -> tuple[list[str], list[str]]:
    """The position of each output pixel along each axis, and the conditions that it lies inside."""
    w = conv.w
    places, bounds = [], []
    step = ir.ONE
    for i in range(conv.rank - 1, -1, -1):
        axis, s = conv.axes[i], phased[i]
        if s == 1:
            places.insert(0, conv.place[i])
            continue
        text = "unit" if step == 1 else f"unit // {w.size(step)}"
        w.line(f"{axis}_phase = {text} % {w.size(s)}")
        step = step * s
        name = w.name(f"{axis}_place")
        w.line(f"{name} = {scaled(conv.place[i], w.size(s))} + {axis}_phase")
        places.insert(0, name)
        bounds.append(f"({name} < {w.size(conv.size_out[i])})[:, None]")
        w.line(f"{axis}_low = {axis}_phase + {w.size(conv.padding[i])}")
    return places, bounds


def transpose_taps(conv: Conv, phased: list[Size], places: list[str], image: Size, channel_in: str) -> None:
    """Loops over the taps that count, one product for each block of input channels."""
    w, table, depth = conv.w, conv.table, 0
    steps = inner_steps(conv.size_in, table)
    tap_steps = inner_steps(conv.kernel, table)
    inside, offset, taps, scalars = [], [], [], []
    for i, axis in enumerate(conv.axes):
        s, kernel = phased[i], conv.kernel[i]
        if kernel == 1 and s == 1:
            tap = "0"
        elif s == 1:
            tap = f"{axis}_tap"
            w.line(f"for {tap} in range({w.size(kernel)}):")
            w.indent += 1
            depth += 1
        else:
            tap = f"{axis}_tap"
            step = w.name(f"{axis}_step")
            w.line(f"for {step} in range({w.size(sizes.FloorDiv(kernel + s - 1, s))}):")
            w.indent += 1
            depth += 1
            w.line(f"{tap} = {axis}_low % {w.size(s)} + {step} * {w.size(s)}")
        if s == 1:
            reach = f"{places[i]} + {w.size(conv.padding[i])}" if conv.padding[i] != 0 else places[i]
            shift = scaled(tap, w.size(conv.dilation[i]))
            reach = reach if shift == "0" else f"{reach} - {shift}"
            stride = conv.stride[i]
            if stride == 1:
                w.line(f"{axis} = {reach}")
                inside.append(f"({axis} >= 0) & ({axis} < {w.size(conv.size_in[i])})")
            else:
                name = w.name(f"{axis}_reach")
                w.line(f"{name} = {reach}")
                w.line(f"{axis} = {name} // {w.size(stride)}")
                inside.append(
                    f"({name} >= 0) & ({name} % {w.size(stride)} == 0) & ({axis} < {w.size(conv.size_in[i])})"
                )
        else:
            w.line(f"{axis} = {conv.place[i]} + {axis}_low // {w.size(s)} - {step}")
            inside.append(f"({axis} >= 0) & ({axis} < {w.size(conv.size_in[i])})")
            scalars.append(f"({tap} < {w.size(kernel)})")
        offset.append(scaled(axis, w.size(steps[i])))
        if tap != "0":
            taps.append(scaled(tap, w.size(tap_steps[i])))
    w.line(f"inside = pixel_mask & {' & '.join([*scalars, *inside])}")
    with w.block(f"for start in range(0, {w.size(conv.each)}, BLOCK_C):"):
        w.line("c = start + tl.arange(0, BLOCK_C)")
        w.line(f"c_mask = c < {w.size(conv.each)}")
        source = "c"
        if channel_in:
            w.names.add("in_channel")
            w.line(f"in_channel = {channel_in} + c")
            source = "in_channel"
        place = f"(image + {' + '.join(offset)})[:, None] + {source}[None, :] * {w.size(image)}"
        w.line(f"values = tl.load({place}, mask=inside[:, None] & c_mask[None, :], other={zero(conv.dtype)})")
        row = f"({source}[:, None] * {w.size(conv.per_group)} + channel[None, :]) * {w.size(conv.taps)}"
        where = " + ".join(["weight_ptr", row, *taps])
        masks = " & ".join([*scalars, "c_mask[:, None]", "channel_mask[None, :]"])
        w.line(f"weight = tl.load({where}, mask={masks}, other={zero(conv.dtype)})")
        w.line(dot(conv))
    w.indent -= depth


__all__ = ["decode", "emit_conv", "emit_conv_transpose"]
