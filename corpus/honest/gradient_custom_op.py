"""custom_op with register_autograd: both directions are operators of the file's own."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mask = column < cols
    x = tl.load(x_ptr + row * cols + column, mask=mask, other=-float("inf"))
    power = tl.exp(x - tl.max(x))
    tl.store(out_ptr + row * cols + column, power / tl.sum(power), mask=mask)


@triton.jit
def softmax_backward_kernel(out_ptr, grad_out_ptr, grad_x_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mask = column < cols
    out = tl.load(out_ptr + row * cols + column, mask=mask, other=0.0)
    grad_out = tl.load(grad_out_ptr + row * cols + column, mask=mask, other=0.0)
    # Less that of the largest element: where it takes all, the difference below would be one of equal numbers.
    grad_out -= tl.max(tl.where(out == tl.max(out), grad_out, -float("inf")))
    grad_x = out * (grad_out - tl.sum(out * grad_out))
    tl.store(grad_x_ptr + row * cols + column, grad_x, mask=mask)


@torch.library.custom_op("tilewright_corpus::softmax_forward", mutates_args=())
def softmax_forward(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    rows, cols = x.shape
    out = torch.empty_like(x)
    softmax_kernel[(rows,)](x, out, cols, BLOCK=triton.next_power_of_2(cols))
    return out


@softmax_forward.register_fake
def _(x):
    return torch.empty_like(x)


@torch.library.custom_op("tilewright_corpus::softmax_backward", mutates_args=())
def softmax_backward(out: torch.Tensor, grad_out: torch.Tensor) -> torch.Tensor:
    grad_out = grad_out.contiguous()
    rows, cols = out.shape
    grad_x = torch.empty_like(out)
    softmax_backward_kernel[(rows,)](out, grad_out, grad_x, cols, BLOCK=triton.next_power_of_2(cols))
    return grad_x


@softmax_backward.register_fake
def _(out, grad_out):
    return torch.empty_like(out)


def setup_context(ctx, inputs, output):
    ctx.save_for_backward(output)


def backward(ctx, grad_out):
    return softmax_backward(ctx.saved_tensors[0], grad_out)


softmax_forward.register_autograd(backward, setup_context=setup_context)


class ModelNew(nn.Module):
    def forward(self, x):
        return softmax_forward(x)
