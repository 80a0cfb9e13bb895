"""im2col by torch's unfold, the product by the kernel: the gathering is torch's."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, sam, sak, sbk, sbn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * sam + k[None, :] * sak, mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * sbk + n[None, :] * sbn, mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(c_ptr.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


def matmul(a, b):
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(M, 64), triton.cdiv(N, 64))
    matmul_kernel[grid](a, b, c, M, N, K, *a.stride(), *b.stride(), BM=64, BN=64, BK=32)
    return c


@triton.jit
def bias_relu_kernel(x_ptr, bias_ptr, n, cols, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n) + tl.load(bias_ptr + offs // cols, mask=offs < n)
    tl.store(x_ptr + offs, tl.maximum(x, 0.0), mask=offs < n)


class ModelNew(nn.Module):
    def __init__(self, channels_in, channels_out, kernel, stride, padding):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, kernel, stride=stride, padding=padding)
        self.stride, self.padding, self.kernel = stride, padding, kernel

    def forward(self, x):
        columns = nn.functional.unfold(x, self.kernel, padding=self.padding, stride=self.stride)
        columns = columns.permute(1, 0, 2).reshape(columns.shape[1], -1)
        y = matmul(self.conv.weight.view(self.conv.weight.shape[0], -1), columns)
        bias_relu_kernel[(triton.cdiv(y.numel(), 1024),)](y, self.conv.bias, y.numel(), y.shape[1], BLOCK=1024)
        hout = (x.shape[2] + 2 * self.padding - self.kernel[0]) // self.stride + 1
        return y.view(y.shape[0], x.shape[0], hout, -1).permute(1, 0, 2, 3).contiguous()
