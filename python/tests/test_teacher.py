"""What the offline teacher writes, run in the emulator and held against torch: operations, shapes, variants."""

from __future__ import annotations

import ast
import importlib.util
import itertools
import re
from pathlib import Path
from typing import Any

import pytest
import tilewright
import torch
from tilewright.cell import gradients, oracle_problem
from tilewright.cell import teach as job
from tilewright.teacher import gradients as derivatives
from tilewright.teacher import rewrites
from tilewright.teacher.capture import capture
from tilewright.teacher.device import DEVICES, device_of
from tilewright.teacher.sizes import FloorDiv, Sizes, Unsupported, text
from tilewright.teacher.teach import VARIANTS, teach, write
from torch.utils._pytree import tree_leaves, tree_map_only

REPOSITORY = Path(__file__).resolve().parents[2]
TOLERANCE = {torch.float32: 4e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3, torch.float64: 1e-13}

TEMPLATE = """
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

TRAINING = False
CASES = [{cases}]
{constants}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {setup}

    def forward(self, {arguments}):
        {body}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""


def problem(
    folder: Path, body: str, inputs: list[str], setup: str = "pass", constants: str = "", cases: str = ""
) -> str:
    """A problem file with this `forward`."""
    arguments = ", ".join("xyz"[: len(inputs)])
    made = folder / "problem.py"
    made.write_text(
        TEMPLATE.format(
            body=body, inputs=", ".join(inputs), arguments=arguments, setup=setup, constants=constants, cases=cases
        )
    )
    return str(made)


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compare(path: str, source: str, folder: Path) -> None:
    """The candidate against float64, in every case of the problem: outputs, inputs and state."""
    file = folder / "candidate.py"
    file.write_text(source)
    text_of = oracle_problem.read_source(path)
    base = oracle_problem.load(path, text_of)
    variants = [("default", base)]
    variants += [(n, oracle_problem.load(path, text_of, c)) for n, c in oracle_problem.variants(base, path)]
    for label, module in variants:
        case = oracle_problem.make_case(path, module, label)
        case.find_gradients()
        torch.manual_seed(0)
        model = case.build()
        candidate = load(file).ModelNew(*case.init_args, **case.init_kwargs).train(case.training)
        candidate.load_state_dict(model.state_dict())
        gradients.attach(candidate, case.gradients)
        native, ours = seeded(case.inputs), seeded(case.inputs)
        wide = tree_map_only(torch.Tensor, lambda t: t.double() if t.is_floating_point() else t.clone(), native)
        with torch.no_grad():
            want = case.build().double()
            want.load_state_dict(model.state_dict())
            exact, shown = want(*wide), model(*native)
            with tilewright.emulate():
                got = candidate(*ours)
        check(tree_leaves((got, ours)), tree_leaves((exact, wide)), tree_leaves((shown, native)), label)
        for name, value in model.state_dict().items():
            check([candidate.state_dict()[name]], [want.state_dict()[name]], [value], f"{label}: {name}")


def seeded(call: Any) -> Any:
    torch.manual_seed(3)
    return call()


def check(got: list[Any], exact: list[Any], native: list[Any], label: str) -> None:
    assert len(got) == len(native), label
    for a, b, c in zip(got, exact, native, strict=True):
        if not isinstance(c, torch.Tensor):
            continue
        assert (a.shape, a.dtype) == (c.shape, c.dtype), label
        if not c.is_floating_point():
            assert torch.equal(a, c), label
            continue
        scale = b.double().square().mean().sqrt() + 1e-30
        error = (a.double() - b.double()).square().mean().sqrt() / scale
        own = (c.double() - b.double()).square().mean().sqrt() / scale
        assert error <= max(TOLERANCE[c.dtype], 4 * float(own)), f"{label}: error {float(error):.1e}"


X = ["torch.randn(5, 37) * 2"]
IMAGE = ["torch.randn(2, 6, 7, 9)"]
OPERATIONS = {
    "arithmetic": ("return (x * 2 - y / 3 + 1).abs().sqrt() - x % 2", ["torch.randn(4, 9)", "torch.randn(9)"]),
    "activations": (
        "return sum(f(x) for f in (F.gelu, F.silu, F.mish, F.elu, F.selu, F.celu, F.softplus, F.hardswish))",
        X,
    ),
    "clipping": ("return F.hardtanh(x) + F.relu6(x) + x.clamp(min=0.3) + F.hardshrink(x) + F.softshrink(x)", X),
    "libdevice": ("return torch.tanh(x) + torch.expm1(x) + torch.atan(x) + torch.log1p(x.abs()) + x.abs().pow(1.7)", X),
    "comparisons": ("return torch.where((x > 0) & (x < 1) | (x < -1), x, -x), x.isnan(), x == x.round()", X),
    "integers": ("return x // 3, x % 5, x * 2 - 1, x & 6, x >> 1", ["torch.randint(-50, 50, (70,))"]),
    "reductions": (
        "return x.sum(), x.mean(1), x.amax(0), x.prod(1), x.var(1), x.std(0), (x > 0).any(1), (x > -9).all()",
        ["torch.rand(6, 21) + 0.5"],
    ),
    "indices": ("return x.argmax(1), x.argmin(0), x.max(1), x.argmax()", X),
    "norms": ("return F.normalize(x, dim=1), x.norm(p=1, dim=0), torch.linalg.vector_norm(x, float('inf'))", X),
    "normalisations": (
        "return F.rms_norm(x, (6,), y, 0.5), F.layer_norm(x, (6,), y, y, 0.5), F.rms_norm(x * 1e-3, (6,)),"
        " F.group_norm(x, 3, y, y, 0.5), F.instance_norm(x[..., None], weight=y, bias=y, eps=0.5),"
        " F.batch_norm(x, y, y, y, y, eps=0.5)",
        ["torch.randn(5, 6, 6)", "torch.rand(6) + 0.5"],
    ),
    "half normalisations": (
        "return F.rms_norm(x, (37,), None, 1e-6), F.rms_norm(x, (37,)), F.layer_norm(x, (37,), eps=1e-6)",
        ["torch.randn(5, 37, dtype=torch.float16) * 1e-3"],
    ),
    "softmaxes": ("return x.softmax(0), x.log_softmax(1), x.logsumexp(1)", X),
    "views": ("return x.t().reshape(-1)[3:90:2].flip(0), x.unflatten(1, (1, 37)).transpose(1, 2) + 1", X),
    "joins": ("return torch.cat([x, x * 2, x[:, :3]], 1), torch.stack([x, -x], 1), x.roll(3, 1), x.repeat(2, 1)", X),
    "pads": ("return F.pad(x, (1, 2, 0, 3), value=5.0), F.pad(x, (2, 2), mode='reflect'), x.tril(), x.triu(1)", X),
    "gathers": (
        "return x[y], x.gather(0, y[:, None].expand(4, 37)), x.index_select(0, y)",
        [*X, "torch.tensor([1, 4, 0, 1])"],
    ),
    "gathers in views": (
        "v = x.view(7, 5)\n"
        "        return v.gather(1, y), v[y[:, 0] % 7], v.view(7, 1, 5)[:, :, y[0]], v.index_select(1, y[1])",
        ["torch.randn(5, 7)", "torch.randint(0, 5, (7, 3))"],
    ),
    "gathers at a row's own result": (
        "return x - x.gather(1, x.argmax(1, keepdim=True)), x * y.gather(0, x.argmin(0, keepdim=True)),"
        " x[:, :3] - x[:, :3].gather(1, x[:, :3].argmax(1, keepdim=True)), x * y[0][x.argmax(1)][:, None]",
        ["torch.randn(80, 600)", "torch.randn(80, 600)"],
    ),
    "gathers at a long row's own result": (
        "return x - x.gather(1, x.argmax(1, keepdim=True))",
        ["torch.randn(2, 40000)"],
    ),
    "the largest few": (
        "return x.topk(3, 1), x.topk(1, 0), x.topk(30, 1, largest=False), x.kthvalue(2, 1), x.median(1)",
        ["torch.randperm(5 * 37).view(5, 37) / 7 - 9"],
    ),
    "the largest few halves": (
        "return x.topk(3, 1), x.half().topk(1, 0), x.short().topk(30, 1, largest=False), x.half().median(1)",
        ["torch.randperm(5 * 37).view(5, 37).bfloat16() - 90"],
    ),
    "order of equal halves": (
        "z = torch.where(x == 5, math.nan, torch.where(x == 4, math.inf, x) / -1)\n"
        "        return [z.sort(stable=True, dim=0, descending=d)[1] for d in (False, True)]",
        ["torch.tensor([0.0, 3, 5, 4, -0.0, -1, 3, 5, 0, -7, 1e-7, -3, 1]).half()"],
    ),
    "scatters": ("return x.new_zeros(7, 37).index_add(0, y, x)", [*X, "torch.tensor([1, 4, 0, 1, 6])"]),
    "scans": ("return x.cumsum(1), x.cumsum(0), x.cumprod(1), x.flip(1).cumsum(1)", ["torch.rand(5, 37) + 0.5"]),
    "scans of terms": (
        "return (x + y[:, None]).cumsum(1), (x + y[:, None]).cumsum(0), (1 + 0.1 * x * y[:, None]).cumprod(0),"
        " (x - y[:, None]).logcumsumexp(0), (x * y[:, None]).cummax(1)[0], y[:, None].expand(5, 37).cumsum(1) * x,"
        " y[:, None].expand(5, 37).cumsum(0) * x, y[:, None].expand(5, 37).cummin(1)[0] * x",
        ["torch.rand(5, 37) + 0.5", "torch.rand(5)"],
    ),
    "scans of single elements": (
        "z = x.sum(1, keepdim=True)\n"
        "        return z.cumsum(1), (z + 1).cumprod(-1), z.logcumsumexp(1), z.cummax(1), x[:1, :1].cumsum(0) * 2",
        ["torch.rand(5, 37)"],
    ),
    "rolls": (
        "return x.roll(3, 1), x.roll(37, 1), x[:1].roll(1, 0) * 2, x.roll((-1, 2), (0, 1))",
        ["torch.rand(5, 37)"],
    ),
    "products": ("return x @ y, y.t() @ x.t(), (x @ y).tril(), x[0] @ y, x @ y[:, 0]", [*X, "torch.randn(37, 18)"]),
    "batched": ("return x @ y, torch.einsum('bij,bkj->bik', x, x)", ["torch.randn(3, 5, 7)", "torch.randn(3, 7, 4)"]),
    "pools": (
        "return F.max_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 2), F.adaptive_avg_pool2d(x, (3, 2)),"
        " F.avg_pool2d(x, 3, 2, 1, True, False)",
        IMAGE,
    ),
    "places of pools whose windows are as small as the padding": (
        "z, pool = torch.where(x > 0, x, -math.inf), F.max_pool2d\n"
        "        return [pool(t, 3, 2, 1, return_indices=True)[1] for t in (z, z - math.inf, y)],"
        " pool(z, 2, 1, 1, 2, True, return_indices=True)[1],"
        " pool(z - math.inf, (3, 2), 2, (1, 1), (3, 2), return_indices=True)[1],"
        " F.max_pool1d(z[0, 0], 5, 1, 2, return_indices=True)[1], F.max_pool3d(z, 2, 2, 1, return_indices=True)[1],"
        " F.adaptive_max_pool2d(z - math.inf, 3, return_indices=True)[1]",
        [*IMAGE, "torch.full((1, 1, 5, 4), -(2**31), dtype=torch.int32)"],
    ),
    "upsampling": ("return F.interpolate(x, scale_factor=2), F.pixel_shuffle(x[:, :4], 2)", IMAGE),
    "losses": (
        "return F.mse_loss(x, y), F.huber_loss(x, y), F.smooth_l1_loss(x, y), F.l1_loss(x, y, reduction='sum'),"
        " F.cosine_similarity(x, y), F.kl_div(x.log_softmax(1), y.softmax(1), reduction='batchmean')",
        [*X, *X],
    ),
    "cross entropy": (
        "return F.cross_entropy(x, y), F.cross_entropy(x, y, label_smoothing=0.1),"
        " F.cross_entropy(x, y, reduction='none')",
        [*X, "torch.tensor([1, 36, -100, 0, 5])"],
    ),
    "attention": (
        "return F.scaled_dot_product_attention(x, x, x, is_causal=True),"
        " F.scaled_dot_product_attention(x, x, x, attn_mask=y)",
        ["torch.randn(1, 2, 19, 8)", "torch.rand(19, 19) > 0.2"],
    ),
    "halves": ("return (x @ x.t()).softmax(1), F.gelu(x).sum(1)", ["torch.randn(9, 20, dtype=torch.float16)"]),
    "doubles": ("return x @ x.t(), x.exp().mean(1)", ["torch.randn(9, 20, dtype=torch.float64)"]),
    "places": (
        "return x.index_fill(1, y, 3.0), torch.bucketize(z / z * z, z + 0.5)",
        [*X, "torch.tensor([-1, 0])", "torch.tensor([0.0, 1.0, 2.0])"],
    ),
    "structures": ("return {'a': x + 1, 'b': [x.sum(1), (x, 3)]}", X),
    "in place": ("x.mul_(2).add_(1); return x.sum(1)", X),
    "long rows": ("return x.mean(1), x.var(1), x.argmax(1), (x - 1).square().mean()", ["torch.randn(3, 90000) + 4"]),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(name: str, tmp_path: Path) -> None:
    body, inputs = OPERATIONS[name]
    path = problem(tmp_path, body, inputs)
    compare(path, write(capture(path), {}), tmp_path)


CONVOLUTIONS = {
    "1d": ("nn.Conv1d(4, 5, 3, stride=2, dilation=2)", "torch.randn(2, 4, 19)"),
    "2d": ("nn.Conv2d(4, 6, (3, 2), stride=(1, 2), padding=(2, 1), groups=2)", "torch.randn(2, 4, 8, 7)"),
    "many channels": ("nn.Conv2d(20, 7, 3, padding=1)", "torch.randn(1, 20, 5, 6)"),
    "3d": ("nn.Conv3d(2, 3, 2, padding=1)", "torch.randn(1, 2, 4, 3, 5)"),
    "depthwise": ("nn.Conv2d(4, 8, 3, groups=4)", "torch.randn(2, 4, 8, 7)"),
    "transposed 1d": ("nn.ConvTranspose1d(4, 5, 3, stride=2, padding=1, dilation=2)", "torch.randn(2, 4, 9)"),
    "transposed 2d": (
        "nn.ConvTranspose2d(4, 6, (3, 4), stride=(2, 3), padding=(1, 0), output_padding=(1, 2), groups=2)",
        "torch.randn(2, 4, 5, 4)",
    ),
    "transposed 3d": ("nn.ConvTranspose3d(2, 3, 3, stride=2)", "torch.randn(1, 2, 3, 2, 3)"),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_with_an_epilogue(name: str, tmp_path: Path) -> None:
    layer, inputs = CONVOLUTIONS[name]
    path = problem(tmp_path, "return F.leaky_relu(self.layer(x) * 2, 0.1)", [inputs], setup=f"self.layer = {layer}")
    compare(path, write(capture(path), {}), tmp_path)


@pytest.mark.parametrize(
    "layer", ["nn.GRU(5, 8, bidirectional=True)", "nn.LSTM(5, 8, 2, batch_first=True)", "nn.RNN(5, 8)"]
)
def test_recurrent_layers(layer: str, tmp_path: Path) -> None:
    path = problem(tmp_path, "return self.layer(x)", ["torch.randn(3, 4, 5)"], setup=f"self.layer = {layer}")
    compare(path, write(capture(path), {}), tmp_path)


def test_sizes_are_read_from_the_tensors_of_each_call(tmp_path: Path) -> None:
    path = problem(
        tmp_path,
        "return torch.relu(x @ y).view(-1, 2).sum(1)",
        ["torch.randn(ROWS, INNER)", "torch.randn(INNER, 6)"],
        constants="ROWS, INNER = 8, 20",
        cases='{"ROWS": 1, "INNER": 1}, {"ROWS": 33, "INNER": 65}',
    )
    compare(path, write(capture(path), {}), tmp_path)


MODULES = ["layers/softmax", "layers/matmul_square", "fused/conv_group_norm_softmax_lse", "networks/transformer_block"]
MODULES += ["gradients/swiglu_mlp", "gradients/group_norm", "gradients/conv2d_strided_relu", "gradients/cosine_loss"]


@pytest.mark.parametrize("name", MODULES)
def test_modules(name: str, tmp_path: Path) -> None:
    path = str(REPOSITORY / "examples/modules" / f"{name}.py")
    compare(path, write(capture(path), {}), tmp_path)


GRADIENTS = {
    "two outputs, one without a gradient": ("return {'a': x.exp() * y, 'b': (y.sum(0), x.argmax(-1))}", ["x", "y"]),
    "outputs in another order than their names": ("return {'b': x.exp() * y, 'a': [y.sum(), x * x]}", ["x", "y"]),
    "an argument that is not asked for": ("return (x * y).softmax(0)", ["x"]),
    "extents that only the inputs have": ("return x.mean() * y.sum(0, keepdim=True)", ["x", "y"]),
    "windows": ("return F.max_pool2d(x[None, None], 2) + F.avg_pool2d(y[None, None], 2)", ["x", "y"]),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str, tmp_path: Path) -> None:
    body, wanted = GRADIENTS[name]
    path = problem(tmp_path, body, ["torch.randn(6, 9)", "torch.randn(6, 9)"], constants=f"GRADIENTS = {wanted}")
    compare(path, write(capture(path), {}), tmp_path)


@pytest.mark.parametrize("axis", [0, 1])
def test_the_gradient_of_a_softmax_that_one_element_takes_is_no_difference_of_equal_numbers(
    axis: int, tmp_path: Path
) -> None:
    inputs = ["(torch.randn(9, 9) + torch.eye(9) * 14)"]
    path = problem(tmp_path, f"return x.softmax({axis})", inputs, constants="GRADIENTS = True")
    file = tmp_path / "candidate.py"
    file.write_text(write(capture(path), {}))
    torch.manual_seed(3)
    x, grad = (torch.randn(9, 9) + torch.eye(9) * 14).requires_grad_(), torch.randn(9, 9)
    with tilewright.emulate():
        (got,) = torch.autograd.grad(load(file).ModelNew()(x), x, grad)
    wide = x.detach().double().requires_grad_()
    (want,) = torch.autograd.grad(wide.softmax(axis), wide, grad.double())
    assert bool(((got - want).abs() <= 2e-5 * want.abs().amax(axis, True)).all())
    (native,) = torch.autograd.grad(x.softmax(axis), x, grad)
    assert bool(((native - want).abs() > 2e-5 * want.abs().amax(axis, True)).any()), "this says nothing"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("return F.dropout(x, 0.5) * y", "random numbers"),
        ("y.copy_(x.detach())\n        return x * y", "changes a tensor"),
        ("return x * int(y[0])", "cannot be traced"),
    ],
)
def test_gradients_that_are_not_written_have_a_reason(body: str, reason: str, tmp_path: Path) -> None:
    path = problem(tmp_path, body, ["torch.randn(6)", "torch.randn(6)"], constants='GRADIENTS = ("x",)')
    with pytest.raises((Unsupported, oracle_problem.ProblemError), match=reason):
        write(capture(path), {})


def test_the_gradient_of_a_softmax_of_doubles_is_one_of_doubles() -> None:
    y, grad = torch.rand(4, 9, dtype=torch.float64).softmax(1), torch.randn(4, 9, dtype=torch.float64)
    want = torch.ops.aten._softmax_backward_data(grad, y, 1, torch.float64)
    torch.testing.assert_close(derivatives._softmax_backward(grad, y, 1, torch.float64), want)


@pytest.mark.parametrize("q", [0.0, 0.25, 0.4, 0.5, 1.0])
def test_quantiles_are_torch_s(q: float) -> None:
    x = torch.randn(4, 5)
    x[1, :2], x[2, 3], x[3, 0] = torch.inf, torch.nan, -torch.inf
    torch.testing.assert_close(rewrites.quantile(x, q, 1), torch.quantile(x, q, 1), equal_nan=True)


NAN = {
    "element by element": "return F.relu(x), x.clamp(-1, 1), x.clamp(max=y), F.relu6(x), F.hardswish(x), F.softplus(x),"
    " F.hardshrink(x), F.softshrink(x), F.threshold(x, 0.1, 3.0), torch.maximum(x, y), torch.minimum(y, x), x.sign(),"
    " x.half().relu(), x.double().clamp(0, 1)",
    "extremes": "return x.amax(1), x.amin(0), x.max(1)[0], x.max(), x.half().amin(1), x.norm(math.inf, 1), x[0].amax(),"
    " F.softmax(x, 1), torch.logsumexp(x, 0)",
    "extremes of long rows": "z = torch.cat([y] * 300 + [x], 1)\n        return z.amax(1), z.amin(), F.softmax(z, 1)",
    "pools": "z = x[None, None]\n        return F.max_pool2d(z, 3, 2, 1), F.adaptive_max_pool2d(z, (2, 3)),"
    " F.adaptive_max_pool1d(x, 1), F.adaptive_max_pool1d(x, 5)",
    "running": "z = torch.cat([x, *[y] * 150], 1)\n        return *x.cummax(1), *x.cummin(0), *z.cummax(1),"
    " z.logcumsumexp(1)",
}


@pytest.mark.parametrize("name", NAN)
def test_nan_stays_where_torch_has_it(name: str, tmp_path: Path) -> None:
    """Triton's own extremes leave NaN out."""
    x = "torch.where(torch.rand(5, 37) < 0.05, math.nan, torch.randn(5, 37))"
    path = problem(tmp_path, NAN[name], [x, "torch.randn(5, 37)"])
    file = tmp_path / "candidate.py"
    file.write_text(write(capture(path), {}))
    case = oracle_problem.make_case(path, oracle_problem.load(path, oracle_problem.read_source(path)), "default")
    given = seeded(case.inputs)
    with tilewright.emulate():
        got = load(file).ModelNew()(*given)
    for at, (mine, want) in enumerate(zip(got, case.build()(*given), strict=True)):
        assert torch.equal(mine.isnan(), want.isnan()), at
        torch.testing.assert_close(mine, want, equal_nan=True, msg=str(at))


PAIRS = {
    "distances": "return torch.cdist(x, y), torch.cdist(x, y, p=1.0) * 2",
    "of one tensor": "return (x[:, None] - x[None]).abs().amax(-1) + x[:, :1]",
    "in batches": "return torch.cdist(x.view(2, 20, 37), y.view(5, 7, 37)[:2]).relu()",
    "even": "return ((x[:, None, :32] * y[None, :, :32]).sigmoid()).sum(-1)",
}


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_of_rows(name: str, tmp_path: Path) -> None:
    path = problem(tmp_path, PAIRS[name], ["torch.randn(40, 37)", "torch.randn(35, 37)"])
    source = write(capture(path), {"pairs": 2})
    assert "pairs of rows" in source
    compare(path, source, tmp_path)


def test_a_padding_word_of_number_zero_is_no_plain_word(tmp_path: Path) -> None:
    setup = "self.layer = nn.EmbeddingBag(9, 4, padding_idx=0)"
    with pytest.raises(Unsupported, match="bags"):
        write(capture(problem(tmp_path, "return self.layer(x)", ["torch.randint(0, 9, (5, 3))"], setup=setup)), {})


def test_a_result_without_elements_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="without any"):
        write(capture(problem(tmp_path, "return x.tile(0, 1)", X)), {})


def test_every_variant_is_right_and_differs(tmp_path: Path) -> None:
    path = problem(
        tmp_path,
        "return F.gelu(self.conv(x)).softmax(-1), self.linear(y), F.scaled_dot_product_attention(z, z, z)",
        ["torch.randn(1, 4, 6, 40)", "torch.randn(70, 64)", "torch.randn(1, 1, 20, 16)"],
        setup="self.conv, self.linear = nn.Conv2d(4, 5, 3), nn.Linear(64, 80)",
    )
    found, notes = teach(path, most=100)
    assert not notes
    assert [t.variant for t in found] == [n for n, _, _ in VARIANTS if n in {t.variant for t in found}]
    assert len(found) >= 8
    assert len({t.source for t in found}) == len(found)
    for taught in found:
        compare(path, taught.source, tmp_path)


def test_halves_are_rounded_where_the_reference_rounds(tmp_path: Path) -> None:
    path = problem(tmp_path, "return x * 1.1 - y * 0.3", ["torch.randn(64, 70, dtype=torch.bfloat16)"] * 2)
    (tmp_path / "rounded.py").write_text(write(capture(path), {}))
    x, y = load(Path(path)).get_inputs()
    with tilewright.emulate():
        got = load(tmp_path / "rounded.py").ModelNew()(x, y)
    assert torch.equal(got, x * 1.1 - y * 0.3)


def test_the_text_is_plain_triton() -> None:
    path = str(REPOSITORY / "examples/modules/networks/transformer_block.py")
    source = write(capture(path), {})
    names = {a.name for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Import | ast.ImportFrom) for a in n.names}
    assert names <= {"torch", "torch.nn", "triton", "triton.language", "libdevice"}
    forward = next(n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef) and n.name == "forward")
    calls = {ast.unparse(n.func) for n in ast.walk(forward) if isinstance(n, ast.Call)}
    assert {c for c in calls if c.startswith("torch.")} == {"torch.empty"}
    kernels = [n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef)]
    bodies = [ast.unparse(ast.Module(k.body, [])) for k in kernels]
    assert len(set(bodies)) == len(bodies)
    assert all(ast.get_docstring(k) for k in kernels)


def test_a_device_is_known_by_its_architecture() -> None:
    for arch, name in {"90": "sm_90", "sm_90a": "sm_90", "100a": "sm_100", "sm_120": "sm_120"}.items():
        assert device_of({"arch": arch}) is DEVICES[name]
    assert device_of({"arch": "gfx90a"}) is DEVICES["gfx90a"]


@pytest.mark.parametrize("arch", ["75", "sm_86", "90a", "unknown"])
def test_tiles_fit_the_architecture(arch: str, tmp_path: Path) -> None:
    path = problem(
        tmp_path,
        "return x @ x, y @ y, self.conv(z)",
        ["torch.randn(4096, 4096)", "torch.randn(4096, 4096, dtype=torch.float16)", "torch.randn(16, 64, 64, 64)"],
        setup="self.conv = nn.Conv2d(64, 128, 3)",
    )
    device = device_of({"arch": arch})
    (found,), _ = teach(path, arch=arch)
    calls = re.findall(r"BLOCK_[MP]=(\d+).*?BLOCK_[NO]=(\d+).*?BLOCK_[KC]=(\d+).*?num_stages=(\d+)", found.source, re.S)
    assert len(calls) == 3
    for (rows, cols, inner, stages), size in zip(calls, (4, 2, 4), strict=True):
        assert (int(rows) + int(cols)) * int(inner) * int(stages) * size <= device.shared or int(stages) == 2
    assert ("bf16x6" in found.source) == device.bf16
    assert ("make_tensor_descriptor" in found.source) == device.block_copies


def test_the_job_says_what_it_cannot_write(tmp_path: Path) -> None:
    path = problem(tmp_path, "return torch.linalg.svdvals(x)", X)
    request = {"problem": path, "target": {}, "device": "cpu", "max": 3, "skip": [], "threads": 1}
    answer = job.run(request, "")
    assert answer["candidates"] == []
    assert len(answer["notes"]) == 1 and "svd" in answer["notes"][0]


def test_the_job_answers_alike_and_skips(tmp_path: Path) -> None:
    path = problem(tmp_path, "return x.softmax(1)", X)
    request = {"problem": path, "target": {}, "device": "cpu", "max": 9, "skip": [], "threads": 1}
    first = job.run(request, "")
    assert first == job.run(request, "")
    rest = job.run(request | {"skip": ["default"]}, "")
    assert rest["candidates"] == first["candidates"][1:]
    broken = tmp_path / "broken.py"
    broken.write_text("def get_inputs(:\n")
    error = job.run(request | {"problem": str(broken)}, "")["error"]
    assert (error["kind"], error["line"]) == ("problem", 1)


def test_sizes_print_as_they_compute() -> None:
    table = Sizes(2)
    a, b = table.symbol("a", (12, 35), "x.shape[0]"), table.symbol("b", (4, 5), "x.shape[1]")
    for left, right in itertools.product((a, b, a * b, a + 3, FloorDiv(a, b)), (b, FloorDiv(a, b), b * 2)):
        for made in (FloorDiv(left, right), FloorDiv(left, right) * left + 1, left - right * 2):
            values = [eval(text(made), {"a": a_, "b": b_}) for a_, b_ in ((12, 4), (35, 5))]
            assert table.of(made) == tuple(values)
    assert text(FloorDiv(a, FloorDiv(a, b))) == "a // (a // b)"
    with pytest.raises(Unsupported):
        table.find((7, 1000003))
