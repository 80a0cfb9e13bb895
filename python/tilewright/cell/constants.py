"""Weights that a constructor writes as fixed numbers, and other numbers in their place.

A bias of zeros, a scale of ones, an identity, slopes by a formula: a candidate that leaves such a weight out gives the
same results as one that uses it, until the weight is another. The oracle changes these weights, and where a candidate
makes its own in `__init__` (renamed, or folded into others) the init job changes them there in the same way, at the
moment they are written, so that all that the constructor computes from them follows.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn.parameter import UninitializedTensorMixin
from torch.utils._python_dispatch import TorchDispatchMode

EACH = "each"
"""Every element gets noise of its own: for two constructors that write the same fixed weights, in the same order
among equal ones."""
SAME = "same"
"""Equal numbers become equal numbers, whatever tensor they are in: for constructors that write them otherwise."""


@dataclass
class Change:
    """How fixed weights are changed while a constructor runs."""

    rule: str
    seed: int
    fixed: Sequence[str]
    """Digests of what is changed, as `Watch.made` has them; once for each tensor."""
    buffers: Sequence[str] = ()
    """Digests of buffers that are changed; others may be workspaces."""

    def apply(self, tensor: torch.Tensor, digest: str, number: int) -> None:
        """Change a tensor in place: the `number`-th that was written with these contents."""
        generator = torch.Generator()
        if self.rule == EACH:
            text = f"{self.seed}/{digest}/{number}"
            generator.manual_seed(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest(), "little"))
            vary(tensor, generator)
            return
        generator.manual_seed(self.seed)
        factor, zero = torch.rand(2, generator=generator).tolist()
        # At least a tenth away from one, so that no profile takes it for rounding.
        tensor.copy_(torch.where(tensor == 0, 0.05 + 0.2 * zero, tensor * (1.1 + 0.5 * factor)))


@dataclass
class _Known:
    """A tensor whose writes are watched."""

    storage: torch.UntypedStorage
    parameter: bool
    written: dict[str, int] = field(default_factory=dict)
    """By digest of what was written: the how-manieth tensor with these contents."""


class Watch(TorchDispatchMode):
    """Notes, while a constructor runs, each parameter that is written whole, and persistent buffers of one number."""

    def __init__(self, change: Change | None = None) -> None:
        super().__init__()
        self.made: list[tuple[str, bool]] = []
        """Digest, and whether it is a parameter, in the order of writing."""
        self._change = change
        self._numbers: Counter[str] = Counter()
        self._known: dict[int, _Known] = {}
        self._busy = False
        self._undo: list[tuple[Any, str, Any]] = []
        self._deterministic = False

    def __enter__(self) -> Watch:
        watch = self
        new, register = torch.nn.Parameter.__new__, torch.nn.Module.register_buffer

        def parameter(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
            made = new(cls, data, requires_grad)
            watch.see(made, True)
            return made

        def buffer(module: Any, name: str, tensor: Any, persistent: bool = True) -> None:
            register(module, name, tensor, persistent)
            if persistent and isinstance(tensor, torch.Tensor):
                watch.see(tensor, False)

        self._undo = [(torch.nn.Parameter, "__new__", new), (torch.nn.Module, "register_buffer", register)]
        torch.nn.Parameter.__new__ = parameter  # type: ignore[method-assign]
        torch.nn.Module.register_buffer = buffer  # type: ignore[method-assign]
        # Memory that nothing has written is NaN then, and no number that chance left there.
        self._deterministic = torch.are_deterministic_algorithms_enabled()
        torch.use_deterministic_algorithms(True, warn_only=True)
        return super().__enter__()

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)
        torch.use_deterministic_algorithms(self._deterministic, warn_only=True)
        for owner, name, value in self._undo:
            setattr(owner, name, value)
        self._known.clear()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if self._busy or not args or not isinstance(args[0], torch.Tensor) or not _writes_first(func):
            return result
        storage = args[0].untyped_storage()
        if (known := self._known.get(storage._cdata)) is not None:
            self._look(args[0], known)
        return result

    def see(self, tensor: torch.Tensor, parameter: bool) -> None:
        """Watch a tensor from now on."""
        if isinstance(tensor, UninitializedTensorMixin) or not tensor.is_floating_point():
            return
        storage = tensor.untyped_storage()
        known = self._known.setdefault(storage._cdata, _Known(storage, parameter))
        known.parameter |= parameter
        self._look(tensor, known)

    def _look(self, tensor: torch.Tensor, known: _Known) -> None:
        """Note what has been written, if it is the whole of the tensor, and change it."""
        if tensor.numel() == 0 or tensor.numel() * tensor.element_size() != known.storage.nbytes():
            return
        self._busy = True
        try:
            plain = tensor.detach()
            if not bool(plain.isfinite().all()) or not (known.parameter or one_number(plain)):
                return
            digest = digest_of(plain)
            if digest not in known.written:
                known.written[digest] = self._numbers[digest]
                self._numbers[digest] += 1
                self.made.append((digest, known.parameter))
            change = self._change
            if change is not None and digest in (change.fixed if known.parameter else change.buffers):
                with torch.no_grad():
                    change.apply(plain, digest, known.written[digest])
        finally:
            self._busy = False


def vary(tensor: torch.Tensor, generator: torch.Generator, zeros: bool = True, positive: bool = False) -> None:
    """Give every element noise of its own: signs stay, sizes change by up to a half, zeros get small values.

    With `zeros` false, zeros among other numbers stay; with `positive`, a tensor of zeros gets no negative values.
    """
    factor = 0.5 + torch.rand(tensor.shape, generator=generator, dtype=torch.float32).to(tensor.device)
    small = 0.25 * torch.randn(tensor.shape, generator=generator, dtype=torch.float32).to(tensor.device)
    wide = tensor.float() if tensor.dtype.itemsize < 4 else tensor
    scale = wide.square().mean().sqrt()
    if scale == 0:
        small = small.abs() if positive else small
    elif zeros:
        small = small * scale
    else:
        small = torch.zeros_like(small)
    tensor.copy_(torch.where(wide == 0, small, wide * factor))


def one_number(tensor: torch.Tensor) -> bool:
    """Whether all elements are the same finite number."""
    first = tensor.reshape(-1)[0]
    return bool(first.isfinite()) and bool((tensor == first).all())


def digest_of(tensor: torch.Tensor) -> str:
    """Digest of shape, dtype and contents. Of a tensor of one number the number is enough."""
    dense = tensor.detach().cpu().contiguous()
    if one_number(dense):
        return f"{tensor.dtype} {list(tensor.shape)} {dense.reshape(-1)[0].item()!r}"
    data = memoryview(dense.reshape(-1).view(torch.uint8).numpy())
    return f"{tensor.dtype} {list(tensor.shape)} {hashlib.blake2b(data, digest_size=8).hexdigest()}"


def contents_of(digest: str) -> str:
    """The part of a digest that does not depend on shape and dtype."""
    return digest.rsplit(" ", 1)[-1]


def fixed(first: Sequence[tuple[str, bool]], second: Sequence[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Of what a constructor wrote under two seeds, what is the same under both, in the order of the first."""
    left = Counter(second)
    kept = []
    for made in first:
        if left[made] > 0:
            left[made] -= 1
            kept.append(made)
    return kept


def _writes_first(func: Any) -> bool:
    arguments = func._schema.arguments
    return bool(arguments) and arguments[0].alias_info is not None and arguments[0].alias_info.is_write
