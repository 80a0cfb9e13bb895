"""Kernels over shapes, reductions, scans, sorting, histograms and gathers. See `kernels.py`."""

import triton
import triton.language as tl
from kernels import case
from kernels_types import each


@case("*fp32! *fp32!")
@triton.jit
def joins(x, out):
    o = tl.arange(0, 32)
    v = tl.load(x + o)
    j = tl.join(tl.join(v, v + 1), tl.join(v + 2, v + 3))
    a, b = tl.split(j)
    c, d = tl.split(a)
    e = tl.interleave(c, d)
    tl.store(out + tl.arange(0, 64), e + tl.reshape(b, [64]))
    tl.store(out + tl.arange(0, 128), tl.ravel(j))
    tl.store(out + tl.arange(0, 128), tl.interleave(e, e))


@case("*i32! *i32!")
@triton.jit
def permutations(x, out):
    o = tl.arange(0, 64)
    v = tl.reshape(tl.load(x + o), [2, 4, 8])
    a = tl.permute(v, [2, 1, 0]) + tl.trans(v, (2, 1, 0)) + v.permute(2, 1, 0)
    b = tl.trans(tl.reshape(v, [8, 8])) + tl.reshape(a, [8, 8])
    c = tl.permute(tl.reshape(v, [2, 2, 2, 8]), [3, 0, 2, 1])
    tl.store(out + o, tl.ravel(b) + tl.ravel(c) + tl.view(v, [64]))


@case("*fp32! *fp32! *fp32!")
@triton.jit
def broadcasts(x, y, out):
    r = tl.arange(0, 8)
    a = tl.load(x + r)
    b = tl.load(y + r)
    c, d = tl.broadcast(a[:, None], b[None, :])
    e = a[None, :, None] + b[:, None, None] * tl.zeros([1, 1, 4], tl.float32)
    tl.store(out + r[:, None] * 8 + r[None, :], c * d + tl.sum(e, 2) + tl.broadcast_to(a[None, :], [8, 8]))
    tl.store(out + r, tl.expand_dims(tl.expand_dims(a, 0), -1).reshape([8]) + tl.cat(a, b, can_reorder=True).sum(0))


@each(("i8", "i32", "i64", "u32", "fp16", "bf16", "fp32", "fp64"), "*T! *T! *i32!", "reduce")
@triton.jit
def reductions_of_type(x, out, index):
    r = tl.arange(0, 16)
    c = tl.arange(0, 32)
    v = tl.load(x + r[:, None] * 32 + c[None, :])
    tl.store(out + r, tl.sum(v, 1).to(v.dtype))
    tl.store(out + c, tl.max(v, 0).to(v.dtype))
    tl.store(out + r, tl.min(v, 1).to(v.dtype))
    tl.store(index + r, tl.argmax(v, 1))
    tl.store(index + c, tl.argmin(v, 0, tie_break_left=False))
    low, where = tl.min(v, 1, return_indices=True)
    tl.store(out + r, low.to(v.dtype))
    tl.store(index + r, where)


@case("*fp16! *fp32! *i8! *i64!")
@triton.jit
def sums_of_type(h, f, i, w):
    o = tl.arange(0, 64)
    v = tl.load(h + o)
    tl.store(f, tl.sum(v, dtype=tl.float32))
    tl.store(f + 1, tl.sum(v, 0))
    k = tl.load(i + o)
    tl.store(w, tl.sum(k, dtype=tl.int64))
    tl.store(w + 1, tl.sum(k > 0))
    tl.store(w + 2, tl.sum(tl.reshape(k, [8, 8]), axis=1, keep_dims=True).sum(0).max(0))


@triton.jit
def _product(a, b):
    return a * b


@triton.jit
def _welford(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    count = count_a + count_b
    delta = mean_b - mean_a
    ratio = tl.where(count == 0.0, 0.0, count_b / count)
    return mean_a + delta * ratio, m2_a + m2_b + delta * delta * count_a * ratio, count


@triton.jit
def _logaddexp(a, b):
    m = tl.maximum(a, b)
    return m + tl.log(tl.exp(a - m) + tl.exp(b - m))


@triton.jit
def _online_softmax(m_a, s_a, m_b, s_b):
    m = tl.maximum(m_a, m_b)
    return m, s_a * tl.exp(m_a - m) + s_b * tl.exp(m_b - m)


@case("*fp32! *fp32!")
@triton.jit
def custom_reductions(x, out):
    r = tl.arange(0, 16)
    v = tl.load(x + r[:, None] * 32 + tl.arange(0, 32)[None, :])
    mean, m2, count = tl.reduce((v, tl.zeros_like(v), tl.full([16, 32], 1.0, tl.float32)), 1, _welford)
    m, s = tl.reduce((v, tl.full([16, 32], 1.0, tl.float32)), 1, _online_softmax)
    p = tl.reduce(v, 1, _product) + tl.reduce(v, 1, _logaddexp, keep_dims=True).reshape([16])
    tl.store(out + r, mean + m2 / count + m + s + p)
    tl.store(out, tl.reduce(v, None, _product))


@triton.jit
def _segmented(flag_a, a, flag_b, b):
    return flag_a | flag_b, tl.where(flag_b, b, a + b)


@triton.jit
def _last(a, b):
    return b


@triton.jit
def _complex_product(re_a, im_a, re_b, im_b):
    return re_a * re_b - im_a * im_b, re_a * im_b + im_a * re_b


@case("*fp32! *fp32! *i32!")
@triton.jit
def custom_scans(x, out, flags):
    o = tl.arange(0, 64)
    v = tl.load(x + o)
    f = tl.load(flags + o) != 0
    _, s = tl.associative_scan((f, v), 0, _segmented)
    re, im = tl.associative_scan((v, s), 0, _complex_product, reverse=True)
    last = tl.associative_scan(v, 0, _last, reverse=True)
    tl.store(out + o, s + re + im + last)
    w = tl.reshape(v, [4, 16])
    a = tl.associative_scan(w, 0, _product) + tl.associative_scan(w, 1, _product, reverse=True)
    tl.store(out + o, tl.ravel(a))


@each(("i8", "i32", "i64", "fp16", "bf16", "fp64"), "*T! *T!", "scan")
@triton.jit
def scans_of_type(x, out):
    r = tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :]
    v = tl.load(x + r)
    a = tl.cumsum(v, 1) + tl.cumprod(v, 0) + tl.cumsum(v, 0, reverse=True)
    tl.store(out + r, a.to(v.dtype))


@case("*i32! *i32!", name="sort_i32")
@case("*fp16! *fp16!", name="sort_fp16")
@case("*u8! *u8!", name="sort_u8")
@triton.jit
def sorts(x, out):
    r = tl.arange(0, 4)[:, None] * 16 + tl.arange(0, 16)[None, :]
    v = tl.load(x + r)
    tl.store(out + r, tl.sort(v))
    tl.store(out + r, tl.sort(v, dim=1, descending=True))
    tl.store(out + r, tl.flip(v, 0) + tl.flip(v, dim=1))


@case("*fp32! *fp32!", K=2, name="topk_2")
@case("*i32! *i32!", K=8, name="topk_8_i32")
@triton.jit
def topks(x, out, K: tl.constexpr):
    r = tl.arange(0, 4)
    v = tl.load(x + r[:, None] * 16 + tl.arange(0, 16)[None, :])
    tl.store(out + r[:, None] * K + tl.arange(0, K)[None, :], tl.topk(v, K, dim=1))


@case("*fp32! *fp32!")
@triton.jit
def bitonic(x, out):
    o = tl.arange(0, 16)
    v = tl.load(x + o)
    tl.store(out + o, tl.bitonic_merge(tl.join(v, v).reshape([32]).sum(0) + v, descending=True))


@case("*i32! *i32! *u8! *i64!")
@triton.jit
def histograms(x, out, b, w):
    o = tl.arange(0, 128)
    v = tl.load(x + o)
    tl.store(out + tl.arange(0, 16), tl.histogram(v, 16))
    tl.store(out + tl.arange(0, 32), tl.histogram(v & 31, 32, mask=v > 3))
    tl.store(out + tl.arange(0, 256), tl.histogram(tl.load(b + o).to(tl.int32), 256))


@case("*fp16! *fp16! *i32! *i64!")
@triton.jit
def gathers(x, out, i, w):
    r = tl.arange(0, 8)
    c = tl.arange(0, 32)
    v = tl.load(x + r[:, None] * 32 + c[None, :])
    a = tl.gather(v, tl.load(i + r[:, None] * 32 + c[None, :]), 1)
    b = tl.gather(v, tl.load(i + r[:, None] * 32 + c[None, :]) & 7, 0)
    tl.store(out + r[:, None] * 32 + c[None, :], a + b)
    d = tl.gather(tl.load(x + c), tl.load(i + tl.arange(0, 16)), 0)
    e = tl.gather(tl.load(x + c), tl.load(w + tl.arange(0, 16)).to(tl.int32), 0)
    tl.store(out + tl.arange(0, 16), d + e)


@triton.jit
def _clip_and_count(x, low, high):
    if x < low:
        return low, 1
    if x > high:
        return high, 1
    return x, 0


@triton.jit
def _collatz(n):
    steps = 0
    while n > 1:
        n = tl.where(n % 2 == 0, n // 2, 3 * n + 1)
        steps += 1
    return steps


@triton.jit
def _pairs(a0, a1, b0, b1):
    return a0 + b1, a1 + b0, a0 * b0, a1 * b1


@case("*fp32! *i32! *i32!", binary=False)
@triton.jit
def mapped(x, i, out):
    o = tl.arange(0, 64)
    v, n = tl.map_elementwise(
        _clip_and_count, tl.load(x + o), tl.full([64], -1.0, tl.float32), tl.full([64], 1.0, tl.float32)
    )
    k = tl.load(i + o)
    c = tl.map_elementwise(_collatz, k & 31)
    s, p = tl.map_elementwise(_pairs, k, c, pack=2)
    tl.store(x + o, v)
    tl.store(out + o, n + c + s + p)


@case("*fp32! *fp32!")
@triton.jit
def statistics(x, out):
    o = tl.arange(0, 256)
    v = tl.load(x + o)
    mean = tl.sum(v) / 256
    centred = v - mean
    var = tl.sum(centred * centred) / 255
    tl.store(out, mean)
    tl.store(out + 1, var)
    tl.store(out + 2, tl.max(tl.abs(v)))
    tl.store(out + 3, tl.sum(tl.where(v > mean, 1, 0)).to(tl.float32))
    tl.store(out + 4, tl.xor_sum(v.to(tl.int32, bitcast=True)).to(tl.float32, bitcast=True))
    tl.store(out + 5, tl.argmax(v, 0, tie_break_left=True).to(tl.float32))


@case("*fp32! *fp32!", name="softmax_forms")
@triton.jit
def softmax_forms(x, out):
    r = tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :]
    v = tl.load(x + r)
    tl.store(out + r, tl.softmax(v, dim=1, keep_dims=True) + tl.softmax(v, dim=0, keep_dims=True, ieee_rounding=True))


@case("*i32! *i32!")
@triton.jit
def bit_reductions(x, out):
    r = tl.arange(0, 8)
    v = tl.load(x + r[:, None] * 16 + tl.arange(0, 16)[None, :])
    a = tl.xor_sum(v, 1) + tl.reduce_or(v, 1) + tl.xor_sum(v, axis=1, keep_dims=True).reshape([8])
    tl.store(out + r, a)
    tl.store(out, tl.reduce_or(v, None) + tl.xor_sum(v))
