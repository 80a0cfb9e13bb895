"""Problems that declare gradients: one call is `forward` and its vector-Jacobian product. Trusted code, and what runs a
candidate's file on a real device.

A problem file says `GRADIENTS = True` (every floating tensor of `forward`'s arguments and every trained parameter that
the outputs depend on), or gives names of arguments and parameters. The arguments of a call are then those of `forward`
and, as one more, a list of cotangents: one for each floating output that depends on what is asked for. Results are a
dict: what `forward` returns, and `grad NAME` for each gradient.

All else takes that for a function like any other, of more inputs and with more outputs. What is asked for stands in the
case's signature (`Spec`), so that a candidate is called in the same way.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from tilewright.cell.oracle_values import OUTPUT, encode

Spec = dict[str, Any]
"""Contract `Gradients`: `inputs`, pairs of a name and an index among the tensors of `forward`'s arguments;
`parameters`, names; `outputs`, the indices among the tensors of the output (`outputs_of`) that have a cotangent."""

Like = tuple[torch.Size, torch.dtype]
"""Shape and dtype of a cotangent."""


_WAY = " in a way that torch can differentiate"


class NotDifferentiable(ValueError):
    """The problem asks for gradients that there are not."""


def declared(module: Any) -> bool | tuple[str, ...] | None:
    """What a problem's module says; None if it asks for no gradients. Raises `NotDifferentiable` for nonsense."""
    wanted = getattr(module, "GRADIENTS", None)
    if wanted is None or isinstance(wanted, bool):
        return wanted or None
    if isinstance(wanted, (list, tuple)) and wanted and all(isinstance(name, str) for name in wanted):
        return tuple(wanted)
    raise NotDifferentiable("GRADIENTS is neither True nor names of arguments of forward and of parameters")


def resolve(wanted: bool | tuple[str, ...], model: torch.nn.Module, args: list[Any]) -> tuple[Spec, list[Like]]:
    """What is asked for, by position, and what the cotangents are like: found by a call, of fake tensors or real ones.

    Raises `NotDifferentiable` where a name is unknown, an output or a gradient is missing.
    """
    tensors, parameters = tensors_of(args), dict(model.named_parameters())
    inputs = {name: at for at, name in enumerate(_named_inputs(model, args)) if tensors[at].is_floating_point()}
    if isinstance(wanted, tuple):
        _check_names(wanted, list(inputs), parameters)
    spec = {
        "inputs": [[name, at] for name, at in inputs.items() if _asks(wanted, name)],
        "parameters": [name for name, p in parameters.items() if p.requires_grad and _asks(wanted, name)],
    }
    for name in spec["parameters"]:
        if any(name == argument for argument, _ in spec["inputs"]):
            raise NotDifferentiable(f"GRADIENTS asks for {name}, which is an argument of forward and a parameter")
    with torch.enable_grad():
        given = _with_leaves(args, spec)
        outputs = outputs_of(model(*given))
        chosen = [at for at, t in enumerate(outputs) if t.is_floating_point() and t.requires_grad]
        if not chosen:
            raise NotDifferentiable(f"GRADIENTS: no floating output depends on what is asked for{_WAY}")
        found = [outputs[at] for at in chosen]
        vectors = [torch.zeros_like(t) for t in found]
        try:
            got = _gradients(found, targets(spec, model, given), vectors)
        except RuntimeError as error:
            raise NotDifferentiable(f"GRADIENTS: torch cannot differentiate forward: {error}") from error
    without = [name[5:] for name, gradient in zip(names(spec), got, strict=True) if gradient is None]
    if isinstance(wanted, tuple) and without:
        raise NotDifferentiable(f"GRADIENTS: no output depends on {without[0]}{_WAY}")
    spec = {
        "inputs": [pair for pair in spec["inputs"] if pair[0] not in without],
        "parameters": [name for name in spec["parameters"] if name not in without],
        "outputs": chosen,
    }
    if not names(spec):
        raise NotDifferentiable(f"GRADIENTS: no output depends on an argument or a parameter{_WAY}")
    return spec, [(t.shape, t.dtype) for t in found]


def _asks(wanted: bool | tuple[str, ...], name: str) -> bool:
    """`xs` stands for every tensor of the argument `xs`."""
    return wanted is True or any(name == w or name.startswith(f"{w}[") for w in wanted or ())


def _check_names(wanted: tuple[str, ...], inputs: list[str], parameters: dict[str, torch.nn.Parameter]) -> None:
    for name in wanted:
        if not any(_asks((name,), known) for known in (*inputs, *parameters)):
            known = ", ".join((*inputs, *parameters)) or "there are none"
            message = (
                f"GRADIENTS names {name}, which is no floating tensor of forward's arguments and no parameter: {known}"
            )
            raise NotDifferentiable(message)
        if name in parameters and not parameters[name].requires_grad:
            raise NotDifferentiable(f"GRADIENTS names {name}, which is not trained (requires_grad is False)")


def _named_inputs(model: torch.nn.Module, args: list[Any]) -> list[str]:
    """Names of all tensors in the arguments, in order: `x`, `xs[0]`."""
    names: list[str] = []
    by_name = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    parameters = [p for p in inspect.signature(model.forward).parameters.values() if p.kind not in by_name]
    for at, value in enumerate(args):
        parameter = parameters[min(at, len(parameters) - 1)] if parameters else None
        if parameter is None or parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            base = f"{parameter.name if parameter else 'args'}[{at - max(len(parameters) - 1, 0)}]"
        else:
            base = parameter.name

        def note(_tensor: torch.Tensor, path: str, base: str = base) -> dict[str, Any]:
            names.append(base + path)
            return {}

        encode(value, note)
    return names


def tensors_of(value: Any) -> list[torch.Tensor]:
    """The tensors in a value, in the order of a contract `Value`."""
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def outputs_of(value: Any, kind: type = torch.Tensor) -> list[Any]:
    """The tensors in what `forward` returns (or what else of a `kind`): those of a dict by its sorted keys, since two
    dicts are the same in whatever order they were filled."""
    if isinstance(value, kind):
        return [value]
    parts = [value[key] for key in sorted(value, key=str)] if isinstance(value, dict) else value
    return [found for part in parts for found in outputs_of(part, kind)] if isinstance(parts, (list, tuple)) else []


def draw(likes: list[Like]) -> list[torch.Tensor]:
    """Cotangents from the generator's state: normal, and a single number between 0.5 and 1.5, or its negative, so that
    it is never next to nothing."""
    return [_cotangent(shape, dtype) for shape, dtype in likes]


def _cotangent(shape: torch.Size, dtype: torch.dtype) -> torch.Tensor:
    if shape.numel() == 1:
        return ((torch.rand(shape) + 0.5) * (2 * torch.randint(0, 2, shape) - 1)).to(dtype)
    return torch.randn(shape).to(dtype)


def attach(model: torch.nn.Module, spec: Spec | None) -> torch.nn.Module:
    """The same module, whose calls now give outputs and gradients."""
    if spec is not None:
        model.forward = differentiated(model.forward, model, spec)
    return model


def differentiated(call: Callable[..., Any], model: torch.nn.Module, spec: Spec | None) -> Callable[..., Any]:
    """A function like `call`, a way to run `model`, that takes cotangents too and gives gradients too."""
    if spec is None:
        return call

    def run(*args: Any) -> dict[str, Any]:
        *given, vectors = args
        # On one thread: torch would run the backward pass of tensors on a GPU on another.
        with torch.enable_grad(), torch.autograd.set_multithreading_enabled(False):
            given = _with_leaves(given, spec)
            output = call(*given)
            outputs = outputs_of(output)
            found = [outputs[at] if at < len(outputs) else None for at in spec["outputs"]]
            pairs = [(t, v) for t, v in zip(found, vectors, strict=True) if t is not None and t.requires_grad]
            got = _gradients([t for t, _ in pairs], targets(spec, model, given), [v for _, v in pairs])
        return results(spec, tree_map(_detached, output), got)

    return run


def results(spec: Spec, output: Any, gradients: list[torch.Tensor | None]) -> dict[str, Any]:
    """What one call gives, by name."""
    return {OUTPUT: output, **dict(zip(names(spec), gradients, strict=True))}


def names(spec: Spec) -> list[str]:
    """What the gradients are called, in order: `grad x`."""
    return [f"grad {name}" for name in (*(name for name, _ in spec["inputs"]), *spec["parameters"])]


def _detached(value: Any) -> Any:
    return value.detach() if isinstance(value, torch.Tensor) else value


def _with_leaves(args: list[Any], spec: Spec) -> list[Any]:
    """The arguments with those that gradients are asked for as leaves of a graph."""
    chosen, count = {at for _, at in spec["inputs"]}, iter(range(1 << 30))

    def leaf(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return value.detach().requires_grad_(True) if next(count) in chosen else value

    return tree_map(leaf, args)


def targets(spec: Spec, model: torch.nn.Module, given: list[Any]) -> list[torch.Tensor | None]:
    """The tensors whose gradients are asked for; None for a parameter that the module has not."""
    tensors, parameters = tensors_of(given), dict(model.named_parameters(remove_duplicate=False))
    return [*(tensors[at] for _, at in spec["inputs"]), *(parameters.get(name) for name in spec["parameters"])]


def _gradients(
    outputs: list[torch.Tensor], wanted: list[torch.Tensor | None], vectors: list[torch.Tensor]
) -> list[torch.Tensor | None]:
    """The vector-Jacobian product; None for what the outputs do not depend on."""
    there = [t for t in wanted if t is not None and t.requires_grad]
    asked = bool(there and outputs)
    got = iter(torch.autograd.grad(outputs, there, vectors, allow_unused=True) if asked else ())
    return [next(got) if asked and t is not None and t.requires_grad else None for t in wanted]
