"""Measures how far honest and lower-precision computations are from float64, in the units of the `scaled_rms` rule.

    python scripts/calibrate_profile.py [--seeds N] [--quick]

For each operation it prints two figures of every way of computing it: the rms error of the worst group and the worst
element, both divided by the group's scale. Honest ways (another order of summation, another algorithm, approximate
functions of about 2 ulp) must stay below the tolerance of profiles/tilewright-1.toml, lower precisions above it.
Everything runs on the CPU; the tensor cores' formats are imitated by rounding the operands.
"""

import argparse
import math
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

PROFILE = Path(__file__).parent.parent / "profiles" / "tilewright-1.toml"
FLOOR = 1 / 1024
SHORT, LONG = 256, 1 << 16


@dataclass
class Way:
    """One way of computing an operation."""

    name: str
    # None: of interest, but on neither side.
    honest: bool | None
    value: torch.Tensor


@dataclass
class Sample:
    """One operation on one set of inputs."""

    operation: str
    dtype: torch.dtype
    exact: torch.Tensor
    native: torch.Tensor
    ways: list[Way]
    # Whether the inputs are a value regime: the tolerance is `regime_factor` times as wide, and only honest ways count.
    regime: bool = False


# The rule.


def groups(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor as rows of groups, as crates/judge/src/groups.rs cuts it."""
    row = 1
    for extent in reversed(tensor.shape):
        if row >= SHORT:
            break
        row *= extent
    parts = -(-row // LONG)
    usable = row // parts * parts
    return tensor.reshape(-1, row)[:, :usable].reshape(-1, usable // parts)


def figures(sample: Sample, value: torch.Tensor, tolerance: dict[str, float]) -> tuple[float, float]:
    """Worst group's rms error and worst element, as multiples of what `tolerance` allows."""
    if sample.regime:
        wide = tolerance["regime_factor"]
        tolerance = tolerance | {key: tolerance[key] * wide for key in ("rms_tol", "atol_scaled", "rtol")}
    exact, native, got = (groups(t.double()) for t in (sample.exact, sample.native, value))
    if not torch.isfinite(got).all():
        return math.inf, math.inf

    def rms(t: torch.Tensor) -> torch.Tensor:
        return t.square().mean(-1, keepdim=True).sqrt()

    own = rms(exact).clamp_min(FLOOR * exact.square().mean().sqrt())
    reference = rms(native - exact).clamp_min(FLOOR * (native - exact).square().mean().sqrt())
    scale = torch.maximum(own, reference * tolerance["reference_factor"] / tolerance["rms_tol"])
    quantum = torch.finfo(sample.dtype).smallest_normal * torch.finfo(sample.dtype).eps
    error = (got - exact).abs()
    group = rms(error) / (tolerance["rms_tol"] * scale + quantum)
    element = error / (tolerance["atol_scaled"] * scale + tolerance["rtol"] * exact.abs() + quantum)
    return group.max().item(), element.max().item()


# Formats.


def tf32(t: torch.Tensor) -> torch.Tensor:
    """Rounds float32 to 10 fraction bits, ties away from zero, as the hardware's conversion does."""
    bits = t.float().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


def through(dtype: torch.dtype) -> Callable[[torch.Tensor], torch.Tensor]:
    """Rounds float32 to a shorter dtype and back."""
    return lambda t: t.to(dtype).float()


def ulps(t: torch.Tensor, count: float = 2.0) -> torch.Tensor:
    """An approximate function's result: the right one, off by up to `count` ulp."""
    noise = (torch.rand_like(t.double()) * 2 - 1) * count * torch.finfo(t.dtype).eps / 2
    return (t.double() * (1 + noise)).to(t.dtype)


# Sums over the last axis, in the dtype of the terms.


def one_by_one(terms: torch.Tensor) -> torch.Tensor:
    total = torch.zeros_like(terms[..., 0])
    for at in range(terms.shape[-1]):
        total = total + terms[..., at]
    return total


def blocked(terms: torch.Tensor, block: int = 32) -> torch.Tensor:
    """Lanes of a tile accumulate over the blocks, then a tree joins them: `acc += tile; tl.sum(acc)`."""
    padded = torch.nn.functional.pad(terms, (0, -terms.shape[-1] % block))
    return pairwise(one_by_one(padded.unflatten(-1, (-1, block)).mT))


def pairwise(terms: torch.Tensor) -> torch.Tensor:
    while terms.shape[-1] > 1:
        terms = torch.nn.functional.pad(terms, (0, terms.shape[-1] % 2))
        terms = terms[..., 0::2] + terms[..., 1::2]
    return terms[..., 0]


SUMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "blocks of 32": blocked,
    "pairwise": pairwise,
}


def product(a: torch.Tensor, b: torch.Tensor, block: int = 1) -> torch.Tensor:
    """a @ b with a running sum over blocks of K, in the dtype of the operands; block 1 is a chain of products."""
    total = torch.zeros(a.shape[0], b.shape[1], dtype=a.dtype)
    for at in range(0, a.shape[1], block):
        total = total + a[:, at : at + block] @ b[at : at + block]
    return total


def split(a: torch.Tensor, b: torch.Tensor, parts: int = 8) -> torch.Tensor:
    step = -(-a.shape[1] // parts)
    return sum(product(a[:, at : at + step], b[at : at + step]) for at in range(0, a.shape[1], step))


OWN = ("normal", "uniform", "low variance")

# Operations. Each yields samples over distributions and sizes.

Draw = Callable[..., torch.Tensor]
DRAWS: dict[str, Draw] = {
    "normal": torch.randn,
    "uniform": torch.rand,
    "x1e-3": lambda *shape: torch.randn(*shape) * 1e-3,
    "x1e3": lambda *shape: torch.randn(*shape) * 1e3,
    "negative": lambda *shape: -torch.randn(*shape).abs(),
    "large": lambda *shape: torch.randn(*shape) + 100,
    "constant": lambda *shape: torch.randn(*shape[:-1], 1).expand(shape).contiguous(),
}


def matmul() -> Iterator[Sample]:
    for k in (64, 1000, 4096):
        for name in ("normal", "uniform", "negative", "x1e3"):
            a, b = DRAWS[name](64, k), DRAWS[name](k, 48)
            weight = torch.randn(k, 48) / math.sqrt(k)
            for label, right in (("", b), (" x weights", weight)):
                exact = a.double() @ right.double()
                ways = [
                    Way("one by one", True, product(a, right)),
                    Way("blocks of 32", True, product(a, right, 32)),
                    Way("8 parts", True, split(a, right)),
                    Way("tf32", False, product(tf32(a), tf32(right), 16)),
                    Way("float16 operands", False, product(a.half().float(), right.half().float(), 16)),
                    Way("bfloat16 operands", False, product(a.bfloat16().float(), right.bfloat16().float(), 16)),
                ]
                yield Sample(f"matmul K={k} {name}{label}", torch.float32, exact, a @ right, ways, name not in OWN)


def half_matmul() -> Iterator[Sample]:
    lower = {torch.float16: torch.bfloat16, torch.bfloat16: torch.float8_e4m3fn}
    for dtype, below in lower.items():
        for k in (64, 1000, 4096):
            for name in ("normal", "uniform"):
                a, b = DRAWS[name](64, k).to(dtype), (torch.randn(k, 48) / math.sqrt(k)).to(dtype)
                bias = torch.randn(48).to(dtype)
                exact = torch.nn.functional.gelu(a.double() @ b.double() + bias.double())
                wide, low_a, low_b = product(a.float(), b.float(), 32), a.to(below).float(), b.to(below).float()
                gelu = torch.nn.functional.gelu
                short = torch.zeros(64, 48, dtype=dtype)
                for at in range(0, k, 16):
                    short = short + (a[:, at : at + 16].float() @ b[at : at + 16].float()).to(dtype)
                ways = [
                    Way("float32 inside", True, gelu(wide + bias.float()).to(dtype)),
                    Way("one by one", True, gelu(product(a.float(), b.float()) + bias.float()).to(dtype)),
                    Way("rounded between steps", True, gelu(wide.to(dtype) + bias)),
                    Way(
                        f"{below} operands".replace("torch.", ""),
                        False,
                        gelu(product(low_a, low_b, 32) + bias.float()).to(dtype),
                    ),
                    Way(
                        "sums in the dtype, by 16",
                        False if k > 4000 else None,
                        gelu(short.float() + bias.float()).to(dtype),
                    ),
                ]
                native = gelu((a @ b) + bias)
                yield Sample(f"matmul+bias+gelu K={k} {name}", dtype, exact, native, ways, name not in OWN)


def double_matmul() -> Iterator[Sample]:
    for k in (64, 4096):
        for name in ("normal", "uniform"):
            a, b = DRAWS[name](64, k).double(), DRAWS[name](k, 48).double()
            a, b = a + 1e-9 * torch.randn_like(a), b + 1e-9 * torch.randn_like(b)
            # No wider type at hand: a compensated order stands for the exact product.
            exact = pairwise(a[:, None, :] * b.T[None, :, :]) if k <= 64 else split(a, b, 256)
            ways = [
                Way("one by one", True, product(a, b)),
                Way("blocks of 32", True, product(a, b, 32)),
                Way("float32", False, (a.float() @ b.float()).double()),
            ]
            yield Sample(f"matmul K={k} {name}", torch.float64, exact, exact, ways, name not in OWN)


def softmax() -> Iterator[Sample]:
    for columns in (100, 1000, 16384):
        for name, draw in DRAWS.items():
            x = draw(8, columns)
            exact, native = torch.softmax(x.double(), -1), torch.softmax(x, -1)
            shifted = x - x.amax(-1, keepdim=True)
            powers = ulps(torch.exp2(shifted * 1.4426950408889634))
            ways = [Way(how, True, torch.exp(shifted) / f(torch.exp(shifted))[:, None]) for how, f in SUMS.items()]
            ways += [
                Way("exp2, 2 ulp", True, powers / blocked(powers)[:, None]),
                Way("online", True, online_softmax(x, 64)),
                Way(
                    "exp in float16",
                    False,
                    torch.exp(shifted.half()).float() / pairwise(torch.exp(shifted.half()).float())[:, None],
                ),
            ]
            yield Sample(f"softmax {columns} {name}", torch.float32, exact, native, ways, name not in OWN)


def online_softmax(x: torch.Tensor, block: int) -> torch.Tensor:
    most, total = torch.full_like(x[:, :1], -math.inf), torch.zeros_like(x[:, :1])
    for at in range(0, x.shape[-1], block):
        tile = x[:, at : at + block]
        new = torch.maximum(most, tile.amax(-1, keepdim=True))
        total = total * torch.exp(most - new) + torch.exp(tile - new).sum(-1, keepdim=True)
        most = new
    return torch.exp(x - most) / total


def norms() -> Iterator[Sample]:
    for columns in (33, 768, 4096):
        for name, draw in (DRAWS | {"low variance": lambda *shape: torch.randn(*shape) * 3e-3}).items():
            x, weight, bias = draw(16, columns), torch.randn(columns), torch.randn(columns)
            exact = torch.nn.functional.layer_norm(x.double(), (columns,), weight.double(), bias.double(), 1e-5)
            native = torch.nn.functional.layer_norm(x, (columns,), weight, bias, 1e-5)
            ways = []
            for how, total in SUMS.items():
                mean = total(x)[:, None] / columns
                variance = total((x - mean) ** 2)[:, None] / columns
                ways.append(Way(f"two passes, {how}", True, (x - mean) * torch.rsqrt(variance + 1e-5) * weight + bias))
            mean = pairwise(x)[:, None] / columns
            centred = pairwise((x - mean) ** 2)[:, None] / columns
            squares = pairwise(x * x)[:, None] / columns
            ways += [
                Way("rsqrt, 2 ulp", True, (x - mean) * ulps(torch.rsqrt(centred + 1e-5)) * weight + bias),
                Way(
                    "eps 1e-6",
                    False if name == "low variance" else None,
                    (x - mean) * torch.rsqrt(centred + 1e-6) * weight + bias,
                ),
                Way("float16 input", False, layer_norm_of(x.half().float(), weight, bias)),
            ]
            if name in ("normal", "uniform", "x1e3"):
                ways.append(
                    Way("E[x2]-E[x]2", True, (x - mean) * torch.rsqrt(squares - mean * mean + 1e-5) * weight + bias)
                )
            yield Sample(f"layer_norm {columns} {name}", torch.float32, exact, native, ways, name not in OWN)

            exact = x.double() * torch.rsqrt((x.double() ** 2).mean(-1, keepdim=True) + 1e-6) * weight.double()
            native = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight
            ways = [
                Way(how, True, x * torch.rsqrt(total(x * x)[:, None] / columns + 1e-6) * weight)
                for how, total in SUMS.items()
            ]
            ways.append(Way("sqrt and divide", True, x / torch.sqrt(squares + 1e-6) * weight))
            ways.append(
                Way(
                    "sum in bfloat16",
                    False,
                    x * torch.rsqrt(blocked((x * x).bfloat16()).float()[:, None] / columns + 1e-6) * weight,
                )
            )
            yield Sample(f"rms_norm {columns} {name}", torch.float32, exact, native, ways, name not in OWN)


def layer_norm_of(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.layer_norm(x, weight.shape, weight, bias, 1e-5)


def elementwise() -> Iterator[Sample]:
    functions: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "gelu": torch.nn.functional.gelu,
        "gelu tanh": lambda t: torch.nn.functional.gelu(t, approximate="tanh"),
        "silu": torch.nn.functional.silu,
        "tanh": torch.tanh,
        "sigmoid": torch.sigmoid,
        "softplus": torch.nn.functional.softplus,
        "mish": torch.nn.functional.mish,
    }
    for label, function in functions.items():
        for name in ("normal", "uniform", "x1e-3", "x1e3", "negative"):
            x = DRAWS[name](64, 256)
            exact, native = function(x.double()), function(x)
            ways = [
                Way("2 ulp", True, ulps(native)),
                Way("by its formula", True, formula(label, x)),
                Way("float16 input", False, function(x.half().float())),
            ]
            yield Sample(f"{label} {name}", torch.float32, exact, native, ways, name not in OWN)


def formula(label: str, x: torch.Tensor) -> torch.Tensor:
    """The function from exp alone, as kernels without libdevice write it."""
    sigmoid = 1 / (1 + ulps(torch.exp(-x)))

    def tanh(t: torch.Tensor) -> torch.Tensor:
        return 2 / (1 + ulps(torch.exp(-2 * t))) - 1

    match label:
        case "gelu":
            return 0.5 * x * (1 + ulps(torch.erf(x * 0.7071067811865476)))
        case "gelu tanh":
            return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))
        case "silu":
            return x * sigmoid
        case "tanh":
            return tanh(x)
        case "softplus":
            return torch.where(x > 20, x, torch.log(1 + torch.exp(x)))
        case "mish":
            return x * tanh(torch.where(x > 20, x, torch.log(1 + torch.exp(x))))
        case _:
            return sigmoid


def scans() -> Iterator[Sample]:
    for columns in (1000, 32768):
        for name in ("normal", "uniform", "negative", "constant"):
            x = DRAWS[name](4, columns)
            exact, native = torch.cumsum(x.double(), -1), torch.cumsum(x, -1)
            chain, total = torch.empty_like(x), torch.zeros(4)
            for at in range(columns):
                total = total + x[:, at]
                chain[:, at] = total
            tiles = torch.nn.functional.pad(x, (0, -columns % 128)).unflatten(-1, (-1, 128))
            inner, carry = tiles.cumsum(-1), torch.zeros(4, 1)
            pieces = []
            for tile in range(inner.shape[1]):
                pieces.append(carry + inner[:, tile])
                carry = carry + inner[:, tile, -1:]
            tree = torch.cat(pieces, -1)[:, :columns]
            ways = [
                Way("one by one", None, chain),
                Way("tiles of 128 with a carry", True, tree),
                Way("float16 input", False if name == "normal" else None, x.half().float().cumsum(-1)),
            ]
            yield Sample(f"cumsum {columns} {name}", torch.float32, exact, native, ways, name not in OWN)


def reductions() -> Iterator[Sample]:
    for columns in (1000, 65536):
        for name in ("normal", "uniform", "x1e3", "negative"):
            x = DRAWS[name](64, columns)
            for label, before, after in (
                ("sum", lambda t: t, lambda t: t),
                ("l2 norm", lambda t: t * t, torch.sqrt),
                ("logsumexp", lambda t: torch.exp(t - t.amax(-1, keepdim=True)), torch.log),
            ):
                shift = x.amax(-1) if label == "logsumexp" else torch.zeros(64)
                exact = after(before(x.double()).sum(-1)) + shift.double()
                native = after(before(x).sum(-1)) + shift
                ways = [Way(how, True, after(total(before(x))) + shift) for how, total in SUMS.items()]
                low = after(blocked(before(x.half()).float())) + shift
                # The rounding of all-positive terms averages out below the noise of a float32 sum.
                ways.append(Way("float16 input", False if name == "normal" and label == "sum" else None, low))
                yield Sample(f"{label} {columns} {name}", torch.float32, exact, native, ways, name not in OWN)


def convolution() -> Iterator[Sample]:
    for channels in (3, 64, 512):
        x, w = torch.rand(1, channels, 10, 10), torch.randn(16, channels, 3, 3) / math.sqrt(9 * channels)
        exact = torch.nn.functional.conv2d(x.double(), w.double())
        columns, rows = torch.nn.functional.unfold(x, 3)[0].T.contiguous(), w.flatten(1).T.contiguous()
        shape = exact.shape

        def image(value: torch.Tensor, shape: torch.Size = shape) -> torch.Tensor:
            return value.T.reshape(shape)

        ways = [
            Way("one by one", True, image(product(columns, rows))),
            Way("blocks of 32", True, image(product(columns, rows, 32))),
            Way("tf32", False, image(product(tf32(columns), tf32(rows), 16))),
        ]
        yield Sample(f"conv2d {channels}", torch.float32, exact, torch.nn.functional.conv2d(x, w), ways)


def attention() -> Iterator[Sample]:
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for length in (64, 512):
            q, k, v = (torch.randn(length, 64).to(dtype) for _ in range(3))
            scores = q.double() @ k.double().T / 8
            exact = torch.softmax(scores, -1) @ v.double()
            native = torch.softmax(q @ k.T / 8, -1) @ v
            ways = [
                Way("online", True, flash(q, k, v, lambda t: t)),
                Way("online, p in the dtype", True, flash(q, k, v, through(dtype))),
            ]
            low = {
                torch.float32: tf32,
                torch.float16: through(torch.bfloat16),
                torch.bfloat16: through(torch.float8_e4m3fn),
            }[dtype]
            lower = [low(t.float()) for t in (q, k, v)]
            ways.append(Way("next lower precision", False, flash(*lower, low).to(dtype)))
            yield Sample(f"attention {length}", dtype, exact, native, ways)


def flash(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cast: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    dtype, (q, k, v) = q.dtype, (t.float() for t in (q, k, v))
    most, total, out = torch.full((len(q), 1), -math.inf), torch.zeros(len(q), 1), torch.zeros_like(q)
    for at in range(0, len(k), 32):
        scores = q @ k[at : at + 32].T * (0.125 * 1.4426950408889634)
        new = torch.maximum(most, scores.amax(-1, keepdim=True))
        power, fade = torch.exp2(scores - new), torch.exp2(most - new)
        total = total * fade + power.sum(-1, keepdim=True)
        out = out * fade + cast(power) @ v[at : at + 32]
        most = new
    return (out / total).to(dtype)


def half_norms() -> Iterator[Sample]:
    for dtype, below in ((torch.float16, torch.bfloat16), (torch.bfloat16, torch.float8_e4m3fn)):
        for columns in (33, 1024):
            x, weight = torch.randn(16, columns).to(dtype), torch.randn(columns).to(dtype)
            wide = x.float()
            scale = torch.rsqrt(pairwise(wide * wide)[:, None] / columns + 1e-6)
            exact = x.double() * torch.rsqrt((x.double() ** 2).mean(-1, keepdim=True) + 1e-6) * weight.double()
            native = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight
            ways = [
                Way("float32 inside", True, (wide * scale * weight.float()).to(dtype)),
                Way("rounded between steps", True, (wide * scale).to(dtype) * weight),
                Way("next lower precision", False, (x.to(below).float() * scale * weight.to(below).float()).to(dtype)),
            ]
            yield Sample(f"rms_norm {columns}", dtype, exact, native, ways)


def corpus() -> Iterator[Sample]:
    """The labelled wrong candidates that are merely imprecise, at their small and at larger sizes."""
    for rows, inner, columns in ((30, 100, 41), (128, 4100, 64)):
        x, w, b = torch.randn(rows, inner), torch.empty(inner, columns), torch.empty(columns)
        bound = 1 / math.sqrt(inner)
        w.uniform_(-bound, bound), b.uniform_(-bound, bound)
        ways = []
        for name, honest, cast in (
            ("sigmoid", True, torch.Tensor.float),
            ("float16 operands", False, torch.Tensor.half),
        ):
            z = product(cast(x).float(), cast(w).float(), 32) + b
            ways.append(Way(name, honest, 2 * torch.sigmoid(2 * z) - 1))
        yield Sample(
            f"linear_tanh K={inner}", torch.float32, torch.tanh(x.double() @ w.double() + b), (x @ w + b).tanh(), ways
        )
    for rows, columns in ((40, 33), (4096, 200)):
        x = torch.randn(rows, columns) * 0.1 + 2 * torch.rand(columns)
        exact = 0.25 * x.double().mean(0)
        ways = [
            Way("all rows", True, 0.25 * (blocked(x.T) / rows)),
            Way("half of the rows", False, 0.25 * (blocked(x[: rows // 2].T) / (rows // 2))),
        ]
        yield Sample(f"ema running {rows}", torch.float32, exact, 0.25 * x.mean(0), ways)
        ways = [Way(way.name, way.honest, x - way.value) for way in ways]
        yield Sample(f"ema output {rows}", torch.float32, x.double() - exact, x - 0.25 * x.mean(0), ways)
    for columns in (300, 3072):
        x, weight, bias = torch.randn(20, columns) * 0.01 + 0.05, torch.rand(columns) + 0.5, torch.randn(columns) * 0.1
        mean = blocked(x)[:, None] / columns
        variance = blocked((x - mean) ** 2)[:, None] / columns
        exact = torch.nn.functional.layer_norm(x.double(), (columns,), weight.double(), bias.double(), 1e-5)
        ways = [
            Way(f"eps {eps}", eps == 1e-5, (x - mean) * torch.rsqrt(variance + eps) * weight + bias)
            for eps in (1e-5, 1e-6)
        ]
        yield Sample(f"layernorm {columns}", torch.float32, exact, layer_norm_of(x, weight, bias), ways)
    for columns in (200, 8192):
        x, weight = (torch.randn(17, columns) * 20).half(), (torch.rand(columns) + 0.5).half()
        wide = x.float()
        scale = [torch.rsqrt(f(t) / columns + 1e-6)[:, None] for f, t in ((blocked, wide * wide), (blocked, x * x))]
        exact = x.double() * torch.rsqrt((x.double() ** 2).mean(-1, keepdim=True) + 1e-6) * weight.double()
        ways = [
            Way("float32 sum", True, (wide * scale[0] * weight.float()).half()),
            Way("float16 sum", False, (wide * scale[1].float() * weight.float()).half()),
        ]
        yield Sample(f"rmsnorm {columns}", torch.float16, exact, exact.half(), ways)


OPERATIONS = (
    matmul,
    half_matmul,
    double_matmul,
    softmax,
    norms,
    half_norms,
    elementwise,
    scans,
    reductions,
    convolution,
    attention,
    corpus,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", help="operations whose name contains this")
    parser.add_argument("--all", action="store_true", help="print every way, not only the worst of each kind")
    options = parser.parse_args()
    profile = tomllib.loads(PROFILE.read_text())
    torch.set_num_threads(1)
    worst: dict[tuple[str, bool, bool], tuple[float, str]] = {}
    wrong = 0
    for seed in range(options.seeds):
        torch.manual_seed(seed)
        for operation in OPERATIONS:
            if options.only and options.only not in operation.__name__:
                continue
            for sample in operation():
                wrong += report(sample, profile, worst, options.all)
    print()
    for (dtype, regime, honest), (figure, where) in sorted(worst.items()):
        kind = "honest, largest" if honest else "lower precision, smallest"
        kind += ", in a regime" if regime else ""
        print(f"{dtype:10} {kind:30} {figure:10.3g} times the tolerance   {where}")
    print(f"{wrong} on the wrong side")


def report(sample: Sample, profile: dict, worst: dict, everything: bool) -> int:
    """Prints the ways of one sample that are on the wrong side (or all) and returns how many are."""
    dtype = str(sample.dtype).removeprefix("torch.")
    tolerance = profile["tolerance"].get(dtype, profile["default"])
    wrong = 0
    for way in sample.ways:
        group, element = figures(sample, way.value, tolerance)
        figure = max(group, element)
        lower = way.honest is False and not sample.regime
        off = figure > 1 if way.honest else figure <= 1 and lower
        wrong += off
        if everything or off:
            mark = "WRONG" if off else ""
            kind = "honest" if way.honest else "lower" if lower else "-"
            print(
                f"{dtype:9} {sample.operation:34} {way.name:26} {kind:7} group {group:9.3g} element {element:9.3g} "
                f"{mark}"
            )
        if not way.honest and not lower:
            continue
        key, where = (dtype, sample.regime, bool(way.honest)), f"{sample.operation}, {way.name}"
        if key not in worst or (figure > worst[key][0]) == way.honest:
            worst[key] = (figure, where)
    return wrong


if __name__ == "__main__":
    main()
