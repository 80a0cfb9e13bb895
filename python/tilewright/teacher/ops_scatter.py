"""Rules of scattered additions and of counts: atomics on a zeroed result."""

from __future__ import annotations

from typing import Any

from tilewright.teacher import ir
from tilewright.teacher.ir import Lazy, Template
from tilewright.teacher.lower import Lowering, lowers, unsqueeze
from tilewright.teacher.ops_view import plain_view
from tilewright.teacher.sizes import Unsupported


@lowers("index_add", "scatter_add", "scatter_reduce")
def index_add(
    lowering: Lowering,
    x: Lazy,
    dim: int,
    index: Lazy,
    source: Lazy,
    reduce: str = "sum",
    include_self: bool = True,
    alpha: Any = 1,
) -> Lazy:
    """`x` with rows (or elements) of the source added where the index says."""
    if reduce != "sum" or not include_self:
        raise Unsupported("scatter_reduce other than sums")
    if alpha != 1:
        raise Unsupported("index_add with a factor")
    dim = dim % len(x.shape)
    if lowering.label == "index_add":
        for _ in range(len(source.shape) - dim - 1):
            index = unsqueeze(index, len(index.shape))
        index = lowering.expand(index, source.shape)
    for axis, extent in enumerate(index.shape):
        if lowering.sizes.of(extent) != lowering.sizes.of(source.shape[axis]):
            source = lowering.view(lowering.share(source), lambda v, d=axis, n=extent: v.slice(d, ir.ZERO, n))
    views = {"source": plain_view(lowering, source), "index": lowering.memory(index)}
    base = lowering.realise_again(x)
    out = lowering.temp(x.shape, x.dtype, lowering.label)
    views["base"] = base.term.view
    attrs = {"dim": dim, "shape": source.shape}
    lowering.add(Template(lowering.label, [out], "scatter_add", views, attrs))
    return lowering.read(out)
