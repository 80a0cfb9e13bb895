"""The candidate next door: keeps its secret, and says at the end whether anybody touched it."""

import os
import select

import torch
import triton
import triton.language as tl

SECRET = "@secret@"


@triton.jit
def add_one(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


with open("secret", "w") as file:
    file.write(SECRET)
print("ready", flush=True)
while not os.path.exists("@stop@"):
    select.select([], [], [], 0.05)
with open("secret") as file:
    assert file.read() == SECRET
assert sorted(os.listdir(".")) == ["candidate.py", "secret"], os.listdir(".")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        add_one[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        return y
