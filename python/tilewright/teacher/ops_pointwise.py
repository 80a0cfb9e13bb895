"""Rules of element-wise operations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from tilewright.teacher.host_numbers import Varying
from tilewright.teacher.ir import Const, Lazy, Op, Random, Read
from tilewright.teacher.lower import Lowering
from tilewright.teacher.rules import lowers
from tilewright.teacher.sizes import Unsupported

FLOAT_UNARY = [
    "exp",
    "exp2",
    "log",
    "log2",
    "log10",
    "log1p",
    "expm1",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "tan",
    "tanh",
    "sinh",
    "cosh",
    "asin",
    "acos",
    "atan",
    "asinh",
    "acosh",
    "atanh",
    "erf",
    "erfc",
    "erfinv",
    "lgamma",
    "sigmoid",
    "reciprocal",
]
SAME_UNARY = ["abs", "neg", "floor", "ceil", "round", "trunc", "sign"]
COMPARE = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}


def out_dtype(lowering: Lowering) -> torch.dtype:
    return lowering.meta[0].dtype


def _unary(name: str, floating: bool) -> Callable[..., Lazy]:
    def rule(lowering: Lowering, x: Any) -> Lazy:
        dtype = out_dtype(lowering)
        x = lowering.cast(x, dtype) if floating else lowering.lazy(x)
        if not floating and not dtype.is_floating_point and name in ("floor", "ceil", "round", "trunc"):
            return x
        return lowering.op(name, dtype, x)

    return rule


for _name in FLOAT_UNARY:
    lowers(_name)(_unary(_name, True))
for _name in SAME_UNARY:
    lowers(_name)(_unary(_name, False))
lowers("absolute")(_unary("abs", False))
lowers("negative")(_unary("neg", False))


def _binary(name: str) -> Callable[..., Lazy]:
    def rule(lowering: Lowering, a: Any, b: Any) -> Lazy:
        dtype = out_dtype(lowering)
        return lowering.op(name, dtype, lowering.cast(a, dtype), lowering.cast(b, dtype))

    return rule


for _name in ["maximum", "minimum", "mul", "fmod", "atan2", "hypot"]:
    lowers(_name)(_binary(_name))
lowers("multiply")(_binary("mul"))


def _compare(name: str) -> Callable[..., Lazy]:
    def rule(lowering: Lowering, a: Any, b: Any) -> Lazy:
        a, b = lowering.lazy(a), lowering.lazy(b)
        dtype = torch.promote_types(a.dtype, b.dtype)
        if isinstance(a.term, Const):
            dtype = b.dtype
        # A number gives way to a tensor's dtype, unless it is of a higher kind.
        if isinstance(b.term, Const) and a.dtype != torch.bool:
            dtype = a.dtype if a.dtype.is_floating_point or not b.dtype.is_floating_point else torch.float32
        return lowering.op(name, torch.bool, lowering.cast(a, dtype), lowering.cast(b, dtype))

    return rule


for _name in COMPARE:
    lowers(_name)(_compare(_name))


@lowers("add", "sub", "subtract", "rsub")
def add(lowering: Lowering, a: Any, b: Any, alpha: Any = 1) -> Lazy:
    dtype = out_dtype(lowering)
    if lowering.label == "rsub":
        a, b = b, a
    a, b = lowering.cast(a, dtype), lowering.cast(b, dtype)
    if dtype == torch.bool:
        return lowering.op("or", dtype, a, b)
    if alpha != 1:
        b = lowering.op("mul", dtype, b, lowering.const(alpha, dtype))
    return lowering.op("add" if lowering.label == "add" else "sub", dtype, a, b)


@lowers("div", "true_divide", "divide", "floor_divide")
def div(lowering: Lowering, a: Any, b: Any, rounding_mode: str | None = None) -> Lazy:
    dtype = out_dtype(lowering)
    if lowering.label == "floor_divide":
        rounding_mode = "floor"
    a, b = lowering.cast(a, dtype), lowering.cast(b, dtype)
    if not dtype.is_floating_point:
        if rounding_mode == "trunc":
            return lowering.op("truncdiv", dtype, a, b)
        return lowering.op("floordiv", dtype, a, b)
    out = lowering.op("div", dtype, a, b)
    if rounding_mode is not None:
        out = lowering.op("floor" if rounding_mode == "floor" else "trunc", dtype, out)
    return out


@lowers("remainder")
def remainder(lowering: Lowering, a: Any, b: Any) -> Lazy:
    dtype = out_dtype(lowering)
    a, b = lowering.cast(a, dtype), lowering.cast(b, dtype)
    if dtype.is_floating_point:
        quotient = lowering.op("floor", dtype, lowering.op("div", dtype, a, b))
        return lowering.op("sub", dtype, a, lowering.op("mul", dtype, quotient, b))
    return lowering.op("floormod", dtype, a, b)


@lowers("pow")
def power(lowering: Lowering, a: Any, b: Any) -> Lazy:
    dtype = out_dtype(lowering)
    if isinstance(b, int | float) and not isinstance(a, int | float):
        x = lowering.cast(a, dtype)
        if b == 2:
            return lowering.op("mul", dtype, x, x, hint="square")
        if b == 3:
            return lowering.op("mul", dtype, lowering.op("mul", dtype, x, x), x, hint="cube")
        if b == 1:
            return x
        if b == 0.5:
            return lowering.op("sqrt", dtype, x)
        if b == -0.5:
            return lowering.op("rsqrt", dtype, x)
        if b == -1:
            return lowering.op("reciprocal", dtype, x)
    a, b = lowering.cast(a, dtype), lowering.cast(b, dtype)
    if not dtype.is_floating_point:
        raise Unsupported("a power of integers")
    return lowering.op("pow", dtype, a, b)


@lowers("square")
def square(lowering: Lowering, x: Any) -> Lazy:
    return lowering.op("mul", out_dtype(lowering), x, x, hint="square")


@lowers("logical_not", "bitwise_not")
def invert(lowering: Lowering, x: Any) -> Lazy:
    x = lowering.lazy(x)
    if x.dtype != torch.bool and lowering.label == "logical_not":
        x = lowering.op("ne", torch.bool, x, lowering.const(0, x.dtype))
    return lowering.op("not" if x.dtype == torch.bool else "invert", x.dtype, x)


def _logical(name: str) -> Callable[..., Lazy]:
    def rule(lowering: Lowering, a: Any, b: Any) -> Lazy:
        dtype = out_dtype(lowering)
        lazies = []
        for x in (lowering.lazy(a), lowering.lazy(b)):
            if dtype == torch.bool and x.dtype != torch.bool:
                x = lowering.op("ne", torch.bool, x, lowering.const(0, x.dtype))
            lazies.append(lowering.cast(x, dtype))
        return lowering.op(name, dtype, *lazies)

    return rule


for _name in ("and", "or", "xor"):
    for _prefix in ("logical_", "bitwise_", "__"):
        lowers(_prefix + _name + ("__" if _prefix == "__" else ""))(_logical(_name))
for _names, _op in (
    (("bitwise_left_shift", "__lshift__"), "shl"),
    (("bitwise_right_shift", "__rshift__"), "shr"),
):
    lowers(*_names)(_binary(_op))


@lowers("where")
def where(lowering: Lowering, condition: Any, a: Any, b: Any) -> Lazy:
    dtype = out_dtype(lowering)
    return lowering.op("where", dtype, condition, lowering.cast(a, dtype), lowering.cast(b, dtype))


@lowers("masked_fill")
def masked_fill(lowering: Lowering, x: Any, mask: Any, value: Any) -> Lazy:
    dtype = out_dtype(lowering)
    return lowering.op("where", dtype, mask, lowering.cast(value, dtype), x)


@lowers("lerp")
def lerp(lowering: Lowering, a: Any, b: Any, weight: Any) -> Lazy:
    dtype = out_dtype(lowering)
    step = lowering.op("sub", dtype, b, a)
    return lowering.op("add", dtype, a, lowering.op("mul", dtype, lowering.cast(weight, dtype), step))


@lowers("addcmul", "addcdiv")
def addcmul(lowering: Lowering, x: Any, a: Any, b: Any, value: Any = 1) -> Lazy:
    dtype = out_dtype(lowering)
    product = lowering.op("mul" if lowering.label == "addcmul" else "div", dtype, a, b)
    if value != 1:
        product = lowering.op("mul", dtype, product, lowering.const(value, dtype))
    return lowering.op("add", dtype, x, product)


# activations ------------------------------------------------------------------------------------------------------


class Calculator:
    """Terse arithmetic on element-wise values of one dtype."""

    def __init__(self, lowering: Lowering, x: Any, dtype: torch.dtype | None = None) -> None:
        self.lowering = lowering
        self.dtype = dtype or out_dtype(lowering)
        self.x = lowering.cast(x, self.dtype)

    def __call__(self, name: str, *args: Any, hint: str = "") -> Lazy:
        dtype = torch.bool if name in COMPARE else self.dtype
        made = [a if isinstance(a, Lazy) else self.lowering.const(a, self.dtype) for a in args]
        return self.lowering.op(name, dtype, *made, hint=hint)


@lowers("relu")
def relu(lowering: Lowering, x: Any) -> Lazy:
    c = Calculator(lowering, x)
    return c("maximum", c.x, 0.0 if c.dtype.is_floating_point else 0, hint="relu")


@lowers("relu6", "hardtanh", "clamp", "clamp_min", "clamp_max", "clip")
def clamp(lowering: Lowering, x: Any, low: Any = None, high: Any = None) -> Lazy:
    label = lowering.label
    if label == "relu6":
        low, high = 0.0, 6.0
    elif label == "hardtanh":
        low, high = (-1.0 if low is None else low), (1.0 if high is None else high)
    elif label == "clamp_max":
        low, high = None, low if high is None else high
    c = Calculator(lowering, x)
    out = c.x
    for bound, name in ((low, "maximum"), (high, "minimum")):
        if bound is not None:
            bound = lowering.cast(bound, c.dtype) if isinstance(bound, Lazy) else bound
            out = c(name, out, bound, hint=label)
    return out


@lowers("silu")
def silu(lowering: Lowering, x: Any) -> Lazy:
    c = Calculator(lowering, x)
    return c("mul", c.x, c("sigmoid", c.x), hint="silu")


@lowers("gelu")
def gelu(lowering: Lowering, x: Any, approximate: str = "none") -> Lazy:
    c = Calculator(lowering, x)
    half = c("mul", c.x, 0.5, hint="half")
    if approximate == "tanh":
        cube = c("mul", c("mul", c.x, c.x), c.x)
        inner = c("mul", c("add", c.x, c("mul", cube, 0.044715)), math.sqrt(2.0 / math.pi))
        return c("mul", half, c("add", c("tanh", inner), 1.0), hint="gelu")
    return c("mul", half, c("add", c("erf", c("mul", c.x, math.sqrt(0.5))), 1.0), hint="gelu")


@lowers("elu", "selu", "celu")
def elu(lowering: Lowering, x: Any, alpha: Any = 1.0, scale: Any = 1.0, input_scale: Any = 1.0) -> Lazy:
    c = Calculator(lowering, x)
    if lowering.label == "selu":
        alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
    if lowering.label == "celu":
        input_scale = 1.0 / alpha
    scaled = c.x if input_scale == 1 else c("mul", c.x, input_scale)
    negative = c("expm1", scaled)
    if alpha != 1:
        negative = c("mul", negative, alpha)
    out = lowering.op("where", c.dtype, c("gt", c.x, 0.0), c.x, negative, hint="elu")
    return out if scale == 1 else c("mul", out, scale, hint=lowering.label)


@lowers("leaky_relu")
def leaky_relu(lowering: Lowering, x: Any, slope: Any = 0.01) -> Lazy:
    c = Calculator(lowering, x)
    return lowering.op("where", c.dtype, c("gt", c.x, 0.0), c.x, c("mul", c.x, slope), hint="leaky_relu")


@lowers("rrelu", "rrelu_with_noise")
def rrelu(lowering: Lowering, x: Any, *args: Any, **_: Any) -> Lazy:
    """In evaluation mode the slope is the middle of its range."""
    if lowering.label == "rrelu_with_noise":
        args = args[1:]
    low, high, training = (*args[:3], *(1 / 8, 1 / 3, False)[len(args[:3]) :])
    if training:
        raise Unsupported("rrelu in training mode")
    c = Calculator(lowering, x)
    return lowering.op("where", c.dtype, c("ge", c.x, 0.0), c.x, c("mul", c.x, (low + high) / 2), hint="rrelu")


@lowers("prelu", "_prelu_kernel")
def prelu(lowering: Lowering, x: Any, weight: Any) -> Lazy:
    c = Calculator(lowering, x)
    weight = lowering.lazy(weight)
    if len(weight.shape) == 1 and len(c.x.shape) > 1:
        rank = len(c.x.shape)
        shape = tuple(weight.shape[0] if i == 1 else 1 for i in range(rank))
        weight = lowering.view(weight, lambda v: v.reshape(shape, lowering.sizes))
    return lowering.op("where", c.dtype, c("gt", c.x, 0.0), c.x, c("mul", c.x, weight), hint="prelu")


@lowers("hardswish", "hardsigmoid")
def hardswish(lowering: Lowering, x: Any) -> Lazy:
    c = Calculator(lowering, x)
    gate = c("div", c("minimum", c("maximum", c("add", c.x, 3.0), 0.0), 6.0), 6.0, hint="gate")
    return gate if lowering.label == "hardsigmoid" else c("mul", c.x, gate, hint="hardswish")


def softplus_of(c: Calculator, x: Lazy) -> Lazy:
    """log(1 + exp(x)) without overflow."""
    size = c("neg", c("abs", x))
    return c("add", c("maximum", x, 0.0), c("log1p", c("exp", size)), hint="softplus")


@lowers("softplus")
def softplus(lowering: Lowering, x: Any, beta: Any = 1, threshold: Any = 20) -> Lazy:
    c = Calculator(lowering, x)
    scaled = c.x if beta == 1 else c("mul", c.x, float(beta))
    out = softplus_of(c, scaled)
    if beta != 1:
        out = c("div", out, float(beta))
    return lowering.op("where", c.dtype, c("gt", scaled, float(threshold)), c.x, out, hint="softplus")


@lowers("mish")
def mish(lowering: Lowering, x: Any) -> Lazy:
    c = Calculator(lowering, x)
    return c("mul", c.x, c("tanh", softplus_of(c, c.x)), hint="mish")


@lowers("log_sigmoid", "log_sigmoid_forward")
def log_sigmoid(lowering: Lowering, x: Any) -> Any:
    c = Calculator(lowering, x, lowering.lazy(x).dtype)
    out = c("neg", softplus_of(c, c("neg", c.x)), hint="log_sigmoid")
    return [out, None] if lowering.label.endswith("forward") else out


@lowers("softshrink", "hardshrink", "threshold")
def shrink(lowering: Lowering, x: Any, lambd: Any = 0.5, value: Any = 0.0) -> Lazy:
    c = Calculator(lowering, x)
    # NaN fails every comparison, and stays what it is.
    if lowering.label == "threshold":
        return lowering.op("where", c.dtype, c("le", c.x, lambd), lowering.const(value, c.dtype), c.x)
    inside = lowering.op("and", torch.bool, c("ge", c.x, -lambd), c("le", c.x, lambd))
    outside = c.x
    if lowering.label == "softshrink":
        outside = lowering.op("where", c.dtype, c("gt", c.x, lambd), c("sub", c.x, lambd), c("add", c.x, lambd))
    return lowering.op("where", c.dtype, inside, lowering.const(0.0, c.dtype), outside)


@lowers("logit")
def logit(lowering: Lowering, x: Any, eps: Any = None) -> Lazy:
    c = Calculator(lowering, x)
    p = c.x if eps is None else c("minimum", c("maximum", c.x, eps), 1.0 - eps)
    return c("log", c("div", p, c("sub", 1.0, p)), hint="logit")


@lowers("xlogy")
def xlogy(lowering: Lowering, a: Any, b: Any) -> Lazy:
    c = Calculator(lowering, a)
    b = lowering.cast(b, c.dtype)
    product = c("mul", c.x, c("log", b))
    return lowering.op("where", c.dtype, c("eq", c.x, 0.0), lowering.const(0.0, c.dtype), product, hint="xlogy")


@lowers("isnan", "isinf", "isfinite")
def is_special(lowering: Lowering, x: Any) -> Lazy:
    x = lowering.lazy(x)
    if not x.dtype.is_floating_point:
        return lowering.const(lowering.label == "isfinite", torch.bool, x.shape)
    if lowering.label == "isnan":
        return lowering.op("ne", torch.bool, x, x)
    infinite = lowering.op("eq", torch.bool, lowering.op("abs", x.dtype, x), lowering.const(math.inf, x.dtype))
    if lowering.label == "isinf":
        return infinite
    size = lowering.op("abs", x.dtype, x)
    return lowering.op("lt", torch.bool, size, lowering.const(math.inf, x.dtype))


@lowers("heaviside")
def heaviside(lowering: Lowering, x: Any, values: Any) -> Lazy:
    c = Calculator(lowering, x)
    step = lowering.op("where", c.dtype, c("gt", c.x, 0.0), lowering.const(1.0, c.dtype), lowering.const(0.0, c.dtype))
    return lowering.op("where", c.dtype, c("eq", c.x, 0.0), values, step)


@lowers("to", "_to_copy", "type_as", "_autocast_to_full_precision", "convert_element_type")
def to(lowering: Lowering, x: Any, *args: Any, **kwargs: Any) -> Lazy:
    return lowering.cast(x, out_dtype(lowering))


@lowers("clone", "contiguous", "detach", "alias", "lift_fresh_copy", "lift_fresh", "lift", "resolve_conj", view=True)
def same(lowering: Lowering, x: Any, *args: Any, **kwargs: Any) -> Lazy:
    return Lazy(x.term, x.shape) if lowering.label == "clone" else x


@lowers("dropout", "feature_dropout", "alpha_dropout")
def dropout(lowering: Lowering, x: Lazy, p: Any, train: bool) -> Lazy:
    if not train or p == 0:
        return x
    if lowering.label not in ("dropout", "feature_dropout"):
        raise Unsupported(f"{lowering.label} in training mode")
    c = Calculator(lowering, x)
    shape = x.shape if lowering.label == "dropout" else (*x.shape[:2], *(1 for _ in x.shape[2:]))
    keep = lowering.op("ge", torch.bool, uniform(lowering, shape), lowering.const(p, torch.float32))
    scale = lowering.op("sub", torch.float32, lowering.const(1.0, torch.float32), lowering.const(p, torch.float32))
    kept = lowering.op("div", c.dtype, c.x, scale)
    return lowering.op("where", c.dtype, keep, kept, lowering.const(0.0, c.dtype), hint="dropout")


def uniform(lowering: Lowering, shape: Any) -> Lazy:
    """Uniform numbers in [0, 1) from a fresh seed."""
    seed = lowering.fresh("seed")
    lowering.seeds.append(seed)
    shape = tuple(lowering.size(s) for s in shape)
    total = lowering.sizes.product(shape)
    flat = lowering.iota((total,), 0)
    index = lowering.view(flat, lambda v: v.reshape(shape, lowering.sizes)) if shape else lowering.const(0, torch.int64)
    return Lazy(Random(torch.float32, "uniform", seed, index.term), shape)


@lowers("rand", "rand_like", "bernoulli", "randn", "randn_like")
def random(lowering: Lowering, x: Any, p: Any = None, *, generator: Any = None, **_: Any) -> Lazy:
    if generator is not None:
        raise Unsupported(f"{lowering.label} from a generator of its own")
    if lowering.label == "rand":
        return lowering.cast(uniform(lowering, x), out_dtype(lowering))
    if lowering.label == "rand_like":
        return lowering.cast(uniform(lowering, x.shape), out_dtype(lowering))
    if lowering.label in ("randn", "randn_like"):
        shape = x if lowering.label == "randn" else x.shape
        c = Calculator(lowering, uniform(lowering, shape), torch.float32)
        # Box and Muller: 1 - u is never 0.
        radius = c("sqrt", c("mul", c("log", c("sub", 1.0, c.x)), -2.0))
        angle = c("mul", uniform(lowering, shape), 2.0 * math.pi)
        return lowering.cast(c("mul", radius, c("cos", angle)), out_dtype(lowering))
    below = lowering.op("lt", torch.bool, uniform(lowering, x.shape), x if p is None else p)
    return lowering.cast(below, out_dtype(lowering))


@lowers("bernoulli_")
def bernoulli_in_place(lowering: Lowering, x: Lazy, p: Any = 0.5, *, generator: Any = None) -> Lazy:
    return random(lowering, x, p, generator=generator)


FILLS = {"zeros": 0, "ones": 1, "zeros_like": 0, "ones_like": 1, "new_zeros": 0, "new_ones": 1}


@lowers(
    "zeros",
    "ones",
    "zeros_like",
    "ones_like",
    "new_zeros",
    "new_ones",
    "full",
    "full_like",
    "new_full",
    "scalar_tensor",
    "empty_like",
    "new_empty",
    "empty",
    "fill",
    "zero",
)
def fill(lowering: Lowering, x: Any, *args: Any, **kwargs: Any) -> Lazy:
    label = lowering.label
    if label == "zero":
        number: Any = 0
    elif label in ("full", "full_like"):
        number = args[0] if args else kwargs["fill_value"]
    elif label == "fill":
        number = args[0]
    elif label == "new_full":
        number = args[1]
    elif label == "scalar_tensor":
        number = x
    else:
        number = FILLS.get(label, 0)
    if isinstance(number, Lazy):
        return lowering.expand(lowering.cast(number, out_dtype(lowering)), shape_of(lowering, x, args))
    return lowering.const(number, out_dtype(lowering), shape_of(lowering, x, args))


def shape_of(lowering: Lowering, x: Any, args: Any) -> tuple[Any, ...]:
    """Shape of a new tensor, from a tensor like it or from numbers."""
    metas = lowering.meta
    if isinstance(x, Lazy) and all(
        tuple(lowering.sizes.of(s)[i] for s in x.shape) == tuple(m.shape) for i, m in enumerate(metas)
    ):
        return x.shape
    return tuple(
        lowering.size(
            Varying(tuple(int(m.shape[d]) for m in metas))
            if len({int(m.shape[d]) for m in metas}) > 1
            else int(metas[0].shape[d])
        )
        for d in range(metas[0].dim())
    )


@lowers("arange")
def arange(lowering: Lowering, *args: Any, **kwargs: Any) -> Lazy:
    start, step = 0, 1
    if len(args) == 2:
        start = args[0]
    if len(args) == 3:
        start, step = args[0], args[2]
    step = kwargs.get("step", step)
    shape = shape_of(lowering, None, args)
    dtype = out_dtype(lowering)
    if not shape or lowering.sizes.is_one(shape[0]):
        return lowering.const(start, dtype, shape)
    index = lowering.cast(lowering.iota(shape, 0), dtype)
    if step != 1:
        index = lowering.op("mul", dtype, index, lowering.const(step, dtype))
    return index if start == 0 else lowering.op("add", dtype, index, lowering.const(start, dtype))


@lowers("eye")
def eye(lowering: Lowering, *args: Any, **kwargs: Any) -> Lazy:
    shape = shape_of(lowering, None, args)
    same_index = lowering.op("eq", torch.bool, lowering.iota(shape, 0), lowering.iota(shape, 1))
    return lowering.cast(same_index, out_dtype(lowering))


@lowers("copy", "copy_")
def copy(lowering: Lowering, x: Lazy, source: Any, non_blocking: bool = False) -> Lazy:
    return lowering.expand(lowering.cast(source, x.dtype), x.shape)


def is_cheap(lazy: Lazy) -> bool:
    """Whether a value costs no more than a read."""
    return isinstance(lazy.term, Read | Const)


__all__ = ["Calculator", "Op", "is_cheap", "out_dtype", "softplus_of", "uniform"]
