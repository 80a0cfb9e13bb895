"""Attention within shifted windows with a relative position bias and a mask, as in Swin."""

import torch
import torch.nn as nn

BATCH = 2
SIZE = 8
WIDTH = 8

CASES = [
    {"BATCH": 1, "SIZE": 12, "WIDTH": 4},
]
REALISTIC = {"BATCH": 10, "SIZE": 56, "WIDTH": 96}


WINDOW = 4


def windows_of(x, size):
    b, h, w, c = x.shape
    x = x.view(b, h // size, size, w // size, size, c)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, size, size, c)


def joined(windows, size, h, w):
    b = int(windows.shape[0] / (h * w / size / size))
    x = windows.view(b, h // size, w // size, size, size, -1)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(b, h, w, -1)


class Model(nn.Module):
    def __init__(self, width, size, heads=2):
        super().__init__()
        self.size, self.heads, self.shift = size, heads, WINDOW // 2
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.bias_table = nn.Parameter(torch.randn((2 * WINDOW - 1) ** 2, heads) * 0.02)
        coords = torch.stack(torch.meshgrid(torch.arange(WINDOW), torch.arange(WINDOW), indexing="ij")).flatten(1)
        gap = (coords[:, :, None] - coords[:, None, :]).permute(1, 2, 0) + WINDOW - 1
        self.register_buffer("places", gap[..., 0] * (2 * WINDOW - 1) + gap[..., 1])
        regions = torch.zeros(1, size, size, 1)
        count = 0
        for rows in (slice(0, -WINDOW), slice(-WINDOW, -self.shift), slice(-self.shift, None)):
            for cols in (slice(0, -WINDOW), slice(-WINDOW, -self.shift), slice(-self.shift, None)):
                regions[:, rows, cols] = count
                count += 1
        flat = windows_of(regions, WINDOW).view(-1, WINDOW * WINDOW)
        mask = flat[:, None, :] - flat[:, :, None]
        self.register_buffer("mask", (mask != 0).float() * -100.0)

    def attention(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        scores = (q * (c // self.heads) ** -0.5) @ k.transpose(-2, -1)
        bias = self.bias_table[self.places.view(-1)].view(n, n, -1).permute(2, 0, 1).contiguous()
        scores = scores + bias.unsqueeze(0)
        count = self.mask.shape[0]
        scores = scores.view(b // count, count, self.heads, n, n) + self.mask.unsqueeze(1).unsqueeze(0)
        weights = scores.view(-1, self.heads, n, n).softmax(dim=-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(b, n, c))

    def forward(self, x):
        b, length, c = x.shape
        h = self.norm1(x).view(b, self.size, self.size, c)
        h = torch.roll(h, shifts=(-self.shift, -self.shift), dims=(1, 2))
        h = self.attention(windows_of(h, WINDOW).view(-1, WINDOW * WINDOW, c)).view(-1, WINDOW, WINDOW, c)
        h = torch.roll(joined(h, WINDOW, self.size, self.size), shifts=(self.shift, self.shift), dims=(1, 2))
        x = x + h.view(b, length, c)
        return x + self.mlp(self.norm2(x))


def get_inputs():
    return [torch.randn(BATCH, SIZE * SIZE, WIDTH)]


def get_init_inputs():
    return [WIDTH, SIZE]
