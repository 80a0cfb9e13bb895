"""Problems that ask for gradients: an `autograd.Function` whose `forward` and `backward` launch kernels.

The call that gives outputs and gradients is traced as one graph, with torch's formulas for derivatives, and is cut in
two where torch's own partitioner would: what is cheap is computed again in the backward pass, the rest is saved. Each
half is then a graph like that of any other module.
"""

from __future__ import annotations

import copy
import itertools
import re
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import fx
from torch._decomp import core_aten_decompositions, get_decompositions
from torch._functorch import partitioners
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import _pytree as pytree

from tilewright.cell import gradients
from tilewright.cell.oracle_problem import Case
from tilewright.cell.oracle_values import OUTPUT
from tilewright.teacher.capture import (
    Captured,
    Problem,
    argument_names,
    bind_numbers,
    find_tensor,
    is_fake,
    named_state,
)
from tilewright.teacher.host import HostWriter, result_text
from tilewright.teacher.sizes import Unsupported

aten = torch.ops.aten

CLASS = "WithGradients"
"""The class of the file that launches the kernels."""


@dataclass
class Backward:
    """The second half of a case."""

    graph: Captured
    """From saved tensors and cotangents to gradients."""
    saved: list[tuple[str, int]]
    """What may be saved: which `input` or `output` of `forward`, or which `inner` result beside its outputs."""
    kept: int
    """How many of these the graph reads; the others are inputs whose extents it may need."""
    spec: gradients.Spec
    paths: list[str]
    """How each input of `forward` is found in its arguments: `x`, `xs[0]`."""
    outputs: int
    """Tensors that `forward` returns."""


# The joint graph --------------------------------------------------------------------------------------------------


@dataclass
class Joint:
    """One case as one graph: state, inputs and cotangents to outputs and gradients."""

    case: Case
    model: torch.nn.Module
    graph: fx.GraphModule
    state: dict[str, torch.Tensor]
    tied: dict[str, str]
    args: list[Any]
    tensors: list[torch.Tensor]
    paths: list[str]
    returns: tuple[list[Any], Any]

    @property
    def placeholders(self) -> list[fx.Node]:
        return [node for node in self.graph.graph.nodes if node.op == "placeholder"]

    @property
    def results(self) -> list[fx.Node]:
        return list(self.graph.graph.output_node().args[0])

    @property
    def outputs(self) -> int:
        return sum(leaf is None for leaf in self.returns[0])


def joint(case: Case) -> Joint:
    """Trace a call with gradients. Raises `Unsupported`."""
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        try:
            torch.manual_seed(0)
            model = case.build()
            args = case.inputs()
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise Unsupported(f"the problem cannot be built on fake tensors: {reason}") from error
        args = pytree.tree_map_only(torch.Tensor, lambda t: t if is_fake(t) else mode.from_tensor(t), args)
        state, tied = named_state(model)
        leaves, tree = pytree.tree_flatten(args)
        slots = [at for at, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        returned: list[Any] = []

        def call(state_values: list[torch.Tensor], tensors: list[torch.Tensor]) -> list[torch.Tensor]:
            filled = list(leaves)
            for slot, tensor in zip(slots, tensors, strict=True):
                filled[slot] = tensor
            values = dict(zip(state, state_values, strict=True))
            values.update({alias: values[name] for alias, name in tied.items()})
            given = tuple(pytree.tree_unflatten(filled, tree))
            result = torch.func.functional_call(model, values, given, strict=False)
            found, shape = pytree.tree_flatten(result.pop(OUTPUT))
            returned[:] = [[None if isinstance(leaf, torch.Tensor) else leaf for leaf in found], shape]
            return [*(leaf for leaf in found if isinstance(leaf, torch.Tensor)), *result.values()]

        tensors = [leaves[slot] for slot in slots]
        try:
            with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
                traced = make_fx(call, decomposition_table=decompositions())(list(state.values()), tensors)
            if any(_writes(node) for node in traced.graph.nodes):
                # Tensors that are made and then changed; what is not made here stays in the graph, and is refused.
                values = [t.detach() for t in state.values()], tensors
                traced = make_fx(torch.func.functionalize(traced, remove="mutations"))(*values)
        except Unsupported:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {str(error)[:300]}"
            raise Unsupported(f"forward and its backward pass cannot be traced: {reason}") from error
    made = Joint(case, model, traced, state, tied, args, tensors, _paths(model, args), tuple(returned))
    _clean(made)
    return made


def _paths(model: torch.nn.Module, args: list[Any]) -> list[str]:
    """How each tensor of the arguments of `forward` is found: `x`, `xs[0]`."""
    given = args[:-1]
    paths = []
    for name, value in zip(_argument_names(model, len(given)), given, strict=True):
        for key, leaf in pytree.tree_flatten_with_path(value)[0]:
            if isinstance(leaf, torch.Tensor):
                paths.append(name + "".join(pytree.keystr((k,)) for k in key))
    return paths


def _argument_names(model: torch.nn.Module, count: int) -> list[str]:
    """Of the module's own `forward`, which `attach` has covered."""
    plain = copy.copy(model)
    plain.__dict__ = {name: value for name, value in vars(model).items() if name != "forward"}
    return argument_names(plain, count)


def _clean(made: Joint) -> None:
    """Take out what does nothing, name placeholders as the partitioner knows them, and refuse what changes tensors."""
    graph = made.graph.graph
    for node in list(graph.nodes):
        if node.target in (aten.alias.default, aten.detach.default):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
        elif _undoes_permutation(node):
            node.replace_all_uses_with(node.args[0].args[0])
        elif node.target == aten.as_strided.default and _is_reshape(node):
            node.target, node.args = aten.view.default, node.args[:2]
    graph.eliminate_dead_code()
    for node in graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if _writes(node):
            raise Unsupported(f"{node.target} changes a tensor in a problem with gradients")
        if schema is not None and torch.Tag.nondeterministic_seeded in node.target.tags:
            raise Unsupported("random numbers in a problem with gradients")
    first_cotangent = len(made.placeholders) - len(made.case.cotangents)
    for at, node in enumerate(made.placeholders):
        node.target = node.name = f"primals_{at}" if at < first_cotangent else f"tangents_{at}"
    made.graph.recompile()


def _writes(node: fx.Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return schema is not None and schema.is_mutable


def _is_reshape(node: fx.Node) -> bool:
    """Whether strides say what a tensor without gaps has anyway."""
    before, after = node.args[0].meta["val"], node.meta["val"]
    return before.is_contiguous() and after.is_contiguous() and before.numel() == after.numel()


def _undoes_permutation(node: fx.Node) -> bool:
    if node.target != aten.permute.default or not isinstance(node.args[0], fx.Node):
        return False
    before = node.args[0]
    if before.target != aten.permute.default:
        return False
    rank = len(node.args[1])
    return [before.args[1][axis] % rank for axis in node.args[1]] == list(range(rank))


def trace(cases: list[Case]) -> tuple[list[Captured], list[str]]:
    """The halves of all cases, which are cut in the same places, and the names of the arguments of `forward`."""
    joints = [joint(case) for case in cases]
    joints = [joints[0], *(made for made in joints[1:] if _alike(made, joints[0]))]
    if any(made.case.gradients != joints[0].case.gradients for made in joints):
        raise Unsupported("the problem's cases have different gradients")
    positions = _saved(joints[0])
    halves = [_halves(made, [list(made.graph.graph.nodes)[at] for at in positions]) for made in joints]
    return halves, _argument_names(joints[0].model, len(joints[0].args) - 1)


def _alike(made: Joint, first: Joint) -> bool:
    """Whether a case has the same graph. Torch's derivatives of products ask for strides, which say nothing where an
    extent is one: such a case is left to the formulas of the others."""
    if all(
        str(getattr(a, "target", None)) == str(getattr(b, "target", None))
        for a, b in itertools.zip_longest(made.graph.graph.nodes, first.graph.graph.nodes)
    ):
        return True
    if any(1 in tensor.shape for tensor in (*made.tensors, *made.state.values())):
        return False
    raise Unsupported("the problem's cases take different paths through forward and its backward pass")


def _saved(made: Joint) -> list[int]:
    """Positions, in the joint graph, of what is saved for the backward pass."""
    examples = [*made.state.values(), *made.tensors]
    given = copy.deepcopy(made.graph)
    try:
        forward, _ = partitioners.min_cut_rematerialization_partition(given, examples, num_fwd_outputs=made.outputs)
    except Exception as error:
        raise Unsupported(f"the graph cannot be cut: {type(error).__name__}: {str(error)[:200]}") from error
    names = [node.name for node in forward.graph.output_node().args[0][made.outputs :]]
    nodes = {node.name: node for node in made.graph.graph.nodes}
    if any(name not in nodes for name in names):
        raise Unsupported("the graph cannot be cut: a name is lost")
    chosen = {_base(nodes[name]) for name in names}
    return [at for at, node in enumerate(nodes.values()) if node in chosen]


def _base(node: fx.Node) -> fx.Node:
    """What a view looks at: that is saved, and the view is taken again."""
    while getattr(node.target, "is_view", False):
        node = node.args[0]
    return node


def _halves(made: Joint, saved: list[fx.Node]) -> Captured:
    placeholders, results = made.placeholders, made.results
    state = dict(zip(placeholders, made.state, strict=False))
    rest = placeholders[len(made.state) :]
    primals, cotangents = rest[: len(made.paths)], rest[len(made.paths) :]
    kept = [node for node in saved if node not in state]
    inner = [node for node in kept if node not in primals and node not in results[: made.outputs]]
    outputs, wanted = results[: made.outputs], results[made.outputs :]

    names = _argument_names(made.model, len(made.args) - 1)
    numbers = bind_numbers(made.model, made.case)
    plain = zip(names, made.args, strict=False)
    given = {name: value for name, value in plain if isinstance(value, int | float | bool)}
    forward = Captured(
        made.case.label,
        _part(made, [*state, *primals], [*outputs, *inner]),
        list(made.state),
        made.tied,
        [node.meta["val"] for node in primals],
        [re.sub(r"\W+", "_", path).strip("_") for path in made.paths],
        {},
        numbers,
        given,
        made.returns,
    )
    of_state = list(state)
    # For extents that nothing else has; only what backward asks for is saved.
    others = [node for node in primals if node not in kept]
    backward = Captured(
        made.case.label,
        _part(made, [*of_state, *kept, *cotangents, *others], wanted),
        [state[node] for node in of_state],
        {},
        [node.meta["val"] for node in (*kept, *cotangents, *others)],
        ["?"] * (len(kept) + len(cotangents) + len(others)),
        {},
        numbers,
        given,
        ([None] * len(wanted), pytree.tree_structure([0] * len(wanted))),
    )
    for half in (forward, backward):
        half.constants = _constants(made, half.graph)
    places = [
        ("input", primals.index(node))
        if node in primals
        else ("inner", inner.index(node))
        if node in inner
        else ("output", outputs.index(node))
        for node in (*kept, *others)
    ]
    assert made.case.gradients is not None
    forward.backward = Backward(backward, places, len(kept), made.case.gradients, made.paths, len(outputs))
    return forward


def _part(made: Joint, inputs: list[fx.Node], outputs: list[fx.Node]) -> fx.GraphModule:
    """The part of the joint graph from some nodes to others."""
    needed, stack = set(), [node for node in outputs if node is not None]
    while stack:
        node = stack.pop()
        if node not in needed:
            needed.add(node)
            stack += [] if node in inputs else node.all_input_nodes
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    for node in inputs:
        copies[node] = graph.placeholder(node.name)
        copies[node].meta = dict(node.meta)
    for node in made.graph.graph.nodes:
        if node in needed and node not in copies:
            if node.op == "placeholder":
                raise Unsupported("the graph cannot be cut: a half lacks an input")
            copies[node] = graph.node_copy(node, lambda n: copies[n])
    graph.output([copies[node] for node in outputs])
    return fx.GraphModule(made.graph, graph)


def _constants(made: Joint, graph: fx.GraphModule) -> dict[str, str]:
    found = {}
    for node in graph.graph.nodes:
        if node.op == "get_attr":
            path = find_tensor(made.model, getattr(made.graph, node.target))
            if path is not None:
                found[node.target] = path
    return found


# Decompositions ---------------------------------------------------------------------------------------------------


def decompositions() -> dict[Any, Any]:
    """What operations of the joint graph are made of, where lowering has no rules for them."""
    table = dict(core_aten_decompositions())
    table |= get_decompositions([aten.native_layer_norm, aten.native_group_norm, aten.nll_loss_forward])
    table[aten.scatter.value] = _scatter_value
    table[aten.avg_pool2d_backward.default] = _average_pool_backward
    table[aten.max_pool2d_with_indices_backward.default] = _max_pool_backward
    table[aten._softmax_backward_data.default] = _softmax_backward
    table[aten.convolution_backward.default] = _convolution_backward
    return table


def _softmax_backward(grad: torch.Tensor, output: torch.Tensor, dim: int, dtype: torch.dtype) -> torch.Tensor:
    """Less the gradient of the largest element: where that takes all, the difference would be one of equal numbers.
    (Torch's own decomposition even multiplies out first.)"""
    wide = torch.promote_types(grad.dtype, torch.float32)
    grad, output = grad.to(wide), output.to(wide)
    if output.dim() > 0:
        grad = grad - grad.gather(dim, output.argmax(dim, True))
    return (output * (grad - (grad * output).sum(dim, True))).to(dtype)


def _scatter_value(base: torch.Tensor, dim: int, index: torch.Tensor, value: float) -> Any:
    """One element of each line: a comparison with the index along it."""
    shape = list(base.shape)
    dim %= max(len(shape), 1)
    if len(shape) == 0 or [1 if axis == dim else size for axis, size in enumerate(shape)] != list(index.shape):
        return NotImplemented
    line = torch.arange(shape[dim], device=base.device).view([-1 if axis == dim else 1 for axis in range(len(shape))])
    return torch.where(line == index, torch.full((), value, dtype=base.dtype, device=base.device), base)


def _over_windows(x: torch.Tensor, like: torch.Tensor, kernel: list[int]) -> torch.Tensor:
    """Each window's value at each of its pixels; zeros beyond the last window."""
    batch, rows, cols = x.shape[:-2], *x.shape[-2:]
    spread = x[..., :, None, :, None].expand(*batch, rows, kernel[0], cols, kernel[1])
    whole = spread.reshape(*batch, rows * kernel[0], cols * kernel[1])
    rest = like.shape[-2] - whole.shape[-2], like.shape[-1] - whole.shape[-1]
    return aten.constant_pad_nd(whole, [0, rest[1], 0, rest[0]]) if any(rest) else whole


def _apart(kernel: list[int], stride: list[int], padding: list[int], ceil: bool) -> bool:
    """Whether windows neither overlap nor reach beyond the image."""
    return list(stride or kernel) == list(kernel) and len(kernel) == 2 and not any(padding) and not ceil


def _average_pool_backward(
    grad: torch.Tensor, x: torch.Tensor, kernel: Any, stride: Any, padding: Any, ceil: bool, pad: bool, divisor: Any
) -> Any:
    if not _apart(kernel, stride, padding, ceil):
        return NotImplemented
    return _over_windows(grad, x, kernel) / (divisor or kernel[0] * kernel[1])


def _max_pool_backward(
    grad: torch.Tensor,
    x: torch.Tensor,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil: bool,
    indices: torch.Tensor,
) -> Any:
    if not _apart(kernel, stride, padding, ceil) or any(step != 1 for step in dilation):
        return NotImplemented
    rows, cols = x.shape[-2:]
    own = torch.arange(rows, device=x.device)[:, None] * cols + torch.arange(cols, device=x.device)
    # A pixel beyond the last window has the index of none.
    return torch.where(_over_windows(indices, x, kernel) == own, _over_windows(grad, x, kernel), 0.0)


def _convolution_backward(
    grad: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor,
    bias_sizes: Any,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    transposed: bool,
    output_padding: list[int],
    groups: int,
    output_mask: list[bool],
) -> Any:
    """The gradient of x is a transposed convolution, that of the weight a convolution of x with the gradient."""
    rank = x.dim() - 2
    stride, padding, dilation = ([*v] * rank if len(v) == 1 else [*v] for v in (stride, padding, dilation))
    if transposed or (output_mask[1] and groups != 1):
        return NotImplemented
    grad_x = grad_weight = grad_bias = None
    if output_mask[0]:
        sizes = zip(x.shape[2:], grad.shape[2:], weight.shape[2:], stride, padding, dilation, strict=True)
        missing = [have - ((out - 1) * s - 2 * p + d * (k - 1) + 1) for have, out, k, s, p, d in sizes]
        grad_x = aten.convolution(grad, weight, None, stride, padding, dilation, True, missing, groups)
    if output_mask[1]:
        # The batch is the inner dimension of this product, and what was the stride is the distance of its taps.
        found = aten.convolution(
            x.transpose(0, 1), grad.transpose(0, 1), None, dilation, padding, stride, False, [0] * rank, 1
        )
        for axis, size in enumerate(weight.shape[2:]):
            found = found.narrow(axis + 2, 0, size)
        grad_weight = found.transpose(0, 1)
    if output_mask[2]:
        grad_bias = grad.sum([0, *range(2, rank + 2)])
    return grad_x, grad_weight, grad_bias


# The file ---------------------------------------------------------------------------------------------------------


def write(problem: Problem, options: dict[str, Any]) -> str:
    """The text of a candidate. Raises `Unsupported`."""
    from tilewright.teacher.teach import launches, summary

    second: Backward = problem.cases[0].backward
    host, texts = launches(problem, options, None)
    outputs, inner = texts[: second.outputs], texts[second.outputs :]
    saved = _saved_names(host, second, outputs, inner)
    cotangents = [f"grad_{'out' if second.outputs == 1 else at}" for at in range(second.outputs)]
    names = [name for name, _ in saved]
    order = gradients.outputs_of(numbered(problem.cases[0].returns), int)
    names[second.kept : second.kept] = [cotangents[order[at]] for at in second.spec["outputs"]]
    cases = [replace(case.backward.graph, tensor_paths=names) for case in problem.cases]
    back, gradients_of = launches(replace(problem, cases=cases, argument_names=names), options, host)
    if host.lowering.seeds or back.lowering.seeds:
        raise Unsupported("random numbers in a problem with gradients")
    arguments = _arguments(problem, second)
    host.classes.append(_function(host, back, arguments, outputs, saved, cotangents, gradients_of))
    host.libdevice |= back.libdevice
    host.allocator |= back.allocator
    given = ", ".join(text for text, _ in arguments)
    applied = f"{CLASS}.apply(self, {given})"
    if outputs == [result_text(host.lowering, outputs)]:
        forward = [f"return {applied}"]
    else:
        results = [f"out_{at}" for at in range(second.outputs)]
        forward = [f"{', '.join(results)}{',' * (len(results) == 1)} = {applied}"]
        forward += [f"return {result_text(host.lowering, results)}"]
    doc = f"{summary(problem)}\n\nWritten by Tilewright's offline teacher: {len(host.kernels)} kernel(s)."
    return host.source(forward, doc.replace('"""', "'''") + "\n")


def numbered(returns: tuple[list[Any], Any]) -> Any:
    """What `forward` returns, with the number of each tensor in its place, and nothing else."""
    count = itertools.count()
    return pytree.tree_unflatten([next(count) if leaf is None else None for leaf in returns[0]], returns[1])


def _saved_names(host: HostWriter, second: Backward, outputs: list[str], inner: list[str]) -> list[tuple[str, str]]:
    """Of each saved tensor, its name in `backward` and its text in `forward`."""
    found, taken = [], {"self", "ctx"}
    inputs = [host.input_name(value) for value in host.lowering.inputs]
    for kind, at in second.saved:
        text = {"input": inputs, "inner": inner, "output": outputs}[kind][at]
        host.used_text(text)
        match = re.match(r"[A-Za-z_]\w*", text)
        base = name = match[0] if match else "saved"
        number = 2
        while name in taken:
            name, number = f"{base}_{number}", number + 1
        taken.add(name)
        found.append((name, text))
    return found


def _arguments(problem: Problem, second: Backward) -> list[tuple[str, str]]:
    """What `apply` is given after the module: its text in `ModelNew.forward`, and its name in the function."""
    first = problem.cases[0]
    plain = [(name, name) for name in first.input_numbers]
    tensors = list(zip(second.paths, first.tensor_paths, strict=True))
    parameters = [(parameter_text(name), "") for name in second.spec["parameters"]]
    return [*plain, *tensors, *parameters]


def parameter_text(name: str) -> str:
    """Host text of a parameter: `self.blocks[0].weight`."""
    return "self" + "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in name.split("."))


def _function(
    host: HostWriter,
    back: HostWriter,
    arguments: list[tuple[str, str]],
    outputs: list[str],
    saved: list[tuple[str, str]],
    cotangents: list[str],
    gradients_of: list[str],
) -> str:
    names = [name for _, name in arguments if name]
    parameters = ["*parameters"] if any(not name for _, name in arguments) else []
    *forward, returned = host.forward_lines(", ".join(outputs))
    numbers = list(host.lowering.cases[0].input_numbers)

    second: Backward = host.lowering.cases[0].backward
    tensors = [name for _, name in arguments[len(numbers) :] if name]
    grads = dict(zip((tensors[at] for _, at in second.spec["inputs"]), gradients_of, strict=False))
    results = ["None"] * (1 + len(numbers)) + [grads.get(name, "None") for name in tensors]
    results += gradients_of[len(second.spec["inputs"]) :]
    backward = back.forward_lines(", ".join(results))
    saved = [(name, text) for name, text in saved if any(re.search(rf"\b{name}\b", line) for line in backward)]
    keeps = [name for name in numbers if any(re.search(rf"\b{name}\b", line) for line in backward)]
    keeps += ["self"] * any(re.search(r"\bself\b", line) for line in backward)

    lines = [f"class {CLASS}(torch.autograd.Function):", '    """Launches the kernels of both directions."""', ""]
    lines += ["    @staticmethod", f"    def forward({', '.join(['ctx', 'self', *names, *parameters])}):"]
    body = [*forward, *(f"ctx.{_kept(name)} = {name}" for name in keeps)]
    if saved:
        body.append(f"ctx.save_for_backward({', '.join(text for _, text in saved)})")
    lines += ["        " + line for line in [*body, returned]]
    body = [f"{name} = ctx.{_kept(name)}" for name in keeps]
    if saved:
        left = ", ".join(name for name, _ in saved)
        body.append(f"{left if len(saved) > 1 else f'({left},)'} = ctx.saved_tensors")
    lines += ["", "    @staticmethod", f"    def backward({', '.join(['ctx', *cotangents])}):"]
    lines += ["        " + line for line in [*body, *backward]]
    return "\n".join(lines)


def _kept(name: str) -> str:
    return "module" if name == "self" else name
