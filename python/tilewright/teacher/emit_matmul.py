"""Products of matrices: one tile of the result a program, with strided operands, batches and split inner dimensions."""

from __future__ import annotations

from typing import Any

import torch

from tilewright.teacher import ir, sizes
from tilewright.teacher.device import device_of
from tilewright.teacher.emit_template import Tile, accumulator, added, form_text, precision, scalar_size
from tilewright.teacher.group import Group
from tilewright.teacher.launch import Launch
from tilewright.teacher.layout import decode
from tilewright.teacher.sizes import Sizes

MOST_BATCHES = 65535
"""Extent of the second and third axis of a grid at most."""


def choose_tile(m: int, n: int, k: int, batch: int, dtype: torch.dtype, options: dict[str, Any]) -> tuple[int, ...]:
    """Rows, columns and inner size of a tile; warps; stages."""
    device = device_of(options)
    fill = device.processors
    if "tile" in options:
        rows, cols, inner, warps, stages = options["tile"]
    elif dtype in (torch.float16, torch.bfloat16):
        rows, cols, inner, warps, stages = 256, 128, 64, 8, 3
        if tiles(m, n, 256, 128) * batch < fill:
            rows, cols, inner, warps, stages = 128, 128, 64, 4, 4
        if tiles(m, n, 128, 128) * batch < fill:
            rows, cols, inner, warps, stages = 64, 64, 64, 4, 4
    elif dtype == torch.float32:
        rows, cols, inner, warps, stages = 128, 128, 32, 8, 3
        if tiles(m, n, 128, 128) * batch < fill:
            rows, cols, inner, warps, stages = 64, 64, 32, 4, 3
    else:
        rows, cols, inner, warps, stages = 32, 32, 16, 4, 2
    rows = min(rows, max(16, 1 << (m - 1).bit_length()))
    cols = min(cols, max(16, 1 << (n - 1).bit_length()))
    inner = min(inner, max(16, 1 << (k - 1).bit_length()))
    if rows == 16 and inner < 128 <= k and dtype != torch.float64:
        inner = 128 if dtype != torch.float32 else 64
    if rows * cols <= 32 * 32:
        warps = min(warps, 4)
    return rows, cols, inner, warps, device.stages(stages, rows, cols, inner, dtype.itemsize)


def tiles(m: int, n: int, rows: int, cols: int) -> int:
    return -(-m // rows) * -(-n // cols)


def emit_matmul(group: Group, table: Sizes, options: dict[str, Any]) -> Launch:
    tile = Tile(group, table, options, static=False)
    w, node = tile.writer, tile.node
    w.names |= {
        "row",
        "col",
        "row_mask",
        "col_mask",
        "acc",
        "start",
        "inner",
        "a",
        "b",
        "split",
        "stop",
        "a_rows",
        "b_cols",
        "inner_mask",
        "a_blocks",
        "b_blocks",
    }
    attrs, a, b = node.attrs, node.views["a"], node.views["b"]
    dtype = a.value.dtype
    m, n, k, batch = attrs["m"], attrs["n"], attrs["k"], attrs["batch"]
    split = attrs.get("split", 1)
    count = table.product(batch)
    numbers = [table.of(s)[0] for s in (m, n, k, count)]
    rows, cols, inner, warps, stages = choose_tile(*numbers, dtype, options)
    for name, value in (("BLOCK_M", rows), ("BLOCK_N", cols), ("BLOCK_K", inner)):
        w.constexpr(name, str(value))
    sm, sn, sk = (scalar_size(w, wish, s) for wish, s in (("m", m), ("n", n), ("k", k)))
    grouped = options.get("grouped", True) and tiles(numbers[0], numbers[1], rows, cols) > 16
    many = bool(batch) and max(table.of(count)) > MOST_BATCHES
    described = descriptors_fit(tile, a, b, batch, split)
    loads = open_descriptors(tile, (sm, sn, sk)) if described else []
    programs = device_of(options).processors
    specialised = described and options.get("specialised", False) and device_of(options).block_copies
    resident = described and (options.get("resident", False) or specialised)
    if specialised and "tile" not in options:
        # Two groups of four warps multiply half a tile each, a third one copies: Triton counts the four of one.
        warps, stages = 4, device_of(options).stages(3, rows, cols, inner, dtype.itemsize)
    number = "tl.program_id(0)" + (f" % (tl.cdiv({sm}, BLOCK_M) * tl.cdiv({sn}, BLOCK_N))" * many)
    if resident:
        w.names |= {"number", "tile_count"}
        w.constexpr("PROGRAMS", str(programs))
        w.line("# One program a multiprocessor: the next tile's loads overlap with the end of the one before.")
        if specialised:
            w.line("# Some warps copy blocks, the others multiply.")
        w.line(f"tile_count = tl.cdiv({sm}, BLOCK_M) * tl.cdiv({sn}, BLOCK_N)")
        how = "warp_specialize=True" if specialised else "flatten=True"
        w.line(f"for number in tl.range(tl.program_id(0), tile_count, PROGRAMS, {how}):")
        w.indent += 1
        number = "number"
    tile_index(w, sm, sn, grouped, number)
    outer = []
    if split > 1:
        w.line("split = tl.program_id(2)")
        outer.append("split")
    index: dict[int, str] = {}
    if batch:
        w.names |= {"batch_index"}
        number = "tl.program_id(1)"
        if many:
            number = f"(tl.program_id(0) // (tl.cdiv({sm}, BLOCK_M) * tl.cdiv({sn}, BLOCK_N)))"
        w.line(f"batch_index = {number}{tile.wide}")
        decode(w, list(enumerate(batch)), "batch_index", lambda at, c: f"batch_at{at}", index)
        outer += [index[d] for d in range(len(batch))]
    w.line(f"row = {wrap('tile_m * BLOCK_M + tl.arange(0, BLOCK_M)', tile.wide)}")
    w.line(f"col = {wrap('tile_n * BLOCK_N + tl.arange(0, BLOCK_N)', tile.wide)}")
    w.line(f"row_mask = row < {sm}")
    w.line(f"col_mask = col < {sn}")
    first = len(batch)
    base_a = [form_text(w, a.axes[d], a.offset(), index[d], "a") for d in range(first)]
    base_b = [form_text(w, b.axes[d], b.offset(), index[d], "b") for d in range(first)]
    row_a = form_text(w, a.axes[first], a.offset(), "row[:, None]", "row")
    col_b = form_text(w, b.axes[first + 1], b.offset(), "col[None, :]", "col")
    const_a, const_b = (w.lin(ir.Lin({}, v.offset().const), {}) for v in (a, b))
    if described:
        descriptor_loop(tile, loads, sk)
    else:
        w.line(f"a_rows = {added(w.pointer(a.value), const_a, *base_a, row_a)}")
        w.line(f"b_cols = {added(w.pointer(b.value), const_b, *base_b, col_b)}")
        w.line(f"acc = tl.zeros((BLOCK_M, BLOCK_N), dtype={accumulator(dtype)})")
        pointer_loop(tile, sk, inner, split)
    w.names |= {"tile_mask"}
    w.line("tile_mask = row_mask[:, None] & col_mask[None, :]")
    lead = set(range(len(outer)))
    ni, mi = len(outer) + 1, len(outer)
    masks = [(lead, ""), (lead | {mi}, "row_mask[:, None]"), (lead | {ni}, "col_mask[None, :]")]
    tile.epilogue([*outer, "row[:, None]", "col[None, :]"], masks, "tile_mask")
    w.indent -= 1 if resident else 0
    grid = f"triton.cdiv({sizes.text(m)}, {rows}) * triton.cdiv({sizes.text(n)}, {cols})"
    if resident:
        grid = f"(min({grid}, {programs}),)"
    elif many:
        grid = f"({grid} * {sizes.atomic(count)}, 1" + (f", {split})" if split > 1 else ")")
    elif split > 1:
        grid = f"({grid}, {sizes.text(count)}, {split})"
    else:
        grid = f"({grid}, {sizes.text(count)})" if batch else f"({grid},)"
    names = ", ".join(dict.fromkeys(node.label for node in group.nodes))
    doc = f"{names}: a BLOCK_M x BLOCK_N tile of the result a program, accumulated in {accumulator(dtype)[3:]}."
    return tile.done(grid, doc, {"num_warps": warps, "num_stages": stages})


def pointer_loop(tile: Tile, sk: str, inner: int, split: int) -> None:
    """Sums over blocks of the inner dimension, by loads at `a_rows` and `b_cols`. The rest of a block is masked, unless
    the inner dimension is a multiple of the block in every call that host code makes with EVEN_K."""
    w, a, b = tile.writer, tile.node.views["a"], tile.node.views["b"]
    first, dtype = len(tile.node.attrs["batch"]), a.value.dtype
    begin, stop = "0", sk
    if split > 1:
        chunk = w.name("chunk")
        w.line(f"{chunk} = tl.cdiv(tl.cdiv({sk}, {split}), BLOCK_K) * BLOCK_K")
        w.line(f"stop = tl.minimum({sk}, (split + 1) * {chunk})")
        begin, stop = f"split * {chunk}", "stop"
    w.constexpr("EVEN_K", f"{sizes.atomic(tile.node.attrs['k'])} % {inner * split} == 0")
    with w.block(f"for start in range({begin}, {stop}, BLOCK_K):"):
        w.line("inner = start + tl.arange(0, BLOCK_K)")
        in_a = form_text(w, a.axes[first + 1], a.offset(), "inner[None, :]", "inner_a")
        in_b = form_text(w, b.axes[first], b.offset(), "inner[:, None]", "inner_b")
        where_a, where_b, other = added("a_rows", in_a), added("b_cols", in_b), zero(dtype)
        with w.block("if EVEN_K:"):
            w.line(f"a = tl.load({where_a}, mask=row_mask[:, None], other={other})")
            w.line(f"b = tl.load({where_b}, mask=col_mask[None, :], other={other})")
        with w.block("else:"):
            w.line(f"inner_mask = inner < {stop}")
            w.line(f"a = tl.load({where_a}, mask=row_mask[:, None] & inner_mask[None, :], other={other})")
            w.line(f"b = tl.load({where_b}, mask=inner_mask[:, None] & col_mask[None, :], other={other})")
        w.line(f"acc = tl.dot(a, b, acc{precision(dtype, tile.options)})")


def descriptors_fit(tile: Tile, a: ir.View, b: ir.View, batch: Any, split: int) -> bool:
    """Whether both operands can be read through tensor descriptors: plain matrices with rows of 16-byte multiples."""
    half = a.value.dtype in (torch.float16, torch.bfloat16) and device_of(tile.options).block_copies
    if not tile.options.get("descriptors", half) or batch or split > 1:
        return False
    return all(descriptor_of(tile.table, v) is not None for v in (a, b))


def descriptor_of(table: Sizes, view: ir.View) -> tuple[bool, Any] | None:
    """Whether the last axis is the contiguous one, and the stride of the other."""
    offset = view.offset()
    if offset.const != 0 or any(len(axis) != 1 for axis in view.axes):
        return None
    strides = [offset.terms.get(axis[0], ir.ZERO) for axis in view.axes]
    for last in (1, 0):
        step = strides[1 - last]
        bytes_ = [v * view.value.dtype.itemsize for v in table.of(step)]
        if strides[last] == 1 and all(n and n % 16 == 0 for n in bytes_):
            return last == 1, step
    return None


def open_descriptors(tile: Tile, extents: tuple[str, str, str]) -> list[str]:
    """Makes a descriptor of each operand; the texts of a block's loads."""
    w = tile.writer
    w.allocator = True
    loads = []
    sm, sn, sk = extents
    for role, rows, cols, block in (("a", sm, sk, ("BLOCK_M", "BLOCK_K")), ("b", sk, sn, ("BLOCK_K", "BLOCK_N"))):
        view = tile.node.views[role]
        found = descriptor_of(tile.table, view)
        assert found is not None
        straight, step = found
        shape, blocks = ((rows, cols), block) if straight else ((cols, rows), block[::-1])
        pointer = w.pointer(view.value)
        w.line(f"{role}_blocks = tl.make_tensor_descriptor(")
        w.line(f"    {pointer}, shape=[{shape[0]}, {shape[1]}], strides=[{w.size(step)}, 1],")
        w.line(f"    block_shape=[{blocks[0]}, {blocks[1]}],")
        w.line(")")
        place = ["tile_m * BLOCK_M", "start"] if role == "a" else ["start", "tile_n * BLOCK_N"]
        place = place if straight else place[::-1]
        loads.append(f"{role}_blocks.load([{place[0]}, {place[1]}])" + ("" if straight else ".T"))
    return loads


def descriptor_loop(tile: Tile, loads: list[str], sk: str) -> None:
    """Blocks come through descriptors, which know their tensor's edges: no masks, and block copies on Hopper."""
    w, dtype = tile.writer, tile.node.views["a"].value.dtype
    w.line(f"acc = tl.zeros((BLOCK_M, BLOCK_N), dtype={accumulator(dtype)})")
    with w.block(f"for start in range(0, {sk}, BLOCK_K):"):
        w.line(f"a = {loads[0]}")
        w.line(f"b = {loads[1]}")
        w.line(f"acc = tl.dot(a, b, acc{precision(dtype, tile.options)})")


def wrap(text: str, cast: str) -> str:
    """A sum with a cast, or as it is."""
    return f"({text}){cast}" if cast else text


def zero(dtype: torch.dtype) -> str:
    return "0.0" if dtype.is_floating_point else "0"


def tile_index(w: Any, m: str, n: str, grouped: bool, program: str) -> None:
    """Which tile a program computes."""
    w.names |= {"tile_m", "tile_n", "tiles_m", "tiles_n", "program", "band", "first_m", "band_rows", "place"}
    w.line(f"program = {program}")
    w.line(f"tiles_n = tl.cdiv({n}, BLOCK_N)")
    if not grouped:
        w.line("tile_m = program // tiles_n")
        w.line("tile_n = program % tiles_n")
        return
    w.constexpr("GROUP_M", "8")
    w.line("# Programs that run together work on a band of GROUP_M rows of tiles: they share operands in the cache.")
    w.line(f"tiles_m = tl.cdiv({m}, BLOCK_M)")
    w.line("band = program // (GROUP_M * tiles_n)")
    w.line("first_m = band * GROUP_M")
    w.line("band_rows = tl.minimum(tiles_m - first_m, GROUP_M)")
    w.line("place = program % (GROUP_M * tiles_n)")
    w.line("tile_m = first_m + place % band_rows")
    w.line("tile_n = place // band_rows")
