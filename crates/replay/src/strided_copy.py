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
