import triton
import triton.language as tl


@triton.jit
def strided_copy(
    src,
    dst,
    n,
    d1,
    d2,
    d3,
    d4,
    d5,
    s0,
    s1,
    s2,
    s3,
    s4,
    s5,
    t0,
    t1,
    t2,
    t3,
    t4,
    t5,
    BLOCK: tl.constexpr,
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    # Row-major index to coordinates, innermost axis first.
    rest = i
    c5 = rest % d5
    rest = rest // d5
    c4 = rest % d4
    rest = rest // d4
    c3 = rest % d3
    rest = rest // d3
    c2 = rest % d2
    rest = rest // d2
    c1 = rest % d1
    c0 = rest // d1
    value = tl.load(src + (c0 * s0 + c1 * s1 + c2 * s2 + c3 * s3 + c4 * s4 + c5 * s5), mask=inside)
    tl.store(
        dst + (c0 * t0 + c1 * t1 + c2 * t2 + c3 * t3 + c4 * t4 + c5 * t5), value.to(dst.dtype.element_ty), mask=inside
    )


@triton.jit
def digest(src, n, key, out, BLOCK: tl.constexpr):
    """Adds to `out` a keyed digest of `n` 32-bit words: a sum over mixed words, in whatever order programs run."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    word = tl.load(src + i, mask=inside, other=0).to(tl.uint64) & 0xFFFFFFFF
    # The position in, then the finaliser of splitmix64 (Steele, Lea and Flood 2014).
    mixed = (word + key.to(tl.uint64)) ^ (i.to(tl.uint64) * 0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB
    mixed = mixed ^ (mixed >> 31)
    tl.atomic_add(out, tl.sum(tl.where(inside, mixed, 0)).to(tl.int64, bitcast=True))


@triton.jit
def nothing(out):
    """What events measure around it is the cost of measuring."""
    pass
