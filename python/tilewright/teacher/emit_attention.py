"""Attention in one kernel: online softmax over blocks of keys between the two products."""

from __future__ import annotations

import math
from typing import Any

import torch

from tilewright.teacher import ir, sizes
from tilewright.teacher.emit_matmul import MOST_BATCHES, wrap
from tilewright.teacher.emit_template import Tile, added, form_text, precision, scalar_size
from tilewright.teacher.group import Group
from tilewright.teacher.launch import Launch
from tilewright.teacher.layout import decode
from tilewright.teacher.sizes import Sizes
from tilewright.teacher.writer import Arg


def emit_attention(group: Group, table: Sizes, options: dict[str, Any]) -> Launch:
    tile = Tile(group, table, options, static=False)
    w, attrs, views = tile.writer, tile.node.attrs, tile.node.views
    w.names |= {
        "query", "key", "dim", "value_dim", "query_mask", "key_mask", "top", "total", "acc", "scores", "start", "q",
        "k", "v", "weights", "shrink", "new_top", "stop", "allowed", "bias",
    }  # fmt: skip
    q, k, v = views["q"], views["k"], views["v"]
    dtype, batch = q.value.dtype, attrs["batch"]
    half = dtype in (torch.float16, torch.bfloat16)
    head, wide = max(table.of(attrs["head"])), max(table.of(attrs["value_head"]))
    block_q = 128 if half and max(head, wide) <= 128 else 64
    block_k = 64 if half else 32
    block_q = min(block_q, max(16, 1 << (max(table.of(attrs["queries"])) - 1).bit_length()))
    block_k = min(block_k, max(16, 1 << (max(table.of(attrs["keys"])) - 1).bit_length()))
    for name, value in (("BLOCK_Q", block_q), ("BLOCK_K", block_k)):
        w.constexpr(name, str(options.get(name.lower(), value)))
    for name, size in (("BLOCK_D", attrs["head"]), ("BLOCK_V", attrs["value_head"])):
        fixed = max(16, 1 << (max(table.of(size)) - 1).bit_length())
        w.constexpr(
            name,
            str(fixed) if len(set(table.of(size))) == 1 else f"max(16, triton.next_power_of_2({sizes.text(size)}))",
        )
    queries, keys = scalar_size(w, "queries", attrs["queries"]), scalar_size(w, "keys", attrs["keys"])
    depth, width = scalar_size(w, "head", attrs["head"]), scalar_size(w, "value_head", attrs["value_head"])
    scale = scale_argument(tile, attrs)
    index: dict[int, str] = {}
    count = table.product(batch)
    many = bool(batch) and max(table.of(count)) > MOST_BATCHES
    block = "tl.program_id(1)" if many else "tl.program_id(0)"
    if batch:
        w.names.add("batch_index")
        w.line(f"batch_index = {'tl.program_id(0)' if many else 'tl.program_id(1)'}{tile.wide}")
        decode(w, list(enumerate(batch)), "batch_index", lambda at, c: f"batch_at{at}", index)
    w.line(f"query = {wrap(f'{block} * BLOCK_Q + tl.arange(0, BLOCK_Q)', tile.wide)}")
    w.line("dim = tl.arange(0, BLOCK_D)")
    w.line("value_dim = tl.arange(0, BLOCK_V)")
    w.line(f"query_mask = query < {queries}")
    n = len(batch)

    def base(view: ir.View, name: str) -> str:
        parts = [form_text(w, view.axes[d], view.offset(), index[d], name) for d in range(n)]
        return added(w.pointer(view.value), w.lin(ir.Lin({}, view.offset().const), {}), *parts)

    def along(view: ir.View, axis: int, text: str) -> str:
        return form_text(w, view.axes[axis], view.offset(), text, "part")

    where = added(base(q, "q"), along(q, n, "query[:, None]"), along(q, n + 1, "dim[None, :]"))
    w.line(f"q = tl.load({where}, mask=query_mask[:, None] & (dim < {depth})[None, :], other=0.0)")
    for name, view in (("k_base", k), ("v_base", v)):
        w.names.add(name)
        w.line(f"{name} = {base(view, name)}")
    w.line('top = tl.full((BLOCK_Q,), float("-inf"), tl.float32)')
    w.line("total = tl.zeros((BLOCK_Q,), tl.float32)")
    w.line("acc = tl.zeros((BLOCK_Q, BLOCK_V), tl.float32)")
    stop = keys
    if attrs["causal"]:
        w.line("# No query of this block sees a key past its last one.")
        w.line(f"stop = tl.minimum({keys}, ({block} + 1) * BLOCK_Q)")
        stop = "stop"
    dot = precision(dtype, options)
    with w.block(f"for start in range(0, {stop}, BLOCK_K):"):
        w.line("key = start + tl.arange(0, BLOCK_K)")
        w.line(f"key_mask = key < {keys}")
        where = added("k_base", along(k, n, "key[None, :]"), along(k, n + 1, "dim[:, None]"))
        w.line(f"k = tl.load({where}, mask=(dim < {depth})[:, None] & key_mask[None, :], other=0.0)")
        w.line(f"scores = tl.dot(q, k{dot}) * {scale}")
        w.line("allowed = key_mask[None, :]" + (" & (key[None, :] <= query[:, None])" if attrs["causal"] else ""))
        if attrs["mask"] is not None:
            mask_lines(w, views["mask"], attrs["mask"], base, along, n)
        w.line('scores = tl.where(allowed, scores, float("-inf"))')
        w.line("new_top = tl.maximum(top, tl.max(scores, axis=1))")
        safe = "new_top"
        if attrs["mask"] is not None:
            w.line("# Rows without any allowed key so far have no maximum to subtract.")
            w.line('safe_top = tl.where(new_top == float("-inf"), 0.0, new_top)')
            safe = "safe_top"
        w.line(f"weights = tl.exp(scores - {safe}[:, None])")
        w.line(f"shrink = tl.exp(top - {safe})")
        w.line("total = total * shrink + tl.sum(weights, axis=1)")
        where = added("v_base", along(v, n, "key[:, None]"), along(v, n + 1, "value_dim[None, :]"))
        w.line(f"v = tl.load({where}, mask=key_mask[:, None] & (value_dim < {width})[None, :], other=0.0)")
        cast = f".to({w_dtype(dtype)})" if half else ""
        w.line(f"acc = tl.dot(weights{cast}, v, acc * shrink[:, None]{dot})")
        w.line("top = new_top")
    w.line("acc = acc / total[:, None]")
    w.names.add("tile_mask")
    w.line(f"tile_mask = query_mask[:, None] & (value_dim < {width})[None, :]")
    base_index = [*(index[d] for d in range(n)), "query[:, None]", "value_dim[None, :]"]
    tile.tile_axes = ["query[:, None]", "value_dim[None, :]"]
    tile.epilogue(base_index, [(set(range(n)), "")], "tile_mask")
    grid = f"(triton.cdiv({sizes.text(attrs['queries'])}, {block_q}), {sizes.text(count)})"
    if many:
        grid = f"({sizes.text(count)}, triton.cdiv({sizes.text(attrs['queries'])}, {block_q}))"
    if not batch:
        grid = f"(triton.cdiv({sizes.text(attrs['queries'])}, {block_q}),)"
    doc = "Attention of BLOCK_Q queries a program. `total` and `acc` are relative to `top`, the largest score so far."
    return tile.done(grid, doc, {"num_warps": 8 if block_q >= 128 else 4, "num_stages": 2})


def mask_lines(w: Any, view: ir.View, dtype: torch.dtype, base: Any, along: Any, n: int) -> None:
    """A mask of allowed keys, or one that is added."""
    where = added(base(view, "mask"), along(view, n, "query[:, None]"), along(view, n + 1, "key[None, :]"))
    mask = "query_mask[:, None] & key_mask[None, :]"
    if dtype == torch.bool:
        w.line(f"allowed = allowed & tl.load({where}, mask={mask}, other=False)")
    else:
        w.line(f"bias = tl.load({where}, mask={mask}, other=0.0).to(tl.float32)")
        w.line("scores = scores + bias")


def w_dtype(dtype: torch.dtype) -> str:
    return "tl.float16" if dtype == torch.float16 else "tl.bfloat16"


def scale_argument(tile: Tile, attrs: dict[str, Any]) -> str:
    """The factor of the scores."""
    if attrs["scale"] is not None and not hasattr(attrs["scale"], "values"):
        return repr(float(attrs["scale"]))
    values = tile.table.of(attrs["head"])
    if len(set(values)) == 1:
        return repr(1.0 / math.sqrt(values[0]))
    name = tile.writer.name("scale")
    tile.writer.args.append(Arg(name, f"{sizes.atomic(attrs['head'])} ** -0.5", "number"))
    return name
