import triton; import triton.language as tl; N = tl.constexpr(4)
import torch
@triton.jit
def kernel(
    x_ptr: "torch.Tensor",
    out_ptr: torch.Tensor,  # the output: here
    n: int,
    B: tl.constexpr = 8,
    *,
    flag: bool | None = None,
) -> None:
	# tabs
	i = tl.arange(0, B)
	text: tl.constexpr = "a b"  # one line, oneline
	tl.store(out_ptr + i, tl.load(x_ptr + i) + N)
@triton.jit
def short(x_ptr): tl.store(x_ptr, 0.0); tl.store(x_ptr, 1.0)
if True:
	@triton.jit
	def late(x_ptr):
		tl.store(x_ptr,
	  N)
@triton.jit
def twice(x_ptr): tl.store(x_ptr, 1.0)
@triton.jit
def twice(x_ptr): tl.store(x_ptr, 2.0)