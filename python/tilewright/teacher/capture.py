"""A problem as graphs of ATen operations, one for each case, traced on fake tensors: no memory, no device."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from tilewright.cell import oracle_problem
from tilewright.cell.gradients import NotDifferentiable
from tilewright.cell.oracle_problem import Case
from tilewright.teacher.rewrites import Rewriting
from tilewright.teacher.sizes import Unsupported


@dataclass
class Captured:
    """One case: its graph, and what the graph's placeholders and constants are."""

    label: str
    graph: GraphModule
    state: list[str]
    """Names of the state, in the order of the first placeholders."""
    tied: dict[str, str]
    """Names that are the same tensor as an earlier one."""
    inputs: list[Any]
    """The arguments of `forward`."""
    tensor_paths: list[str]
    """For each further placeholder, how it is found in the arguments: `x`, or `xs[0]`."""
    constants: dict[str, str]
    """Attribute path of each tensor that is no state, by the graph's name for it."""
    numbers_args: dict[str, Any] = field(default_factory=dict)
    """Numbers and texts among the constructor's arguments, by name."""
    input_numbers: dict[str, Any] = field(default_factory=dict)
    """Numbers among the arguments of `forward`, by name."""
    returns: tuple[list[Any], Any] = ((), None)
    """Leaves of the result (None where it is a tensor) and their tree."""
    backward: Any = None
    """Where the problem asks for gradients, the second half of a call: see `gradients`."""


@dataclass
class Problem:
    path: str
    source: str
    training: bool
    cases: list[Captured]
    argument_names: list[str]


def capture(path: str) -> Problem:
    """Trace all cases. Raises `ProblemError` for an unusable file, `Unsupported` for what cannot be traced."""
    source = oracle_problem.read_source(path)
    modules = [("default", oracle_problem.load(path, source))]
    for label, changes in oracle_problem.variants(modules[0][1], path):
        modules.append((label, oracle_problem.load(path, source, changes)))
    cases = [oracle_problem.make_case(path, module, label) for label, module in modules]
    try:
        for case in cases:
            case.find_gradients()
    except NotDifferentiable as error:
        raise oracle_problem.ProblemError("problem", f"{path}: {error}") from error
    except oracle_problem.ProblemError:
        raise
    except Exception as error:
        raise Unsupported(f"the problem cannot be called with gradients: {type(error).__name__}: {error}") from error
    if cases[0].gradients is not None:
        from tilewright.teacher import gradients

        captured, names = gradients.trace(cases)
    else:
        traced = [trace(case) for case in cases]
        captured, names = [half for half, _ in traced], traced[-1][1]
    return Problem(path, source, cases[-1].training, captured, names)


def trace(case: Case) -> tuple[Captured, list[str]]:
    """The graph of one case."""
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        try:
            torch.manual_seed(0)
            model = case.build()
            args = case.inputs()
        except Exception as error:
            raise Unsupported(
                f"the problem cannot be built on fake tensors: {type(error).__name__}: {error}"
            ) from error
        args = pytree.tree_map_only(torch.Tensor, lambda t: t if is_fake(t) else mode.from_tensor(t), args)
        state, tied = named_state(model)
        names = argument_names(model, len(args))
        leaves, paths = [], []
        for name, value in zip(names, args, strict=True):
            for key, leaf in pytree.tree_flatten_with_path(value)[0]:
                if isinstance(leaf, torch.Tensor):
                    leaves.append(leaf)
                    paths.append(name + "".join(pytree.keystr((k,)) for k in key))
        spec_leaves, spec = pytree.tree_flatten(args)
        slots = [i for i, leaf in enumerate(spec_leaves) if isinstance(leaf, torch.Tensor)]

        returned: list[Any] = []

        def call(state_values: list[torch.Tensor], tensors: list[torch.Tensor]) -> Any:
            filled = list(spec_leaves)
            for slot, tensor in zip(slots, tensors, strict=True):
                filled[slot] = tensor
            values = dict(zip(state, state_values, strict=True))
            values.update({alias: values[name] for alias, name in tied.items()})
            given = tuple(pytree.tree_unflatten(filled, spec))
            with Rewriting():
                result = torch.func.functional_call(model, values, given, strict=False)
            found, tree = pytree.tree_flatten(result)
            returned[:] = [[None if isinstance(leaf, torch.Tensor) else leaf for leaf in found], tree]
            return [leaf for leaf in found if isinstance(leaf, torch.Tensor)]

        try:
            with torch.enable_grad():
                graph = make_fx(call, pre_dispatch=True, tracing_mode="real")(list(state.values()), leaves)
        except Unsupported:
            raise
        except Exception as error:
            raise Unsupported(
                f"the forward pass cannot be traced: {type(error).__name__}: {str(error)[:300]}"
            ) from error
    constants = {
        node.target: path
        for node in graph.graph.nodes
        if node.op == "get_attr" and (path := find_tensor(model, getattr(graph, node.target))) is not None
    }
    numbers_args = bind_numbers(model, case)
    given = {name: value for name, value in zip(names, args, strict=True) if isinstance(value, int | float | bool)}
    return Captured(
        case.label, graph, list(state), tied, leaves, paths, constants, numbers_args, given, tuple(returned)
    ), names


def is_fake(tensor: torch.Tensor) -> bool:
    return isinstance(tensor, torch._subclasses.FakeTensor)


def named_state(model: torch.nn.Module) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Parameters and buffers by name; names that repeat a tensor apart."""
    state: dict[str, torch.Tensor] = {}
    first: dict[int, str] = {}
    tied: dict[str, str] = {}
    pairs = [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]
    for name, tensor in pairs:
        if id(tensor) in first:
            tied[name] = first[id(tensor)]
        else:
            first[id(tensor)] = name
            state[name] = tensor
    return state, tied


def argument_names(model: torch.nn.Module, count: int) -> list[str]:
    """Names of the first `count` arguments of `forward`."""
    names = []
    for parameter in inspect.signature(model.forward).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}_{i}" for i in range(count - len(names))]
            break
        names.append(parameter.name)
    return names[:count]


def bind_numbers(model: torch.nn.Module, case: Case) -> dict[str, Any]:
    """Numbers and texts among the constructor's arguments, by the constructor's names for them."""
    try:
        bound = inspect.signature(type(model).__init__).bind(model, *case.init_args, **case.init_kwargs)
    except TypeError:
        return {}
    bound.apply_defaults()
    found: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        if name != "self" and isinstance(value, int | float | str):
            found[name] = value
        elif isinstance(value, tuple | list):
            for i, item in enumerate(value):
                if isinstance(item, int | float) and not isinstance(item, bool):
                    found[f"{name}[{i}]"] = item
    return found


def find_tensor(model: torch.nn.Module, tensor: Any) -> str | None:
    """Attribute path of a plain tensor attribute."""
    for prefix, module in model.named_modules():
        for name, value in vars(module).items():
            path = f"{prefix}.{name}" if prefix else name
            if value is tensor:
                return path
            if isinstance(value, list | tuple):
                for i, item in enumerate(value):
                    if item is tensor:
                        return f"{path}[{i}]"
    return None
