"""Rules of operations that have kernels of their own making: products, convolutions, attention, scans."""

from __future__ import annotations

import math
from typing import Any

import sympy
import torch

from tilewright.teacher import ir
from tilewright.teacher.builder import unsqueeze
from tilewright.teacher.device import device_of
from tilewright.teacher.ir import Lazy, Template
from tilewright.teacher.lower import Lowering
from tilewright.teacher.ops_pointwise import Calculator, out_dtype
from tilewright.teacher.ops_pool import axis_label, listed, out_extent, windows
from tilewright.teacher.ops_reduce import accumulated, softmax, spread
from tilewright.teacher.ops_view import known, plain_view, reshape_to
from tilewright.teacher.rules import lowers
from tilewright.teacher.sizes import FloorDiv, Size, Unsupported

# products ---------------------------------------------------------------------------------------------------------


def product(lowering: Lowering, a: Lazy, b: Lazy, name: str = "product") -> Lazy:
    """(..., m, k) @ (..., k, n), both of the same rank, batch dimensions broadcast already."""
    if (diagonal := lowering.diagonals.get(id(a))) is not None:
        return lowering.op("mul", b.dtype, unsqueeze(diagonal, len(diagonal.shape)), b)
    if (diagonal := lowering.diagonals.get(id(b))) is not None:
        return lowering.op("mul", a.dtype, a, unsqueeze(diagonal, len(diagonal.shape) - 1))
    if a.dtype != b.dtype:
        a, b = (lowering.cast(x, torch.promote_types(a.dtype, b.dtype)) for x in (a, b))
    if a.dtype == torch.float64 or lowering.sizes.is_one(a.shape[-2]) or lowering.sizes.is_one(b.shape[-1]):
        return product_by_sum(lowering, a, b)
    left, right = lowering.memory(a), lowering.memory(b)
    batch = a.shape[:-2]
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    attrs = {"m": m, "n": n, "k": k, "batch": tuple(batch)}
    split = split_of(lowering, m, n, k, batch, a.dtype)
    if split > 1:
        parts = lowering.temp((sympy.Integer(split), *batch, m, n), torch.float32, "parts")
        attrs["split"] = split
        lowering.add(Template(lowering.label, [parts], "matmul", {"a": left, "b": right}, attrs))
        total = lowering.reduce("sum", lowering.read(parts), [0], torch.float32, name=name)
        return lowering.cast(total, a.dtype)
    # Scores of attention and the like are not rounded where they go through memory.
    half = a.dtype in (torch.float16, torch.bfloat16)
    out = lowering.temp((*batch, m, n), torch.float32 if half and batch and lowering.between else a.dtype, name)
    lowering.add(Template(lowering.label, [out], "matmul", {"a": left, "b": right}, attrs))
    return lowering.cast(lowering.read(out), a.dtype)


def split_of(lowering: Lowering, m: Size, n: Size, k: Size, batch: Any, dtype: torch.dtype) -> int:
    """Into how many parts the inner dimension is split: more than one where there are few tiles and it is long."""
    if not dtype.is_floating_point:
        return 1
    rows, cols, inner, count = (lowering.sizes.of(s)[0] for s in (m, n, k, lowering.sizes.product(batch)))
    if "split_k" in lowering.options:
        return lowering.options["split_k"] if inner >= 64 else 1
    tiles = -(-rows // 64) * -(-cols // 64) * count
    fill = device_of(lowering.options).processors
    if tiles > fill // 2 or inner < 4096:
        return 1
    return max(1, min(32, 2 * fill // tiles, inner // 1024))


def product_by_sum(lowering: Lowering, a: Lazy, b: Lazy) -> Lazy:
    """A product as a reduction: for dtypes without tensor cores, and for vectors."""
    rank = len(a.shape)
    left = unsqueeze(lowering.share(a), rank)
    right = unsqueeze(lowering.share(b), rank - 2)
    wide = accumulated(a.dtype)
    terms = lowering.op("mul", wide, lowering.cast(left, wide), lowering.cast(right, wide), hint="term")
    return lowering.cast(lowering.reduce("sum", terms, [rank - 1], wide, name="product"), a.dtype)


@lowers("mm", "bmm", "matmul", "dot", "mv", "linalg_matmul")
def matmul(lowering: Lowering, a: Lazy, b: Lazy) -> Lazy:
    ra, rb = len(a.shape), len(b.shape)
    if rb == 1 or ra == 1:
        return vector_product(lowering, a, b)
    if rb == 2 and ra > 2:
        return flat_product(lowering, a, b)
    if ra == 2 and rb > 2:
        a = lowering.expand(a, (*b.shape[:-2], *a.shape))
    batch = lowering.broadcast_shape([a.shape[:-2], b.shape[:-2]])
    a = lowering.expand(a, (*batch, *a.shape[-2:]))
    b = lowering.expand(b, (*batch, *b.shape[-2:]))
    return product(lowering, a, b)


def flat_product(lowering: Lowering, a: Lazy, b: Lazy) -> Lazy:
    """Leading dimensions of `a` are rows of one product."""
    lead = a.shape[:-1]
    rows = lowering.sizes.product(lead)
    view = plain_view(lowering, a)
    flat = Lazy(ir.Read(a.dtype, a.term.name, view), view.shape)
    flat = reshape_to(lowering, flat, (rows, a.shape[-1]))
    return reshape_to(lowering, product(lowering, flat, b), (*lead, b.shape[-1]))


def vector_product(lowering: Lowering, a: Lazy, b: Lazy) -> Lazy:
    """Products with a vector are sums."""
    wide = accumulated(a.dtype)
    if len(b.shape) == 1:
        terms = lowering.op("mul", wide, lowering.cast(a, wide), lowering.cast(b, wide), hint="term")
        out = lowering.reduce("sum", terms, [len(a.shape) - 1], wide, name="product")
    else:
        a = unsqueeze(a, 1)
        terms = lowering.op("mul", wide, lowering.cast(a, wide), lowering.cast(b, wide), hint="term")
        out = lowering.reduce("sum", terms, [len(b.shape) - 2], wide, name="product")
    return lowering.cast(out, a.dtype)


@lowers("einsum")
def einsum(lowering: Lowering, equation: str, operands: list[Lazy], path: Any = None) -> Lazy:
    """Two operands at a time, from the left: a product over the letters that nothing further needs."""
    inputs, result = einsum_letters(equation, [len(x.shape) for x in operands])
    found: tuple[str, Lazy] | None = None
    for at, (letters, operand) in enumerate(zip(inputs, operands, strict=True)):
        needed = set(result).union(*inputs[at + 1 :])
        letters, operand = diagonals(lowering, letters, operand)
        if found is None:
            found = letters, operand
            if len(inputs) > 1:
                continue
        else:
            found = contracted(lowering, found, (letters, operand), needed)
        found = summed_out(lowering, *found, needed)
    assert found is not None
    letters, out = found
    return lowering.view(out, lambda v: v.permute([letters.index(c) for c in result]))


def einsum_letters(equation: str, ranks: list[int]) -> tuple[list[str], str]:
    """The letters of each operand and of the result, with an ellipsis spelt out in letters of its own."""
    left, arrow, result = equation.replace(" ", "").partition("->")
    inputs = left.split(",")
    lengths = [rank - len(t.replace("...", "")) for t, rank in zip(inputs, ranks, strict=True) if "..." in t]
    if len(set(lengths)) > 1:
        raise Unsupported(f"einsum {equation}: an ellipsis of another length in each operand")
    spare = "".join(chr(0x100 + i) for i in range(max(lengths, default=0)))
    if not arrow:
        counts = {c: left.count(c) for c in left if c.isalpha()}
        result = ("..." if lengths else "") + "".join(sorted(c for c, n in counts.items() if n == 1))
    return [t.replace("...", spare) for t in inputs], result.replace("...", spare)


def diagonals(lowering: Lowering, letters: str, x: Lazy) -> tuple[str, Lazy]:
    """Letters that occur twice name a diagonal."""
    for c in sorted(set(letters)):
        while letters.count(c) > 1:
            first, second = letters.index(c), letters.index(c, letters.index(c) + 1)
            size = x.shape[first]
            x = lowering.view(x, lambda v, a=first, b=second, n=size: v.diagonal(a, b, n))
            letters = "".join(t for i, t in enumerate(letters) if i not in (first, second)) + c
    return letters, x


def summed_out(lowering: Lowering, letters: str, x: Lazy, needed: set[str]) -> tuple[str, Lazy]:
    """Sums over letters that nothing needs."""
    dims = [i for i, c in enumerate(letters) if c not in needed]
    if dims:
        wide = accumulated(x.dtype) if x.dtype.is_floating_point else x.dtype
        x = lowering.cast(lowering.reduce("sum", lowering.share(x), dims, wide), x.dtype)
    return "".join(c for c in letters if c in needed), x


def contracted(
    lowering: Lowering, left: tuple[str, Lazy], right: tuple[str, Lazy], needed: set[str]
) -> tuple[str, Lazy]:
    """Two operands as one, without the letters that only they have."""
    (a, x), (b, y) = (summed_out(lowering, t, z, needed | set(o)) for (t, z), (o, _) in ((left, right), (right, left)))
    sizes: dict[str, Size] = {}
    for letters, operand in ((a, x), (b, y)):
        for c, n in zip(letters, operand.shape, strict=True):
            sizes[c] = n if c not in sizes or lowering.sizes.is_one(sizes[c]) else sizes[c]
    shared = [c for c in a if c in b and c in needed]
    summed = [c for c in a if c in b and c not in needed]
    rows, cols = [c for c in a if c not in b], [c for c in b if c not in a]
    order = [*shared, *rows, *cols]

    def permuted(letters: str, operand: Lazy, wanted: list[str]) -> Lazy:
        operand = lowering.view(operand, lambda v: v.permute([letters.index(c) for c in wanted]))
        return lowering.expand(operand, tuple(sizes[c] for c in wanted))

    if not summed:  # nothing is summed: an outer or element-wise product
        x, y = permuted(a, x, [*shared, *rows]), permuted(b, y, [*shared, *cols])
        for _ in cols:
            x = unsqueeze(x, len(x.shape))
        for _ in rows:
            y = unsqueeze(y, len(shared))
        return "".join(order), lowering.op("mul", x.dtype, x, y, hint="product")

    def arranged(operand: Lazy, last: tuple[list[str], list[str]]) -> Lazy:
        shape = (*(sizes[c] for c in shared), *(lowering.sizes.product(sizes[c] for c in part) for part in last))
        return reshape_to(lowering, operand, shape)

    left_side = arranged(permuted(a, lowering.share(x), [*shared, *rows, *summed]), (rows, summed))
    right_side = arranged(permuted(b, lowering.share(y), [*shared, *summed, *cols]), (summed, cols))
    out = product(lowering, left_side, right_side)
    return "".join(order), reshape_to(lowering, out, tuple(sizes[c] for c in order))


@lowers("linear")
def linear(lowering: Lowering, x: Lazy, weight: Lazy, bias: Any = None) -> Lazy:
    transposed = lowering.view(weight, lambda v: v.permute([1, 0]))
    if len(x.shape) == 1:
        out = vector_product(lowering, x, transposed)
    elif all(v == 1 for v in lowering.sizes.of(weight.shape[0])):
        row = lowering.view(weight, lambda v: v.squeeze(0)) if weight.shape[0] == 1 else weight
        if len(row.shape) == 1:
            out = unsqueeze(vector_product(lowering, x, row), len(x.shape) - 1)
        else:
            out = flat_product(lowering, x, transposed) if len(x.shape) > 2 else product(lowering, x, transposed)
    else:
        out = flat_product(lowering, x, transposed) if len(x.shape) > 2 else product(lowering, x, transposed)
    return out if bias is None else lowering.op("add", x.dtype, out, bias, hint="biased")


@lowers("addmm", "baddbmm", "addmv", "addbmm")
def addmm(lowering: Lowering, x: Lazy, a: Lazy, b: Lazy, beta: Any = 1, alpha: Any = 1) -> Lazy:
    dtype = out_dtype(lowering)
    out = matmul(lowering, a, b)
    if lowering.label == "addbmm":
        wide = accumulated(dtype)
        out = lowering.cast(lowering.reduce("sum", lowering.cast(out, wide), [0], wide), dtype)
    if alpha != 1:
        out = lowering.op("mul", dtype, out, lowering.const(alpha, dtype))
    if beta == 0:  # then torch does not look at x, which may hold anything
        return out
    if beta != 1:
        x = lowering.op("mul", dtype, x, lowering.const(beta, dtype))
    return lowering.op("add", dtype, out, x, hint="biased")


@lowers("bilinear")
def bilinear(lowering: Lowering, x: Lazy, y: Lazy, weight: Lazy, bias: Any = None) -> Lazy:
    if len(x.shape) != 2:
        raise Unsupported("bilinear of more than one dimension")
    o, i, j = weight.shape
    n = x.shape[0]
    flat = reshape_to(lowering, weight, (o * i, j))
    half = product(lowering, y, lowering.view(flat, lambda v: v.permute([1, 0])))
    half = reshape_to(lowering, half, (n, o, i))
    wide = accumulated(x.dtype)
    terms = lowering.op("mul", wide, lowering.cast(half, wide), lowering.cast(unsqueeze(x, 1), wide), hint="term")
    out = lowering.cast(lowering.reduce("sum", terms, [2], wide), x.dtype)
    return out if bias is None else lowering.op("add", x.dtype, out, bias, hint="biased")


# convolutions -----------------------------------------------------------------------------------------------------


@lowers("conv1d", "conv2d", "conv3d", "convolution", "_convolution")
def conv(
    lowering: Lowering,
    x: Lazy,
    weight: Lazy,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    *rest: Any,
) -> Lazy:
    if lowering.label in ("convolution", "_convolution"):
        transposed, out_padding, groups = rest[:3]
        if transposed:
            return conv_transpose(lowering, x, weight, bias, stride, padding, out_padding, groups, dilation)
    else:
        groups = rest[0] if rest else 1
    rank = len(weight.shape) - 2
    if len(x.shape) == rank + 1:
        return without_batch(lowering, conv, x, weight, bias, stride, padding, dilation, *rest)
    stride, dilation = listed(stride, rank), listed(dilation, rank)
    if padding == "valid":
        padding = 0
    if padding == "same":
        padding = []
        for i in range(rank):
            extra = {d * (k - 1) for k in lowering.sizes.of(weight.shape[2 + i]) for d in (dilation[i],)}
            if len(extra) > 1:
                raise Unsupported("padding='same' of kernels that differ between the cases")
            before, odd = divmod(extra.pop(), 2)
            padding.append(before)
            if odd:  # torch pads the end by one more
                x = lowering.share(x)
                x = lowering.view(x, lambda v, d=2 + i: v.pad(d, ir.ZERO, ir.ONE, 0))
    padding = listed(padding, rank)
    groups = lowering.size(groups)
    each = lowering.sizes.quotient(x.shape[1], groups)
    if lowering.sizes.is_one(each) and not lowering.sizes.is_one(x.shape[1]):
        out = depthwise(lowering, x, weight, rank, stride, padding, dilation)
    else:
        kernel = list(weight.shape[2:])
        s, p, d = ([lowering.size(v) for v in values] for values in (stride, padding, dilation))
        outs = [
            out_extent(lowering, 2 + i, x.shape[2 + i] + 2 * p[i] - d[i] * (kernel[i] - 1) - 1, s[i])
            for i in range(rank)
        ]
        shape = (x.shape[0], weight.shape[0], *outs)
        views = {"x": plain_view(lowering, x), "weight": plain_view(lowering, weight)}
        attrs = {
            "rank": rank,
            "stride": s,
            "padding": p,
            "dilation": d,
            "groups": groups,
            "kernel": kernel,
            "each": each,
        }
        out = template(lowering, "conv", views, attrs, shape, x.dtype, f"conv{rank}d")
    return biased(lowering, out, bias)


def without_batch(lowering: Lowering, rule: Any, x: Lazy, *args: Any) -> Lazy:
    """A rule for batches on one element of a batch."""
    metas = lowering.meta
    lowering.meta = [m.unsqueeze(0) for m in metas]
    out = rule(lowering, unsqueeze(x, 0), *args)
    lowering.meta = metas
    return lowering.view(out, lambda v: v.squeeze(0))


def biased(lowering: Lowering, out: Lazy, bias: Any) -> Lazy:
    if bias is None:
        return out
    return lowering.op("add", out.dtype, out, spread(lowering, bias, len(out.shape), 1), hint="biased")


def template(lowering: Lowering, kind: str, views: Any, attrs: Any, shape: Any, dtype: torch.dtype, name: str) -> Lazy:
    out = lowering.temp(shape, dtype, name)
    lowering.add(Template(lowering.label, [out], kind, views, attrs))
    return lowering.read(out)


def depthwise(lowering: Lowering, x: Lazy, weight: Lazy, rank: int, stride: Any, padding: Any, dilation: Any) -> Lazy:
    """One input channel a group: a sum over taps, as in pooling."""
    wide = accumulated(x.dtype)
    channels, outputs = x.shape[1], weight.shape[0]
    times = lowering.sizes.quotient(outputs, channels)
    if times != 1:
        x = lowering.view(lowering.realise(x), lambda v: v.repeat_inner(1, times))
    kernel = list(weight.shape[2:])
    taps, _, _outs = windows(lowering, x, rank, kernel, stride, padding, dilation, 0.0)
    weight = lowering.view(weight, lambda v: v.squeeze(1))
    for i in range(rank):
        weight = unsqueeze(weight, 1 + i)
    terms = lowering.op("mul", wide, lowering.cast(taps, wide), lowering.cast(weight, wide), hint="term")
    dims = list(range(2 + rank, 2 + 2 * rank))
    return lowering.cast(lowering.reduce("sum", terms, dims, wide, name="depthwise"), x.dtype)


@lowers("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def conv_transpose(
    lowering: Lowering,
    x: Lazy,
    weight: Lazy,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    out_padding: Any = 0,
    groups: Any = 1,
    dilation: Any = 1,
) -> Lazy:
    rank = len(weight.shape) - 2
    if len(x.shape) == rank + 1:
        return without_batch(lowering, conv_transpose, x, weight, bias, stride, padding, out_padding, groups, dilation)
    s, p, d, extra = (
        [lowering.size(v) for v in listed(values, rank)] for values in (stride, padding, dilation, out_padding)
    )
    groups = lowering.size(groups)
    kernel = list(weight.shape[2:])
    outs = []
    for i in range(rank):
        formula = (x.shape[2 + i] - 1) * s[i] - 2 * p[i] + d[i] * (kernel[i] - 1) + extra[i] + 1
        values = known(lowering, 2 + i)
        name = f"out_{axis_label(lowering, 2 + i)}"
        good = lowering.sizes.of(formula) == values
        outs.append(lowering.sizes.derive(name, formula) if good else lowering.sizes.find(values))
    shape = (x.shape[0], weight.shape[1] * groups, *outs)
    views = {"x": plain_view(lowering, x), "weight": plain_view(lowering, weight)}
    attrs = {
        "rank": rank,
        "stride": s,
        "padding": p,
        "dilation": d,
        "groups": groups,
        "kernel": kernel,
        "each": lowering.sizes.quotient(x.shape[1], groups),
    }
    return biased(
        lowering, template(lowering, "conv_transpose", views, attrs, shape, x.dtype, f"conv_transpose{rank}d"), bias
    )


# attention --------------------------------------------------------------------------------------------------------


@lowers("scaled_dot_product_attention")
def attention(
    lowering: Lowering,
    q: Lazy,
    k: Lazy,
    v: Lazy,
    mask: Any = None,
    dropout: Any = 0.0,
    causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
) -> Lazy:
    if dropout:
        raise Unsupported("attention with dropout")
    if enable_gqa:
        times = lowering.sizes.quotient(q.shape[-3], k.shape[-3])
        heads = len(k.shape) - 3
        k, v = (lowering.view(x, lambda w: w.repeat_inner(heads, times)) for x in (k, v))
    batch = lowering.broadcast_shape([q.shape[:-2], k.shape[:-2], v.shape[:-2]])
    q, k, v = (lowering.expand(x, (*batch, *x.shape[-2:])) for x in (q, k, v))
    head = max(*lowering.sizes.of(q.shape[-1]), *lowering.sizes.of(v.shape[-1]))
    if head > 256 or q.dtype == torch.float64 or not lowering.options.get("fused_attention", True):
        return plain_attention(lowering, q, k, v, mask, causal, scale)
    views = {"q": lowering.memory(q), "k": lowering.memory(k), "v": lowering.memory(v)}
    attrs = {"causal": causal, "scale": scale, "batch": batch, "mask": None}
    if mask is not None:
        mask = lowering.expand(mask, (*batch, q.shape[-2], k.shape[-2]))
        views["mask"] = lowering.memory(mask)
        attrs["mask"] = mask.dtype
    attrs |= {"queries": q.shape[-2], "keys": k.shape[-2], "head": q.shape[-1], "value_head": v.shape[-1]}
    return template(lowering, "attention", views, attrs, (*q.shape[:-1], v.shape[-1]), q.dtype, "attention")


def plain_attention(lowering: Lowering, q: Lazy, k: Lazy, v: Lazy, mask: Any, causal: bool, scale: Any) -> Lazy:
    """Scores in memory: product, softmax, product."""
    meta = lowering.meta
    rank, lowering.between = len(q.shape), True
    scores = matmul(lowering, q, lowering.view(k, lambda w: w.permute([*range(rank - 2), rank - 1, rank - 2])))
    wide = accumulated(q.dtype)
    factor = Lazy(ir.Const(wide, "", scale if scale is not None else ("rsqrt", q.shape[-1])), ())
    scores = lowering.op("mul", wide, lowering.cast(scores, wide), factor, hint="scores")
    low = lowering.const(-math.inf, wide)
    if causal:
        rows, cols = lowering.iota(scores.shape, rank - 2), lowering.iota(scores.shape, rank - 1)
        scores = lowering.op("where", wide, lowering.op("le", torch.bool, cols, rows), scores, low)
    if mask is not None:
        if mask.dtype == torch.bool:
            scores = lowering.op("where", wide, mask, scores, low)
        else:
            scores = lowering.op("add", wide, scores, lowering.cast(mask, wide))
    lowering.label, lowering.meta = "softmax", [torch.empty(0, dtype=q.dtype)]
    weights = softmax(lowering, scores, rank - 1)
    lowering.meta, lowering.label, lowering.between = meta, "attention", False
    return matmul(lowering, weights, v)


# scans ------------------------------------------------------------------------------------------------------------


@lowers("cumsum", "cumprod")
def scan(lowering: Lowering, x: Lazy, dim: int, dtype: Any = None) -> Lazy:
    label, x = lowering.label, lowering.cast(x, out_dtype(lowering))
    if not x.shape or lowering.sizes.of(x.shape[dim]) == (1,) * lowering.sizes.cases:
        return x
    out = lowering.temp(x.shape, x.dtype, label)
    lowering.add(ir.Scan(label, [out], label, x.term, x.shape, dim % len(x.shape)))
    return lowering.read(out)


__all__ = ["Calculator", "FloorDiv", "Size", "matmul", "product"]
