"""The teacher's rules against torch's schemas: each argument of each operation has a place in its rule, or is refused.

Every overload of every operation that a rule claims is called with each argument changed in turn, and what the teacher
writes is run in the emulator. A few calls are drawn in an ordinary run; `TILEWRIGHT_ALL_RULES=1` takes all of them.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import random
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tilewright
import torch
from tilewright.teacher import rules
from tilewright.teacher.capture import capture
from tilewright.teacher.lower import Lowering
from tilewright.teacher.sizes import Unsupported
from tilewright.teacher.teach import write
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

rules.load_rules()

NO_EFFECT = {
    "layout",
    "device",
    "pin_memory",
    "memory_format",
    "non_blocking",
    "copy",
    "implicit",
    "stride",
    "sorted",
    "stable",
    "cudnn_enable",
    "cudnn_enabled",
    "benchmark",
    "deterministic",
    "allow_tf32",
    "cuda_enabled",
    "cpu_enabled",
    "padding_idx",
    "scale_grad_by_freq",
    "sparse",
}
"""Arguments that change no element of a result on a device: what a rule may leave out."""
OWN_READERS = {
    "_convolution",
    "_reshape_alias",
    "_to_copy",
    "_unsafe_view",
    "arange",
    "chunk",
    "conv1d",
    "conv2d",
    "conv3d",
    "convert_element_type",
    "convolution",
    "eye",
    "empty",
    "empty_like",
    "expand",
    "fill",
    "flatten",
    "full",
    "full_like",
    "movedim",
    "new_empty",
    "new_full",
    "new_ones",
    "new_zeros",
    "ones",
    "ones_like",
    "permute",
    "rand",
    "rand_like",
    "randn",
    "randn_like",
    "reshape",
    "reshape_as",
    "scalar_tensor",
    "split",
    "split_with_sizes",
    "std",
    "std_mean",
    "swapaxes",
    "tensor_split",
    "to",
    "transpose",
    "type_as",
    "unbind",
    "unflatten",
    "unsafe_chunk",
    "unsafe_split",
    "upsample_nearest1d",
    "upsample_nearest2d",
    "upsample_nearest3d",
    "var",
    "var_mean",
    "view",
    "view_as",
    "zeros",
    "zeros_like",
    "sort",
    "argsort",
    "rrelu",
    "rrelu_with_noise",
}
"""Rules that take `*args` and look at them, or at the traced result: their calls below say whether they do."""
UNPREDICTED = {
    "rand",
    "rand_like",
    "randn",
    "randn_like",
    "bernoulli",
    "bernoulli_",
    "empty",
    "empty_like",
    "new_empty",
}


def overloads() -> Iterator[tuple[str, Any]]:
    """Every overload that a rule claims: those on tensors, without names of dimensions and without `out`."""
    for name in sorted(rules.RULES):
        for library in ("prims",) if name in rules.PRIMS else ("aten",):
            packet = getattr(getattr(torch.ops, library), name, None)
            assert packet is not None, f"a rule for {library}.{name}, which torch does not have"
            for overload in packet.overloads():
                found = getattr(packet, overload)
                kinds = [str(a.type) for a in found._schema.arguments]
                named = any(
                    "str" in k and "Dim" in repr(a) for k, a in zip(kinds, found._schema.arguments, strict=True)
                )
                results = [str(r.type) for r in found._schema.returns]
                tensors = all("Tensor" in r for r in results) and results
                if tensors and not named and not any(a.is_out for a in found._schema.arguments):
                    yield name, found


CLAIMED = list(overloads())


@pytest.mark.parametrize("name", sorted(rules.RULES))
def test_every_argument_has_a_place(name: str) -> None:
    signature = inspect.signature(rules.RULES[name])
    for found in (o for n, o in CLAIMED if n == name):
        arguments = found._schema.arguments
        given = [a.name for a in arguments if not a.kwarg_only]
        named = {a.name: a.name for a in arguments if a.kwarg_only}
        try:
            bound = signature.bind("lowering", *given, **named).arguments
        except TypeError:
            with pytest.raises(Unsupported):
                Lowering.apply(None, rules.RULES[name], found, given, named)  # type: ignore[arg-type]
            continue
        loose: set[str] = set()
        for place, parameter in signature.parameters.items():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                loose |= set(bound.get(place, ()))
        if name not in OWN_READERS:
            assert loose <= NO_EFFECT, f"{found}: the rule leaves out {sorted(loose - NO_EFFECT)}"


# calls ------------------------------------------------------------------------------------------------------------


def floats(*shape: int, low: float = -2.0) -> torch.Tensor:
    return torch.rand(shape) * (2.0 - low) + low


def integers(*shape: int, high: int = 4) -> torch.Tensor:
    return torch.randint(0, high, shape)


X = lambda: floats(4, 6)  # noqa: E731
IMAGE = lambda: floats(2, 4, 6, 6)  # noqa: E731
SEQUENCE = lambda: floats(2, 4, 9)  # noqa: E731
VOLUME = lambda: floats(1, 2, 4, 4, 4)  # noqa: E731
BY_RANK = {"1d": SEQUENCE, "2d": IMAGE, "3d": VOLUME}
CALLS: dict[str, list[Any]] = {
    "matmul": [X, lambda: floats(6, 5)],
    "mm": [X, lambda: floats(6, 5)],
    "linalg_matmul": [X, lambda: floats(6, 5)],
    "bmm": [lambda: floats(2, 4, 6), lambda: floats(2, 6, 5)],
    "mv": [X, lambda: floats(6)],
    "dot": [lambda: floats(6), lambda: floats(6)],
    "linear": [X, lambda: floats(5, 6), lambda: floats(5)],
    "addmm": [lambda: floats(5), X, lambda: floats(6, 5)],
    "addmv": [lambda: floats(4), X, lambda: floats(6)],
    "baddbmm": [lambda: floats(2, 4, 5), lambda: floats(2, 4, 6), lambda: floats(2, 6, 5)],
    "_cdist_forward": [X, lambda: floats(3, 6), 2.0, None],
    "searchsorted": [lambda: floats(6).sort().values, X],
    "bucketize": [X, lambda: floats(6).sort().values],
    "addbmm": [lambda: floats(4, 5), lambda: floats(2, 4, 6), lambda: floats(2, 6, 5)],
    "bilinear": [X, lambda: floats(4, 3), lambda: floats(2, 6, 3), lambda: floats(2)],
    "einsum": ["ab,cb->ac", [X, X]],
    "embedding": [X, lambda: integers(5)],
    "embedding_bag": [X, lambda: integers(3, 2)],
    "one_hot": [lambda: integers(5), 4],
    "diag_embed": [X],
    "diag": [lambda: floats(5)],
    "roll": [X, [1], [1]],
    "flip": [X, [0]],
    "repeat": [X, [2, 3]],
    "tile": [X, [2, 3]],
    "repeat_interleave": [X, 2, 1],
    "permute": [X, [1, 0]],
    "transpose": [X, 0, 1],
    "swapaxes": [X, 0, 1],
    "movedim": [X, [0], [1]],
    "t": [X],
    "view": [X, [3, 8]],
    "reshape": [X, [3, 8]],
    "_unsafe_view": [X, [3, 8]],
    "_reshape_alias": [X, [3, 8], [8, 1]],
    "view_as": [X, lambda: floats(3, 8)],
    "reshape_as": [X, lambda: floats(3, 8)],
    "unflatten": [X, 1, [2, 3]],
    "flatten": [lambda: floats(2, 3, 4)],
    "squeeze": [lambda: floats(1, 4, 1)],
    "expand": [lambda: floats(1, 6), [4, 6]],
    "broadcast_to": [lambda: floats(1, 6), [4, 6]],
    "expand_as": [lambda: floats(1, 6), X],
    "unsqueeze": [X, 1],
    "select": [X, 0, 1],
    "slice": [X, 1, 1, 5],
    "narrow": [X, 1, 1, 3],
    "split": [X, 2],
    "chunk": [X, 2],
    "split_with_sizes": [X, [1, 3]],
    "tensor_split": [X, 2],
    "unsafe_chunk": [X, 2],
    "unsafe_split": [X, 2],
    "unfold": [X, 1, 3, 2],
    "im2col": [IMAGE, [3, 3], [1, 1], [0, 0], [1, 1]],
    "pixel_shuffle": [IMAGE, 2],
    "pixel_unshuffle": [IMAGE, 2],
    "channel_shuffle": [IMAGE, 2],
    "index": [X, [lambda: integers(3), None]],
    "gather": [X, 1, lambda: integers(4, 3)],
    "index_select": [X, 1, lambda: integers(3)],
    "take_along_dim": [X, lambda: integers(4, 3), 1],
    "where": [lambda: integers(4, 6, high=2).bool(), X, X],
    "masked_fill": [X, lambda: integers(4, 6, high=2).bool(), 3.0],
    "index_add": [X, 0, lambda: integers(3), lambda: floats(3, 6)],
    "scatter_add": [X, 1, lambda: integers(4, 3), X],
    "scatter_reduce": [X, 1, lambda: integers(4, 3), X, "sum"],
    "constant_pad_nd": [X, [1, 2], 3.0],
    "pad": [X, [1, 2]],
    "softmax": [X, 1],
    "log_softmax": [X, 1],
    "_softmax": [X, 1, False],
    "_log_softmax": [X, 1, False],
    "logsumexp": [X, [1]],
    "cumsum": [X, 1],
    "cumprod": [X, 1],
    "logcumsumexp": [X, 1],
    "cummax": [X, 1],
    "cummin": [X, 1],
    "topk": [X, 3],
    "sort": [X],
    "kthvalue": [X, 2],
    "layer_norm": [X, [6], lambda: floats(6), lambda: floats(6)],
    "rms_norm": [X, [6], lambda: floats(6)],
    "native_layer_norm": [X, [6], lambda: floats(6), lambda: floats(6), 1e-5],
    "group_norm": [IMAGE, 2, lambda: floats(4), lambda: floats(4)],
    "instance_norm": [IMAGE, lambda: floats(4), lambda: floats(4), None, None, True, 0.1, 1e-5, False],
    "batch_norm": [
        IMAGE,
        lambda: floats(4),
        lambda: floats(4),
        lambda: floats(4),
        lambda: floats(4, low=1),
        False,
        0.1,
        1e-5,
        False,
    ],
    "scaled_dot_product_attention": [
        lambda: floats(1, 4, 5, 8),
        lambda: floats(1, 4, 5, 8),
        lambda: floats(1, 4, 5, 8),
    ],
    "cross_entropy_loss": [X, lambda: integers(4)],
    "nll_loss": [X, lambda: integers(4)],
    "nll_loss_nd": [X, lambda: integers(4)],
    "nll_loss2d": [IMAGE, lambda: integers(2, 6, 6)],
    "lstm": [
        lambda: floats(3, 2, 5),
        [lambda: floats(1, 2, 4)] * 2,
        [lambda: floats(16, 5), lambda: floats(16, 4)],
        False,
        1,
        0.0,
        False,
        False,
        False,
    ],
    "gru": [
        lambda: floats(3, 2, 5),
        lambda: floats(1, 2, 4),
        [lambda: floats(12, 5), lambda: floats(12, 4)],
        False,
        1,
        0.0,
        False,
        False,
        False,
    ],
    "rnn_tanh": [
        lambda: floats(3, 2, 5),
        lambda: floats(1, 2, 4),
        [lambda: floats(4, 5), lambda: floats(4, 4)],
        False,
        1,
        0.0,
        False,
        False,
        False,
    ],
    "rnn_relu": [
        lambda: floats(3, 2, 5),
        lambda: floats(1, 2, 4),
        [lambda: floats(4, 5), lambda: floats(4, 4)],
        False,
        1,
        0.0,
        False,
        False,
        False,
    ],
    "full": [[4, 6], 2.5],
    "full_like": [X, 2.5],
    "new_full": [X, [3], 2.5],
    "fill": [X, 2.5],
    "scalar_tensor": [2.5],
    "zeros": [[4, 6]],
    "ones": [[4, 6]],
    "new_zeros": [X, [3]],
    "new_ones": [X, [3]],
    "arange": [7],
    "eye": [5],
    "copy": [X, lambda: floats(6)],
    "copy_": [X, lambda: floats(6)],
    "type_as": [X, lambda: integers(3)],
    "convert_element_type": [X, torch.float16],
    "dropout": [X, 0.5, False],
    "feature_dropout": [IMAGE, 0.5, False],
    "alpha_dropout": [X, 0.5, False],
    "prelu": [X, lambda: floats(6)],
    "_prelu_kernel": [X, lambda: floats(4, 1)],
    "lift_fresh_copy": [X],
    "mT": [lambda: floats(2, 3, 4)],
    "convolution": [IMAGE, lambda: floats(6, 2, 3, 3), lambda: floats(6), [1, 1], [0, 0], [1, 1], False, [0, 0], 2],
    "_convolution": [
        IMAGE,
        lambda: floats(6, 2, 3, 3),
        lambda: floats(6),
        [1, 1],
        [0, 0],
        [1, 1],
        False,
        [0, 0],
        2,
        False,
        False,
        False,
        False,
    ],
}
"""Base calls of operations that take more than tensors of one shape. What is not here is worked out by `base_call`."""
OTHERS: dict[str, list[Any]] = {
    "dim": [0, -1, [0], [0, -1], 1],
    "keepdim": [True],
    "dtype": [torch.float64, torch.float16, torch.int32],
    "correction": [0, 2],
    "unbiased": [False],
    "reduction": [0, 2],
    "alpha": [2, 0.5],
    "beta": [0.5, 0, 2.0],
    "value": [2.0, -1.0],
    "approximate": ["tanh"],
    "rounding_mode": ["floor", "trunc"],
    "scale": [0.3, 2.0],
    "input_scale": [0.5],
    "negative_slope": [0.3],
    "threshold": [0.3],
    "lambd": [0.2],
    "eps": [0.5, 0.01],
    "min": [-0.5, None],
    "max": [0.5],
    "min_val": [-0.2],
    "max_val": [0.3],
    "stride": [[2], 2, [1]],
    "padding": [[1], 1, "same", "valid"],
    "dilation": [[2], 2],
    "ceil_mode": [True],
    "count_include_pad": [False],
    "divisor_override": [3],
    "groups": [2],
    "output_padding": [[1]],
    "diagonal": [1, -1],
    "offset": [1],
    "dim1": [1, -2],
    "dim2": [-1, 2],
    "p": [1, 3, float("inf"), 0],
    "ord": [1, float("inf"), 0, 3],
    "weight": [None],
    "bias": [None],
    "delta": [0.3],
    "label_smoothing": [0.1],
    "ignore_index": [1],
    "log_target": [True],
    "margin": [0.3],
    "is_causal": [True],
    "enable_gqa": [True],
    "half_to_float": [True],
    "largest": [False],
    "descending": [True],
    "attn_mask": [lambda: floats(5, 5)],
    "mode": ["reflect", "replicate", "circular"],
    "start": [1, -2, None],
    "end": [3, -1, None],
    "step": [2],
    "start_dim": [1],
    "end_dim": [-2],
    "shifts": [[2], [-1]],
    "dims": [[1], [0, 1]],
    "reduce": ["amax", "mean", "prod"],
    "include_self": [False],
    "bidirectional": [True],
    "transposed": [True],
    "training": [True],
    "train": [True],
    "use_input_stats": [False],
    "scale_factors": [[2.0, 2.0]],
    "scales": [2.0],
    "align_corners": [True],
    "pos_weight": [lambda: floats(6, low=0.5)],
    "n": [3],
    "m": [3],
    "sections": [3],
    "chunks": [4],
    "split_size": [3, 4],
    "index": [2, -1],
    "repeats": [3],
    "output_size": [[1], [2], [4]],
    "other": [lambda: floats(6), 2, 0.5],
    "tensor2": [lambda: floats(6, low=0.5)],
    "exponent": [2, 3, -1, 0.5, 1.5],
    "self": [
        lambda: integers(4, 6),
        lambda: floats(4, 6).half(),
        lambda: floats(4, 6).double(),
        lambda: floats(4, 6) > 0,
    ],
}
"""Values to try for an argument, by its name, apart from those of the base call."""
BASES: dict[str, Any] = {
    "Scalar": 2,
    "float": 0.5,
    "int": 1,
    "bool": False,
    "number": 2,
    "str": "none",
    "SymInt": 1,
}


def base_call(name: str, found: Any) -> list[Any] | None:
    """Arguments of an ordinary call, as far as they have no defaults; None where this one does not fit."""
    label = name.rstrip("_") if name not in CALLS else name
    if label in CALLS:
        return list(CALLS[label])
    image, rank = None, 0
    for r, make in BY_RANK.items():
        if r in name:
            image, rank = make, int(r[0])
    call: list[Any] = []
    for argument in found._schema.arguments:
        if argument.has_default_value() or argument.kwarg_only:
            break
        kind = str(argument.type).removeprefix("Optional[").removesuffix("]")
        if argument.name == "weight" and "conv" in name:
            call.append(lambda: floats(4, image().shape[1], *[3] * rank))
        elif kind == "Tensor":
            call.append(image if image and argument.name in ("self", "input") else X)
        elif kind in ("List[Tensor]",):
            call.append([X, X])
        elif kind.startswith("List[int"):
            pads = "pad" in name and argument.name == "padding"
            call.append([1, 2] * rank if pads else [2] * max(rank, 1) if argument.name != "dim" else [1])
        else:
            call.append(BASES.get(kind, 2))
    return call


def calls(name: str, found: Any) -> Iterator[tuple[str, list[Any], dict[str, Any]]]:
    """The base call of an overload, and one for each other value of each argument."""
    base = base_call(name, found)
    if base is None:
        return
    arguments = found._schema.arguments
    plain = [a for a in arguments if not a.kwarg_only]
    yield f"{found}", base, {}
    for at, argument in enumerate(arguments):
        for value in OTHERS.get(argument.name, []):
            shown = value if not callable(value) else value().dtype
            if argument.kwarg_only:
                yield f"{found} {argument.name}={shown}", base, {argument.name: value}
                continue
            filled = base + [a.default_value for a in plain[len(base) : at + 1]]
            if at < len(filled):
                yield f"{found} {argument.name}={shown}", [*filled[:at], value, *filled[at + 1 :]], {}


def made(value: Any) -> Any:
    """The argument itself; tensors are made anew by each call."""
    if isinstance(value, list | tuple):
        return [made(v) for v in value]
    return value() if callable(value) and not isinstance(value, torch.dtype) else value


TORCH_DISAGREES = {"aten.huber_loss.default self=torch.float16"}
"""Calls whose traced dtype is not that of torch's result."""
ALL = [
    (label, name, found, args, kwargs)
    for name, found in CLAIMED
    if name not in UNPREDICTED
    for label, args, kwargs in calls(name, found)
    if label not in TORCH_DISAGREES
]
DRAWN = ALL if os.environ.get("TILEWRIGHT_ALL_RULES") else random.Random(7).sample(ALL, 24)


@pytest.mark.parametrize("label", [label for label, *_ in DRAWN])
def test_a_call_is_right_or_refused(label: str, tmp_path: Path) -> None:
    _, _name, found, args, kwargs = next(row for row in DRAWN if row[0] == label)
    torch.manual_seed(5)
    args, kwargs = made(args), made_all(kwargs)
    leaves, tree = tree_flatten((args, kwargs))
    slots = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    given = [leaves[i] for i in slots] or [torch.zeros(1)]

    def call(*tensors: torch.Tensor) -> Any:
        filled = list(leaves)
        for slot, tensor in zip(slots, tensors, strict=False):
            filled[slot] = tensor.clone()
        inner, named = tree_unflatten(filled, tree)
        return found(*inner, **named)

    try:
        draws = [call(*given)]
    except Exception as error:
        pytest.skip(f"torch refuses it: {error}")
    if torch.Tag.nondeterministic_seeded in found.tags:
        draws += [call(*given) for _ in range(63)]
    check_call(call, given, draws, tmp_path)


def made_all(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {k: made(v) for k, v in kwargs.items()}


def check_call(call: Any, tensors: list[torch.Tensor], draws: list[Any], folder: Path) -> None:
    """What the teacher writes for a call gives torch's result, or one like those that torch draws, unless it says why
    not."""
    held = types.ModuleType("rule_sample")
    held.call, held.tensors = call, tensors  # type: ignore[attr-defined]
    names = ", ".join("abcdefgh"[: len(tensors)])
    path = folder / "problem.py"
    path.write_text(
        "import torch\nimport torch.nn as nn\nimport rule_sample\n\n\nclass Model(nn.Module):\n"
        f"    def forward(self, {names}):\n        return rule_sample.call({names})\n\n\n"
        "def get_inputs():\n    return [t.clone() for t in rule_sample.tensors]\n\n\n"
        "def get_init_inputs():\n    return []\n"
    )
    sys.modules["rule_sample"] = held
    try:
        try:
            source = write(capture(str(path)), {})
        except Unsupported as reason:
            assert str(reason)
            pytest.skip(f"refused: {reason}")
        file = folder / "candidate.py"
        file.write_text(source)
        spec = importlib.util.spec_from_file_location("candidate", file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        with torch.no_grad(), tilewright.emulate():
            got = module.ModelNew()(*(t.clone() for t in tensors))
    finally:
        del sys.modules["rule_sample"]
    for a, *drawn in zip(tree_leaves(got), *map(tree_leaves, draws), strict=True):
        b = drawn[0]
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        if any(not torch.equal(b, other) for other in drawn[1:]):
            check_drawn(a.double(), torch.stack(drawn).double())
            continue
        tolerance = {torch.float16: 4e-3, torch.bfloat16: 3e-2}.get(b.dtype, 1e-4)
        if not b.is_floating_point():
            assert torch.equal(a, b)
            continue
        gap = (a.double() - b.double()).abs()
        near = (gap <= tolerance * (1 + b.double().abs())) | (a == b) | (a.isnan() & b.isnan())
        assert bool(near.all()), (a, b)


def check_drawn(got: torch.Tensor, draws: torch.Tensor) -> None:
    """Random numbers like those of other draws: an element that has one of two values in those has one of these, and
    elements that change together do so; others lie where the draws do."""
    got, draws = got.flatten(), draws.flatten(1)
    low, high = draws.amin(0), draws.amax(0)
    slack = 4e-3 * (1 + high.abs().maximum(low.abs()))
    two = ((draws == low) | (draws == high)).all(0)
    near = ((got - low).abs() <= slack) | ((got - high).abs() <= slack)
    assert bool(near[two].all()), (got, low, high)
    wide = slack + 0.2 * (high - low)
    assert bool(((got >= low - wide) & (got <= high + wide)).all()), (got, low, high)
    sides: dict[tuple[bool, ...], set[bool]] = {}
    for at in (two & (high - low > 4 * slack)).nonzero().flatten().tolist():
        pattern = tuple((draws[:, at].abs() > draws[:, at].abs().mean()).tolist())
        sides.setdefault(pattern, set()).add(bool(got[at].abs() > (low[at].abs() + high[at].abs()) / 2))
    assert all(len(side) == 1 for side in sides.values()), sides


@pytest.mark.parametrize("name", ["dropout", "feature_dropout"])
def test_what_is_dropped_is_drawn_anew_and_together(name: str, tmp_path: Path) -> None:
    torch.manual_seed(5)
    found, image = getattr(torch.ops.aten, name).default, IMAGE()
    draws = [found(image, 0.5, True) for _ in range(64)]
    check_call(lambda x: found(x, 0.5, True), [image], draws, tmp_path)
    check_drawn(draws[0].double(), torch.stack(draws[1:]).double())
    one = draws[0].clone()
    for broken in (one + 0.1 * (one != 0), image, image.new_zeros(()).expand(image.shape) + 9.0):
        with pytest.raises(AssertionError):
            check_drawn(broken.double(), torch.stack(draws).double())


def test_operations_with_operands_of_products_are_known_by_their_whole_names() -> None:
    """`convert_element_type` is no convolution, and `upsample_bilinear2d` no linear layer."""

    def feeds(target: Any) -> bool:
        graph = torch.fx.Graph()
        x = graph.placeholder("x")
        graph.output(graph.call_function(torch.ops.aten.relu.default, (graph.call_function(target, (x,)),)))
        return rules.feeds_no_template(x)

    aten, prims = torch.ops.aten, torch.ops.prims
    products = [aten.mm, aten.bmm, aten.linear, aten.conv2d, aten.convolution, aten.scaled_dot_product_attention]
    others = [prims.convert_element_type, aten.upsample_bilinear2d, aten.lgamma, aten.cummax, aten._adaptive_avg_pool2d]
    assert not any(feeds(packet.default) for packet in products)
    assert all(feeds(getattr(packet, packet.overloads()[0])) for packet in others)
    assert all(name in rules.RULES for name in rules.TEMPLATES)
