"""A state-space layer in chunks: decays as segment sums, contractions of four operands, as in Mamba 2."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 2
TIME = 12
HEADS = 2
WIDTH = 4

CASES = [
    {"BATCH": 1, "TIME": 8, "HEADS": 3, "WIDTH": 2},
]
REALISTIC = {"BATCH": 64, "TIME": 128, "HEADS": 8, "WIDTH": 64}


CHUNK, STATE = 4, 3


def segment_sums(x):
    length = x.size(-1)
    total = torch.cumsum(x, dim=-1)
    gaps = total[..., :, None] - total[..., None, :]
    keep = torch.tril(torch.ones(length, length, device=x.device, dtype=bool), diagonal=0)
    return gaps.masked_fill(~keep, -torch.inf)


class Model(nn.Module):
    def __init__(self, batch, time, heads):
        super().__init__()
        self.a = nn.Parameter(torch.randn(batch, time, heads) * 0.3 - 0.5)
        self.b = nn.Parameter(torch.randn(batch, time, heads, STATE))
        self.c = nn.Parameter(torch.randn(batch, time, heads, STATE))

    def forward(self, x, start=None):
        batch, time, heads, width = x.shape
        blocks = [t.reshape(batch, time // CHUNK, CHUNK, *t.shape[2:]) for t in (x, self.a, self.b, self.c)]
        x, a, b, c = blocks
        a = a.permute(0, 3, 1, 2)
        total = torch.cumsum(a, dim=-1)
        decay = torch.exp(segment_sums(a))
        inside = torch.einsum("bclhn,bcshn,bhcls,bcshp->bclhp", c, b, decay, x)
        left = torch.exp(total[:, :, :, -1:] - total)
        states = torch.einsum("bclhn,bhcl,bclhp->bchpn", b, left, x)
        if start is None:
            start = torch.zeros_like(states[:, :1])
        states = torch.cat([start, states], dim=1)
        between = torch.exp(segment_sums(F.pad(total[:, :, :, -1], (1, 0))))
        carried = torch.einsum("bhzc,bchpn->bzhpn", between, states)
        out = torch.einsum("bclhn,bchpn,bhcl->bclhp", c, carried[:, :-1], torch.exp(total))
        return (inside + out).reshape(batch, time, heads, width), carried[:, -1]


def get_inputs():
    return [torch.randn(BATCH, TIME, HEADS, WIDTH)]


def get_init_inputs():
    return [BATCH, TIME, HEADS]
