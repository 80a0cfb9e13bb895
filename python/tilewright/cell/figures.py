"""Kernels that compare results with what they should be, many tensors in one launch. Trusted code.

`fused` launches them, and `scan` says what the figures are: the same by torch, which also finds what is here only
counted. The text of this file is compiled as a candidate's is (`crates/verify/src/figures.rs`).
"""

import triton
import triton.language as tl


@triton.jit
def differ(table, out, BLOCK: tl.constexpr):
    """Sets `out[pair]` to 1 where the bytes of a pair differ.

    A row of `table` is two addresses, multiples of 8, and how many bytes. The grid is blocks of words by pairs.
    """
    pair = tl.program_id(1)
    first = tl.load(table + pair * 3).to(tl.pointer_type(tl.int64))
    second = tl.load(table + pair * 3 + 1).to(tl.pointer_type(tl.int64))
    nbytes = tl.load(table + pair * 3 + 2)
    words = nbytes // 8
    start = tl.program_id(0).to(tl.int64) * BLOCK
    if start < words:
        at = start + tl.arange(0, BLOCK)
        inside = at < words
        other = tl.load(first + at, mask=inside, other=0) ^ tl.load(second + at, mask=inside, other=0)
        if tl.max((other != 0).to(tl.int32), 0) > 0:
            tl.atomic_max(out + pair, 1)
    if start == 0:
        rest = words * 8 + tl.arange(0, 8)
        inside = rest < nbytes
        a = tl.load(first.to(tl.pointer_type(tl.int8)) + rest, mask=inside, other=0)
        b = tl.load(second.to(tl.pointer_type(tl.int8)) + rest, mask=inside, other=0)
        if tl.max((a != b).to(tl.int32), 0) > 0:
            tl.atomic_max(out + pair, 1)


@triton.jit
def figures(
    table,
    limits,
    kind,
    wide,
    out,
    row,
    parts,
    count,
    per,
    RULE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Figures of `per` groups of a tensor: 16 numbers, into `out[tensor, program]`.

    A row of `table` is the addresses of native and golden values, of each group's scale, of the float64 values (0
    where there are none) and of the found ones; `kind` and `wide` have the types of pointers to native and golden
    values. A row of `limits` is rtol, atol, atol_scaled, rms_tol, quantum, tiny, mean_rel, small_threshold,
    small_error. RULE is 0 where an element's limit is atol + rtol |g|, 1 for mere_mare, 2 for mere_mare_truncated, 3
    for scaled_rms. The grid is programs by tensors.
    """
    tensor = tl.program_id(1)
    entry = table + tensor * 5
    native = tl.load(entry).to(tl.pointer_type(kind.dtype.element_ty))
    golden = tl.load(entry + 1).to(tl.pointer_type(wide.dtype.element_ty))
    scales = tl.load(entry + 2).to(tl.pointer_type(tl.float64))
    found = tl.load(entry + 4).to(tl.pointer_type(kind.dtype.element_ty))
    limit = limits + tensor * 9
    rtol, atol, atol_scaled = tl.load(limit), tl.load(limit + 1), tl.load(limit + 2)
    rms_tol, quantum, tiny = tl.load(limit + 3), tl.load(limit + 4), tl.load(limit + 5)
    mean_rel, small_threshold, small_error = tl.load(limit + 6), tl.load(limit + 7), tl.load(limit + 8)

    odd = tl.zeros([BLOCK], tl.int64)
    outside = tl.zeros([BLOCK], tl.int64)
    matched = tl.zeros([BLOCK], tl.int64)
    relative = tl.zeros([BLOCK], tl.float64)
    golden_squares = tl.zeros([BLOCK], tl.float64)
    max_abs = tl.zeros([BLOCK], tl.float64)
    max_rel = tl.zeros([BLOCK], tl.float64)
    worst = tl.full([BLOCK], -1.0, tl.float64)
    place = tl.zeros([BLOCK], tl.int64)
    squares = tl.full([], 0.0, tl.float64)
    worst_group = tl.full([], -1.0, tl.float64)
    group_place = tl.full([], 0, tl.int64)

    begin = tl.program_id(0).to(tl.int64) * per
    for group in range(begin, tl.minimum(begin + per, count)):
        which, part = group // parts, group % parts
        first, last = which * row + part * row // parts, which * row + (part + 1) * row // parts
        scale = tl.load(scales + group) if RULE == 3 else quantum
        own = tl.zeros([BLOCK], tl.float64)
        for start in range(first, last, BLOCK):
            at = start + tl.arange(0, BLOCK)
            inside = at < last
            target = tl.load(golden + at, mask=inside, other=0.0).to(tl.float64)
            got = tl.load(found + at, mask=inside, other=0.0).to(tl.float64)
            odd += (inside & (got - got != 0.0)).to(tl.int64)
            difference, size = tl.abs(got - target), tl.abs(target)
            denominator = tl.maximum(size, rtol) if RULE == 2 else size + tiny
            if RULE == 3:
                allowed = atol_scaled * scale + quantum + rtol * size
            elif RULE > 0:
                allowed = 10.0 * rtol * denominator
            else:
                allowed = rtol * size + atol
            over = difference >= allowed if RULE == 1 or RULE == 2 else difference > allowed
            outside += (inside & over).to(tl.int64)
            # 0/0 is no error; what is allowed may be 0.
            score = tl.where(difference > 0.0, difference / allowed, 0.0)
            better = inside & (score > worst)
            worst, place = tl.where(better, score, worst), tl.where(better, at, place)
            share = tl.where(inside, difference / denominator, 0.0)
            relative += share
            near = tl.where(size < small_threshold, difference <= small_error, share <= mean_rel)
            matched += (inside & near).to(tl.int64)
            own += tl.where(inside, difference * difference, 0.0)
            golden_squares += tl.where(inside, size * size, 0.0)
            max_abs = tl.maximum(max_abs, tl.where(inside, difference, 0.0))
            max_rel = tl.maximum(max_rel, tl.where(inside, difference / tl.maximum(size, tiny), 0.0))
        total = tl.sum(own, 0)
        squares += total
        if RULE == 3:
            rms = tl.sqrt(total / (last - first).to(tl.float64))
            off = tl.where(rms > 0.0, rms / (rms_tol * scale + quantum), 0.0)
            further = off > worst_group
            worst_group, group_place = tl.where(further, off, worst_group), tl.where(further, group, group_place)

    most = tl.max(worst, 0)
    at = tl.min(tl.where(worst == most, place, 0x7FFFFFFFFFFFFFFF), 0)
    # Of a tensor that is odd, scores may be NaN.
    at = tl.minimum(at, (count // parts) * row - 1)
    float64 = tl.load(entry + 3)
    exact = tl.load(float64.to(tl.pointer_type(tl.float64)) + at, mask=float64 != 0, other=0.0)
    result = out + (tensor * tl.num_programs(0) + tl.program_id(0)).to(tl.int64) * 16
    tl.store(result, tl.sum(odd, 0).to(tl.float64))
    tl.store(result + 1, tl.sum(outside, 0).to(tl.float64))
    tl.store(result + 2, tl.sum(matched, 0).to(tl.float64))
    tl.store(result + 3, tl.sum(relative, 0))
    tl.store(result + 4, squares)
    tl.store(result + 5, tl.sum(golden_squares, 0))
    tl.store(result + 6, tl.max(max_abs, 0))
    tl.store(result + 7, tl.max(max_rel, 0))
    tl.store(result + 8, most)
    tl.store(result + 9, at.to(tl.float64))
    tl.store(result + 10, worst_group)
    tl.store(result + 11, group_place.to(tl.float64))
    tl.store(result + 12, tl.load(native + at).to(tl.float64))
    tl.store(result + 13, exact)
    tl.store(result + 14, tl.load(found + at).to(tl.float64))
    tl.store(result + 15, 0.0)
