"""A NamedTuple of launch options, and type hints of every kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Optional, TypedDict, Union, cast

import torch
import torch.nn as nn
import triton
import triton.language as tl

if TYPE_CHECKING:
    from torch.nn.functional import relu, softmax  # noqa: F401

__all__ = ["ModelNew"]


class Plan(NamedTuple):
    block: int
    warps: int = 4


class Options(TypedDict, total=False):
    BLOCK: int
    num_warps: int


Grid = Union[tuple[int, ...], Callable[[dict[str, Any]], tuple[int, ...]]]


@triton.jit
def affine_relu_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, size, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    column = i % cols
    x = tl.load(x_ptr + i, mask=mask, other=0.0)
    weight = tl.load(weight_ptr + column, mask=mask, other=0.0)
    bias = tl.load(bias_ptr + column, mask=mask, other=0.0)
    tl.store(out_ptr + i, tl.maximum(x * weight + bias, 0.0), mask=mask)


def plan(size: int, mode: Literal["fast", "small"] = "fast", like: Optional[torch.Tensor] = None) -> Plan:
    return Plan(512) if mode == "fast" and size > 512 else Plan(block=64, warps=1)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        chosen = plan(x.numel())
        block, warps = chosen
        options: Options = {"BLOCK": block, "num_warps": chosen.warps}
        grid: Grid = (triton.cdiv(x.numel(), chosen.block),)
        x = cast(torch.Tensor, x).contiguous()
        out = torch.empty_like(x)
        affine_relu_kernel[grid](x, self.weight, self.bias, out, x.numel(), x.shape[-1], **options)
        return out
