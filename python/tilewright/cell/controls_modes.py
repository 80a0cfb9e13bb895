"""Runs of a reference that are wrong on purpose: in a lower precision, or without its last stage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tilewright.cell.oracle_estimate import MOVES

Cut = Callable[[torch.Tensor], torch.Tensor]
"""Rounds a floating tensor to fewer bits, keeping its dtype."""


def _through(dtype: torch.dtype) -> Cut:
    return lambda tensor: tensor.to(dtype).to(tensor.dtype)


def _mantissa(bits: int) -> Cut:
    """Rounds to so many bits after the leading one, with the exponent of the dtype."""

    def cut(tensor: torch.Tensor) -> torch.Tensor:
        mantissa, exponent = torch.frexp(tensor.double())
        rounded = torch.ldexp((mantissa * 2 ** (bits + 1)).round(), exponent - (bits + 1))
        return torch.where(tensor.isfinite(), rounded, tensor.double()).to(tensor.dtype)

    return cut


ROUNDING: dict[str, Cut] = {
    "fp32": _through(torch.float32),
    "bf16": _through(torch.bfloat16),
    "fp16": _through(torch.float16),
    # float8_e4m3 with a scale for every tensor, as kernels use it: its mantissa, and no overflow.
    "fp8": _mantissa(3),
}


def lower_precisions(dtype: torch.dtype | None) -> list[str]:
    """The controls for a problem in a floating dtype; none for float8, which has nothing below it, and for integers."""
    match dtype:
        case torch.float64:
            return ["fp32"]
        case torch.float32:
            return ["bf16", "fp16"]
        case torch.float16:
            return ["bf16"]
        case torch.bfloat16:
            return ["fp8"]
    return []


def round_module(model: torch.nn.Module, cut: Cut) -> None:
    """Round every floating tensor that a module holds, in place."""
    with torch.no_grad():
        held = [*model.parameters(), *model.buffers()]
        held += [value for part in model.modules() for value in vars(part).values() if isinstance(value, torch.Tensor)]
        for tensor in held:
            if tensor.is_floating_point():
                tensor.data.copy_(cut(tensor.data))


class Rounding(TorchDispatchMode):
    """Rounds what every operation stores, as a chain of kernels in a lower precision does: each computes inside in the
    problem's own precision."""

    def __init__(self, cut: Cut) -> None:
        super().__init__()
        self.cut = cut

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if not func.is_view:
            for tensor in [*tree_leaves(result), *written(func, args, kwargs or {})]:
                if isinstance(tensor, torch.Tensor) and tensor.is_floating_point() and tensor.numel() > 0:
                    tensor.copy_(self.cut(tensor))
        return result


class Intermediates(TorchDispatchMode):
    """Remembers what operations computed, so that an output can be had as it was before its last stage."""

    def __init__(self) -> None:
        super().__init__()
        self.made: dict[int, int] = {}
        """Storage -> number of the operation whose values it holds; 0 for values that were given."""
        self.results: list[tuple[int, torch.Tensor]] = []
        self.count = 0
        # Kept, so that no storage's key is used twice.
        self.kept: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        sources = [_key(leaf) for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        newest = max((self.made.get(key, 0) for key in sources), default=0)
        result = func(*args, **kwargs)
        touched = [*tree_leaves(result), *written(func, args, kwargs)]
        tensors = [leaf for leaf in touched if isinstance(leaf, torch.Tensor)]
        moves = func.is_view or func._overloadpacket.__name__ in MOVES
        self.count += not moves
        for tensor in tensors:
            self.kept.append(tensor.untyped_storage())
            self.made[_key(tensor)] = newest if moves else self.count
            if not moves:
                self.results.append((self.count, tensor.detach().clone()))
        return result

    def before_last(self, output: torch.Tensor) -> torch.Tensor | None:
        """The latest result of an output's shape from before the operation that computed it."""
        last = self.made.get(_key(output), 0)
        kind = output.is_floating_point()
        for number, tensor in reversed(self.results):
            if number < last and tensor.shape == output.shape and tensor.is_floating_point() == kind:
                return tensor
        return None


HIDDEN_WRITES = frozenset({"running_mean", "running_var"})
"""Arguments that batch normalisation writes without its schema saying so."""


def written(func: Any, args: Any, kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """The arguments that an operation writes, returned or not."""
    given = dict(zip((argument.name for argument in func._schema.arguments), args, strict=False)) | kwargs
    names = [a.name for a in func._schema.arguments if a.alias_info is not None and a.alias_info.is_write]
    names += HIDDEN_WRITES.intersection(given)
    return [leaf for name in names for leaf in tree_leaves(given.get(name)) if isinstance(leaf, torch.Tensor)]


def _key(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata
