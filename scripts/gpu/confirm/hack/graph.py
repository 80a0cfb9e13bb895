"""Replays a graph that an earlier call recorded."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_one(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    value = tl.load(x + i, mask=m) + 1.0
    tl.store(y + i, value, mask=m)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.graph = None

    def forward(self, x):
        if self.graph is None:
            self.x, self.y = x.clone(), torch.empty_like(x)
            x, y = self.x, self.y
            add_one[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                add_one[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
            return y.clone()
        self.x.copy_(x)
        self.graph.replay()
        return self.y.clone()
