"""Copy, fill, iota and literal steps carried out on real bytes give what torch gives for the same code."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
import torch
from trace_helper import signature_of, traced

# Bodies of forward(x, y): x is float32 of shape (4, 6), y int64 of shape (5,), a strided view.
BODIES = [
    "return x.t().contiguous(), x[1:, ::2].clone(), y.clone()",
    "return x.to(torch.float16), x.to(torch.bfloat16).to(torch.int32), y.float(), y.bool(), x.double()",
    "return x.expand(3, 4, 6).contiguous(), x.unsqueeze(1).expand(4, 2, 6).reshape(8, 6)",
    "return torch.cat([x, x[:2]], 0), torch.cat([x[:, :1], x], -1), torch.cat([y, y]), torch.hstack([x, x])",
    "return torch.stack([x, x], 1), torch.stack([y, y], -1), torch.vstack([x, x])",
    "return x.repeat(2, 3), y.repeat(2), x.repeat(2, 1, 1), y.repeat(2, 2), x.tile(2)",
    "return F.pad(x, (1, 2)), F.pad(x, (1, 0, 0, 2), value=7.5), F.pad(x, "
    "(-1, 1)), F.pad(x, (-1, -2, 1, -1)), F.pad(y, (2, 2))",
    "return torch.arange(5), torch.arange(2, 9, 3), torch.arange(0.0, "
    "1.0, 0.25), torch.arange(5, 0, -2, dtype=torch.int32)",
    "return torch.zeros(2, 3), torch.ones_like(x), torch.full((2,), "
    "-1.5), x.new_full((2, 2), 3), torch.eye(3), torch.eye(2, 4)",
    "a = torch.zeros(6); a[1:3] = 5; a[::2].fill_(2); a[4:].copy_(x[0, :2]); return a",
    "a = torch.empty(4, 6, dtype=torch.float16); a.copy_(x); a.t()[0].zero_(); return a, a.view(torch.int16).clone()",
    "a = torch.tensor([[1, 2], [3, 4]]); b = torch.tensor([1.5, "
    "float('inf')]); return a.t().contiguous(), b.clone(), a",
    "a = x.clone(); b = a.view(-1); b[3:9] = b[0:6].clone(); a[0] = a[1]; return a, b",
    "a = torch.empty(3, 4); a[:] = x[0, :4]; a[:, 1] = -1; return a, "
    "a.diagonal().clone(), a.unfold(0, 2, 1).contiguous()",
    "l = [torch.empty(2) for _ in range(2)]; torch._foreach_zero_(l); torch._foreach_copy_(l[:1], "
    "[x[0, :2]]); return l",
    "a = torch.zeros((), dtype=torch.int64); a.fill_(y.shape[0]); b = torch.empty(3); b.fill_(torch.tensor(2.5)); "
    "return a, b",
    "return x.permute(1, 0).contiguous().view(torch.uint8).clone(), x.half().view(torch.int16).to(torch.float32)",
    "return torch.broadcast_to(y, (2, 5)).contiguous(), x.narrow(1, 2, "
    "3).clone(), x.unflatten(1, (2, 3)).transpose(0, 2).clone()",
    "return x.as_strided((2, 2), (3, 1), 4).clone(), torch.empty_strided((2, 3), (1, 2)).copy_(x[:2, :3])",
    "return torch.repeat_interleave(x, 2, 0), torch.movedim(x, 0, 1).contiguous(), "
    "torch.atleast_2d(y).clone(), y.new_zeros(2)",
    "return x.to(memory_format=torch.contiguous_format), x.view(1, "
    "4, 3, 2).to(memory_format=torch.channels_last).clone()",
]

MODULE = """
import torch, torch.nn as nn, torch.nn.functional as F

class ModelNew(nn.Module):
    def forward(self, x, y):
        with torch.device(DEVICE):
"""


def run_plan(plan: dict[str, Any], inputs: list[torch.Tensor]) -> Any:
    """Carries out a plan without launches; `inputs` are the bytes of the signature's buffers."""
    buffers = []
    for buffer in plan["buffers"]:
        if buffer["source"]["kind"] == "input":
            buffers.append(inputs[buffer["source"]["index"]].clone())
        else:
            buffers.append(torch.full((buffer["nbytes"],), 0xAB, dtype=torch.uint8))

    def tensor(ref: dict[str, Any]) -> torch.Tensor:
        dtype = getattr(torch, ref["dtype"])
        raw = buffers[ref["buffer"]]
        raw = raw[: raw.numel() // dtype.itemsize * dtype.itemsize]
        return raw.view(dtype).as_strided(ref["shape"], ref["strides"], ref["offset"] // dtype.itemsize)

    def scalar(value: Any) -> Any:
        return float(value) if isinstance(value, str) else value

    for step in plan["steps"]:
        dst = tensor(step["dst"])
        if step["op"] == "copy":
            dst.copy_(tensor(step["src"]))
        elif step["op"] == "fill":
            dst.fill_(scalar(step["value"]))
        elif step["op"] == "iota":
            dst.copy_(torch.tensor([step["start"] + i * step["step"] for i in range(dst.numel())]))
        else:
            assert step["op"] == "literal"
            dst.copy_(torch.tensor([scalar(v) for v in step["values"]]).reshape(dst.shape))

    def result(value: dict[str, Any]) -> Any:
        return tensor(value) if value["kind"] == "tensor" else [result(item) for item in value["items"]]

    return result(plan["output"])


def leaves(value: Any) -> list[torch.Tensor]:
    return [value] if isinstance(value, torch.Tensor) else [leaf for item in value for leaf in leaves(item)]


@pytest.mark.parametrize("body", BODIES)
def test_steps_do_what_torch_does(body: str):
    source = MODULE + textwrap.indent(body.replace("; ", "\n"), " " * 12) + "\n"
    torch.manual_seed(0)
    x, base = torch.randn(4, 6) * 10, torch.randint(-9, 9, (12,))
    y = base[1:11:2]
    response = traced(source.replace("DEVICE", "'cuda'"), signature_of([x, y]))
    assert "plans" in response, response
    plan = response["plans"][0]
    assert plan["findings"] == []
    got = leaves(run_plan(plan, [t.reshape(-1).view(torch.uint8) for t in (x, base)]))

    namespace: dict[str, Any] = {}
    exec(source.replace("DEVICE", "'cpu'"), namespace)
    want = leaves(namespace["ModelNew"]()(x, y))
    assert len(got) == len(want)
    for mine, real in zip(got, want, strict=True):
        assert (mine.dtype, mine.shape, mine.stride()) == (real.dtype, real.shape, real.stride())
        assert torch.equal(mine, real)
