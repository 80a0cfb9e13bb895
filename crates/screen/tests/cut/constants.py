import math
from math import pi as PI
import torch
import triton
import triton.language as tl

# Literals, arithmetic of them, and names for them.
EPS = tl.constexpr(1e-5)
LOG2E = tl.constexpr(1.0 / math.log(2))
LN2: tl.constexpr = tl.constexpr(math.log(2.0))
TWO_PI = tl.constexpr(2 * PI)
_HALF = 0.5
SCALE = tl.constexpr(-_HALF * 2**3)
NEG_INF = tl.constexpr(float("-inf"))
WIDE, NARROW = tl.constexpr(64), tl.constexpr(16)
A = B = tl.constexpr(3)
MODE = tl.constexpr("fast" if _HALF < 1 else "slow")
PAIR = tl.constexpr((
    1,
    2,
))
COUNT: int = len((1, 2, 3))
DTYPE = tl.float32
ACC = DTYPE
exp = tl.exp
UNUSED = torch.zeros(3)
BLOCKS = tl.constexpr(triton.next_power_of_2(100))
DEFAULT = 32


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr = DEFAULT, W: tl.constexpr = COUNT):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=NEG_INF).to(ACC)
    y = exp(x * LOG2E + EPS + LN2 + TWO_PI + SCALE) + WIDE + NARROW + A + B
    if MODE == "fast":
        y += PAIR[0] + BLOCKS
    tl.store(out_ptr + i, y, mask=i < n)


if __name__ == "__main__":
    EPS = 3
    import time
    print(time.time())
