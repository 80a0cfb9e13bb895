"""silu(gate) * up and its gradients, elementwise in both directions; rows of the inputs may be any distance apart."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

BLOCK = 512


@triton.jit
def swiglu_kernel(gate_ptr, up_ptr, out_ptr, gate_stride, up_stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = column < cols
    gate = tl.load(gate_ptr + row * gate_stride + column, mask=mask, other=0.0)
    up = tl.load(up_ptr + row * up_stride + column, mask=mask, other=0.0)
    tl.store(out_ptr + row * cols + column, gate * tl.sigmoid(gate) * up, mask=mask)


@triton.jit
def swiglu_backward_kernel(
    gate_ptr, up_ptr, grad_out_ptr, grad_gate_ptr, grad_up_ptr, gate_stride, up_stride, cols, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = column < cols
    gate = tl.load(gate_ptr + row * gate_stride + column, mask=mask, other=0.0)
    up = tl.load(up_ptr + row * up_stride + column, mask=mask, other=0.0)
    grad_out = tl.load(grad_out_ptr + row * cols + column, mask=mask, other=0.0)
    share = tl.sigmoid(gate)
    grad_gate = grad_out * up * share * (1.0 + gate * (1.0 - share))
    tl.store(grad_gate_ptr + row * cols + column, grad_gate, mask=mask)
    tl.store(grad_up_ptr + row * cols + column, grad_out * gate * share, mask=mask)


class SwiGlu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gate, up):
        rows, cols = gate.shape
        out = torch.empty((rows, cols), dtype=gate.dtype, device=gate.device)
        grid = (rows, triton.cdiv(cols, BLOCK))
        swiglu_kernel[grid](gate, up, out, gate.stride(0), up.stride(0), cols, BLOCK=BLOCK)
        ctx.save_for_backward(gate, up)
        return out

    @staticmethod
    def backward(ctx, grad_out):
        gate, up = ctx.saved_tensors
        grad_out = grad_out.contiguous()
        rows, cols = gate.shape
        grad_gate, grad_up = torch.empty_like(grad_out), torch.empty_like(grad_out)
        grid = (rows, triton.cdiv(cols, BLOCK))
        swiglu_backward_kernel[grid](
            gate, up, grad_out, grad_gate, grad_up, gate.stride(0), up.stride(0), cols, BLOCK=BLOCK
        )
        return grad_gate, grad_up


class ModelNew(nn.Module):
    def forward(self, gate, up):
        return SwiGlu.apply(gate, up)
