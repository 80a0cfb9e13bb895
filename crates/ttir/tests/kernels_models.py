"""Kernels as models use them: norms, activations, losses, optimisers, embeddings. See `kernels.py`."""

import triton
import triton.language as tl
from kernels import case
from kernels_types import each
from triton.language.extra import libdevice


@each(("fp16", "bf16", "fp32"), "*T! *T! *T! i32! fp32", "rms_norm")
@triton.jit
def rms_norm(x, w, out, cols, eps):
    row = tl.program_id(0).to(tl.int64)
    o = tl.arange(0, 256)
    m = o < cols
    v = tl.load(x + row * cols + o, mask=m, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(v * v, 0) / cols + eps)
    tl.store(out + row * cols + o, (v * scale * tl.load(w + o, mask=m)).to(out.dtype.element_ty), mask=m)


@case("*fp32! *fp32! *fp32! *fp32! *fp32! *fp32! i32 fp32")
@triton.jit
def layer_norm_backward(dy, x, w, dx, dw, db, cols, eps):
    row = tl.program_id(0)
    o = tl.arange(0, 128)
    m = o < cols
    v = tl.load(x + row * cols + o, mask=m, other=0.0)
    g = tl.load(dy + row * cols + o, mask=m, other=0.0)
    mean = tl.sum(v, 0) / cols
    centred = tl.where(m, v - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(centred * centred, 0) / cols + eps)
    hat = centred * rstd
    wg = g * tl.load(w + o, mask=m, other=0.0)
    c1 = tl.sum(hat * wg, 0) / cols
    c2 = tl.sum(wg, 0) / cols
    tl.store(dx + row * cols + o, (wg - (hat * c1 + c2)) * rstd, mask=m)
    tl.atomic_add(dw + o, g * hat, mask=m)
    tl.atomic_add(db + o, g, mask=m)


@case("*fp32! *fp32! *fp32! *fp32! i32 i32 fp32")
@triton.jit
def group_norm(x, w, b, out, channels, size, eps):
    group = tl.program_id(0)
    o = tl.arange(0, 64)
    total = tl.zeros([64], tl.float32)
    squares = tl.zeros([64], tl.float32)
    n = channels * size
    for start in range(0, n, 64):
        v = tl.load(x + group * n + start + o, mask=start + o < n, other=0.0)
        total += v
        squares += v * v
    mean = tl.sum(total, 0) / n
    rstd = tl.rsqrt(tl.sum(squares, 0) / n - mean * mean + eps)
    for start in range(0, n, 64):
        i = start + o
        v = tl.load(x + group * n + i, mask=i < n)
        c = i // size
        y = (v - mean) * rstd * tl.load(w + c, mask=i < n) + tl.load(b + c, mask=i < n)
        tl.store(out + group * n + i, y, mask=i < n)


@case("*bf16! *bf16! *bf16! i32")
@triton.jit
def swiglu(x, y, out, n):
    o = tl.program_id(0) * 128 + tl.arange(0, 128)
    m = o < n
    a = tl.load(x + o, mask=m, other=0).to(tl.float32)
    tl.store(out + o, (a * tl.sigmoid(a)).to(tl.bfloat16) * tl.load(y + o, mask=m, other=0), mask=m)


@case("*fp32! *fp32! i32", KIND="relu", name="activation_relu")
@case("*fp32! *fp32! i32", KIND="gelu", name="activation_gelu")
@case("*fp32! *fp32! i32", KIND="tanh", name="activation_tanh")
@case("*fp32! *fp32! i32", KIND="softplus", name="activation_softplus")
@case("*fp32! *fp32! i32", KIND="mish", name="activation_mish")
@case("*fp32! *fp32! i32", KIND="elu", name="activation_elu")
@case("*fp32! *fp32! i32", KIND="hardswish", name="activation_hardswish")
@triton.jit
def activations(x, out, n, KIND: tl.constexpr):
    o = tl.program_id(0) * 128 + tl.arange(0, 128)
    v = tl.load(x + o, mask=o < n)
    if KIND == "relu":
        r = tl.maximum(v, 0.0)
    elif KIND == "gelu":
        r = 0.5 * v * (1 + libdevice.tanh(0.7978845608 * (v + 0.044715 * v * v * v)))
    elif KIND == "tanh":
        r = 2 * tl.sigmoid(2 * v) - 1
    elif KIND == "softplus":
        r = tl.where(v > 20, v, tl.log(1 + tl.exp(v)))
    elif KIND == "mish":
        r = v * libdevice.tanh(libdevice.log1p(tl.exp(v)))
    elif KIND == "elu":
        r = tl.where(v > 0, v, libdevice.expm1(v))
    else:
        r = v * tl.clamp(v + 3, 0.0, 6.0) / 6
    tl.store(out + o, r, mask=o < n)


@case("*fp16! *fp16! *fp16! i32 i32")
@triton.jit
def rotary(x, cos, sin, heads, half):
    position = tl.program_id(0)
    h = tl.arange(0, 8)
    d = tl.arange(0, 32)
    c = tl.load(cos + position * half + d, mask=d < half).to(tl.float32)
    s = tl.load(sin + position * half + d, mask=d < half).to(tl.float32)
    p = x + (position * heads + h)[:, None] * half * 2 + d[None, :]
    m = (h[:, None] < heads) & (d[None, :] < half)
    a = tl.load(p, mask=m).to(tl.float32)
    b = tl.load(p + half, mask=m).to(tl.float32)
    tl.store(p, (a * c - b * s).to(tl.float16), mask=m)
    tl.store(p + half, (b * c + a * s).to(tl.float16), mask=m)


@case("*fp32! *i64! *fp32! *fp32! i32 i32 fp32 i64")
@triton.jit
def cross_entropy(logits, labels, loss, gradient, cols, rows, smoothing, ignore):
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels + row)
    if label == ignore:
        tl.store(loss + row, 0.0)
        return
    m = float("-inf")
    d = 0.0
    for start in range(0, cols, 64):
        o = start + tl.arange(0, 64)
        v = tl.load(logits + row * cols + o, mask=o < cols, other=float("-inf"))
        new = tl.maximum(m, tl.max(v))
        d = d * tl.exp(m - new) + tl.sum(tl.exp(v - new))
        m = new
    lse = m + tl.log(d)
    for start in range(0, cols, 64):
        o = start + tl.arange(0, 64)
        v = tl.load(logits + row * cols + o, mask=o < cols)
        g = tl.exp(v - m) / d - smoothing / cols
        tl.store(gradient + row * cols + o, tl.where(o == label, g - (1 - smoothing), g) / rows, mask=o < cols)
    tl.store(loss + row, lse - tl.load(logits + row * cols + label))


@case("*fp32! *fp32! *fp32! *fp32! fp32 fp32 fp32 fp32 fp32 i32 i32")
@triton.jit
def adamw(p, g, m, v, lr, beta1, beta2, eps, decay, step, n):
    o = tl.program_id(0) * 128 + tl.arange(0, 128)
    mask = o < n
    gradient = tl.load(g + o, mask=mask)
    first = beta1 * tl.load(m + o, mask=mask) + (1 - beta1) * gradient
    second = beta2 * tl.load(v + o, mask=mask) + (1 - beta2) * gradient * gradient
    corrected = first / (1 - libdevice.pow(beta1, step.to(tl.float32)))
    scale = tl.sqrt(second / (1 - libdevice.pow(beta2, step.to(tl.float32)))) + eps
    w = tl.load(p + o, mask=mask)
    tl.store(p + o, w - lr * (corrected / scale + decay * w), mask=mask)
    tl.store(m + o, first, mask=mask)
    tl.store(v + o, second, mask=mask)


@case("*fp32! *fp32! i32 i32 i32 i32", MAX=True, name="pool_max")
@case("*fp32! *fp32! i32 i32 i32 i32", MAX=False, name="pool_average")
@triton.jit
def pooling(x, out, H, W, stride, K, MAX: tl.constexpr):
    o = tl.program_id(0) * 64 + tl.arange(0, 64)
    rows, cols = (H - K) // stride + 1, (W - K) // stride + 1
    y, z = o // cols, o % cols
    acc = tl.full([64], float("-inf") if MAX else 0.0, tl.float32)
    for dy in range(K):
        for dx in range(K):
            v = tl.load(x + (y * stride + dy) * W + z * stride + dx, mask=y < rows, other=0.0)
            acc = tl.maximum(acc, v) if MAX else acc + v
    if not MAX:
        acc = acc / (K * K)
    tl.store(out + o, acc, mask=y < rows)


@case("*i32! *fp32! *fp32! i32 i32")
@triton.jit
def segment_sum(ids, values, out, n, cols):
    o = tl.program_id(0) * 32 + tl.arange(0, 32)
    c = tl.arange(0, 16)
    segment = tl.load(ids + o, mask=o < n, other=0)
    v = tl.load(values + o[:, None] * cols + c[None, :], mask=(o < n)[:, None] & (c < cols)[None, :], other=0.0)
    tl.atomic_add(out + segment[:, None] * cols + c[None, :], v, mask=(o < n)[:, None] & (c < cols)[None, :])


@case("*fp16! *i8! *fp32! i32")
@triton.jit
def quantize_rows(x, q, scales, cols):
    row = tl.program_id(0)
    o = tl.arange(0, 128)
    v = tl.load(x + row * cols + o, mask=o < cols, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(v), 0) / 127.0, 1e-8)
    tl.store(q + row * cols + o, tl.clamp(libdevice.rint(v / scale), -127.0, 127.0).to(tl.int8), mask=o < cols)
    tl.store(scales + row, scale)


@case("*bf16! *fp8e4nv! *fp32! i32")
@triton.jit
def quantize_blocks_fp8(x, q, scales, cols):
    row = tl.program_id(0)
    o = tl.program_id(1) * 128 + tl.arange(0, 128)
    v = tl.load(x + row * cols + o, mask=o < cols, other=0.0).to(tl.float32)
    scale = tl.max(tl.abs(v)) / 448.0
    tl.store(q + row * cols + o, (v / scale).to(tl.float8e4nv), mask=o < cols)
    tl.store(scales + row * tl.num_programs(1) + tl.program_id(1), scale)


@case("*i32! *fp16! *fp16! *fp16! i32! i32!")
@triton.jit
def dequantize_int4(packed, scales, zeros, out, rows, cols):
    r = tl.program_id(0) * 8 + tl.arange(0, 8)
    c = tl.arange(0, 64)
    word = tl.load(packed + r[:, None] * (cols // 8) + (c // 8)[None, :])
    v = (word >> ((c % 8) * 4)[None, :]) & 0xF
    s = tl.load(scales + r)[:, None]
    z = tl.load(zeros + r)[:, None]
    tl.store(out + r[:, None] * cols + c[None, :], (v.to(tl.float16) - z) * s, mask=(r < rows)[:, None])


@case("*fp32! *fp32! *fp32! *fp32! i32 i32")
@triton.jit
def linear_recurrence(x, gate, state, out, steps, cols):
    o = tl.program_id(0) * 32 + tl.arange(0, 32)
    h = tl.load(state + o, mask=o < cols, other=0.0)
    for t in range(steps):
        g = tl.sigmoid(tl.load(gate + t * cols + o, mask=o < cols, other=0.0))
        h = g * h + (1 - g) * tl.load(x + t * cols + o, mask=o < cols, other=0.0)
        tl.store(out + t * cols + o, h, mask=o < cols)
    tl.store(state + o, h, mask=o < cols)


@case("*fp32! *i32! *fp32! i32")
@triton.jit
def sample_top1(logits, out, noise, cols):
    row = tl.program_id(0)
    o = tl.arange(0, 64)
    v = tl.load(logits + row * cols + o, mask=o < cols, other=float("-inf"))
    u = tl.load(noise + row * cols + o, mask=o < cols, other=0.5)
    tl.store(out + row, tl.argmax(v - tl.log(-tl.log(u)), 0))


@case("*fp32! *fp32! i32 i32")
@triton.jit
def transpose_tiles(x, out, rows, cols):
    r = tl.program_id(0) * 16 + tl.arange(0, 16)
    c = tl.program_id(1) * 16 + tl.arange(0, 16)
    v = tl.load(x + r[:, None] * cols + c[None, :], mask=(r[:, None] < rows) & (c[None, :] < cols))
    tl.store(out + c[:, None] * rows + r[None, :], tl.trans(v), mask=(c[:, None] < cols) & (r[None, :] < rows))


@case("*fp32! *fp32! *fp32! i32")
@triton.jit
def cosine_similarity(x, y, out, cols):
    row = tl.program_id(0)
    o = tl.arange(0, 128)
    a = tl.load(x + row * cols + o, mask=o < cols, other=0.0)
    b = tl.load(y + row * cols + o, mask=o < cols, other=0.0)
    norms = tl.sqrt(tl.sum(a * a)) * tl.sqrt(tl.sum(b * b))
    tl.store(out + row, tl.sum(a * b) / tl.maximum(norms, 1e-8))


@case("*fp32! *fp32! *fp32! *fp32! fp32 fp32 i32 i32")
@triton.jit
def batch_norm_train(x, mean, var, out, momentum, eps, rows, cols):
    c = tl.program_id(0)
    o = tl.arange(0, 64)
    total = tl.zeros([64], tl.float32)
    for start in range(0, rows, 64):
        total += tl.load(x + (start + o) * cols + c, mask=start + o < rows, other=0.0)
    mu = tl.sum(total) / rows
    spread = tl.zeros([64], tl.float32)
    for start in range(0, rows, 64):
        v = tl.load(x + (start + o) * cols + c, mask=start + o < rows, other=mu)
        spread += (v - mu) * (v - mu)
    sigma = tl.sum(spread) / rows
    tl.store(mean + c, (1 - momentum) * tl.load(mean + c) + momentum * mu)
    tl.store(var + c, (1 - momentum) * tl.load(var + c) + momentum * sigma * rows / (rows - 1))
    for start in range(0, rows, 64):
        v = tl.load(x + (start + o) * cols + c, mask=start + o < rows)
        tl.store(out + (start + o) * cols + c, (v - mu) * tl.rsqrt(sigma + eps), mask=start + o < rows)


@case("*u8! *u8! i32 i32 i32 i32")
@triton.jit
def game_of_life(x, out, H, W, stride, n):
    o = tl.program_id(0) * 64 + tl.arange(0, 64)
    y, z = o // W, o % W
    count = tl.zeros([64], tl.int32)
    for dy in tl.static_range(-1, 2):
        for dx in tl.static_range(-1, 2):
            if dy != 0 or dx != 0:
                a, b = (y + dy + H) % H, (z + dx + W) % W
                count += tl.load(x + a * stride + b, mask=o < n, other=0).to(tl.int32)
    alive = tl.load(x + y * stride + z, mask=o < n, other=0)
    tl.store(out + y * stride + z, ((count == 3) | ((count == 2) & (alive != 0))).to(tl.uint8), mask=o < n)
